package driver

import (
	"testing"

	"github.com/reins-browser/reins"
)

// SNAP-4: an element that became another thing is not acted on by the ref that a
// lease knows it by; one that counts on, or that the lease itself changed, is.
func TestMovedLabels(t *testing.T) {
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `
<div id=list></div><button id=count>Inbox 3</button><button id=play>Play</button><button id=edit>Change</button>
<script>
const list = document.getElementById('list');
const draw = (names) => names.forEach((n, i) => { const b = list.children[i] || list.appendChild(document.createElement('button')); b.textContent = n; b.onclick = () => say('fired ' + n); });
draw(['Archive 1', 'Archive 2', 'Archive Cy']);
document.getElementById('count').onclick = () => say('opened');
document.getElementById('play').onclick = (e) => { e.target.textContent = e.target.textContent === 'Play' ? 'Pause' : 'Play'; say('now ' + e.target.textContent); };
document.getElementById('edit').onclick = () => { draw(['Archive 2', 'Delete all', 'Archive Cy']); document.getElementById('count').textContent = 'Inbox 4'; say('changed'); };
</script>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		seen := b.see(t)
		click := func(name string) error {
			_, err := b.try(reins.Click{Ref: refTo(t, seen, `"`+name+`"`)})
			return err
		}
		for _, step := range []struct {
			click, result string
			stale         bool
		}{
			{click: "Play", result: "now Pause"},
			{click: "Play", result: "now Play"}, // its own doing
			{click: "Change", result: "changed"},
			{click: "Archive 1", stale: true}, // is "Archive 2", which another was
			{click: "Archive 2", stale: true}, // is "Delete all"
			{click: "Archive Cy", result: "fired Archive Cy"},
			{click: "Inbox 3", result: "opened"}, // counts on
		} {
			err := click(step.click)
			if step.stale {
				wantCode(t, err, reins.CodeStaleRef)
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", step.click, err)
			}
			if got := b.script(t, "document.getElementById('result').textContent"); got != step.result {
				t.Errorf("%s: the page says %q, want %q", step.click, got, step.result)
			}
		}
		now := b.see(t)
		b.act(t, reins.Click{Ref: refTo(t, now, `"Delete all"`)})
		if got := b.result(t); got != "fired Delete all" {
			t.Errorf("after a new snapshot the page says %q", got)
		}
	})
}
