package reins

import (
	"bytes"
	"encoding/json"
)

// TabID names a tab of one connection: "t1". Empty means the selected tab, or
// the ref's.
type TabID string

// Ref names one element of one document of one tab of one connection
// (SNAP-4): "f2e12". It comes from a snapshot and is opaque.
type Ref string

// Action is one thing a participant asks for: a closed sum of the structs
// below. Its JSON form is an object with "verb" beside the struct's fields.
type Action interface {
	Verb() Verb
	// Target is the tab and element it names, each possibly empty.
	Target() (TabID, Ref)
	// Validate reports invalid_input naming the field.
	Validate() error
	isAction()
}

// Navigate loads an address (NAV-1).
type Navigate struct {
	Tab     TabID    `json:"tab,omitempty"`
	URL     string   `json:"url"`                  // or "back", "forward", "reload"
	Wait    string   `json:"wait,omitempty"`       // "commit", "domcontentloaded" (default), "load"
	Timeout Duration `json:"timeout_ms,omitempty"` // default 30 s, 100 ms..5 min
}

// Snapshot reads the page as an outline (SNAP-1..8).
type Snapshot struct {
	Tab         TabID  `json:"tab,omitempty"`
	Ref         Ref    `json:"ref,omitempty"`         // a subtree only
	MaxBytes    int    `json:"max_bytes,omitempty"`   // default 24,000; 1,000..1,000,000
	Depth       int    `json:"depth,omitempty"`       // levels; 0 is all
	Interactive bool   `json:"interactive,omitempty"` // only what can be acted on
	Find        string `json:"find,omitempty"`        // the neighbourhood of matching text
	Changes     bool   `json:"changes,omitempty"`     // what differs from this lease's last one
	Cursor      string `json:"cursor,omitempty"`      // go on where a cut one stopped
}

// Screenshot takes a picture and stores it as an artifact (ACT-5).
type Screenshot struct {
	Tab      TabID  `json:"tab,omitempty"`
	Ref      Ref    `json:"ref,omitempty"` // only this element
	FullPage bool   `json:"full_page,omitempty"`
	Format   string `json:"format,omitempty"`  // "png" (default), "jpeg", "webp"
	Quality  int    `json:"quality,omitempty"` // 1..100 for jpeg and webp; default 80
	Scale    string `json:"scale,omitempty"`   // "css" (default) or "device"
	Image    bool   `json:"image,omitempty"`   // also return a picture fit for a model
}

// Point is a position in CSS pixels.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Waits bounds the two waits of an action and asks for a snapshot after it.
type Waits struct {
	Actionable *Duration `json:"actionable_ms,omitempty"` // ACT-1; default 5 s, 0..60 s
	Settle     *Duration `json:"settle_ms,omitempty"`     // ACT-6; default 5 s, 0..60 s
	Snapshot   bool      `json:"snapshot,omitempty"`      // ACT-7: return the changes too
}

// Click presses the pointer on an element (ACT-2).
type Click struct {
	Tab       TabID    `json:"tab,omitempty"`
	Ref       Ref      `json:"ref"`
	Button    string   `json:"button,omitempty"`    // "left" (default), "middle", "right"
	Count     int      `json:"count,omitempty"`     // 1..3; default 1
	Modifiers []string `json:"modifiers,omitempty"` // "Alt", "Control", "Meta", "Shift"
	Position  *Point   `json:"position,omitempty"`  // inside the element's box; default its middle
	Waits
}

// Fill sets a control to a value by what the control is (ACT-3).
type Fill struct {
	Tab    TabID `json:"tab,omitempty"`
	Ref    Ref   `json:"ref"`
	Value  Value `json:"value"`
	Submit bool  `json:"submit,omitempty"` // press Enter afterwards
	Waits
}

// Press presses a key or chord on an element or on the focus (ACT-4).
type Press struct {
	Tab TabID  `json:"tab,omitempty"`
	Ref Ref    `json:"ref,omitempty"`
	Key string `json:"key"` // "Enter", "Control+A", "é"
	Waits
}

// ListTabs lists the open tabs.
type ListTabs struct{}

// OpenTab opens a tab, selects it, and navigates it when URL is given.
type OpenTab struct {
	URL     string   `json:"url,omitempty"`
	Wait    string   `json:"wait,omitempty"`
	Timeout Duration `json:"timeout_ms,omitempty"`
}

// SelectTab makes a tab the selected one.
type SelectTab struct {
	Tab TabID `json:"tab"`
}

// CloseTab closes a tab; Force goes past the queue.
type CloseTab struct {
	Tab   TabID `json:"tab,omitempty"`
	Force bool  `json:"force,omitempty"`
}

// Type sends text key by key to an element or to the focus (ACT-4): Text, or
// the value of the secret of that name (ACT-11).
type Type struct {
	Tab    TabID  `json:"tab,omitempty"`
	Ref    Ref    `json:"ref,omitempty"`
	Text   string `json:"text,omitempty"`
	Secret string `json:"secret,omitempty"`
	Waits
}

// PressKey presses a key or chord on the focus, whatever it is.
type PressKey struct {
	Tab TabID  `json:"tab,omitempty"`
	Key string `json:"key"`
	Waits
}

// ListArtifacts lists what the lease may read (LSE-8).
type ListArtifacts struct{}

// ReadArtifact reads one chunk of an artifact; authority is checked for each.
type ReadArtifact struct {
	Artifact string `json:"artifact"`
	Offset   int64  `json:"offset,omitempty"`
	Length   int64  `json:"length,omitempty"` // default and at most 1 MiB
}

// DeleteArtifact deletes an artifact.
type DeleteArtifact struct {
	Artifact string `json:"artifact"`
}

func (Navigate) Verb() Verb       { return VerbNavigate }
func (Snapshot) Verb() Verb       { return VerbSnapshot }
func (Screenshot) Verb() Verb     { return VerbScreenshot }
func (Click) Verb() Verb          { return VerbClick }
func (Fill) Verb() Verb           { return VerbFill }
func (Press) Verb() Verb          { return VerbPress }
func (ListTabs) Verb() Verb       { return VerbListTabs }
func (OpenTab) Verb() Verb        { return VerbOpenTab }
func (SelectTab) Verb() Verb      { return VerbSelectTab }
func (CloseTab) Verb() Verb       { return VerbCloseTab }
func (Type) Verb() Verb           { return VerbType }
func (PressKey) Verb() Verb       { return VerbPressKey }
func (ListArtifacts) Verb() Verb  { return VerbListArtifacts }
func (ReadArtifact) Verb() Verb   { return VerbReadArtifact }
func (DeleteArtifact) Verb() Verb { return VerbDeleteArtifact }

func (a Navigate) Target() (TabID, Ref)     { return a.Tab, "" }
func (a Snapshot) Target() (TabID, Ref)     { return a.Tab, a.Ref }
func (a Screenshot) Target() (TabID, Ref)   { return a.Tab, a.Ref }
func (a Click) Target() (TabID, Ref)        { return a.Tab, a.Ref }
func (a Fill) Target() (TabID, Ref)         { return a.Tab, a.Ref }
func (a Press) Target() (TabID, Ref)        { return a.Tab, a.Ref }
func (ListTabs) Target() (TabID, Ref)       { return "", "" }
func (OpenTab) Target() (TabID, Ref)        { return "", "" }
func (a SelectTab) Target() (TabID, Ref)    { return a.Tab, "" }
func (a CloseTab) Target() (TabID, Ref)     { return a.Tab, "" }
func (a Type) Target() (TabID, Ref)         { return a.Tab, a.Ref }
func (a PressKey) Target() (TabID, Ref)     { return a.Tab, "" }
func (ListArtifacts) Target() (TabID, Ref)  { return "", "" }
func (ReadArtifact) Target() (TabID, Ref)   { return "", "" }
func (DeleteArtifact) Target() (TabID, Ref) { return "", "" }

func (Navigate) isAction()       {}
func (Snapshot) isAction()       {}
func (Screenshot) isAction()     {}
func (Click) isAction()          {}
func (Fill) isAction()           {}
func (Press) isAction()          {}
func (ListTabs) isAction()       {}
func (OpenTab) isAction()        {}
func (SelectTab) isAction()      {}
func (CloseTab) isAction()       {}
func (Type) isAction()           {}
func (PressKey) isAction()       {}
func (ListArtifacts) isAction()  {}
func (ReadArtifact) isAction()   {}
func (DeleteArtifact) isAction() {}

// EncodeAction writes an action's JSON form.
func EncodeAction(a Action) ([]byte, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return nil, AsError(err)
	}
	head := []byte(`{"verb":"` + string(a.Verb()) + `"`)
	if len(body) > 2 {
		head = append(head, ',')
	}
	return append(head, body[1:]...), nil
}

// DecodeAction reads an action's JSON form and validates it. Unknown verbs and
// fields are invalid_input naming them.
func DecodeAction(b []byte) (Action, error) {
	var head struct {
		Verb Verb `json:"verb"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, Errorf(CodeInvalidInput, "the action is not a JSON object: %w", err)
	}
	info, ok := head.Verb.info()
	if !ok {
		return nil, Errorf(CodeInvalidInput, "verb %.40q is unknown", string(head.Verb))
	}
	a, err := info.decode(b)
	if err != nil {
		return nil, err
	}
	return a, a.Validate()
}

func decode[A Action](b []byte) (Action, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, Errorf(CodeInvalidInput, "the action is not a JSON object: %w", err)
	}
	delete(fields, "verb")
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, AsError(err)
	}
	var a A
	d := json.NewDecoder(bytes.NewReader(rest))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		if e := AsError(err); e.Code == CodeInvalidInput {
			return nil, e
		}
		return nil, Errorf(CodeInvalidInput, "the action does not fit its verb: %w", err)
	}
	return a, nil
}
