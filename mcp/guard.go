package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/reins-browser/reins"
)

// guard refuses what a web page could send here (MCP-7): requests under a name
// that is not this server's, as after a rebinding of DNS, and those of other
// origins.
type guard struct {
	hosts   []string // besides loopback and the address of the connection
	origins []string // besides the server's own
	anyHost bool
}

func newGuard(hosts, origins []string, anyHost bool) (guard, error) {
	g := guard{anyHost: anyHost}
	for _, name := range hosts {
		if name == "" || strings.ContainsAny(name, "*/@ \t") {
			return g, reins.Errorf(reins.CodeInvalidInput, "host %.256q is not the name of a host, with a port or without; to answer to every name there is AnyHost", name)
		}
		g.hosts = append(g.hosts, strings.ToLower(name))
	}
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.Scheme+"://"+u.Host != origin {
			return g, reins.Errorf(reins.CodeInvalidInput, "origin %.256q is not of the form https://name:port", origin)
		}
		g.origins = append(g.origins, strings.ToLower(origin))
	}
	return g, nil
}

// check refuses r, or returns nil.
func (g guard) check(r *http.Request) *reins.Error {
	if !g.anyHost && !g.ours(r) {
		return reins.Errorf(reins.CodeDenied, "this server does not answer to the host %.256q; whoever runs it adds the name to its Hosts", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if !g.from(r, strings.ToLower(origin)) {
			return reins.Errorf(reins.CodeDenied, "pages of the origin %.256q may not use this server; whoever runs it adds the origin to its Origins", origin)
		}
	}
	return nil
}

// ours reports whether a request came under a name of this server: localhost and
// addresses of loopback, the very address that it came to (nobody can rebind a
// number), and the names that were given, with their port or any.
func (g guard) ours(r *http.Request) bool {
	whole := strings.ToLower(r.Host)
	name := whole
	if host, _, err := net.SplitHostPort(whole); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if name == "localhost" || slices.Contains(g.hosts, whole) || slices.Contains(g.hosts, name) {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if address.Unmap().IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	here, err := netip.ParseAddrPort(local.String())
	return err == nil && here.Addr().Unmap() == address.Unmap()
}

// from reports whether an origin is the server's own, under the name that the
// request came by, or one that was given.
func (g guard) from(r *http.Request, origin string) bool {
	host := strings.ToLower(r.Host)
	return origin == "https://"+host || origin == "http://"+host && r.TLS == nil || slices.Contains(g.origins, origin)
}
