package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// letGo bounds the release of what somebody held who has left (INP-2).
const letGo = 2 * time.Second

// errSuperseded is the end of a pointer move in whose place a later one came: it
// is done, by that one (OPS-3).
var errSuperseded = errors.New("a later move took its place")

// buttonBits are the buttons as pages count them.
var buttonBits = map[string]int{"left": 1, "right": 2, "middle": 4}

// input is the raw input of one lease. Guarded by the resource's lock.
type input struct {
	held   map[string]reins.Pointer // buttons that are down, and where
	tally  *tally                   // of the second that goes on
	rested chan struct{}            // closed when what was held at the lease's end is released; nil: nothing was
}

// mask are the buttons that are held.
func (in *input) mask() (bits int) {
	for b := range in.held {
		bits |= buttonBits[b]
	}
	return bits
}

// applyLocked takes an event that is about to happen into account. A button
// counts as held from then on, whether or not the page gets to know.
func (op *operation) applyLocked(selected reins.TabID) *reins.Error {
	a, ok := op.action.(reins.Pointer)
	if !ok {
		return nil
	}
	if a.Tab != selected {
		return reins.Errorf(reins.CodeInvalidState, "tab %q is not the one that is shown any more; go on with %q", string(a.Tab), string(selected)).In(reins.PhaseAction)
	}
	in, button := &op.lease.input, cmp.Or(a.Button, "left")
	switch a.Kind {
	case "down":
		if in.held == nil {
			in.held = map[string]reins.Pointer{}
		}
		in.held[button] = a
	case "up":
		delete(in.held, button)
	default:
		for b, down := range in.held { // it is let go where it is
			down.X, down.Y = a.X, a.Y
			in.held[b] = down
		}
	}
	a.Buttons = in.mask()
	op.action = a
	return nil
}

// ups are the events that release what a lease holds and nobody else does, and
// take it from the lease.
func (r *resource) upsLocked(s *state, l *lease) (ups []reins.Pointer) {
	if len(l.input.held) == 0 {
		return nil // nearly always
	}
	for _, b := range slices.Sorted(maps.Keys(l.input.held)) {
		up := l.input.held[b]
		delete(l.input.held, b)
		others := false
		for _, g := range s.grants {
			if g.lease != nil && g.lease != l {
				_, too := g.lease.input.held[b]
				others = others || too
			}
		}
		if !others {
			ups = append(ups, reins.Pointer{Tab: up.Tab, Kind: "up", X: up.X, Y: up.Y, Button: up.Button, Buttons: l.input.mask()})
		}
	}
	return ups
}

// restLocked releases what a lease holds that ends, or whose input somebody has
// just excluded, once its own operations are quiet. It is owed to the others and
// asks nobody (GATE-2); calls that end the lease wait for it. False when there is
// nothing to do.
func (r *resource) restLocked(s *state, l *lease) bool {
	inc := s.inc
	ups := r.upsLocked(s, l)
	if len(ups) == 0 || inc == nil || inc.ctx.Err() != nil {
		return false
	}
	var own []*operation
	for op := range s.ops {
		if op.lease == l && op.begun {
			own = append(own, op)
		}
	}
	rested := make(chan struct{})
	l.input.rested = rested
	r.gen.wg.Add(1) // a lease lives: the generation does not wait yet
	go func() {
		defer r.gen.wg.Done()
		defer close(rested)
		for _, op := range own {
			<-op.settled
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(inc.ctx, letGo)
		defer cancel()
		conn, err := inc.connection(ctx)
		if err == nil {
			err = conn.letGo(ctx, ups)
		}
		r.departed(l, began, err)
	}()
	return true
}

// letGo sends events that release buttons.
func (c *connection) letGo(ctx context.Context, ups []reins.Pointer) error {
	var errs []error
	for _, up := range ups {
		_, err := c.link.Do(ctx, driver.Command{Action: up})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leaveHeld releases everything that is held before the page goes elsewhere or
// another tab is shown (INP-2).
func (op *operation) leaveHeld(ctx context.Context, conn *connection) {
	switch op.verb {
	case reins.VerbNavigate, reins.VerbOpenTab, reins.VerbSelectTab, reins.VerbCloseTab:
	default:
		return
	}
	var ups []reins.Pointer
	op.r.update(func(s *state) {
		for _, g := range s.grants {
			if g.lease != nil {
				ups = append(ups, op.r.upsLocked(s, g.lease)...)
			}
		}
	})
	if len(ups) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	if err := conn.letGo(ctx, ups); err != nil { // what the verb does ends it all the same
		op.r.gen.host.log.Warn("a held button was not released", "resource", op.r.key.String(), "err", err)
	}
}

// tally sums up raw input for one record of the audit trail.
type tally struct {
	first  reins.Record
	counts map[string]int
	timer  *time.Timer
}

// tallyLocked takes one operation of raw input in (GATE-3). Of a lease that has
// ended there is nothing to wait for.
func (op *operation) tallyLocked(rec reins.Record) {
	in := &op.lease.input
	if in.tally == nil {
		in.tally = &tally{first: rec, counts: map[string]int{}}
		in.tally.first.Operation = ""
		in.tally.timer = time.AfterFunc(reins.RawInputRecord, func() { op.r.update(func(*state) { in.flushLocked(op.r) }) })
	}
	kind := "event"
	if a, ok := op.action.(reins.Pointer); ok {
		kind = a.Kind
	}
	in.tally.counts[kind]++
	if rec.Outcome != reins.OutcomeCompleted {
		in.tally.counts[string(rec.Outcome)]++
		in.tally.first.Outcome, in.tally.first.Code = rec.Outcome, rec.Code
	}
	if op.lease.ended != nil {
		in.flushLocked(op.r)
	}
}

// flushLocked sends the record of the second that goes on, if there is one.
func (in *input) flushLocked(r *resource) {
	t := in.tally
	if t == nil {
		return
	}
	in.tally = nil
	t.timer.Stop()
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(t.counts)) {
		words = append(words, fmt.Sprintf("%s %d", kind, t.counts[kind]))
	}
	rec := t.first
	rec.Time, rec.Duration, rec.Detail = time.Now(), time.Since(rec.Time)+rec.Duration, strings.Join(words, ", ")
	r.gen.audit.send(r.secrets.hideRecord(rec))
}
