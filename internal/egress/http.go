package egress

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// exchange is one request on its way through, with the one decision made
// about it.
type exchange struct {
	proxy  *Proxy
	method string
	host   string // what was asked, until there is a target
	target target
	route  *route
	last   bool // the guard checks no head after this one
	once   sync.Once
	told   bool // what once came to
}

// decide tells the owner, the first time it is called, and reports whether that
// was taken.
func (x *exchange) decide(allowed bool, addr netip.Addr, ref *refusal) bool {
	x.once.Do(func() {
		d := Decision{Method: x.method, Host: x.host, Port: x.target.port, Address: addr, Allowed: allowed, Reason: ReasonAllowed}
		if x.target.port != 0 {
			d.Host = x.target.host()
		}
		if ref != nil {
			d.Reason, d.Detail, d.Address = ref.reason, ref.detail, ref.addr
		}
		x.told = x.proxy.tell(d)
	})
	return x.told
}

// unheard is the refusal of what the owner could not be told of.
func unheard() *refusal {
	return refuse(ReasonInternal, "the decision could not be recorded, so nothing passes")
}

// handle serves one request of the cell, whatever its form (EGR-2).
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		w.Header().Set("Connection", "close")
		return
	}
	defer p.running.Done()
	_, upgrade := r.Header["Upgrade"]
	x := &exchange{
		proxy: p, method: bounded(r.Method, 32), host: bounded(r.Host, 255),
		last: upgrade || len(r.TransferEncoding) > 0 || r.Method == http.MethodConnect,
	}
	rules := p.owner.Load().rules
	if rules == nil {
		x.refuse(w, r, refuse(ReasonNoOwner, "this browser belongs to nobody yet, so it reaches nothing"))
		return
	}
	t, ref := requestTarget(r)
	if ref != nil {
		x.refuse(w, r, ref)
		return
	}
	x.target = t
	route, ref := p.judge(r.Context(), rules, t)
	if ref != nil {
		x.refuse(w, r, ref)
		return
	}
	x.route = route
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, x)
		return
	}
	p.forward(w, r, x)
}

// requestTarget reads what a request asks for from its request line, as it
// was sent.
func requestTarget(r *http.Request) (target, *refusal) {
	if r.Method == http.MethodConnect {
		return parseAuthority(r.RequestURI, 0)
	}
	if authority, ok := authorityOf(r.Method, r.RequestURI); ok {
		return parseAuthority(authority, 80)
	}
	if g, _ := r.Context().Value(guardKey{}).(*guard); g != nil && strings.HasPrefix(r.RequestURI, "/") {
		if ref := g.bad.Load(); ref != nil {
			return target{}, ref
		}
	}
	if strings.Contains(r.RequestURI, "://") {
		return target{}, refuse(ReasonMalformed, "only http addresses are asked for in this form; others take a CONNECT tunnel")
	}
	return target{}, refuse(ReasonMalformed, "this is a proxy; the request names no host to go to")
}

type exchangeKey struct{}

// forward sends a request on to its judged address and the answer back.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, x *exchange) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.Header.Del("Upgrade")
	}
	// Nil means that the server adds none of its own (EGR-8).
	w.Header()["Date"] = nil
	w.Header()["Content-Type"] = nil
	ctx, drop := context.WithCancelCause(context.WithValue(r.Context(), exchangeKey{}, x))
	defer drop(nil)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if o, ok := c.Conn.(*originConn); ok && !x.decide(true, o.addr, nil) {
			o.Close() // before a byte goes out
			drop(unheard())
		}
	}})
	// Else the server would drain a body that the host has not asked for yet.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		x.refuse(w, r, refuse(ReasonInternal, "the connection cannot carry both directions"))
		return
	}
	p.forwarder.ServeHTTP(answer{w}, r.WithContext(ctx))
}

// answer leaves the status 100 to the server, which sends it by itself when
// the body is first read: once the host, asked the same, has sent its own.
type answer struct{ http.ResponseWriter }

func (a answer) WriteHeader(status int) {
	if status != http.StatusContinue {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets the forwarder flush and hijack.
func (a answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// rewrite turns the request of the cell into the one for the host.
func rewrite(pr *httputil.ProxyRequest) {
	x, _ := pr.In.Context().Value(exchangeKey{}).(*exchange)
	out := &url.URL{Scheme: "http", Host: x.route.poolKey()}
	path, query, hasQuery := strings.Cut(pathOf(pr.In.RequestURI), "?")
	switch {
	case strings.HasPrefix(path, "//"): // would be read as a host
		out.Path, out.RawPath = pr.In.URL.Path, pr.In.URL.RawPath
	default:
		out.Opaque = path // byte for byte: the escaping is the page's
	}
	out.RawQuery, out.ForceQuery = query, hasQuery
	pr.Out.URL = out
	pr.Out.Host = x.target.authority("http")
	pr.Out.Trailer = pr.In.Trailer // filled as the body ends
}

// pathOf returns path and query of an absolute-form target, as sent.
func pathOf(uri string) string {
	rest := uri[len("http://"):]
	rest, _, _ = strings.Cut(rest, "#")
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// poolKey names the connections that a request may share: same name, same
// port, same judged addresses. It is a host name that nobody resolves.
func (r *route) poolKey() string {
	h := sha256.New()
	h.Write([]byte(r.target.String()))
	addrs := slices.Clone(r.addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range addrs {
		h.Write([]byte{0})
		h.Write([]byte(a.String()))
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + ":" + strconv.Itoa(int(r.port))
}

// dialRoute makes a connection for the transport: to the route of the request
// that needs it, and to nothing else.
func (p *Proxy) dialRoute(ctx context.Context, _, addr string) (net.Conn, error) {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil || x.route.poolKey() != addr {
		return nil, refuse(ReasonInternal, "a connection was asked for that no verdict stands behind")
	}
	conn, ref := p.dial(ctx, x.route)
	if ref != nil {
		return nil, ref
	}
	return conn, nil
}

// modify keeps an answer from speaking for the proxy, from becoming a tunnel
// that nobody asked for, and from leading on to heads that the guard does not
// check.
func modify(resp *http.Response) error {
	resp.Header.Del(reasonHeader)
	x, _ := resp.Request.Context().Value(exchangeKey{}).(*exchange)
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols:
		if x == nil || x.last {
			resp.Header.Set("Connection", "close")
		}
	case resp.Request.Header.Get("Upgrade") == "":
		return refuse(ReasonBroken, "%q changes to a protocol that was not asked for", x.target.host())
	}
	return nil
}

// forwardFailed answers a request that could not be sent on.
func (p *Proxy) forwardFailed(w http.ResponseWriter, r *http.Request, err error) {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	var ref *refusal
	if !errors.As(err, &ref) && !errors.As(context.Cause(r.Context()), &ref) {
		ref = refuse(ReasonBroken, "%q closed the connection or did not answer with HTTP", x.target.host())
	}
	x.refuse(w, r, ref)
}
