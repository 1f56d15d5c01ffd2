package driver

import (
	"slices"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins/internal/cdp"
)

// navigation is what is known of the main frame's newest navigations. Its
// fields are guarded by browser.mu.
type navigation struct {
	commits     int              // documents that the main frame was given
	arrived     []proto.LoaderID // of them, newest last; bounded
	at          time.Time        // when the newest came
	within      int              // changes of address inside a document
	began       int              // navigations that started
	started     []proto.LoaderID
	overtaken   proto.LoaderID   // what the document before had begun when the newest came, until that came or failed; "" for nothing
	unreachable string           // address of the error page shown now; "" for a page
	lost        []proto.LoaderID // documents whose place that took
	responses   []response       // to document requests, newest last; bounded
	failures    []failure        // of document requests, newest last; bounded
}

// response is the answer to a document request.
type response struct {
	loader  proto.LoaderID
	url     string
	status  int
	refusal string // why the egress door refused it; "" when it did not
	asks    string // for which credentials the server asks, with status 401
}

// failure is why a document request came to nothing.
type failure struct {
	loader  proto.LoaderID
	text    string // net::ERR_…
	blocked string
}

const navigationsKept = 16

// startedLocked remembers a navigation that begins.
func (n *navigation) startedLocked(v page.EventFrameStartedNavigating) {
	n.began++
	n.started = keepLast(append(n.started, v.LoaderID))
}

// arrivedLocked remembers that a document is there. One that was begun after it
// was begun by the document before, and will take its place.
func (n *navigation) arrivedLocked(loader proto.LoaderID) {
	if n.overtaken == loader && len(n.arrived) > 0 {
		n.lost = keepLast(append(n.lost, n.arrived[len(n.arrived)-1]))
	}
	n.commits++
	n.at = time.Now()
	n.arrived = keepLast(append(n.arrived, loader))
	n.overtaken = ""
	at := slices.Index(n.started, loader)
	if last := len(n.started) - 1; at >= 0 && at < last && !slices.Contains(n.arrived, n.started[last]) {
		n.overtaken = n.started[last]
	}
}

func keepLast[T any](s []T) []T {
	if len(s) > navigationsKept {
		return append(s[:0], s[len(s)-navigationsKept:]...)
	}
	return s
}

// takeLocked remembers how documents were answered.
func (n *navigation) takeLocked(e cdp.Event) bool {
	if !isDocument(e.Params) {
		return false
	}
	switch e.Method {
	case network.ResponseReceived.Method:
		var v struct {
			LoaderID proto.LoaderID `json:"loaderId"`
			Type     string         `json:"type"`
			Response struct {
				URL     string            `json:"url"`
				Status  int               `json:"status"`
				Headers map[string]string `json:"headers"`
			} `json:"response"`
		}
		if e.Decode(&v) != nil || v.Type != "Document" {
			return false
		}
		r := response{loader: v.LoaderID, url: v.Response.URL, status: v.Response.Status}
		if strings.HasPrefix(r.url, "http:") { // over https the door answers nothing
			r.refusal = header(v.Response.Headers, refusalHeader)
		}
		if r.status == 401 {
			r.asks = header(v.Response.Headers, "WWW-Authenticate")
		}
		n.responses = keepLast(append(n.responses, r))
	case network.LoadingFailed.Method:
		v, ok := cdp.Is(e, network.LoadingFailed)
		if !ok || v.Type != network.ResourceTypeDocument {
			return false
		}
		if n.overtaken == proto.LoaderID(v.RequestID) {
			n.overtaken = ""
		}
		n.failures = keepLast(append(n.failures, failure{proto.LoaderID(v.RequestID), v.ErrorText, string(v.BlockedReason)}))
	default:
		return false
	}
	return true
}
