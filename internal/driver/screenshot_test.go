package driver

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

const shotPage = `<!doctype html><title>t</title><style>body{margin:0;background:#fff}#r{position:absolute;left:100px;top:1500px;width:60px;height:40px;background:#f00}</style><div style="height:2000px;background:#00f;width:50px"></div><div id=r role=img aria-label=Red></div>`

// TestScreenshot: viewport, whole page, an element (ACT-5).
func TestScreenshot(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{"/": shotPage})
		b.open(t, s.URL)
		red := refTo(t, b.see(t), "Red")
		for _, c := range []struct {
			name          string
			a             reins.Screenshot
			width, height int
			media         string
			at            image.Point
			want          color.RGBA
		}{
			{"viewport", reins.Screenshot{}, 1280, 800, "image/png", image.Pt(10, 10), color.RGBA{0, 0, 255, 255}},
			{"page", reins.Screenshot{FullPage: true}, 1280, 2000, "image/png", image.Pt(120, 1520), color.RGBA{255, 0, 0, 255}},
			{"jpeg", reins.Screenshot{Format: "jpeg"}, 1280, 800, "image/jpeg", image.Point{}, color.RGBA{}},
			{"webp", reins.Screenshot{Format: "webp", Quality: 50}, 1280, 800, "image/webp", image.Point{}, color.RGBA{}},
			{"element", reins.Screenshot{Ref: red}, 60, 40, "image/png", image.Pt(30, 20), color.RGBA{255, 0, 0, 255}},
		} {
			p := b.act(t, c.a).Picture
			if p == nil || p.Width != c.width || p.Height != c.height || p.MediaType != c.media || len(p.Data) == 0 || p.Scaled || p.Model != nil {
				t.Fatalf("%s: %dx%d %s, %d bytes, scaled %v", c.name, p.Width, p.Height, p.MediaType, len(p.Data), p.Scaled)
			}
			if c.media != "image/png" {
				continue
			}
			img, err := png.Decode(bytes.NewReader(p.Data))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got := color.RGBAModel.Convert(img.At(c.at.X, c.at.Y)); got != c.want {
				t.Errorf("%s: %v at %v, want %v", c.name, got, c.at, c.want)
			}
		}
	})
}

// TestTallScreenshot: a page beyond the bound is scaled, and said so (ACT-5).
func TestTallScreenshot(t *testing.T) {
	c := launch(t, reins.EngineShell)
	settings := c.settings()
	settings.Width, settings.Height = 120, 100
	b := connectTo(t, c, settings, Handover{})
	s := site(t, map[string]string{"/tall": `<!doctype html><title>t</title><body style="margin:0"><div style="height:40000px;width:100px;background:linear-gradient(red,blue)"></div>`})
	b.open(t, s.URL+"/tall")
	r := b.act(t, reins.Screenshot{FullPage: true, Image: true})
	p := r.Picture
	if !p.Scaled || p.Height > pictureSide || p.Height < pictureSide-2 || !strings.Contains(strings.Join(r.Result.Notes, " "), "scaled") {
		t.Errorf("a tall page: %dx%d scaled %v, notes %q", p.Width, p.Height, p.Scaled, r.Result.Notes)
	}
	if len(p.Model) == 0 || len(p.Model) > modelBytes {
		t.Errorf("the model gets %d bytes", len(p.Model))
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(p.Model))
	if err != nil || max(config.Width, config.Height) > modelSide {
		t.Errorf("the model gets %dx%d, %v", config.Width, config.Height, err)
	}
}

// TestScreenshotScale: CSS or device pixels (ACT-5); refs act at any density.
func TestScreenshotScale(t *testing.T) {
	c := launch(t, reins.EngineShell)
	settings := c.settings()
	settings.Scale, settings.Width, settings.Height = 2, 600, 400
	b := connectTo(t, c, settings, Handover{})
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<button style="position:absolute;left:300px;top:200px;width:80px;height:30px" onclick="say('hit')">Go</button>`})
	b.open(t, s.URL)
	ref := refTo(t, b.see(t), "Go")
	for _, c := range []struct {
		a             reins.Screenshot
		width, height int
	}{
		{reins.Screenshot{}, 600, 400}, {reins.Screenshot{Scale: "device"}, 1200, 800},
		{reins.Screenshot{Ref: ref}, 80, 30}, {reins.Screenshot{Ref: ref, Scale: "device"}, 160, 60},
	} {
		if p := b.act(t, c.a).Picture; p.Width != c.width || p.Height != c.height {
			t.Errorf("%+v: %dx%d, want %dx%d", c.a, p.Width, p.Height, c.width, c.height)
		}
	}
	b.act(t, reins.Click{Ref: ref})
	b.wantResult(t, "hit")
}

// TestScreenshotInTheBackground: a tab that is not selected can be pictured
// (TAB-6, ACT-5).
func TestScreenshotInTheBackground(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": shotPage})
	b.open(t, s.URL)
	first := b.tabNow().id
	b.act(t, reins.OpenTab{})
	if p := b.act(t, reins.Screenshot{Tab: first}).Picture; len(p.Data) == 0 || p.Width != 1280 {
		t.Errorf("%dx%d, %d bytes", p.Width, p.Height, len(p.Data))
	}
}

// TestEmptyPictureIsAnError (ACT-5).
func TestEmptyPictureIsAnError(t *testing.T) {
	_, err := picture(nil, reins.Screenshot{Format: "webp"})
	wantCode(t, err, reins.CodeToolFailed)
}

// TestModelPicture: large pictures are made to fit a model.
func TestModelPicture(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 100, 9000))
	seed := uint32(1)
	for i := range img.Pix {
		seed = seed*1664525 + 1013904223
		img.Pix[i] = byte(seed >> 24)
	}
	var data bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&data, img); err != nil {
		t.Fatal(err)
	}
	p, err := picture(data.Bytes(), reins.Screenshot{Image: true})
	if err != nil {
		t.Fatal(err)
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(p.Model))
	if err != nil || format != "jpeg" || p.ModelType != "image/jpeg" || len(p.Model) > modelBytes || config.Height > modelSide {
		t.Errorf("%s of %dx%d, %d bytes, %v", format, config.Width, config.Height, len(p.Model), err)
	}
}
