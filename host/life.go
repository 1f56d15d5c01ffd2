package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
)

// Start implements [reins.Resource] (RES-7). It tries at once, also when an
// operation would still wait after a failure.
func (r *resource) Start(ctx context.Context) error {
	_, _, err := r.browser(ctx, nil)
	return err
}

// Resume implements [reins.Resource]: with the backends of this version it is
// Start over what the workspace kept.
func (r *resource) Resume(ctx context.Context) error { return r.Start(ctx) }

// Stop implements [reins.Resource]. A persistent workspace is kept, an
// ephemeral profile is not.
func (r *resource) Stop(ctx context.Context) error {
	return r.halt(ctx, "stop", reins.Errorf(reins.CodeBrowserEnded,
		"the browser was stopped; the next operation starts it again").In(reins.PhaseLifeCycle))
}

// Terminate implements [reins.Resource] (RES-4, QUI-4).
func (r *resource) Terminate(ctx context.Context) error {
	return r.halt(ctx, "terminate", reins.Errorf(reins.CodeBrowserEnded,
		"the browser was terminated; the next operation starts a new one").In(reins.PhaseLifeCycle))
}

func (r *resource) halt(ctx context.Context, action string, cause *reins.Error) error {
	if fence := r.fenced(); fence != nil {
		return fence
	}
	began := time.Now()
	err := r.end(ctx, cause, reins.StateStopping)
	r.did(action, began, err)
	return err
}

// end ends the incarnation there is, with cause for all who use it, and waits
// until nothing of it is left. That goes on when ctx ends first.
func (r *resource) end(ctx context.Context, cause *reins.Error, life reins.State) error {
	var inc *incarnation
	r.update(func(s *state) {
		if inc = s.inc; inc != nil {
			s.life = life
			inc.stopLocked(s, cause)
		}
	})
	if inc == nil {
		return nil
	}
	if err := inc.waitEnded(ctx); err != nil {
		return err
	}
	// What it took along has been cancelled; it settles without a browser.
	return r.quiet(ctx, func(op *operation) bool { return op.begun && op.on.incarnation == inc.number })
}

// retirement is one try to retire; err is set when done is closed.
type retirement struct {
	done chan struct{}
	err  error
}

// Retire implements [reins.Resource] (RES-5). The try goes on when ctx ends; a
// later call joins it or, when it failed, makes the next.
func (r *resource) Retire(ctx context.Context) error {
	cause := errRetired(r.key)
	var try *retirement
	first, gone, err := false, false, error(nil)
	r.update(func(s *state) {
		switch {
		case s.retired:
			gone = true
		case s.retiring != nil:
			try = s.retiring
		case r.gen.ctx.Err() != nil:
			err = r.gen.closing()
		default:
			first, try = true, &retirement{done: make(chan struct{})}
			s.retiring, s.fence = try, cause
			r.gen.wg.Add(1) // under the lock that the fence takes: never after the generation waits
		}
	})
	if err != nil || gone {
		return err
	}
	if first {
		r.fenceAll(cause, errEnded(reasonRevoked))
		go r.retire(try)
	}
	select {
	case <-try.done:
		return try.err
	case <-ctx.Done():
		return reins.ContextError(ctx).In(reins.PhaseCleanUp)
	}
}

// patience bounds one try to end the resource for good, nobody's call.
func (r *resource) patience(doing string) (context.Context, context.CancelFunc) {
	limit := r.gen.host.limits.CleanUp
	return context.WithTimeoutCause(context.Background(), limit, reins.Errorf(reins.CodeTimeout,
		"%s resource %s has not ended within %s; ask again to try once more", doing, r.key, limit).In(reins.PhaseCleanUp))
}

// retire makes one try; only when every step succeeded is the resource gone.
func (r *resource) retire(try *retirement) {
	defer r.gen.wg.Done()
	began := time.Now()
	ctx, cancel := r.patience("retiring")
	defer cancel()
	try.err = r.retireSteps(ctx)
	r.did("retire", began, try.err)
	r.update(func(s *state) {
		s.retiring = nil
		if try.err == nil {
			s.life, s.retired = reins.StateDestroyed, true
		}
	})
	if try.err == nil {
		r.publish(reins.Event{Kind: "retired", State: reins.StateDestroyed})
	}
	close(try.done)
}

func (r *resource) retireSteps(ctx context.Context) error {
	// The browser first: its end makes quiet what nothing else can, and each try
	// to end it is a new one, also while an operation waits for that.
	if err := r.end(ctx, errRetired(r.key), reins.StateDestroying); err != nil {
		return err
	}
	if err := r.quiet(ctx, func(*operation) bool { return true }); err != nil {
		return err
	}
	if err := r.gen.store.Purge(ctx, r.key); err != nil {
		return err
	}
	if r.leaveWorkspace() {
		if err := r.gen.ground.RemoveWorkspace(ctx, r.key.Project, r.spec.Workspace); err != nil {
			return err
		}
	}
	r.gen.mu.Lock()
	defer r.gen.mu.Unlock()
	if !r.made {
		r.gen.host.graves.add(r.key)
	}
	delete(r.gen.resources, r.key)
	return nil
}

// leaveWorkspace reports whether the resource is the last one that uses its
// workspace, which is then to be removed. It has no browser any more, so from
// here on it counts as one that uses none; of several that are retired at the
// same time exactly the last one removes it.
func (r *resource) leaveWorkspace() bool {
	if r.spec.Workspace == "" {
		return false
	}
	r.gen.mu.Lock()
	defer r.gen.mu.Unlock()
	r.left = true
	for _, other := range r.gen.resources {
		if !other.left && other.key.Project == r.key.Project && other.spec.Workspace == r.spec.Workspace {
			return false
		}
	}
	return true
}
