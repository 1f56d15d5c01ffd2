package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/dom"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
	"github.com/reins-browser/reins/internal/outline"
)

// oracleRoles are roles as the browser's accessibility tree names them, and as
// we do. Roles that both call the same are not in it; "" is a part of a control
// or of the layout that an outline does not name.
var oracleRoles = map[string]string{
	"DisclosureTriangle": "button", "DisclosureTriangleGrouped": "button", "Date": "textbox", "InputTime": "textbox", "DateTime": "textbox", "ColorWell": "color",
	"MathMLMath": "math", "image": "img", "Details": "group", "Canvas": "canvas", "Iframe": "iframe", "IframePresentational": "iframe", "Video": "video", "Audio": "audio",
	"DescriptionList": "", "DescriptionListTerm": "term", "DescriptionListDetail": "definition", "LayoutTable": "", "LayoutTableRow": "", "LayoutTableCell": "",
	"LabelText": "", "Legend": "", "Figcaption": "", "Abbr": "", "Pre": "", "Ruby": "", "RubyAnnotation": "", "RootWebArea": "", "SvgRoot": "", "StaticText": "", "InlineTextBox": "",
	"LineBreak": "", "ListMarker": "", "generic": "", "none": "", "sectionheader": "", "sectionfooter": "", "EmbeddedObject": "iframe", "PluginObject": "iframe",
	"MenuListPopup": "", "ImageMap": "img", "menulist": "combobox", "Footer": "contentinfo", "Header": "banner",
	// What an outline leaves to its text.
	"time": "", "code": "", "emphasis": "", "strong": "", "subscript": "", "superscript": "", "mark": "", "insertion": "", "deletion": "", "suggestion": "", "caption": "", "rowgroup": "", "legend": "", "document": "",
	"directory": "list",
}

// actsOn tells the roles of things that one can act on.
func actsOn(role string) bool {
	switch role {
	case "button", "link", "checkbox", "radio", "switch", "textbox", "searchbox", "combobox", "listbox", "option", "slider", "spinbutton", "tab",
		"menuitem", "menuitemcheckbox", "menuitemradio", "treeitem", "gridcell", "color":
		return true
	}
	return false
}

// tally is what a comparison found.
type tally struct {
	compared, agreed int
	acting, actingOK int // of these, things one can act on
	differences      []string
}

func (t *tally) add(o tally) {
	t.compared, t.agreed, t.acting, t.actingOK = t.compared+o.compared, t.agreed+o.agreed, t.acting+o.acting, t.actingOK+o.actingOK
	t.differences = append(t.differences, o.differences...)
}

func (t tally) String() string {
	return fmt.Sprintf("%d of %d agree (%.2f %%), %d of %d that can be acted on (%.2f %%)", t.agreed, t.compared, t.share(), t.actingOK, t.acting, 100*float64(t.actingOK)/float64(max(t.acting, 1)))
}

// share is the agreement in percent.
func (t tally) share() float64 { return 100 * float64(t.agreed) / float64(max(t.compared, 1)) }

// judge counts one comparison; problem is "" when both say the same.
func (t *tally) judge(acts bool, problem string) {
	t.compared++
	if acts {
		t.acting++
	}
	if problem != "" {
		t.differences = append(t.differences, problem)
		return
	}
	t.agreed++
	if acts {
		t.actingOK++
	}
}

// oracleSource is the part of the walker that tells what one element is, in a
// closure of its own: what a snapshot prints leaves out what other lines say.
var oracleSource = "(() => {\n" + scriptBase + scriptRole + scriptName + scriptCounter + scriptState + scriptKinds + scriptWalk + scriptSpecial +
	`globalThis.reinsTells = (...els) => { forget(); return els.map((el) => el.nodeType !== 1 ? null :
  { number: reins.numberOf(el), tag: el.localName, id: el.id, role: roleOf(el), name: nameOf(el) }); }; })()`

// told is what our rules say of an element.
type told struct {
	Number int    `json:"number"`
	Tag    string `json:"tag"`
	ID     string `json:"id"`
	Role   string `json:"role"`
	Name   string `json:"name"`
	entry  *outline.Node
}

// reason is a kind of difference that is meant to be; docs/snapshot.md says
// more of each.
type reason struct {
	what *regexp.Regexp
	why  string
}

var reasons = []reason{
	{regexp.MustCompile(`role of form "" <form`), "a form without a name is a wrapper"},
	{regexp.MustCompile(`^(name of|text) .*"(11 |13 |14 |\d+)( ?label|alpha.*)?"|alt counter|^(first button|heading|link): name is "\d?label"`), "counters cannot be read"},
	{regexp.MustCompile(`^(menuitem) ".*" <option`), "an option of a native list stays one"},
	{regexp.MustCompile(`^spinbutton .*value is "\d+", ours "`), "a number without a value says what stands in it"},
	{regexp.MustCompile(`^slider .*value is "50", ours "`), "a slider says its value in its author's words"},
	{regexp.MustCompile(`^role of (listitem|paragraph|navigation|button|generic|group) .* is (option|treeitem|listitem)$|^orphan`), "a role outside of where it belongs is kept"},
	{regexp.MustCompile(`^role of (region|complementary|img|checkbox) .* is (generic|none|switch)$`), "the specification is followed where the browser does not"},
	{regexp.MustCompile(`^name of (region|complementary|img) "" .* is "|^img with tooltip label with empty alt`), "a title names what has no other name"},
	{regexp.MustCompile(`^figure with figcaption`), "a caption names its figure"},
	{regexp.MustCompile(`^role of group "" <div|^el-div-(autofocus|draggable|popover)-attr`), "a box that can be dragged or opened is no group"},
	{regexp.MustCompile(`^role of img "  "`), "a blank description is none"},
	{regexp.MustCompile(`^(name of .* is|text) "(Call us|CALL US|Call Us|call us)"|text-transform:`), "text is as it was written, before style sheets change its case"},
	{regexp.MustCompile(`^text "(“|”|Bullet|A four leaf clover )"`), "quotation marks and list markers of the browser are left out"},
	{regexp.MustCompile(`gridcell .*: readonly is "true", states are`), "what a grid says of its cells is said once"},
	{regexp.MustCompile(`/pets /\{id\}`), "where a word may be broken there is no space"},
	{regexp.MustCompile(`\(inner button\)`), "buttons inside of buttons"},
	{regexp.MustCompile(`^name of heading "" <h[34]`), "the browser loses the content of a hidden owner"},
	{regexp.MustCompile(`^name of img "peanuts`), "a picture that refers to itself says its own name first"},
	{regexp.MustCompile(`^text "Zambino"`), "text that is named otherwise"},
	{regexp.MustCompile(`^step 1: name is "", should be "Tag"|^abbr with tooltip label`), "what is only text has no name"},
	{regexp.MustCompile(`sectionheader|sectionfooter|html-cite|not defined in spec|SPEC_AMBIG`), "proposed roles"},
}

// split parts differences into those that have a reason, and others.
func (t tally) split() (explained map[string]int, others []string) {
	explained = map[string]int{}
	for _, d := range t.differences {
		_, what, ok := strings.Cut(d, ".html: ")
		if !ok {
			what = d
		}
		i := slices.IndexFunc(reasons, func(r reason) bool { return r.what.MatchString(what) })
		if i < 0 {
			others = append(others, d)
			continue
		}
		explained[reasons[i].why]++
	}
	return explained, others
}

// TestOracle compares what a snapshot says with the browser's own
// accessibility tree (SNAP-1, SNAP-7): role and name of every element, states,
// values and order of everything one can act on, and that no text is missing.
func TestOracle(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		paths := map[string]string{}
		for name, html := range corpus {
			paths["/"+name] = "<!doctype html><html lang=en><title>" + name + "</title>" + html
		}
		s := site(t, paths)
		var all tally
		for name := range corpus {
			t.Run(name, func(t *testing.T) {
				b.open(t, s.URL+"/"+name)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := b.look(ctx, t).compare()
				all.add(got)
				for _, d := range got.differences {
					t.Error(d)
				}
			})
		}
		t.Log(all)
	})
}

// looked is a document as we and as the browser see it.
type looked struct {
	d       *document
	entries []outline.Node
	tree    []*accessibility.Node
	told    []*told // of each node of the tree; nil for what is no element
}

// look reads the selected tab's main document in both ways.
func (b *testBrowser) look(ctx context.Context, tb testing.TB) looked {
	tb.Helper()
	d, err := b.tabNow().document(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	page, err := b.walk(ctx, d, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tree, err := cdp.Call(ctx, d.session, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		tb.Fatal(err)
	}
	l := looked{d: d, entries: page.Nodes, tree: inOrder(tree.Nodes)}
	l.told = d.tell(ctx, tb, l.tree)
	return l
}

// compare holds what we print against the tree.
func (l looked) compare() tally {
	var out tally
	out.texts(l.entries, l.tree)
	entries := map[int]*outline.Node{}
	for i, n := range l.entries {
		if n.Number > 0 {
			entries[n.Number] = &l.entries[i]
		}
	}
	for i, n := range l.tree {
		if ours := l.told[i]; ours != nil {
			ours.entry = entries[ours.Number]
			out.element(n, ours)
		}
	}
	out.order(l.entries, l.told)
	sort.Strings(out.differences)
	return out
}

// marker is what the browser puts before items of lists.
var marker = regexp.MustCompile(`^([•◦▪]|[0-9a-z]+\.) ?$`)

// inOrder lists the nodes that count, in document order. What the browser
// builds its own controls of is not the page's, and text of something that its
// author named otherwise is not what it is called.
func inOrder(all []*accessibility.Node) []*accessibility.Node {
	byID := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range all {
		byID[n.NodeID] = n
	}
	var out []*accessibility.Node
	var visit func(n *accessibility.Node, named string)
	visit = func(n *accessibility.Node, named string) {
		role, name := axText(n.Role), axText(n.Name)
		if role == "ListMarker" || role == "StaticText" && (marker.MatchString(name) || named != "" && !strings.Contains(named, dense(name))) {
			return
		}
		if !n.Ignored {
			out = append(out, n)
			if actsOn(role) || role == "image" || role == "heading" {
				named = dense(name)
			}
		}
		switch axText(n.Role) {
		case "Date", "DateTime", "InputTime", "Video", "Audio", "textbox", "searchbox", "spinbutton", "combobox", "ColorWell":
			if !slices.ContainsFunc(n.ChildIDs, func(id accessibility.NodeID) bool {
				return byID[id] != nil && actsOn(axText(byID[id].Role)) && axText(n.Role) == "combobox"
			}) {
				return
			}
		}
		for _, id := range n.ChildIDs {
			if c := byID[id]; c != nil {
				visit(c, named)
			}
		}
	}
	for _, n := range all {
		if n.ParentID == "" || byID[n.ParentID] == nil {
			visit(n, "")
		}
	}
	return out
}

// tell asks our rules about the elements of a tree's nodes; nil for what is none.
func (d *document) tell(ctx context.Context, tb testing.TB, nodes []*accessibility.Node) []*told {
	tb.Helper()
	if err := d.eval(ctx, "() => { "+oracleSource+" }", nil); err != nil {
		tb.Fatal(err)
	}
	var asked []cdp.Reply[dom.ResolveNodeResult]
	for _, n := range nodes {
		asked = append(asked, cdp.Send(d.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: n.BackendDOMNodeID, ExecutionContextID: d.id}))
	}
	var args []any
	var at []int
	out := make([]*told, len(nodes))
	for i, a := range asked {
		got, err := a.Wait(ctx)
		if err == nil && got.Object != nil {
			args, at = append(args, handle{got.Object.ObjectID}), append(at, i)
		}
	}
	var answers []*told
	if err := d.eval(ctx, "(...els) => reinsTells(...els)", &answers, args...); err != nil {
		tb.Fatal(err)
	}
	for i, a := range answers {
		out[at[i]] = a
	}
	return out
}

// element compares role and name, and states and value of what can be acted on.
func (t *tally) element(n *accessibility.Node, ours *told) {
	role, name := axText(n.Role), axText(n.Name)
	want, mapped := oracleRoles[role]
	if !mapped {
		want = role
	}
	if want == "" || ours.Role == "file" && want == "button" || ours.Tag == "summary" && name == "Details" {
		return // and the summary that the browser makes up is printed as its group
	}
	switch want {
	case "figure", "row", "term", "definition", "math", "paragraph", "video", "audio":
		name = ours.Name // their content is printed as it is
	case "img":
		if name == "" && ours.Name == "" {
			return // it is not printed
		}
	}
	acts := actsOn(want)
	what := fmt.Sprintf("%s %q <%s id=%q>", want, name, ours.Tag, ours.ID)
	switch {
	case ours.Role != want:
		t.judge(acts, fmt.Sprintf("role of %s is %s", what, ours.Role))
		return
	case flat(ours.Name) != flat(name):
		t.judge(acts, fmt.Sprintf("name of %s is %q", what, ours.Name))
		return
	}
	t.judge(acts, "")
	if !acts {
		return
	}
	if ours.entry == nil {
		t.judge(true, "missing: "+what)
		return
	}
	have := ours.entry
	if have.Role != want || have.Name != "" && flat(have.Name) != flat(name) {
		t.judge(true, fmt.Sprintf("%s is printed as %s %q", what, have.Role, have.Name))
		return
	}
	t.judge(true, "")
	for _, problem := range stateProblems(n, have) {
		t.judge(true, fmt.Sprintf("%s: %s", what, problem))
	}
}

// stateProblems compares states and value.
func stateProblems(n *accessibility.Node, have *outline.Node) []string {
	var out []string
	is := map[string]string{}
	for _, p := range n.Properties {
		is[string(p.Name)] = axText(p.Value)
	}
	shows := func(state string) bool { return strings.Contains(have.States, " ["+state+"]") }
	for _, c := range []struct {
		property, value, state string
	}{
		{"disabled", "true", "disabled"}, {"checked", "true", "checked"}, {"checked", "mixed", "checked=mixed"}, {"expanded", "true", "expanded"}, {"expanded", "false", "collapsed"},
		{"pressed", "true", "pressed"}, {"pressed", "mixed", "pressed=mixed"}, {"selected", "true", "selected"}, {"required", "true", "required"}, {"readonly", "true", "readonly"},
		{"multiselectable", "true", "multiple"}, {"multiline", "true", "multiline"}, {"modal", "true", "modal"},
	} {
		if c.property == "expanded" && !strings.Contains(have.States, "[haspopup") && have.Role == "combobox" && is["hasPopup"] == "menu" {
			continue // a native list, which is never open for long
		}
		if (c.property == "readonly" || c.property == "required") && is[c.property] == "" {
			continue // the tree does not say so of every role that can have it
		}
		want := is[c.property] == c.value
		if want != shows(c.state) {
			out = append(out, fmt.Sprintf("%s is %q, states are%s", c.property, is[c.property], have.States))
		}
	}
	if text := is["valuetext"]; text != "" && flat(text) == flat(have.Value) {
		return out
	}
	if value := axText(n.Value); value != "" && have.Role != "combobox" && have.Role != "listbox" && have.Role != "link" && flat(value) != flat(have.Value) && have.Value != "" {
		out = append(out, fmt.Sprintf("value is %q, ours %q", value, have.Value))
	}
	return out
}

// texts looks for every piece of text of the tree in the outline.
func (t *tally) texts(ours []outline.Node, nodes []*accessibility.Node) {
	var b strings.Builder
	for _, n := range ours {
		b.WriteString(n.Name + n.Value + "\n" + n.States)
	}
	have := dense(b.String())
	for _, n := range nodes {
		text := axText(n.Name)
		if axText(n.Role) != "StaticText" || dense(text) == "" {
			continue
		}
		problem := ""
		if !strings.Contains(have, dense(text)) {
			problem = fmt.Sprintf("text %q is not in the outline", text)
		}
		t.judge(false, problem)
	}
}

// dense is text without white space and signs of icon fonts.
func dense(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '\u00a0' || r == '\u00ad' || r == '\u200b' || r == '\u2028' || r >= 0xe000 && r <= 0xf8ff {
			return -1
		}
		return r
	}, s)
}

// order compares the order of entries with that of the tree.
func (t *tally) order(ours []outline.Node, tree []*told) {
	at := map[int]int{}
	for i, n := range ours {
		if n.Number > 0 && n.Acts {
			at[n.Number] = i
		}
	}
	last, lastName := -1, ""
	for _, n := range tree {
		if n == nil {
			continue
		}
		i, ok := at[n.Number]
		if !ok {
			continue
		}
		problem := ""
		if i < last {
			problem = fmt.Sprintf("%s %q is listed before %s", n.Role, n.Name, lastName)
		}
		t.judge(true, problem)
		last, lastName = i, fmt.Sprintf("%s %q", n.Role, n.Name)
	}
}

func axText(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v.Value, &s) != nil {
		return string(v.Value)
	}
	return s
}
