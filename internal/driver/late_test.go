package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestLatePress: a page that handles a press later than anything watches over it
// is not told as one in which something else took it (ACT-1).
func TestLatePress(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<button onclick="say('pressed')">Go</button><script>let once = 1; addEventListener('pointermove', () => { if (once--> 0) for (const t = Date.now(); Date.now() - t < 6500;); })</script>`})
	b.open(t, s.URL)
	settle := reins.Duration(20 * time.Second)
	r, err := b.try(reins.Click{Ref: refTo(t, b.see(t), `"Go"`), Waits: reins.Waits{Settle: &settle}})
	if err != nil {
		t.Fatal(err)
	}
	if notes := fmt.Sprint(r.Result.Notes); !strings.Contains(notes, "cannot be told") {
		t.Errorf("it is told as %+v, %s", r.Result.Changes, notes)
	}
	b.wantResult(t, "pressed")
}
