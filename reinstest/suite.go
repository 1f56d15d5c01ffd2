package reinstest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// Setup is what a test needs a runtime to be like.
type Setup struct {
	Hooks  reins.Hooks
	Limits reins.Limits
}

// Subject is a started runtime under test.
type Subject struct {
	Runtime reins.Runtime
	// Stop ends the runtime itself, wherever it is.
	Stop func(context.Context) error
}

// Factory makes a started runtime and sees to its end with t.Cleanup.
type Factory func(*testing.T, Setup) Subject

// Run holds the runtimes of a factory against the contract.
func Run(t *testing.T, f Factory) {
	for _, part := range []map[string]func(*testing.T, Factory){
		resourceTests, attachTests, capabilityTests, leaseTests, operationTests, controlTests, lifeTests, artifactTests, eventTests, viewTests,
	} {
		for name, test := range part {
			t.Run(name, func(t *testing.T) { test(t, f) })
		}
	}
}

// patience is how long the suite waits for what must happen. It is long,
// because machines are loaded; nothing here measures time.
const patience = 30 * time.Second

// policy is the host's hooks: what they answer, and what they were asked.
type policy struct {
	mu        sync.Mutex
	authorize func(context.Context, reins.Binding) error
	gate      func(context.Context, reins.Operation) error
	asked     []reins.Binding
	passed    []reins.Operation
}

func (p *policy) set(authorize func(context.Context, reins.Binding) error, gate func(context.Context, reins.Operation) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.authorize, p.gate = authorize, gate
}

func (p *policy) hooks() reins.Hooks {
	return reins.Hooks{
		Authorize: func(ctx context.Context, b reins.Binding) error {
			p.mu.Lock()
			p.asked = append(p.asked, b)
			answer := p.authorize
			p.mu.Unlock()
			if answer == nil {
				return nil
			}
			return answer(ctx, b)
		},
		BeforeOperation: func(ctx context.Context, op reins.Operation) error {
			p.mu.Lock()
			p.passed = append(p.passed, op)
			answer := p.gate
			p.mu.Unlock()
			if answer == nil {
				return nil
			}
			return answer(ctx, op)
		},
	}
}

// urls are the addresses of the navigations that came to the gate, in order.
func (p *policy) urls() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, op := range p.passed {
		if n, ok := op.Action.(reins.Navigate); ok {
			out = append(out, n.URL)
		}
	}
	return out
}

// world is one test's runtime and policy.
type world struct {
	*policy
	reins.Runtime
	stop func(context.Context) error
	t    *testing.T
	ctx  context.Context
}

func begin(t *testing.T, f Factory, limits reins.Limits) *world {
	t.Helper()
	p := &policy{}
	s := f(t, Setup{Hooks: p.hooks(), Limits: limits})
	return &world{policy: p, Runtime: s.Runtime, stop: s.Stop, t: t, ctx: t.Context()}
}

var (
	key     = reins.ResourceKey{Project: "p", ID: "one"}
	session = reins.Session{Harness: "opencode", Native: "456"}
)

func attached(revision uint64) reins.Attachment {
	s := session
	return reins.Attachment{AuthorityID: "boss", Revision: revision, Session: &s}
}

func agent(revision uint64) reins.Binding {
	s := session
	return reins.Binding{
		Project: key.Project, Resource: key.ID, AuthorityID: "boss", Revision: revision, Session: &s,
		Actor: "agent é", Role: reins.RoleAgent, Peer: "pid 7", Source: reins.SourceLibrary, Scope: "s", Run: "r",
	}
}

func person(actor string) reins.Binding {
	return reins.Binding{Project: key.Project, Resource: key.ID, Actor: actor, Role: reins.RoleHuman, Peer: "10.1.1.1", Source: reins.SourceViewer}
}

// register makes the resource known, with a session at revision 1.
func (w *world) register(spec reins.BrowserSpec) reins.Resource {
	w.t.Helper()
	if _, err := w.Register(w.ctx, reins.Registration{Key: key, Attachment: attached(1), Spec: spec}); err != nil {
		w.t.Fatal(err)
	}
	r, err := w.Open(w.ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) issue(b reins.Binding, life time.Duration) reins.Capability {
	w.t.Helper()
	c, err := w.Issue(w.ctx, b, life)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) acquire(c reins.Capability) reins.Lease {
	w.t.Helper()
	l, err := w.Acquire(w.ctx, c.Token, c.Binding)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) lease(b reins.Binding) reins.Lease {
	w.t.Helper()
	return w.acquire(w.issue(b, 0))
}

func (w *world) want(err error, code reins.Code) *reins.Error {
	w.t.Helper()
	return want(w.t, err, code)
}

func want(t *testing.T, err error, code reins.Code) *reins.Error {
	t.Helper()
	if got := reins.CodeOf(err); got != code {
		t.Fatalf("error %v, want %q", err, code)
	}
	if code == "" {
		return nil
	}
	e := reins.AsError(err)
	info := code.Info()
	if e.Message == "" || e.Recovery == "" || e.Retryable && !info.Retryable {
		t.Fatalf("incomplete error %+v", e)
	}
	return e
}

// ended waits for the end of a lease and checks what it says then (LSE-6).
func (w *world) ended(l reins.Lease, reason string) {
	w.t.Helper()
	w.closed(l.Done(), "the lease's end")
	if l.IsCurrent(l.Authority()) {
		w.t.Fatal("an ended lease is current")
	}
	_, err := l.Do(w.ctx, navigate("https://late.example/"))
	if e := w.want(err, reins.CodeLeaseEnded); e.Details["reason"] != reason {
		w.t.Fatalf("the lease ended by %v, want %s", e.Details["reason"], reason)
	}
	_, err = l.Renew(w.ctx)
	w.want(err, reins.CodeLeaseEnded)
}

func (w *world) closed(c <-chan struct{}, what string) {
	w.t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		w.t.Fatalf("%s did not come", what)
	}
}

// until waits for a condition that something else brings about.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	late := time.After(patience)
	for !is() {
		select {
		case <-t.C:
		case <-late:
			w.t.Fatalf("%s did not come", what)
		}
	}
}

// doing is one Do under way.
type doing struct {
	cancel context.CancelFunc
	done   chan struct{}
	res    *reins.Result
	err    error
}

func (w *world) do(l reins.Lease, call reins.Call) *doing {
	ctx, cancel := context.WithCancel(w.ctx)
	d := &doing{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		defer cancel()
		d.res, d.err = l.Do(ctx, call)
	}()
	return d
}

func navigate(url string) reins.Call { return reins.Call{Action: reins.Navigate{URL: url}} }

// gate holds operations up until it is opened.
type gate struct {
	came chan reins.Operation
	open chan struct{}
	once sync.Once
}

func newGate() *gate {
	return &gate{came: make(chan reins.Operation, 1024), open: make(chan struct{})}
}

func (g *gate) hold(ctx context.Context, op reins.Operation) error {
	g.came <- op
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// arrived waits until an operation stands at the gate.
func (w *world) arrived(g *gate) reins.Operation {
	w.t.Helper()
	select {
	case op := <-g.came:
		return op
	case <-time.After(patience):
		w.t.Fatal("no operation came to the gate")
	}
	return reins.Operation{}
}
