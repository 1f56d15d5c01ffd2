package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/queue"
)

// lease is one participant's hold of a resource. It implements [reins.Lease].
// What may change is guarded by the resource's lock.
type lease struct {
	r     *resource
	grant *grant
	id    string
	done  chan struct{} // closed when it has ended
	since time.Time     // when it was acquired

	ended *reins.Error // why, once it has ended
	keys  queue.Keys[*reins.Result]
	// seen is the connection that the tab IDs and refs this lease holds
	// belong to: the one there was when it was acquired, then the one of its
	// last result (TAB-1, TAB-2). Zero until there was one.
	seen connectionID
	told connectionID // the connection of its last result, whatever it showed

	observed uint64 // the last takeover before its last snapshot (CTL-7)

	input input
	sub   *subscription // its live view; nil when it has none (FRM-1)

	calls chan struct{} // open hook calls of its operations, late ones included
	late  int           // those left behind; guarded by the lock of the host's calls

	later []reins.Download // that ended after their action, until a result tells
}

// connectionID names one life of a driver: tab IDs and refs belong to it.
type connectionID struct {
	incarnation uint64
	number      uint64
}

var _ reins.Lease = (*lease)(nil)

// Authority implements [reins.Lease] (LSE-5).
func (l *lease) Authority() reins.Authority {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.authorityLocked()
}

func (l *lease) authorityLocked() reins.Authority {
	return reins.Authority{
		RuntimeID: l.r.gen.host.id, Generation: l.r.gen.ground.Generation(),
		Incarnation: l.r.incarnationLocked(), CapabilityID: l.grant.id, LeaseID: l.id, Binding: apart(l.grant.binding),
	}
}

// IsCurrent implements [reins.Lease] (LSE-5).
func (l *lease) IsCurrent(a reins.Authority) bool {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.liveLocked(time.Now()) != nil {
		return false
	}
	mine := l.authorityLocked()
	same := mine.Binding.Equal(a.Binding)
	mine.Binding, a.Binding = reins.Binding{}, reins.Binding{}
	return same && mine == a
}

// live is liveLocked now.
func (l *lease) live() error {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if ended := l.liveLocked(time.Now()); ended != nil {
		return ended
	}
	return nil
}

// liveLocked is why nothing can begin under the lease at now, or nil. It
// decides by the clock, so that a late timer lets nothing in.
func (l *lease) liveLocked(now time.Time) *reins.Error {
	switch {
	case l.ended != nil:
		return l.ended
	case l.r.st.fence != nil:
		return l.r.st.fence
	case !now.Before(l.grant.expires):
		return errEnded(reasonExpired)
	}
	return nil
}

// Expires implements [reins.Lease].
func (l *lease) Expires() time.Time {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.grant.expires
}

// Done implements [reins.Lease].
func (l *lease) Done() <-chan struct{} { return l.done }

// Release implements [reins.Lease] (LSE-4). The capability is used up with it.
func (l *lease) Release(ctx context.Context) error {
	l.r.update(func(s *state) {
		if l.ended == nil {
			l.r.endLocked(s, l.grant, errEnded(reasonReleased))
		}
	})
	if err := l.r.quiet(ctx, func(op *operation) bool { return op.lease == l }); err != nil {
		return err
	}
	return l.rest(ctx)
}

// rest waits until what the lease held at its end is released.
func (l *lease) rest(ctx context.Context) error {
	l.r.mu.Lock()
	rested := l.input.rested
	l.r.mu.Unlock()
	if rested == nil {
		return nil
	}
	select {
	case <-rested:
		return nil
	case <-ctx.Done():
		return reins.ContextError(ctx).In(reins.PhaseCleanUp)
	}
}

// Renew implements [reins.Lease] (LSE-3). The old expiry stays whenever it
// fails.
func (l *lease) Renew(ctx context.Context) (time.Time, error) {
	r, g := l.r, l.grant
	var err error
	r.update(func(*state) {
		if ended := l.liveLocked(time.Now()); ended != nil {
			err = ended
			return
		}
		if g.renewing {
			err = reins.Errorf(reins.CodeBusy, "a renewal of this lease is under way; wait for it").In(reins.PhaseHook)
			return
		}
		g.renewing = true
	})
	if err != nil {
		return time.Time{}, err
	}
	settled := func() { r.update(func(*state) { g.renewing = false }) }
	if err := r.gen.authorize(ctx, g.binding, settled); err != nil {
		return time.Time{}, err
	}
	var expires time.Time
	r.update(func(*state) {
		now := time.Now()
		if ended := l.liveLocked(now); ended != nil {
			err = ended
			return
		}
		g.expires = now.Add(g.life)
		g.timer.Reset(g.life)
		expires = g.expires
	})
	return expires, err
}
