package driver

import (
	"regexp"
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

// B018, SNAP-4: boxes without a name are known by what stands in them. One whose
// content has become another's is not pressed by its old ref, however the page
// moved it; one in which something further down changed is.
func TestMovedContents(t *testing.T) {
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><style>.card,li{cursor:pointer}</style>` + logPart + `
<div id=list></div><ul><li>Row one</li><li>Row two</li></ul><div class=card id=steady><h3>Steady</h3><p id=ago>a minute ago</p></div><div tabindex=0 id=note contenteditable>typed</div><div class=card id=count>Inbox 3</div>
<script>
const list = document.getElementById('list');
const draw = (names) => names.forEach((n, i) => {
  const c = list.children[i] || list.appendChild(Object.assign(document.createElement('div'), { className: 'card', innerHTML: '<h3></h3><span>open it</span>' }));
  c.firstChild.textContent = n; c.onclick = () => say('fired ' + n);
});
draw(['Archive Ann', 'Archive Bob', 'Archive Cy']);
for (const li of document.querySelectorAll('li')) li.onclick = () => say('fired ' + li.textContent);
for (const id of ['steady', 'count']) document.getElementById(id).onclick = () => say('fired ' + id);
document.body.addEventListener('again', () => {
  draw(['Delete all', 'Archive Ann', 'Archive Bob']);
  const [one, two] = document.querySelectorAll('li'); one.textContent = 'Row two'; two.textContent = 'Row three';
  document.getElementById('ago').textContent = 'two minutes ago'; document.getElementById('note').textContent = 'typed more'; document.getElementById('count').textContent = 'Inbox 4';
});
</script>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, look := range []reins.Snapshot{{}, {Interactive: true}} {
			b.open(t, s.URL)
			seen := b.act(t, look).Result.Snapshot.Text
			var cards []reins.Ref
			for _, m := range regexp.MustCompile(`- generic(?: \[editable\])? \[ref=(\w+)\]`).FindAllStringSubmatch(seen, -1) {
				cards = append(cards, reins.Ref(m[1]))
			}
			if len(cards) != 6 { // three, the steady one, the note and the count
				t.Fatalf("%d boxes in\n%s", len(cards), seen)
			}
			b.script(t, `document.body.dispatchEvent(new Event('again')) && 1`)
			for i, c := range []struct {
				ref    reins.Ref
				result string
			}{
				{cards[0], ""}, {cards[1], ""}, {cards[2], ""}, {refTo(t, seen, "Row one"), ""}, {refTo(t, seen, "Row two"), ""},
				{cards[3], "fired steady"}, {cards[5], "fired count"}, {cards[4], "fired count"},
			} {
				_, err := b.try(reins.Click{Ref: c.ref})
				if c.result == "" {
					wantCode(t, err, reins.CodeStaleRef)
				} else if err != nil {
					t.Errorf("%d: %v", i, err)
				}
				if got := b.script(t, "document.getElementById('result').textContent"); got != max(c.result, "-") {
					t.Errorf("%+v: after %d the page says %q", look, i, got)
				}
			}
			now := b.see(t)
			b.act(t, reins.Click{Ref: boxAround(t, now, "Delete all")})
			if got := b.result(t); got != "fired Delete all" {
				t.Errorf("after a new snapshot the page says %q", got)
			}
		}
	})
}
