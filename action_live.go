package reins

import "unicode/utf8"

// Touch is one raw event of fingers on a screen (INP-1), like [Pointer].
type Touch struct {
	Tab       TabID        `json:"tab"`
	Viewport  uint64       `json:"viewport,omitempty"` // as in [Pointer]
	Kind      string       `json:"kind"`               // "start", "move", "end", "cancel"
	Points    []TouchPoint `json:"points"`             // that touch after it, all of this participant; none after the last end
	Modifiers []string     `json:"modifiers,omitempty"`
}

// TouchPoint is one finger, in CSS pixels.
type TouchPoint struct {
	ID     int     `json:"id"` // 0..15
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Radius float64 `json:"radius,omitempty"`
	Force  float64 `json:"force,omitempty"` // 0..1
}

// Key is one raw event of a keyboard, as a page's KeyboardEvent has it: any key of
// any layout (INP-3). Text is what a down types, empty for none; shortcuts come
// from Code and Key. What is held when its lease ends is released (INP-2).
type Key struct {
	Tab       TabID    `json:"tab"`
	Kind      string   `json:"kind"`           // "down", "up"
	Key       string   `json:"key"`            // "a", "Enter", "ArrowLeft", "Dead"
	Code      string   `json:"code,omitempty"` // "KeyA", "Numpad1"; empty where a screen's keyboard knows none
	Text      string   `json:"text,omitempty"`
	Location  int      `json:"location,omitempty"` // 0 standard, 1 left, 2 right, 3 numpad
	Repeat    bool     `json:"repeat,omitempty"`
	Modifiers []string `json:"modifiers,omitempty"` // "Alt", "Control", "Meta", "Shift"
}

// InsertText is text that no single key makes: what an input method composes or
// commits (INP-1). A composition replaces the one before it; an empty one ends it.
type InsertText struct {
	Tab     TabID  `json:"tab"`
	Text    string `json:"text"`
	Compose bool   `json:"compose,omitempty"` // not final yet; shown as the page shows compositions
	// Start and End are the selection inside of a composition, in UTF-16 units.
	Start int `json:"start,omitempty"`
	End   int `json:"end,omitempty"`
}

// Clipboard pastes text of the person into the page, or gives the person what is
// selected there: "copy" and "cut" answer in [Result.Clipboard] (INP-1). The page
// sees the events that a keyboard's shortcut would make.
type Clipboard struct {
	Tab  TabID  `json:"tab"`
	Kind string `json:"kind"`           // "paste", "copy", "cut"
	Text string `json:"text,omitempty"` // of paste, at most 1 MiB
}

// SetViewport says what size this participant's window has (VPT-1). All zero
// takes that back. The answer is [Result.Viewport], which all viewers share.
type SetViewport struct {
	Width  int     `json:"width,omitempty"`  // CSS pixels, 200..4,096
	Height int     `json:"height,omitempty"` // CSS pixels, 200..4,096
	Scale  float64 `json:"scale,omitempty"`  // device scale factor, 0.5..4; 0 is 1; lowered where pictures would have more than [MaxPixels]
}

// Refresh starts the picture anew for all viewers; see FRM-8. It needs this
// lease's current subscription.
type Refresh struct{}

// MaxPixels bounds a picture (FRM-7).
const MaxPixels = 8_294_400

func (Touch) Verb() Verb       { return VerbTouch }
func (Key) Verb() Verb         { return VerbKey }
func (InsertText) Verb() Verb  { return VerbInsertText }
func (Clipboard) Verb() Verb   { return VerbClipboard }
func (SetViewport) Verb() Verb { return VerbSetViewport }
func (Refresh) Verb() Verb     { return VerbRefresh }

func (a Touch) Target() (TabID, Ref)      { return a.Tab, "" }
func (a Key) Target() (TabID, Ref)        { return a.Tab, "" }
func (a InsertText) Target() (TabID, Ref) { return a.Tab, "" }
func (a Clipboard) Target() (TabID, Ref)  { return a.Tab, "" }
func (SetViewport) Target() (TabID, Ref)  { return "", "" }
func (Refresh) Target() (TabID, Ref)      { return "", "" }

func (Touch) isAction()       {}
func (Key) isAction()         {}
func (InsertText) isAction()  {}
func (Clipboard) isAction()   {}
func (SetViewport) isAction() {}
func (Refresh) isAction()     {}

func checkEventTab(t TabID) error {
	if t == "" {
		return Errorf(CodeInvalidInput, "tab is missing; name the tab that the event is for")
	}
	return checkTarget(t, "", false)
}

func checkPlace(field string, x, y float64) error {
	for _, v := range []float64{x, y} {
		if !(v >= -maxPlace && v <= maxPlace) {
			return Errorf(CodeInvalidInput, "%s take -%d to %d CSS pixels", field, maxPlace, maxPlace)
		}
	}
	return nil
}

// Validate implements Action.
func (a Touch) Validate() error {
	if err := firstError(checkEventTab(a.Tab), checkChoice("kind", a.Kind, "start", "move", "end", "cancel"), checkModifiers(a.Modifiers)); err != nil {
		return err
	}
	if a.Kind == "" {
		return Errorf(CodeInvalidInput, "kind is missing; use start, move, end or cancel")
	}
	if len(a.Points) > 16 {
		return Errorf(CodeInvalidInput, "points has %d fingers; at most 16 are taken", len(a.Points))
	}
	if len(a.Points) == 0 && (a.Kind == "start" || a.Kind == "move") {
		return Errorf(CodeInvalidInput, "points is empty; name the fingers that touch")
	}
	seen := 0
	for _, p := range a.Points {
		if p.ID < 0 || p.ID > 15 || seen&(1<<p.ID) != 0 {
			return Errorf(CodeInvalidInput, "the id of a point is %d; use different ones from 0 to 15", p.ID)
		}
		seen |= 1 << p.ID
		if !(p.Radius >= 0 && p.Radius <= 1000) || !(p.Force >= 0 && p.Force <= 1) {
			return Errorf(CodeInvalidInput, "radius takes 0 to 1000 CSS pixels and force 0 to 1")
		}
		if err := checkPlace("x and y of a point", p.X, p.Y); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements Action.
func (a Key) Validate() error {
	if a.Kind == "" {
		return Errorf(CodeInvalidInput, "kind is missing; use down or up")
	}
	if a.Key == "" && a.Code == "" {
		return Errorf(CodeInvalidInput, "key is missing; give what KeyboardEvent.key says")
	}
	for field, v := range map[string]string{"key": a.Key, "code": a.Code, "text": a.Text} {
		if len(v) > 64 || !utf8.ValidString(v) {
			return Errorf(CodeInvalidInput, "%s takes at most 64 bytes of UTF-8; send longer text with insert_text", field)
		}
	}
	if a.Text != "" && a.Kind == "up" {
		return Errorf(CodeInvalidInput, "text is for down, not for up")
	}
	return firstError(checkEventTab(a.Tab), checkChoice("kind", a.Kind, "down", "up"),
		checkRange("location", int64(a.Location), 0, 3, ""), checkModifiers(a.Modifiers))
}

// Validate implements Action.
func (a InsertText) Validate() error {
	if err := firstError(checkEventTab(a.Tab), checkTyped("text", a.Text)); err != nil {
		return err
	}
	if !a.Compose && (a.Start != 0 || a.End != 0) {
		return Errorf(CodeInvalidInput, "start and end are for a composition")
	}
	if !a.Compose && a.Text == "" {
		return Errorf(CodeInvalidInput, "text is missing; give what was committed")
	}
	n := 0
	for _, r := range a.Text {
		n++
		if r > 0xffff {
			n++
		}
	}
	if a.Start < 0 || a.End < a.Start || a.End > n {
		return Errorf(CodeInvalidInput, "start and end take 0 to %d, the units of text, in order", n)
	}
	return nil
}

// Validate implements Action.
func (a Clipboard) Validate() error {
	if a.Kind == "" {
		return Errorf(CodeInvalidInput, "kind is missing; use paste, copy or cut")
	}
	if a.Kind != "paste" && a.Text != "" {
		return Errorf(CodeInvalidInput, "text is for paste, not for %.40q", a.Kind)
	}
	return firstError(checkEventTab(a.Tab), checkChoice("kind", a.Kind, "paste", "copy", "cut"), checkTyped("text", a.Text))
}

func checkTyped(field, s string) error {
	if len(s) > maxTyped {
		return Errorf(CodeInvalidInput, "%s has %d bytes; at most %d are taken", field, len(s), maxTyped)
	}
	if !utf8.ValidString(s) {
		return Errorf(CodeInvalidInput, "%s is not valid UTF-8", field)
	}
	return nil
}

const maxTyped = 1 << 20 // bytes

// Validate implements Action.
func (a SetViewport) Validate() error {
	if a == (SetViewport{}) {
		return nil
	}
	if a.Width == 0 || a.Height == 0 {
		return Errorf(CodeInvalidInput, "width and height are needed both; neither takes the wish back")
	}
	if a.Scale != 0 && !(a.Scale >= 0.5 && a.Scale <= 4) {
		return Errorf(CodeInvalidInput, "scale takes 0.5 to 4")
	}
	if err := firstError(checkRange("width", int64(a.Width), 200, 4096, " CSS pixels"), checkRange("height", int64(a.Height), 200, 4096, " CSS pixels")); err != nil {
		return err
	}
	if n := a.Width * a.Height; n > MaxPixels {
		return Errorf(CodeInvalidInput, "width times height is %d; at most %d are taken", n, MaxPixels)
	}
	return nil
}

// Validate implements Action.
func (Refresh) Validate() error { return nil }
