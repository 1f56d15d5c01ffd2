package driver

import (
	"slices"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins/internal/cdp"
)

// A native drag takes its places as they come, in a page that is scaled up to the
// pixels of a picture too (see metrics): they would be somewhere else. So there
// the browser leaves a drag that begins to us, and gets it step by step.

// carried is what such a drag carries. Guarded by browser.mu.
type carried struct {
	data    rawJSON // as the browser told it
	entered bool
}

// rawJSON is JSON that is passed on as it came.
type rawJSON []byte

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawJSON) UnmarshalJSON(b []byte) error {
	*r = slices.Clone(b)
	return nil
}

// carrying has the browser leave drags to us, or not.
func carrying(on bool) cdp.Request {
	return cdp.Prepare(input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: on})
}

// dragIntercepted notes that a drag has begun.
func (t *tab) dragIntercepted(e cdp.Event) {
	var v struct {
		Data rawJSON `json:"data"`
	}
	if jsonv2.Unmarshal(e.Params, &v, jsonv2.AllowInvalidUTF8(true)) != nil {
		return
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	t.carried = &carried{data: v.Data}
}

// carryLocked moves what is carried.
func (t *tab) carryLocked(p input.DispatchMouseEventParams) (out []cdp.Request) {
	if !t.carried.entered {
		t.carried.entered = true
		out = append(out, t.dragEventLocked(input.DispatchDragEventTypeDragEnter, p))
	}
	return append(out, t.dragEventLocked(input.DispatchDragEventTypeDragOver, p))
}

// dropLocked lets go of it.
func (t *tab) dropLocked(p input.DispatchMouseEventParams) []cdp.Request {
	out := append(t.carryLocked(p), t.dragEventLocked(input.DispatchDragEventTypeDrop, p))
	t.carried = nil
	return out
}

// giveUp ends a drag without a drop.
func (t *tab) giveUp() {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if t.carried != nil {
		t.session.SendAll(t.dragEventLocked(input.DispatchDragEventTypeDragCancel, input.DispatchMouseEventParams{}))
		t.carried = nil
	}
}

func (t *tab) dragEventLocked(kind input.DispatchDragEventType, p input.DispatchMouseEventParams) cdp.Request {
	scale := t.b.viewport.Scale
	return cdp.Request{Method: input.DispatchDragEvent.Method, Params: struct {
		Type      input.DispatchDragEventType `json:"type"`
		X         float64                     `json:"x"`
		Y         float64                     `json:"y"`
		Data      rawJSON                     `json:"data"`
		Modifiers int64                       `json:"modifiers,omitzero"`
	}{kind, p.X / scale, p.Y / scale, t.carried.data, p.Modifiers}}
}
