package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
)

// maxLate is how many calls of hooks that were given up, but have not returned,
// the operations of one lease may leave behind.
const maxLate = 8

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

// ask is ask for the hooks of operations. A hook that does not return when its
// time is over is left behind, and so many are left and no more: for one lease,
// so that it takes nothing from the others, and in the whole runtime.
func (op *operation) ask(ctx context.Context, name string, hook func(context.Context) error) error {
	g, l := op.r.gen, op.lease
	limits := g.host.limits
	g.mu.Lock()
	full := l.late >= maxLate || g.late >= limits.Capabilities
	g.mu.Unlock()
	if full {
		return reins.Errorf(reins.CodeQuotaExceeded, "calls of the host's %s hook that were given up have not returned yet; try again later", name).In(reins.PhaseHook)
	}
	settled, late := false, false // guarded by g.mu
	err := ask(ctx, name, limits.GateTimeout, hook, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if settled = true; late {
			l.late, g.late = l.late-1, g.late-1
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if late = !settled; late {
		l.late, g.late = l.late+1, g.late+1
	}
	return err
}
