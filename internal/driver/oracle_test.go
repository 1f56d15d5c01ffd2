package driver

import (
	"context"
	"encoding/json"
	"fmt"
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

// oracleRoles are the roles of things one can act on, as the browser's
// accessibility tree names them, and as an outline does.
var oracleRoles = map[string]string{
	"button": "button", "link": "link", "checkbox": "checkbox", "radio": "radio", "switch": "switch", "textbox": "textbox",
	"searchbox": "searchbox", "combobox": "combobox", "listbox": "listbox", "option": "option", "slider": "slider",
	"spinbutton": "spinbutton", "tab": "tab", "menuitem": "menuitem", "menuitemcheckbox": "menuitemcheckbox",
	"menuitemradio": "menuitemradio", "treeitem": "treeitem", "gridcell": "gridcell", "DisclosureTriangle": "button",
	"Date": "textbox", "InputTime": "textbox", "DateTime": "textbox", "ColorWell": "color",
}

// TestOracle compares role and name of everything one can act on with the
// browser's own accessibility tree (SNAP-1, SNAP-7).
func TestOracle(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		paths := map[string]string{}
		for name, html := range corpus {
			paths["/"+name] = "<!doctype html><html lang=en><title>" + name + "</title>" + html
		}
		s := site(t, paths)
		for name := range corpus {
			t.Run(name, func(t *testing.T) {
				b.open(t, s.URL+"/"+name)
				for _, d := range b.disagreements(t) {
					t.Error(d)
				}
			})
		}
	})
}

// disagreements compares the selected tab's main document with its tree.
func (b *testBrowser) disagreements(tb testing.TB) []string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d, err := b.tabNow().document(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	page, err := b.walk(ctx, d, 0)
	if err != nil {
		tb.Fatal(err)
	}
	ours := map[int]outline.Node{}
	for _, n := range page.Nodes {
		if n.Number > 0 {
			ours[n.Number] = n
		}
	}
	tree, err := cdp.Call(ctx, d.session, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	own := map[accessibility.NodeID]bool{}
	for _, n := range tree.Nodes {
		role, name := axText(n.Role), axText(n.Name)
		want, acts := oracleRoles[role]
		// What the browser builds its own controls of is not the page's.
		own[n.NodeID] = own[n.ParentID] || strings.HasPrefix(role, "Date") || role == "InputTime" || role == "Video" || role == "Audio"
		if n.Ignored || !acts || own[n.ParentID] || name == "Details" {
			continue
		}
		got, err := cdp.Call(ctx, d.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: n.BackendDOMNodeID, ExecutionContextID: d.id})
		if err != nil {
			tb.Fatal(err)
		}
		var number int
		if err := d.eval(ctx, "el => reins.numberOf(el)", &number, handle{got.Object.ObjectID}); err != nil {
			tb.Fatal(err)
		}
		have, ok := ours[number]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("missing: %s %q", want, name))
		case have.Role != want && !(have.Role == "file" && want == "button"):
			out = append(out, fmt.Sprintf("role of %s %q is %s", want, name, have.Role))
		case flat(have.Name) != flat(name) && have.Role != "file" && !(have.Role == "gridcell" && have.Name == ""):
			out = append(out, fmt.Sprintf("name of %s %q is %q", want, name, have.Name))
		}
	}
	sort.Strings(out)
	return out
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
