package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/reins-browser/reins"
)

// throughProxy takes what a trusted proxy says of the client that it speaks for
// (API-6): the last address of X-Forwarded-For that is not a trusted proxy's. What
// others say of themselves is taken out.
func (d *Door) throughProxy(r *http.Request) (*http.Request, *reins.Error) {
	from, ok := addressOf(r.RemoteAddr)
	trusted := ok && d.trusts(from)
	if d.o.OnlyProxies && !trusted && (!ok || !from.IsLoopback()) {
		return r, reins.Errorf(reins.CodeDenied, "this server is reached through its proxy only, not from %s; add the proxy's address with --trusted-proxy", from).In(reins.PhaseAdmission)
	}
	if len(r.Header.Values("X-Forwarded-For")) == 0 {
		return r, nil
	}
	chain := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	r = r.Clone(r.Context())
	r.Header.Del("X-Forwarded-For")
	if !trusted {
		return r, nil
	}
	for _, hop := range slices.Backward(chain) {
		at, ok := addressOf(strings.TrimSpace(hop))
		if !ok {
			break // what is before it cannot be told
		}
		r.RemoteAddr = net.JoinHostPort(at.String(), "0")
		if !d.trusts(at) {
			break
		}
	}
	return r, nil
}

func (d *Door) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(d.o.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// addressOf reads an address, with a port or without.
func addressOf(s string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err == nil
}
