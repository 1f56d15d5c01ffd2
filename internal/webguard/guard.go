package webguard

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reins-browser/reins"
)

// MaxBody is how many bytes of a request's body are taken by default (MCP-7).
const MaxBody = 4 << 20

// Options set up a guard. The zero value guards a server that is reached on
// loopback, or at the address it listens on.
type Options struct {
	// Hosts are further names by which clients reach this server:
	// "browser-runtime", "tools.site.test", or "name:8080" for one port only.
	Hosts []string
	// Origins are further origins of pages that may talk to it, in full:
	// "https://tools.site.test". The origin of an accepted Host needs no listing.
	Origins []string
	// AnyHost switches the check of Host off. Then a name that was rebound to
	// this server's address is accepted, and with it any web page: for servers
	// behind a proxy that checks the name itself.
	AnyHost bool
	// MaxBody is the largest body in bytes; 0 is [MaxBody].
	MaxBody int64
	// Streams reports requests whose body the handler takes as a stream under a
	// bound of its own; MaxBody does not hold for them. Nil is none.
	Streams func(*http.Request) bool
	// Frames lets other sites' pages load what is read in a frame; which of them, the
	// answers say (frame-ancestors). It gives them nothing else.
	Frames bool
	// HostSetting and OriginSetting name, in refusals, what adds a name:
	// "--host", "the option hosts". Empty are the names of the fields.
	HostSetting, OriginSetting string
}

// Guard checks requests.
type Guard struct {
	o       Options
	hosts   []authority
	origins []origin
}

// authority is a host and, when given, a port.
type authority struct{ host, port string }

type origin struct {
	scheme string
	authority
}

// New checks the options. A malformed name or origin is invalid_input.
func New(o Options) (*Guard, error) {
	g := &Guard{o: o}
	g.o.MaxBody = cmp.Or(o.MaxBody, MaxBody)
	g.o.HostSetting = cmp.Or(o.HostSetting, "Options.Hosts")
	g.o.OriginSetting = cmp.Or(o.OriginSetting, "Options.Origins")
	if g.o.MaxBody < 0 {
		return nil, reins.Errorf(reins.CodeInvalidInput, "MaxBody is negative; 0 means %d bytes", MaxBody)
	}
	for _, h := range o.Hosts {
		a, ok := parseAuthority(h)
		if !ok {
			return nil, reins.Errorf(reins.CodeInvalidInput, "host %.100q is not a name such as \"browser-runtime\" or \"tools.site.test:8080\"", h)
		}
		g.hosts = append(g.hosts, a)
	}
	for _, s := range o.Origins {
		at, ok := parseOrigin(s)
		if !ok {
			return nil, reins.Errorf(reins.CodeInvalidInput, "origin %.100q is not one such as \"https://tools.site.test\"", s)
		}
		g.origins = append(g.origins, at)
	}
	return g, nil
}

// parseAuthority reads "name", "name:port", an address, or "[v6]:port".
func parseAuthority(s string) (authority, bool) {
	host, port := s, ""
	if h, p, err := net.SplitHostPort(s); err == nil {
		if p == "" {
			return authority{}, false
		}
		host, port = h, p
	} else if _, err := netip.ParseAddr(s); err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return authority{addr.Unmap().String(), port}, addr.Zone() == ""
	}
	if host == "" || len(host) > 253 || strings.ContainsFunc(host, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) {
		return authority{}, false
	}
	for _, c := range port {
		if c < '0' || c > '9' || len(port) > 5 {
			return authority{}, false
		}
	}
	return authority{host, port}, true
}

// parseOrigin reads what a browser sends as Origin.
func parseOrigin(s string) (origin, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return origin{}, false
	}
	a, ok := parseAuthority(u.Host)
	a.port = cmp.Or(a.port, defaultPort(u.Scheme))
	return origin{u.Scheme, a}, ok
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// Check refuses what may not go on: denied for a Host or Origin, invalid_input
// for a body. The sentence names what was refused and what permits it.
func (g *Guard) Check(r *http.Request) error {
	host, ok := parseAuthority(r.Host)
	if !g.o.AnyHost && (!ok || !g.knows(r, host)) {
		return reins.Errorf(reins.CodeDenied, "the host name %.100q is not one of this server; add it with %s if clients reach it so", r.Host, g.o.HostSetting).In(reins.PhaseAdmission)
	}
	if err := g.checkOrigin(r, host); err != nil {
		return err
	}
	return g.checkBody(r)
}

// knows reports whether host is a name of this server: loopback and the
// address of the connection cannot be the work of a rebound name.
func (g *Guard) knows(r *http.Request, host authority) bool {
	if host.host == "localhost" {
		return true
	}
	if addr, err := netip.ParseAddr(host.host); err == nil {
		if addr.IsLoopback() {
			return true
		}
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if local != nil {
			at, err := netip.ParseAddrPort(local.String())
			if err == nil && at.Addr().Unmap() == addr {
				return true
			}
		}
	}
	return slices.ContainsFunc(g.hosts, func(a authority) bool {
		return a.host == host.host && (a.port == "" || a.port == host.port)
	})
}

func (g *Guard) checkOrigin(r *http.Request, host authority) error {
	refuse := func(what string) error {
		return reins.Errorf(reins.CodeDenied, "a page of %s may not talk to this server; add its origin with %s if it may", what, g.o.OriginSetting).In(reins.PhaseAdmission)
	}
	given := r.Header.Values("Origin")
	if len(given) == 0 {
		if g.foreignFetch(r) {
			return refuse("another site")
		}
		return nil
	}
	from, ok := parseOrigin(given[0])
	if !ok || len(given) > 1 {
		return refuse("origin " + printable(given[0]))
	}
	if slices.Contains(g.origins, from) {
		return nil
	}
	own := authority{host.host, cmp.Or(host.port, defaultPort(from.scheme))}
	if from.authority != own || r.TLS != nil && from.scheme != "https" {
		return refuse("origin " + printable(given[0]))
	}
	return nil
}

// foreignFetch reports whether a browser says that another site's page made
// the request, unless a person follows a link, or frames are permitted.
func (g *Guard) foreignFetch(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
	default:
		return false
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	dest := r.Header.Get("Sec-Fetch-Dest")
	return !reads || r.Header.Get("Sec-Fetch-Mode") != "navigate" || dest != "document" && !(g.o.Frames && dest == "iframe")
}

func (g *Guard) checkBody(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(given)
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions:
	case given == "" && r.ContentLength == 0:
	case given == "" || err != nil:
		return reins.Errorf(reins.CodeInvalidInput, "the body has no valid Content-Type; send application/json").In(reins.PhaseAdmission)
	case media == "text/plain" || media == "application/x-www-form-urlencoded" || media == "multipart/form-data":
		return reins.Errorf(reins.CodeInvalidInput, "a body of type %s is refused, because any page's form could send it; send application/json", media).In(reins.PhaseAdmission)
	}
	if r.ContentLength > g.o.MaxBody && !g.streams(r) {
		return tooLarge(g.o.MaxBody)
	}
	return nil
}

func (g *Guard) streams(r *http.Request) bool { return g.o.Streams != nil && g.o.Streams(r) }

func tooLarge(limit int64) *reins.Error {
	return reins.Errorf(reins.CodeInvalidInput, "the body has more than %d bytes; send less", limit).In(reins.PhaseAdmission)
}

// BodyError is the refusal of a body that turned out to be too large while it
// was read, and invalid_input for any other failure to read one.
func BodyError(err error) *reins.Error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return tooLarge(big.Limit)
	}
	return reins.Errorf(reins.CodeInvalidInput, "the body ended early: %w", err).In(reins.PhaseAdmission)
}

func printable(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s), "?")
}

// Wrap returns a handler that lets next have what passes [Guard.Check], with
// its body bounded. Refuse answers the rest in the door's own form.
func (g *Guard) Wrap(next http.Handler, refuse func(http.ResponseWriter, *http.Request, *reins.Error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Pace(w, r)
		if err := g.Check(r); err != nil {
			drain(w, r.Body)
			refuse(w, r, reins.AsError(err))
			return
		}
		if r.Body != nil && !g.streams(r) {
			r.Body = &bounded{ReadCloser: r.Body, w: w, limit: g.o.MaxBody, left: g.o.MaxBody}
		}
		next.ServeHTTP(w, r)
	})
}

// BodyTime is how long a body may take; one that streams, between two pieces.
const BodyTime = 15 * time.Second

// Pace ends a connection whose client does not send the body that it announced: of a
// request that nobody has to know anything for, in all; of a stream, when it stops.
func (g *Guard) Pace(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return
	}
	p := &paced{ReadCloser: r.Body, control: http.NewResponseController(w), rolling: g.streams(r)}
	p.extend()
	r.Body = p
}

// paced is a body that has to come in time.
type paced struct {
	io.ReadCloser
	control *http.ResponseController
	rolling bool
	over    bool
}

func (p *paced) extend() { _ = p.control.SetReadDeadline(time.Now().Add(BodyTime)) } // where there is none, nothing waits

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	switch {
	case err == io.EOF && !p.over:
		p.over = true
		_ = p.control.SetReadDeadline(time.Time{}) // the answer may take longer
	case err == nil && p.rolling:
		p.extend()
	}
	return n, err
}

// CheckListen refuses to listen off loopback without authentication (MCP-7):
// denied, naming the address. An address without a host, a wildcard and a name
// other than localhost count as off loopback.
func CheckListen(address string, authenticated bool) error {
	if authenticated {
		return nil
	}
	a, ok := parseAuthority(address)
	if addr, err := netip.ParseAddr(a.host); ok && (a.host == "localhost" || err == nil && addr.IsLoopback()) {
		return nil
	}
	return reins.Errorf(reins.CodeDenied, "without authentication a server listens on loopback only, not on %.100q; use 127.0.0.1 or set authentication up", address).In(reins.PhaseStart)
}

// drainMax and drainTime are how much of a refused body is taken, so that its
// sender gets to read why: most write all of it before they read anything, and
// find their connection gone.
const (
	drainMax  = 16 << 20
	drainTime = 5 * time.Second
)

func drain(w http.ResponseWriter, body io.Reader) {
	if body == nil {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime)) // else the server's own holds
	_, _ = io.CopyN(io.Discard, body, drainMax)                                  // a sender that left needs no answer
}

// bounded reads a body up to its limit. Beyond it, it fails once it has taken
// some of the rest.
type bounded struct {
	io.ReadCloser
	w           http.ResponseWriter
	limit, left int64
	err         error
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) <= b.left {
		b.left -= int64(n)
		b.err = err
		return n, err
	}
	n = int(b.left)
	b.left, b.err = 0, &http.MaxBytesError{Limit: b.limit}
	drain(b.w, b.ReadCloser)
	return n, b.err
}
