package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
)

// reel plays the frames of a browser in this process, and acknowledges them.
func reel(tb testing.TB, b *testBrowser) *viewer {
	tb.Helper()
	v := &viewer{came: make(chan struct{}), quiet: true}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.film.play(ctx, func(f CastFrame) error {
			v.take(f)
			_ = b.ackFrame(ctx, frameName{f.Cast, f.Number})
			return nil
		})
	}()
	tb.Cleanup(func() { cancel(); <-ended })
	return v
}

// since is any frame that was captured from now on.
func since() func(CastFrame) bool {
	now := time.Now()
	return func(f CastFrame) bool { return f.Captured.After(now) }
}

// FRM-1, FRM-12: a cast follows its tab to other sites, through a crash, and while
// other tabs come to the front; it ends with it.
func TestCastFollows(t *testing.T) {
	s := site(t, map[string]string{"/": moving, "/opener": moving + `<a href="/" target=_blank style="position:fixed;top:200px">open</a>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		v := reel(t, b)
		b.open(t, s.URL)
		cast, err := b.startCast(t.Context(), Cast{Quality: 50})
		if err != nil {
			t.Fatal(err)
		}
		v.next(t, "the first site", since())
		b.open(t, at(s, "other.test", "/opener"))
		v.next(t, "the other site", since())
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"open"`)})
		b.act(t, reins.SelectTab{Tab: "t2"})
		f := v.next(t, "a tab in the background", since())
		if f.Tab != "t1" || f.Cast != cast {
			t.Errorf("frame %+v", f)
		}
		b.act(t, reins.SelectTab{Tab: "t1"})
		b.tabNow().pageSession().Send(page.Crash.Method, nil)
		b.eventually(t, "the crash", func() bool { return b.selected.crashed })
		b.act(t, reins.Navigate{Tab: "t1", URL: s.URL})
		v.next(t, "life after a crash", since())
		b.act(t, reins.CloseTab{Tab: "t1"})
		b.browser.mu.Lock()
		over := b.cast == nil
		b.browser.mu.Unlock()
		if !over {
			t.Error("the cast outlives its tab")
		}
		wantCode(t, b.ackFrame(t.Context(), frameName{cast, f.Number + 1}), reins.CodeInvalidState)
		_, err = b.startCast(t.Context(), Cast{Tab: "t1"})
		wantCode(t, err, reins.CodeInvalidState)
		if n, err := b.startCast(t.Context(), Cast{Quality: 50}); err != nil || n <= cast {
			t.Errorf("cast %d, %v", n, err)
		}
		v.next(t, "the next cast", since())
		for _, bad := range []Cast{{Quality: 101}, {MaxWidth: 5000}, {MaxWidth: 4096, MaxHeight: 4096}, {EveryNth: 61}, {MaxHeight: -1}} {
			_, err := b.startCast(t.Context(), bad)
			wantCode(t, err, reins.CodeInvalidInput)
			_, err = b.captureFrame(t.Context(), bad)
			wantCode(t, err, reins.CodeInvalidInput)
		}
	})
}

// FRM-12, B080, B090: who comes late sees a still page, and one in the background
// that has moved on, at the size that fits.
func TestCapture(t *testing.T) {
	s := site(t, map[string]string{
		"/still":  `<!doctype html><title>Still</title><body style="background:#dfe"><h1>Sign in</h1>`,
		"/behind": `<!doctype html><title>Behind</title><script>let n = 0; setInterval(() => { document.body.style.background = ++n % 2 ? '#f00' : '#0f0' }, 100)</script><body>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		v := reel(t, b)
		b.open(t, s.URL+"/behind")
		b.act(t, reins.OpenTab{URL: s.URL + "/still"})
		for range 3 { // each that joins starts a cast anew
			n, err := b.startCast(t.Context(), Cast{Tab: "t2", Quality: 70})
			if err != nil {
				t.Fatal(err)
			}
			v.next(t, "a still page", func(f CastFrame) bool { return f.Cast == n })
		}
		pictures := map[string]bool{}
		for range 6 {
			f, err := b.captureFrame(t.Context(), Cast{Tab: "t1", Quality: 90, MaxWidth: 320, MaxHeight: 320})
			if err != nil {
				t.Fatal(err)
			}
			if f.Tab != "t1" || f.Width != 320 || f.Height != 200 {
				t.Errorf("frame %+v", f)
			}
			pictures[string(f.JPEG)] = true
			b.script(t, "new Promise(d => setTimeout(d, 60))")
		}
		if len(pictures) < 2 {
			t.Error("the picture of a tab in the background stands still")
		}
		if b.tabNow().id != "t2" {
			t.Error("a picture changed the tab in front")
		}
	})
}

// FRM-6, DRV-2: a frame above the bound comes as its size only, and is
// acknowledged like another; the next driver keeps the viewport and casts anew.
func TestCastTooLargeAndHandover(t *testing.T) {
	s := site(t, map[string]string{"/": sized, "/noise": `<!doctype html><title>Noise</title><body style="margin:0"><canvas id=c width=1280 height=800></canvas><script>
const x = c.getContext('2d'), d = x.createImageData(1280, 800); for (let i = 0; i < d.data.length; i++) d.data[i] = i % 4 === 3 ? 255 : Math.random() * 256; x.putImageData(d, 0, 0)</script>`})
	c := launch(t, reins.EngineShell)
	settings := c.settings()
	settings.Engine, settings.Frame = reins.EngineShell, 100_000
	v := watchWith(t, c, settings, Handover{})
	v.run(t, reins.Navigate{URL: s.URL + "/noise"})
	cast := v.start(t, Cast{Quality: 90})
	f := v.next(t, "a frame above the bound", func(f CastFrame) bool { return f.TooLarge > 0 })
	if f.TooLarge <= 100_000 || len(f.JPEG) != 0 || f.Width != 1280 || f.Tab != "t1" {
		t.Errorf("frame %+v", f)
	}
	_, err := v.Capture(t.Context(), Cast{Quality: 90})
	wantCode(t, err, reins.CodeFrameTooLarge)
	v.run(t, reins.Navigate{URL: s.URL})
	v.next(t, "a small picture", func(f CastFrame) bool { return f.TooLarge == 0 })
	size := reins.Viewport{Revision: 5, Width: 900, Height: 500, Scale: 2}
	if err := v.SetViewport(t.Context(), size); err != nil {
		t.Fatal(err)
	}
	v.next(t, "the viewport", func(f CastFrame) bool { return f.Viewport == 5 })
	v.Kill()
	settings.Connection = 2
	next := watchWith(t, c, settings, v.Handover())
	wantCode(t, next.AckFrame(t.Context(), cast, 1), reins.CodeInvalidState)
	next.start(t, Cast{Quality: 90})
	f = next.next(t, "the viewport of before", func(f CastFrame) bool { return f.Viewport == 5 })
	if f.Width != 1800 || f.Height != 1000 || !depicts(t, f, size) {
		t.Errorf("after the handover a frame is %d by %d", f.Width, f.Height)
	}
}

// FRM-12: a page that does not answer holds up neither the start of a cast, nor a
// viewport, nor the pictures of others.
func TestCastOfBusyPage(t *testing.T) {
	s := site(t, map[string]string{"/": moving, "/busy": `<!doctype html><title>Busy</title><script>setTimeout(() => { for (;;); }, 50)</script>`})
	v := watch(t, launch(t, reins.EngineShell), reins.EngineShell, 1, Handover{})
	v.run(t, reins.Navigate{URL: s.URL})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_, _ = v.Do(ctx, Command{Action: reins.OpenTab{URL: s.URL + "/busy", Wait: "commit"}})
	cancel()
	var busy reins.TabID
	for _, tab := range v.run(t, reins.ListTabs{}).Result.Tabs {
		if strings.HasSuffix(tab.URL, "/busy") {
			busy = tab.ID
		}
	}
	late, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if _, err := v.StartCast(late, Cast{Tab: busy, Quality: 50}); err != nil {
		t.Error(err)
	}
	if err := v.SetViewport(late, reins.Viewport{Revision: 1, Width: 700, Height: 500, Scale: 1}); err != nil {
		t.Error(err)
	}
	if f, err := v.Capture(late, Cast{Tab: "t1", Quality: 50}); err != nil || f.Viewport != 1 || f.Width != 700 {
		t.Errorf("frame %+v, %v", f, err)
	}
	v.start(t, Cast{Tab: "t1", Quality: 50})
	v.next(t, "the other tab", func(f CastFrame) bool { return f.Tab == "t1" && f.Viewport == 1 })
}
