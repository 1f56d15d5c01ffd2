package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/webguard"
)

// Options make a handler. Runtime is required, and Authenticate or Binding.
type Options struct {
	// Runtime is what is served.
	Runtime reins.Runtime
	// Binding, when set, makes the handler that of one participant, known by the
	// connection alone (PIPE-1): every capability is held against it, nothing but
	// the participant's routes is served, without a description, and no key is
	// looked at.
	Binding *reins.Binding
	// Authenticate says whose API key a request carries; its error refuses the
	// request as unauthorized, whatever it is, unless it is an *reins.Error of
	// another code. It is asked for every request but those that come with a
	// capability's token and no key. It may be called concurrently.
	Authenticate func(*http.Request) (Identity, error)
	// Keeper, when not nil, adds what a server keeps besides: API keys, links for
	// people, the audit trail.
	Keeper Keeper
	// Peer is what the door observes of who sent a request, for participants
	// without a key. Nil is the address of the connection's other end.
	Peer func(*http.Request) string
	// Hosts, Origins and AnyHost widen what is accepted; see
	// [webguard.Options]. HostSetting and OriginSetting name in refusals what
	// does that.
	Hosts, Origins             []string
	AnyHost                    bool
	HostSetting, OriginSetting string
	// Version is the program's, as the description says it.
	Version string
	// KeepAlive is how often an idle stream shows that it lives; 0 is 15 s, at
	// least 100 ms and at most 30 s.
	KeepAlive time.Duration
	// Logger receives failures of our own, under the ID that the caller is told;
	// nil is nothing.
	Logger *slog.Logger
}

// Identity is who an API key belongs to: an administrator, or whoever works in
// one project.
type Identity struct {
	// Name tells keys apart, in logs and for idempotency keys. It is no secret.
	Name    string
	Admin   bool
	Project string
	// Resource, when not empty, is the only one of the project that there is for
	// this caller.
	Resource string
	// Holds, when not nil, makes this a caller whose leases the server keeps (see
	// [Handler.Adopt]): it names no token, and the leases that Holds reports are
	// the only ones it may use.
	Holds func(lease string) bool
	// Ended, when not nil, is closed when the key is no longer good; streams
	// that it opened end then.
	Ended <-chan struct{}
}

// may reports whether the identity may work in a project.
func (i Identity) may(project string) bool {
	return i.Admin || i.Project != "" && i.Project == project
}

// sees reports whether there is a resource of its project for the identity.
func (i Identity) sees(resource string) bool { return i.Resource == "" || i.Resource == resource }

// Handler serves a runtime. It is safe for concurrent use. Close it when the
// server has been told to stop, before its Shutdown is waited for: streams would
// hold that up.
type Handler struct {
	runtime reins.Runtime
	o       Options
	guard   *webguard.Guard
	mux     *http.ServeMux
	spec    *huma.OpenAPI
	whole   http.Handler

	closing context.Context // ended by Close
	end     context.CancelCauseFunc

	leases  leaseTable
	issued  issuedTable
	keys    keyTable
	streams events

	mu   sync.Mutex // guards over and the first Add of wg
	over bool
	wg   sync.WaitGroup // streams under way
}

// New checks the options and makes a handler. It does no I/O.
func New(o Options) (*Handler, error) {
	switch {
	case o.Runtime == nil:
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Runtime is missing; give the runtime to serve")
	case o.Binding != nil && o.Authenticate != nil:
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Binding and Options.Authenticate exclude each other: one participant, or whoever has a key")
	case o.Authenticate == nil && o.Binding == nil:
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Authenticate is missing; nothing is served to nobody in particular")
	case o.KeepAlive != 0 && (o.KeepAlive < 100*time.Millisecond || o.KeepAlive > 30*time.Second):
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.KeepAlive is %s; use 100ms to 30s", o.KeepAlive)
	}
	if o.Binding != nil {
		if err := o.Binding.Validate(); err != nil {
			return nil, err
		}
	}
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Peer == nil {
		o.Peer = remoteHost
	}
	guard, err := webguard.New(webguard.Options{
		Hosts: o.Hosts, Origins: o.Origins, AnyHost: o.AnyHost,
		HostSetting: o.HostSetting, OriginSetting: o.OriginSetting,
		Streams: takesBytes,
	})
	if err != nil {
		return nil, err
	}
	h := &Handler{runtime: o.Runtime, o: o, guard: guard, mux: http.NewServeMux(), spec: newSpec(o.Version)}
	h.closing, h.end = context.WithCancelCause(context.Background())
	h.streams.h = h
	h.routes()
	if o.Binding == nil {
		if err := h.publish(); err != nil {
			return nil, err
		}
	}
	h.whole = h.guard.Wrap(h.mux, h.refuse)
	return h, nil
}

func (h *Handler) routes() {
	h.resourceRoutes()
	h.capabilityRoutes()
	h.leaseRoutes()
	h.operationRoutes()
	h.viewRoutes()
	h.artifactRoutes()
	h.eventRoutes()
	if h.o.Keeper != nil {
		h.keeperRoutes()
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.refuse(w, r, reins.Errorf(reins.CodeNotFound, "there is nothing at this address for %.20q; /docs lists what is", r.Method))
	})
}

func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	h.whole.ServeHTTP(w, r)
}

// Close ends all streams and waits until their handlers have returned.
// Leases, resources and the runtime stay as they are. Idempotent.
func (h *Handler) Close() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.end(errStopping)
	h.wg.Wait()
	h.streams.close()
}

// admit finds out who asks, and whether they may do what rt is at all.
func (h *Handler) admit(rt route, w http.ResponseWriter, r *http.Request) (*call, error) {
	c := &call{w: w, r: r, h: h}
	if h.o.Binding != nil {
		c.lone = true
		if !rt.participant {
			return nil, reins.Errorf(reins.CodeDenied, "this connection is for one participant, which acquires its lease and acts under it").In(reins.PhaseAdmission)
		}
		return c, nil
	}
	if rt.participant && r.Header.Get("Authorization") == "" && r.Header.Get(capabilityHeader) != "" {
		c.lone = true
		return c, nil
	}
	who, err := h.o.Authenticate(r)
	switch e := err.(type) {
	case nil:
	case *reins.Error:
		return nil, e
	default:
		return nil, errNoKey().Because(err)
	}
	if !who.Admin && who.Project == "" {
		return nil, errNoKey()
	}
	c.who = who
	if project := r.PathValue("project"); project != "" && !who.may(unsegment(project)) {
		return nil, errOtherProject()
	}
	if resource := r.PathValue("resource"); resource != "" && !who.sees(unsegment(resource)) {
		return nil, errOtherProject()
	}
	return c, nil
}

// stillGood refuses a caller whose key ended since it was admitted: nothing begins
// under it any more.
func (c *call) stillGood() error {
	select {
	case <-c.who.Ended:
		return errNoKey()
	default:
		return nil
	}
}

func errNoKey() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "the request has no valid API key; send one as \"Authorization: Bearer KEY\"").In(reins.PhaseAdmission)
}

func errOtherProject() *reins.Error {
	return reins.Errorf(reins.CodeDenied, "this API key is for another project").In(reins.PhaseAdmission)
}

// refuse answers with an error in its one shape (API-4).
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, e *reins.Error) {
	if e.Code == reins.CodeInternal {
		id := strings.ToLower(rand.Text())
		h.o.Logger.Error("a request failed", "id", id, "method", r.Method, "path", r.URL.Path, "error", e, "cause", e.Cause)
		e = e.With("log", id)
	}
	status := e.Code.Info().Status
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if err := writeJSON(w, status, e); err != nil { // details that are no JSON
		bare := *e
		bare.Details = nil
		_ = writeJSON(w, status, &bare) // texts only
	}
}

// life is the context of one stream: it ends with the request, the handler,
// the key that opened it, and the lease when there is one, at once (LSE-6).
// What it opened is over when done is called; an error means that there is to
// be none.
func (c *call) life(lease <-chan struct{}) (ctx context.Context, done func(), err error) {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, nil, errStopping
	}
	h.wg.Add(1)
	ctx, cancel := context.WithCancelCause(c.r.Context())
	over := make(chan struct{})
	go func() { // ends with the stream, which waits for it
		defer close(over)
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errStreamDone) {
				return
			}
		case <-h.closing.Done():
			cancel(context.Cause(h.closing))
		case <-c.who.Ended:
			cancel(reins.Errorf(reins.CodeUnauthorized, "the API key of this stream is no longer good").In(reins.PhaseAdmission))
		case <-lease:
			cancel(errLeaseOver)
		}
		// Whatever is being written to a client that takes nothing ends now.
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(lastWords))
	}()
	return ctx, func() { cancel(errStreamDone); <-over; h.wg.Done() }, nil
}

// errStopping ends streams without a word: their readers come back, perhaps to
// the next server.
var errStopping = reins.Errorf(reins.CodeNotReady, "the server is stopping; connect again later").Recover(reins.RecoverReconnect).In(reins.PhaseLifeCycle)

var errStreamDone = errors.New("the stream came to its end")

// lastWords is how long a stream that ends may take to say why.
const lastWords = 100 * time.Millisecond

// errLeaseOver ends what was open under a lease; why is asked of the lease.
var errLeaseOver = reins.Errorf(reins.CodeLeaseEnded, "the lease has ended").In(reins.PhaseAdmission)

func (h *Handler) stopping() bool { return h.closing.Err() != nil }

// issuedTable remembers which project a capability belongs to, so that a
// project's key can revoke its own only. It is bounded; what it forgets only an
// administrator can revoke by its ID.
type issuedTable struct {
	mu       sync.Mutex
	projects map[string]string
	order    []string
}

const issuedMax = 1 << 16 // the most capabilities that a runtime can have (CAP-5)

func (t *issuedTable) add(id, project string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.projects == nil {
		t.projects = map[string]string{}
	}
	if _, ok := t.projects[id]; ok {
		return
	}
	if len(t.order) >= issuedMax {
		delete(t.projects, t.order[0])
		t.order = t.order[1:]
	}
	t.projects[id] = project
	t.order = append(t.order, id)
}

func (t *issuedTable) of(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.projects[id]
}

// token is the capability's token that a request carries; "" when it has none.
func token(r *http.Request) reins.Token {
	t := r.Header.Get(capabilityHeader)
	if len(t) > 4*capability.TokenLength {
		return ""
	}
	return reins.Token(t)
}

// takesBytes reports requests that store an artifact: their body is a stream
// under the store's quotas.
func takesBytes(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/projects/") && strings.HasSuffix(r.URL.Path, "/artifacts")
}
