package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// The first window, until viewers ask for another (VPT-1).
const (
	width  = 1280
	height = 800
)

// lastWords is how long a failure waits to see whether it is the cell that died.
const lastWords = 250 * time.Millisecond

// claimTime is how long a spare has to show that it still answers.
const claimTime = time.Second

// incarnation is one life of a resource's browser, in a body. One goroutine
// starts it, watches it and takes it down; it is a private lifetime owner, hence
// the context.
type incarnation struct {
	r      *resource
	number uint64

	ctx    context.Context // ends, with why, when it is to end
	cancel context.CancelCauseFunc
	up     chan struct{} // closed when the start has succeeded or failed
	ended  chan struct{} // closed when nothing of it is left
	want   chan struct{} // somebody waits for a connection; one pending at most
	again  chan struct{} // somebody asks to try the clean-up again

	// Set by its goroutine before up is closed.
	failed *reins.Error
	told   bool // it did not start because it was told to end

	// Its goroutine's own.
	*body                // set before up is closed
	losses   []time.Time // when drivers were lost, the last minute
	last     driver.Handover
	connects uint64

	refusals refusals // of its door

	// Guarded by the resource's lock.
	started time.Time
	conn    *connection
	lostAt  time.Time     // when the driver was lost, or one could not be connected
	refused *reins.Error  // why the last one could not; nil when one is tried only now
	changed chan struct{} // closed and replaced when conn or stuck changes
	stuck   error         // why the last try to clean up failed, until somebody asks again
	why     error         // the same, for good
	tries   int           // how many failed
	ending  bool          // its folders are going: no new saves
	died    bool          // it ended by itself, not because somebody said so
	broken  *reins.Error  // why its view failed for good (FRM-9)
}

// ensureLocked returns the incarnation there is, or begins the next one.
func (r *resource) ensureLocked(s *state) *incarnation {
	if s.inc != nil {
		return s.inc
	}
	s.count++
	inc := &incarnation{
		r: r, number: s.count, up: make(chan struct{}), ended: make(chan struct{}),
		want: make(chan struct{}, 1), again: make(chan struct{}, 1), changed: make(chan struct{}),
		body: &body{gen: r.gen, spec: r.spec, key: r.key, number: s.count},
	}
	inc.last.Numbers = s.numbers
	inc.ctx, inc.cancel = context.WithCancelCause(context.Background())
	s.inc, s.life, s.last = inc, reins.StateStarting, nil
	s.facts = nil
	clear(s.owner)
	clear(s.docs)
	r.gen.wg.Add(1) // under the lock that the fence takes: never after the generation waits
	go func() {
		defer r.gen.wg.Done()
		inc.run()
	}()
	return inc
}

// run is the whole life.
func (inc *incarnation) run() {
	began := time.Now()
	if err := inc.start(); err != nil {
		inc.fail(err)
		inc.r.gen.host.log.Warn("a browser did not start", "resource", inc.r.key.String(), "incarnation", inc.number, "err", err)
		inc.r.did("start", began, inc.failed)
	} else {
		inc.r.did("start", began, nil)
		inc.supervise()
	}
	inc.takeDown()
}

// stop asks the incarnation to end, for a reason; the first one counts.
func (inc *incarnation) stop(cause *reins.Error) {
	inc.r.update(func(s *state) { inc.stopLocked(s, cause) })
}

// die is stop for a reason of the browser's own.
func (inc *incarnation) die(cause *reins.Error) {
	inc.r.update(func(s *state) { inc.died = inc.stopLocked(s, cause) || inc.died })
}

// stopLocked takes along, in the same step, all operations there are that need
// a browser: what waits in the queue was meant for the page there is now
// (QUI-4). Who comes later gets the next incarnation.
func (inc *incarnation) stopLocked(s *state, cause *reins.Error) bool {
	if inc.ctx.Err() != nil {
		return false
	}
	inc.cancel(cause)
	s.control.End(cause)
	inc.r.forgetInputLocked(s, "")
	inc.r.cancelLocked(s, cause, func(op *operation) bool { return op.verb.NeedsBrowser() })
	if !inc.started.IsZero() {
		inc.r.endViewsLocked(s, cause)
	}
	return true
}

// start gets the incarnation a body and makes it known. What there is of it
// then is taken down by takeDown, whether or not it succeeds.
func (inc *incarnation) start() (err error) {
	defer contain(&err, "starting")
	if err := inc.embody(); err != nil {
		return err
	}
	inc.connects = inc.first.number
	inc.dress(inc.ctx, inc.first)
	return inc.announce(inc.first)
}

// embody takes a spare that is what the resource needs (CELL-11), else builds a
// body.
func (inc *incarnation) embody() error {
	r, empty := inc.r, inc.body
	if spare := r.gen.spares.claim(r.spec); spare != nil {
		inc.body = spare
		err := inc.inherit()
		if err == nil {
			return nil
		}
		r.gen.host.log.Warn("a spare browser was of no use", "resource", r.key.String(), "err", err)
		if err := inc.clean(nil); err != nil {
			return err // it is cleaned up again like any other
		}
		inc.body = empty
	}
	if err := inc.build(inc.ctx, inc.last.Numbers, inc.passed); err != nil {
		return err
	}
	return inc.body.own(inc)
}

// inherit makes a claimed spare the incarnation's, if it still answers. Its tab
// and document get names that the resource has never seen (TAB-2, SNAP-4).
func (inc *incarnation) inherit() error {
	ctx, cancel := context.WithTimeout(inc.ctx, claimTime)
	defer cancel()
	reply, err := inc.first.link.Do(ctx, driver.Command{Action: reins.ListTabs{}, Above: inc.last.Numbers})
	if err != nil {
		return err
	}
	inc.first.renamed(reply.Result.Tabs, reply.Result.Selected)
	return inc.body.own(inc)
}

// announce makes a complete start known, unless the end was asked for
// meanwhile.
func (inc *incarnation) announce(conn *connection) (err error) {
	inc.r.update(func(s *state) {
		if ending := reins.ContextError(inc.ctx); ending != nil {
			err = ending
			return
		}
		inc.started, inc.conn = time.Now(), conn
		s.life, s.facts = reins.StateRunning, inc.cell.Facts()
		s.failures, s.notBefore = 0, time.Time{}
	})
	if err == nil {
		close(inc.up)
	}
	return err
}

// fail records a start that did not succeed. All who wait for it get the same
// outcome (RES-7), those in the queue too; and operations start no other one
// until a pause has passed that grows with each failure in a row.
func (inc *incarnation) fail(err error) {
	inc.r.update(func(s *state) {
		inc.failed = startError(err)
		if inc.told = !inc.stopLocked(s, inc.failed); inc.told {
			inc.failed = reins.ContextError(inc.ctx)
		}
		s.last = inc.failed
		if inc.told {
			return // that is no failure of the start
		}
		s.failures++
		s.notBefore = time.Now().Add(pause(s.failures))
	})
	close(inc.up)
}

// pause is how long operations wait before they try another start.
func pause(failures int) time.Duration {
	return min(250*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// startError is what a failed start tells.
func startError(err error) *reins.Error {
	e := reins.AsError(err)
	switch e.Code {
	case reins.CodeInternal:
		return reins.Errorf(reins.CodeStartupFailed, "the browser did not come up because of a failure inside Reins; the log has the details").In(reins.PhaseStart).Because(err)
	case reins.CodeUnsafeHost, reins.CodeStartupFailed, reins.CodeFenced, reins.CodeBusy, reins.CodeLocked,
		reins.CodeInvalidInput, reins.CodeQuotaExceeded:
		return e
	}
	return reins.Errorf(reins.CodeStartupFailed, "the browser did not come up: %s", e.Message).In(reins.PhaseStart).Because(err)
}

// takeDown ends what was built, in the reverse order, until nothing is left. A
// try that fails is told to those who wait, and made again when somebody asks or
// after a pause that grows with each, so that nothing lies about for want of a
// question.
func (inc *incarnation) takeDown() {
	cause := reins.ContextError(inc.ctx)
	r := inc.r
	var conn *connection
	r.update(func(s *state) {
		conn, inc.conn, inc.ending = inc.conn, nil, true
		if s.life != reins.StateDestroying {
			s.life = reins.StateStopping
		}
		s.last = cause
		inc.broadcastLocked()
	})
	for {
		err := inc.clean(conn)
		if err == nil {
			break
		}
		r.gen.host.log.Error("a browser could not be ended", "resource", r.key.String(), "incarnation", inc.number, "err", err)
		var pending time.Duration
		r.update(func(s *state) {
			s.life, inc.stuck, inc.why = reins.StateError, err, err
			inc.tries++
			pending = pause(inc.tries)
			inc.broadcastLocked()
		})
		inc.rest(pending)
	}
	r.update(func(s *state) {
		s.inc = nil
		s.numbers = s.numbers.Max(inc.last.Numbers)
		for _, c := range []*connection{inc.first, conn} {
			if c != nil {
				s.numbers = s.numbers.Max(c.link.Handover().Numbers)
			}
		}
		switch {
		case s.life == reins.StateDestroying:
		case inc.failed != nil && !inc.told:
			s.life = reins.StateError
		default:
			s.life = reins.StateStopped
		}
		close(inc.ended)
	})
}

// rest waits for somebody to ask for the next try to clean up, or for its time.
func (inc *incarnation) rest(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-inc.again:
		return
	case <-timer.C:
	}
	inc.r.update(func(*state) {
		if inc.stuck == nil {
			<-inc.again // asked at the same instant: it is the same try
		}
		inc.stuck = nil
	})
}

// broadcastLocked wakes all who wait for a change of conn or stuck.
func (inc *incarnation) broadcastLocked() {
	close(inc.changed)
	inc.changed = make(chan struct{})
}
