package driver

import (
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// ACT-1: what stands over the whole page is told well before the wait is over;
// what may go by itself is waited for.
func TestCoversOfThePage(t *testing.T) {
	const veil = `<!doctype html><title>t</title>` + logPart + `<button onclick="say('saved')">Save</button><div id=veil style="position:fixed;inset:0">Notice <i id=turn style="display:inline-block">o</i></div>`
	s := site(t, map[string]string{
		"/stands": veil,
		"/turns":  veil + `<style>@keyframes turn{to{transform:rotate(1turn)}}#turn{animation:turn 1s infinite linear}</style><script>setTimeout(() => veil.remove(), 2500)</script>`,
		"/counts": veil + `<script>let n = 5; const id = setInterval(() => { turn.textContent = --n; if (!n) { clearInterval(id); veil.remove(); } }, 500)</script>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL+"/stands")
		began := time.Now()
		_, err := b.try(reins.Click{Ref: refTo(t, b.see(t), "Save")})
		wantCode(t, err, reins.CodeNotActionable)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		for _, path := range []string{"/turns", "/counts"} {
			b.open(t, s.URL+path)
			b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Save")})
			if got := b.result(t); got != "saved" {
				t.Errorf("%s: the page says %q", path, got)
			}
		}
	})
}
