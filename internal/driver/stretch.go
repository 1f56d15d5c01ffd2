package driver

import (
	"context"
	"math"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins/internal/cdp"
)

// framePaints is how long the frames of other sites have to be painted once they
// are in view.
const framePaints = time.Second

// stretch makes the viewport as large as a picture that goes beyond it: frames
// of other sites that are out of view are not painted, and would be blank in it.
// What the page was scrolled to is brought back with the viewport. Pages without
// such frames are left as they are; a picture larger than the browser paints at
// once is taken without, and that is said.
func (b *browser) stretch(ctx context.Context, x *action, f framing) (restore func()) {
	restore = func() {}
	t, v := x.tab, b.size()
	if f.CaptureBeyondViewport == nil || !*f.CaptureBeyondViewport || len(t.sessions()) < 2 || v.Width == 0 || v.Height == 0 {
		return restore
	}
	width, height := math.Ceil(f.Clip.X+f.Clip.Width), math.Ceil(f.Clip.Y+f.Clip.Height)
	if width <= float64(v.Width) && height <= float64(v.Height) {
		return restore
	}
	if max(width, height)*max(v.Scale, 1) > pictureSide {
		x.note("the page is too large to have its frames of other sites painted all at once; some may be blank")
		return restore
	}
	d, err := t.document(ctx)
	if err != nil {
		return restore
	}
	var at []float64
	if d.eval(ctx, "() => [scrollX, scrollY]", &at) != nil || len(at) != 2 {
		return restore
	}
	back := b.resize(t, max(int(width), v.Width), max(int(height), v.Height))
	b.painted(ctx, t)
	return func() {
		back()
		d.startEval("(x, y) => scrollTo({ left: x, top: y, behavior: 'instant' })", true, []any{at[0], at[1]})
	}
}

// painted waits, for a bounded time, until the documents of a tab have painted
// twice.
func (b *browser) painted(ctx context.Context, t *tab) {
	short, cancel := context.WithTimeout(ctx, framePaints)
	defer cancel()
	docs, err := t.documents(short)
	if err != nil {
		return
	}
	var replies []cdp.Reply[runtime.CallFunctionOnResult]
	for _, d := range docs {
		replies = append(replies, d.startEval("() => reins.after(0, 0).then(() => 0)", true, nil))
	}
	for i, d := range docs {
		_, _ = d.wait(short, replies[i]) // what does not come in time is missing from the picture
	}
}
