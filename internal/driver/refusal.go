package driver

import (
	"slices"

	"github.com/reins-browser/reins"
)

// refused words the reasons for which the egress door refuses.
var refused = map[string]string{
	"denied-host":       "a rule of this browser denies it",
	"not-allowed":       "this browser may reach some hosts only, and not this one",
	"forbidden-port":    "the port is another protocol's",
	"forbidden-name":    "the name is special, of this machine or of a private network",
	"forbidden-address": "its address is not public",
	"no-owner":          "the browser belongs to nobody yet",
	"too-many":          "too many connections are open",
	"byte-limit":        "the bytes of this browser are used up",
	"malformed":         "the request is none that can be passed on",
	"header-too-large":  "the head of the request is too large",
	"bad-host":          "the host is neither a plain name nor a plain address",
}

// unreached words the reasons that are no refusal: the door found no way.
var unreached = map[string]string{
	"dns":         "no such host: its name cannot be resolved",
	"refused":     "the server refused the connection; nothing listens there",
	"unreachable": "the network has no way there",
	"timeout":     "the server did not answer in time",
	"broken":      "the server closed the connection or does not speak HTTP",
	"internal":    "the network door failed",
}

// Refusal words why the egress door did not let a document of host be loaded
// (EGR-8): egress_denied when its policy said no, quota_exceeded at a bound,
// navigation_failed when the host was not reached (NAV-4). Host is as in an
// address, reason one of the door's.
func Refusal(host, reason string) *reins.Error {
	if words, ok := unreached[reason]; ok {
		return reins.Errorf(reins.CodeNavigationFailed, "%.200q was not loaded: %s", host, words).With("host", host).With("reason", reason)
	}
	code := reins.CodeEgressDenied
	if reason == "too-many" || reason == "byte-limit" {
		code = reins.CodeQuotaExceeded
	}
	out := reins.Errorf(code, "the network door of this browser refused %.200q (%.60q)", host, reason)
	if words, ok := refused[reason]; ok {
		out = reins.Errorf(code, "the network door of this browser refused %.200q: %s (%s)", host, words, reason)
	}
	return out.With("host", host).With("reason", reason)
}

// tellRefusalLocked notes, for the actions under way, that the network door did
// not let a document of the tab, or of a tab that they opened, be loaded: what a
// page leads to is refused like what an agent asks for (NAV-3).
func (t *tab) tellRefusalLocked() {
	r := t.nav.responses[len(t.nav.responses)-1]
	if r.refusal == "" {
		return
	}
	note := Refusal(hostOf(r.url), r.refusal).Message
	for fx := range t.b.effects {
		mine := fx.tab == t || slices.Contains(fx.opened, t) || fx.tab != nil && t.opener == fx.tab
		if mine && len(fx.refusals) < mostRefusals && !slices.Contains(fx.refusals, note) {
			fx.refusals = append(fx.refusals, note)
		}
	}
}

// mostRefusals is how many refusals one action tells.
const mostRefusals = 8
