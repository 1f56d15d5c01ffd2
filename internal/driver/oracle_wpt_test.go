package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// wptFolders are those of web-platform-tests whose pages say what names and
// roles their elements have.
var wptFolders = []string{"accname", "core-aam", "html-aam", "svg-aam", "wai-aria"}

// wptHarness stands for the scripts that would run and judge the tests: here
// only the pages count, with what their scripts build.
const wptHarness = `
self.promise_test = async (f) => { try { await f({ add_cleanup() {} }); } catch {} };
self.test = self.async_test = self.setup = self.done = self.add_completion_callback = self.assert_equals = self.assert_true = self.assert_false = () => {};
self.test_driver = { get_computed_role: async () => '', get_computed_label: async () => '' };
self.ATTAcomm = class { constructor(o) { self.attaSteps = o; } };
`

// expectation is what a test page says of one of its elements.
type expectation struct {
	Test   string   `json:"test"`
	Number int      `json:"number"`
	Label  *string  `json:"label"`
	Roles  []string `json:"roles"` // one of these
	Role   string   `json:"role"`  // ours
	Name   string   `json:"name"`  // ours
}

// problem is "" when a role and a name are as expected.
func (e expectation) problem(role, name string) string {
	if e.Label != nil && flat(*e.Label) != flat(name) {
		return fmt.Sprintf("name is %q, should be %q", name, *e.Label)
	}
	if role == "img" && slices.Contains(e.Roles, "image") {
		return ""
	}
	if len(e.Roles) > 0 && !slices.Contains(e.Roles, role) {
		return fmt.Sprintf("role is %s, should be %s", role, strings.Join(e.Roles, " or "))
	}
	return ""
}

// findExpectations reads them from a page: from attributes, and in old tests
// from the arguments of their harness.
const findExpectations = `() => {
  const out = [];
  const add = (el, o) => { const [own] = reinsTells(el); out.push({ number: own.number, role: own.role, name: own.name, ...o }); };
  const roots = [document];
  for (const root of roots) {
    for (const el of root.querySelectorAll('*')) {
      if (el.shadowRoot) roots.push(el.shadowRoot);
      const d = el.dataset;
      if (!d) continue;
      const test = d.testname || el.id || el.outerHTML.slice(0, 80);
      if (d.expectedlabel !== undefined) add(el, { test, label: d.expectedlabel });
      if (d.expectedrole !== undefined) add(el, { test, roles: [d.expectedrole] });
      else if (/\bex-generic\b/.test(el.className)) add(el, { test, roles: ['generic', 'none', ''] });
    }
  }
  for (const s of document.scripts) {
    const m = s.textContent.match(/new ATTAcomm\(\s*(\{[^]*\})\s*\)/);
    let steps = [];
    try { if (m) steps = JSON.parse(m[1]).steps; } catch {}
    for (const step of steps) {
      const el = document.getElementById(step.element);
      for (const [, property, is, label] of step.test?.IAccessible2 || []) {
        if (el && property === 'accName' && is === 'is') add(el, { test: step.title, label });
      }
    }
  }
  return out;
}`

// TestWPT holds our names and roles against web-platform-tests' own
// expectations, and snapshots of their pages against the browser's tree
// (SNAP-1). REINS_WPT is the path of a checkout; without it there is nothing to
// compare with, and the test says so.
func TestWPT(t *testing.T) {
	root := os.Getenv("REINS_WPT")
	if root == "" {
		t.Log("nothing compared: REINS_WPT names no checkout of web-platform-tests")
		return
	}
	pages := wptPages(t, root)
	if len(pages) == 0 {
		t.Fatalf("no test pages of %v below REINS_WPT", wptFolders)
	}
	b := newBrowser(t, reins.EngineShell)
	s := serve(t, wptServer(root))
	var browser, wpt tally
	var behind []string // expectations that the browser itself does not meet
	for _, page := range pages {
		b.open(t, s.URL+page)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		l := b.look(ctx, t)
		got := l.compare()
		for i, d := range got.differences {
			got.differences[i] = page + ": " + d
		}
		browser.add(got)
		var expected []expectation
		if err := l.d.eval(ctx, findExpectations, &expected); err != nil {
			t.Fatal(err)
		}
		cancel()
		theirs := l.names()
		for _, e := range expected {
			problem := e.problem(e.Role, e.Name)
			at, ok := theirs[e.Number]
			if problem != "" {
				problem = page + ": " + e.Test + ": " + problem
				if ok && e.problem(at[0], at[1]) != "" {
					behind = append(behind, problem)
					continue
				}
			}
			wpt.judge(actsOn(e.Role), problem)
		}
	}
	t.Logf("%d pages", len(pages))
	report(t, "with the browser's tree", browser)
	report(t, "with the pages' own expectations, where the browser meets them", wpt)
	for _, d := range behind {
		t.Log("neither the browser nor we:", d)
	}
}

// report prints an agreement. Less than 99 % of it, or a difference that has no
// reason, is a fault.
func report(t *testing.T, with string, got tally) {
	t.Helper()
	explained, others := got.split()
	t.Logf("%s: %v", with, got)
	known := 0
	for _, why := range slices.Sorted(maps.Keys(explained)) {
		t.Logf("%5d × %s", explained[why], why)
		known += explained[why]
	}
	if got.agreed+known < got.compared*99/100 {
		t.Errorf("%s: %d differences of %d have no reason", with, len(others), got.compared)
	}
	for _, d := range others {
		t.Error(d)
	}
}

// names are the tree's role and name of each element.
func (l looked) names() map[int][2]string {
	out := map[int][2]string{}
	for i, n := range l.tree {
		if l.told[i] == nil {
			continue
		}
		role := axText(n.Role)
		if ours, ok := oracleRoles[role]; ok && ours != "" {
			role = ours
		}
		out[l.told[i].Number] = [2]string{role, axText(n.Name)}
	}
	return out
}

func wptPages(tb testing.TB, root string) []string {
	tb.Helper()
	var out []string
	for _, folder := range wptFolders {
		err := fs.WalkDir(os.DirFS(root), folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !e.IsDir() && strings.HasSuffix(path, ".html") && !strings.Contains(path, "/resources/") && !strings.Contains(path, "description") {
				out = append(out, "/"+path)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			tb.Fatal(err)
		}
	}
	return out
}

// wptServer serves a checkout, with the stand-in for its harness.
func wptServer(root string) http.Handler {
	files := http.FileServer(http.Dir(root))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		switch {
		case name == "testharness.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, wptHarness)
		case strings.HasPrefix(name, "testharness"), strings.HasPrefix(name, "testdriver"), name == "ATTAcomm.js":
			w.Header().Set("Content-Type", "text/javascript")
		default:
			files.ServeHTTP(w, r)
		}
	})
}
