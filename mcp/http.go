package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/hold"
	"github.com/reins-browser/reins/internal/webguard"
)

const (
	// authenticateTimeout bounds the authenticator, like the host's other hooks.
	authenticateTimeout = 10 * time.Second
	// sessionsPerClient bounds the sessions of one bearer and binding.
	sessionsPerClient = 16

	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	// sessionless is the first version of the protocol that has no sessions.
	sessionless = "2026-07-28"
)

// HTTPOptions make a door over HTTP. Authenticate and Acquire are required;
// Options.Lease and Options.Readiness must be nil.
type HTTPOptions struct {
	Options
	// Authenticate returns the complete binding that the sender of a request is
	// expected to have, by what it knows of the sender and observed of the
	// connection, independent of the token (MCP-2): source mcp, and the peer. An
	// error, a panic or no answer within 10 s is a no; whatever its reason, the
	// client is told the same. It is asked for each request.
	Authenticate func(*http.Request) (reins.Binding, error)
	// Acquire turns the bearer token of a request (empty when it has none) and
	// the binding into a lease. It is Runtime.Acquire where clients bear
	// capabilities; a host whose keys are the authentication issues and
	// acquires here. It is asked when a session begins, and again at a call
	// after the lease ended.
	Acquire func(context.Context, reins.Token, reins.Binding) (reins.Lease, error)
	// ReadinessOf, when set, is what reins://readiness shows under a binding. It
	// must not block.
	ReadinessOf func(reins.Binding) reins.Readiness
	// Hosts are names, with a port or without, under which this server is
	// reached besides localhost and the address of the connection: those of a
	// container or a proxy. A request under another name is refused.
	Hosts []string
	// AnyHost answers to every name. Only where something before this server
	// checks it: otherwise any web page can reach it through a name of its own.
	AnyHost bool
	// Origins are those of web pages that may use this server besides its own,
	// such as "https://tools.example".
	Origins []string
	// HostSetting and OriginSetting name, in refusals, what adds to Hosts and
	// Origins; empty are the names of the fields.
	HostSetting, OriginSetting string
	// Idle is how long a client without an open request is taken to be there: so
	// long its lease is renewed. After that the lease lives to its end, and the
	// session as long as the lease. 10 min [1 s..24 h].
	Idle time.Duration
	// Sessions bounds the sessions of all clients. 256 [1..65,536].
	Sessions int
}

func (o HTTPOptions) withDefaults() (HTTPOptions, error) {
	if o.Idle == 0 {
		o.Idle = 10 * time.Minute
	}
	if o.Sessions == 0 {
		o.Sessions = 256
	}
	switch {
	case o.Authenticate == nil:
		return o, reins.Errorf(reins.CodeInvalidInput, "MCP over HTTP needs HTTPOptions.Authenticate: it is never served to whoever asks")
	case o.Acquire == nil:
		return o, reins.Errorf(reins.CodeInvalidInput, "MCP over HTTP needs HTTPOptions.Acquire, such as that of the runtime")
	case o.Lease != nil || o.Readiness != nil:
		return o, reins.Errorf(reins.CodeInvalidInput, "Options.Lease and Options.Readiness are for one client; over HTTP use Acquire and ReadinessOf")
	case o.Idle < time.Second || o.Idle > 24*time.Hour:
		return o, reins.Errorf(reins.CodeInvalidInput, "HTTPOptions.Idle is %s; use 1s to 24h", o.Idle)
	case o.Sessions < 1 || o.Sessions > 65_536:
		return o, reins.Errorf(reins.CodeInvalidInput, "HTTPOptions.Sessions is %d; use 1 to 65536", o.Sessions)
	}
	return o, nil
}

// HTTPHandler is the door for MCP clients over Streamable HTTP. It serves every
// path that it is given. A session belongs to the binding and the bearer token
// that it began with; under others it does not exist. Close it when it is not
// served any more.
type HTTPHandler struct {
	options HTTPOptions
	server  *Server
	guard   *webguard.Guard
	ctx     context.Context
	cancel  context.CancelCauseFunc
	work    sync.WaitGroup // ends of sessions and releases of leases

	mu       sync.Mutex
	clients  map[identity]*client
	sessions map[string]*link // by ID
	count    int              // of all links, those without an ID too
}

// identity is what a session belongs to. It holds the token only as a hash.
type identity struct {
	token   [sha256.Size]byte
	binding string // as JSON, which is complete
}

// client is one identity with its sessions, which share a lease. What may change
// is guarded by the handler's lock.
type client struct {
	identity identity
	binding  reins.Binding
	hold     *hold.Lease
	ctx      context.Context // ends when the client is gone
	leave    context.CancelCauseFunc
	links    []*link
	free     *link // of the versions without sessions; nil until it is used
}

// NewHTTPHandler checks the options; it does no I/O.
func NewHTTPHandler(o HTTPOptions) (*HTTPHandler, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	server, err := newServer(o.Options)
	if err != nil {
		return nil, err
	}
	g, err := webguard.New(webguard.Options{
		Hosts: o.Hosts, Origins: o.Origins, AnyHost: o.AnyHost,
		HostSetting: cmp.Or(o.HostSetting, "HTTPOptions.Hosts"), OriginSetting: cmp.Or(o.OriginSetting, "HTTPOptions.Origins"),
	})
	if err != nil {
		return nil, err
	}
	h := &HTTPHandler{options: o, server: server, guard: g, clients: map[identity]*client{}, sessions: map[string]*link{}}
	h.options.Logger = server.options.Logger
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h, nil
}

func errClosing() *reins.Error {
	return reins.Errorf(reins.CodeRuntimeStopped, "this MCP server is stopping")
}

// Close ends every session, its calls and its open streams, and returns when
// their leases are released. From then on every request is refused. Idempotent.
func (h *HTTPHandler) Close() {
	h.cancel(errClosing())
	h.mu.Lock()
	for _, c := range h.clients {
		for _, l := range slices.Clone(c.links) {
			h.dropLocked(l, errClosing())
		}
	}
	h.mu.Unlock()
	h.work.Wait()
}

// ServeHTTP implements [http.Handler].
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.guard.Pace(w, r)
	if err := h.guard.Check(r); err != nil {
		refuse(w, tooLarge(r, err))
		return
	}
	if h.ctx.Err() != nil {
		refuse(w, errClosing())
		return
	}
	if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, r.Method) {
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	binding, err := h.authenticate(r)
	if err != nil {
		h.options.Logger.Debug("an MCP request was not authenticated", "error", err)
		refuse(w, errUnauthorized())
		return
	}
	sent, err := read(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	l, err := h.find(r, sent, binding)
	if err != nil {
		refuse(w, err)
		return
	}
	l.serve(w, r, sent)
}

// errUnauthorized is the one answer to whoever is not known (LSE-1).
func errUnauthorized() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "the capability or binding is not valid")
}

// authenticate asks the host who sends a request.
func (h *HTTPHandler) authenticate(r *http.Request) (b reins.Binding, err error) {
	defer func() {
		if recover() != nil { // a hook that panics says no (HK-4)
			err = errUnauthorized()
		}
	}()
	ctx, cancel := context.WithTimeout(r.Context(), authenticateTimeout)
	defer cancel()
	if b, err = h.options.Authenticate(r.WithContext(ctx)); err != nil {
		return b, err
	}
	if ctx.Err() != nil {
		return b, ctx.Err()
	}
	if b.Source != reins.SourceMCP {
		return b, reins.Errorf(reins.CodeInvalidInput, "the authenticator gave a binding of source %q; over MCP it is \"mcp\"", string(b.Source))
	}
	return b, b.Validate()
}

// bearer is the token that a request bears, or none.
func bearer(r *http.Request) reins.Token {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return reins.Token(strings.TrimSpace(token))
}

// find returns the link that a request belongs to, beginning it where the
// request does.
func (h *HTTPHandler) find(r *http.Request, sent message, b reins.Binding) (*link, error) {
	name, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	token := bearer(r)
	who := identity{sha256.Sum256([]byte(token)), string(name)}
	id, version := r.Header.Get(headerSession), r.Header.Get(headerVersion)
	switch {
	case id != "":
		if version != "" && !speaks(version) {
			return nil, reins.Errorf(reins.CodeInvalidInput, "the protocol version %.64q is not one that sessions of this server speak", version)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		l := h.sessions[id]
		if l == nil || l.client.identity != who {
			return nil, errNoSession()
		}
		return l, nil
	case sent.initialize:
		// The body names the version; what the header says is not agreed yet.
		r.Header.Del(headerVersion)
		return h.begin(r.Context(), who, b, token, false)
	case version >= sessionless && r.Method == http.MethodPost:
		return h.begin(r.Context(), who, b, token, true)
	}
	return nil, reins.Errorf(reins.CodeInvalidInput, "this request needs the header Mcp-Session-Id; send initialize first")
}

func errNoSession() *reins.Error {
	return reins.Errorf(reins.CodeNotFound, "there is no such session; initialize anew")
}

// speaks reports whether sessions may agree on a version of the protocol.
func speaks(version string) bool {
	return slices.Contains(versions(), version) && version < sessionless
}

// begin makes a session for a client that has a lease or gets one now. The
// versions without sessions have one link for all requests of a client.
func (h *HTTPHandler) begin(ctx context.Context, who identity, b reins.Binding, token reins.Token, free bool) (*link, error) {
	l, made, err := h.place(who, b, token, free)
	if err != nil {
		return nil, err
	}
	if _, err := l.client.hold.Current(ctx); err != nil {
		if made {
			h.drop(l, errNoSession())
		}
		return nil, err
	}
	return l, nil
}

// place makes room for a link and makes it, unless it is there.
func (h *HTTPHandler) place(who identity, b reins.Binding, token reins.Token, free bool) (_ *link, made bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil, false, errClosing()
	}
	c := h.clients[who]
	if c != nil && free && c.free != nil {
		return c.free, false, nil
	}
	if c != nil && len(c.links) >= sessionsPerClient && !h.makeRoomLocked(c) || h.count >= h.options.Sessions {
		return nil, false, reins.Errorf(reins.CodeQuotaExceeded, "there are too many MCP sessions; end one, or wait until one has expired")
	}
	if c == nil {
		c = h.newClient(who, b, token)
		h.clients[who] = c
	}
	l := newLink(h, c, free)
	c.links = append(c.links, l)
	h.count++
	if free {
		c.free = l
	} else {
		h.sessions[l.id] = l
	}
	return l, true, nil
}

func (h *HTTPHandler) newClient(who identity, b reins.Binding, token reins.Token) *client {
	c := &client{identity: who, binding: b}
	ctx, cancel := context.WithCancelCause(h.ctx)
	c.leave = cancel
	c.ctx = ctx
	c.hold = hold.New(ctx, hold.Options{
		Get:    func(ctx context.Context) (reins.Lease, error) { return h.options.Acquire(ctx, token, b) },
		Wanted: func() bool { return h.there(c) },
		Ended:  func() { h.cut(c) },
		Logger: h.options.Logger,
	})
	return c
}

// makeRoomLocked drops the session of c that was used least lately: one that
// nobody uses now, else one that is only listened to.
func (h *HTTPHandler) makeRoomLocked(c *client) bool {
	for _, fits := range []func(*exchange) bool{
		func(*exchange) bool { return false },
		func(e *exchange) bool { return e.get },
	} {
		var oldest *link
		for _, l := range c.links {
			if l.allLocked(fits) && (oldest == nil || l.seen.Before(oldest.seen)) {
				oldest = l
			}
		}
		if oldest != nil {
			h.dropLocked(oldest, errNoSession())
			return true
		}
	}
	return false
}

// there reports whether a client is taken to be connected: it has a request open,
// or had one not long ago.
func (h *HTTPHandler) there(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(c.links, func(l *link) bool {
		return len(l.open) > 0 || time.Since(l.seen) < h.options.Idle
	})
}

// drop ends a session; with the last of a client its lease. What drop returns is
// closed when that is done.
func (h *HTTPHandler) drop(l *link, cause *reins.Error) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropLocked(l, cause)
}

func (h *HTTPHandler) dropLocked(l *link, cause *reins.Error) <-chan struct{} {
	if l.dropped != nil {
		return l.dropped
	}
	done := make(chan struct{})
	l.dropped = done
	l.timer.Stop()
	c := l.client
	c.links = slices.DeleteFunc(c.links, func(o *link) bool { return o == l })
	h.count--
	if l == c.free {
		c.free = nil
	} else {
		delete(h.sessions, l.id)
	}
	last := len(c.links) == 0
	if last && h.clients[c.identity] == c {
		delete(h.clients, c.identity)
	}
	h.work.Go(func() {
		defer close(done)
		l.end(cause)
		if last {
			c.leave(cause)
			c.hold.Close()
		}
	})
	return done
}

// message is what a request sent, as far as this door looks at it.
type message struct {
	initialize bool // nothing but that
	calls      int  // of tools
}

// read takes in the body of a request and leaves it to be read again.
func read(w http.ResponseWriter, r *http.Request) (message, error) {
	var m message
	if r.Method != http.MethodPost {
		return m, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webguard.MaxBody))
	if err != nil {
		return m, tooLarge(r, webguard.BodyError(err))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	type part struct{ Method string }
	var parts []part
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		err = json.Unmarshal(body, &parts)
	} else {
		parts = make([]part, 1)
		err = json.Unmarshal(body, &parts[0])
	}
	if err != nil {
		return m, nil // for the SDK to refuse
	}
	for _, p := range parts {
		if p.Method == methodCall {
			m.calls++
		}
	}
	m.initialize = len(parts) == 1 && parts[0].Method == "initialize"
	if m.calls > 1 {
		return m, reins.Errorf(reins.CodeInvalidInput, "a batch may hold one call of a tool, not %d: calls in a batch have no order", m.calls)
	}
	return m, nil
}
