package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// successor connects a next driver to the browser of b, whose own connection
// ends as that of a killed process does.
func successor(tb testing.TB, b *testBrowser) *testBrowser {
	tb.Helper()
	prev := b.told()
	b.close()
	s := b.settings
	s.Connection++
	return connectTo(tb, b.chromium, s, prev)
}

// DRV-2: a next driver finds pages as they were, free of dialogs and endless
// scripts, and what the one before had set still holds.
func TestTakeOver(t *testing.T) {
	s := site(t, map[string]string{
		"/":     `<title>Home</title><script>window.kept = 1; window.endless = false</script>`,
		"/file": `x`,
	})
	states := map[string]string{
		"idle":          `0`,
		"dialog":        `setTimeout(() => { confirm("held up") }, 1); 0`,
		"endless":       `setTimeout(() => { for (;;); }, 1); 0`,
		"endless later": `setTimeout(() => { window.endless = true; for (;;); }, 300); 0`,
		"dialog later":  `setTimeout(() => { window.asked = true; confirm("later") }, 300); 0`,
	}
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.act(t, reins.OpenTab{URL: s.URL})
		b.act(t, reins.SelectTab{Tab: "t1"})
		b.open(t, s.URL)
		var seen string
		defer func() {
			if t.Failed() {
				t.Log(seen)
			}
		}()
		for name, state := range states {
			b.pageScript(t, b.tabNow(), state)
			if name == "dialog" {
				b.eventually(t, "the dialog", func() bool { return b.selected.dialog != nil })
			}
			old := b.told()
			b = successor(t, b)
			if old.Selected != b.told().Selected || len(b.told().Left) != 0 {
				t.Errorf("%s: handover %+v after %+v", name, b.told(), old)
			}
			tab := b.tabNow()
			switch name { // begun before or under the new driver, which sees it like any other
			case "endless later":
				waitFor(t, "the script runs or was ended", func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					began, err := cdp.Call(ctx, tab.pageSession(), runtime.Evaluate, runtime.EvaluateParams{Expression: "window.endless"})
					return err != nil || string(began.Result.Value) == "true"
				})
				terminate(tab)
			case "dialog later":
				// Under the new one it is open; before, it was answered and its script ended.
				waitFor(t, "the dialog is open or answered", func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					answer, err := cdp.Call(ctx, tab.pageSession(), runtime.Evaluate, runtime.EvaluateParams{Expression: "window.asked"})
					seen = fmt.Sprintf("%s: answers %+v, %v, blocked %v", name, answer.Result, err, tab.blocked())
					return tab.blocked() != nil || err == nil && string(answer.Result.Value) == "true"
				})
				if tab.blocked() != nil {
					b.act(t, reins.Click{Tab: tab.id, Ref: refDialogDismiss})
				}
			}
			if got := b.pageScript(t, tab, `window.kept + "," + innerWidth + "," + /Headless/.test(navigator.userAgent) + "," + document.hasFocus()`); got != "1,1280,false,true" {
				t.Errorf("%s: the page says %s", name, got)
			}
			for _, id := range append(old.Pages, old.Browser) {
				_, err := cdp.Call(t.Context(), b.conn.Session(id, nil), runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
				if refusal, ok := cdp.IsProtocol(err); !ok || refusal.Code != cdp.CodeNoSession {
					t.Errorf("%s: an old session answers %v", name, err)
				}
			}
			if got := b.listTabs(t.Context()).Result.Tabs; len(got) != 2 || got[0].Selected == got[1].Selected {
				t.Errorf("%s: tabs %+v", name, got)
			}
		}
		// Downloads, set for the whole browser, survive too.
		tab := b.tabNow()
		fx := b.begin(tab)
		defer fx.end(b.browser)
		b.pageScript(t, tab, `(a => { a.href = "/file"; a.download = "x"; a.click() })(document.createElement("a"))`)
		b.eventually(t, "the download", func() bool { return len(fx.downloads) == 1 && fx.downloads[0].state == downloadCompleted })
		if _, err := os.Stat(filepath.Join(b.chromium.downloads, fx.downloads[0].guid)); err != nil {
			t.Error(err)
		}
	})
}
