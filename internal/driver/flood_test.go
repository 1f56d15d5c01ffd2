package driver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins/internal/cdp"
)

// TestShouts: of what a page writes within a second so much is read and no more;
// that is told once, and the next second begins anew.
func TestShouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loud tab
		e := cdp.Event{Method: runtime.ConsoleAPICalled.Method}
		for round := range 2 {
			for n := range mostHeard + 100 {
				if got := loud.shouts(e); got != (n >= mostHeard) {
					t.Fatalf("round %d: writing %d is dropped: %v", round, n, got)
				}
			}
			if loud.shouts(cdp.Event{Method: runtime.ExecutionContextCreated.Method}) {
				t.Error("another event is dropped")
			}
			if told := len(loud.journal.console.entries); told != round+1 {
				t.Errorf("round %d: it is told %d times", round, told)
			}
			time.Sleep(time.Second)
		}
	})
}
