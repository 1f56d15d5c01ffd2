package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// pageScript runs in the page's own world, as the page does, with a user's
// gesture.
func (b *testBrowser) pageScript(tb testing.TB, t *tab, expression string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got, err := cdp.Call(ctx, t.pageSession(), runtime.Evaluate, runtime.EvaluateParams{Expression: expression, UserGesture: new(true), AwaitPromise: new(true), ReturnByValue: new(true)})
	if err != nil || got.ExceptionDetails != nil {
		tb.Fatalf("page script %s: %v, %+v", expression, err, got.ExceptionDetails)
	}
	var text string
	if json.Unmarshal(got.Result.Value, &text) != nil {
		return string(got.Result.Value)
	}
	return text
}

func (b *testBrowser) ids() string {
	var out []string
	for _, t := range b.listTabs(context.Background()).Result.Tabs {
		out = append(out, string(t.ID))
	}
	return strings.Join(out, " ")
}

func (b *testBrowser) selectedID() reins.TabID {
	return b.listTabs(context.Background()).Result.Selected
}

// TAB-2, TAB-3: names of tabs, selection, closing.
func TestTabs(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`, "/two": `<title>Two</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		if got := b.ids(); got != "t1" {
			t.Fatalf("tabs %s at first", got)
		}
		r := b.act(t, reins.OpenTab{URL: s.URL + "/two"})
		if r.Result.Tab.ID != "t2" || r.Result.Selected != "t2" || r.Result.Navigation.Title != "Two" {
			t.Errorf("opened %+v", r.Result)
		}
		b.act(t, reins.OpenTab{})
		if got := b.ids(); got != "t1 t2 t3" || b.selectedID() != "t3" {
			t.Errorf("tabs %s, selected %s", got, b.selectedID())
		}
		r = b.act(t, reins.SelectTab{Tab: "t2"})
		if r.Result.Tab.ID != "t2" || r.Result.Selected != "t2" {
			t.Errorf("selected %+v", r.Result)
		}
		r = b.act(t, reins.CloseTab{})
		if r.Result.Selected != "t1" || !slices.Equal(r.Result.Changes.ClosedTabs, []reins.TabID{"t2"}) {
			t.Errorf("closed %+v", r.Result)
		}
		_, err := b.try(reins.Navigate{Tab: "t2", URL: s.URL})
		wantCode(t, err, reins.CodeInvalidState)
		b.act(t, reins.CloseTab{Tab: "t1"})
		r = b.act(t, reins.CloseTab{Tab: "t3"})
		if got := b.ids(); got != "t4" || r.Result.Selected != "t4" {
			t.Errorf("after the last one: tabs %s, selected %s", got, r.Result.Selected)
		}
		b.open(t, s.URL+"/two")
	})
}

// TAB-3: what a page opens is adopted before its first script, belongs to its
// opener, and is selected by an action only.
func TestPopups(t *testing.T) {
	s := site(t, map[string]string{
		"/":      `<title>Home</title>`,
		"/popup": `<title>Popup</title><script>window.first = [innerWidth, document.visibilityState, navigator.userAgent.includes("Headless")].join()</script>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		home := b.tabNow()
		fx := b.begin(home)
		b.pageScript(t, home, `void window.open("/popup")`)
		b.eventually(t, "the popup", func() bool {
			return len(b.tabs) == 2 && b.tabs[1].title == "Popup" && b.tabs[1].main.doc != nil
		})
		fx.end(b.browser)
		list := b.listTabs(context.Background()).Result
		if list.Selected != "t2" || list.Tabs[1].Opener != "t1" || len(fx.opened) != 1 {
			t.Errorf("after a popup: %+v", list)
		}
		if first := b.pageScript(t, b.tabNow(), "first"); first != "1280,visible,false" {
			t.Errorf("the popup's first script saw %q, want the settings of the browser", first)
		}
		// Nobody acts: only reported.
		b.act(t, reins.SelectTab{Tab: "t1"})
		for i, how := range []string{`void window.open("/popup")`, `void window.open("/popup", "", "noopener")`} {
			b.pageScript(t, home, how)
			b.eventually(t, "another popup", func() bool { return len(b.tabs) == 3+i && b.tabs[2+i].ready })
		}
		list = b.listTabs(context.Background()).Result
		if list.Selected != "t1" {
			t.Errorf("a popup without an action was selected: %+v", list)
		}
		// An action that wants it in the background.
		fx = b.begin(home)
		fx.inBackground(b.browser)
		b.pageScript(t, home, `void window.open("/popup")`)
		b.eventually(t, "the last popup", func() bool { return len(b.tabs) == 5 && b.tabs[4].ready })
		fx.end(b.browser)
		if b.selectedID() != "t1" {
			t.Error("a popup meant for the background was selected")
		}
		// Closing the selected one selects its opener, not its neighbour.
		b.act(t, reins.SelectTab{Tab: "t5"})
		r := b.act(t, reins.CloseTab{})
		if r.Result.Selected != "t1" {
			t.Errorf("%s is selected after t5, want its opener", r.Result.Selected)
		}
	})
}

// TAB-4: above the bound a popup is closed and reported, and open_tab refused.
func TestTabBound(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`, "/popup": `<title>Popup</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		home := b.tabNow()
		for len(b.listTabs(context.Background()).Result.Tabs) < 8 {
			b.act(t, reins.OpenTab{})
		}
		_, err := b.try(reins.OpenTab{})
		wantCode(t, err, reins.CodeQuotaExceeded)
		fx := b.begin(home)
		defer fx.end(b.browser)
		b.pageScript(t, home, `window.w = window.open("/popup"); 0`)
		b.eventually(t, "the note", func() bool { return len(fx.notes) == 1 })
		waitFor(t, "the popup is closed", func() bool {
			return b.pageScript(t, home, `String(!window.w || window.w.closed)`) == "true"
		})
		if got := len(b.listTabs(context.Background()).Result.Tabs); got != 8 {
			t.Errorf("%d tabs", got)
		}
	})
}

// TAB-5: a crashed page is said and recovered by navigating it.
func TestCrash(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		tab := b.tabNow()
		ctx, release := tab.guard(t.Context())
		defer release()
		tab.pageSession().Send("Page.crash", nil)
		<-ctx.Done()
		wantCode(t, context.Cause(ctx), reins.CodePageCrashed)
		_, err := b.try(reins.Click{Ref: "f1e1"})
		wantCode(t, err, reins.CodeStaleRef)
		_, err = b.try(reins.Press{Key: "a"})
		wantCode(t, err, reins.CodePageCrashed)
		if list := b.listTabs(context.Background()).Result.Tabs; !list[0].Crashed || !strings.Contains(b.kinds(), "page_crashed") {
			t.Errorf("%+v, events %s", list, b.kinds())
		}
		for _, how := range []string{s.URL, "reload"} {
			r := b.act(t, reins.Navigate{URL: how})
			if r.Result.Navigation.Title != "Home" || r.Result.Tab.Crashed {
				t.Errorf("after %s: %+v", how, r.Result)
			}
			if got := b.script(t, "1+1"); got != "2" {
				t.Errorf("the page computes %s", got)
			}
			tab.pageSession().Send("Page.crash", nil)
			b.eventually(t, "another crash", func() bool { return tab.crashed })
		}
	})
}

// TAB-6: every tab is visible to its page and paints.
func TestBackgroundTabsAreVisible(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		home := b.tabNow()
		b.act(t, reins.OpenTab{URL: s.URL})
		var got []any
		d, err := home.document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = d.eval(t.Context(), `() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done([document.visibilityState, document.hasFocus()]))))`, &got)
		if err != nil || fmt.Sprint(got) != "[visible true]" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// SCH-6, B070: a page that never yields is closed all the same, and holds up
// no other tab.
func TestCloseOfStuckPage(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, force := range []bool{false, true} {
			r := b.act(t, reins.OpenTab{URL: s.URL})
			b.pageScript(t, b.tabNow(), `setTimeout(() => { for (;;); }, 1); 0`)
			b.act(t, reins.OpenTab{URL: at(s, "other.test", "/")})
			began := time.Now()
			b.act(t, reins.CloseTab{Tab: r.Result.Tab.ID, Force: force})
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("force %v: closing took %v", force, took)
			}
		}
	})
}

// DRV-3: a message above the bound costs its session; the page gets another.
func TestMessageAboveBound(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		c := launch(t, engine)
		settings := c.settings()
		settings.Engine, settings.Message = engine, 1<<20
		b := connectTo(t, c, settings, Handover{})
		b.open(t, s.URL)
		tab := b.tabNow()
		d, err := tab.document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var text string
		err = d.eval(t.Context(), `() => "x".repeat(2 << 20)`, &text)
		wantCode(t, err, reins.CodeToolFailed)
		if err := tab.usable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.script(t, "document.title"); got != "Home" {
			t.Errorf("title %s", got)
		}
		if b.told().Pages[0] != tab.pageSession().ID() {
			t.Error("the parent was not told of the new session")
		}
		b.open(t, s.URL)
	})
}

// TAB-3: of several windows that one press opens, each is told.
func TestWindowsAtOnce(t *testing.T) {
	s := site(t, map[string]string{
		"/":     `<title>Opener</title><button onclick="for (const n of [1, 2, 3]) window.open('/page?' + n)">Open</button>`,
		"/page": `<title>Page</title>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Open")}).Result
		if got := r.Changes.OpenedTabs; len(got) != 3 || r.Selected != got[2].ID || got[2].URL != s.URL+"/page?3" {
			t.Errorf("told are %+v, selected %s", got, r.Selected)
		}
	})
}
