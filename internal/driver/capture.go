package driver

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"time"

	"github.com/chromedp/cdproto/page"
	"golang.org/x/image/draw"

	"github.com/reins-browser/reins"
)

// captureFrame takes one picture of a tab, be it still or in the background
// (FRM-12).
func (b *browser) captureFrame(ctx context.Context, c Cast) (*CastFrame, error) {
	spec, err := c.whole()
	if err != nil {
		return nil, err
	}
	t, err := b.resolveTab(c.Tab, "")
	if err != nil {
		return nil, err
	}
	guarded, release := t.guard(ctx)
	defer release()
	var f *CastFrame
	err = t.within(guarded, shotAnswers, func(ctx context.Context) (err error) {
		if err := t.usable(ctx); err != nil {
			return err
		}
		for range mostCaptures {
			if f, err = b.captureOf(ctx, t, spec); f != nil || err != nil {
				return err
			}
		}
		return errBusy(t)
	})
	if err != nil {
		if cancelled := reins.ContextError(ctx); cancelled != nil {
			return nil, cancelled
		}
		return nil, (&action{tab: t, cmd: Command{Action: reins.Screenshot{}}}).failure(err)
	}
	if most := b.frameBytes(); len(f.JPEG) > most {
		return nil, reins.Errorf(reins.CodeFrameTooLarge, "a picture of tab %s has %d bytes; at most %d are taken", t.id, len(f.JPEG), most).With("tab", string(t.id))
	}
	return f, nil
}

// captureOf takes a picture; nil when the viewport changed meanwhile.
func (b *browser) captureOf(ctx context.Context, t *tab, spec Cast) (*CastFrame, error) {
	b.mu.Lock()
	b.layOutLocked(t)
	b.mu.Unlock()
	var v reins.Viewport
	err := b.await(ctx, func() bool {
		v = b.viewport
		return t.laying.out == v && t.laying.stretched == 0 || t.blockedLocked() != nil
	})
	if err != nil {
		return nil, err
	}
	data, err := b.captureOnce(ctx, t, framing{CaptureScreenshotParams: page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatJpeg, Quality: new(int64(spec.Quality)), OptimizeForSpeed: new(true),
	}})
	if err != nil {
		return nil, err
	}
	f := &CastFrame{Tab: t.id, Viewport: v.Revision, Captured: time.Now(), JPEG: data.Data}
	b.mu.Lock()
	same := t.laying.out == v && b.viewport == v && t.laying.stretched == 0
	b.mu.Unlock()
	if !same {
		return nil, nil
	}
	if err := f.shrink(spec); err != nil {
		return nil, reins.Errorf(reins.CodeToolFailed, "the browser returned a picture that cannot be read; try again").Because(err)
	}
	return f, nil
}

// shrink measures the picture, and makes it fit where it is too large.
func (f *CastFrame) shrink(spec Cast) error {
	config, err := jpeg.DecodeConfig(bytes.NewReader(f.JPEG))
	if err != nil {
		return err
	}
	f.Width, f.Height = config.Width, config.Height
	by := min(float64(spec.MaxWidth)/float64(f.Width), float64(spec.MaxHeight)/float64(f.Height))
	if by >= 1 {
		return nil
	}
	whole, err := jpeg.Decode(bytes.NewReader(f.JPEG))
	if err != nil {
		return err
	}
	f.Width, f.Height = max(int(float64(f.Width)*by), 1), max(int(float64(f.Height)*by), 1)
	small := image.NewRGBA(image.Rect(0, 0, f.Width, f.Height))
	draw.ApproxBiLinear.Scale(small, small.Bounds(), whole, whole.Bounds(), draw.Src, nil)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: max(spec.Quality, 1)}); err != nil {
		return err
	}
	f.JPEG = out.Bytes()
	return nil
}
