package server

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/webguard"
	"github.com/reins-browser/reins/mcp"
)

// DoorOptions make a door. Runtime, Keys and URL are required.
type DoorOptions struct {
	// Runtime is what is served.
	Runtime reins.Runtime
	// Keys know the API keys. What is made under one is noted there by Runtime.
	Keys *Keyring
	// Keeper is what the API offers beside the ports; its Join is the door's own. Nil
	// keeps nothing.
	Keeper api.Keeper
	// Agents, when not nil, serves MCP at /mcp to clients with an agent's key.
	Agents *mcp.Options
	// Files are people's pages: index.html, resource.html, join.html and assets.
	Files fs.FS
	// URL is where people reach this door: "http://127.0.0.1:7777".
	URL string
	// Secret, when not empty, proves at /healthz which server this is; see [Proof].
	Secret string
	// ID tells servers apart: its cookie is named after it. Empty is a random one.
	ID string
	// Hosts, Origins, AnyHost as in [webguard.Options].
	Hosts, Origins []string
	AnyHost        bool
	// Ancestors are the origins of pages that may show people's pages in a frame
	// (VIEW-5); none by default.
	Ancestors []string
	// Ask, when not nil, is the host's word on people: asked when a page opens a
	// resource, when it opens a stream, and before each control operation (VIEW-5).
	// An error is a no.
	Ask func(context.Context, Visit) error
	// Proxies are the addresses from which X-Forwarded-For and X-Forwarded-Proto are
	// believed (API-6). OnlyProxies refuses connections from anywhere else but
	// loopback.
	Proxies     []netip.Prefix
	OnlyProxies bool
	// Secure marks the cookie for TLS only: set where people's addresses are https.
	Secure bool
	// SessionLife is how long a person stays signed in, 12 h; Absent is how long a
	// page may be gone before what it held is released, 1 min.
	SessionLife, Absent time.Duration
	// Projects lists the projects there are, for those who may see all.
	Projects func(context.Context) ([]string, error)
	// Ready is what /readyz tells: why not, by capability.
	Ready func(context.Context) map[string]reins.Capable
	// Metrics, when not nil, is served at /metrics.
	Metrics http.Handler
	// Observe, when not nil, wraps everything: measuring and tracing.
	Observe func(route func(*http.Request) string, next http.Handler) http.Handler
	Version string
	Logger  *slog.Logger
}

// Door is the HTTP handler of a server. It is safe for concurrent use. Close it.
type Door struct {
	o      DoorOptions
	api    *api.Handler
	mcp    *mcp.HTTPHandler // nil without Agents
	people *people
	guard  *webguard.Guard
	mux    *http.ServeMux
	pages  *http.ServeMux // what a person's page may ask of the API
	whole  http.Handler
	cookie string
	policy string // of content, for people's pages
	calls  calls
}

// calls counts the actions that are under way, for a shutdown that lets them end.
type calls struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes 0; made by who waits
}

func (c *calls) add(d int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += d; c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// wait returns when no action is under way, or when ctx ends.
func (c *calls) wait(ctx context.Context) {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// NewDoor checks the options and makes a door. It does no I/O.
func NewDoor(o DoorOptions) (*Door, error) {
	o.ID = cmp.Or(o.ID, capability.NewID("srv"))
	o.SessionLife, o.Absent = cmp.Or(o.SessionLife, 12*time.Hour), cmp.Or(o.Absent, time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.SessionLife < time.Minute || o.SessionLife > 30*24*time.Hour || o.Absent < 100*time.Millisecond {
		return nil, reins.Errorf(reins.CodeInvalidInput, "people's sessions live from 1m to 720h, not %s", o.SessionLife)
	}
	d := &Door{o: o, mux: http.NewServeMux(), pages: http.NewServeMux(), cookie: "reins_" + o.ID}
	var err error
	if d.policy, err = contentPolicy(o.Ancestors); err != nil {
		return nil, err
	}
	d.people = newPeople(peopleOptions{
		runtime: o.Runtime, log: o.Logger, life: o.SessionLife, absent: o.Absent,
		adopt: func(l reins.Lease) (func() api.LeaseState, func()) { return d.api.Adopt(l) },
	})
	if err := d.handlers(); err != nil {
		return nil, err
	}
	d.routes()
	d.whole = http.HandlerFunc(d.enter)
	if o.Observe != nil {
		d.whole = o.Observe(d.route, d.whole)
	}
	return d, nil
}

func (d *Door) handlers() (err error) {
	o := d.o
	d.guard, err = webguard.New(webguard.Options{
		Hosts: o.Hosts, Origins: o.Origins, AnyHost: o.AnyHost, HostSetting: "--host", OriginSetting: "--origin",
		Frames: len(o.Ancestors) > 0,
	})
	if err != nil {
		return err
	}
	if o.Keeper == nil {
		o.Keeper = guestbook{}
	}
	d.api, err = api.New(api.Options{
		Runtime: o.Runtime, Keeper: inviting{o.Keeper, d}, Version: o.Version, Logger: o.Logger,
		Authenticate: func(r *http.Request) (api.Identity, error) {
			return sender(r.Context()).identity(projectIn(r)), nil
		},
		Hosts: o.Hosts, Origins: o.Origins, AnyHost: o.AnyHost, HostSetting: "--host", OriginSetting: "--origin",
	})
	if err != nil || o.Agents == nil {
		return err
	}
	d.mcp, err = mcp.NewHTTPHandler(mcp.HTTPOptions{
		Options: *o.Agents, Authenticate: d.agent, Acquire: d.agentLease, ReadinessOf: d.readinessOf,
		Hosts: o.Hosts, Origins: o.Origins, AnyHost: o.AnyHost, HostSetting: "--host", OriginSetting: "--origin",
	})
	return err
}

// inviting is a keeper whose links lead to this door.
type inviting struct {
	api.Keeper
	door *Door
}

// Join implements [api.Keeper].
func (i inviting) Join(ctx context.Context, _ api.Identity, in api.JoinForm) (api.Join, error) {
	return i.door.Invite(in, sender(ctx).key)
}

// Invite makes a one-time link for a person (API-3). With a key, the session that it
// leads to ends with the key.
func (d *Door) Invite(in api.JoinForm, key *liveKey) (api.Join, error) {
	if in.Framed && len(d.o.Ancestors) == 0 {
		return api.Join{}, reins.Errorf(reins.CodeDenied, "no page may show this server's pages in a frame; name its origin with --frame-ancestor").In(reins.PhaseAdmission)
	}
	secret, expires, err := d.people.invite(in, key)
	if err != nil {
		return api.Join{}, err
	}
	path := "/join"
	if in.Framed { // the frame keeps its session in memory: it stays on one page
		path = "/r/" + url.PathEscape(in.Resource.Project) + "/" + url.PathEscape(in.Resource.ID) + "?embed=1"
	}
	return api.Join{URL: d.o.URL + path + "#" + string(secret), Expires: expires}, nil
}

func (d *Door) routes() {
	d.mux.HandleFunc("/v1/", d.serveAPI)
	for _, path := range []string{"/openapi.json", "/docs"} {
		d.mux.Handle("GET "+path, d.api)
	}
	if d.mcp != nil {
		d.mux.Handle("/mcp", d.counted(d.mcp))
	}
	d.mux.Handle("GET /healthz", d.guarded(d.healthz))
	d.mux.Handle("GET /readyz", d.guarded(d.readyz))
	if d.o.Metrics != nil {
		d.mux.Handle("GET /metrics", d.guarded(d.metrics))
	}
	d.peopleRoutes()
	d.fileRoutes()
	for _, pattern := range []string{
		"GET /v1/projects/{project}/resources", "GET /v1/projects/{project}/resources/{resource}",
		"GET /v1/projects/{project}/resources/{resource}/readiness",
		"POST /v1/projects/{project}/resources/{resource}/start", "POST /v1/projects/{project}/resources/{resource}/terminate",
		"GET /v1/projects/{project}/events",
		"GET /v1/leases/{lease}", "GET /v1/leases/{lease}/events", "GET /v1/leases/{lease}/view",
		"POST /v1/leases/{lease}/operations", "DELETE /v1/leases/{lease}/operations/{call}",
		"GET /v1/leases/{lease}/artifacts/{artifact}",
	} {
		d.pages.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	}
}

// route is what a request is counted under: never what a client made up.
func (d *Door) route(r *http.Request) string {
	_, pattern := d.mux.Handler(r)
	switch {
	case pattern == "/v1/":
		if _, finer := d.pages.Handler(r); finer != "" {
			return finer
		}
		return r.Method + " /v1/"
	case pattern == "":
		return "none"
	}
	return pattern
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.whole.ServeHTTP(w, r) }

// enter finds out where a request comes from, then lets it to its handler.
func (d *Door) enter(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	r, err := d.throughProxy(r)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	d.mux.ServeHTTP(w, r)
}

// Close ends all sessions and streams with their reason, and waits for them. The
// runtime stays as it is.
func (d *Door) Close() {
	d.api.Close()
	d.people.close()
	if d.mcp != nil {
		d.mcp.Close()
	}
}

// Wait returns when no action is under way through this door, or when ctx ends.
func (d *Door) Wait(ctx context.Context) { d.calls.wait(ctx) }

// guarded lets a handler have only what passes the guard.
func (d *Door) guarded(next http.HandlerFunc) http.Handler {
	return d.guard.Wrap(next, func(w http.ResponseWriter, r *http.Request, e *reins.Error) { d.refuse(w, r, e) })
}

// counted counts the requests of a handler that act.
func (d *Door) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			d.calls.add(1)
			defer d.calls.add(-1)
		}
		next.ServeHTTP(w, r)
	})
}

// serveAPI lets the API know who sent a request: by an API key, by a person's page, or
// by the token of a capability, which it knows itself.
func (d *Door) serveAPI(w http.ResponseWriter, r *http.Request) {
	acts := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/operations")
	if acts {
		d.calls.add(1)
		defer d.calls.add(-1)
	}
	w.Header().Set("Cache-Control", "no-store")
	switch _, token := bearer(r); {
	case r.Header.Get("Authorization") != "":
		k := d.o.Keys.find(token)
		switch {
		case k == nil: // the API refuses it in its own words
		case k.Binding != nil:
			d.refuse(w, r, reins.Errorf(reins.CodeDenied, "this is an agent's key; it opens /mcp and nothing else").In(reins.PhaseAdmission))
			return
		default:
			r = r.WithContext(as(r.Context(), who{key: k}))
		}
	case d.fromPage(r):
		d.servePage(w, r)
		return
	}
	d.api.ServeHTTP(w, r)
}

// bearer is the token that a request bears.
func bearer(r *http.Request) (ok bool, _ reins.Token) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false, ""
	}
	return true, reins.Token(strings.TrimSpace(token))
}

// projectIn is the project in the path of a request, or of the lease in it.
func projectIn(r *http.Request) string {
	if p := r.PathValue("project"); p != "" {
		return p
	}
	if w := sender(r.Context()); w.page != nil {
		return w.page.resourceOf(r.PathValue("lease")).Project
	}
	return ""
}

// agent is the binding of the agent's key that a request bears (MCP-2).
func (d *Door) agent(r *http.Request) (reins.Binding, error) {
	_, token := bearer(r)
	k := d.o.Keys.find(token)
	if k == nil || k.Binding == nil {
		return reins.Binding{}, reins.Errorf(reins.CodeUnauthorized, "no agent's key")
	}
	return *k.Binding, nil
}

// agentLease issues and acquires for an agent's key.
func (d *Door) agentLease(ctx context.Context, token reins.Token, b reins.Binding) (reins.Lease, error) {
	k := d.o.Keys.find(token)
	if k == nil || k.Binding == nil || !k.Binding.Equal(b) {
		return nil, errKeyEnded()
	}
	ctx = as(ctx, who{key: k})
	c, err := d.o.Runtime.Issue(ctx, b, 0)
	if err != nil {
		return nil, err
	}
	return d.o.Runtime.Acquire(ctx, c.Token, b)
}

func (d *Door) readinessOf(b reins.Binding) reins.Readiness {
	r, err := d.o.Runtime.Open(context.Background(), b.Key())
	if err != nil {
		e := reins.AsError(err)
		return crippled{e}.Readiness()
	}
	return r.Readiness()
}
