package driver

import (
	"context"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// hover moves the pointer onto an element and leaves it there. One that is
// disabled may tell something too.
func (b *browser) hover(ctx context.Context, x *action, a reins.Hover) error {
	s, err := b.locate(ctx, x, a.Ref, or(a.Actionable, waitActionable), readyOptions{Position: a.Position, Disabled: true})
	if err != nil {
		return err
	}
	if s.Option {
		return reins.Errorf(reins.CodeInvalidInput, "%s %.100q (ref %s) has no place on the page to point at; hover over its list", s.Role, s.Name, s.ref())
	}
	settling := b.settle(x)
	var mods int64
	for _, m := range a.Modifiers {
		mods |= modifierBits[m]
	}
	if _, err := b.pointer(ctx, x, moved(s.x, s.y, mods, false)); err != nil {
		settling.stop()
		return err
	}
	if err := settling.finish(ctx, x, or(a.Settle, waitSettle), s.before(), s.doc); err != nil {
		return err
	}
	return b.look(ctx, x, a.Waits)
}

// moved is the pointer's move to a place of the viewport.
func moved(px, py float64, mods int64, held bool) input.DispatchMouseEventParams {
	p := input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseMoved, X: px, Y: py, Modifiers: mods,
		Button: input.MouseButtonNone, PointerType: input.DispatchMouseEventPointerTypeMouse,
	}
	if held {
		p.Button, p.Buttons = input.MouseButtonLeft, 1
	}
	return p
}

// mouse is an event of the pointer, in CSS pixels of the tab's viewport, as the
// browser takes it: in pixels of the picture, and for a wheel with both distances
// even when they are 0. During a drag that the browser left to us it is the drag's.
func (t *tab) mouse(p input.DispatchMouseEventParams) []cdp.Request {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if scale := t.b.viewport.Scale; scale > 0 {
		p.X, p.Y = p.X*scale, p.Y*scale
	}
	switch p.Type {
	case input.DispatchMouseEventTypeMouseWheel:
		return []cdp.Request{{Method: input.DispatchMouseEvent.Method, Params: struct {
			input.DispatchMouseEventParams
			DeltaX float64 `json:"deltaX"`
			DeltaY float64 `json:"deltaY"`
		}{p, p.DeltaX, p.DeltaY}}}
	case input.DispatchMouseEventTypeMouseMoved:
		if t.carried != nil {
			return t.carryLocked(p)
		}
	case input.DispatchMouseEventTypeMouseReleased:
		if t.carried != nil {
			return append(t.dropLocked(p), cdp.Prepare(input.DispatchMouseEvent, p))
		}
	}
	return []cdp.Request{cdp.Prepare(input.DispatchMouseEvent, p)}
}

// pointer sends one event of the pointer and waits until it was handled. On is
// false when that led to a dialog or the end of the tab: the input is over.
func (b *browser) pointer(ctx context.Context, x *action, event input.DispatchMouseEventParams) (on bool, err error) {
	guarded, release := x.tab.guard(ctx)
	defer release()
	for _, p := range x.tab.pageSession().SendAll(x.tab.mouse(event)...) {
		if err = p.Wait(guarded, nil); err != nil {
			break
		}
	}
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if cause := context.Cause(guarded); cause != nil && interrupted(cause) {
		return false, nil
	}
	return false, evalError(x.tab, err)
}

// scrolledInfo is what came of scrolling (js/move.js: scroll).
type scrolledInfo struct {
	Gone  bool    `json:"gone"`
	Wheel bool    `json:"wheel"` // nothing can scroll; the page may take a wheel at (PX, PY)
	PX    float64 `json:"px"`
	PY    float64 `json:"py"`
	Role  string  `json:"role"`
	Name  string  `json:"name"`
	reins.Scrolled
}

// scroll scrolls a container, the page, or an element into view.
func (b *browser) scroll(ctx context.Context, x *action, a reins.Scroll) error {
	d, err := x.tab.document(ctx)
	n := 0
	if a.Ref != "" {
		d, n, err = b.element(a.Ref)
	}
	if err != nil {
		return err
	}
	if a.Ref != "" && a.X == 0 && a.Y == 0 && a.To == "" {
		a.To = "view"
	}
	if n != 0 {
		b.showPlace(ctx, x, d, n)
	}
	settling := b.settle(x)
	var s scrolledInfo
	err = d.eval(ctx, "(n, o) => reins.scroll(n, o)", &s, n, map[string]any{"x": a.X, "y": a.Y, "to": a.To})
	switch {
	case err == nil && s.Gone:
		err = errStale(a.Ref)
	case err == nil && s.Wheel:
		err = b.wheel(ctx, x, d, s, a)
	}
	if err != nil {
		settling.stop()
		return err
	}
	if s.Role != "" {
		x.reply.Result.Target = &reins.Target{Role: s.Role, Name: s.Name}
	}
	if !s.Wheel {
		x.reply.Result.Scrolled = &s.Scrolled
	}
	if err := settling.finish(ctx, x, or(a.Settle, waitSettle), nil, d); err != nil {
		return err
	}
	return b.look(ctx, x, a.Waits)
}

// wheel turns the wheel over a page that has nothing to scroll: maps and the
// like take it themselves.
func (b *browser) wheel(ctx context.Context, x *action, d *document, s scrolledInfo, a reins.Scroll) error {
	at := &spot{doc: d}
	at.X, at.Y = s.PX, s.PY
	if _, _, err := b.climb(ctx, at, false); err != nil {
		return err
	}
	const far = 10_000
	switch a.To {
	case "top":
		a.Y = -far
	case "bottom":
		a.Y = far
	}
	turn := moved(at.x, at.y, 0, false)
	turn.Type, turn.DeltaX, turn.DeltaY = input.DispatchMouseEventTypeMouseWheel, a.X, a.Y
	if _, err := b.pointer(ctx, x, turn); err != nil {
		return err
	}
	x.note("nothing there can scroll that way; the wheel was turned over it instead")
	return nil
}
