package egress_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// panics is a resolver that does.
type panics struct{}

func (panics) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	panic("the resolver's text")
}

// EGR-10: a panic in whatever the verdict or the way rests on is a refusal that
// says so, and the proxy goes on serving.
func TestPanicsAreRefusals_EGR10(t *testing.T) {
	var reached atomic.Int64
	at := origin(t, func(w http.ResponseWriter, _ *http.Request) { reached.Add(1); io.WriteString(w, "inside") })
	exact := reins.EgressPolicy{AllowPrivate: []string{at}}
	for name, o := range map[string]egress.Options{
		"the resolver":      {Policy: exact, Resolver: panics{}},
		"the own addresses": {Policy: exact, Own: func() ([]netip.Addr, error) { panic("own") }},
		"the dialler":       {Policy: exact, Dial: func(context.Context, netip.AddrPort) (net.Conn, error) { panic("dial") }},
		"the audit":         {Policy: exact, Audit: func(egress.Decision) { panic("audit") }},
	} {
		target := at
		if name == "the resolver" {
			target = "site.example.com:80"
		}
		p := start(t, o, nil)
		for range 2 { // it goes on serving, to the same end
			resp, body := p.dial(t).ask(get("http://" + target + "/"))
			wantReason(t, resp, egress.ReasonInternal)
			if resp.StatusCode != http.StatusBadGateway || body == "" {
				t.Errorf("%s: status %d, %q", name, resp.StatusCode, body)
			}
			resp, _ = p.dial(t).ask(connect(target))
			wantReason(t, resp, egress.ReasonInternal)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the host was asked %d times", n)
	}
}

// EGR-10: an audit that panics about a connection that is one too many, where no
// request is served yet, does not end the program.
func TestAuditPanicsAtTheDoor_EGR10(t *testing.T) {
	p := start(t, egress.Options{Limits: reins.Limits{EgressConnections: 1}, Audit: func(egress.Decision) { panic("audit") }}, nil)
	first := p.dial(t)
	resp, _ := first.ask(get("http://10.0.0.1/"))
	wantReason(t, resp, egress.ReasonAddress)
	second := p.dial(t)
	resp, err := http.ReadResponse(second.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	wantReason(t, resp, egress.ReasonTooMany)
	first.Close()
}
