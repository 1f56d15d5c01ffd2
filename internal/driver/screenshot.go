package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// shotAnswers is how long a picture may take; one of a page that runs a script
// for ever is never painted.
const shotAnswers = 20 * time.Second

const (
	pictureSide = 16384   // px a side of a stored picture (ACT-5)
	modelSide   = 8000    // px a side of a picture for a model
	modelBytes  = 1 << 20 // of one
)

// screenshot takes a picture of the viewport, the page or an element (ACT-5).
func (b *browser) screenshot(ctx context.Context, x *action, a reins.Screenshot) error {
	guarded, release := x.tab.guard(ctx)
	defer release()
	var p framing
	var data []byte
	err := x.tab.within(guarded, shotAnswers, func(ctx context.Context) (err error) {
		for range mostCaptures {
			p, data, err = b.take(ctx, x, a)
			if a.Ref != "" || !errors.Is(err, errReplaced) {
				return err
			}
			b.awaitParsed(ctx, x.tab)
		}
		return reins.Errorf(reins.CodeToolFailed, "the page in tab %s goes to another one again and again, so that no picture of it could be taken; try again, or navigate the tab", x.tab.id)
	})
	if err != nil {
		return err
	}
	pic, err := picture(data, a)
	if err != nil {
		return err
	}
	pic.Scaled = p.shrunk
	if p.shrunk {
		x.note("the picture is scaled down to %d by %d pixels: a side takes at most %d", pic.Width, pic.Height, pictureSide)
	}
	x.reply.Picture = pic
	return nil
}

// take frames and takes a picture of the document that is there now.
func (b *browser) take(ctx context.Context, x *action, a reins.Screenshot) (framing, []byte, error) {
	p, err := b.shot(ctx, x, a)
	if err != nil {
		return p, nil, err
	}
	defer b.stretch(ctx, x, p)()
	data, err := b.capture(ctx, x.tab, p)
	return p, data, err
}

// framing says what a picture is to show.
type framing struct {
	page.CaptureScreenshotParams
	shrunk bool
}

// shot frames what was asked for.
func (b *browser) shot(ctx context.Context, x *action, a reins.Screenshot) (framing, error) {
	var f framing
	f.Format = page.CaptureScreenshotFormat(a.Format)
	if a.Format == "" {
		f.Format = page.CaptureScreenshotFormatPng
	}
	if a.Format == "jpeg" || a.Format == "webp" {
		f.Quality = new(int64(80))
		if a.Quality != 0 {
			*f.Quality = int64(a.Quality)
		}
	}
	// Encoding is most of the work. Where the picture is small the browser may
	// spend less of it, for a third more bytes.
	f.OptimizeForSpeed = new(!a.FullPage)
	size, density := b.size(), 1.0
	if size.Scale > 0 {
		density = size.Scale
	}
	if !a.FullPage && a.Ref == "" && (density == 1 || a.Scale == "device") {
		return f, nil // the viewport as it is: no clip, for which the browser would lay the page out anew
	}
	var metrics page.GetLayoutMetricsResult
	err := x.tab.within(ctx, mainAnswers, func(ctx context.Context) (err error) {
		metrics, err = cdp.Call(ctx, x.tab.pageSession(), page.GetLayoutMetrics, none)
		return err
	})
	if err != nil {
		return f, evalError(x.tab, err)
	}
	view := metrics.CSSVisualViewport
	// What the browser tells of the viewport leaves scroll bars out.
	width, height := max(view.ClientWidth, float64(size.Width)), max(view.ClientHeight, float64(size.Height))
	clip := &page.Viewport{X: view.PageX, Y: view.PageY, Width: width, Height: height, Scale: 1}
	switch {
	case a.Ref != "":
		if clip, err = b.clipOf(ctx, x, a.Ref, metrics); err != nil {
			return f, err
		}
	case a.FullPage:
		size := metrics.CSSContentSize
		clip = &page.Viewport{Width: math.Ceil(max(size.Width, width)), Height: math.Ceil(max(size.Height, height)), Scale: 1}
	}
	if clip.Width < 1 || clip.Height < 1 {
		return f, reins.Errorf(reins.CodeToolFailed, "there is nothing to take a picture of: it has no size; take a picture of the viewport")
	}
	if a.Scale != "device" {
		clip.Scale = 1 / density // the picture comes at the device's density
	}
	if longest := max(clip.Width, clip.Height) * clip.Scale * density; longest > pictureSide {
		clip.Scale *= pictureSide / longest
		f.shrunk = true
	}
	f.Clip = clip
	f.CaptureBeyondViewport = new(a.FullPage || a.Ref != "")
	return f, nil
}

// clipOf is the place of an element on its tab's page, scrolled into view.
func (b *browser) clipOf(ctx context.Context, x *action, ref reins.Ref, m page.GetLayoutMetricsResult) (*page.Viewport, error) {
	d, n, err := b.element(ref)
	if err != nil {
		return nil, err
	}
	s := &spot{doc: d, number: n}
	if err := d.eval(ctx, "n => reins.rectOf(n)", &s.readyInfo, n); err != nil {
		return nil, err
	}
	x.reply.Result.Target = s.target()
	switch {
	case s.Gone:
		return nil, errStale(ref)
	case s.Why != "":
		return nil, errNotActionable(ref, s.readyInfo, d)
	}
	if _, _, err := b.climb(ctx, s, false); err != nil {
		return nil, err
	}
	view := m.CSSVisualViewport
	now, err := cdp.Call(ctx, x.tab.pageSession(), page.GetLayoutMetrics, none)
	if err == nil {
		view = now.CSSVisualViewport
	}
	return &page.Viewport{X: s.x + view.PageX, Y: s.y + view.PageY, Width: s.W, Height: s.H, Scale: 1}, nil
}

// capture takes the picture.
func (b *browser) capture(ctx context.Context, t *tab, f framing) ([]byte, error) {
	got, err := b.captureOnce(ctx, t, f)
	if err != nil {
		if fault, ok := cdp.IsProtocol(err); ok {
			return nil, reins.Errorf(reins.CodeToolFailed, "the browser could not take the picture (%.100q); try png, or a smaller part", fault.Message).Because(err)
		}
		return nil, evalError(t, err)
	}
	if len(got.Data) == 0 {
		return nil, reins.Errorf(reins.CodeToolFailed, "the browser returned an empty picture; try png, or a smaller part of the page")
	}
	return got.Data, nil
}

const (
	mostCaptures = 6                      // of a page that goes elsewhere meanwhile
	lateCapture  = 500 * time.Millisecond // for a picture of a document that was left
)

// captureOnce takes a picture of the document that is there now. The browser does
// not answer for one that was left in the middle of it.
func (b *browser) captureOnce(ctx context.Context, t *tab, f framing) (page.CaptureScreenshotResult, error) {
	d, err := t.document(ctx)
	if err != nil {
		return page.CaptureScreenshotResult{}, err
	}
	s := t.pageSession()
	// Of a page that does not answer no picture comes either.
	answers := cdp.Send(s, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
	ctx, cancelBusy := context.WithCancelCause(ctx)
	defer cancelBusy(nil)
	timer := time.AfterFunc(mainAnswers, func() {
		select {
		case <-answers.Done():
		default:
			cancelBusy(errBusy(t))
		}
	})
	defer timer.Stop()
	size := b.size()
	reply := cdp.Send(s, page.CaptureScreenshot, f.CaptureScreenshotParams)
	b.work.Go(func() {
		<-reply.Done()
		b.keepSize(t, size)
	})
	select {
	case <-reply.Done():
	case <-ctx.Done():
	case <-d.gone:
		short, cancel := context.WithTimeout(ctx, lateCapture)
		defer cancel()
		got, err := reply.Wait(short)
		if err != nil && ctx.Err() == nil {
			err = errReplaced
		}
		return got, err
	}
	got, err := reply.Wait(ctx)
	if cause := context.Cause(ctx); err != nil && reins.CodeOf(cause) == reins.CodeTimeout {
		err = cause
	}
	if fault, ok := cdp.IsProtocol(err); ok && strings.Contains(fault.Message, "Not attached to an active page") {
		err = errReplaced
	}
	return got, err
}

// keepSize gives t's page the size of the viewport again when that changed while a
// picture was taken: the browser puts back the size from before the picture then.
func (b *browser) keepSize(t *tab, before reins.Viewport) {
	if b.size() == before {
		return
	}
	requests := b.resizeRequests()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.session.SendAll(requests...)
	t.laying.out = reins.Viewport{}
	if b.cast != nil && b.cast.tab == t {
		b.layOutLocked(t)
	}
	b.changedLocked()
}

// awaitParsed waits, for a bounded time, until the tab's newest document is
// parsed.
func (b *browser) awaitParsed(ctx context.Context, t *tab) {
	short, cancel := context.WithTimeout(ctx, lateCapture)
	defer cancel()
	_ = b.await(short, func() bool { return t.main.doc != nil && t.main.phase >= phaseParsed || t.blockedLocked() != nil })
}

// picture describes captured bytes and makes the one for a model.
func picture(data []byte, a reins.Screenshot) (*Picture, error) {
	format := a.Format
	if format == "" {
		format = "png"
	}
	config, err := decodeConfig(data, format)
	if err != nil {
		return nil, reins.Errorf(reins.CodeToolFailed, "the browser returned a picture that cannot be read; try png").Because(err)
	}
	p := &Picture{Width: config.Width, Height: config.Height, MediaType: "image/" + format, Data: data}
	if !a.Image {
		return p, nil
	}
	if len(data) <= modelBytes && max(p.Width, p.Height) <= modelSide {
		p.Model, p.ModelType = data, p.MediaType
		return p, nil
	}
	p.Model, err = forModel(data, format)
	if err != nil {
		return nil, reins.Errorf(reins.CodeToolFailed, "the picture could not be made small enough to be shown; read it as an artifact").Because(err)
	}
	p.ModelType = "image/jpeg"
	return p, nil
}

func decodeConfig(data []byte, format string) (image.Config, error) {
	switch format {
	case "jpeg":
		return jpeg.DecodeConfig(bytes.NewReader(data))
	case "webp":
		return webp.DecodeConfig(bytes.NewReader(data))
	}
	return png.DecodeConfig(bytes.NewReader(data))
}

func decodeImage(data []byte, format string) (image.Image, error) {
	switch format {
	case "jpeg":
		return jpeg.Decode(bytes.NewReader(data))
	case "webp":
		return webp.Decode(bytes.NewReader(data))
	}
	return png.Decode(bytes.NewReader(data))
}

// forModel encodes a picture as JPEG within the bounds of what models take,
// smaller each time until it fits.
func forModel(data []byte, format string) ([]byte, error) {
	src, err := decodeImage(data, format)
	if err != nil {
		return nil, err
	}
	side := max(src.Bounds().Dx(), src.Bounds().Dy())
	scale := min(1, float64(modelSide)/float64(side))
	for range 8 {
		img := src
		if scale < 1 {
			img = shrink(src, scale)
		}
		var out bytes.Buffer
		if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 75}); err != nil {
			return nil, err
		}
		if out.Len() <= modelBytes {
			return out.Bytes(), nil
		}
		// Bytes go about with the area.
		scale *= min(0.9, 0.95*math.Sqrt(float64(modelBytes)/float64(out.Len())))
	}
	return nil, fmt.Errorf("a picture of %v does not fit %d bytes", src.Bounds().Size(), modelBytes)
}

func shrink(src image.Image, scale float64) image.Image {
	r := src.Bounds()
	w, h := max(1, int(float64(r.Dx())*scale)), max(1, int(float64(r.Dy())*scale))
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, r, draw.Src, nil)
	return dst
}
