package driver

import (
	"fmt"
	"image/color"
	"testing"

	"github.com/reins-browser/reins"
)

// sized shows its viewport as a colour: red is its width in steps of 8 pixels,
// green its height, blue its scale in steps of a half.
const sized = `<!doctype html><title>Sized</title><body style="margin:0"><script>
const show = () => { document.body.style.background = 'rgb(' + [innerWidth / 8, innerHeight / 8, devicePixelRatio * 40].join() + ')' }
addEventListener('resize', show); matchMedia('(min-resolution: 1.5dppx)').onchange = show; show();
</script>`

func shade(v reins.Viewport) color.RGBA {
	return color.RGBA{uint8(v.Width / 8), uint8(v.Height / 8), uint8(v.Scale * 40), 255}
}

// depicts tells whether a picture of the page sized is of a viewport.
func depicts(tb testing.TB, f CastFrame, v reins.Viewport) bool {
	tb.Helper()
	r, g, b, _ := pictureOf(tb, f).At(f.Width/2, f.Height/2).RGBA()
	want := shade(v)
	near := func(got uint32, want uint8) bool { d := int(got>>8) - int(want); return d > -5 && d < 5 }
	return near(r, want.R) && near(g, want.G) && near(b, want.B)
}

// VPT-1, FRM-2: a frame bears the revision of the viewport that it shows, never
// a later one, also where the picture's size does not tell them apart; what is
// shown at last is of the newest.
func TestViewportRevision(t *testing.T) {
	s := site(t, map[string]string{"/": sized})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		v := watch(t, launch(t, engine), engine, 1, Handover{})
		v.run(t, reins.Navigate{URL: s.URL})
		v.start(t, Cast{Quality: 90, MaxWidth: 1200, MaxHeight: 900})
		sizes := []reins.Viewport{
			{Width: 1200, Height: 900, Scale: 1}, {Width: 600, Height: 450, Scale: 2}, {Width: 800, Height: 600, Scale: 1.5},
			{Width: 1024, Height: 700, Scale: 1}, {Width: 390, Height: 844, Scale: 3}, {Width: 1600, Height: 1200, Scale: 1},
		}
		by := map[uint64]reins.Viewport{0: {Width: 1280, Height: 800, Scale: 1}}
		revision := uint64(0)
		check := func(f CastFrame) bool {
			shown := f.Viewport // or a later one: input for an earlier is refused by then
			for shown <= revision && !depicts(t, f, by[shown]) {
				shown++
			}
			if shown > revision {
				t.Errorf("frame %d of %d by %d bears revision %d and shows an earlier: %v", f.Number, f.Width, f.Height, f.Viewport, color.RGBAModel.Convert(pictureOf(t, f).At(f.Width/2, f.Height/2)))
			}
			return f.Viewport == revision
		}
		for i := range 12 {
			revision++
			size := sizes[i%len(sizes)]
			size.Revision = revision
			by[revision] = size
			if err := v.SetViewport(t.Context(), size); err != nil {
				t.Fatal(err)
			}
			if i%3 != 2 { // at times the next comes before the last one is shown
				v.next(t, fmt.Sprint("revision ", revision), check)
			}
		}
		v.next(t, "the last revision", check)
		f, err := v.Capture(t.Context(), Cast{Quality: 90})
		if err != nil || !check(f) || f.Number != 0 {
			t.Errorf("a picture by itself: %d by %d, revision %d, %v", f.Width, f.Height, f.Viewport, err)
		}
		for _, bad := range []reins.Viewport{{}, {Revision: 99, Width: 100, Height: 500, Scale: 1}, {Revision: 99, Width: 4096, Height: 4096, Scale: 1}, {Revision: 99, Width: 1280, Height: 800, Scale: 5}} {
			wantCode(t, v.SetViewport(t.Context(), bad), reins.CodeInvalidInput)
		}
		wantCode(t, v.SetViewport(t.Context(), reins.Viewport{Revision: 1, Width: 500, Height: 500, Scale: 1}), reins.CodeStaleRevision)
	})
}

// VPT-1: a picture that is under way while the viewport changes does not give the
// page its old size back.
func TestViewportOutlivesPictures(t *testing.T) {
	s := site(t, map[string]string{"/": sized})
	v := watch(t, launch(t, reins.EngineFull), reins.EngineFull, 1, Handover{})
	v.run(t, reins.Navigate{URL: s.URL})
	for revision := range uint64(12) {
		size := reins.Viewport{Revision: revision + 1, Width: 640 + int(revision%2)*320, Height: 480, Scale: 1}
		taken := make(chan error, 1)
		go func() {
			_, err := v.Capture(t.Context(), Cast{Quality: 50})
			taken <- err
		}()
		if err := v.SetViewport(t.Context(), size); err != nil {
			t.Fatal(err)
		}
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
		f, err := v.Capture(t.Context(), Cast{Quality: 90})
		if err != nil || f.Width != size.Width || !depicts(t, f, size) {
			t.Fatalf("after revision %d the page is %d by %d, %v", size.Revision, f.Width, f.Height, err)
		}
	}
}
