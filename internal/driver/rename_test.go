package driver

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// CELL-11, TAB-2, SNAP-4: a browser that was started for nobody shows itself
// under names above those that who gets it knew, and tells none of its old ones
// from then on; the next driver goes on from there.
func TestRename(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		s := site(t, map[string]string{"/": `<title>Home</title><button>Go</button>`})
		var mu sync.Mutex
		var names []string
		c := launch(t, engine)
		p := startDriver(t, c, engine, 1, Handover{}, func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, string(e.Tab.ID))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r, err := p.Do(ctx, Command{Action: reins.ListTabs{}, Above: Numbers{Tab: 41, Document: 17}})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		names = nil
		mu.Unlock()
		if got := r.Result; len(got.Tabs) != 1 || got.Tabs[0].ID != "t42" || got.Selected != "t42" {
			t.Errorf("tabs %+v, selected %s", got.Tabs, got.Selected)
		}
		if n := p.Handover().Numbers; n.Tab != 42 || n.Document <= 17 {
			t.Errorf("numbers %+v", n)
		}
		_, err = run(p, reins.Snapshot{Tab: "t1"})
		wantCode(t, err, reins.CodeInvalidState)
		if _, err := run(p, reins.Navigate{Tab: "t42", URL: s.URL}); err != nil {
			t.Fatal(err)
		}
		if r, err = run(p, reins.Snapshot{}); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(r.Result.Snapshot.Text, `"Go" [ref=`)
		ref, _, _ := strings.Cut(rest, "]")
		if doc, _, ok := parseRef(reins.Ref(ref)); !ok || doc <= 17 {
			t.Errorf("ref %q in\n%s", ref, r.Result.Snapshot.Text)
		}
		if _, err := run(p, reins.Click{Ref: reins.Ref(ref)}); err != nil {
			t.Error(err)
		}
		mu.Lock()
		if got := strings.Join(names, " "); got == "" || strings.Contains(got, "t1") {
			t.Errorf("events are of tabs %q", got)
		}
		mu.Unlock()
		p.Kill()
		next := startDriver(t, c, engine, 2, p.Handover(), nil)
		if r, err = run(next, reins.ListTabs{}); err != nil || r.Result.Tabs[0].ID != "t43" {
			t.Errorf("the next driver: %+v, %v", r, err)
		}
	})
}
