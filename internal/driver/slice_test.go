package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reins-browser/reins"
)

// TestSlices: a walk that pauses at every element tells the same as one that
// never does (SNAP-6, SNAP-7).
func TestSlices(t *testing.T) {
	pages := map[string]string{"/deep": `<!doctype html><title>t</title>` + strings.Repeat("<div><p>a</p>", 300), "/article": article(700), "/rows": rows(400)}
	for i, o := range outlines {
		pages[fmt.Sprint("/", i)] = "<!doctype html><title>t</title><body>" + o.html
	}
	for name, html := range corpus {
		pages["/"+name] = "<!doctype html><title>t</title>" + html
	}
	b := newBrowser(t, reins.EngineShell)
	s := site(t, pages)
	for path := range pages {
		b.open(t, s.URL+path)
		b.see(t) // closed shadow roots are handed in
		d, err := b.tabNow().document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Whole, Sliced string }
		if err := d.eval(t.Context(), `async () => ({ Whole: reins.walk(0, Infinity), Sliced: await reins.walk(0, -1, 0) })`, &got); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(strings.Split(got.Whole, "\x7f"), strings.Split(got.Sliced, "\x7f")); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestSliceTurns: between the slices of a large page the page has its turn, and
// what it changes then is not half in the outline.
func TestSliceTurns(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": rows(4000) + `<p id=a>0</p><p id=z>0</p><script>
document.body.prepend(a);self.turns=0;self.most=0
const c=new MessageChannel();c.port1.onmessage=()=>{turns++;if(turns<=most)a.textContent=z.textContent=turns;c.port2.postMessage(0)};c.port2.postMessage(0)</script>`})
	b.open(t, s.URL)
	for _, most := range []int{0, 2, 1 << 30} {
		b.pageScript(t, b.tabNow(), fmt.Sprintf("turns = 0, most = %d", most))
		d, err := b.tabNow().document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if err := d.eval(t.Context(), `() => reins.walk(0, 1)`, &text); err != nil {
			t.Fatal(err)
		}
		if turns := b.pageScript(t, b.tabNow(), "turns > 3"); turns != "true" {
			t.Errorf("the page did not have its turn")
		}
		entries := strings.Split(text, "\x7f")
		first, last := entries[10], entries[len(entries)-1]
		if most < 1<<30 && first != last {
			t.Errorf("it changed %d times: the outline begins with %q and ends with %q", most, first, last)
		}
		if !strings.Contains(text, "Link 999") {
			t.Errorf("it changed %d times: the outline does not reach the end", most)
		}
	}
}

// TestSliceGone: what takes away the place where a walk has paused does not end it.
func TestSliceGone(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": rows(4000) + `<script>const c=new MessageChannel();let n=0;c.port1.onmessage=()=>{const d=document.createElement('div');d.className='row';d.append('new '+n++);
for(const r of [...document.querySelectorAll('.row')].slice(0,400))r.replaceWith(d.cloneNode(true));c.port2.postMessage(0)};self.go=()=>c.port2.postMessage(0)</script>`})
	b.open(t, s.URL)
	b.pageScript(t, b.tabNow(), "go()")
	d, err := b.tabNow().document(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if err := d.eval(t.Context(), `() => reins.walk(0, 1)`, &text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "new "); n < 400 || !strings.Contains(text, "Link 999") {
		t.Errorf("%d of the changing rows are in the outline", n)
	}
}

// BenchmarkHeld is the longest time for which one snapshot of a large page holds
// it, by the page's own clock: the longest pause between two of its own turns.
// The first is of a document on which nothing of the walker has run yet; nothing is
// what the machine's other work does to a page that nobody reads.
func BenchmarkHeld(b *testing.B) {
	const probe = `<script>{const c=new MessageChannel();self.held=0;let last=0;c.port1.onmessage=()=>{const now=performance.now();held=Math.max(held,now-last);last=now;if(self.on)c.port2.postMessage(0)}
self.probe=(start)=>{self.on=start;if(start){held=0;last=performance.now();c.port2.postMessage(0)}return held}}</script>`
	for _, name := range []string{"rows", "article"} {
		b.Run(name, func(b *testing.B) {
			tb := benchPage(b, map[string]string{"rows": rows(10_000), "article": article(10_000)}[name]+probe)
			probe := func(do func()) float64 {
				tb.pageScript(b, tb.tabNow(), "probe(true)")
				do()
				var held float64
				fmt.Sscan(tb.pageScript(b, tb.tabNow(), "probe(false)"), &held)
				return held
			}
			var first, later, nothing []float64
			for range 9 {
				tb.act(b, reins.Navigate{URL: "reload", Wait: "load"})
				first = append(first, probe(func() { tb.act(b, reins.Snapshot{}) }))
				later = append(later, probe(func() { tb.act(b, reins.Snapshot{}) }))
				nothing = append(nothing, probe(func() { tb.pageScript(b, tb.tabNow(), "new Promise(d => setTimeout(d, 100))") }))
			}
			for unit, all := range map[string][]float64{"first-ms": first, "later-ms": later, "nothing-ms": nothing} {
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], unit)
				b.ReportMetric(all[0], "least-"+unit)
			}
		})
	}
}
