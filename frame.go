package reins

import (
	"context"
	"time"
)

// SubscribeOptions sets up a subscription.
type SubscribeOptions struct {
	Window int `json:"window,omitempty"` // unacknowledged frames, default 4, 1..32 (FRM-3)
	// Take ends the subscription that the lease has, if any, instead of failing
	// with busy: for a viewer that has lost its own and does not know its end.
	Take bool `json:"take,omitempty"`
}

// Subscription is a live stream of frames and state (FRM).
type Subscription interface {
	// Next waits for the next frame or state. It fails with lease_ended at once
	// when the lease ends (LSE-6), with browser_ended when the incarnation that it
	// showed ends (LSE-5: subscribe again), with frame_stream_failed when its
	// pictures failed for good (FRM-9), with busy when the lease's next
	// subscription took its place, and with cancelled after Close or when its
	// context ended, which ends nothing else.
	Next(context.Context) (Update, error)
	// Ack retires one frame of this viewer's window; false when it was late.
	Ack(FrameID) bool
	// Close ends the subscription only; idempotent.
	Close() error
}

// FrameID names one frame exactly (FRM-2).
type FrameID struct {
	Incarnation uint64 `json:"incarnation"`
	Stream      uint64 `json:"stream"`
	Sequence    uint64 `json:"sequence"`
}

// Update is one frame, one change of state, or both.
type Update struct {
	Frame *Frame     `json:"frame,omitempty"`
	State *ViewState `json:"state,omitempty"`
	Err   *Error     `json:"error,omitempty"` // not fatal: a dropped frame
}

// Frame is one JPEG picture of a tab.
type Frame struct {
	ID       FrameID   `json:"id"`
	Tab      TabID     `json:"tab"`
	Viewport uint64    `json:"viewport"` // revision
	Width    int       `json:"width"`    // pixels
	Height   int       `json:"height"`   // pixels
	Captured time.Time `json:"captured"`
	JPEG     []byte    `json:"-"`
}

// ViewState is what a viewer shows beside the picture (FRM-10). Texts in it that
// pages made are bounded.
type ViewState struct {
	Incarnation  uint64        `json:"incarnation"` // 0: there never was a browser
	Life         State         `json:"state"`
	Tabs         []Tab         `json:"tabs"`
	Selected     TabID         `json:"selected"`
	Viewport     Viewport      `json:"viewport"`
	Control      Control       `json:"control"`
	Participants []Participant `json:"participants"`
	Cursor       *Cursor       `json:"cursor,omitempty"`
	Operation    *Activity     `json:"operation,omitempty"` // that runs now; the newest where several do
	Dialog       *Dialog       `json:"dialog,omitempty"`    // of the selected tab
	// Activities are the last things done that people may want to read, oldest
	// first, at most [MaxActivities]. Raw input counts once a second.
	Activities []Activity `json:"activities"`
}

// MaxActivities bounds the list of a view.
const MaxActivities = 100

// Viewport is what all viewers share: CSS pixels, and how many pixels of the
// picture one of them has (VPT-1). The revision grows with each change of it.
type Viewport struct {
	Revision uint64  `json:"revision"`
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Scale    float64 `json:"scale"`
}

// DefaultViewport is what a browser has that nobody looks at (VPT-1).
func DefaultViewport() Viewport { return Viewport{Width: 1280, Height: 800, Scale: 1} }

// Participant is one live lease, as others see it.
type Participant struct {
	Actor    string    `json:"actor"`
	Role     Role      `json:"role"`
	Since    time.Time `json:"since"`
	Watching bool      `json:"watching,omitempty"` // has a subscription
	Mine     bool      `json:"mine,omitempty"`     // it is the viewer's own
}

// Cursor is where the participant who acts has its pointer, in CSS pixels of the
// viewport of Tab.
type Cursor struct {
	Tab   TabID   `json:"tab"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Actor string  `json:"actor"`
	Role  Role    `json:"role"`
}

// Box is a rectangle in CSS pixels of a viewport.
type Box struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// Activity is one operation as people are told of it. It holds no typed text.
type Activity struct {
	Operation string    `json:"operation"`
	Actor     string    `json:"actor"`
	Role      Role      `json:"role"`
	Verb      string    `json:"verb"` // or what the runtime did; see [Record.Action]
	Tab       TabID     `json:"tab,omitempty"`
	Target    *Target   `json:"target,omitempty"`
	Box       *Box      `json:"box,omitempty"` // where it happens, once that is known
	URL       string    `json:"url,omitempty"` // of navigate
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
	Outcome   Outcome   `json:"outcome,omitempty"` // empty: it runs
	Code      Code      `json:"code,omitempty"`
	Detail    string    `json:"detail,omitempty"`
}
