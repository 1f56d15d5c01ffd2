package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reins-browser/reins"
)

// errSuperseded is the end of a pointer move in whose place a later one came: it
// is done, by that one (OPS-3).
var errSuperseded = errors.New("a later move took its place")

// buttonBits are the buttons as pages count them.
var buttonBits = map[string]int{"left": 1, "right": 2, "middle": 4}

// input is the raw input of one lease. Guarded by the resource's lock.
type input struct {
	held   map[string]reins.Pointer // buttons that are down, and where
	tally  *tally                   // of the second that goes on
	rested chan struct{}            // closed when what was taken from it last is released; nil: nothing was
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
		delete(op.r.st.owed, button) // whoever presses it lets it go
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
