package driver

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins/internal/cdp"
)

const (
	prompt = 50 * time.Millisecond  // a page that answers sooner runs nothing long
	nudge  = 200 * time.Millisecond // between attempts to end a page's scripts
	nudges = 5                      // of them, before the page's process is ended: the ladder's first rung has 2 s
)

// quiet stops what a cancelled action set off and returns when the page
// answers, or can no longer run anything (QUI-1, QUI-2). A page that keeps itself
// busy whatever is ended in it loses its process, not the others their browser.
// Only the connection's end cuts it short.
func (b *browser) quiet(x *action) {
	t := x.tab
	s := t.pageSession()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.Send(page.StopLoading.Method, nil)
	wait := prompt
	for tries := 0; ; tries++ {
		if t.blocked() != nil { // a dialog, a crash, a close: nothing runs
			return
		}
		attempt, done := context.WithTimeout(ctx, wait)
		_, err := cdp.Call(attempt, s, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
		done()
		if err == nil || attempt.Err() == nil {
			return // it answers; or the session or connection is gone
		}
		if tries == nudges {
			s.Send(page.Crash.Method, nil)
		}
		terminate(t)
		wait = nudge
	}
}

// terminate ends the scripts that run in a tab now. The evaluation after it
// takes the blow where none runs: else the page's next script would.
func terminate(t *tab) {
	for _, s := range t.sessions() {
		s.SendAll(
			cdp.Prepare(runtime.TerminateExecution, none),
			cdp.Prepare(runtime.Evaluate, runtime.EvaluateParams{Expression: "0"}),
		)
	}
}

// sessions lists the sessions of the tab's processes.
func (t *tab) sessions() []*cdp.Session {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	seen := map[*cdp.Session]bool{}
	var out []*cdp.Session
	t.main.eachLocked(func(f *frame) {
		if f.session != nil && !seen[f.session] {
			seen[f.session] = true
			out = append(out, f.session)
		}
	})
	return out
}

// settleDialog waits, briefly, until the page has gone on after a dialog: it
// answers, is being left, or the next dialog is open.
func (b *browser) settleDialog(ctx context.Context, x *action) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ctx, release := x.tab.guard(ctx)
	defer release()
	_, err := cdp.Call(ctx, x.tab.pageSession(), runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
	_, left := cdp.IsProtocol(err) // its document went away under the question
	return err == nil || left || x.tab.blocked() != nil
}
