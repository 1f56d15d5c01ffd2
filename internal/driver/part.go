package driver

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins/internal/cdp"
)

const (
	patience = time.Second // for the scripts of a page that is being left
	mostEnds = 5           // attempts to end them
)

// stopTimers keeps a page from being busy again at once.
const stopTimers = `for (let id = setTimeout(() => {}), n = 0; id > 0 && n < 100000; id--, n++) clearTimeout(id)`

// free ends the scripts of a page that keep it busy, before it is left. The next
// document may need its process, and once the browser has begun to put it
// there, nothing reaches the page any more.
func (v *voyage) free(ctx context.Context) {
	wait := patience
	for range mostEnds {
		if v.t.blocked() != nil || !v.busy(ctx, wait) {
			return
		}
		terminate(v.t)
		v.t.pageSession().Send(runtime.Evaluate.Method, runtime.EvaluateParams{Expression: stopTimers})
		wait = nudge
	}
}

// busy reports whether the page does not answer within d.
func (v *voyage) busy(ctx context.Context, d time.Duration) bool {
	probe, end := context.WithTimeout(ctx, d)
	defer end()
	_, err := cdp.Call(probe, v.t.pageSession(), runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
	return err != nil && probe.Err() != nil && ctx.Err() == nil
}
