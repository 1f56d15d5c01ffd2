package driver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// rawPointer is one event of a person's pointer as it is (INP-1).
func (t *tab) rawPointer(a reins.Pointer) rawInput {
	event := input.DispatchMouseEventParams{
		X: a.X, Y: a.Y, Buttons: int64(a.Buttons), Button: input.MouseButtonNone,
		PointerType: input.DispatchMouseEventPointerTypeMouse, Modifiers: bitsOf(a.Modifiers),
	}
	in := rawInput{}
	switch a.Kind {
	case "move":
		event.Type = input.DispatchMouseEventTypeMouseMoved
		event.Button = heldButton(a.Buttons)
		in.streams = a.Buttons == 0 // a drag begins and ends where it should only when each step was taken
	case "down":
		event.Type = input.DispatchMouseEventTypeMousePressed
		event.Button, event.ClickCount = input.MouseButton(cmp.Or(a.Button, "left")), int64(max(a.Count, 1))
	case "up":
		event.Type = input.DispatchMouseEventTypeMouseReleased
		event.Button, event.ClickCount = input.MouseButton(cmp.Or(a.Button, "left")), int64(max(a.Count, 1))
		in.gesture = true
		in.background = a.Button == "middle" || event.Modifiers&(bitControl|bitMeta) != 0
		if event.Button == input.MouseButtonLeft { // a native drag enters a place with the first move there, and only drops after another
			move := event
			move.Type, move.ClickCount, move.Buttons = input.DispatchMouseEventTypeMouseMoved, 0, event.Buttons|1
			in.requests = append(in.requests, t.mouse(move)...)
		}
	case "wheel":
		event.Type, event.DeltaX, event.DeltaY = input.DispatchMouseEventTypeMouseWheel, a.DX, a.DY
		in.streams = true
	}
	in.requests = append(in.requests, t.mouse(event)...)
	return in
}

// heldButton is the button that a move with these held is one of.
func heldButton(buttons int) input.MouseButton {
	switch {
	case buttons&1 != 0:
		return input.MouseButtonLeft
	case buttons&2 != 0:
		return input.MouseButtonRight
	case buttons&4 != 0:
		return input.MouseButtonMiddle
	}
	return input.MouseButtonNone
}

// bitsOf are held modifiers in input events.
func bitsOf(modifiers []string) (bits int64) {
	for _, m := range modifiers {
		bits |= modifierBits[m]
	}
	return bits
}

// rawTouch is one event of a person's fingers. The page gets the touch events and
// what the browser makes of them: taps, scrolling, pinching. It does not say of
// itself that it has a touch screen: one page is shown to all viewers.
func (t *tab) rawTouch(a reins.Touch) rawInput {
	event := input.DispatchTouchEventParams{TouchPoints: []*input.TouchPoint{}, Modifiers: bitsOf(a.Modifiers)}
	in := rawInput{}
	t.b.mu.Lock()
	before := t.touching
	t.touching = map[int]reins.TouchPoint{}
	if a.Kind != "cancel" {
		for _, p := range a.Points {
			t.touching[p.ID] = p
		}
	}
	now := t.touching
	t.b.mu.Unlock()
	var told []reins.TouchPoint // the browser is told of the fingers that an event is about
	switch a.Kind {
	case "cancel":
		event.Type = input.DispatchTouchEventTypeTouchCancel
	case "start":
		event.Type = input.DispatchTouchEventTypeTouchStart
		told = missing(now, before)
	case "move":
		event.Type, in.streams, told = input.DispatchTouchEventTypeTouchMove, true, a.Points
	case "end":
		event.Type, in.gesture = input.DispatchTouchEventTypeTouchEnd, true
		if len(now) > 0 {
			told = missing(before, now)
		}
	}
	if len(told) == 0 && (a.Kind == "start" || a.Kind == "move" || len(now) > 0) {
		return in // no finger did anything
	}
	for _, p := range told {
		event.TouchPoints = append(event.TouchPoints, t.finger(p))
	}
	in.requests = []cdp.Request{cdp.Prepare(input.DispatchTouchEvent, event)}
	return in
}

// missing are the points of one set that another lacks, in the order of their IDs.
func missing(of, in map[int]reins.TouchPoint) (out []reins.TouchPoint) {
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if _, there := in[id]; !there {
			out = append(out, of[id])
		}
	}
	return out
}

// finger is one point as the browser takes it: see mouse.
func (t *tab) finger(p reins.TouchPoint) *input.TouchPoint {
	scale := cmp.Or(t.b.size().Scale, 1)
	point := &input.TouchPoint{X: p.X * scale, Y: p.Y * scale, ID: new(float64(p.ID))}
	if p.Radius > 0 {
		point.RadiusX, point.RadiusY = new(max(p.Radius*scale, 1)), new(max(p.Radius*scale, 1))
	}
	if p.Force > 0 {
		point.Force = new(p.Force)
	}
	return point
}
