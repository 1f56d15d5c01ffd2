package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
)

// unwatchedLocked is why the operation cannot refresh the picture, or nil (FRM-8).
func (op *operation) unwatchedLocked() error {
	if op.verb != reins.VerbRefresh || op.lease.sub != nil {
		return nil
	}
	return reins.Errorf(reins.CodeBusy, "this lease has no live view that could be refreshed, or another one took its place; subscribe first").
		Recover(reins.RecoverReconnect).In(reins.PhaseAdmission)
}

// refresh starts the picture anew for all who watch and waits for its first one
// (FRM-8). A caller that leaves changes nothing of that.
func (op *operation) refresh(ctx context.Context, inc *incarnation) (*reins.Result, error) {
	first := op.r.gen.host.limits.FrameFirst
	var p *projector
	var came chan struct{}
	var before reins.FrameID
	var err error
	op.r.update(func(s *state) {
		if err = op.unwatchedLocked(); err != nil {
			return
		}
		if p = s.view.show; p == nil {
			err = reins.Errorf(reins.CodeFrameStreamFailed, "the browser has no live view just now; try again").In(reins.PhaseAction)
			return
		}
		came, before = p.renewLocked(), s.view.stream.ID()
		s.view.stream.Clear()
		p.kick()
	})
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(first + op.r.gen.host.limits.FrameLife) // acknowledgements come first
	defer late.Stop()
	select {
	case <-came:
		return &reins.Result{Meta: op.meta()}, nil
	case <-ctx.Done():
		return nil, op.translate(inc, op.broken(ctx, inc))
	case <-late.C:
	}
	op.r.mu.Lock()
	now := op.r.st.view.stream.ID()
	op.r.mu.Unlock()
	if now.Sequence > before.Sequence {
		return nil, reins.Errorf(reins.CodeFrameTooLarge, "the pictures of this tab are above the bound of bytes; make the viewport smaller or raise the limit frame_bytes").In(reins.PhaseAction)
	}
	return nil, reins.Errorf(reins.CodeFrameStreamFailed, "no picture came within %s; the page may be busy", first).In(reins.PhaseAction)
}

// broken is why a refresh has ended: after a view that failed for good only once
// nothing of its browser is left.
func (op *operation) broken(ctx context.Context, inc *incarnation) error {
	op.r.mu.Lock()
	broken := inc.broken
	op.r.mu.Unlock()
	if broken == nil {
		return reins.ContextError(ctx)
	}
	<-inc.quiet
	return broken
}

// renewLocked asks for another generation of the picture; what is returned is closed
// when its first one is there.
func (p *projector) renewLocked() chan struct{} {
	p.wanted++
	select {
	case <-p.refreshed:
		p.refreshed = make(chan struct{})
	default: // others wait too: for the newest
	}
	return p.refreshed
}
