package driver

import (
	"context"
	"errors"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// focusInfo is what came of giving an element the focus (js/act.js: focusOn).
type focusInfo struct {
	OK    bool `json:"ok"`
	Gone  bool `json:"gone"`
	Empty bool `json:"empty"`
}

// press presses a key or chord on an element or on the focus (ACT-4).
func (b *browser) press(ctx context.Context, x *action, a reins.Press) error {
	c, err := parseChord(a.Key)
	if err != nil {
		return err
	}
	in, err := b.aim(ctx, x, a.Ref, a.Waits, "focusOn")
	if err != nil {
		return err
	}
	if err := in.send(ctx, chordEvents(c)); err != nil {
		in.settling.stop()
		return err
	}
	return in.finish(ctx, a.Waits)
}

// keying is one input by keys under way.
type keying struct {
	b        *browser
	x        *action
	spot     *spot // that has the focus; nil for whatever has it
	before   *standing
	settling *settling
	bound    time.Duration // for the page to handle input (ACT-6)
	ended    bool          // a dialog opened or the tab closed: no more keys
	busy     bool          // the page did not handle input in time: no more keys
}

// aim gives the element of a ref the focus (how: by which function of the
// script), or takes whatever has it, and begins to follow what the keys will set off.
func (b *browser) aim(ctx context.Context, x *action, ref reins.Ref, w reins.Waits, how string) (*keying, error) {
	in := &keying{b: b, x: x, bound: max(or(w.Settle, waitSettle), time.Second)}
	if ref == "" {
		d, err := x.tab.document(ctx)
		if err != nil {
			return nil, err
		}
		in.before = &standing{}
		err = x.tab.within(ctx, mainAnswers, func(ctx context.Context) error {
			return d.eval(ctx, "() => reins.standing()", in.before)
		})
		if err != nil {
			return nil, err
		}
		if in.before.Focus != 0 {
			x.reply.Result.Target = &reins.Target{Role: in.before.Role, Name: in.before.Name}
			b.showPlace(ctx, x, d, in.before.Focus)
		}
		in.settling = b.settle(x)
		return in, nil
	}
	s, err := b.locate(ctx, x, ref, or(w.Actionable, waitActionable), readyOptions{Editable: how == "caretAtEnd", Soft: true})
	if err != nil {
		return nil, err
	}
	in.spot, in.before = s, s.before()
	in.settling = b.settle(x)
	if err := in.focus(ctx, how); err != nil {
		in.settling.stop()
		return nil, err
	}
	return in, nil
}

// focus gives the element the focus by a function of the script; from then on
// keys that would land elsewhere are stopped.
func (in *keying) focus(ctx context.Context, how string) error {
	var f focusInfo
	s := in.spot
	if err := s.doc.eval(ctx, "(n, how) => reins[how](n)", &f, s.number, how); err != nil {
		return err
	}
	switch {
	case f.Gone:
		return errStale(s.ref())
	case !f.OK:
		in.b.disarm(s)
		return reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) does not take the focus; use another element", s.Role, s.Name, s.ref()).With("reason", "focus")
	}
	return nil
}

// send sends key events in one write and waits until they were handled.
func (in *keying) send(ctx context.Context, events []cdp.Request) error {
	if in.ended {
		return nil
	}
	guarded, release := in.x.tab.guard(ctx)
	defer release()
	short, cancel := context.WithTimeout(guarded, in.bound)
	defer cancel()
	for _, p := range in.x.tab.pageSession().SendAll(events...) {
		err := p.Wait(short, nil)
		if err == nil {
			continue
		}
		if short.Err() != nil && guarded.Err() == nil {
			in.busy, in.ended = true, true
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if cause := context.Cause(guarded); cause != nil && interrupted(cause) {
			in.ended = true
			return nil
		}
		return evalError(in.x.tab, err)
	}
	return nil
}

// landed says whether a key was stopped because something else had the focus.
func (in *keying) landed(ctx context.Context) (guardInfo, error) {
	g := guardInfo{Seen: true}
	if in.spot == nil || in.ended {
		return g, nil
	}
	err := in.spot.doc.eval(ctx, "() => reins.disarm()", &g)
	if err != nil && (errors.Is(err, errReplaced) || interrupted(err)) {
		return guardInfo{Seen: true}, nil
	}
	return g, err
}

// finish makes sure that the keys landed, and waits for what they set off.
func (in *keying) finish(ctx context.Context, w reins.Waits) error {
	if in.busy {
		return in.x.unsettled(in.settling)
	}
	g, err := in.landed(ctx)
	if err == nil && g.Blocked != nil && !g.Seen {
		s := in.spot
		err = reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) lost the focus to %.120q before the key came; try again or act on that", s.Role, s.Name, s.ref(), g.Blocked.Text).With("reason", "focus")
	}
	if err != nil {
		in.settling.stop()
		return err
	}
	if g.File {
		in.settling.expectFile()
	}
	var doc *document
	if in.spot != nil {
		doc = in.spot.doc
	} else {
		doc = in.x.fx.doc
	}
	if err := in.settling.finish(ctx, in.x, or(w.Settle, waitSettle), in.before, doc); err != nil {
		return err
	}
	return in.b.look(ctx, in.x, w)
}

// strokesAtOnce is how many keys leave in one write when text is typed: enough
// to be fast, few enough to stop soon.
const strokesAtOnce = 16

// typeText sends text key by key (ACT-4). Characters that a keyboard makes by
// composing come as inserted text.
func (b *browser) typeText(ctx context.Context, x *action, a reins.Type) error {
	in, err := b.aim(ctx, x, a.Ref, a.Waits, "caretAtEnd")
	if err != nil {
		return err
	}
	if err := in.typeOut(ctx, a.Text); err != nil {
		in.settling.stop()
		return err
	}
	in.settling.inputs = time.Now()
	return in.finish(ctx, a.Waits)
}

func (in *keying) typeOut(ctx context.Context, text string) error {
	var events []cdp.Request
	strokes := 0
	for cluster := range clusters(text) {
		events = append(events, typeCluster(cluster)...)
		if strokes++; strokes%strokesAtOnce == 0 {
			if err := in.send(ctx, events); err != nil {
				return err
			}
			events = events[:0]
		}
	}
	return in.send(ctx, events)
}
