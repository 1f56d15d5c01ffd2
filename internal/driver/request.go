package driver

import (
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
)

// Bounds of waiting for requests.
const (
	// streamAfter is how long an answer may go on arriving before it counts as
	// a stream, which nobody waits for.
	streamAfter = time.Second
	// unreadAfter and unreadShort are how long nothing of a fetched answer may
	// arrive, the latter when its length was told: the browser tells of no end
	// of one that the page never reads, so those are known by silence.
	unreadAfter = 300 * time.Millisecond
	unreadShort = 100 * time.Millisecond
	// pollAfter is how long after an input a request that the page has sent
	// habitAfter times since counts as one that it sends again and again.
	pollAfter = 300 * time.Millisecond
)

// request is one for data or code that a page sent.
type request struct {
	loader    proto.LoaderID
	main      bool
	signature string
	silence   time.Duration // that its answer may keep before it counts as unread; 0 is any
	answering time.Time     // when its answer began; zero before
	arrived   time.Time     // when the newest piece of its answer came
}

// answered notes that its answer begins.
func (r *request) answered(v network.EventResponseReceived) {
	r.answering = time.Now()
	r.arrived = r.answering
	switch {
	case v.Type != network.ResourceTypeFetch: // always read
	case v.Response != nil && hasLength(v.Response.Headers):
		r.silence = unreadShort
	default:
		r.silence = unreadAfter
	}
}

// left is for how long to go on waiting for it, and whether at all. One that is
// not answered has no end of its own.
func (r *request) left(now time.Time) (time.Duration, bool) {
	if r.answering.IsZero() {
		return time.Hour, true
	}
	left := streamAfter - now.Sub(r.answering)
	if r.silence > 0 {
		left = min(left, r.silence-now.Sub(r.arrived))
	}
	return left, left > 0
}

func hasLength(headers network.Headers) bool {
	for name := range headers {
		if strings.EqualFold(name, "Content-Length") {
			return true
		}
	}
	return false
}
