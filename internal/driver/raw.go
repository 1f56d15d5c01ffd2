package driver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

const (
	// rawHandled is how long one event of a person waits for its page to have
	// handled it, so that what comes of it is told with it. It is on its way by
	// then; a page that is slow gets the next ones in their order all the same.
	rawHandled = 250 * time.Millisecond
	// mostRaw and mostStreamed bound the events that a page has not handled; more
	// wait for it, or are refused when it does not get on. Of moves, which the page
	// handles with its pictures, few are useful.
	mostRaw, mostStreamed = 64, 4
	// gestureLasts is how long after a person's press a tab that the page opens
	// counts as opened by it.
	gestureLasts = 2 * time.Second
)

// rawInput is one event of a person on its way to a page.
type rawInput struct {
	requests   []cdp.Request // leave in one write
	streams    bool          // it is one of many alike: nothing waits for the page to handle it
	gesture    bool          // it may well open a tab
	background bool          // which is to stay in the background
}

// raw passes on one event of a person as it is (INP-1). It waits for nothing that
// the page does about it: what is set off belongs to the page.
func (b *browser) raw(ctx context.Context, cmd Command) (*Reply, error) {
	id, _ := cmd.Action.Target()
	t, err := b.resolveTab(id, "")
	if err != nil {
		return nil, err
	}
	b.listen(t)
	x := &action{tab: t, cmd: cmd, fx: b.begin(t), reply: &Reply{}}
	x.fx.of(b, cmd.Lease)
	defer x.fx.end(b)
	if err := x.rawly(ctx); err != nil {
		if cancelled := reins.ContextError(ctx); cancelled != nil {
			return nil, cancelled
		}
		return nil, x.failure(err)
	}
	x.fx.report(b, x.reply)
	return x.reply, nil
}

func (x *action) rawly(ctx context.Context) error {
	switch a := x.cmd.Action.(type) {
	case reins.Pointer:
		if err := x.tab.b.seen(a.Viewport); err != nil {
			return err
		}
		return x.pass(ctx, x.tab.rawPointer(a))
	case reins.Touch:
		if err := x.tab.b.seen(a.Viewport); err != nil {
			return err
		}
		return x.pass(ctx, x.tab.rawTouch(a))
	case reins.Key:
		return x.pass(ctx, rawKey(a))
	case reins.InsertText:
		return x.pass(ctx, rawText(a))
	case reins.Clipboard:
		return x.clipboard(ctx, a)
	}
	return reins.Errorf(reins.CodeInvalidInput, "verb %q is not raw input", string(x.cmd.Action.Verb()))
}

// seen refuses an event that was made for another viewport than the one that is
// there: it would land elsewhere (INP-1). Zero is for a caller without a picture.
func (b *browser) seen(revision uint64) error {
	now := b.size().Revision
	if revision == 0 || revision == now {
		return nil
	}
	return reins.Errorf(reins.CodeInvalidState, "the viewport has changed: the event is for revision %d, and %d is shown; look at the new picture", revision, now)
}

// pass sends an event in one write, in order with those before it.
func (x *action) pass(ctx context.Context, in rawInput) error {
	t := x.tab
	guarded, release := t.guard(ctx)
	defer release()
	if guarded.Err() != nil {
		return context.Cause(guarded)
	}
	if in.background {
		x.fx.inBackground(t.b)
	}
	most := mostRaw
	if in.streams {
		most = mostStreamed
	}
	if err := t.room(guarded, most); err != nil {
		return err
	}
	t.b.mu.Lock()
	if in.gesture && !in.background {
		t.gesture = time.Now()
	}
	sent := t.session.SendAll(in.requests...)
	t.raw = append(t.raw, sent...)
	t.b.mu.Unlock()
	if in.streams {
		return nil
	}
	short, cancel := context.WithTimeout(guarded, rawHandled)
	defer cancel()
	for _, p := range sent {
		err := p.Wait(short, nil)
		if _, refused := cdp.IsProtocol(err); refused && ctx.Err() == nil {
			return evalError(t, err)
		}
		if errors.Is(err, cdp.ErrClosed) {
			return err
		}
		if err != nil { // handled later, or never: a dialog, another page, the end of the tab
			return nil
		}
	}
	return nil
}

// room waits until fewer than most events wait for the tab's page.
func (t *tab) room(ctx context.Context, most int) error {
	return t.within(ctx, mainAnswers, func(ctx context.Context) error {
		for {
			t.b.mu.Lock()
			t.raw = slices.DeleteFunc(t.raw, isHandled)
			var oldest *cdp.Pending
			if len(t.raw) >= most {
				oldest = t.raw[0]
			}
			t.b.mu.Unlock()
			if oldest == nil {
				return nil
			}
			select {
			case <-oldest.Done():
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

func isHandled(p *cdp.Pending) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// rawText is text that an input method makes (INP-3).
func rawText(a reins.InsertText) rawInput {
	if !a.Compose {
		return rawInput{requests: []cdp.Request{cdp.Prepare(input.InsertText, input.InsertTextParams{Text: a.Text})}}
	}
	return rawInput{requests: []cdp.Request{cdp.Prepare(input.ImeSetComposition, input.ImeSetCompositionParams{
		Text: a.Text, SelectionStart: int64(a.Start), SelectionEnd: int64(a.End),
	})}}
}
