package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

// The first window, until viewers ask for another (VPT-1).
const (
	width  = 1280
	height = 800
)

// lastWords is how long a failure waits to see whether it is the cell that died.
const lastWords = 250 * time.Millisecond

// incarnation is one life of a resource's browser. One goroutine starts it,
// watches it and takes it down; it is a private lifetime owner, hence the
// context.
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
	room     room
	door     door
	serving  chan struct{} // closed when the door's Serve has returned
	cell     cell.Cell
	first    *connection // of the start; later ones are in conn
	losses   []time.Time // when drivers were lost, the last minute
	last     driver.Handover
	connects uint64

	// Guarded by the resource's lock.
	started time.Time
	conn    *connection
	changed chan struct{}  // closed and replaced when conn or stuck changes
	stuck   error          // why the last try to clean up failed, until somebody asks again
	why     error          // the same, for good
	tries   int            // how many failed
	saves   sync.WaitGroup // who uses its folders
	ending  bool           // its folders are going: no new saves
	died    bool           // it ended by itself, not because somebody said so
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
	inc.r.cancelLocked(s, cause, func(op *operation) bool { return op.verb.NeedsBrowser() })
	return true
}

// over reports whether nothing of it is left.
func (inc *incarnation) over() bool {
	select {
	case <-inc.ended:
		return true
	default:
		return false
	}
}

// start builds everything up, within the limit for starts. What it built is
// taken down by takeDown, whether or not all of it was.
func (inc *incarnation) start() (err error) {
	l := inc.r.gen.host.limits
	ctx, cancel := context.WithTimeoutCause(inc.ctx, l.StartTimeout, reins.Errorf(reins.CodeStartupFailed,
		"the browser did not come up within %s", l.StartTimeout))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while starting: %v", p)
		}
		if err != nil && ctx.Err() != nil {
			err = errors.Join(reins.ContextError(ctx), err)
		}
	}()
	if err := inc.build(ctx); err != nil {
		return err
	}
	conn, err := inc.connect(ctx)
	if err != nil {
		return inc.blame(err)
	}
	inc.first = conn
	if err := inc.cell.Verify(ctx); err != nil {
		return err
	}
	return inc.announce(conn)
}

// blame prefers what the cell tells to what a driver tells that could not
// connect: of a browser that died it only saw a pipe close.
func (inc *incarnation) blame(err error) error {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-inc.cell.Done():
		if told := inc.cell.Err(); told != nil {
			return told
		}
	case <-t.C:
	case <-inc.ctx.Done():
	}
	return err
}

// build makes directories, door and cell.
func (inc *incarnation) build(ctx context.Context) error {
	r, h := inc.r, inc.r.gen.host
	var err error
	if inc.room, err = r.gen.ground.Room(ctx, r.key.Project, r.spec.Workspace); err != nil {
		inc.room = nil // not a typed nil of somebody's
		return err
	}
	inc.door, err = h.parts.door(egress.Options{
		Policy: r.spec.Egress, Limits: h.limits,
		Audit: func(d egress.Decision) { r.passed(inc.number, d) },
	})
	if err != nil {
		inc.door = nil
		return err
	}
	inc.cell, err = h.backends[r.spec.Backend].Start(ctx, cell.Spec{
		Key: r.key, Incarnation: inc.number, Engine: r.spec.Engine, Desktop: r.spec.Desktop,
		WebGL: r.spec.WebGL, Locale: r.spec.Locale, TimeZone: r.spec.TimeZone,
		Width: width, Height: height, Profile: inc.room.Profile(),
		Downloads: inc.room.Downloads().Name(), Uploads: inc.room.Uploads().Name(),
		Navigation: r.spec.Navigation, Limits: h.limits,
	})
	if err != nil {
		inc.cell = nil
		return err
	}
	listener, served := inc.cell.Doors().Egress, make(chan struct{})
	inc.serving = served
	go func() {
		defer close(served)
		if err := inc.door.Serve(listener); err != nil && inc.ctx.Err() == nil {
			h.log.Warn("the egress door stopped", "resource", r.key.String(), "err", err)
		}
	}()
	return nil
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
// try that fails is told to those who wait and made again when somebody asks.
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
		r.update(func(s *state) {
			s.life, inc.stuck, inc.why = reins.StateError, err, err
			inc.tries++
			inc.broadcastLocked()
		})
		<-inc.again
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

// clean makes one try to end everything. It is bounded, and whatever it ended
// already stays ended when it is called again.
func (inc *incarnation) clean(conn *connection) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while ending a browser: %v", p)
		}
	}()
	l := inc.r.gen.host.limits
	ctx, cancel := context.WithTimeout(context.Background(), l.CloseGrace+l.CleanUp/2)
	defer cancel()
	if err := join(ctx, inc.first, conn); err != nil {
		return err
	}
	inc.saves.Wait()
	if err := inc.endCell(ctx); err != nil {
		return err
	}
	if inc.door != nil {
		inc.door.Close()
		if inc.serving != nil {
			<-inc.serving
		}
	}
	if inc.room != nil {
		if err := inc.room.Close(ctx); err != nil {
			return fmt.Errorf("directories: %w", err)
		}
	}
	return nil
}

// join kills drivers and waits until they are reaped.
func join(ctx context.Context, conns ...*connection) error {
	for _, c := range conns {
		if c == nil {
			continue
		}
		go c.link.Kill() // it waits until the process is reaped
		select {
		case <-c.link.Done():
		case <-ctx.Done():
			return errors.New("the driver does not end")
		}
	}
	return nil
}

// endCell ends the cell and waits until nothing of it is left.
func (inc *incarnation) endCell(ctx context.Context) error {
	if inc.cell == nil {
		return nil
	}
	end := inc.cell.Kill
	if inc.r.spec.Workspace != "" {
		end = inc.cell.Close // cookies and storage are to survive (WSP-2)
	}
	if err := end(ctx); err != nil {
		return fmt.Errorf("cell: %w", err)
	}
	select {
	case <-inc.cell.Done():
		return nil
	case <-ctx.Done():
		return errors.New("the cell does not end")
	}
}

// broadcastLocked wakes all who wait for a change of conn or stuck.
func (inc *incarnation) broadcastLocked() {
	close(inc.changed)
	inc.changed = make(chan struct{})
}
