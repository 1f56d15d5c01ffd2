package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestLatePress: a press that comes when nothing watches over it any more is not
// told as one that something else took (ACT-1).
func TestLatePress(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<button onclick="say('pressed')">Go</button>`})
	b.open(t, s.URL)
	d, n, err := b.element(refTo(t, b.see(t), `"Go"`))
	if err != nil {
		t.Fatal(err)
	}
	x := &action{tab: b.tabNow(), cmd: Command{Action: reins.Click{}}, fx: b.begin(b.tabNow()), reply: &Reply{}}
	defer x.fx.end(b.browser)
	at, err := b.locateElement(t.Context(), x, d, n, time.Second, readyOptions{Arm: "pointer"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.eval(t.Context(), "() => new Promise(d => setTimeout(d, 6500))", nil); err != nil {
		t.Fatal(err)
	}
	settling := b.settle(x)
	defer settling.stop()
	if err := b.pressSpot(t.Context(), x, settling, at, reins.Click{}); err != nil {
		t.Fatal(err)
	}
	if notes := fmt.Sprint(x.reply.Result.Notes); !strings.Contains(notes, "cannot be told") {
		t.Errorf("it is told as %s", notes)
	}
	b.wantResult(t, "pressed")
}
