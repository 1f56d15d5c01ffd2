package host

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

// maxRefusals is how many of the newest refusals of an incarnation's door are
// remembered.
const maxRefusals = 128

// refusals are what the egress door of an incarnation refused lately. Over https
// the browser tells a page no more than that a tunnel failed; the door, which
// told its decision before it answered, knows why (EGR-8).
type refusals struct {
	mu     sync.Mutex
	newest []egress.Decision // newest last; bounded
}

func (r *refusals) add(d egress.Decision) {
	if d.Allowed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest = append(r.newest, d); len(r.newest) > maxRefusals {
		r.newest = append(r.newest[:0], r.newest[1:]...)
	}
}

// since is why a tunnel to host, "name" or "name:port", was refused last, at
// begin or after it.
func (r *refusals) since(begin time.Time, host string) (egress.Decision, bool) {
	name, port := host, "443"
	if h, p, err := net.SplitHostPort(host); err == nil {
		name, port = h, p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.newest) - 1; i >= 0; i-- {
		d := r.newest[i]
		if d.Time.Before(begin) {
			break
		}
		if d.Method == "CONNECT" && plain(d.Host) == plain(name) && strconv.Itoa(int(d.Port)) == port {
			return d, true
		}
	}
	return egress.Decision{}, false
}

// plain is a host as both sides write it.
func plain(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// refused makes of a navigation whose tunnel failed what the door said, if it
// did so within this operation.
func (op *operation) refused(inc *incarnation, err error) error {
	e := reins.AsError(err)
	if e.Code != reins.CodeNavigationFailed || e.Details["error"] != "net::ERR_TUNNEL_CONNECTION_FAILED" {
		return err
	}
	host, _ := e.Details["host"].(string)
	if d, ok := inc.refusals.since(op.began, host); ok {
		return driver.Refusal(host, string(d.Reason)).With("error", e.Details["error"])
	}
	return err
}
