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

// maxHeld is how much one participant may hold down at the same time.
const maxHeld = 32

// pressed is something that is down in the page: a button, a key, the fingers of a
// hand, or text that an input method composes.
type pressed struct {
	tab reins.TabID
	up  reins.Action // how it is let go
}

// Names of what is held, besides those of buttons and of keys.
const (
	heldTouch   = "touch"
	heldCompose = "composition"
)

// input is the raw input of one lease. Guarded by the resource's lock.
type input struct {
	held   map[string]pressed
	tally  *tally        // of the second that goes on
	rested chan struct{} // closed when what was taken from it last is released; nil: nothing was
}

// mask are the buttons that are held.
func (in *input) mask() (bits int) {
	for b := range in.held {
		bits |= buttonBits[b]
	}
	return bits
}

// applyLocked takes an event that is about to happen into account. What it presses
// counts as held from then on, whether or not the page gets to know.
func (op *operation) applyLocked(selected reins.TabID) *reins.Error {
	if op.class != reins.ClassRawInput {
		return nil
	}
	if tab, _ := op.action.Target(); tab != selected {
		return reins.Errorf(reins.CodeInvalidState, "tab %q is not the one that is shown any more; go on with %q", string(tab), string(selected)).In(reins.PhaseAction)
	}
	s, in := &op.r.st, &op.lease.input
	switch a := op.action.(type) {
	case reins.Pointer:
		if err := op.placedLocked(a.Viewport); err != nil {
			return err
		}
		return op.pointLocked(s, a)
	case reins.Touch:
		if err := op.placedLocked(a.Viewport); err != nil {
			return err
		}
		if len(a.Points) > 0 {
			s.view.at(op, a.Tab, a.Points[0].X, a.Points[0].Y)
		}
		return in.hold(s, len(a.Points) > 0, heldTouch, pressed{a.Tab, reins.Touch{Tab: a.Tab, Kind: "cancel"}})
	case reins.Key:
		up := reins.Key{Tab: a.Tab, Kind: "up", Key: a.Key, Code: a.Code, Location: a.Location}
		return in.hold(s, a.Kind == "down", "key "+cmp.Or(a.Code, a.Key), pressed{a.Tab, up})
	case reins.InsertText:
		return in.hold(s, a.Compose && a.Text != "", heldCompose, pressed{a.Tab, reins.InsertText{Tab: a.Tab, Compose: true}})
	}
	return nil
}

// placedLocked refuses an event whose place was seen in a picture of another size
// (INP-1).
func (op *operation) placedLocked(revision uint64) *reins.Error {
	now := op.r.st.view.port.Revision
	if revision == 0 || revision == now {
		return nil
	}
	return reins.Errorf(reins.CodeInvalidState, "the event is for revision %d of the viewport, which is %d now; look at the new picture", revision, now).
		Recover(reins.RecoverRetry).With("revision", now).In(reins.PhaseAction)
}

// pointLocked is applyLocked for a pointer.
func (op *operation) pointLocked(s *state, a reins.Pointer) *reins.Error {
	in, button := &op.lease.input, cmp.Or(a.Button, "left")
	s.view.at(op, a.Tab, a.X, a.Y)
	if a.Kind == "down" || a.Kind == "up" {
		up := reins.Pointer{Tab: a.Tab, Kind: "up", X: a.X, Y: a.Y, Button: a.Button}
		if err := in.hold(s, a.Kind == "down", button, pressed{a.Tab, up}); err != nil {
			return err
		}
	} else {
		for b, down := range in.held { // it is let go where it is
			if up, ok := down.up.(reins.Pointer); ok {
				up.X, up.Y = a.X, a.Y
				in.held[b] = pressed{down.tab, up}
			}
		}
	}
	a.Buttons = in.mask()
	op.action = a
	return nil
}

// hold notes that something is down, or not any more.
func (in *input) hold(s *state, down bool, what string, p pressed) *reins.Error {
	if !down {
		delete(in.held, what)
		return nil
	}
	if _, again := in.held[what]; !again && len(in.held) >= maxHeld {
		return reins.Errorf(reins.CodeQuotaExceeded, "%d keys and buttons are held already; let go of some", len(in.held)).In(reins.PhaseAction)
	}
	if in.held == nil {
		in.held = map[string]pressed{}
	}
	in.held[what] = p
	delete(s.owed, what) // whoever presses it lets it go
	return nil
}

// kind is what a record counts an event as (GATE-3). It tells no key and no text.
func kind(a reins.Action) string {
	switch a := a.(type) {
	case reins.Pointer:
		return a.Kind
	case reins.Touch:
		return "touch " + a.Kind
	case reins.Key:
		return "key " + a.Kind
	case reins.InsertText:
		return "text"
	case reins.Clipboard:
		return a.Kind
	}
	return "event"
}

// mixedInput is the action of a record that sums up several verbs.
const mixedInput = "input"

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
	if in.tally.first.Action != rec.Action {
		in.tally.first.Action = mixedInput
	}
	in.tally.counts[kind(op.action)]++
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
	rec = r.secrets.hideRecord(rec)
	r.st.toldLocked(rec)
	r.gen.audit.send(rec)
}
