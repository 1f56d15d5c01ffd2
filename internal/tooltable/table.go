package tooltable

import (
	"slices"

	"github.com/reins-browser/reins"
)

const refAbout = "ref from a snapshot"

var (
	tabParameter      = Parameter{Name: "tab", Kind: Text, About: "default the selected one"}
	secretParameter   = Parameter{Name: "secret", Kind: Text, About: "name of a secret to type instead; you never see it"}
	snapshotParameter = Parameter{Name: "snapshot", Kind: Boolean, About: "also return what changed"}
	waitParameter     = Parameter{Name: "wait", Kind: Text, About: "default domcontentloaded", Enum: []string{"commit", "domcontentloaded", "load"}}
	timeoutParameter  = Parameter{Name: "timeout_ms", Kind: Integer, About: "default 30000"}
	keyParameter      = Parameter{Name: "key", Kind: Text, Required: true, About: "Enter, Escape, Control+A, é"}
)

// tools is every tool, in the order in which they are listed.
var tools = slices.Concat(commonTools, furtherTools)

// commonTools are those of the toolset "tabs", the default six first.
var commonTools = []Tool{
	{
		verb: reins.VerbNavigate, title: "Go to a page", takesTab: true, takesResult: true,
		about: "Load an address, or go back, forward, or reload. Returns the page's snapshot.",
		parameters: []Parameter{
			{Name: "url", Kind: Text, Required: true, About: "address, or back, forward, reload"},
			waitParameter, timeoutParameter,
			{Name: "snapshot", Kind: Boolean, About: "false: without the snapshot"},
		},
	},
	{
		verb: reins.VerbSnapshot, title: "Read the page", document: true, takesTab: true,
		about: "Read the page as an outline of roles, names, states and text. Elements have refs for the other tools. Prefer it to screenshots.",
		parameters: []Parameter{
			{Name: "ref", Kind: Text, About: "only this element's part"},
			{Name: "find", Kind: Text, About: "only around this text"},
			{Name: "interactive", Kind: Boolean, About: "only what can be acted on"},
			{Name: "changes", Kind: Boolean, About: "only what differs from your last one"},
			{Name: "depth", Kind: Integer, About: "levels"},
			{Name: "max_bytes", Kind: Integer, About: "default 24000"},
			{Name: "cursor", Kind: Text, About: "go on where a cut one stopped"},
		},
	},
	{
		verb: reins.VerbScreenshot, title: "Take a picture", document: true, takesTab: true,
		about: "Take a picture of what is visible, of the full page, or of an element.",
		parameters: []Parameter{
			{Name: "ref", Kind: Text, About: "only this element"},
			{Name: "full_page", Kind: Boolean, About: "not only what is visible"},
			{Name: "format", Kind: Text, About: "default png", Enum: []string{"png", "jpeg", "webp"}},
			{Name: "image", Kind: Boolean, About: "false: only store it"},
		},
	},
	{
		verb: reins.VerbClick, title: "Click", takesTab: true,
		about: "Click an element once it can be clicked. Returns what that set off.",
		parameters: []Parameter{
			{Name: "ref", Kind: Text, Required: true, About: refAbout},
			{Name: "button", Kind: Text, About: "default left", Enum: []string{"left", "middle", "right"}},
			{Name: "count", Kind: Integer, About: "2: double click"},
			{Name: "modifiers", Kind: Texts, About: "keys held meanwhile", Enum: []string{"Alt", "Control", "Meta", "Shift"}},
			{Name: "position", Kind: Point, About: "in the element, CSS pixels"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbFill, title: "Fill in a control", takesTab: true, takesSecret: true,
		about: "Set a control to a value, replacing what it holds: text, date, number, list, check box, radio, file, rich text.",
		parameters: []Parameter{
			{Name: "ref", Kind: Text, Required: true, About: refAbout},
			{Name: "value", Kind: Text, About: "text, an option's label, true or false"},
			{Name: "values", Kind: Texts, About: "options of a multiple list"},
			{Name: "files", Kind: Texts, About: "artifact IDs (art_…), for a file control"},
			{Name: "submit", Kind: Boolean, About: "press Enter afterwards"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbPress, title: "Press a key", takesTab: true,
		about: "Press a key or chord on an element or on the focus.",
		parameters: []Parameter{
			keyParameter,
			{Name: "ref", Kind: Text, About: "default the focus"},
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
		parameters: []Parameter{
			{Name: "url", Kind: Text, About: "address"}, waitParameter, timeoutParameter,
			{Name: "snapshot", Kind: Boolean, About: "false: without the snapshot"},
		},
	},
	{
		verb: reins.VerbSelectTab, title: "Select a tab", tabs: true, additive: true, idempotent: true,
		about:      "Make a tab the selected one.",
		parameters: []Parameter{{Name: "tab", Kind: Text, Required: true, About: "tab ID"}},
	},
	{
		verb: reins.VerbCloseTab, title: "Close a tab", tabs: true,
		about: "Close a tab, by default the selected one.",
		parameters: []Parameter{
			{Name: "tab", Kind: Text, About: "tab ID"},
			{Name: "force", Kind: Boolean, About: "at once, past waiting calls"},
		},
	},
	{
		verb: reins.VerbType, title: "Type text", tabs: true, takesTab: true, takesSecret: true,
		about: "Type text key by key into an element or into the focus, adding to what is there.",
		parameters: []Parameter{
			{Name: "text", Kind: Text, Required: true, About: "what to type"},
			{Name: "ref", Kind: Text, About: "default the focus"},
			snapshotParameter,
		},
	},
	{
		verb: reins.VerbPressKey, title: "Press a key on the focus", tabs: true, takesTab: true,
		about:      "Press a key or chord on whatever has the focus.",
		parameters: []Parameter{keyParameter, snapshotParameter},
	},
}
