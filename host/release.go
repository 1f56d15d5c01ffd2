package host

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// letGo bounds the release of what nobody holds any more (INP-2).
const letGo = 2 * time.Second

// owed is what is down in the page and that nobody holds any more. Whoever
// took it from its holder releases it, unless somebody presses it meanwhile: then
// it is theirs to let go.
type owed struct {
	what string
	down pressed
	from *lease // who held it
}

// oweLocked takes from a lease what it holds, and returns what is owed for it:
// what nobody else holds.
func (r *resource) oweLocked(s *state, l *lease) (debts []*owed) {
	if len(l.input.held) == 0 {
		return nil // nearly always, and asked with each navigation for everybody
	}
	for _, b := range slices.Sorted(maps.Keys(l.input.held)) {
		o := &owed{b, l.input.held[b], l}
		delete(l.input.held, b)
		if !heldLocked(s, b) {
			s.owed[b] = o
			debts = append(debts, o)
		}
	}
	return debts
}

// oweAllLocked is oweLocked for every lease.
func (r *resource) oweAllLocked(s *state) (debts []*owed) {
	for _, g := range s.grants {
		if g.lease != nil {
			debts = append(debts, r.oweLocked(s, g.lease)...)
		}
	}
	return debts
}

func heldLocked(s *state, what string) bool {
	for _, g := range s.grants {
		if g.lease == nil {
			continue
		}
		if _, yes := g.lease.input.held[what]; yes {
			return true
		}
	}
	return false
}

// forgetInputLocked drops what is held and owed where nothing can be released any
// more: on one tab, or, when none is named, in the whole browser (LSE-5).
func (r *resource) forgetInputLocked(s *state, tab reins.TabID) {
	gone := func(down pressed) bool { return tab == "" || down.tab == tab }
	for _, g := range s.grants {
		if g.lease != nil {
			maps.DeleteFunc(g.lease.input.held, func(_ string, down pressed) bool { return gone(down) })
		}
	}
	maps.DeleteFunc(s.owed, func(_ string, o *owed) bool { return gone(o.down) })
}

// inFlightLocked are the operations of those who owe that may still reach the page,
// but for one.
func inFlightLocked(s *state, debts []*owed, but *operation) (out []*operation) {
	for op := range s.ops {
		owes := slices.ContainsFunc(debts, func(o *owed) bool { return o.from == op.lease })
		if owes && op != but && op.begun && op.verb.NeedsBrowser() {
			out = append(out, op)
		}
	}
	return out
}

// restLocked releases what a lease holds that ends, or whose input somebody has
// just excluded, once its own operations are quiet. It is owed to the others and
// asks nobody (GATE-2); calls that end the lease wait for it. False when there is
// nothing to do.
func (r *resource) restLocked(s *state, l *lease) bool {
	debts := r.oweLocked(s, l)
	return r.releaseLocked(s, debts, func(began time.Time, err error) { r.departed(l, began, err) })
}

// releaseLocked has debts paid on the side, and told is called with what came of it:
// the leases count as at rest only then. False when there is nothing to do.
func (r *resource) releaseLocked(s *state, debts []*owed, told func(time.Time, error)) bool {
	inc := s.inc
	if len(debts) == 0 || inc == nil || inc.ctx.Err() != nil {
		return false
	}
	own := inFlightLocked(s, debts, nil)
	rested := make(chan struct{})
	var before []chan struct{}
	for _, o := range debts {
		if in := &o.from.input; in.rested != rested {
			if in.rested != nil {
				before = append(before, in.rested)
			}
			in.rested = rested
		}
	}
	r.gen.wg.Add(1) // one of the leases lived until now: the generation does not wait yet
	go func() {
		defer r.gen.wg.Done()
		defer close(rested)
		for _, op := range own {
			<-op.settled
		}
		for _, c := range before {
			<-c
		}
		began := time.Now()
		told(began, r.letGo(inc, debts))
	}()
	return true
}

// letGo pays debts. It is bounded, and nobody's call ends it: a key that stays
// down would be in everybody's way.
func (r *resource) letGo(inc *incarnation, debts []*owed) error {
	ctx, cancel := context.WithTimeout(inc.ctx, letGo)
	defer cancel()
	defer r.update(func(s *state) { // what could not be released now never will
		maps.DeleteFunc(s.owed, func(_ string, o *owed) bool { return slices.Contains(debts, o) })
	})
	for {
		conn, err := inc.connection(ctx)
		if err != nil {
			return err
		}
		ups, err := r.takeOwed(ctx, debts)
		if err != nil || len(ups) == 0 {
			return err
		}
		err = conn.release(ctx, ups)
		again := conn.lost() && ctx.Err() == nil // nobody knows whether it was released
		r.update(func(s *state) {
			close(s.releasing)
			s.releasing = nil
			for _, o := range debts {
				if again && !heldLocked(s, o.what) {
					s.owed[o.what] = o
				}
			}
		})
		if !again {
			return err
		}
	}
}

// takeOwed takes those of debts that are still owed, for a release that the caller
// is to make: until it has closed releasing, nothing begins that acts on the page,
// so that a press cannot change places with the release of one before it.
func (r *resource) takeOwed(ctx context.Context, debts []*owed) (ups []reins.Action, err error) {
	for {
		if err := r.awaitReleased(ctx); err != nil {
			return nil, err
		}
		busy := false
		r.update(func(s *state) {
			if busy = s.releasing != nil; busy {
				return
			}
			for _, o := range debts {
				if s.owed[o.what] == o {
					delete(s.owed, o.what)
					ups = append(ups, o.down.up)
				}
			}
			if len(ups) > 0 {
				s.releasing = make(chan struct{})
			}
		})
		if busy {
			continue
		}
		return withButtons(ups), nil
	}
}

// withButtons tells each release of a button which ones are still down after it.
func withButtons(ups []reins.Action) []reins.Action {
	bits := 0
	for i, up := range slices.Backward(ups) {
		if p, ok := up.(reins.Pointer); ok {
			p.Buttons = bits
			ups[i] = p
			bits |= buttonBits[cmp.Or(p.Button, "left")]
		}
	}
	return ups
}

// release sends events that release what is down. A page that is gone needs none.
func (c *connection) release(ctx context.Context, ups []reins.Action) error {
	var errs []error
	for _, up := range ups {
		if _, err := c.link.Do(ctx, driver.Command{Action: up}); reins.CodeOf(err) != reins.CodeInvalidState {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// lost reports whether the driver is gone.
func (c *connection) lost() bool {
	select {
	case <-c.link.Done():
		return true
	default:
		return false
	}
}

// awaitReleased waits until the release that is on its way has ended.
func (r *resource) awaitReleased(ctx context.Context) error {
	r.mu.Lock()
	other := r.st.releasing
	r.mu.Unlock()
	if other == nil {
		return nil
	}
	return awaitClosed(ctx, other)
}

// awaitClosed waits until c is closed, or ctx ends.
func awaitClosed(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
}

// leaveHeld releases everything that is held before the page goes elsewhere or
// another tab is shown (INP-2).
func (op *operation) leaveHeld(inc *incarnation) {
	switch op.verb {
	case reins.VerbNavigate, reins.VerbOpenTab, reins.VerbSelectTab, reins.VerbCloseTab:
	default:
		return
	}
	op.r.releaseAll(inc, op)
}

// releaseAll releases everything that is held, for an operation that is about to
// change what it is held on.
func (r *resource) releaseAll(inc *incarnation, op *operation) {
	var debts []*owed
	var others []*operation
	r.update(func(s *state) {
		debts = r.oweAllLocked(s)
		others = inFlightLocked(s, debts, op)
	})
	if len(debts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(inc.ctx, letGo)
	defer cancel()
	for _, other := range others {
		if other.class == reins.ClassRawInput { // another lane's, which may be pressing
			_ = awaitClosed(ctx, other.settled)
		}
	}
	r.notReleased(time.Now(), r.letGo(inc, debts)) // what the verb does ends it all the same
}

// showLocked notes which tab is shown. When it is another one than before,
// everything held is released where it is, whoever changed it, be it the page
// (INP-2).
func (r *resource) showLocked(s *state, conn *connection, tab reins.TabID) {
	before := conn.selected
	conn.selected = tab
	if before != tab && s.inc != nil && s.inc.conn == conn {
		r.releaseLocked(s, r.oweAllLocked(s), r.notReleased)
	}
}

// notReleased logs that a button may have stayed down.
func (r *resource) notReleased(_ time.Time, err error) {
	if err != nil {
		r.gen.host.log.Warn("a held button was not released", "resource", r.key.String(), "err", r.secrets.text(err.Error()))
	}
}
