package driver

import (
	"context"
	"errors"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/outline"
)

// action is one command while it runs. Verbs fill reply.Result: Target,
// Snapshot, Notes, and of Changes what only they know (Focus, FocusRef, Value,
// Settled, Pending, FileChooser's ref); the rest is filled in by whoever runs
// them.
type action struct {
	tab   *tab // acted on
	cmd   Command
	fx    *effects // what happens meanwhile
	reply *Reply
	read  *document      // that the reply's outline is of
	seen  []outline.Node // all that the last snapshot in it found
	shown bool           // those who watch know where it acts
}

// do runs one command. On cancellation it returns once the browser is quiet
// (QUI-1).
func (b *browser) do(ctx context.Context, cmd Command) (*Reply, error) {
	if cmd.Above != (Numbers{}) {
		b.rename(cmd.Above)
	}
	if len(cmd.Credentials) > 0 {
		b.accredit(cmd.Credentials)
	}
	switch a := cmd.Action.(type) {
	case reins.ListTabs:
		return b.listTabs(ctx), nil
	case reins.OpenTab:
		return b.openTab(ctx, cmd, a)
	case reins.SelectTab:
		return b.selectTab(ctx, a)
	case reins.CloseTab:
		return b.closeTab(ctx, cmd, a)
	case reins.Pointer, reins.Touch, reins.Key, reins.InsertText, reins.Clipboard:
		return b.raw(ctx, cmd)
	}
	id, ref := cmd.Action.Target()
	t, err := b.resolveTab(id, ref)
	if err != nil {
		return nil, err
	}
	b.listen(t)
	if cmd.Ask {
		return b.askPlace(ctx, t, cmd)
	}
	x := &action{tab: t, cmd: cmd, fx: b.begin(t), reply: &Reply{}}
	x.fx.of(b, cmd.Lease)
	defer x.fx.end(b)
	err = b.perform(ctx, x)
	if ctx.Err() != nil && err != nil {
		if !cmd.Action.Verb().ReadOnly() { // reading sets nothing off
			b.quiet(x)
		}
		return nil, reins.ContextError(ctx)
	}
	if err != nil {
		err = x.failure(err)
		b.suspect(err)
		return nil, err
	}
	if !cmd.Action.Verb().ReadOnly() {
		b.views.forget(cmd.Lease, ref)
		b.refresh(ctx)
	}
	x.fx.report(b, x.reply)
	return x.reply, nil
}

// mostReads is how often a page is read that goes elsewhere meanwhile.
const mostReads = 3

// outline takes a snapshot of the page that the tab is told to show: not of one
// that it has left meanwhile.
func (b *browser) outline(ctx context.Context, x *action, a reins.Snapshot) error {
	for tries := 1; ; tries++ {
		err := b.snapshot(ctx, x, a)
		if err != nil || x.read == nil || x.read.current() {
			return err
		}
		if tries == mostReads {
			return errReplaced
		}
		x.reply.Result = reins.Result{}
	}
}

// failure makes err one of the closed set.
func (x *action) failure(err error) error {
	if errors.Is(err, errReplaced) {
		_, ref := x.cmd.Action.Target()
		if ref != "" {
			return errStale(ref).Because(err)
		}
		return reins.Errorf(reins.CodeToolFailed, "tab %s went to another page meanwhile; take a new snapshot", x.tab.id).Because(err)
	}
	return x.tab.b.failure(err)
}

// failure makes err one of the closed set.
func (b *browser) failure(err error) error {
	var known *reins.Error
	if errors.As(err, &known) {
		return known
	}
	select {
	case <-b.conn.Done():
		return reins.Errorf(reins.CodeTransportFailure, "the connection to the browser was lost").Because(b.conn.Err())
	default:
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return reins.AsError(err)
	}
	return reins.Errorf(reins.CodeToolFailed, "the browser refused: %.300q", err.Error()).Because(err)
}

// perform runs a verb that acts on or reads the page of one tab.
func (b *browser) perform(ctx context.Context, x *action) error {
	if done, err := b.answer(ctx, x); done || err != nil {
		return err
	}
	switch a := x.cmd.Action.(type) {
	case reins.Navigate:
		return b.navigate(ctx, x, a)
	case reins.Snapshot:
		if err := x.tab.usable(ctx); err != nil && reins.CodeOf(err) != reins.CodeDialogOpen {
			return err
		}
		return b.outline(ctx, x, a)
	case reins.Console:
		return b.consoleLog(x, a)
	case reins.Network:
		return b.networkLog(x, a)
	}
	if err := x.tab.usable(ctx); err != nil {
		return err
	}
	switch a := x.cmd.Action.(type) {
	case reins.Screenshot:
		return b.screenshot(ctx, x, a)
	case reins.Click:
		return b.click(ctx, x, a)
	case reins.Fill:
		if a.Value.Secret != "" {
			return b.fillSecret(ctx, x, a)
		}
		return b.fill(ctx, x, a)
	case reins.Press:
		return b.press(ctx, x, a)
	case reins.PressKey:
		return b.press(ctx, x, reins.Press{Tab: a.Tab, Key: a.Key, Waits: a.Waits})
	case reins.Type:
		if a.Secret != "" {
			return b.typeSecret(ctx, x, a)
		}
		return b.typeText(ctx, x, a)
	case reins.Hover:
		return b.hover(ctx, x, a)
	case reins.Drag:
		return b.drag(ctx, x, a)
	case reins.Scroll:
		return b.scroll(ctx, x, a)
	case reins.WaitFor:
		return b.waitFor(ctx, x, a)
	case reins.Read:
		return b.readPage(ctx, x, a)
	case reins.PDF:
		return b.pdf(ctx, x, a)
	}
	return reins.Errorf(reins.CodeInvalidInput, "verb %q is not for a browser", string(x.cmd.Action.Verb()))
}
