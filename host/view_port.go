package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/queue"
)

// fitTime bounds a change of the viewport.
const fitTime = 10 * time.Second

// setViewport notes what size a viewer's window has and brings about what follows
// from it (VPT-1). Nothing else runs meanwhile.
func (op *operation) setViewport(ctx context.Context, a reins.SetViewport) (*reins.Result, error) {
	op.r.update(func(s *state) {
		if op.lease.ended != nil {
			return
		}
		s.view.sizes.Wish(op.lease.id, a)
		s.view.sizes.Active(op.lease.id, op.lease.sub != nil)
	})
	port, err := op.r.fit(ctx)
	if err != nil {
		return nil, err
	}
	return &reins.Result{Viewport: &port}, nil
}

// fit makes the viewport that viewers share the browser's, if there is one; a size
// that is the one already changes nothing (VPT-2). Its caller has the browser for
// itself. What is held is released before (INP-2).
func (r *resource) fit(ctx context.Context) (reins.Viewport, error) {
	var port reins.Viewport
	var inc *incarnation
	var conn *connection
	r.update(func(s *state) {
		port = r.portLocked(s)
		if r.incarnationLocked() != 0 && s.inc.conn != nil && s.inc.conn.fitted != port.Revision {
			inc, conn = s.inc, s.inc.conn
		}
	})
	if conn == nil {
		return port, nil // there is none, or it has it; a new one is given it before anything else
	}
	r.releaseAll(inc, nil)
	return port, conn.fit(ctx, port)
}

// portLocked is the viewport to be, with a new revision when that is another one.
func (r *resource) portLocked(s *state) reins.Viewport {
	want := s.view.sizes.Effective()
	want.Revision = s.view.port.Revision
	if want != s.view.port {
		want.Revision++
		s.view.port = want
	}
	return want
}

// fit gives the browser a viewport.
func (c *connection) fit(ctx context.Context, port reins.Viewport) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fitTime, reins.Errorf(reins.CodeTimeout,
		"the browser did not take its new size within %s", fitTime).In(reins.PhaseAction))
	defer cancel()
	if err := c.link.SetViewport(ctx, port); err != nil {
		return err
	}
	c.inc.r.update(func(*state) { c.fitted = port.Revision })
	return nil
}

// dress gives a new connection the viewport that viewers share. It is owed to them,
// not to whoever needs the browser: without it that works all the same.
func (inc *incarnation) dress(ctx context.Context, conn *connection) {
	r := inc.r
	var port reins.Viewport
	r.update(func(s *state) { port = r.portLocked(s) })
	if port.Revision == 0 {
		return
	}
	if err := conn.fit(ctx, port); err != nil {
		r.gen.host.log.Warn("a browser has not the size of its viewers", "resource", r.key.String(), "err", err)
	}
}

// refitLocked has the viewport recomputed in the queue after a viewer came or left,
// when that changes it (VPT-2). It is owed by the runtime and asks nobody (GATE-2).
func (r *resource) refitLocked(s *state) {
	port := r.portLocked(s)
	if r.incarnationLocked() == 0 || s.inc.conn == nil || s.inc.conn.fitted == port.Revision || s.view.fitting {
		return // whoever connects gives it to the browser
	}
	entry, err := s.queue.Push(queue.Request{Place: queue.Alone})
	if err != nil {
		return // the queue is full; the next change of a viewer tries again
	}
	s.view.fitting = true
	r.gen.wg.Add(1) // a browser runs: the generation does not wait yet
	go func() {
		defer r.gen.wg.Done()
		r.refit(entry)
	}()
}

// refit is one change of the viewport that nobody asked for, once its turn has come.
func (r *resource) refit(entry *queue.Entry) {
	<-entry.Ready()
	began := time.Now()
	r.update(func(s *state) { s.view.fitting = false }) // who changes it from here on is heard again
	_, err := r.fit(context.Background())
	r.update(func(s *state) { s.queue.Settle(entry) })
	r.did("viewport", began, err)
}
