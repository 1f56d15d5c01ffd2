package egress

import (
	"net/netip"
	"testing"

	"github.com/reins-browser/reins"
	"pgregory.net/rapid"
)

// drawPolicy draws rules around few hosts, so that they meet.
func drawPolicy(t *rapid.T) reins.EgressPolicy {
	host := rapid.SampledFrom([]string{"a.example.com", "*.example.com", "b.corp", "localhost", "8.8.8.8", "10.1.2.3", "a.example.com:443", "m.internal"})
	private := rapid.SampledFrom([]string{
		"10.1.2.3:443", "10.0.0.0/8", "b.corp:443", "a.example.com:443", "127.0.0.1:443", "localhost:443", "169.254.0.0/16",
		"[::1]:443", "fc00::/7", "fe80::/10", "m.internal:443", "192.0.2.0/24", "::/7",
	})
	return reins.EgressPolicy{
		AllowHosts:   rapid.SliceOfN(host, 0, 2).Draw(t, "allow"),
		DenyHosts:    rapid.SliceOfN(host, 0, 1).Draw(t, "deny"),
		AllowPrivate: rapid.SliceOfN(private, 0, 3).Draw(t, "private"),
	}
}

func verdict(t *rapid.T, p reins.EgressPolicy, to target, addr netip.Addr, own bool) bool {
	r, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	if r.judgeTarget(to) != nil {
		return false
	}
	return r.judgeAddress(to, addr, own) == nil
}

// EGR-5, as laws over all policies: what opens what, and that a denial only
// ever closes and an allow_private only ever opens.
func TestRuleLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		name := rapid.SampledFrom([]string{"a.example.com", "b.corp", "m.internal", "localhost", ""}).Draw(t, "name")
		addr := netip.MustParseAddr(rapid.SampledFrom([]string{
			"8.8.8.8", "10.1.2.3", "127.0.0.1", "169.254.169.254", "169.254.1.1", "192.0.2.1", "224.0.0.1", "0.0.0.0",
			"::1", "fd00::1", "fe80::1", "2606:2800::1", "64:ff9b::808:808", "64:ff9b::a01:203", "2002:808:808::1", "::7f00:1", "fd00:ec2::254",
		}).Draw(t, "addr"))
		own := rapid.Bool().Draw(t, "own")
		to := target{name: name, port: rapid.SampledFrom([]uint16{443, 8080, 22}).Draw(t, "port")}
		if name == "" {
			to.addr = addr
		}
		ok := verdict(t, p, to, addr, own)
		r, err := compile(p)
		if err != nil {
			t.Fatal(err)
		}
		class := classify(addr).Class
		switch {
		case ok && class == ClassNever:
			t.Fatal("what nothing opens was opened")
		case ok && (own || class != ClassPublic && class != ClassPrivate) && !r.opens(addr, to.port):
			t.Fatal("opened by a name rule")
		case ok && class == ClassPrivate && !r.opens(addr, to.port) && !r.named[to.String()]:
			t.Fatal("a private address was opened by nothing")
		case ok && to.port == 22 && !r.names(to):
			t.Fatal("a port was opened that nothing names")
		}
		less := p
		less.DenyHosts = append([]string{to.host()}, p.DenyHosts...)
		if verdict(t, less, to, addr, own) {
			t.Fatal("a denied host is reached")
		}
		more := p
		more.AllowPrivate = append([]string{"198.51.100.0/24"}, p.AllowPrivate...)
		if verdict(t, more, to, addr, own) != ok {
			t.Fatal("a rule about another place changed the verdict")
		}
		if len(p.AllowHosts) == 0 && len(p.DenyHosts) == 0 && to.port == 443 && class == ClassPublic && !own && (name == "" || name == "a.example.com") && !ok {
			t.Fatal("a public place is refused by no rule")
		}
	})
}
