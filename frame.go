package reins

import (
	"context"
	"time"
)

// SubscribeOptions sets up a subscription.
type SubscribeOptions struct {
	Window int `json:"window,omitempty"` // unacknowledged frames, default 4, 1..32 (FRM-3)
}

// Subscription is a live stream of frames and state (FRM).
type Subscription interface {
	// Next waits for the next frame or state; it fails when the lease ends.
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

// ViewState is what a viewer shows beside the picture (FRM-10).
type ViewState struct {
	Tabs         []Tab   `json:"tabs"`
	Selected     TabID   `json:"selected"`
	Control      Control `json:"control"`
	Participants int     `json:"participants"`
	Operation    string  `json:"operation,omitempty"`
	Dialog       *Dialog `json:"dialog,omitempty"`
}
