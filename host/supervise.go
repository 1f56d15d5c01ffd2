package host

import (
	"context"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// losses of a driver within window end the incarnation at maxLosses (DRV-6).
const (
	window    = time.Minute
	maxLosses = 3
)

// connection is one life of a driver on an incarnation (DRV-1).
type connection struct {
	number uint64
	link   link

	// meeting holds one thing while nobody gives the driver the credentials of
	// the resource; met says that it has them (NAV-5).
	meeting chan struct{}
	met     bool

	mu  sync.Mutex // guards inc, and what is told of tabs as well until there is one
	inc *incarnation

	// Guarded by the resource's lock.
	selected   reins.TabID
	tabs       []reins.Tab // in the order in which they were opened
	dialogs    map[reins.TabID]reins.Dialog
	page       uint64 // grows with each change of these two
	fitted     uint64 // revision of the viewport that it has (VPT-1)
	deliberate bool   // killed by the ladder: not a failure (QUI-2)
}

// hear takes what the driver tells, for the connection's owner. Until there is
// one, all that matters is which tabs it will find.
func (c *connection) hear(e driver.Event) {
	c.mu.Lock()
	inc := c.inc
	if inc == nil {
		c.noteLocked(e)
		if e.Kind == "tab_selected" || e.Tab.Selected {
			c.selected = e.Tab.ID
		}
	}
	c.mu.Unlock()
	if inc != nil {
		inc.r.happened(c, e)
	}
}

// own makes the connection the incarnation's, whose first tab it has.
func (c *connection) own(inc *incarnation) {
	c.mu.Lock()
	defer c.mu.Unlock() // what is heard meanwhile comes after
	c.inc = inc
	if c.selected == "" {
		return
	}
	tab := reins.Tab{ID: c.selected, Selected: true}
	for _, t := range c.tabs {
		if t.ID == c.selected {
			tab = t
			tab.Selected = true
		}
	}
	inc.r.happened(c, driver.Event{Kind: "tab_opened", Tab: tab})
}

// renamed takes the tabs of a driver that nobody owns yet by their new names.
func (c *connection) renamed(tabs []reins.Tab, selected reins.TabID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tabs, c.dialogs, c.selected = tabs, nil, selected
	c.page++
}

func (c *connection) id() connectionID { return connectionID{c.inc.number, c.number} }

// connectionLocked names the connection there is, or nothing.
func (r *resource) connectionLocked() connectionID {
	if inc := r.st.inc; inc != nil && inc.conn != nil {
		return inc.conn.id()
	}
	return connectionID{}
}

// incarnationLocked is the number of the incarnation that runs, 0 when none does.
func (r *resource) incarnationLocked() uint64 {
	if inc := r.st.inc; inc != nil && r.st.life == reins.StateRunning && inc.ctx.Err() == nil {
		return inc.number
	}
	return 0
}

// supervise watches a running incarnation until it is to end: the browser's
// own death, a request to stop, or a driver that keeps failing.
func (inc *incarnation) supervise() {
	for {
		inc.r.mu.Lock()
		conn := inc.conn
		inc.r.mu.Unlock()
		var lost <-chan struct{}
		var want <-chan struct{} = inc.want
		if conn != nil {
			lost, want = conn.link.Done(), nil
		}
		select {
		case <-inc.ctx.Done():
			return
		case <-inc.cell.Done():
			inc.die(endedError(inc.cell.Err()))
			return
		case <-lost:
			inc.lose(conn)
		case <-want:
			inc.reconnect()
		}
	}
}

// endedError is browser_ended with what the cell tells of it.
func endedError(err error) *reins.Error {
	e := reins.AsError(err)
	switch {
	case e == nil:
		return reins.Errorf(reins.CodeBrowserEnded, "the browser ended by itself; the next operation starts a new one").In(reins.PhaseLifeCycle)
	case e.Code == reins.CodeBrowserEnded || e.Code == reins.CodeUnsafeHost:
		return e
	}
	return reins.Errorf(reins.CodeBrowserEnded, "the browser ended: %s", e.Message).In(reins.PhaseLifeCycle).Because(err)
}

// lose notes that a driver is gone. Chromium does not notice (TAB-1).
func (inc *incarnation) lose(conn *connection) {
	inc.last = conn.link.Handover()
	deliberate := false
	inc.r.update(func(*state) {
		deliberate = conn.deliberate
		inc.conn, inc.lostAt, inc.refused = nil, time.Now(), nil
		inc.broadcastLocked()
	})
	inc.r.publish(reins.Event{Kind: "state", State: reins.StateRunning, Detail: "the driver was lost"})
	if !deliberate {
		inc.count(conn.link.Err())
	}
}

// count counts a failure of the driver and ends the incarnation at the third
// within a minute (DRV-6).
func (inc *incarnation) count(err error) {
	now := time.Now()
	kept := inc.losses[:0]
	for _, t := range inc.losses {
		if now.Sub(t) < window {
			kept = append(kept, t)
		}
	}
	inc.losses = append(kept, now)
	if len(inc.losses) < maxLosses {
		return
	}
	why := ""
	if e := reins.AsError(err); e != nil {
		why = ": " + bounded(inc.r.secrets.text(e.Message), reins.MaxPageString)
	}
	inc.die(reins.Errorf(reins.CodeBrowserEnded, "the driver failed %d times within a minute%s", maxLosses, why).In(reins.PhaseConnect).Because(err))
}

// reconnect tries once to put a new driver on the browser, after a pause that
// grows with the failures of the last minute. Whoever waits asks again when it
// failed, so that nobody's wait is forgotten.
func (inc *incarnation) reconnect() {
	wait := time.NewTimer(backoff(len(inc.losses)))
	defer wait.Stop()
	select {
	case <-inc.ctx.Done():
		return
	case <-inc.cell.Done():
		return
	case <-wait.C:
	}
	inc.connects++
	conn := &connection{inc: inc, number: inc.connects, meeting: make(chan struct{}, 1)}
	if err := inc.connect(inc.ctx, conn, inc.last); err != nil {
		inc.retry(err)
		return
	}
	inc.dress(inc.ctx, conn)
	inc.r.update(func(*state) {
		inc.conn, inc.refused = conn, nil
		inc.broadcastLocked()
	})
	select {
	case <-inc.want: // asked for while it was on its way
	default:
	}
}

// retry counts a connection that failed, unless the browser is what failed: one
// that leaves a new driver waiting for all of its time does not answer anybody, and
// three times that would never be within a minute (DRV-6).
func (inc *incarnation) retry(err error) {
	select {
	case <-inc.cell.Done():
	case <-inc.ctx.Done():
	default:
		if reins.CodeOf(err) == reins.CodeConnectionTimeout {
			inc.die(reins.Errorf(reins.CodeBrowserEnded, "the browser did not answer any more and was ended; the next operation starts a new one").In(reins.PhaseConnect).Because(err))
			return
		}
		inc.r.update(func(*state) { inc.lostAt, inc.refused = time.Now(), reins.AsError(err) })
		inc.count(err)
		inc.ask()
	}
}

func backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return 50 * time.Millisecond << (2 * min(failures-1, 4))
}

// ask says that somebody wants a connection.
func (inc *incarnation) ask() {
	select {
	case inc.want <- struct{}{}:
	default:
	}
}

// connection waits for a driver, asking for one when there is none.
func (inc *incarnation) connection(ctx context.Context) (*connection, error) {
	for {
		inc.r.mu.Lock()
		conn, changed := inc.conn, inc.changed
		inc.r.mu.Unlock()
		if conn != nil {
			select {
			case <-conn.link.Done(): // lost, and about to be noticed
			default:
				return conn, nil
			}
		} else {
			inc.ask()
		}
		select {
		case <-changed:
		case <-inc.ctx.Done():
			return nil, reins.ContextError(inc.ctx)
		case <-ctx.Done():
			return nil, reins.ContextError(ctx)
		}
	}
}

// browser returns a running incarnation with a connection, starting what is
// missing (RES-7, TAB-1). Its callers' contexts end their waits only.
func (r *resource) browser(ctx context.Context, op *operation) (*incarnation, *connection, error) {
	for {
		inc, err := r.incarnationFor(op)
		if err != nil {
			return nil, nil, err
		}
		r.mu.Lock()
		usable := inc.conn != nil
		r.mu.Unlock()
		if op != nil && !usable {
			op.tell(reins.Progress{Stage: "browser"})
		}
		select {
		case <-inc.up:
		case <-ctx.Done():
			return nil, nil, reins.ContextError(ctx)
		}
		if inc.failed != nil {
			return nil, nil, inc.failed
		}
		conn, err := inc.connection(ctx)
		switch {
		case err == nil:
			return inc, conn, nil
		case ctx.Err() != nil:
			return nil, nil, err
		}
		// It is ending. What it took along is cancelled; who comes later wants
		// the one after it.
		if err := inc.waitEnded(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// incarnationFor is the incarnation an operation (or, when nil, an explicit
// start) is to use; it begins one when there is none and none has just failed.
func (r *resource) incarnationFor(op *operation) (inc *incarnation, err error) {
	r.update(func(s *state) {
		switch {
		case s.fence != nil:
			err = s.fence
		case op != nil && op.lease.ended != nil: // nothing starts for it any more
			err = op.lease.ended
		case s.inc == nil && op != nil && s.last != nil && time.Now().Before(s.notBefore):
			err = s.last.With("retry_after_ms", time.Until(s.notBefore).Milliseconds())
		default:
			inc = r.ensureLocked(s)
		}
	})
	return inc, err
}

// waitEnded waits until nothing of the incarnation is left. Each call makes a
// clean-up that failed be tried again, and tells when that fails too.
func (inc *incarnation) waitEnded(ctx context.Context) error {
	var changed chan struct{}
	var tries int
	inc.r.update(func(*state) {
		changed, tries = inc.changed, inc.tries
		if inc.stuck != nil {
			inc.stuck = nil
			inc.again <- struct{}{} // empty: only who clears stuck sends
		}
	})
	for {
		select {
		case <-inc.ended:
			return nil
		case <-changed:
		case <-ctx.Done():
			return reins.ContextError(ctx).In(reins.PhaseCleanUp)
		}
		inc.r.mu.Lock()
		failed, why := inc.tries > tries, inc.why
		changed = inc.changed
		inc.r.mu.Unlock()
		if failed {
			return reins.Errorf(reins.CodeTimeout, "the browser could not be ended; ask again to try once more").In(reins.PhaseCleanUp).Because(why)
		}
	}
}

// bounded cuts s to n bytes at a whole character.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
