package agents

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// Tools is all that an agent may use. Each call returns the text that a model
// would read. An error that is a [Refusal] is the tool's; any other means that
// there are no tools any more.
type Tools interface {
	Navigate(ctx context.Context, address string) (string, error)
	Snapshot(ctx context.Context, how Look) (string, error)
	Click(ctx context.Context, ref string, how Click) (string, error)
	Fill(ctx context.Context, ref string, what Fill) (string, error)
	Press(ctx context.Context, ref, key string) (string, error)
	Type(ctx context.Context, ref, text string) (string, error)
	Drag(ctx context.Context, ref, to string) (string, error)
	Tabs(ctx context.Context, verb, tab string) (string, error) // "list", "select", "close"
}

// Look narrows a snapshot.
type Look struct {
	Ref         string
	Find        string
	Cursor      string
	Interactive bool
}

// Click says how to click; zero is once with the left button. See asks for what
// changed in the same answer.
type Click struct {
	See       bool
	Count     int
	Button    string
	Modifiers []string
	At        *Point // in the element, CSS pixels; nil is its middle
}

// Point is a place in an element.
type Point struct{ X, Y int }

// Fill is a value for a control: exactly one of the first three.
type Fill struct {
	Value  string
	Values []string
	Files  []string
	Submit bool
	See    bool
}

// Refusal is a tool's own error: what a model would read, and go on from.
type Refusal struct{ Text string }

// Error is the text's first line.
func (r *Refusal) Error() string {
	first, _, _ := strings.Cut(r.Text, "\n")
	return first
}

// Agent works on one task. Its methods do nothing once something went wrong.
type Agent struct {
	tools Tools
	ctx   context.Context // of the one run that the agent exists for
	task  string
	page  *reading.Page // as last read
	said  string        // the last answer
	err   error
}

// New returns an agent that is told what to do and is shown the page as it was
// when it came there.
func New(ctx context.Context, tools Tools, task, page string) *Agent {
	return &Agent{tools: tools, ctx: ctx, task: task, page: reading.Parse(page), said: page}
}

// Err is the first thing that went wrong.
func (a *Agent) Err() error { return a.err }

// Fail gives up, saying why.
func (a *Agent) Fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

var inQuotes = regexp.MustCompile(`"([^"]*)"`)

// Quotes are the words in double quotes in the task, in order.
func (a *Agent) Quotes() []string {
	var out []string
	for _, m := range inQuotes.FindAllStringSubmatch(a.task, -1) {
		out = append(out, m[1])
	}
	return out
}

// Q is one of the words in double quotes in the task.
func (a *Agent) Q(i int) string {
	if q := a.Quotes(); i < len(q) {
		return q[i]
	}
	a.Fail("the task has no quote %d: %s", i, a.task)
	return ""
}

// Says reports whether the task contains words.
func (a *Agent) Says(words string) bool { return strings.Contains(a.task, words) }

// take keeps an answer, and notes what went wrong.
func (a *Agent) take(doing, answer string, err error) {
	a.said = answer
	if err != nil {
		a.err = fmt.Errorf("%s: %w", doing, err)
	}
}

// Look reads the whole page.
func (a *Agent) Look() { a.LookAt(Look{}) }

// LookAt reads a part of the page, which takes the place of what was known.
func (a *Agent) LookAt(how Look) {
	if a.err != nil {
		return
	}
	answer, err := a.tools.Snapshot(a.ctx, how)
	a.take("looking", answer, err)
	if a.err == nil {
		a.page = reading.Parse(answer)
	}
}

// Root is the outline as last read.
func (a *Agent) Root() *reading.Node { return a.page.Root }

// Said is the last answer of a tool.
func (a *Agent) Said() string { return a.said }

// News is what the last answer said of the page: after an action that asked to
// see, what changed.
func (a *Agent) News() *reading.Node { return reading.Parse(a.said).Root }

// Find returns the first node of the page that fits. It fails when there is
// none.
func (a *Agent) Find(m reading.Match) *reading.Node { return a.FindIn(a.page.Root, m) }

// FindIn is Find below a node.
func (a *Agent) FindIn(in *reading.Node, m reading.Match) *reading.Node {
	if n := in.Find(m); n != nil {
		return n
	}
	a.Fail("nothing on the page fits %+v", m)
	return &reading.Node{}
}

// Named is the first node with a role (or several, separated by "|") and name.
func (a *Agent) Named(role, name string) *reading.Node {
	return a.Find(reading.Match{Role: role, Name: name})
}

// All lists the nodes of the page that fit.
func (a *Agent) All(m reading.Match) []*reading.Node { return a.page.Root.FindAll(m) }

// Maybe returns the first node that fits, or nil.
func (a *Agent) Maybe(m reading.Match) *reading.Node { return a.page.Root.Find(m) }

// fields are the roles of what can be filled.
const fields = "textbox|searchbox|combobox|spinbutton|slider|listbox|checkbox|radio|switch|color|file"

// Field is the control of that name.
func (a *Agent) Field(name string) *reading.Node { return a.Named(fields, name) }

// Click clicks a node.
func (a *Agent) Click(n *reading.Node) { a.ClickHow(n, Click{}) }

// ClickHow clicks a node in a certain way.
func (a *Agent) ClickHow(n *reading.Node, how Click) {
	if !a.can(n) {
		return
	}
	answer, err := a.tools.Click(a.ctx, n.Ref, how)
	a.take(fmt.Sprintf("clicking %s %q", n.Role, n.Name), answer, err)
}

// Push clicks the button of that name.
func (a *Agent) Push(name string) { a.Click(a.Named("button", name)) }

// Follow clicks the link of that name.
func (a *Agent) Follow(name string) { a.Click(a.Named("link", name)) }

// Fill sets a control.
func (a *Agent) Fill(n *reading.Node, value string) { a.FillHow(n, Fill{Value: value}) }

// FillHow sets a control in a certain way.
func (a *Agent) FillHow(n *reading.Node, what Fill) {
	if !a.can(n) {
		return
	}
	answer, err := a.tools.Fill(a.ctx, n.Ref, what)
	a.take(fmt.Sprintf("filling %s %q", n.Role, n.Name), answer, err)
}

// Put sets the control of that name.
func (a *Agent) Put(name, value string) { a.Fill(a.Field(name), value) }

// Press presses a key on the focus.
func (a *Agent) Press(key string) {
	if a.err != nil {
		return
	}
	answer, err := a.tools.Press(a.ctx, "", key)
	a.take("pressing "+key, answer, err)
}

// PressOn presses a key on a node.
func (a *Agent) PressOn(n *reading.Node, key string) {
	if !a.can(n) {
		return
	}
	answer, err := a.tools.Press(a.ctx, n.Ref, key)
	a.take(fmt.Sprintf("pressing %s on %s %q", key, n.Role, n.Name), answer, err)
}

// Drag takes hold of a node and lets it go on another.
func (a *Agent) Drag(n, to *reading.Node) {
	if !a.can(n) || !a.can(to) {
		return
	}
	answer, err := a.tools.Drag(a.ctx, n.Ref, to.Ref)
	a.take(fmt.Sprintf("dragging %s %q to %s %q", n.Role, n.Name, to.Role, to.Name), answer, err)
}

// Type types text, key by key, into a node.
func (a *Agent) Type(n *reading.Node, text string) {
	if !a.can(n) {
		return
	}
	answer, err := a.tools.Type(a.ctx, n.Ref, text)
	a.take("typing", answer, err)
}

// Go navigates to an address, or back, forward, reload.
func (a *Agent) Go(address string) {
	if a.err != nil {
		return
	}
	answer, err := a.tools.Navigate(a.ctx, address)
	a.take("going to "+address, answer, err)
	if a.err == nil {
		a.page = reading.Parse(answer)
	}
}

// Tabs lists, selects or closes tabs.
func (a *Agent) Tabs(verb, tab string) {
	if a.err != nil {
		return
	}
	answer, err := a.tools.Tabs(a.ctx, verb, tab)
	a.take(verb+" tab "+tab, answer, err)
}

// can reports whether to go on, with a node that can be referred to.
func (a *Agent) can(n *reading.Node) bool {
	if a.err == nil && n.Ref == "" {
		a.Fail("%s %q has no ref", n.Role, n.Name)
	}
	return a.err == nil
}

// Patience bounds how long an agent looks again for something that a task says
// will come, and how often.
const (
	patience = 10 * time.Second
	pause    = 100 * time.Millisecond
)

// Until looks at the page again and again until something fits.
func (a *Agent) Until(m reading.Match) *reading.Node {
	for end := time.Now().Add(patience); a.err == nil; {
		a.Look()
		if n := a.Maybe(m); n != nil {
			return n
		}
		if time.Now().After(end) {
			a.Fail("nothing that fits %+v ever came", m)
			break
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.ctx.Done():
			timer.Stop()
			a.err = context.Cause(a.ctx)
		}
	}
	return &reading.Node{}
}

// Repeat calls step until it reports that it is done, at most n times; steps
// stop when something went wrong.
func (a *Agent) Repeat(n int, step func() (done bool)) {
	for range n {
		if a.err != nil || step() {
			return
		}
	}
	a.Fail("not done after %d rounds", n)
}

// Refused reports whether what went wrong is the tool's refusal with a code,
// and if so clears it, so that the agent can go on from what it says.
func (a *Agent) Refused(code string) bool {
	var r *Refusal
	if !asRefusal(a.err, &r) || !strings.HasPrefix(r.Text, code) {
		return false
	}
	a.err, a.said = nil, r.Text
	return true
}
