package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/artifact"
	"github.com/reins-browser/reins/internal/capability"
)

// generation is one successful start over the directory: everything that ends
// with Stop. It is a private lifetime owner, hence the contexts.
type generation struct {
	host   *Host
	ground ground
	store  *artifact.Store
	audit  *audit
	events *events
	spares *spares

	ctx    context.Context // ends when the generation is fenced, with why
	cancel context.CancelCauseFunc
	over   context.Context // ends when its resources have ended
	finish context.CancelFunc
	wg     sync.WaitGroup // incarnations and the guard of ownership

	mu        sync.Mutex // guards all below; a leaf: nothing is locked under it
	resources map[reins.ResourceKey]*resource
	byToken   map[capability.Hash]*grant
	byID      map[string]*grant
	reserved  int // capabilities, issued or being issued
}

// openGeneration takes the directory and builds on it; what was built is undone
// when a later step fails.
func openGeneration(ctx context.Context, h *Host) (_ *generation, err error) {
	if err := h.check(ctx); err != nil {
		return nil, err
	}
	ground, err := h.parts.open(ctx, h.dir)
	if err != nil {
		return nil, err
	}
	undo := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.limits.CleanUp)
		defer cancel()
		if cerr := ground.Close(ctx); cerr != nil {
			err = errors.Join(err, cerr)
		}
	}
	store, err := artifact.Open(ground.Artifacts(), artifact.Options{Limits: h.limits})
	if err != nil {
		undo()
		return nil, err
	}
	g := &generation{
		host: h, ground: ground, store: store,
		audit: newAudit(h.hooks.Audit, h.log), events: newEvents(),
		resources: map[reins.ResourceKey]*resource{},
		byToken:   map[capability.Hash]*grant{}, byID: map[string]*grant{},
	}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.over, g.finish = context.WithCancel(context.Background())
	g.spares = newSpares(g)
	return g, nil
}

// check asks every backend what this machine can do; one that can hold a
// browser is enough to start (CELL-10).
func (h *Host) check(ctx context.Context) error {
	var worst *reins.Error
	names := make([]reins.Backend, 0, len(h.backends))
	for name := range h.backends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		err := unfit(name, h.backends[name].Check(ctx))
		if err == nil {
			return nil
		}
		if worst == nil {
			worst = err
		}
	}
	if err := reins.ContextError(ctx); err != nil {
		return err
	}
	return worst
}

// unfit makes unsafe_host of the first finding that keeps browsers from
// starting.
func unfit(name reins.Backend, findings []cell.Finding) *reins.Error {
	for _, f := range findings {
		if f.OK || f.Optional {
			continue
		}
		out := reins.Errorf(reins.CodeUnsafeHost, "the %s backend cannot hold a browser on this machine: %s: %s", name, f.Name, f.Detail)
		if f.Remedy != "" {
			out = reins.Errorf(reins.CodeUnsafeHost, "%s; %s", out.Message, f.Remedy)
		}
		return out.In(reins.PhaseStart).With("finding", f.Name)
	}
	return nil
}

// closing is why the generation takes no more work, or nil.
func (g *generation) closing() error {
	if g.ctx.Err() == nil {
		return nil
	}
	return reins.AsError(context.Cause(g.ctx))
}

// fence ends all authority and lets nothing begin any more. It returns at once.
func (g *generation) fence(cause *reins.Error) {
	g.cancel(cause)
	for _, r := range g.all() {
		r.fenceAll(cause, cause)
	}
}

// all are the resources, ordered by key.
func (g *generation) all() []*resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*resource, 0, len(g.resources))
	for _, r := range g.resources {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *resource) int {
		if a.key == b.key {
			return 0
		}
		if a.key.String() < b.key.String() {
			return -1
		}
		return 1
	})
	return out
}

// guard waits for the loss of the directory and fences everything then (OWN-7).
func (g *generation) guard() {
	select {
	case <-g.ctx.Done():
		return
	case <-g.ground.Lost():
	}
	err := g.ground.Err()
	g.host.log.Error("the runtime directory was lost; stopping", "err", err)
	lost := reins.Errorf(reins.CodeRuntimeStopped, "the runtime lost its directory and stopped: %s", flat(err)).Because(err).In(reins.PhaseLifeCycle)
	g.host.mu.Lock()
	g.host.lost = lost
	g.host.mu.Unlock()
	g.fence(lost)
	g.host.beginStop() // its outcome is the next Stop's or Start's
}

// close ends what the generation built, each step even when one before failed
// (LIFE-1), and tells all that went wrong. Over means that nothing is left, in
// spite of it; otherwise close may be called again.
func (g *generation) close() (over bool, _ error) {
	errs := g.closeBrowsers()
	if err := g.audit.close(g.host.limits.CleanUp / 4); err != nil {
		errs = append(errs, err)
	}
	g.finish()
	g.events.close()
	ctx, cancel := context.WithTimeout(context.Background(), g.host.limits.CleanUp)
	defer cancel()
	if err := g.store.Close(ctx); err != nil {
		errs = append(errs, fmt.Errorf("artifact store: %w", err))
	}
	if g.alive() {
		return false, errors.Join(errs...) // a cell may live: its directory stays
	}
	if err := g.ground.Close(ctx); err != nil {
		return false, errors.Join(append(errs, err)...)
	}
	return true, errors.Join(errs...)
}

// closeBrowsers ends every incarnation and every spare at the same time and
// waits for all operations.
func (g *generation) closeBrowsers() []error {
	var (
		mu    sync.Mutex
		errs  []error
		wg    sync.WaitGroup
		spare []error
	)
	wg.Go(func() { spare = g.spares.close() })
	for _, r := range g.all() {
		wg.Go(func() {
			if err := r.shut(errStopped()); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", r.key, err))
			}
		})
	}
	wg.Wait()
	if len(errs) == 0 {
		g.wg.Wait()
	}
	return append(errs, spare...)
}

// alive reports whether an incarnation or a spare is left that could not be
// ended.
func (g *generation) alive() bool {
	if g.spares.alive() {
		return true
	}
	for _, r := range g.all() {
		r.mu.Lock()
		inc := r.st.inc
		r.mu.Unlock()
		if inc != nil {
			return true
		}
	}
	return false
}

// shut ends a resource with its generation.
func (r *resource) shut(cause *reins.Error) error {
	ctx, cancel := r.patience("ending")
	defer cancel()
	if err := r.end(ctx, cause, reins.StateDestroying); err != nil {
		return err
	}
	if err := r.quiet(ctx, func(*operation) bool { return true }); err != nil {
		return err
	}
	r.update(func(s *state) { s.life = reins.StateDestroyed })
	return nil
}
