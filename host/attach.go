package host

import (
	"context"

	"github.com/reins-browser/reins"
)

// detaching is a change of attachment on its way: the older agents' authority
// has ended, their effects are not quiet yet.
type detaching struct {
	done chan struct{} // closed when the change has taken effect
}

// Attach implements [reins.Resource] (ATT-1..5). The new attachment is current
// at once, so that an older one can no longer win; it is in effect, and Attach
// returns, when everything done under older agents' authority is quiet. A
// caller that leaves changes nothing of that.
func (r *resource) Attach(ctx context.Context, a reins.Attachment) error {
	if a.Session != nil {
		session := *a.Session
		a.Session = &session
	}
	if err := a.Validate(); err != nil {
		return err
	}
	d, older, err := r.attach(a)
	if err != nil {
		return err
	}
	if d == nil {
		return r.inEffect(ctx)
	}
	// Not under ctx: the change takes effect whether or not somebody waits. Each
	// operation settles within the bounds of its ladder (QUI-2), the last rung
	// of which ends the incarnation (ATT-5), so this goroutine ends.
	go func() {
		defer r.gen.wg.Done()
		for _, op := range older {
			<-op.settled
		}
		r.update(func(s *state) {
			if s.detaching == d {
				s.detaching = nil
			}
		})
		close(d.done)
	}()
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return reins.ContextError(ctx).In(reins.PhaseLifeCycle)
	}
}

// attach makes a the current attachment, unless it is the one already, and
// ends the authority of older agents. It returns the operations that have to
// settle before a takes effect; those that an earlier change still waits for
// are among them. A nil detaching means that there was nothing to change.
func (r *resource) attach(a reins.Attachment) (d *detaching, older []*operation, err error) {
	r.update(func(s *state) {
		now := s.attachment
		refuse := func(code reins.Code, how string) {
			err = reins.Errorf(code, "revision %d for resource %s is %s; the current revision is %d", a.Revision, r.key, how, now.Revision).
				With("revision", now.Revision).In(reins.PhaseAdmission)
		}
		switch {
		case s.fence != nil:
			err = s.fence
			return
		case a.Revision < now.Revision:
			refuse(reins.CodeStaleRevision, "older than the current one")
			return
		case a.Revision == now.Revision:
			if !a.Equal(now) {
				refuse(reins.CodeConflict, "the current one with other content")
			}
			return
		}
		d = &detaching{done: make(chan struct{})}
		s.attachment, s.detaching = a, d
		r.gen.wg.Add(1) // under the lock that the fence takes: never after the generation waits
		for _, g := range s.grants {
			if g.binding.Role == reins.RoleAgent {
				r.endLocked(s, g, errEnded(reasonDetached))
			}
		}
		for op := range s.ops {
			if op.lease.grant.binding.Role == reins.RoleAgent {
				older = append(older, op)
			}
		}
	})
	return d, older, err
}
