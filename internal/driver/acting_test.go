package driver

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// FRM-10: those who watch are told where an agent acts, before it does and once;
// nobody else is.
func TestActing(t *testing.T) {
	s := site(t, map[string]string{
		"/": `<!doctype html><title>Acting</title><style>body{margin:0}*{box-sizing:border-box}</style><button style="position:absolute;left:100px;top:50px;width:80px;height:40px">Save</button>
<input aria-label=Name style="position:absolute;left:10px;top:200px;width:200px;height:30px"><select aria-label=Way style="position:absolute;left:10px;top:300px;width:100px;height:30px"><option>Tram<option>Bus</select>
<iframe id=f style="position:absolute;left:400px;top:100px;border:0" width=300 height=200></iframe><p style="margin-top:2000px"><a href="#x">Far</a></p>`,
		"/inner": `<!doctype html><body style="margin:0"><button style="position:absolute;left:20px;top:30px;width:60px;height:20px">Pay</button>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		b.script(t, "document.getElementById('f').src = '"+at(s, "inner.test", "/inner")+"'")
		waitFor(t, "the frame is there", func() bool { return strings.Contains(b.see(t), "Pay") })
		page := b.see(t)
		told := func() (all []Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, e := range b.events {
				if e.Kind == "acting" {
					all = append(all, e)
				}
			}
			return all
		}
		text := "Ada"
		for name, c := range map[string]struct {
			act reins.Action
			box reins.Box
		}{
			"click":          {reins.Click{Ref: refTo(t, page, `"Save"`)}, reins.Box{X: 100, Y: 50, Width: 80, Height: 40}},
			"fill":           {reins.Fill{Ref: refTo(t, page, `"Name"`), Value: reins.Value{Text: &text}}, reins.Box{X: 10, Y: 200, Width: 200, Height: 30}},
			"choose":         {reins.Fill{Ref: refTo(t, page, `combobox "Way"`), Value: reins.Value{Text: new("Bus")}}, reins.Box{X: 10, Y: 300, Width: 100, Height: 30}},
			"hover":          {reins.Hover{Ref: refTo(t, page, `"Save"`)}, reins.Box{X: 100, Y: 50, Width: 80, Height: 40}},
			"click in frame": {reins.Click{Ref: refTo(t, page, `"Pay"`)}, reins.Box{X: 420, Y: 130, Width: 60, Height: 20}},
		} {
			before := len(told())
			ctx, cancel := context.WithTimeout(t.Context(), 30e9)
			_, err := b.do(ctx, Command{Action: c.act, Lease: "ada", Watched: true})
			cancel()
			got := told()[before:]
			if err != nil || len(got) != 1 || got[0].Lease != "ada" || got[0].Tab.ID != "t1" || got[0].Box == nil {
				t.Errorf("%s: %+v, %v", name, got, err)
				continue
			}
			near := func(a, b float64) bool { return math.Abs(a-b) < 3 }
			if g, w := *got[0].Box, c.box; !near(g.X, w.X) || !near(g.Y, w.Y) || !near(g.Width, w.Width) || !near(g.Height, w.Height) ||
				got[0].X < w.X || got[0].X > w.X+w.Width || got[0].Y < w.Y || got[0].Y > w.Y+w.Height {
				t.Errorf("%s acts at %+v, %g, %g; want %+v", name, g, got[0].X, got[0].Y, w)
			}
		}
		before := len(told())
		for _, a := range []reins.Action{reins.Snapshot{}, reins.Scroll{Y: 100}, reins.Navigate{URL: s.URL}} {
			if _, err := b.do(t.Context(), Command{Action: a, Lease: "ada", Watched: true}); err != nil {
				t.Error(err)
			}
		}
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Save"`)}) // nobody looks on
		if n := len(told()) - before; n != 0 {
			t.Errorf("%d more were told", n)
		}
	})
}
