package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/tooltable"
)

// optional are arguments that a shell takes in their place although a tool can do
// without them.
var optional = map[string]string{
	"browser_fill": "value", "browser_type": "text", "browser_open_tab": "url", "browser_close_tab": "tab",
}

// actExamples are examples of the verbs.
var actExamples = map[string]string{
	"browser_navigate":      "  reins act navigate shop.test\n  reins act navigate back --snapshot=false",
	"browser_snapshot":      "  reins act snapshot\n  reins act snapshot --find Total --depth 2",
	"browser_screenshot":    "  reins act screenshot --full-page --out page.png",
	"browser_click":         "  reins act click f1e5 --snapshot\n  reins act click f1e5 --count 2 --modifiers Shift",
	"browser_fill":          "  reins act fill f1e3 ada@example.com --submit\n  reins act fill f1e4 true\n  reins act fill f1e6 --values Red --values Blue",
	"browser_press":         "  reins act press Enter\n  reins act press Control+A --ref f1e3",
	"browser_list_tabs":     "  reins act list-tabs",
	"browser_open_tab":      "  reins act open-tab shop.test",
	"browser_select_tab":    "  reins act select-tab t2",
	"browser_close_tab":     "  reins act close-tab t2 --force",
	"browser_type":          "  reins act type \"good morning\" --ref f1e3",
	"browser_press_key":     "  reins act press-key Escape",
	"browser_select_option": "  reins act select-option f1e6 Red Blue",
	"browser_hover":         "  reins act hover f1e7 --snapshot",
	"browser_drag":          "  reins act drag f1e7 --to f1e9\n  reins act drag f1e7 --by 40,0",
	"browser_scroll":        "  reins act scroll --y 600\n  reins act scroll --to bottom",
	"browser_upload":        "  reins act upload f1e8 art_…",
	"browser_wait_for":      "  reins act wait-for --text \"Order placed\"\n  reins act wait-for --ref f1e5 --state enabled",
	"browser_read":          "  reins act read\n  reins act read --max-bytes 100000 > page.md",
	"browser_handle_dialog": "  reins act handle-dialog\n  reins act handle-dialog --accept=false",
	"browser_console":       "  reins act console --level debug",
	"browser_network":       "  reins act network --failed",
	"browser_pdf":           "  reins act pdf --landscape --out page.pdf",
	"browser_request_human": "  reins act request-human \"enter the code from the text message\"",
}

// actArguments is a tool's arguments as a command line has them: what is required in
// its place, the rest as flags.
type actArguments struct {
	tool   *tooltable.Tool
	places []tooltable.Parameter
	flags  []tooltable.Parameter
}

func newActArguments(t *tooltable.Tool, o tooltable.Offer) actArguments {
	a := actArguments{tool: t}
	for _, p := range t.Parameters(o) {
		switch {
		case p.Required || optional[t.Name()] == p.Name:
			a.places = append(a.places, p)
		case p.Name != "image" && p.Name != "changes": // a shell shows no picture, and has seen nothing before
			a.flags = append(a.flags, p)
		}
	}
	return a
}

func (a actArguments) use() string {
	out := dashed(a.tool.Short())
	for _, p := range a.places {
		name := strings.ToUpper(dashed(p.Name))
		switch {
		case p.Kind == tooltable.Texts:
			name = strings.TrimSuffix(name, "S") + "..."
		case !p.Required:
			name = "[" + name + "]"
		}
		out += " " + name
	}
	return out
}

func (a actArguments) aliases() []string {
	if short := a.tool.Short(); dashed(short) != short {
		return []string{short}
	}
	return nil
}

func (a actArguments) long() string {
	out := a.tool.About() + "\n"
	for _, p := range a.places {
		out += fmt.Sprintf("\n  %-8s %s", strings.ToUpper(dashed(p.Name)), p.About)
	}
	return strings.TrimSuffix(out, "\n")
}

// most is how many arguments are taken at most; -1 is any number.
func (a actArguments) most() int {
	if n := len(a.places); n > 0 && a.places[n-1].Kind == tooltable.Texts {
		return -1
	}
	return len(a.places)
}

func (a actArguments) count(cmd *cobra.Command, arguments []string) error {
	least := 0
	for _, p := range a.places {
		if p.Required {
			least++
		}
	}
	if n := len(arguments); n < least || a.most() >= 0 && n > a.most() {
		return usage(cmd, fmt.Errorf("%s takes %s, not %d", cmd.CommandPath(), counted(least, a.most()), n))
	}
	return nil
}

// add adds the flags.
func (a actArguments) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, p := range a.flags {
		name, about := dashed(p.Name), p.About
		if len(p.Enum) > 0 {
			about += ": " + strings.Join(p.Enum, ", ")
		}
		switch p.Kind {
		case tooltable.Boolean:
			left, without := strings.CutPrefix(about, "false: ")
			if without {
				about = "=false: " + left
			}
			flags.Bool(name, without, about)
		case tooltable.Integer:
			flags.Int64(name, 0, about)
		case tooltable.Number:
			flags.Float64(name, 0, about)
		case tooltable.Texts:
			flags.Var(&textFlag{kind: "text", list: true}, name, about+" (repeatable)")
		case tooltable.Point:
			flags.Var(&textFlag{kind: "X,Y"}, name, about)
		default:
			flags.Var(&textFlag{kind: "text"}, name, about)
		}
		if len(p.Enum) > 0 {
			chosen(cmd, name, p.Enum...)
		}
	}
}

// object is the arguments as a tool takes them.
func (a actArguments) object(cmd *cobra.Command, arguments []string) ([]byte, error) {
	given := map[string]any{}
	for i, p := range a.places {
		switch {
		case i >= len(arguments):
		case p.Kind == tooltable.Texts:
			given[p.Name] = arguments[i:]
		default:
			given[p.Name] = arguments[i]
		}
	}
	for _, p := range a.flags {
		flag := cmd.Flags().Lookup(dashed(p.Name))
		if !flag.Changed {
			continue
		}
		switch p.Kind {
		case tooltable.Texts:
			given[p.Name] = flag.Value.(*textFlag).given
		case tooltable.Point:
			at, err := parsePoint(flag.Name, flag.Value.String())
			if err != nil {
				return nil, err
			}
			given[p.Name] = at
		default:
			given[p.Name] = flag.Value.String() // tools take values in quotes
		}
	}
	if a.tool.Verb() == reins.VerbScreenshot {
		given["image"] = false
	}
	body, err := json.Marshal(given)
	if err != nil {
		return nil, reins.AsError(err)
	}
	return body, nil
}

// textFlag is a flag of one text, or of a list of them, with a name for help.
type textFlag struct {
	kind  string
	list  bool
	given []string
}

// Set implements pflag.Value.
func (f *textFlag) Set(s string) error {
	if !f.list {
		f.given = nil
	}
	f.given = append(f.given, s)
	return nil
}

// String implements pflag.Value.
func (f *textFlag) String() string { return strings.Join(f.given, ", ") }

// Type implements pflag.Value.
func (f *textFlag) Type() string { return f.kind }

func parsePoint(flag, s string) (reins.Point, error) {
	x, y, ok := strings.Cut(s, ",")
	at := reins.Point{}
	var errX, errY error
	at.X, errX = strconv.ParseFloat(strings.TrimSpace(x), 64)
	at.Y, errY = strconv.ParseFloat(strings.TrimSpace(y), 64)
	if !ok || errX != nil || errY != nil {
		return at, reins.Errorf(reins.CodeInvalidInput, "--%s %.40q is no X,Y such as 12,5.5", flag, s)
	}
	return at, nil
}

// named is err with the flags that a shell has in the place of a tool's arguments.
func (a actArguments) named(err error) error {
	if err == nil {
		return nil
	}
	flags := map[string]string{a.tool.Name(): "reins act " + dashed(a.tool.Short())}
	for _, p := range slices.Concat(a.flags, a.places) {
		flags[p.Name] = "--" + dashed(p.Name)
	}
	for _, p := range a.places {
		flags[p.Name] = strings.ToUpper(dashed(p.Name))
	}
	return asFlags(err, flags)
}
