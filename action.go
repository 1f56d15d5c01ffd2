package reins

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Verb names an action.
type Verb string

// The verbs of this version. The first six are every agent's by default.
const (
	VerbNavigate   Verb = "navigate"
	VerbSnapshot   Verb = "snapshot"
	VerbScreenshot Verb = "screenshot"
	VerbClick      Verb = "click"
	VerbFill       Verb = "fill"
	VerbPress      Verb = "press"

	VerbListTabs  Verb = "list_tabs"
	VerbOpenTab   Verb = "open_tab"
	VerbSelectTab Verb = "select_tab"
	VerbCloseTab  Verb = "close_tab"
	VerbType      Verb = "type"
	VerbPressKey  Verb = "press_key"

	VerbListArtifacts  Verb = "list_artifacts"
	VerbReadArtifact   Verb = "read_artifact"
	VerbDeleteArtifact Verb = "delete_artifact"
)

// verbInfo is what is decided once about a verb, for every door.
type verbInfo struct {
	verb   Verb
	class  Class
	agent  bool // a registration may permit it to agents
	needs  bool // needs a browser
	reads  bool // has no effect on the page
	decode func([]byte) (Action, error)
}

var verbs = []verbInfo{
	{VerbNavigate, ClassNavigation, true, true, false, decode[Navigate]},
	{VerbSnapshot, ClassAgentAction, true, true, true, decode[Snapshot]},
	{VerbScreenshot, ClassAgentAction, true, true, true, decode[Screenshot]},
	{VerbClick, ClassAgentAction, true, true, false, decode[Click]},
	{VerbFill, ClassAgentAction, true, true, false, decode[Fill]},
	{VerbPress, ClassAgentAction, true, true, false, decode[Press]},
	{VerbListTabs, ClassTab, true, true, true, decode[ListTabs]},
	{VerbOpenTab, ClassTab, true, true, false, decode[OpenTab]},
	{VerbSelectTab, ClassTab, true, true, false, decode[SelectTab]},
	{VerbCloseTab, ClassTab, true, true, false, decode[CloseTab]},
	{VerbType, ClassAgentAction, true, true, false, decode[Type]},
	{VerbPressKey, ClassAgentAction, true, true, false, decode[PressKey]},
	{VerbHover, ClassAgentAction, true, true, false, decode[Hover]},
	{VerbDrag, ClassAgentAction, true, true, false, decode[Drag]},
	{VerbScroll, ClassAgentAction, true, true, false, decode[Scroll]},
	{VerbWaitFor, ClassAgentAction, true, true, true, decode[WaitFor]},
	{VerbRead, ClassAgentAction, true, true, true, decode[Read]},
	{VerbConsole, ClassAgentAction, true, true, true, decode[Console]},
	{VerbNetwork, ClassAgentAction, true, true, true, decode[Network]},
	{VerbPDF, ClassAgentAction, true, true, true, decode[PDF]},
	{VerbPointer, ClassRawInput, false, true, false, decode[Pointer]},
	{VerbRequestHuman, ClassControl, true, false, false, decode[RequestHuman]},
	{VerbControl, ClassControl, false, false, true, decode[GetControl]},
	{VerbRequestControl, ClassControl, false, false, false, decode[RequestControl]},
	{VerbRenewControl, ClassControl, false, false, false, decode[RenewControl]},
	{VerbReleaseControl, ClassControl, false, false, false, decode[ReleaseControl]},
	{VerbStopAgents, ClassControl, false, false, false, decode[StopAgents]},
	{VerbAnswerHuman, ClassControl, false, false, false, decode[AnswerHuman]},
	{VerbListArtifacts, ClassArtifact, false, false, true, decode[ListArtifacts]},
	{VerbReadArtifact, ClassArtifact, false, false, true, decode[ReadArtifact]},
	{VerbDeleteArtifact, ClassArtifact, false, false, false, decode[DeleteArtifact]},
}

func (v Verb) info() (verbInfo, bool) {
	for _, i := range verbs {
		if i.verb == v {
			return i, true
		}
	}
	return verbInfo{}, false
}

func (v Verb) agent() bool { i, ok := v.info(); return ok && i.agent }

// NeedsBrowser reports whether the verb starts a browser when none runs.
func (v Verb) NeedsBrowser() bool { i, _ := v.info(); return i.needs }

// ReadOnly reports whether the verb leaves the page as it is.
func (v Verb) ReadOnly() bool { i, _ := v.info(); return i.reads }

// Class is the classification that the gate sees when a participant of role
// does this: agent verbs of agents are always agent-action (GATE-1).
func (v Verb) Class(role Role) Class {
	i, _ := v.info()
	if role == RoleAgent && i.agent {
		return ClassAgentAction
	}
	return i.class
}

// DefaultVerbs are the six that a registration permits when it names none.
func DefaultVerbs() []Verb {
	return []Verb{VerbNavigate, VerbSnapshot, VerbScreenshot, VerbClick, VerbFill, VerbPress}
}

// Actions returns an empty action of every verb, in a fixed order: what doors
// describe them by.
func Actions() []Action {
	var out []Action
	for _, i := range verbs {
		if a, err := i.decode([]byte("{}")); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// AgentVerbs are all verbs that a registration may permit to agents.
func AgentVerbs() []Verb {
	var out []Verb
	for _, i := range verbs {
		if i.agent {
			out = append(out, i.verb)
		}
	}
	return out
}

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

// Duration is a time.Duration whose JSON form is whole milliseconds.
type Duration time.Duration

// MarshalJSON writes milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).Milliseconds())
}

// UnmarshalJSON reads milliseconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return Errorf(CodeInvalidInput, "a duration is a whole number of milliseconds, not %.40q", b)
	}
	if ms < -1e12 || ms > 1e12 {
		return Errorf(CodeInvalidInput, "a duration of %d ms is out of range", ms)
	}
	*d = Duration(time.Duration(ms) * time.Millisecond)
	return nil
}

// Value is what a control is set to: exactly one field is set. Its JSON form
// is a string, true or false, a number, a list of strings,
// {"artifacts": ["id"]} or {"secret": "name"}.
type Value struct {
	Text      *string
	Checked   *bool
	Options   []string // for a list that takes several
	Artifacts []string // IDs of files to give to a file control
	Secret    string   // name of a text that the host supplies (ACT-11)
}

// TextValue is a Value of plain text.
func TextValue(s string) Value { return Value{Text: &s} }

// CheckedValue is a Value for a check box, switch or radio.
func CheckedValue(b bool) Value { return Value{Checked: &b} }

// MarshalJSON writes the form described at [Value].
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v.Text != nil:
		return json.Marshal(*v.Text)
	case v.Checked != nil:
		return json.Marshal(*v.Checked)
	case v.Options != nil:
		return json.Marshal(v.Options)
	case v.Artifacts != nil:
		return json.Marshal(map[string][]string{"artifacts": v.Artifacts})
	case v.Secret != "":
		return json.Marshal(map[string]string{"secret": v.Secret})
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads the forms described at [Value].
func (v *Value) UnmarshalJSON(b []byte) error {
	*v = Value{}
	b = bytes.TrimSpace(b)
	bad := Errorf(CodeInvalidInput, "a value is text, true or false, a number, a list of texts, {\"artifacts\": [id]}, or {\"secret\": name}")
	if len(b) == 0 {
		return bad
	}
	switch c := b[0]; {
	case c == '"':
		v.Text = new(string)
		return json.Unmarshal(b, v.Text)
	case c == 't' || c == 'f':
		v.Checked = new(bool)
		return json.Unmarshal(b, v.Checked)
	case c == '-' || c >= '0' && c <= '9':
		var n json.Number
		if err := json.Unmarshal(b, &n); err != nil {
			return bad
		}
		s := n.String()
		v.Text = &s
		return nil
	case c == '[':
		v.Options = []string{}
		if json.Unmarshal(b, &v.Options) != nil {
			return bad
		}
		return nil
	case c == '{':
		var o struct {
			Artifacts []string `json:"artifacts"`
			Secret    string   `json:"secret"`
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if d.Decode(&o) != nil || (o.Artifacts == nil) == (o.Secret == "") {
			return bad
		}
		v.Artifacts, v.Secret = o.Artifacts, o.Secret
		return nil
	}
	return bad
}

// Verb and friends make each struct an Action.

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

// Bounds that several actions share.
const (
	MaxURL        = 16 << 10 // bytes
	MaxFill       = 1 << 20  // bytes
	MaxPageString = 2048     // characters of a page-made string in a result
	maxKey        = 64
	maxRef        = 64
	maxFind       = 1024
)

func checkTarget(tab TabID, ref Ref, needRef bool) error {
	if len(tab) > maxRef {
		return Errorf(CodeInvalidInput, "tab %.40q… is not a tab ID such as \"t1\"", string(tab))
	}
	if needRef && ref == "" {
		return Errorf(CodeInvalidInput, "ref is missing; take one from a snapshot, such as \"f1e2\"")
	}
	if len(ref) > maxRef {
		return Errorf(CodeInvalidInput, "ref %.40q… is not a ref from a snapshot", string(ref))
	}
	return nil
}

func checkChoice(field, v string, choices ...string) error {
	if v == "" || slices.Contains(choices, v) {
		return nil
	}
	return Errorf(CodeInvalidInput, "%s %.40q is unknown; use one of %s", field, v, strings.Join(choices, ", "))
}

func checkRange(field string, v, lo, hi int64, unit string) error {
	if v != 0 && (v < lo || v > hi) {
		return Errorf(CodeInvalidInput, "%s %d is out of range; use %d to %d%s", field, v, lo, hi, unit)
	}
	return nil
}

func (w Waits) validate() error {
	for _, f := range []struct {
		name string
		d    *Duration
	}{{"actionable_ms", w.Actionable}, {"settle_ms", w.Settle}} {
		if f.d != nil && (*f.d < 0 || time.Duration(*f.d) > time.Minute) {
			return Errorf(CodeInvalidInput, "%s must be 0 to 60000", f.name)
		}
	}
	return nil
}

func (v Value) validate(field string) error {
	n := 0
	for _, set := range []bool{v.Text != nil, v.Checked != nil, v.Options != nil, v.Artifacts != nil, v.Secret != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		return Errorf(CodeInvalidInput, "%s needs exactly one of text, checked, options, artifacts, secret", field)
	}
	if v.Secret != "" {
		return checkID("the name of a secret", v.Secret)
	}
	size := 0
	if v.Text != nil {
		size = len(*v.Text)
		if !utf8.ValidString(*v.Text) {
			return Errorf(CodeInvalidInput, "%s is not valid UTF-8", field)
		}
	}
	for _, o := range append(slices.Clone(v.Options), v.Artifacts...) {
		size += len(o)
	}
	if size > MaxFill {
		return Errorf(CodeInvalidInput, "%s has %d bytes; at most %d are taken", field, size, MaxFill)
	}
	return nil
}

func checkURL(u string, required bool) error {
	if required && strings.TrimSpace(u) == "" {
		return Errorf(CodeInvalidInput, "url is missing; give an address, or \"back\", \"forward\" or \"reload\"")
	}
	if len(u) > MaxURL {
		return Errorf(CodeInvalidInput, "url has %d bytes; at most %d are taken", len(u), MaxURL)
	}
	return nil
}

func checkWait(wait string, timeout Duration) error {
	if err := checkChoice("wait", wait, "commit", "domcontentloaded", "load"); err != nil {
		return err
	}
	return checkRange("timeout_ms", time.Duration(timeout).Milliseconds(), 100, 300_000, " ms")
}

// Validate implements Action.
func (a Navigate) Validate() error {
	return firstError(checkTarget(a.Tab, "", false), checkURL(a.URL, true), checkWait(a.Wait, a.Timeout))
}

// Validate implements Action.
func (a Snapshot) Validate() error {
	if len(a.Find) > maxFind || len(a.Cursor) > maxFind {
		return Errorf(CodeInvalidInput, "find and cursor take at most %d bytes", maxFind)
	}
	if a.Depth < 0 {
		return Errorf(CodeInvalidInput, "depth must not be negative; 0 means all levels")
	}
	return firstError(checkTarget(a.Tab, a.Ref, false), checkRange("max_bytes", int64(a.MaxBytes), 1000, 1_000_000, " bytes"))
}

// Validate implements Action.
func (a Screenshot) Validate() error {
	if a.Ref != "" && a.FullPage {
		return Errorf(CodeInvalidInput, "a screenshot is of the full page or of a ref, not both")
	}
	return firstError(checkTarget(a.Tab, a.Ref, false),
		checkChoice("format", a.Format, "png", "jpeg", "webp"),
		checkChoice("scale", a.Scale, "css", "device"),
		checkRange("quality", int64(a.Quality), 1, 100, ""))
}

// Validate implements Action.
func (a Click) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, true), checkModifiers(a.Modifiers),
		checkChoice("button", a.Button, "left", "middle", "right"),
		checkRange("count", int64(a.Count), 1, 3, ""), a.Waits.validate())
}

// Validate implements Action.
func (a Fill) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, true), a.Value.validate("value"), a.Waits.validate())
}

// Validate implements Action.
func (a Press) Validate() error {
	return firstError(checkTarget(a.Tab, a.Ref, false), checkKey(a.Key), a.Waits.validate())
}

// Validate implements Action.
func (ListTabs) Validate() error { return nil }

// Validate implements Action.
func (a OpenTab) Validate() error {
	return firstError(checkURL(a.URL, false), checkWait(a.Wait, a.Timeout))
}

// Validate implements Action.
func (a SelectTab) Validate() error {
	if a.Tab == "" {
		return Errorf(CodeInvalidInput, "tab is missing; list the tabs to see their IDs")
	}
	return checkTarget(a.Tab, "", false)
}

// Validate implements Action.
func (a CloseTab) Validate() error { return checkTarget(a.Tab, "", false) }

// Validate implements Action.
func (a Type) Validate() error {
	if a.Secret != "" {
		if a.Text != "" {
			return Errorf(CodeInvalidInput, "type takes text or a secret, not both")
		}
		return firstError(checkTarget(a.Tab, a.Ref, false), SecretValue(a.Secret).validate("secret"), a.Waits.validate())
	}
	return firstError(checkTarget(a.Tab, a.Ref, false), TextValue(a.Text).validate("text"), a.Waits.validate())
}

// Validate implements Action.
func (a PressKey) Validate() error {
	return firstError(checkTarget(a.Tab, "", false), checkKey(a.Key), a.Waits.validate())
}

// Validate implements Action.
func (ListArtifacts) Validate() error { return nil }

// Validate implements Action.
func (a ReadArtifact) Validate() error {
	if a.Offset < 0 || a.Length < 0 {
		return Errorf(CodeInvalidInput, "offset and length must not be negative")
	}
	return firstError(checkID("artifact", a.Artifact), checkRange("length", a.Length, 1, 1<<20, " bytes"))
}

// Validate implements Action.
func (a DeleteArtifact) Validate() error { return checkID("artifact", a.Artifact) }

func checkKey(k string) error {
	if k == "" {
		return Errorf(CodeInvalidInput, "key is missing; give one such as \"Enter\" or \"Control+A\"")
	}
	if len(k) > maxKey {
		return Errorf(CodeInvalidInput, "key %.40q… is too long for a key or chord", k)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
