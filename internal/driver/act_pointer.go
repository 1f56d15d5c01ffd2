package driver

import (
	"cmp"
	"context"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
)

// rawPointer passes on one event of a person's pointer as it is (INP-1). It
// waits until the page has handled it and for nothing that it sets off.
func (b *browser) rawPointer(ctx context.Context, x *action, a reins.Pointer) error {
	event := input.DispatchMouseEventParams{
		X: a.X, Y: a.Y, Buttons: int64(a.Buttons), Button: input.MouseButtonNone,
		PointerType: input.DispatchMouseEventPointerTypeMouse,
	}
	for _, m := range a.Modifiers {
		event.Modifiers |= modifierBits[m]
	}
	switch a.Kind {
	case "move":
		event.Type = input.DispatchMouseEventTypeMouseMoved
		event.Button = heldButton(a.Buttons)
	case "down", "up":
		event.Type = input.DispatchMouseEventTypeMousePressed
		if a.Kind == "up" {
			event.Type = input.DispatchMouseEventTypeMouseReleased
		}
		event.Button, event.ClickCount = input.MouseButton(cmp.Or(a.Button, "left")), int64(max(a.Count, 1))
	case "wheel":
		event.Type, event.DeltaX, event.DeltaY = input.DispatchMouseEventTypeMouseWheel, a.DX, a.DY
	}
	_, err := b.pointer(ctx, x, event)
	return err
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
