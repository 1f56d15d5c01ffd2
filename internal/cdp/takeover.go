package cdp

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// Previous names what processes that drove these pipes before left in the
// browser: browser sessions and page sessions, each possibly gone.
type Previous struct {
	Browsers []string
	Pages    []string
}

// idRange is how many IDs one driver has to itself on the root session, where
// replies to the one before could still be under way.
const idRange = 1 << 16

// TakeOver starts a connection on pipes that another process may have been
// killed on, at any moment (DRV-2). number differs from that of the processes
// before. It ends a torn message so that it is not executed, and skips to its
// own reply: the rest of a half-read message, and replies to the process
// before, are dropped. On failure the pipes are closed.
//
// What the process before left is still there; see [Conn.Release].
func TakeOver(ctx context.Context, r io.ReadCloser, w io.WriteCloser, opts Options, number uint64) (*Conn, *browser.GetVersionResult, error) {
	c := New(r, w, opts)
	c.mu.Lock()
	c.last = int64(number%(1<<14)) * idRange
	c.out = append(c.out, '!', 0)
	c.mu.Unlock()
	version, err := Call(ctx, c.root, browser.GetVersion, empty)
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("taking over the browser: %w", err)
	}
	return c, &version, nil
}

// patience bounds the wait for what a left-behind session answers: its page
// may be beyond answering.
const patience = 500 * time.Millisecond

// Release answers dialogs and ends scripts through the page sessions that were
// left behind, which no later session could, and detaches their browser
// sessions and with them all. To leave no moment in which a dialog opens
// unseen, attach to the pages first; to keep what sessions set for the whole
// page (viewport, user agent, downloads), set it again afterwards: it goes with
// the session that is detached.
func (c *Conn) Release(ctx context.Context, prev Previous) error {
	var freed []*Pending
	for _, id := range prev.Pages {
		s := c.Session(id, nil)
		freed = append(freed, s.SendAll(
			Prepare(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: false}),
			Prepare(runtime.TerminateExecution, empty),
			// Where no script runs, this is the one that is ended.
			Prepare(runtime.Evaluate, runtime.EvaluateParams{Expression: "0"}),
		)...)
	}
	short, cancel := context.WithTimeout(ctx, patience)
	for _, p := range freed {
		p.Wait(short, nil) // no dialog, no script, no session: each is fine
	}
	cancel()
	for _, id := range prev.Pages {
		c.Session(id, nil).End()
	}
	for _, id := range prev.Browsers {
		_, err := Call(ctx, c.root, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: target.SessionID(id)})
		if _, refused := IsProtocol(err); err != nil && !refused { // refused: it is gone already
			return err
		}
	}
	return nil
}

// AttachBrowser attaches a browser session of this connection's own. handle is
// its handler; the caller tells whoever may take over next before it uses it.
func (c *Conn) AttachBrowser(ctx context.Context, handle func(Event)) (*Session, error) {
	got, err := Call(ctx, c.root, target.AttachToBrowserTarget, empty)
	if err != nil {
		return nil, err
	}
	return c.Session(string(got.SessionID), handle), nil
}
