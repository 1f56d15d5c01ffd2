package mcp

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

// The names under which several tools are chosen at once.
const (
	ToolsetDefault = "default" // the six
	ToolsetTabs    = "tabs"    // the six, six about tabs, and the tab argument
	ToolsetFull    = "full"    // all tools there are
)

// kind is what an argument holds.
type kind string

const (
	text    kind = "string"
	number  kind = "number"
	integer kind = "integer"
	boolean kind = "boolean"
	texts   kind = "array"  // of strings
	point   kind = "object" // {"x": 1, "y": 2}
)

// parameter is one argument of a tool: its name is that of the action's field.
type parameter struct {
	name     string
	kind     kind
	about    string
	enum     []string
	required bool
}

// tool is one row of the table of tools.
type tool struct {
	verb        reins.Verb
	called      string // when it is not named by its verb
	title       string
	about       string
	parameters  []parameter
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

const refAbout = "ref from a snapshot"

var (
	tabParameter      = parameter{name: "tab", kind: text, about: "default the selected one"}
	secretParameter   = parameter{name: "secret", kind: text, about: "name of a secret to type instead; you never see it"}
	snapshotParameter = parameter{name: "snapshot", kind: boolean, about: "also return what changed"}
	waitParameter     = parameter{name: "wait", kind: text, about: "default domcontentloaded", enum: []string{"commit", "domcontentloaded", "load"}}
	timeoutParameter  = parameter{name: "timeout_ms", kind: integer, about: "default 30000"}
	keyParameter      = parameter{name: "key", kind: text, required: true, about: "Enter, Escape, Control+A, é"}
)

// tools is every tool, in the order in which they are listed.
var tools = slices.Concat(commonTools, furtherTools)

// commonTools are those of the toolset "tabs", the default six first.
var commonTools = []tool{
	{
		verb: reins.VerbNavigate, title: "Go to a page", takesTab: true, takesResult: true,
		about: "Load an address, or go back, forward, or reload. Returns the page's snapshot.",
		parameters: []parameter{
			{name: "url", kind: text, required: true, about: "address, or back, forward, reload"},
			waitParameter, timeoutParameter,
			{name: "snapshot", kind: boolean, about: "false: without the snapshot"},
		},
	},
	{
		verb: reins.VerbSnapshot, title: "Read the page", document: true, takesTab: true,
		about: "Read the page as an outline of roles, names, states and text. Elements have refs for the other tools. Prefer it to screenshots.",
		parameters: []parameter{
			{name: "ref", kind: text, about: "only this element's part"},
			{name: "find", kind: text, about: "only around this text"},
			{name: "interactive", kind: boolean, about: "only what can be acted on"},
			{name: "changes", kind: boolean, about: "only what differs from your last one"},
			{name: "depth", kind: integer, about: "levels"},
			{name: "max_bytes", kind: integer, about: "default 24000"},
			{name: "cursor", kind: text, about: "go on where a cut one stopped"},
		},
	},
	{
		verb: reins.VerbScreenshot, title: "Take a picture", document: true, takesTab: true,
		about: "Take a picture of what is visible, of the full page, or of an element.",
		parameters: []parameter{
			{name: "ref", kind: text, about: "only this element"},
			{name: "full_page", kind: boolean, about: "not only what is visible"},
			{name: "format", kind: text, about: "default png", enum: []string{"png", "jpeg", "webp"}},
			{name: "image", kind: boolean, about: "false: only store it"},
		},
	},
	{
		verb: reins.VerbClick, title: "Click", takesTab: true,
		about: "Click an element once it can be clicked. Returns what that set off.",
		parameters: []parameter{
			{name: "ref", kind: text, required: true, about: refAbout},
			{name: "button", kind: text, about: "default left", enum: []string{"left", "middle", "right"}},
			{name: "count", kind: integer, about: "2: double click"},
			{name: "modifiers", kind: texts, about: "keys held meanwhile", enum: []string{"Alt", "Control", "Meta", "Shift"}},
			{name: "position", kind: point, about: "in the element, CSS pixels"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbFill, title: "Fill in a control", takesTab: true, takesSecret: true,
		about: "Set a control to a value, replacing what it holds: text, date, number, list, check box, radio, file, rich text.",
		parameters: []parameter{
			{name: "ref", kind: text, required: true, about: refAbout},
			{name: "value", kind: text, about: "text, an option's label, true or false"},
			{name: "values", kind: texts, about: "options of a multiple list"},
			{name: "files", kind: texts, about: "artifact IDs (art_…), for a file control"},
			{name: "submit", kind: boolean, about: "press Enter afterwards"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbPress, title: "Press a key", takesTab: true,
		about: "Press a key or chord on an element or on the focus.",
		parameters: []parameter{
			keyParameter,
			{name: "ref", kind: text, about: "default the focus"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbListTabs, title: "List the tabs", tabs: true,
		about: "List the open tabs with their IDs, titles and addresses.",
	},
	{
		verb: reins.VerbOpenTab, title: "Open a tab", tabs: true, additive: true, takesResult: true,
		about: "Open a tab and select it; with an address, load that and return its snapshot.",
		parameters: []parameter{
			{name: "url", kind: text, about: "address"}, waitParameter, timeoutParameter,
			{name: "snapshot", kind: boolean, about: "false: without the snapshot"},
		},
	},
	{
		verb: reins.VerbSelectTab, title: "Select a tab", tabs: true, additive: true, idempotent: true,
		about:      "Make a tab the selected one.",
		parameters: []parameter{{name: "tab", kind: text, required: true, about: "tab ID"}},
	},
	{
		verb: reins.VerbCloseTab, title: "Close a tab", tabs: true,
		about: "Close a tab, by default the selected one.",
		parameters: []parameter{
			{name: "tab", kind: text, about: "tab ID"},
			{name: "force", kind: boolean, about: "at once, past waiting calls"},
		},
	},
	{
		verb: reins.VerbType, title: "Type text", tabs: true, takesTab: true, takesSecret: true,
		about: "Type text key by key into an element or into the focus, adding to what is there.",
		parameters: []parameter{
			{name: "text", kind: text, required: true, about: "what to type"},
			{name: "ref", kind: text, about: "default the focus"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbPressKey, title: "Press a key on the focus", tabs: true, takesTab: true,
		about:      "Press a key or chord on whatever has the focus.",
		parameters: []parameter{keyParameter, snapshotParameter},
	},
}

func (t *tool) name() string {
	if t.called != "" {
		return "browser_" + t.called
	}
	return "browser_" + string(t.verb)
}

// offer is which arguments are offered that not every list has.
type offer struct {
	tabs    bool // "tab"
	secrets bool // "secret"
}

// parameter returns the argument of that name.
func (t *tool) parameter(name string, o offer) (parameter, bool) {
	for _, p := range t.all(o) {
		if p.name == name {
			return p, true
		}
	}
	return parameter{}, false
}

func (t *tool) all(o offer) []parameter {
	all := slices.Clone(t.parameters)
	if o.secrets && t.takesSecret {
		if i := slices.IndexFunc(all, func(p parameter) bool { return p.name == "text" }); i >= 0 {
			all[i].required = false // one of the two
		}
		all = append(all, secretParameter)
	}
	if o.tabs && t.takesTab {
		all = append(all, tabParameter)
	}
	return all
}

// choose returns the tools of the named toolsets and tools in the table's
// order, and whether tabs can be named (MCP-3).
func choose(names []string) (chosen []*tool, tabs bool, err error) {
	if len(names) == 0 {
		names = []string{ToolsetDefault}
	}
	for _, n := range names {
		if !slices.Contains(Toolsets(), n) && !slices.ContainsFunc(tools, func(t tool) bool { return t.name() == n }) {
			return nil, false, reins.Errorf(reins.CodeInvalidInput,
				"toolset or tool %.64q is unknown; use %s or the name of a tool", n, strings.Join(Toolsets(), ", "))
		}
	}
	for i := range tools {
		t := &tools[i]
		in := slices.Contains(names, t.name()) || slices.Contains(names, ToolsetFull) ||
			!t.full && slices.Contains(names, ToolsetTabs) ||
			!t.full && !t.tabs && slices.Contains(names, ToolsetDefault)
		if in {
			chosen = append(chosen, t)
			tabs = tabs || t.tabs
		}
	}
	return chosen, tabs, nil
}

// Toolsets lists the names of the toolsets.
func Toolsets() []string { return []string{ToolsetDefault, ToolsetTabs, ToolsetFull} }

// Verbs returns the verbs that the named toolsets and tools need, for the
// registration of a resource that they are to act on (CAP-7). No name means the
// default toolset; an unknown one is invalid_input.
func Verbs(names []string) ([]reins.Verb, error) {
	chosen, _, err := choose(names)
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

// description is the tool as a client is told of it (MCP-4).
func (t *tool) description(o offer) *sdk.Tool {
	destructive := !t.additive && !t.verb.ReadOnly()
	out := &sdk.Tool{
		Name:        t.name(),
		Title:       t.title,
		Description: t.about,
		InputSchema: t.inputSchema(o),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint:    t.verb.ReadOnly(),
			DestructiveHint: &destructive,
			IdempotentHint:  t.idempotent || t.verb.ReadOnly(),
		},
	}
	if !t.document {
		out.OutputSchema = t.outputSchema()
	}
	return out
}

// schema is the part of JSON Schema that common clients and model services
// all take: no unions, references, lists of types or empty lists.
type schema struct {
	Type        kind       `json:"type"`
	Description string     `json:"description,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Items       *schema    `json:"items,omitempty"`
	Properties  properties `json:"properties,omitzero"`
	Required    []string   `json:"required,omitempty"`
	Additional  *bool      `json:"additionalProperties,omitempty"`
}

// properties keep their order, which is the order in which a model reads them.
type properties []property

type property struct {
	name string
	schema
}

// MarshalJSON writes an object.
func (p properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, each := range p {
		if i > 0 {
			out = append(out, ',')
		}
		body, err := json.Marshal(each.schema)
		if err != nil {
			return nil, err
		}
		out = append(out, '"')
		out = append(out, each.name...)
		out = append(out, '"', ':')
		out = append(out, body...)
	}
	return append(out, '}'), nil
}

func (t *tool) inputSchema(o offer) schema {
	closed := false
	out := schema{Type: "object", Properties: properties{}, Additional: &closed}
	for _, p := range t.all(o) {
		s := schema{Type: p.kind, Description: p.about, Enum: p.enum}
		switch p.kind {
		case texts:
			s.Items, s.Enum = &schema{Type: text, Enum: p.enum}, nil
		case point:
			s.Properties = properties{{"x", schema{Type: number, Description: "from the left"}}, {"y", schema{Type: number, Description: "from the top"}}}
			s.Required = []string{"x", "y"}
		}
		out.Properties = append(out.Properties, property{p.name, s})
		if p.required {
			out.Required = append(out.Required, p.name)
		}
	}
	return out
}

// outputSchema says what the structured content holds, without demanding any of
// it: a failure has other fields.
func (t *tool) outputSchema() schema {
	if t.full { // as with the others; to say so again would cost each client
		return schema{Type: "object"}
	}
	out := schema{Type: "object", Properties: properties{
		{"did", schema{Type: text}},
		{"page", schema{Type: "object"}},
	}}
	if !t.verb.ReadOnly() {
		out.Properties = append(out.Properties, property{"changes", schema{Type: "object"}})
	}
	if t.verb == reins.VerbListTabs {
		out.Properties = append(out.Properties, property{"tabs", schema{Type: "array", Items: &schema{Type: "object"}}})
	}
	if _, has := t.parameter("snapshot", offer{}); has {
		out.Properties = append(out.Properties, property{"page_content", schema{Type: text}})
	}
	return out
}
