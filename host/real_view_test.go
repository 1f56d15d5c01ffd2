package host

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// film is a viewer of a real browser, as a page would be: it acknowledges what it
// gets after a while, or never.
type film struct {
	sub  reins.Subscription
	done chan struct{}

	mu     sync.Mutex
	frames []reins.Frame // without their pictures, but for the newest
	state  *reins.ViewState
	end    error
	ended  time.Time
}

// record subscribes and reads on until the end.
func record(t testing.TB, l reins.Lease, lag time.Duration) *film {
	t.Helper()
	sub, err := l.Subscribe(t.Context(), reins.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := &film{sub: sub, done: make(chan struct{})}
	t.Cleanup(func() {
		_ = sub.Close()
		<-f.done
	})
	go func() {
		defer close(f.done)
		for {
			u, err := sub.Next(context.Background())
			f.take(u, err)
			if err != nil {
				return
			}
			if u.Frame != nil && lag >= 0 {
				time.Sleep(lag)
				sub.Ack(u.Frame.ID)
			}
		}
	}()
	return f
}

func (f *film) take(u reins.Update, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.end, f.ended = err, time.Now()
	}
	if u.State != nil {
		f.state = u.State
	}
	if u.Frame != nil {
		if n := len(f.frames); n > 0 {
			f.frames[n-1].JPEG = nil
		}
		f.frames = append(f.frames, *u.Frame)
	}
}

func (f *film) newest() (reins.Frame, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.frames) == 0 {
		return reins.Frame{}, false
	}
	return f.frames[len(f.frames)-1], true
}

func (f *film) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.frames)
}

// shows reports whether the newest picture has a colour in its middle.
func (f *film) shows(t testing.TB, want color.Color) bool {
	frame, ok := f.newest()
	if !ok {
		return false
	}
	picture := decoded(t, frame)
	b := picture.Bounds()
	return near8(picture.At(b.Dx()/2, b.Dy()/2), want)
}

func decoded(t testing.TB, f reins.Frame) image.Image {
	t.Helper()
	picture, err := jpeg.Decode(bytes.NewReader(f.JPEG))
	if err != nil {
		t.Fatal(err)
	}
	if b := picture.Bounds(); b.Dx() != f.Width || b.Dy() != f.Height {
		t.Fatalf("a picture of %v says that it is %dx%d", b, f.Width, f.Height) // B082
	}
	return picture
}

func near8(a, b color.Color) bool {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	far := func(x, y uint32) bool { return max(x, y)-min(x, y) > 0x2000 }
	return !far(ar, br) && !far(ag, bg) && !far(ab, bb)
}

var (
	red   = color.RGBA{255, 0, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	green = color.RGBA{0, 128, 0, 255}
)

const minute = time.Minute

// TestRealView is B080, B081, FRM-1, FRM-11, FRM-12, VPT-1 and LSE-6 with a real
// browser: who joins a still page gets a picture, at its real size; it follows tabs
// and drivers; a viewer that comes back is shown the page again; viewers of different
// size share the smaller one; what ends authority ends the picture.
func TestRealView(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/red":  html(`<title>Red</title><body style="background:#f00">`),
		"/blue": html(`<title>Blue</title><body style="background:#00f">`),
	})
	h := real(t, reins.Hooks{})
	agent := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	ada, bob := acquire(t, h, personOf(key1)), acquire(t, h, bob())
	early := record(t, ada, 0) // before there is a browser
	do(t, agent, reins.Navigate{URL: base + "/red"})
	within(t, minute, "a picture of the red page", func() bool { return early.shows(t, red) })
	late := record(t, bob, 0)
	within(t, minute, "a picture for who comes late", func() bool { return late.shows(t, red) })
	do(t, agent, reins.OpenTab{URL: base + "/blue"})
	within(t, minute, "the other tab", func() bool { return early.shows(t, blue) && late.shows(t, blue) })
	do(t, agent, reins.CloseTab{})
	within(t, minute, "the first tab again", func() bool { return early.shows(t, red) })

	wide := do(t, ada, reins.SetViewport{Width: 1000, Height: 500, Scale: 2}).Viewport
	if *wide != (reins.Viewport{Revision: wide.Revision, Width: 1000, Height: 500, Scale: 2}) || wide.Revision == 0 {
		t.Errorf("her viewport is %+v", wide)
	}
	sized := func(f *film, w, h int, revision uint64) func() bool {
		return func() bool {
			is, ok := f.newest()
			return ok && is.Width == w && is.Height == h && is.Viewport == revision
		}
	}
	within(t, minute, "a picture of her size", sized(late, 2000, 1000, wide.Revision))
	small := do(t, bob, reins.SetViewport{Width: 400, Height: 800}).Viewport
	within(t, minute, "a picture of both their sizes", sized(early, 400, 500, small.Revision))
	within(t, minute, "in red", func() bool { return early.shows(t, red) })

	_, err := ada.Do(t.Context(), reins.Call{Action: reins.Pointer{Tab: do(t, ada, reins.ListTabs{}).Selected, Viewport: wide.Revision, Kind: "move", X: 1, Y: 1}})
	code(t, err, reins.CodeInvalidState) // INP-1: she saw another picture

	r := opened(t, h)
	r.mu.Lock()
	conn := r.st.inc.conn
	r.mu.Unlock()
	conn.link.Kill()
	within(t, minute, "another driver", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.st.inc.conn != nil && r.st.inc.conn != conn })
	before := early.count()
	within(t, minute, "a picture from another driver", func() bool {
		return early.count() > before && sized(early, 400, 500, small.Revision)() && early.shows(t, red)
	})

	if err := bob.Release(t.Context()); err != nil { // VPT-2
		t.Fatal(err)
	}
	<-late.done
	within(t, minute, "her size again", func() bool { is, ok := early.newest(); return ok && is.Width == 2000 })
	if n := early.count(); n > 100 {
		t.Errorf("pages that hardly ever change made %d pictures", n) // FRM-11
	}
	_ = early.sub.Close()
	again := record(t, ada, 0)
	within(t, minute, "the page after a reload", func() bool { return again.shows(t, red) })
	do(t, agent, reins.Navigate{URL: base + "/blue"})
	within(t, minute, "the blue page", func() bool { return again.shows(t, blue) })
	began := time.Now()
	if err := h.Revoke(t.Context(), ada.Authority().CapabilityID); err != nil {
		t.Fatal(err)
	}
	<-again.done
	code(t, again.end, reins.CodeLeaseEnded)
	t.Logf("the view ended %s after the call that revoked it", again.ended.Sub(began))
}

func opened(t *testing.T, h *Host) *resource {
	t.Helper()
	r, err := h.Open(t.Context(), key1)
	if err != nil {
		t.Fatal(err)
	}
	return r.(*resource)
}

// TestRealViewers is B088, FRM-3, FRM-11 and CTL-3: beside viewers that take nothing,
// and that take and never acknowledge, one that does both gets the animation; nothing
// piles up for the others, and they are current when they come back. Then it takes
// over, and sees what it does.
func TestRealViewers(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{"/": html(`<title>Restless</title><body style="margin:0">
<canvas id=c width=1200 height=700 style="display:block"></canvas><script>
const g = c.getContext('2d'); let n = 0, hit = false
const draw = () => {
  g.fillStyle = hit ? 'rgb(0,128,0)' : 'rgb(' + (n++ % 200) + ',' + (n * 7 % 255) + ',200)'
  g.fillRect(0, 0, 1200, 700)
  requestAnimationFrame(draw)
}
draw(); addEventListener('pointerdown', () => hit = true)
</script>`)})
	h := real(t, reins.Hooks{})
	agent := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	ada, deaf := acquire(t, h, personOf(key1)), acquire(t, h, bob())
	eve := bob()
	eve.Actor = "eve"
	mute := record(t, acquire(t, h, eve), -1)
	tab := do(t, agent, reins.Navigate{URL: base}).Tab.ID
	stalled, err := deaf.Subscribe(t.Context(), reins.SubscribeOptions{Window: 32})
	if err != nil {
		t.Fatal(err)
	}
	fast := record(t, ada, 0)
	within(t, minute, "a picture", func() bool { return fast.count() > 0 && mute.count() > 0 })
	began, first := time.Now(), fast.count()
	within(t, 2*minute, "20 more pictures", func() bool { return fast.count() >= first+20 })
	t.Logf("%.0f pictures a second", float64(fast.count()-first)/time.Since(began).Seconds())
	is := do(t, ada, reins.Inspect{}).Inspection // VIEW-6
	if !slices.ContainsFunc(is.Processes, func(p reins.CellProcess) bool { return p.Name == "renderer" && p.Memory > 1<<20 }) || is.Incarnation != 1 {
		t.Errorf("in the cell are %+v", is)
	}
	newest, _ := fast.newest()
	for {
		u, err := stalled.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if u.Frame == nil {
			continue
		}
		if u.Frame.ID.Sequence < newest.ID.Sequence {
			t.Errorf("who comes back is shown picture %d, after %d", u.Frame.ID.Sequence, newest.ID.Sequence)
		}
		break
	}
	do(t, ada, reins.RequestControl{})
	_, err = agent.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	code(t, err, reins.CodeHumanControlled)
	press := reins.Pointer{Tab: tab, Kind: "down", X: 300, Y: 300}
	_, err = deaf.Do(t.Context(), reins.Call{Action: press})
	code(t, err, reins.CodeHumanControlled)
	do(t, ada, press)
	within(t, minute, "what she did, in the picture", func() bool { return fast.shows(t, green) })
	do(t, ada, reins.Pointer{Tab: tab, Kind: "up", X: 300, Y: 300})
	do(t, ada, reins.ReleaseControl{})
	do(t, agent, reins.Snapshot{})
}

// BenchmarkRealInput is INP-4 and more: raw input from its call to the browser's
// answer, with a real browser.
func BenchmarkRealInput(b *testing.B) {
	h := real(b, reins.Hooks{})
	agent := realLease(b, h, key1, reins.BrowserSpec{Engine: reins.EngineShell})
	ada := acquire(b, h, personOf(key1))
	tab := do(b, agent, reins.OpenTab{}).Tab.ID
	record(b, ada, 0)
	took := make([]time.Duration, 0, 1<<16)
	n := 0
	for b.Loop() {
		n++
		began := time.Now()
		do(b, ada, reins.Pointer{Tab: tab, Kind: "move", X: float64(n % 500), Y: 10})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "p95-µs")
}
