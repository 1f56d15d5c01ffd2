package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// bounds are pages that would make a reader slow, each built by its script, with
// what a snapshot of it must hold and what it must say of what it left out. (Of
// 4,000 boxes inside of each other the browser's own layout crashes.)
var bounds = map[string]struct{ script, want, note string }{
	"50,000 attributes": {`const e = document.createElement('button'); e.textContent = 'Many'; for (let i = 0; i < 50000; i++) e.setAttribute('aria-x' + i, i); e.setAttribute('aria-expanded', 'true'); box.append(e)`,
		`button "Many" [expanded]`, ""},
	"5,000 buttons with one long label": {`const l = document.createElement('p'); l.id = 'long'; l.hidden = true; l.textContent = 'long label '.repeat(20000); box.append(l);
for (let i = 0; i < 5000; i++) { const b = document.createElement('button'); b.setAttribute('aria-labelledby', 'long'); box.append(b); }`,
		`button "long label long`, ""},
	"5,000 buttons with one label of many parts": {`const l = document.createElement('p'); l.id = 'long'; l.innerHTML = '<b>part</b> '.repeat(4000);
for (let i = 0; i < 5000; i++) { const b = document.createElement('button'); b.setAttribute('aria-labelledby', 'long'); box.append(b); }; document.body.append(l)`,
		`button "part part part`, ""},
	"2,500 buttons inside of each other": {`let e = box; for (let i = 0; i < 2500; i++) { const b = document.createElement('div'); b.setAttribute('role', 'button'); b.append('x' + i); e.append(b); e = b; }`,
		`button "x0 x1 x2`, ""},
	"100,000 options": {`const s = document.createElement('select'); s.setAttribute('aria-label', 'Huge'); s.innerHTML = Array.from({ length: 100000 }, (_, i) => '<option>' + i).join(''); s.selectedIndex = 99999; box.append(s)`,
		`option "99999" [selected]`, ""},
	"100,000 options chosen": {`const s = document.createElement('select'); s.multiple = true; s.setAttribute('aria-label', 'Huge'); s.innerHTML = Array.from({ length: 100000 }, (_, i) => '<option selected>' + i).join(''); box.append(s)`,
		`listbox "Huge" [multiple]`, ""},
	"10 MB of lines": {`const p = document.createElement('pre'); p.textContent = 'a line of text that says little\n'.repeat(330000); box.append(p)`,
		`text: a line of text that says little`, "more than a snapshot lists"},
	"10 MB in one piece": {`const p = document.createElement('p'); p.textContent = 'wörter '.repeat(1500000); box.append(p)`,
		`wörter wörter`, "more than a snapshot lists"},
	"2,500 levels": {`let e = box; for (let i = 0; i < 2500; i++) { const d = document.createElement('div'); e.append(d); e = d; } e.textContent = 'bottom'`,
		`text: bottom`, ""},
	"100,000 elements": {`box.innerHTML = Array.from({ length: 50000 }, (_, i) => '<div><button>Press ' + i + '</button></div>').join('')`,
		`button "Press 1"`, ""},
	"10,000 owned by 100": {`box.innerHTML = Array.from({ length: 10000 }, (_, i) => '<p id=o' + i + '>own ' + i).join('') +
Array.from({ length: 100 }, (_, i) => '<div role=list aria-owns="' + Array.from({ length: 10000 }, (_, j) => 'o' + (j + i) % 10000).join(' ') + '"></div>').join('')`,
		`own 1`, ""},
	"100,000 areas": {`box.innerHTML = '<img alt=Map usemap=#m width=9 height=9><map name=m>' + '<area href=/x alt=Area>'.repeat(100000) + '</map>'`,
		`img "Map" [inside=99000]`, ""},
}

// TestBoundsOfTheWalk: whatever the size of a page, a snapshot answers in
// bounded time, says what it left out, and the page can be used after it
// (SNAP-5, SNAP-6, SNAP-7).
func TestBoundsOfTheWalk(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	pages := map[string]string{}
	path := func(name string) string { return "/" + strings.NewReplacer(" ", "-", ",", "").Replace(name) }
	for name, page := range bounds {
		pages[path(name)] = `<!doctype html><title>t</title><button onclick="document.title='pressed'">First</button><div id=box></div><script>` + page.script + `</script>`
	}
	s := site(t, pages)
	for name, page := range bounds {
		t.Run(name, func(t *testing.T) {
			b.open(t, s.URL+path(name))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d, err := b.tabNow().document(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var cost struct{ Took, Size float64 }
			if err := d.eval(ctx, `() => { const t = performance.now(); const s = reins.walk(0, Infinity); return { Took: performance.now() - t, Size: s.length } }`, &cost); err != nil {
				t.Fatal(err)
			}
			t.Logf("%.0f ms, %.0f kB", cost.Took, cost.Size/1000)
			if cost.Took > 20000 || cost.Size > 25e6 {
				t.Errorf("the walk takes %.0f ms and makes %.0f characters", cost.Took, cost.Size)
			}
			r := b.act(t, reins.Snapshot{MaxBytes: 1_000_000})
			if text := r.Result.Snapshot.Text; !strings.Contains(text, page.want) {
				t.Errorf("there is no %q in\n%.500s", page.want, text)
			}
			if notes := strings.Join(r.Result.Notes, " "); page.note != "" && !strings.Contains(notes, page.note) {
				t.Errorf("notes %q do not say that there is %s", notes, page.note)
			}
			b.act(t, reins.Click{Ref: refTo(t, b.act(t, reins.Snapshot{Find: "First"}).Result.Snapshot.Text, `"First"`)})
			if title := b.script(t, "document.title"); title != "pressed" {
				t.Errorf("after a click the title is %q", title)
			}
		})
	}
}
