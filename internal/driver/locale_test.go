package driver

import (
	"context"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestLocale: pages, their frames, tabs of the same site and of others speak
// the language of the settings, in what they are told and in how they format
// (CELL-9).
func TestLocale(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		c := launch(t, engine)
		settings := c.settings()
		settings.Engine, settings.Locale = engine, "de-DE"
		b := connectTo(t, c, settings, Handover{})
		const speaks = `<output aria-label=result id=result>-</output><script>result.textContent=[navigator.language,new Intl.DateTimeFormat().resolvedOptions().locale,(1234.5).toLocaleString()].join(' ')</script>`
		inner := site(t, map[string]string{"/": "<!doctype html>" + speaks})
		s := site(t, map[string]string{"/": "<!doctype html><title>t</title>" + speaks + `<iframe src="` + at(inner, "other.test", "/") + `"></iframe>`})
		const want = "de-DE de-DE 1.234,5"
		for range 2 {
			b.open(t, s.URL)
			b.wantResult(t, want)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			b.eventually(t, "the frame", func() bool {
				return len(b.selected.main.children) == 1 && b.selected.main.children[0].doc != nil && b.selected.main.children[0].phase == phaseLoaded
			})
			docs, err := b.tabNow().documents(ctx)
			if err != nil || len(docs) != 2 {
				t.Fatalf("%d documents: %v", len(docs), err)
			}
			var got string
			if err := docs[1].eval(ctx, "() => document.getElementById('result').textContent", &got); err != nil || got != want {
				t.Errorf("the frame speaks %q: %v", got, err)
			}
			b.act(t, reins.OpenTab{URL: s.URL})
			b.wantResult(t, want)
		}
	})
}
