package host

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/capability"
)

// Options set up a host. Dir, Hooks.Authorize and one backend are required.
type Options struct {
	// Dir is the runtime directory: absolute, private to the running user, on
	// a local disk (DIR-1). It is made when it does not exist.
	Dir string
	// Hooks are the policy of the program that embeds the host (HK-1..3).
	Hooks reins.Hooks
	// Limits are the bounds; zero fields are the defaults.
	Limits reins.Limits
	// Backends are what can hold a browser, one for each name.
	Backends []cell.Backend
	// Logger gets what has no caller to be told to; nil discards it.
	Logger *slog.Logger
	// RuntimeID names this runtime in every [reins.Authority]; empty gets a
	// random one.
	RuntimeID string
	// Spares is how many browsers are kept started, 0 to 64, with a fresh
	// profile and without a network, for the next ephemeral resources that need
	// one like them: those are up in milliseconds (CELL-11).
	Spares int
	// SpareSpec is what spares are like; zero is the default browser. A
	// resource's may differ from it in Egress, Scheduling and Verbs only, to be
	// given one.
	SpareSpec reins.BrowserSpec
}

// Host is a runtime. It implements [reins.Runtime]; all methods may be called
// from any goroutine. Outside Start and Stop they fail with runtime_stopped.
type Host struct {
	id       string
	dir      string
	hooks    reins.Hooks
	limits   reins.Limits
	backends map[reins.Backend]cell.Backend
	log      *slog.Logger
	parts    parts
	calls    calls

	spares    int
	spareSpec reins.BrowserSpec // complete

	mu       sync.Mutex // guards all below
	gen      *generation
	starting *starting // the Start that is under way
	ending   *ending   // the last try to end gen, while it goes on
	lost     error     // why the last generation ended by itself

	graves graves
}

var _ reins.Runtime = (*Host)(nil)

// starting is one Start under way.
type starting struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// ending is one try to end a generation; the rest is set when done is closed.
type ending struct {
	done chan struct{}
	over bool // nothing of it is left, whatever err says
	err  error
}

// New checks the options and makes a host that is not started. It does no I/O
// (LIFE-0).
func New(o Options) (*Host, error) {
	limits, err := o.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	switch {
	case !filepath.IsAbs(o.Dir):
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Dir is %.200q; name a directory for the runtime's files by its absolute path", o.Dir)
	case o.Hooks.Authorize == nil:
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Hooks.Authorize is missing; the runtime gives no capability without asking it")
	case len(o.Backends) == 0:
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Backends is empty; give at least one, such as process.New")
	}
	h := &Host{
		id: o.RuntimeID, dir: o.Dir, hooks: o.Hooks, limits: limits, log: o.Logger,
		backends: map[reins.Backend]cell.Backend{},
		calls:    calls{places: make(chan struct{}, limits.Capabilities)},
	}
	for _, b := range o.Backends {
		if b == nil || h.backends[b.Name()] != nil {
			return nil, reins.Errorf(reins.CodeInvalidInput, "Options.Backends holds a nil or the same backend twice")
		}
		h.backends[b.Name()] = b
	}
	if h.id == "" {
		h.id = capability.NewID(capability.KindRuntime)
	} else if err := (reins.ResourceKey{Project: h.id, ID: h.id}).Validate(); err != nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "Options.RuntimeID %.40q may hold 1 to 128 letters, digits and . _ : -", h.id)
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.parts = realParts(limits, h.log)
	if err := h.checkSpares(o.Spares, o.SpareSpec); err != nil {
		return nil, err
	}
	return h, nil
}

// ID names this runtime; it is the RuntimeID of every authority.
func (h *Host) ID() string { return h.id }

// Limits are the complete bounds in force.
func (h *Host) Limits() reins.Limits { return h.limits }

// Start takes ownership of the directory and begins a new generation. It waits
// for a clean-up that an earlier Stop left running; when that has failed Start
// fails with its error, and Stop tries again (LIFE-2). It fails with
// invalid_input when [Main] was not called, with unsafe_host when no backend
// can hold a browser here, with locked when another runtime owns the
// directory, with fenced when ownership is in doubt, with busy when this host
// runs already, and with runtime_stopped when Stop is called meanwhile.
func (h *Host) Start(ctx context.Context) error {
	if err := h.parts.ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mine := &starting{cancel: cancel, done: make(chan struct{})}
	if err := h.claimStart(ctx, mine); err != nil {
		return err
	}
	gen, err := openGeneration(ctx, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting = nil
	close(mine.done)
	if err != nil {
		return reins.AsError(err)
	}
	h.gen, h.lost = gen, nil
	gen.wg.Go(gen.guard) // only now can it have the generation stopped
	return nil
}

// claimStart makes the caller the one who starts, after any clean-up.
func (h *Host) claimStart(ctx context.Context, mine *starting) error {
	for {
		h.mu.Lock()
		e := h.ending
		switch {
		case h.starting != nil || h.gen != nil && e == nil && h.gen.closing() == nil:
			h.mu.Unlock()
			return reins.Errorf(reins.CodeBusy, "this runtime is started already; stop it first").In(reins.PhaseLifeCycle)
		case h.gen == nil && e == nil:
			h.starting = mine
			h.mu.Unlock()
			return nil
		case e == nil:
			h.mu.Unlock()
			return reins.Errorf(reins.CodeFenced, "the clean-up of the generation before failed; call Stop again before Start").In(reins.PhaseCleanUp)
		}
		h.mu.Unlock()
		select {
		case <-e.done:
			if e.err != nil && !e.over {
				return e.err
			}
		case <-ctx.Done():
			return reins.ContextError(ctx)
		}
	}
}

// Stop ends the generation: all authority is fenced at once, then browsers,
// artifacts and ownership are ended, each even when another failed, and all
// failures are reported together (LIFE-1). A Start that is under way is broken
// off. When ctx ends or the clean-up limit passes it returns and the clean-up
// goes on; a later Stop joins it or, when it failed, tries again (LIFE-2). A
// stopped host stops again without effect.
func (h *Host) Stop(ctx context.Context) error {
	limit := time.NewTimer(h.limits.CleanUp)
	defer limit.Stop()
	h.mu.Lock()
	s := h.starting
	h.mu.Unlock()
	if s != nil {
		s.cancel(errStopped())
		if err := h.await(ctx, s.done, limit.C); err != nil {
			return err
		}
	}
	e := h.beginStop()
	if e == nil {
		return nil
	}
	if err := h.await(ctx, e.done, limit.C); err != nil {
		return err
	}
	return e.err
}

// await waits for done, as long as Stop may.
func (h *Host) await(ctx context.Context, done <-chan struct{}, limit <-chan time.Time) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return reins.ContextError(ctx).In(reins.PhaseCleanUp)
	case <-limit:
		return reins.Errorf(reins.CodeTimeout, "the clean-up has not ended within %s and goes on; call Stop again to wait for it", h.limits.CleanUp).In(reins.PhaseCleanUp)
	}
}

// beginStop fences the generation and starts or joins its clean-up.
func (h *Host) beginStop() *ending {
	h.mu.Lock()
	if h.gen == nil || h.ending != nil {
		defer h.mu.Unlock()
		return h.ending
	}
	gen, e := h.gen, &ending{done: make(chan struct{})}
	h.ending = e
	h.mu.Unlock()
	gen.fence(errStopped())
	go func() { // ends with the clean-up; its owner waits on e.done
		over, err := gen.close()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ending, e.over = nil, over
		if over {
			h.gen = nil
		}
		if err != nil {
			e.err = stopError(over, err)
			h.log.Error("clean-up failed", "over", over, "err", err)
		}
		close(e.done)
	}()
	return e
}

// stopError puts the failures of a clean-up into one sentence.
func stopError(over bool, err error) *reins.Error {
	if over {
		return reins.Errorf(reins.CodeOf(err), "the runtime has stopped and nothing of it is left, but not all went well: %s", flat(err)).In(reins.PhaseCleanUp).Because(err)
	}
	out := reins.Errorf(reins.CodeFenced, "the clean-up failed and can be tried again with Stop: %s", flat(err)).In(reins.PhaseCleanUp)
	return out.Because(err)
}

// flat joins the messages of joined errors with semicolons.
func flat(err error) string {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		s := ""
		for i, e := range j.Unwrap() {
			if i > 0 {
				s += "; "
			}
			s += flat(e)
		}
		return s
	}
	if e, ok := err.(*reins.Error); ok {
		return e.Message
	}
	return err.Error() // with what it is about in front
}

func errStopped() *reins.Error {
	return reins.Errorf(reins.CodeRuntimeStopped, "the runtime is stopping or stopped; start it and register the resource again").In(reins.PhaseLifeCycle)
}

// current is the generation that takes calls, or runtime_stopped.
func (h *Host) current() (*generation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gen == nil {
		return nil, cmp.Or(h.lost, error(errStopped()))
	}
	if err := h.gen.closing(); err != nil {
		return nil, err
	}
	return h.gen, nil
}

// Done is closed when the current generation can no longer work: it was
// stopped, or its directory was lost (OWN-7). It is nil on a stopped host.
func (h *Host) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gen == nil {
		return nil
	}
	return h.gen.ctx.Done()
}

// Err says why the last generation ended by itself: runtime_stopped with what
// became of its directory (OWN-7). It is nil when it did not, and again after the
// next Start.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// Dropped is how many audit records did not fit the buffer (HK-3) in the
// current generation.
func (h *Host) Dropped() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gen == nil {
		return 0
	}
	return h.gen.audit.dropped()
}

// graves remember which keys were retired, for the life of the process: one is
// never given up to make room (RES-6). Nothing is locked while its lock is held.
type graves struct {
	mu   sync.Mutex
	keys map[reins.ResourceKey]struct{}
}

func (g *graves) add(key reins.ResourceKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keys == nil {
		g.keys = map[reins.ResourceKey]struct{}{}
	}
	g.keys[key] = struct{}{}
}

// has reports whether the key was retired, and how many were.
func (g *graves) has(key reins.ResourceKey) (yes bool, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, yes = g.keys[key]
	return yes, len(g.keys)
}
