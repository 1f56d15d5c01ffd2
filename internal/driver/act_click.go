package driver

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// guardInfo is what the guard of one input saw (js/act.js).
type guardInfo struct {
	Seen    bool  `json:"seen"`
	Late    bool  `json:"late"` // it saw nothing, and no longer looked when the input may have come
	Clicked bool  `json:"clicked"`
	Blocked *said `json:"blocked"`
	File    bool  `json:"file"` // it was a click on a link that saves a file
}

// click presses the pointer on an element (ACT-2).
func (b *browser) click(ctx context.Context, x *action, a reins.Click) error {
	d, n, err := b.element(a.Ref)
	if err != nil {
		return err
	}
	settling, s, err := b.pressElement(ctx, x, d, n, or(a.Actionable, waitActionable), a)
	if errors.Is(err, errUnhandled) {
		return x.unsettled(settling)
	}
	if err != nil {
		return err
	}
	if s.Option {
		return b.clickOption(ctx, x, s, a.Waits)
	}
	if err := settling.finish(ctx, x, or(a.Settle, waitSettle), s.before(), s.doc); err != nil {
		return err
	}
	return b.look(ctx, x, a.Waits)
}

// pressElement waits until an element can be pressed, and presses it. A press
// that something else would have got was stopped before the page saw it, so
// that it may be tried again while there is time. An option is left alone.
func (b *browser) pressElement(ctx context.Context, x *action, d *document, n int, wait time.Duration, a reins.Click) (*settling, *spot, error) {
	end := time.Now().Add(wait)
	for {
		s, err := b.locateElement(ctx, x, d, n, max(0, time.Until(end)), readyOptions{Position: a.Position, Arm: "pointer"})
		if err != nil || s.Option {
			return nil, s, err
		}
		settling := b.settle(x)
		err = b.pressSpot(ctx, x, settling, s, a)
		if err == nil || errors.Is(err, errUnhandled) {
			return settling, s, err
		}
		settling.stop()
		var missed *missedError
		if !errors.As(err, &missed) {
			return nil, nil, err
		}
		if time.Now().After(end) {
			return nil, nil, missed.told
		}
	}
}

// missedError: the press was stopped, because something else would have got it.
type missedError struct{ told *reins.Error }

func (e *missedError) Error() string { return e.told.Error() }

// before is how the page stood when the element was found.
func (s *spot) before() *standing { return &standing{Busy: s.Busy, Focus: s.Focus} }

// pressSpot sends the pointer's events and makes sure that they landed.
func (b *browser) pressSpot(ctx context.Context, x *action, settling *settling, s *spot, a reins.Click) error {
	events, background := x.tab.pointerEvents(s.x, s.y, a)
	if background {
		x.fx.inBackground(b)
	}
	guarded, release := x.tab.guard(ctx)
	defer release()
	short, cancel := context.WithTimeout(guarded, max(or(a.Settle, waitSettle), time.Second))
	defer cancel()
	for _, p := range x.tab.pageSession().SendAll(events...) {
		if err := p.Wait(short, nil); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if short.Err() != nil && guarded.Err() == nil {
				return errUnhandled
			}
			if cause := context.Cause(guarded); cause != nil && interrupted(cause) {
				return nil // it opened a dialog or closed its tab
			}
			if err = evalError(x.tab, err); errors.Is(err, errReplaced) {
				return nil // it was left by the press
			}
			return err
		}
	}
	g, err := b.landed(guarded, x, s, a)
	if g.File {
		settling.expectFile()
	}
	return err
}

// errUnhandled: the page got the input, but did not handle it in time.
var errUnhandled = errors.New("the page is busy with the input")

// unsettled is the outcome of input that the page is still busy with (ACT-6).
func (x *action) unsettled(s *settling) error {
	s.stop()
	x.changes().Pending = 1
	x.note("the page got the input and is still busy with it; what it leads to cannot be seen yet")
	return nil
}

// landed asks the guard whether the press hit its element. A document that is
// gone was left by the press.
func (b *browser) landed(ctx context.Context, x *action, s *spot, a reins.Click) (g guardInfo, err error) {
	if s.Tag == "iframe" || s.Tag == "frame" || s.Tag == "object" || s.Tag == "embed" {
		b.disarm(s)
		return g, nil
	}
	if err := s.doc.eval(ctx, "() => reins.disarm()", &g); err != nil {
		if errors.Is(err, errReplaced) || interrupted(err) {
			return g, nil
		}
		return g, err
	}
	switch {
	case g.Blocked != nil:
		r := s.readyInfo
		r.Why, r.By = "covered", g.Blocked
		return g, &missedError{errNotActionable(s.ref(), r, s.doc)}
	case g.Late:
		x.note("the page took so long over the press that it cannot be told what got it; take a new snapshot")
	case !g.Seen && s.doc.current():
		return g, reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) did not get the press: something outside of its frame took it; take a new snapshot", s.Role, s.Name, s.ref()).With("reason", "covered")
	case !g.Clicked && s.Tag != "select" && a.Button != "middle":
		x.note("the element took the press, but the page moved or changed it before a click came of it")
	}
	return g, nil
}

// pointerEvents are a hover and a click, to leave in one write.
func (t *tab) pointerEvents(px, py float64, a reins.Click) (events []cdp.Request, background bool) {
	button, held := input.MouseButtonLeft, int64(1)
	switch a.Button {
	case "right":
		button, held = input.MouseButtonRight, 2
	case "middle":
		button, held = input.MouseButtonMiddle, 4
	}
	var mods int64
	for _, m := range a.Modifiers {
		mods |= modifierBits[m]
	}
	event := func(kind input.DispatchMouseEventType, b input.MouseButton, buttons, count int64) []cdp.Request {
		return t.mouse(input.DispatchMouseEventParams{
			Type: kind, X: px, Y: py, Modifiers: mods, Button: b, Buttons: buttons, ClickCount: count,
			PointerType: input.DispatchMouseEventPointerTypeMouse,
		})
	}
	events = append(events, event(input.DispatchMouseEventTypeMouseMoved, input.MouseButtonNone, 0, 0)...)
	for n := range int64(max(a.Count, 1)) {
		events = append(append(events, event(input.DispatchMouseEventTypeMousePressed, button, held, n+1)...), event(input.DispatchMouseEventTypeMouseReleased, button, 0, n+1)...)
	}
	return events, button == input.MouseButtonMiddle || mods&(bitControl|bitMeta) != 0
}

// clickOption chooses an option of a native list, which has no place on the
// page of its own.
func (b *browser) clickOption(ctx context.Context, x *action, s *spot, w reins.Waits) error {
	end := time.Now().Add(or(w.Actionable, waitActionable))
	settling := b.settle(x)
	for {
		var r readyInfo
		if err := s.doc.eval(ctx, "n => reins.pressOption(n, false)", &r, s.number); err != nil {
			settling.stop()
			return err
		}
		switch {
		case r.Gone:
			settling.stop()
			return errStale(s.ref())
		case r.OK:
			if err := settling.finish(ctx, x, or(w.Settle, waitSettle), nil, s.doc); err != nil {
				return err
			}
			return b.look(ctx, x, w)
		case time.Now().After(end):
			settling.stop()
			return errNotActionable(s.ref(), r, s.doc)
		}
		if err := s.doc.eval(ctx, "() => new Promise(d => requestAnimationFrame(() => d()))", nil); err != nil {
			settling.stop()
			return err
		}
	}
}

// look takes the snapshot that an action asked for, in the same round trip
// (ACT-7). That it cannot be taken does not undo the action.
func (b *browser) look(ctx context.Context, x *action, w reins.Waits) error {
	b.answerChooser(ctx, x)
	if !w.Snapshot {
		return nil
	}
	if err := b.snapshot(ctx, x, reins.Snapshot{Changes: true}); err != nil {
		if ctx.Err() != nil {
			return err
		}
		x.note("the snapshot after it failed: %s", reins.AsError(x.failure(err)).Message)
	}
	return nil
}

// answerChooser names the control that a file chooser opened meanwhile is for.
func (b *browser) answerChooser(ctx context.Context, x *action) {
	b.mu.Lock()
	c := x.tab.chooser
	mine := c != nil && x.fx.chooser == c
	b.mu.Unlock()
	if !mine {
		return
	}
	choice := &reins.FileChoice{Multiple: c.multiple}
	if ref, _, err := b.chooserControl(ctx, c); err == nil {
		choice.Ref = ref
	}
	x.changes().FileChooser = choice
}
