package driver

import (
	"testing"

	"github.com/reins-browser/reins"
)

// ACT-4: typed text lands in one field as it is, and no modifier seems held
// after it.
func TestTypeStaysInItsField(t *testing.T) {
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<input aria-label=One id=one><textarea aria-label=Two></textarea>
<script>addEventListener('keyup', e => { say(['Shift', 'Control', 'Alt', 'Meta'].filter(m => e.getModifierState(m)).join('+') || 'nothing held') })</script>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		const text = "Tab\tand TWO"
		b.act(t, reins.Type{Ref: refTo(t, b.see(t), `"One"`), Text: text})
		if got := b.script(t, "one.value"); got != text {
			t.Errorf("the field holds %q, want %q", got, text)
		}
		for _, a := range []reins.Action{reins.Type{Text: "NEW"}, reins.PressKey{Key: "?"}, reins.PressKey{Key: "Shift+A"}, reins.PressKey{Key: "Control+A"}} {
			b.act(t, a)
			if got := b.result(t); got != "nothing held" {
				t.Errorf("after %+v a page sees %s", a, got)
			}
		}
	})
}
