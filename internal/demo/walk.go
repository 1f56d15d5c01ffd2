package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

// Tour is a walk through a site by a client. Out and both others are required.
type Tour struct {
	Site   *Site
	Client *sdk.ClientSession
	Out    io.Writer
	Colour bool // for a terminal
	// Pace is how long it stops after each call, for people who watch.
	Pace time.Duration
	// Person has it ask for a person at the sign-in, for that long at most; then, or
	// when nobody signed in, it goes on by itself. 0 asks for nobody.
	Person time.Duration

	page  seen
	took  map[string][]time.Duration // by tool
	first time.Duration              // the first call, which waits for Chromium
	calls int
	bytes int // of text that the agent read
}

// act is one call and what has to come of it.
type act struct {
	tool  string
	what  string // for people
	role  string // with name: the element to act on
	name  string
	extra map[string]any
	// sees is text that the page must show afterwards; says is text that the
	// answer must hold. One of them is what the walk prints.
	sees, says string
	fails      bool // the call is meant to be refused
	// unless is text on the page that makes the call needless.
	unless string
	before string // is printed before a call that takes long
}

// Walk goes through the site, printing each call as it is done, and returns at
// the first that did not do what it was for.
func (t *Tour) Walk(ctx context.Context) error {
	t.took = map[string][]time.Duration{}
	for _, chapter := range t.chapters() {
		t.heading(chapter.title)
		for _, a := range chapter.acts {
			if _, needless := t.page.has(a.unless); needless && a.unless != "" {
				continue
			}
			if err := t.do(ctx, a); err != nil {
				return err
			}
			pause(ctx, t.Pace)
		}
	}
	if n := t.Site.Orders(); n != 1 {
		return reins.Errorf(reins.CodeToolFailed, "the demo's shop got %d orders, not 1", n)
	}
	return nil
}

type chapter struct {
	title string
	acts  []act
}

func (t *Tour) chapters() []chapter {
	return []chapter{
		{"Sign in, wrongly at first", t.signIn()},
		{"A table that loads, sorts and filters by script", []act{
			{tool: "fill", role: "searchbox", name: "Filter", extra: map[string]any{"value": "rope"}, sees: "4 things"},
			{tool: "click", role: "button", name: "Price", sees: "Heaving line"},
			{tool: "click", role: "button", name: "Add Heaving line", sees: "Order (1)"},
			{tool: "fill", role: "searchbox", name: "Filter", extra: map[string]any{"value": "signal"}, sees: "One thing"},
			{tool: "click", role: "button", name: "Add Signal torch", sees: "Order (2)"},
			{tool: "click", role: "link", name: "Order (2)", sees: `heading "Order"`},
		}},
		{"A control of every kind", []act{
			fill("Ship", "Vega"),
			fill("Telephone", "+47 55 00 00 00"),
			{tool: "fill", role: "spinbutton", name: "Crew", extra: map[string]any{"value": "7"}},
			t.dated("Day", "2027-03-04"),
			t.dated("Hour", "06:30"),
			t.dated("Season from", "2027-04"),
			{tool: "fill", role: "combobox", name: "Pier", extra: map[string]any{"value": "South pier"}},
			{tool: "fill", role: "listbox", name: "Marks", extra: map[string]any{"values": []string{"Fragile", "Heavy"}}},
			t.dated("Flag colour", "#0f5b78"),
			{tool: "fill", role: "slider", name: "Haste", extra: map[string]any{"value": "8"}},
			{tool: "fill", role: "combobox", name: "Home port", extra: map[string]any{"value": "Bergen"}},
			{tool: "fill", role: "radio", name: "Card", extra: map[string]any{"value": "true"}},
			{tool: "fill", role: "checkbox", name: "The quay rules are known aboard", extra: map[string]any{"value": "true"}},
			{tool: "fill", role: "switch", name: "Deliver by night", extra: map[string]any{"value": "true"}},
			fill("Notes", "Ring twice.\nThen wait."),
			fill("Greeting card", "Fair winds, Ada"),
		}},
		{"A frame of another site, and a dialog that asks once more", []act{
			{tool: "click", role: "button", name: "Ingrid, morning tide", sees: "Pilot booked: Ingrid, morning tide"},
			{tool: "click", role: "button", name: "Send the order", says: "Send this order to the quay?"},
			{tool: "snapshot", what: "the dialog", sees: `dialog "Send this order to the quay?"`},
			{tool: "click", role: "button", name: "OK", sees: "Order 1001 is on its way"},
			{tool: "snapshot", what: "the whole page", sees: "Fair winds, Ada", says: "definition: by night"},
			{tool: "click", role: "link", name: "Receipt", says: `Downloaded "receipt.csv"`},
			{tool: "screenshot", what: "what a person would see", says: "Picture of"},
		}},
		{"What it may not do", []act{
			{tool: "navigate", what: "http://169.254.169.254/ (cloud credentials)", extra: map[string]any{"url": "http://169.254.169.254/latest/meta-data/"}, fails: true},
			{tool: "navigate", what: "file:///etc/passwd", extra: map[string]any{"url": "file:///etc/passwd"}, fails: true},
		}},
	}
}

func (t *Tour) signIn() []act {
	acts := []act{
		{tool: "navigate", what: t.Site.URL(), extra: map[string]any{"url": t.Site.URL()}, sees: `heading "Sign in"`},
		fill("Email", Email),
		fill("Password", "seagull"),
		{tool: "click", role: "button", name: "Sign in", sees: "That password does not fit"},
	}
	goods := `heading "Goods"`
	if t.Person > 0 {
		acts = append(acts,
			act{tool: "request_human", what: "you: sign in, or let it go on", before: "The agent asks for you now: open the link, sign in, press Done.", extra: map[string]any{
				"reason": "Please sign in to the shop: the password is " + Password + ". Then press Done.", "timeout_ms": t.Person.Milliseconds()}},
			act{tool: "snapshot", what: "what you left"})
	}
	again := fill("Password", Password)
	again.unless = goods
	return append(acts, again,
		act{tool: "press", what: "Enter in the password", role: "textbox", name: "Password", extra: map[string]any{"key": "Enter"}, sees: goods, unless: goods},
		act{tool: "navigate", what: "reload", extra: map[string]any{"url": "reload"}, sees: goods})
}

func fill(name, value string) act {
	return act{tool: "fill", role: "textbox", name: name, extra: map[string]any{"value": value}}
}

// dated is a control whose role depends on how the browser shows it.
func (t *Tour) dated(name, value string) act {
	return act{tool: "fill", name: name, extra: map[string]any{"value": value}}
}

// do makes one call, checks what came of it, and prints it.
func (t *Tour) do(ctx context.Context, a act) error {
	arguments := map[string]any{}
	for k, v := range a.extra {
		arguments[k] = v
	}
	if a.name != "" {
		ref, err := t.page.find(a.role, a.name)
		if err != nil {
			return t.broken(a, err)
		}
		arguments["ref"] = ref
	}
	if a.sees != "" && a.tool != "navigate" && a.tool != "snapshot" {
		arguments["snapshot"] = true
	}
	if a.before != "" {
		t.printf("      %s\n", t.paint("33", a.before))
	}
	began := time.Now()
	res, err := t.Client.CallTool(ctx, &sdk.CallToolParams{Name: "browser_" + a.tool, Arguments: arguments})
	took := time.Since(began)
	if err != nil {
		return t.broken(a, err)
	}
	text := t.read(res)
	if err := t.look(ctx, a, res.IsError); err != nil {
		return t.broken(a, err)
	}
	switch {
	case t.first == 0:
		t.first = took
	case !a.fails: // a refusal says nothing about speed
		t.took[a.tool] = append(t.took[a.tool], took)
	}
	gist, err := t.judge(a, res.IsError, text)
	if err != nil {
		return t.broken(a, err)
	}
	t.row(a, took, gist)
	return nil
}

// patience is how long the walk looks again for what a call should bring.
const patience = 5 * time.Second

// look takes snapshots until the page shows what the call was to bring: what
// answers a dialog may lead to another page after the answer.
func (t *Tour) look(ctx context.Context, a act, failed bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if _, ok := t.page.has(a.sees); ok || a.sees == "" || failed {
			return nil
		}
		res, err := t.Client.CallTool(ctx, &sdk.CallToolParams{Name: "browser_snapshot", Arguments: map[string]any{}})
		if ctx.Err() != nil {
			return nil // judge says what is missing
		}
		if err != nil {
			return err
		}
		t.read(res)
		pause(ctx, 50*time.Millisecond)
	}
}

// read takes in the answer's text.
func (t *Tour) read(res *sdk.CallToolResult) string {
	t.calls++
	var all strings.Builder
	for _, c := range res.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			all.WriteString(text.Text)
		}
	}
	text := all.String()
	t.bytes += len(text)
	if _, content, ok := strings.Cut(text, "```yaml\n"); ok {
		content, _, _ = strings.Cut(content, "\n```")
		t.page.read(content, strings.Contains(text, "\nPage content ("))
	}
	return text
}

// judge says what of the answer is worth printing, or why it is not what the call
// was for.
func (t *Tour) judge(a act, failed bool, text string) (string, error) {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case a.fails && !failed:
		return "", fmt.Errorf("it was not refused: %s", first)
	case a.fails:
		return "refused: " + first, nil
	case failed:
		return "", errors.New(text)
	case a.says != "" && !strings.Contains(text, a.says):
		return "", fmt.Errorf("the answer does not say %q: %s", a.says, text)
	case a.says != "":
		return lineWith(text, a.says), nil
	case a.sees == "":
		return lineWith(text, "It now holds"), nil
	}
	line, ok := t.page.has(a.sees)
	if !ok {
		return "", fmt.Errorf("the page does not show %q; it shows:\n%s", a.sees, &t.page)
	}
	if a.tool == "navigate" || a.tool == "snapshot" {
		return fmt.Sprintf("%s … %d refs, %s", line, t.page.actionable(), size(len(text))), nil
	}
	return line, nil
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	first, _, _ := strings.Cut(text, "\n")
	return first
}

func (t *Tour) broken(a act, err error) error {
	return reins.Errorf(reins.CodeToolFailed, "the walk stopped at browser_%s %s: %w", a.tool, a.title(), err)
}

func (a act) title() string {
	if a.what != "" {
		return a.what
	}
	switch v := a.extra["value"].(type) {
	case string:
		return a.name + " ← " + strings.ReplaceAll(v, "\n", " ")
	}
	if v, ok := a.extra["values"].([]string); ok {
		return a.name + " ← " + strings.Join(v, ", ")
	}
	return strings.TrimSpace(a.role + " " + a.name)
}
