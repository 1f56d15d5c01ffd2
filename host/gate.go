package host

import (
	"context"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// What the operations of one lease may have open of calls of hooks.
const (
	maxLate  = 8  // given up and not returned; from then on there are no more
	maxCalls = 32 // in all; who comes then waits
)

// gate asks the host before any side effect (GATE-1).
func (op *operation) gate(ctx context.Context) error {
	if err := op.check(ctx); err != nil {
		return err
	}
	hook := op.r.gen.host.hooks.BeforeOperation
	if hook == nil {
		return nil
	}
	tab, ref := op.action.Target()
	view := reins.Operation{
		ID: op.id, Authority: op.lease.Authority(), Action: op.action, Verb: op.verb,
		Class: op.class, Tab: tab, Ref: ref, Started: time.Now(),
	}
	return op.ask(ctx, "BeforeOperation", func(ctx context.Context) error { return hook(ctx, view) })
}

// ask is ask for the hooks of operations. A call that does not return when its
// time is over is left behind and keeps its place, so that the places of a lease
// and of the host are how many can ever be open, late ones included; a lease
// that has left maxLate behind gets no more, so that it takes nothing from others.
func (op *operation) ask(ctx context.Context, name string, hook func(context.Context) error) error {
	l, h := op.lease, op.r.gen.host
	if h.calls.lateOf(l) >= maxLate {
		return errFull(name)
	}
	if err := enter(ctx, l.calls, h.limits.GateTimeout, name); err != nil {
		return err
	}
	if err := enter(ctx, h.calls.places, h.limits.GateTimeout, name); err != nil {
		<-l.calls
		return err
	}
	settled, late := false, false // guarded by the lock of h.calls
	err := ask(ctx, name, h.limits.GateTimeout, hook, func() {
		h.calls.mu.Lock()
		defer h.calls.mu.Unlock()
		if settled = true; late {
			l.late--
		}
		<-h.calls.places
		<-l.calls
	})
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	if late = !settled; late {
		l.late++
	}
	return err
}

// errFull says that there is no place for another call of a hook.
func errFull(name string) *reins.Error {
	return reins.Errorf(reins.CodeQuotaExceeded, "calls of the host's %s hook that were given up have not returned yet; try again later", name).In(reins.PhaseHook)
}

// enter takes a place for a call of a hook, unless none becomes free in time.
func enter(ctx context.Context, places chan struct{}, limit time.Duration, name string) error {
	select {
	case places <- struct{}{}:
		return nil
	default: // nearly never
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errFull(name))
	defer cancel()
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
}

// calls are the open calls of hooks. They outlive generations, as a hook that does
// not return does.
type calls struct {
	places chan struct{} // taken by calls for operations

	mu        sync.Mutex // a leaf; guards late of every lease too
	authorize int        // of Authorize
}

func (c *calls) lateOf(l *lease) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.late
}

// open is how many calls have not returned.
func (c *calls) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authorize + len(c.places)
}
