package host

import (
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

// EGR-8, NAV-4: a navigation whose tunnel failed tells the door's reason, if the
// door refused that host and port within the operation.
func TestRefusedTunnel(t *testing.T) {
	began := time.Now()
	inc := &incarnation{}
	connect := func(host string, port uint16, why egress.Reason, at time.Duration) egress.Decision {
		return egress.Decision{Method: "CONNECT", Host: host, Port: port, Reason: why, Time: began.Add(at)}
	}
	plainHTTP := connect("http.internal", 443, egress.ReasonName, 1)
	plainHTTP.Method = "GET"
	allowed := connect("open.example", 443, egress.ReasonAllowed, 1)
	allowed.Allowed = true
	for _, d := range []egress.Decision{
		connect("a.internal", 443, egress.ReasonName, 1), connect("10.0.0.1", 8443, egress.ReasonAddress, 1),
		connect("::1", 443, egress.ReasonAddress, 1), connect("nowhere.example", 443, egress.ReasonDNS, 1),
		connect("twice.example", 443, egress.ReasonTimeout, 1), connect("twice.example", 443, egress.ReasonRefused, 2),
		connect("many.example", 443, egress.ReasonTooMany, 2), plainHTTP, allowed,
	} {
		inc.refusals.add(d)
	}
	early := &incarnation{}
	early.refusals.add(connect("a.internal", 443, egress.ReasonName, -1))
	op := &operation{began: began}
	for _, c := range []struct {
		inc   *incarnation
		host  string
		fault string
		code  reins.Code
		words string
	}{
		{inc, "a.internal", "", reins.CodeEgressDenied, "(forbidden-name)"},
		{inc, "A.internal.", "", reins.CodeEgressDenied, "(forbidden-name)"},
		{inc, "a.internal:8443", "", reins.CodeNavigationFailed, "as the driver said"},
		{inc, "10.0.0.1:8443", "", reins.CodeEgressDenied, "not public (forbidden-address)"},
		{inc, "10.0.0.1", "", reins.CodeNavigationFailed, "as the driver said"},
		{inc, "[::1]", "", reins.CodeEgressDenied, "(forbidden-address)"},
		{inc, "nowhere.example", "", reins.CodeNavigationFailed, "cannot be resolved"},
		{inc, "twice.example", "", reins.CodeNavigationFailed, "nothing listens"},
		{inc, "many.example", "", reins.CodeQuotaExceeded, "too many"},
		{inc, "http.internal", "", reins.CodeNavigationFailed, "as the driver said"},
		{inc, "open.example", "", reins.CodeNavigationFailed, "as the driver said"},
		{inc, "a.internal", "net::ERR_CONNECTION_RESET", reins.CodeNavigationFailed, "as the driver said"},
		{early, "a.internal", "", reins.CodeNavigationFailed, "as the driver said"},
	} {
		fault := c.fault
		if fault == "" {
			fault = "net::ERR_TUNNEL_CONNECTION_FAILED"
		}
		err := op.refused(c.inc, reins.Errorf(reins.CodeNavigationFailed, "as the driver said").With("error", fault).With("host", c.host))
		code(t, err, c.code)
		if !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %q", c.host, err, c.words)
		}
	}
	for range 3 * maxRefusals {
		inc.refusals.add(connect("x.example", 443, egress.ReasonDNS, 3))
	}
	if n := len(inc.refusals.newest); n != maxRefusals {
		t.Errorf("%d refusals are kept", n)
	}
}

// EGR-8: every reason of the door is worded and has the code of the door.
func TestRefusalWords(t *testing.T) {
	for _, row := range egress.Reasons() {
		if row.Reason == egress.ReasonAllowed {
			continue
		}
		got, want := driver.Refusal("h.example", string(row.Reason)), egress.Decision{Reason: row.Reason}.Err()
		if strings.Contains(got.Message, `("`) || row.Status >= 500 && got.Code != want.Code && row.Reason != egress.ReasonInternal {
			t.Errorf("%s: %v, the door says %v", row.Reason, got, want.Code)
		}
	}
}
