package reins

import "time"

// The verbs of people who watch: raw input (INP-1), and the picture (VPT-1, FRM-8).
// A registration cannot permit them to agents.
const (
	VerbPointer     Verb = "pointer"
	VerbTouch       Verb = "touch"
	VerbKey         Verb = "key"
	VerbInsertText  Verb = "insert_text"
	VerbClipboard   Verb = "clipboard"
	VerbSetViewport Verb = "set_viewport"
	VerbRefresh     Verb = "refresh"
)

// Bounds of raw input.
const (
	// RawInputRecord is how much raw input of a participant one record of the
	// audit trail sums up (GATE-3).
	RawInputRecord = time.Second

	maxPlace = 16_384 // CSS pixels to any side of a viewport's corner
)

// Pointer is one raw event of a person's pointer, in CSS pixels of the viewport
// of Tab, which has to be the selected one: an event for another is
// invalid_state, so that no click lands elsewhere (INP-1). Moves that wait in the
// queue directly behind each other become the latest one (OPS-3). What is held
// when its lease ends, or when the tab goes elsewhere, is released (INP-2).
type Pointer struct {
	Tab       TabID    `json:"tab"`
	Viewport  uint64   `json:"viewport,omitempty"` // revision of the picture that was looked at; 0 of a caller without one
	Kind      string   `json:"kind"`               // "move", "down", "up", "wheel"
	X         float64  `json:"x"`
	Y         float64  `json:"y"`
	Button    string   `json:"button,omitempty"`    // of down and up: "left" (default), "middle", "right"
	Count     int      `json:"count,omitempty"`     // of down and up: presses in a row, 1..3; default 1
	DX        float64  `json:"dx,omitempty"`        // of wheel: CSS pixels, positive is right
	DY        float64  `json:"dy,omitempty"`        // of wheel: CSS pixels, positive is down
	Modifiers []string `json:"modifiers,omitempty"` // "Alt", "Control", "Meta", "Shift"
	// Buttons are those held after it: 1 left, 2 right, 4 middle. The runtime
	// keeps count and fills it in; what a caller gives is not used.
	Buttons int `json:"buttons,omitempty"`
}

// Verb implements Action.
func (Pointer) Verb() Verb { return VerbPointer }

// Target implements Action.
func (a Pointer) Target() (TabID, Ref) { return a.Tab, "" }

func (Pointer) isAction() {}

// Validate implements Action.
func (a Pointer) Validate() error {
	if a.Tab == "" {
		return Errorf(CodeInvalidInput, "tab is missing; name the tab that the event is for")
	}
	if a.Kind == "" {
		return Errorf(CodeInvalidInput, "kind is missing; use move, down, up or wheel")
	}
	for _, v := range []float64{a.X, a.Y} {
		if !(v >= -maxPlace && v <= maxPlace) {
			return Errorf(CodeInvalidInput, "x and y take -%d to %d CSS pixels", maxPlace, maxPlace)
		}
	}
	press := a.Kind == "down" || a.Kind == "up"
	switch {
	case !press && (a.Button != "" || a.Count != 0):
		return Errorf(CodeInvalidInput, "button and count are for down and up, not for %.40q", a.Kind)
	case a.Kind != "wheel" && (a.DX != 0 || a.DY != 0):
		return Errorf(CodeInvalidInput, "dx and dy are for wheel, not for %.40q", a.Kind)
	}
	return firstError(checkTarget(a.Tab, "", false), checkChoice("kind", a.Kind, "move", "down", "up", "wheel"),
		checkChoice("button", a.Button, "left", "middle", "right"), checkRange("count", int64(a.Count), 1, 3, ""),
		checkDistance("dx and dy", a.DX, a.DY), checkModifiers(a.Modifiers))
}
