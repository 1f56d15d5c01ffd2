package driver

import (
	"context"
	"math"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

const (
	// laidOut is how long a page has to take the size of its viewport; then it is
	// taken for one that does not.
	laidOut    = time.Second
	layAnswers = 5 * time.Second       // of a page that is asked; then it is asked again
	layPause   = 20 * time.Millisecond // in between
	// oddFrames is how long frames of another size than the viewport's are passed
	// over after it changed.
	oddFrames = time.Second
)

// laying is how far a tab has taken the size of the viewport. Guarded by
// browser.mu.
type laying struct {
	out       reins.Viewport // that its page is laid out for
	at        time.Time      // since when it surely is
	following bool           // somebody waits for the page to be laid out
	stretched int            // pictures under way for which it is larger
}

// checkViewport holds a viewport to VPT-3.
func checkViewport(v reins.Viewport) error {
	ask := reins.SetViewport{Width: v.Width, Height: v.Height, Scale: v.Scale}
	if v.Width == 0 || v.Height == 0 || v.Scale == 0 || v.Revision == 0 {
		return reins.Errorf(reins.CodeInvalidInput, "a viewport needs a revision, a width, a height and a scale")
	}
	if err := ask.Validate(); err != nil {
		return err
	}
	if pixels := float64(v.Width) * v.Scale * float64(v.Height) * v.Scale; pixels > reins.MaxPixels {
		return reins.Errorf(reins.CodeInvalidInput, "a viewport of %d by %d at %g has %.0f pixels; at most %d are taken", v.Width, v.Height, v.Scale, pixels, reins.MaxPixels)
	}
	return nil
}

// setViewport gives all tabs a size, and those to come (VPT-1). It does not wait
// for pages that are busy: those take it later.
func (b *browser) setViewport(v reins.Viewport) error {
	if err := checkViewport(v); err != nil {
		return err
	}
	b.mu.Lock()
	if v.Revision <= b.viewport.Revision && v != b.viewport {
		now := b.viewport
		b.mu.Unlock()
		return reins.Errorf(reins.CodeStaleRevision, "revision %d of the viewport came after revision %d", v.Revision, now.Revision)
	}
	b.viewport = v
	for _, t := range b.tabs {
		t.session.SendAll(metrics(v, v.Width, v.Height)...)
	}
	if b.cast != nil {
		b.layOutLocked(b.cast.tab)
	}
	b.mu.Unlock()
	b.emitHandover()
	return nil
}

// size is the viewport of all tabs.
func (b *browser) size() reins.Viewport {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.viewport
}

// metrics have a page take a viewport, or a size beside it. The surface that it
// is drawn on, of which screencasts are, has as many pixels as the device would
// have: pages are scaled up to it, and so are places on them (see tab.mouse).
func metrics(v reins.Viewport, width, height int) []cdp.Request {
	p := emulation.SetDeviceMetricsOverrideParams{
		Width: int64(width), Height: int64(height), DeviceScaleFactor: v.Scale,
		ScreenWidth: int64(v.Width), ScreenHeight: int64(v.Height),
	}
	if v.Scale == 1 || v.Scale == 0 {
		return []cdp.Request{cdp.Prepare(emulation.SetDeviceMetricsOverride, p), carrying(false)}
	}
	p.Scale = v.Scale
	return []cdp.Request{
		cdp.Prepare(emulation.SetDeviceMetricsOverride, p),
		{Method: "Emulation.setVisibleSize", Params: map[string]int{ // experimental: not among the types
			"width": int(math.Round(float64(width) * v.Scale)), "height": int(math.Round(float64(height) * v.Scale)),
		}},
		carrying(true),
	}
}

// layOutLocked follows t until its page is laid out for the viewport, and has the
// cast go on then: a page that is still after that paints nothing by itself.
func (b *browser) layOutLocked(t *tab) {
	if t.laying.following || t.laying.out == b.viewport && t.laying.stretched == 0 {
		return
	}
	t.laying.following = true
	b.work.Go(func() {
		for {
			over, asked := b.laidOut(t)
			if over {
				return
			}
			if !asked { // between two documents there is nobody to ask
				time.Sleep(layPause)
			}
		}
	})
}

// laidOut waits for t's page once. It reports whether there is nothing left to
// wait for, and whether the page could be asked.
func (b *browser) laidOut(t *tab) (over, asked bool) {
	ctx, cancel := context.WithTimeout(context.Background(), layAnswers)
	defer cancel()
	var want reins.Viewport
	done := func() bool {
		select {
		case <-t.ended:
			return true
		case <-b.conn.Done():
			return true
		default:
			return t.laying.out == want
		}
	}
	free := func() bool {
		want = b.viewport
		return done() || t.blockedLocked() == nil && t.ready && t.attachedLocked() && t.laying.stretched == 0
	}
	waited := b.await(ctx, free)
	asked = waited == nil && b.takes(ctx, t, want)
	b.mu.Lock()
	defer b.mu.Unlock()
	if asked && b.viewport == want && t.laying.stretched == 0 {
		t.laying.out, t.laying.at = want, time.Now()
	}
	want = b.viewport
	if !done() {
		return false, asked
	}
	t.laying.following = false
	b.recastLocked(t)
	b.changedLocked()
	return true, true
}

// takes waits until t's page has the size of v and was painted with it, or does
// not take it. It is false when the page did not answer.
func (b *browser) takes(ctx context.Context, t *tab, v reins.Viewport) bool {
	d, err := t.document(ctx)
	if err != nil {
		return false
	}
	return d.eval(ctx, "(w, h, s, ms) => reins.laidOut(w, h, s, ms)", nil, v.Width, v.Height, v.Scale, laidOut.Milliseconds()) == nil
}

// revisionLocked is that of the viewport which a frame shows the page in. A frame
// from before a change never bears the revision after it; one of which that
// cannot be told is not to be shown: another follows once the page is laid out.
func (t *tab) revisionLocked(c *casting, f CastFrame) (revision uint64, ok bool) {
	l, now := &t.laying, t.b.viewport
	switch {
	case l.stretched > 0 || f.Captured.Before(l.at) || f.Captured.Before(c.rolled):
		return 0, false
	case l.out != now && fits(now, c.spec, f):
		return 0, false
	case fits(l.out, c.spec, f):
		return l.out.Revision, true
	}
	return now.Revision, l.out == now && f.Captured.Sub(c.rolled) > oddFrames
}

// fits reports whether a picture has the size that a viewport's has in a cast.
func fits(v reins.Viewport, c Cast, f CastFrame) bool {
	width, height := float64(v.Width)*v.Scale, float64(v.Height)*v.Scale
	shrink := min(1, float64(c.MaxWidth)/width, float64(c.MaxHeight)/height)
	near := func(got int, want float64) bool { return float64(got) > want-2 && float64(got) < want+2 }
	return near(f.Width, width*shrink) && near(f.Height, height*shrink)
}

// resize has a tab take a size, beside the viewport's, for one picture.
func (b *browser) resize(t *tab, width, height int) (restore func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.laying.stretched++
	s := t.session
	s.SendAll(metrics(b.viewport, width, height)...)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.laying.stretched--
		s.SendAll(metrics(b.viewport, b.viewport.Width, b.viewport.Height)...)
		t.laying.out = reins.Viewport{}
		if b.cast != nil && b.cast.tab == t {
			b.layOutLocked(t)
		}
		b.changedLocked()
	}
}

// resizeRequests give the page of a session the size of the viewport. A session's
// second override that equals its first is not passed on, so it is cleared first:
// another session may have undone it.
func (b *browser) resizeRequests() []cdp.Request {
	v := b.size()
	if v.Width == 0 || v.Height == 0 {
		return nil
	}
	return append([]cdp.Request{cdp.Prepare(emulation.ClearDeviceMetricsOverride, none)}, metrics(v, v.Width, v.Height)...)
}
