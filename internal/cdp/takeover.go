package cdp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// Previous names what a process that drove these pipes before left in the
// browser: its browser session and its page sessions, each possibly gone.
type Previous struct {
	Browser string
	Pages   []string
}

// idRange is how many IDs one driver has to itself on the root session, where
// replies to the one before could still be under way.
const idRange = 1 << 16

// TakeOver starts a connection on pipes that another process may have been
// killed on, at any moment (DRV-2). number differs from that of the processes
// before. It ends a torn message so that it is not executed, skips to its own
// reply, and, through the page sessions left behind, answers dialogs and ends
// scripts, which no later session could; then it detaches them all.
//
// On failure the pipes are closed. The rest of a half-read message, and replies
// to the process before, are dropped.
func TakeOver(ctx context.Context, r io.ReadCloser, w io.WriteCloser, opts Options, number uint64, prev Previous) (*Conn, *browser.GetVersionResult, error) {
	c := New(r, w, opts)
	c.mu.Lock()
	c.last = int64(number%(1<<14)) * idRange
	c.out = append(c.out, '!', 0)
	c.mu.Unlock()
	version, err := Call(ctx, c.root, browser.GetVersion, empty)
	if err == nil {
		err = c.release(ctx, prev)
	}
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("taking over the browser: %w", err)
	}
	return c, &version, nil
}

// patience bounds the wait for what a left-behind session answers: its page
// may be beyond answering.
const patience = 500 * time.Millisecond

// release frees what the sessions of prev hold and detaches them.
func (c *Conn) release(ctx context.Context, prev Previous) error {
	var freed []*Pending
	for _, id := range prev.Pages {
		s := c.Session(id, nil)
		freed = append(freed, s.SendAll(
			Prepare(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: false}),
			Prepare(runtime.TerminateExecution, empty),
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
	if prev.Browser == "" {
		return nil
	}
	_, err := Call(ctx, c.root, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: target.SessionID(prev.Browser)})
	var refusal *ProtocolError
	if errors.As(err, &refusal) {
		return nil // it is gone already
	}
	return err
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
