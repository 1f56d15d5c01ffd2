package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/frames"
)

const (
	// stateGap is the least time between two states that one viewer is told: what
	// changes meanwhile is in the next one (FRM-10).
	stateGap = 50 * time.Millisecond
	// returnTime is how long the size that a viewer wished counts after its
	// subscription ended: a page that comes back finds all as it was.
	returnTime = 3 * time.Second
	// verbSubscribe names the beginning of a live view to the gate and the audit
	// trail; it is no action.
	verbSubscribe reins.Verb = "subscribe"
)

// view is what those who watch a resource have in common. Guarded by the
// resource's lock.
type view struct {
	stream  *frames.Stream
	sizes   frames.Viewports
	port    reins.Viewport // in force, or to be once a browser runs (VPT-1)
	fitting bool           // a change of it waits in the queue (VPT-2)
	subs    map[*subscription]struct{}
	show    *projector // of the incarnation there is, while somebody watches
	people  uint64     // grows with who takes part and who watches
	cursor  *reins.Cursor
	acts    []reins.Activity // the newest last; bounded
	acted   uint64           // grows with acts and cursor
	seen    sight
}

func newView(l reins.Limits) view {
	return view{
		stream: frames.New(frames.Options{Life: l.FrameLife, Bytes: l.FrameBytes}),
		port:   reins.DefaultViewport(),
		subs:   map[*subscription]struct{}{},
	}
}

// subscription is one viewer. It implements [reins.Subscription].
type subscription struct {
	l      *lease
	viewer *frames.Viewer
	wake   chan struct{} // there may be something to take; one pending at most
	done   chan struct{} // closed when it has ended

	// Guarded by the resource's lock.
	ended *reins.Error // why
	dirty bool         // the state has changed since it was told
	told  time.Time    // when it was told
}

var _ reins.Subscription = (*subscription)(nil)

// Subscribe implements [reins.Lease] (FRM-1). It starts no browser: until one runs
// there are states only.
func (l *lease) Subscribe(ctx context.Context, o reins.SubscribeOptions) (reins.Subscription, error) {
	limits := l.r.gen.host.limits
	switch {
	case o.Window == 0:
		o.Window = limits.FrameWindow
	case o.Window < 1 || o.Window > 32:
		return nil, reins.Errorf(reins.CodeInvalidInput, "window takes 1 to 32 pictures, not %d; 0 is the default of %d", o.Window, limits.FrameWindow)
	}
	began := time.Now()
	l.r.mu.Lock()
	err := l.mayWatchLocked(o, began)
	l.r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	sub, err := l.subscribe(ctx, o, began)
	l.subscribed(began, err)
	if err != nil {
		return nil, err // and not a subscription that is none
	}
	return sub, nil
}

// mayWatchLocked is why the lease gets no subscription, or nil.
func (l *lease) mayWatchLocked(o reins.SubscribeOptions, now time.Time) error {
	if ended := l.liveLocked(now); ended != nil {
		return ended
	}
	if l.grant.binding.Role != reins.RoleHuman {
		return reins.Errorf(reins.CodeDenied, "only people's leases have a live view; an agent takes snapshots and screenshots").In(reins.PhaseAdmission)
	}
	if l.sub != nil && !o.Take {
		return reins.Errorf(reins.CodeBusy, "this lease has a live view already; close it first, or take its place with take").In(reins.PhaseAdmission)
	}
	return nil
}

// subscribe asks the host (GATE-1) and begins, in the same step in which authority
// is looked at for the last time.
func (l *lease) subscribe(ctx context.Context, o reins.SubscribeOptions, began time.Time) (*subscription, error) {
	if hook := l.r.gen.host.hooks.BeforeOperation; hook != nil {
		op := &operation{id: capability.NewID(capability.KindOperation), r: l.r, lease: l}
		asked := reins.Operation{ID: op.id, Authority: l.Authority(), Verb: verbSubscribe, Class: reins.ClassFrameStream, Started: began}
		if err := op.ask(ctx, "BeforeOperation", func(ctx context.Context) error { return hook(ctx, asked) }); err != nil {
			return nil, err
		}
	}
	sub := &subscription{l: l, wake: make(chan struct{}, 1), done: make(chan struct{}), dirty: true}
	var err error
	l.r.update(func(s *state) {
		if err = l.mayWatchLocked(o, time.Now()); err != nil {
			return
		}
		if ctx.Err() != nil {
			err = reins.ContextError(ctx)
			return
		}
		if l.sub != nil {
			l.sub.endLocked(s, reins.Errorf(reins.CodeBusy, "another live view of this lease took the place of this one").With("reason", "taken").Recover(reins.RecoverNone))
		}
		l.sub, sub.viewer = sub, s.view.stream.Join(o.Window)
		s.view.subs[sub] = struct{}{}
		s.view.people++
		s.view.sizes.Active(l.id, true)
		l.r.refitLocked(s)
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// subscribed is the record of a subscription that was begun or refused (GATE-3).
func (l *lease) subscribed(began time.Time, err error) {
	b := l.grant.binding
	rec := reins.Record{
		Time: time.Now(), Project: b.Project, Resource: b.Resource, Actor: b.Actor, Role: b.Role,
		CapabilityID: l.grant.id, LeaseID: l.id, Run: b.Run, Revision: b.Revision,
		Action: string(verbSubscribe), Class: reins.ClassFrameStream,
		Outcome: reins.OutcomeCompleted, Duration: time.Since(began),
	}
	if e := reins.AsError(err); e != nil {
		rec.Outcome, rec.Code = reins.OutcomeFailed, e.Code
		if e.Code == reins.CodeCancelled {
			rec.Outcome = reins.OutcomeCancelled
		}
	}
	l.r.mu.Lock()
	rec.Incarnation = l.r.incarnationLocked()
	l.r.mu.Unlock()
	l.r.gen.audit.send(l.r.secrets.hideRecord(rec))
}

// endLocked ends the subscription, if it has not ended: whoever waits in Next is
// told why, and nothing is taken any more.
func (sub *subscription) endLocked(s *state, cause *reins.Error) {
	if sub.ended != nil {
		return
	}
	sub.ended = cause
	close(sub.done)
	s.view.stream.Leave(sub.viewer)
	delete(s.view.subs, sub)
	s.view.people++
	if sub.l.sub != sub {
		return
	}
	sub.l.sub = nil
	if sub.l.ended == nil {
		sub.l.r.leftLater(sub.l)
	}
}

// leftLater takes back the wish of a viewer that does not come back (VPT-2).
func (r *resource) leftLater(l *lease) {
	time.AfterFunc(returnTime, func() {
		r.update(func(s *state) {
			if l.sub == nil {
				s.view.sizes.Active(l.id, false)
				r.refitLocked(s)
			}
		})
	})
}

// leaveViewLocked ends what a lease that ends has of the view (LSE-4).
func (r *resource) leaveViewLocked(s *state, l *lease, cause *reins.Error) {
	s.view.people++
	if l.sub != nil {
		l.sub.endLocked(s, cause)
	}
	s.view.sizes.Drop(l.id)
	r.refitLocked(s)
}

// endViewsLocked ends the subscriptions with the incarnation that they showed
// (LSE-5). The page resumes under the same lease with another one.
func (r *resource) endViewsLocked(s *state, cause *reins.Error) {
	for sub := range s.view.subs {
		sub.endLocked(s, cause)
	}
	s.view.show, s.view.cursor = nil, nil
	s.view.stream.Clear()
}

// Next implements [reins.Subscription].
func (sub *subscription) Next(ctx context.Context) (reins.Update, error) {
	for {
		u, some, when, err := sub.take(ctx, time.Now())
		if err != nil || some {
			return u, err
		}
		if err := sub.wait(ctx, when); err != nil {
			return reins.Update{}, err
		}
	}
}

// wait returns when there may be something to take.
func (sub *subscription) wait(ctx context.Context, when time.Time) error {
	var late <-chan time.Time
	if !when.IsZero() {
		t := time.NewTimer(time.Until(when))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-sub.wake:
	case <-late:
	case <-sub.done:
	case <-sub.l.done:
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
	return nil
}

// take is what the viewer may have now, or the time to ask again. Authority is
// looked at under the lock that ends it: no picture goes out after it (LSE-6).
func (sub *subscription) take(ctx context.Context, now time.Time) (u reins.Update, some bool, when time.Time, err error) {
	r := sub.l.r
	r.update(func(s *state) {
		ended := sub.l.liveLocked(now)
		switch {
		case sub.ended != nil:
			err = sub.ended
			return
		case ended != nil:
			err = ended
			return
		case ctx.Err() != nil:
			err = reins.ContextError(ctx)
			return
		}
		u.Frame, when = sub.viewer.Take(now)
		u.Err = sub.viewer.Err()
		if due := sub.told.Add(stateGap); sub.dirty && !now.Before(due) {
			u.State, sub.dirty, sub.told = r.viewStateLocked(sub.l, now), false, now
		} else if sub.dirty && (when.IsZero() || due.Before(when)) {
			when = due
		}
		some = u.Frame != nil || u.State != nil || u.Err != nil
		if some {
			sub.stir() // another call of Next may wait for what is left
		}
	})
	return u, some, when, err
}

// stir wakes one who waits in Next.
func (sub *subscription) stir() {
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

// Ack implements [reins.Subscription] (FRM-4, FRM-5).
func (sub *subscription) Ack(id reins.FrameID) (known bool) {
	sub.l.r.update(func(s *state) {
		if sub.ended == nil {
			known = sub.viewer.Ack(id, time.Now())
		}
	})
	if known {
		sub.stir() // its pace may let it have the next one
	}
	return known
}

// Close implements [reins.Subscription].
func (sub *subscription) Close() error {
	sub.l.r.update(func(s *state) {
		sub.endLocked(s, reins.Errorf(reins.CodeCancelled, "the live view was closed by its owner"))
	})
	return nil
}
