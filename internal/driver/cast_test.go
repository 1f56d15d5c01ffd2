package driver

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// viewer is a parent that watches: it keeps the frames that came.
type viewer struct {
	*Process
	mu     sync.Mutex
	frames []CastFrame
	came   chan struct{} // closed and replaced with each frame
	quiet  bool          // acknowledges nothing
}

// watch starts a driver process and keeps its frames.
func watch(tb testing.TB, c *chromium, engine reins.Engine, connection uint64, prev Handover) *viewer {
	tb.Helper()
	s := c.settings()
	s.Engine, s.Connection = engine, connection
	return watchWith(tb, c, s, prev)
}

func watchWith(tb testing.TB, c *chromium, s Settings, prev Handover) *viewer {
	tb.Helper()
	v := &viewer{came: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	p, err := Start(ctx, Options{ToBrowser: c.toBrowser, FromBrowser: c.fromBrowser, Previous: prev, Settings: s, Frames: v.take})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Kill)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Process = p
	return v
}

func (v *viewer) take(f CastFrame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frames = append(v.frames, f)
	close(v.came)
	v.came = make(chan struct{})
	if !v.quiet {
		go v.AckFrame(context.Background(), f.Cast, f.Number)
	}
}

// next waits for a frame that is as wanted, among those that come from now on
// or that came since frame number after.
func (v *viewer) next(tb testing.TB, what string, is func(CastFrame) bool) CastFrame {
	tb.Helper()
	late := time.After(20 * time.Second)
	at := 0
	for {
		v.mu.Lock()
		for ; at < len(v.frames); at++ {
			if is(v.frames[at]) {
				f := v.frames[at]
				v.frames = v.frames[at+1:]
				v.mu.Unlock()
				return f
			}
		}
		came := v.came
		v.mu.Unlock()
		select {
		case <-came:
		case <-late:
			tb.Fatalf("no frame came with %s", what)
		}
	}
}

func (v *viewer) run(tb testing.TB, a reins.Action) *Reply {
	tb.Helper()
	r, err := run(v.Process, a)
	if err != nil {
		tb.Fatalf("%s: %v", a.Verb(), err)
	}
	return r
}

func (v *viewer) start(tb testing.TB, c Cast) uint64 {
	tb.Helper()
	n, err := v.StartCast(tb.Context(), c)
	if err != nil {
		tb.Fatal(err, errors.Unwrap(err))
	}
	return n
}

func pictureOf(tb testing.TB, f CastFrame) image.Image {
	tb.Helper()
	i, err := jpeg.Decode(bytes.NewReader(f.JPEG))
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

const moving = `<!doctype html><title>Moving</title><body style="margin:0"><div id=x style="width:100px;height:100px;background:#00f;position:fixed"></div>
<script>let n = 0; (function f() { x.style.left = n++ % 500 + 'px'; requestAnimationFrame(f) })()</script>`

// FRM-1, FRM-4: frames of a tab come while they are acknowledged, each once.
func TestCast(t *testing.T) {
	s := site(t, map[string]string{"/": moving})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		v := watch(t, launch(t, engine), engine, 1, Handover{})
		v.run(t, reins.Navigate{URL: s.URL})
		v.quiet = true
		began := time.Now()
		cast := v.start(t, Cast{Quality: 70})
		f := v.next(t, "a picture", func(f CastFrame) bool { return f.Number == 1 })
		if f.Cast != cast || f.Tab != "t1" || f.Width != 1280 || f.Height != 800 || f.Viewport != 0 || f.Captured.Before(began.Add(-time.Second)) || f.Captured.After(time.Now().Add(time.Second)) {
			t.Errorf("frame %+v", f)
		}
		if b := pictureOf(t, f).Bounds(); b.Dx() != f.Width || b.Dy() != f.Height {
			t.Errorf("the picture is %v", b)
		}
		if err := v.AckFrame(t.Context(), cast, 1); err != nil {
			t.Error(err)
		}
		wantCode(t, v.AckFrame(t.Context(), cast, 1), reins.CodeInvalidState)
		wantCode(t, v.AckFrame(t.Context(), cast, 99), reins.CodeInvalidState)
		wantCode(t, v.AckFrame(t.Context(), cast+1, 2), reins.CodeInvalidState)
		last := uint64(1)
		for range 20 {
			f := v.next(t, "the next number", func(f CastFrame) bool { return f.Number == last+1 })
			last = f.Number
			if err := v.AckFrame(t.Context(), cast, f.Number); err != nil {
				t.Error(err)
			}
		}
		again := v.start(t, Cast{Quality: 30, MaxWidth: 320, MaxHeight: 320, EveryNth: 2})
		f = v.next(t, "the new size", func(f CastFrame) bool { return f.Cast == again })
		if f.Width != 320 || f.Height != 200 || f.Number != 1 {
			t.Errorf("a small frame is %d by %d, number %d", f.Width, f.Height, f.Number)
		}
		wantCode(t, v.AckFrame(t.Context(), cast, last+1), reins.CodeInvalidState)
		if err := v.StopCast(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
