package driver

import (
	"testing"

	"github.com/reins-browser/reins"
)

// CELL-9, SNAP-7: a page sees an ordinary browser of the size that was asked
// for, and the walker is in its isolated world.
func TestWhatPagesSee(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		for expression, want := range map[string]string{
			`/Headless/.test(navigator.userAgent)`:                             "false",
			`/ Chrome\/\d+\.0\.0\.0 Safari/.test(navigator.userAgent)`:         "true",
			`[innerWidth, innerHeight, screen.width, devicePixelRatio].join()`: "1280,800,1280,1",
			`[document.visibilityState, document.hasFocus()].join()`:           "visible,true",
			`navigator.language`: "en-US",
			`typeof reins`:       "object",
		} {
			if got := b.script(t, expression); got != want {
				t.Errorf("%s is %s, want %s", expression, got, want)
			}
		}
		if got := b.pageScript(t, b.tabNow(), "typeof reins"); got != "undefined" {
			t.Errorf("the page sees the walker as %s", got)
		}
	})
}
