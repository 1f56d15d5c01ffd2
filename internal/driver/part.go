package driver

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins/internal/cdp"
)

// patience is how long the scripts of a page that is being left may keep the
// next document from getting its process.
const patience = time.Second

// part sees to it that the page which is being left does not hold the
// navigation up: the next document may need its process, so scripts that keep
// it busy are ended. It goes on until the function it returns is called.
func (v *voyage) part(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for wait := patience; pause(ctx, wait) && !v.gone(); {
			wait = patience
			probe, end := context.WithTimeout(ctx, patience)
			_, err := cdp.Call(probe, v.t.pageSession(), runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
			busy := err != nil && probe.Err() != nil
			end()
			if busy && !v.gone() {
				terminate(v.t)
				wait = nudge
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// gone reports whether the page is left, or cannot run anything.
func (v *voyage) gone() bool {
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	return v.thereLocked() || v.t.blockedLocked() != nil
}

// pause waits; false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
