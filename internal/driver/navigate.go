package driver

import (
	proto "github.com/chromedp/cdproto/cdp"
)

// navigation is what is known of the main frame's newest navigations. Its
// fields are guarded by browser.mu.
type navigation struct {
	responses []response // of documents, newest last; bounded
}

// response is the answer to a document request.
type response struct {
	loader  proto.LoaderID
	url     string
	status  int
	refusal string // why the egress door refused it; "" when it did not
}
