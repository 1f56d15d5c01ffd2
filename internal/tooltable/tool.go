package tooltable

import (
	"slices"
	"strings"

	"github.com/reins-browser/reins"
)

// The names under which several tools are chosen at once.
const (
	ToolsetDefault = "default" // the six
	ToolsetTabs    = "tabs"    // the six, six about tabs, and the tab argument
	ToolsetFull    = "full"    // all tools there are
)

// Toolsets lists the names of the toolsets.
func Toolsets() []string { return []string{ToolsetDefault, ToolsetTabs, ToolsetFull} }

// Kind is what an argument holds, as JSON Schema names it.
type Kind string

// The kinds.
const (
	Text    Kind = "string"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Texts   Kind = "array"  // of strings
	Point   Kind = "object" // {"x": 1, "y": 2}
)

// Parameter is one argument of a tool: its name is that of the action's field.
type Parameter struct {
	Name     string
	Kind     Kind
	About    string
	Enum     []string
	Required bool
}

// Tool is one row of the table of tools.
type Tool struct {
	verb        reins.Verb
	called      string // when it is not named by its verb
	title       string
	about       string
	parameters  []Parameter
	document    bool // the result is a text or picture, without a structured form
	idempotent  bool
	additive    bool // not destructive
	tabs        bool // belongs to the toolset of that name
	full        bool // likewise
	people      bool // offered only where people watch
	takesSecret bool // takes the secret argument where that is offered
	takesTab    bool // takes the tab argument where that is offered
	takesResult bool // "snapshot" is the door's own: read the page afterwards
}

// Verb is the verb that the tool asks for.
func (t *Tool) Verb() reins.Verb { return t.verb }

// Short is the tool's name without what all have before it: "click".
func (t *Tool) Short() string {
	if t.called != "" {
		return t.called
	}
	return string(t.verb)
}

// Name is what models call it by: "browser_click".
func (t *Tool) Name() string { return "browser_" + t.Short() }

// Title is a name for people.
func (t *Tool) Title() string { return t.title }

// About says in a sentence or two what the tool does and returns.
func (t *Tool) About() string { return t.about }

// People reports whether a person answers it, which takes long.
func (t *Tool) People() bool { return t.people }

// Document reports whether its answers are a text or a picture without a
// structured form: where one is given, some clients drop the others.
func (t *Tool) Document() bool { return t.document }

// Hints are what a client may go by when it asks its person for permission.
type Hints struct{ ReadOnly, Destructive, Idempotent bool }

// Hints of the tool (MCP-4).
func (t *Tool) Hints() Hints {
	reads := t.verb.ReadOnly()
	return Hints{ReadOnly: reads, Destructive: !t.additive && !reads, Idempotent: t.idempotent || reads}
}

// Offer is what is offered, and said, in one place and not in another.
type Offer struct {
	Tabs    bool   // the argument "tab"
	Secrets bool   // the argument "secret"
	Opens   string // how whoever runs it lets the browser reach more: "reins mcp --allow"
}

// Parameters are the arguments that the tool takes, in order.
func (t *Tool) Parameters(o Offer) []Parameter {
	all := slices.Clone(t.parameters)
	if o.Secrets && t.takesSecret {
		if i := slices.IndexFunc(all, func(p Parameter) bool { return p.Name == "text" }); i >= 0 {
			all[i].Required = false // one of the two
		}
		all = append(all, secretParameter)
	}
	if o.Tabs && t.takesTab {
		all = append(all, tabParameter)
	}
	return all
}

// parameter returns the argument of that name.
func (t *Tool) parameter(name string, o Offer) (Parameter, bool) {
	for _, p := range t.Parameters(o) {
		if p.Name == name {
			return p, true
		}
	}
	return Parameter{}, false
}

// Choice says which tools are wanted.
type Choice struct {
	// Names are of toolsets and single tools; none is the default toolset.
	Names []string
	// Secrets offers the argument "secret" (ACT-11).
	Secrets bool
	// People offers the tools that a person answers (CTL-8).
	People bool
	// SnapshotBytes is the size of snapshots that name none; 0 is the driver's.
	SnapshotBytes int
	// Opens is Offer's.
	Opens string
}

// List is tools as they are offered to one kind of client.
type List struct {
	Tools []*Tool // in the table's order
	Offer
	bytes int
}

// Choose makes the list of a choice (MCP-3); a name that is unknown, or of a tool
// that a person answers where there is none, is invalid_input.
func Choose(c Choice) (List, error) {
	if err := (reins.Snapshot{MaxBytes: c.SnapshotBytes}).Validate(); err != nil {
		return List{}, err
	}
	l := List{Offer: Offer{Secrets: c.Secrets, Opens: c.Opens}, bytes: c.SnapshotBytes}
	chosen, err := wanted(c.Names)
	if err != nil {
		return List{}, err
	}
	for _, t := range chosen {
		switch {
		case !t.people || c.People:
			l.Tools = append(l.Tools, t)
			l.Tabs = l.Tabs || t.tabs
		case slices.Contains(c.Names, t.Name()):
			return List{}, reins.Errorf(reins.CodeInvalidInput, "a tool that asks for a person was named, and nobody watches this runtime; leave it out")
		}
	}
	return l, nil
}

// Tool returns the tool of that name, with or without "browser_", or nil.
func (l List) Tool(name string) *Tool {
	for _, t := range l.Tools {
		if t.Name() == name || t.Short() == name {
			return t
		}
	}
	return nil
}

// wanted returns the tools of the named toolsets and tools in the table's order.
func wanted(names []string) (chosen []*Tool, err error) {
	if len(names) == 0 {
		names = []string{ToolsetDefault}
	}
	for _, n := range names {
		if !slices.Contains(Toolsets(), n) && !slices.ContainsFunc(tools, func(t Tool) bool { return t.Name() == n }) {
			return nil, reins.Errorf(reins.CodeInvalidInput,
				"toolset or tool %.64q is unknown; use %s or the name of a tool", n, strings.Join(Toolsets(), ", "))
		}
	}
	for i := range tools {
		t := &tools[i]
		if slices.Contains(names, t.Name()) || slices.Contains(names, ToolsetFull) ||
			!t.full && slices.Contains(names, ToolsetTabs) ||
			!t.full && !t.tabs && slices.Contains(names, ToolsetDefault) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// Verbs returns the verbs that the named toolsets and tools need, for the
// registration of a resource that they are to act on (CAP-7). No name means the
// default toolset; an unknown one is invalid_input.
func Verbs(names []string) ([]reins.Verb, error) {
	chosen, err := wanted(names)
	if err != nil {
		return nil, err
	}
	var verbs []reins.Verb
	for _, t := range chosen {
		verbs = append(verbs, t.verb)
		if t.takesResult {
			verbs = append(verbs, reins.VerbSnapshot)
		}
		if t.called == "handle_dialog" {
			verbs = append(verbs, reins.VerbFill) // of a prompt
		}
	}
	slices.Sort(verbs)
	return slices.Compact(verbs), nil
}
