package driver

import (
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestFloods: a page that writes, throws and rejects without end slows neither
// the other tabs nor its own leaving, and what is told of a press on it is true.
func TestFloods(t *testing.T) {
	s := site(t, map[string]string{
		"/console": `<!doctype html><title>Loud</title>` + logPart + `<button onclick="say('ok')">Go</button><script>setInterval(() => { for (let k = 0; k < 2000; k++) console.error(k, { a: [1, 2, 3] }); throw new Error("x") }, 1)</script>`,
		"/reject":  `<!doctype html><title>Loud</title>` + logPart + `<button onclick="say('ok')">Go</button><script>onunhandledrejection = () => Promise.reject(2); Promise.reject(1)</script>`,
		"/other":   `<!doctype html><title>Other</title><h1>Quiet</h1>`,
	})
	const most = 10 * time.Second // of a machine that is busy with other tests too
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		timed := func(what string, a reins.Action) *Reply {
			t.Helper()
			began := time.Now()
			r := b.act(t, a)
			if took := time.Since(began); took > most {
				t.Errorf("%s took %s", what, took)
			}
			return r
		}
		for _, path := range []string{"/console", "/reject"} {
			other := b.act(t, reins.OpenTab{URL: at(s, "other.test", "/other")}).Result.Tab.ID
			loud := b.act(t, reins.OpenTab{URL: s.URL + path}).Result.Tab.ID
			for range 2 {
				if see := timed("the other tab", reins.Snapshot{Tab: other}).Result.Snapshot.Text; !strings.Contains(see, "Quiet") {
					t.Errorf("%s: the other tab reads\n%s", path, see)
				}
				timed("a list", reins.ListTabs{})
				see := timed("its own snapshot", reins.Snapshot{Tab: loud}).Result.Snapshot.Text
				if _, err := b.try(reins.Click{Ref: refTo(t, see, "Go")}); err != nil {
					t.Errorf("%s: a press is told as %v", path, err)
				}
				b.wantResult(t, "ok")
			}
			if log := b.act(t, reins.Console{Tab: loud}).Result.Console; len(log.Messages) == 0 {
				t.Errorf("%s: nothing is told of it", path)
			}
			timed("leaving it", reins.Navigate{Tab: loud, URL: s.URL + "/other"})
			b.act(t, reins.CloseTab{Tab: loud})
			b.act(t, reins.CloseTab{Tab: other})
		}
	})
}
