package reins

import "time"

// The further verbs for agents, offered by the toolset "full" (MCP-3). The
// tools that select options, upload files and answer dialogs are other names
// for fill and click and need no verb of their own.
const (
	VerbHover   Verb = "hover"
	VerbDrag    Verb = "drag"
	VerbScroll  Verb = "scroll"
	VerbWaitFor Verb = "wait_for"
	VerbRead    Verb = "read"
	VerbConsole Verb = "console"
	VerbNetwork Verb = "network"
	VerbPDF     Verb = "pdf"
)

// Hover moves the pointer onto an element and leaves it there.
type Hover struct {
	Tab       TabID    `json:"tab,omitempty"`
	Ref       Ref      `json:"ref"`
	Position  *Point   `json:"position,omitempty"`  // inside the element's box; default its middle
	Modifiers []string `json:"modifiers,omitempty"` // "Alt", "Control", "Meta", "Shift"
	Waits
}

// Drag presses on one element, moves in steps to another or by a distance, and
// lets go there. It works for native drag and drop as well as for pages that
// follow the pointer. Exactly one of To and By is given.
type Drag struct {
	Tab  TabID  `json:"tab,omitempty"`
	Ref  Ref    `json:"ref"`
	To   Ref    `json:"to,omitempty"`   // let go on this element of the same tab
	By   *Point `json:"by,omitempty"`   // or this many CSS pixels further
	At   *Point `json:"at,omitempty"`   // where to take hold, inside Ref's box; default its middle
	Onto *Point `json:"onto,omitempty"` // where to let go, inside To's box; default its middle
	Waits
}

// Scroll scrolls the nearest container around an element that can scroll, or
// the page; without a distance or a place it brings the element into view.
type Scroll struct {
	Tab TabID   `json:"tab,omitempty"`
	Ref Ref     `json:"ref,omitempty"`
	X   float64 `json:"x,omitempty"`  // CSS pixels, positive is right
	Y   float64 `json:"y,omitempty"`  // CSS pixels, positive is down
	To  string  `json:"to,omitempty"` // "top", "bottom", or "view": bring Ref into view
	Waits
}

// WaitFor waits until the page is as exactly one of its fields says. It ends
// with timeout, naming what was waited for, when that does not come.
type WaitFor struct {
	Tab      TabID    `json:"tab,omitempty"`
	Ref      Ref      `json:"ref,omitempty"`        // with State
	Text     string   `json:"text,omitempty"`       // text that is shown, in whatever case
	Gone     string   `json:"gone,omitempty"`       // text that is not shown any more
	State    string   `json:"state,omitempty"`      // of Ref: "visible", "hidden", "enabled", "disabled", "checked", "unchecked"
	URL      string   `json:"url,omitempty"`        // a part of the tab's address
	Idle     bool     `json:"idle,omitempty"`       // nothing loads any more
	Timeout  Duration `json:"timeout_ms,omitempty"` // default 10 s, 100 ms..2 min
	Snapshot bool     `json:"snapshot,omitempty"`   // return what changed too
}

// Read returns the main content of the page, or all of an element, as Markdown.
type Read struct {
	Tab      TabID  `json:"tab,omitempty"`
	Ref      Ref    `json:"ref,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"` // default 24,000; 1,000..1,000,000
	Cursor   string `json:"cursor,omitempty"`    // go on where a cut one stopped
}

// Console returns what the page wrote to its console since this lease's last
// look. Of more than is kept the oldest is dropped, and said so.
type Console struct {
	Tab   TabID  `json:"tab,omitempty"`
	Level string `json:"level,omitempty"` // "error", "warning" (default), "info", "debug": that and above
	All   bool   `json:"all,omitempty"`   // from the page's beginning
}

// Network lists the requests of the page since this lease's last look. Of more
// than is kept the oldest is dropped, and said so.
type Network struct {
	Tab    TabID  `json:"tab,omitempty"`
	Failed bool   `json:"failed,omitempty"` // only those that failed or have a status of 400 and above
	Match  string `json:"match,omitempty"`  // only addresses that hold this text
	All    bool   `json:"all,omitempty"`    // from the page's beginning
}

// PDF prints the page to a PDF, stored as an artifact.
type PDF struct {
	Tab       TabID `json:"tab,omitempty"`
	Landscape bool  `json:"landscape,omitempty"`
}

// SecretValue is a Value that the host supplies under a name (ACT-11): it is
// typed into the page and never shown to who asks for it.
func SecretValue(name string) Value { return Value{Secret: name} }

// Secret is the name of the secret that an action wants typed; "" when it
// wants none.
func Secret(a Action) string {
	switch a := a.(type) {
	case Fill:
		return a.Value.Secret
	case Type:
		return a.Secret
	}
	return ""
}

// Verb and friends make each struct an Action.

func (Hover) Verb() Verb   { return VerbHover }
func (Drag) Verb() Verb    { return VerbDrag }
func (Scroll) Verb() Verb  { return VerbScroll }
func (WaitFor) Verb() Verb { return VerbWaitFor }
func (Read) Verb() Verb    { return VerbRead }
func (Console) Verb() Verb { return VerbConsole }
func (Network) Verb() Verb { return VerbNetwork }
func (PDF) Verb() Verb     { return VerbPDF }

func (a Hover) Target() (TabID, Ref)   { return a.Tab, a.Ref }
func (a Drag) Target() (TabID, Ref)    { return a.Tab, a.Ref }
func (a Scroll) Target() (TabID, Ref)  { return a.Tab, a.Ref }
func (a WaitFor) Target() (TabID, Ref) { return a.Tab, a.Ref }
func (a Read) Target() (TabID, Ref)    { return a.Tab, a.Ref }
func (a Console) Target() (TabID, Ref) { return a.Tab, "" }
func (a Network) Target() (TabID, Ref) { return a.Tab, "" }
func (a PDF) Target() (TabID, Ref)     { return a.Tab, "" }

func (Hover) isAction()   {}
func (Drag) isAction()    {}
func (Scroll) isAction()  {}
func (WaitFor) isAction() {}
func (Read) isAction()    {}
func (Console) isAction() {}
func (Network) isAction() {}
func (PDF) isAction()     {}

// MaxDistance is how many CSS pixels one action moves or scrolls at most.
const MaxDistance = 1_000_000

func checkModifiers(modifiers []string) error {
	for _, m := range modifiers {
		if m == "" {
			return Errorf(CodeInvalidInput, "a modifier is empty; use Alt, Control, Meta or Shift")
		}
		if err := checkChoice("modifier", m, "Alt", "Control", "Meta", "Shift"); err != nil {
			return err
		}
	}
	return nil
}

// checkDistance refuses what no page is as long as, and what is not a number.
func checkDistance(field string, x, y float64) error {
	for _, v := range []float64{x, y} {
		if !(v >= -MaxDistance && v <= MaxDistance) {
			return Errorf(CodeInvalidInput, "%s takes -%d to %d CSS pixels", field, MaxDistance, MaxDistance)
		}
	}
	return nil
}

// Validate implements Action.
func (a Hover) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, true), checkModifiers(a.Modifiers), a.Waits.validate())
}

// Validate implements Action.
func (a Drag) Validate() error {
	switch {
	case (a.To == "") == (a.By == nil):
		return Errorf(CodeInvalidInput, "a drag needs exactly one of to (a ref to let go on) and by (a distance)")
	case a.Onto != nil && a.To == "":
		return Errorf(CodeInvalidInput, "onto is a place inside the element of to, which is missing")
	}
	err := firstError(checkTarget(a.Tab, a.Ref, true), checkTarget(a.Tab, a.To, false), a.Waits.validate())
	if err == nil && a.By != nil {
		err = checkDistance("by", a.By.X, a.By.Y)
	}
	return err
}

// Validate implements Action.
func (a Scroll) Validate() error {
	moves := a.X != 0 || a.Y != 0
	switch {
	case moves && a.To != "":
		return Errorf(CodeInvalidInput, "a scroll takes a distance (x, y) or a place (to), not both")
	case !moves && a.To == "" && a.Ref == "":
		return Errorf(CodeInvalidInput, "a scroll needs x or y, or to, or a ref to bring into view")
	case a.To == "view" && a.Ref == "":
		return Errorf(CodeInvalidInput, "ref is missing; give the element to bring into view")
	}
	return firstError(checkTarget(a.Tab, a.Ref, false), checkChoice("to", a.To, "top", "bottom", "view"),
		checkDistance("x and y", a.X, a.Y), a.Waits.validate())
}

// Validate implements Action.
func (a WaitFor) Validate() error {
	n := 0
	for _, given := range []bool{a.Text != "", a.Gone != "", a.State != "", a.URL != "", a.Idle} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		return Errorf(CodeInvalidInput, "wait_for needs exactly one of text, gone, state, url and idle")
	case a.State != "" && a.Ref == "":
		return Errorf(CodeInvalidInput, "ref is missing; give the element whose state is waited for")
	case a.State == "" && a.Ref != "":
		return Errorf(CodeInvalidInput, "ref goes with state, which is missing")
	case len(a.Text) > maxFind || len(a.Gone) > maxFind || len(a.URL) > MaxURL:
		return Errorf(CodeInvalidInput, "text and gone take at most %d bytes, url %d", maxFind, MaxURL)
	}
	return firstError(checkTarget(a.Tab, a.Ref, false),
		checkChoice("state", a.State, "visible", "hidden", "enabled", "disabled", "checked", "unchecked"),
		checkRange("timeout_ms", time.Duration(a.Timeout).Milliseconds(), 100, 120_000, " ms"))
}

// Validate implements Action.
func (a Read) Validate() error {
	if len(a.Cursor) > maxFind {
		return Errorf(CodeInvalidInput, "cursor takes at most %d bytes", maxFind)
	}
	return firstError(checkTarget(a.Tab, a.Ref, false), checkRange("max_bytes", int64(a.MaxBytes), 1000, 1_000_000, " bytes"))
}

// Validate implements Action.
func (a Console) Validate() error {
	return firstError(checkTarget(a.Tab, "", false), checkChoice("level", a.Level, "error", "warning", "info", "debug"))
}

// Validate implements Action.
func (a Network) Validate() error {
	if len(a.Match) > maxFind {
		return Errorf(CodeInvalidInput, "match takes at most %d bytes", maxFind)
	}
	return checkTarget(a.Tab, "", false)
}

// Validate implements Action.
func (a PDF) Validate() error { return checkTarget(a.Tab, "", false) }
