package driver

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// listTabs is list_tabs.
func (b *browser) listTabs(ctx context.Context) *Reply {
	b.refresh(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &Reply{Result: reins.Result{Tabs: b.listLocked()}}
	b.placeLocked(nil, r)
	return r
}

// selectTab is select_tab. Every tab is visible to its page anyway (TAB-6);
// bringing it to the front is for who watches a desktop.
func (b *browser) selectTab(ctx context.Context, a reins.SelectTab) (*Reply, error) {
	t, err := b.resolveTab(a.Tab, "")
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.selectLocked(t)
	b.mu.Unlock()
	_, err = cdp.Call(ctx, b.session, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.target})
	if err != nil {
		return nil, b.failure(err)
	}
	b.emitHandover()
	return b.tabReply(t), nil
}

func (b *browser) tabReply(t *tab) *Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &Reply{}
	b.placeLocked(t, r)
	return r
}

// openTab is open_tab: the new tab is selected, then navigated.
func (b *browser) openTab(ctx context.Context, cmd Command, a reins.OpenTab) (*Reply, error) {
	if a.URL != "" {
		if _, err := address(a.URL, b.settings.Navigation); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	full := len(b.tabs) >= b.settings.Tabs
	b.mu.Unlock()
	if full {
		return nil, reins.Errorf(reins.CodeQuotaExceeded, "%d tabs are open, which is the bound; close one first", b.settings.Tabs)
	}
	t, err := b.newTab(ctx)
	if err != nil {
		return nil, b.failure(err)
	}
	if a.URL == "" {
		return b.tabReply(t), nil
	}
	x := &action{tab: t, cmd: cmd, fx: b.begin(t), reply: &Reply{}}
	defer x.fx.end(b)
	err = b.navigate(ctx, x, reins.Navigate{URL: a.URL, Wait: a.Wait, Timeout: a.Timeout})
	if ctx.Err() != nil && err != nil {
		b.quiet(x)
		return nil, reins.ContextError(ctx)
	}
	if err != nil {
		return nil, x.failure(err)
	}
	x.fx.report(b, x.reply)
	return x.reply, nil
}

// newTab opens an empty tab, selects it and waits until it can be used.
func (b *browser) newTab(ctx context.Context) (*tab, error) {
	got, err := cdp.Call(ctx, b.session, target.CreateTarget, target.CreateTargetParams{URL: blankPage})
	if err != nil {
		return nil, err
	}
	var t *tab
	err = b.await(ctx, func() bool {
		t = b.tabByTargetLocked(got.TargetID)
		return t != nil && t.ready
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.selectLocked(t)
	b.mu.Unlock()
	b.emitHandover()
	return t, nil
}

// closePatience is how long a page has to answer that it may be closed.
const closePatience = 2 * time.Second

// closeTab is close_tab. A beforeunload question is accepted and reported
// (ACT-8); the last tab's place is taken by an empty one (TAB-3).
func (b *browser) closeTab(ctx context.Context, cmd Command, a reins.CloseTab) (*Reply, error) {
	t, err := b.resolveTab(a.Tab, "")
	if err != nil {
		return nil, err
	}
	x := &action{tab: t, cmd: cmd, fx: b.begin(nil), reply: &Reply{}}
	defer x.fx.end(b)
	b.mu.Lock()
	t.closing = true
	open := t.dialog
	b.mu.Unlock()
	if open != nil { // it would hold up the close
		open.session.Send(page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: open.kind == "beforeunload"})
	}
	patience := closePatience
	if a.Force {
		patience = 0
	} else {
		t.pageSession().Send(page.Close.Method, nil)
	}
	gone := func() bool {
		select {
		case <-t.ended:
			return b.selected != nil && b.selected.ready
		default:
			return false
		}
	}
	// A page that does not answer, or has crashed, is closed without being asked.
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = b.await(short, gone); err != nil && ctx.Err() == nil {
		b.session.Send(target.CloseTarget.Method, target.CloseTargetParams{TargetID: t.target})
		err = b.await(ctx, gone)
	}
	if err != nil {
		return nil, b.failure(err)
	}
	x.fx.report(b, x.reply)
	return x.reply, nil
}
