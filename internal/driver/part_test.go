package driver

import (
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// NAV-1, TAB-5: a page whose scripts never end can be left, by its
// history and by itself too, and the tab goes on.
func TestLeavingABusyPage(t *testing.T) {
	s := site(t, map[string]string{
		"/busy":  `<title>Busy</title><button onclick="setTimeout(() => { for (;;) {} }, 20)">Spin</button>`,
		"/other": `<title>Other</title><h1>Other</h1>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, c := range []struct{ page, to, title string }{
			{"/busy", "reload", "Busy"},
			{"/busy", "back", "Other"},
		} {
			t.Run(c.page+" "+c.title, func(t *testing.T) {
				b.open(t, s.URL+"/other")
				b.open(t, s.URL+c.page)
				b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Spin"), Waits: reins.Waits{Settle: new(reins.Duration(100 * time.Millisecond))}})
				began := time.Now()
				r := b.open(t, c.to)
				if r.Result.Navigation.Title != c.title {
					t.Errorf("it led to %q, want %q", r.Result.Navigation.Title, c.title)
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("it took %s", took)
				}
				b.see(t)
			})
		}
	})
}
