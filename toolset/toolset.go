package toolset

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/hold"
	"github.com/reins-browser/reins/internal/tooltable"
)

// The names under which several tools are chosen at once.
const (
	ToolsetDefault = tooltable.ToolsetDefault // navigate, snapshot, screenshot, click, fill, press
	ToolsetTabs    = tooltable.ToolsetTabs    // those, six about tabs, and the tab argument
	ToolsetFull    = tooltable.ToolsetFull    // all tools there are
)

// Verbs returns the verbs that the named toolsets and tools need, for the
// registration of a resource that they are to act on (CAP-7).
func Verbs(names ...string) ([]reins.Verb, error) { return tooltable.Verbs(names) }

// Options choose the tools, and say whose they are. The zero value is the default
// toolset for whatever the capability is bound to.
type Options struct {
	// Tools names toolsets and single tools ("browser_read"); empty is the
	// default toolset.
	Tools []string
	// Secrets offers the argument "secret" of browser_fill and browser_type, for
	// runtimes whose host supplies secrets (ACT-11).
	Secrets bool
	// People offers browser_request_human, for runtimes in which a person can see
	// and answer it (CTL-8).
	People bool
	// SnapshotBytes is the size of snapshots that name none, 1,000 to 1,000,000;
	// 0 is 24,000.
	SnapshotBytes int
	// Scope and Run, when not empty, must be those that the capability is bound
	// to; anything else is invalid_input.
	Scope, Run string
	// RunOf returns the run ID of a call's context, for libraries whose contexts
	// carry one; nil is what [WithRun] put there. It is given the very context
	// that the call was made with.
	RunOf func(context.Context) string
	// Progress, when not nil, is told what a waiting call of a tool waits for. It
	// must return at once and may be called from any goroutine.
	Progress func(tool string, p reins.Progress)
	// Logger receives what no caller can be told; nil is nothing.
	Logger *slog.Logger
}

// Runtime is what a capability is good for; every [reins.Runtime] is one.
type Runtime interface {
	Acquire(context.Context, reins.Token, reins.Binding) (reins.Lease, error)
}

// Set is tools over one lease. It is safe for concurrent use. Close it.
type Set struct {
	list  tooltable.List
	tools []Tool
	run   string
	o     Options
	lease func(context.Context) (reins.Lease, error)

	ctx  context.Context // ended by Close
	end  context.CancelCauseFunc
	hold *hold.Lease // nil when the lease is somebody else's

	mu   sync.Mutex // guards over and the first Add of work
	over bool
	work sync.WaitGroup // calls
}

// Open makes tools of a capability; of the capability its token and binding
// matter. It does no I/O: what is wrong with the token is told by the first call.
func Open(r Runtime, c reins.Capability, o Options) (*Set, error) {
	if r == nil || c.Token == "" {
		return nil, reins.Errorf(reins.CodeInvalidInput, "a toolset needs a runtime and a capability with its token")
	}
	if err := c.Binding.Validate(); err != nil {
		return nil, err
	}
	s, err := newSet(c.Binding, o)
	if err != nil {
		return nil, err
	}
	s.hold = hold.New(s.ctx, hold.Options{
		Get:    func(ctx context.Context) (reins.Lease, error) { return r.Acquire(ctx, c.Token, c.Binding) },
		Logger: o.Logger,
	})
	s.lease = s.hold.Current
	return s, nil
}

// New makes tools over a lease, which stays its owner's.
func New(l reins.Lease, o Options) (*Set, error) {
	if l == nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "a toolset needs a lease, not nil")
	}
	s, err := newSet(l.Authority().Binding, o)
	if err != nil {
		return nil, err
	}
	s.lease = func(context.Context) (reins.Lease, error) { return l, nil }
	return s, nil
}

func newSet(b reins.Binding, o Options) (*Set, error) {
	for _, f := range []struct{ name, given, bound string }{{"Scope", o.Scope, b.Scope}, {"Run", o.Run, b.Run}} {
		if f.given != "" && f.given != f.bound {
			return nil, reins.Errorf(reins.CodeInvalidInput, "Options.%s is %.64q, and the capability is bound to %.64q", f.name, f.given, f.bound)
		}
	}
	if o.RunOf == nil {
		o.RunOf = runOf
	}
	list, err := tooltable.Choose(tooltable.Choice{
		Names: o.Tools, Secrets: o.Secrets, People: o.People, SnapshotBytes: o.SnapshotBytes,
	})
	if err != nil {
		return nil, err
	}
	s := &Set{list: list, run: b.Run, o: o}
	for _, row := range list.Tools {
		t, err := newTool(s, row)
		if err != nil {
			return nil, err
		}
		s.tools = append(s.tools, t)
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	return s, nil
}

// Close ends the calls that are under way, waits for them, and releases the lease
// that [Open] acquired. Idempotent.
func (s *Set) Close() {
	s.mu.Lock()
	first := !s.over
	s.over = true
	s.mu.Unlock()
	s.end(errClosed())
	s.work.Wait()
	if s.hold != nil && first {
		s.hold.Close()
	}
}

func errClosed() *reins.Error {
	return reins.Errorf(reins.CodeDestroyed, "the toolset is closed; make a new one").In(reins.PhaseLifeCycle)
}

// Tools are the tools, in the order in which models are to read them. The list is
// the caller's.
func (s *Set) Tools() []Tool { return append([]Tool{}, s.tools...) }

// Call calls the tool of a name that a model gave; one that is not there is
// answered as any bad input.
func (s *Set) Call(ctx context.Context, name string, arguments json.RawMessage) Answer {
	for _, t := range s.tools {
		if t.Name == name {
			return t.Call(ctx, arguments)
		}
	}
	return s.failure(reins.Errorf(reins.CodeInvalidInput, "there is no tool %.64q", name))
}

// begin counts a call, unless the set is closed, and returns a context that also
// ends with the set. Its stop has to be called.
func (s *Set) begin(ctx context.Context) (_ context.Context, stop func(), _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, nil, errClosed()
	}
	s.work.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	loose := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { loose(); cancel(nil); s.work.Done() }, nil
}

type runKey struct{}

// WithRun returns a context whose calls belong to a run.
func WithRun(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

func runOf(ctx context.Context) string {
	run, _ := ctx.Value(runKey{}).(string)
	return run
}
