package driver

import (
	"context"
	"math"
	"time"

	"github.com/chromedp/cdproto/emulation"
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
	t := x.tab
	if f.CaptureBeyondViewport == nil || !*f.CaptureBeyondViewport || len(t.sessions()) < 2 || b.settings.Width == 0 || b.settings.Height == 0 {
		return restore
	}
	width, height := math.Ceil(f.Clip.X+f.Clip.Width), math.Ceil(f.Clip.Y+f.Clip.Height)
	if width <= float64(b.settings.Width) && height <= float64(b.settings.Height) {
		return restore
	}
	if max(width, height)*max(b.settings.Scale, 1) > pictureSide {
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
	s := t.pageSession()
	s.Send(emulation.SetDeviceMetricsOverride.Method, b.metrics(max(int64(width), int64(b.settings.Width)), max(int64(height), int64(b.settings.Height))))
	b.painted(ctx, t)
	return func() {
		s.Send(emulation.SetDeviceMetricsOverride.Method, b.metrics(int64(b.settings.Width), int64(b.settings.Height)))
		d.startEval("(x, y) => scrollTo({ left: x, top: y, behavior: 'instant' })", true, []any{at[0], at[1]})
	}
}

// metrics are the viewport of a tab.
func (b *browser) metrics(width, height int64) emulation.SetDeviceMetricsOverrideParams {
	return emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: b.settings.Scale,
		ScreenWidth: int64(b.settings.Width), ScreenHeight: int64(b.settings.Height),
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
