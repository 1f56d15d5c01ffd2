package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

const waitLimit = 10 * time.Second

// errWaitOver ends a wait; it never leaves the package.
var errWaitOver = errors.New("the time to wait passed")

// waitResult is what came of a wait in a document (js/wait.js).
type waitResult struct {
	Met  bool `json:"met"`
	Gone bool `json:"gone"` // the element is
}

// waitFor waits until the page is as was asked for: told by events of the
// browser and by the page's changes, never by asking again and again.
func (b *browser) waitFor(ctx context.Context, x *action, a reins.WaitFor) error {
	limit := time.Duration(a.Timeout)
	if limit == 0 {
		limit = waitLimit
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errWaitOver)
	defer cancel()
	what, err := b.waitWhat(timed, x, a)
	if errors.Is(err, errWaitOver) || timed.Err() != nil && ctx.Err() == nil && err != nil {
		return reins.Errorf(reins.CodeTimeout, "%s within %s; take a snapshot to see how the page stands", what, limit).In(reins.PhaseAction)
	}
	if err != nil {
		return err
	}
	return b.look(ctx, x, reins.Waits{Snapshot: a.Snapshot})
}

// waitWhat waits, and says what did not happen should it not.
func (b *browser) waitWhat(ctx context.Context, x *action, a reins.WaitFor) (string, error) {
	switch {
	case a.Text != "":
		return fmt.Sprintf("text %.100q did not appear", a.Text), b.waitText(ctx, x.tab, a.Text, false)
	case a.Gone != "":
		return fmt.Sprintf("text %.100q did not go", a.Gone), b.waitText(ctx, x.tab, a.Gone, true)
	case a.URL != "":
		return fmt.Sprintf("the address of tab %s did not come to hold %.200q", x.tab.id, a.URL), b.waitURL(ctx, x.tab, a.URL)
	case a.Idle:
		open, err := b.waitIdle(ctx, x.tab)
		return fmt.Sprintf("the page in tab %s did not stop loading (open requests: %d)", x.tab.id, open), err
	}
	return fmt.Sprintf("ref %s did not become %s", a.Ref, a.State), b.waitState(ctx, x, a)
}

func (b *browser) waitURL(ctx context.Context, t *tab, part string) error {
	err := b.await(ctx, func() bool { return strings.Contains(t.url, part) || t.blockedLocked() != nil })
	if err != nil {
		return err
	}
	return t.blocked()
}

func (b *browser) waitState(ctx context.Context, x *action, a reins.WaitFor) error {
	d, n, err := b.element(a.Ref)
	if err != nil {
		return err
	}
	id, millis := b.views.waitID(), left(ctx)
	defer d.startEval("id => { reins.unwait(id); }", true, []any{id})
	var got waitResult
	if err := d.eval(ctx, "(id, ms, n, state) => reins.untilState(id, ms, n, state)", &got, id, millis, n, a.State); err != nil {
		if errors.Is(err, errReplaced) && a.State == "hidden" {
			return nil
		}
		return err
	}
	switch {
	case got.Gone:
		return errStale(a.Ref)
	case !got.Met:
		return errWaitOver
	}
	return nil
}

// left is what remains of a context's time, in milliseconds.
func left(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return waitLimit.Milliseconds()
	}
	return max(0, time.Until(end).Milliseconds())
}

// waitID names a wait inside of pages.
func (v *views) waitID() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.number++
	return v.number
}

// waitText waits until a text is shown in any document of the tab, or in none.
// It begins anew when the documents have changed.
func (b *browser) waitText(ctx context.Context, t *tab, text string, gone bool) error {
	for {
		docs, err := t.documents(ctx)
		if err != nil && !errors.Is(err, errReplaced) {
			return err
		}
		round, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() { // ends with the round
			defer close(watched)
			defer stop()
			_ = b.await(round, func() bool { return t.blockedLocked() != nil || !t.holdsLocked(docs) })
		}()
		met := b.waitTextIn(round, docs, text, gone)
		stop()
		<-watched
		switch blocked := t.blocked(); {
		case met:
			return nil
		case blocked != nil:
			return blocked
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if err := t.arrived(ctx); err != nil {
			return err
		}
	}
}

// arrived waits until the main frame has a document.
func (t *tab) arrived(ctx context.Context) error {
	return t.b.await(ctx, func() bool { return t.main.doc != nil || t.blockedLocked() != nil })
}

// holdsLocked reports whether docs are all the documents that the tab has now.
func (t *tab) holdsLocked(docs []placed) bool {
	n, same := 0, true
	t.main.eachLocked(func(f *frame) {
		if f.doc == nil {
			return
		}
		n++
		same = same && slices.ContainsFunc(docs, func(p placed) bool { return p.document == f.doc })
	})
	return same && n == len(docs)
}

// waitTextIn waits in some documents; a document that goes is no hindrance to
// the others.
func (b *browser) waitTextIn(ctx context.Context, docs []placed, text string, gone bool) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	id := b.views.waitID()
	results := make(chan bool, len(docs))
	var wg sync.WaitGroup
	for _, d := range docs {
		wg.Go(func() {
			var got waitResult
			err := d.eval(ctx, "(id, ms, text, gone) => reins.untilText(id, ms, text, gone)", &got, id, left(ctx), text, gone)
			results <- err == nil && got.Met
			if ctx.Err() != nil {
				d.startEval("id => { reins.unwait(id); }", true, []any{id})
			}
		})
	}
	defer wg.Wait()
	defer stop()
	met := 0
	for range docs {
		if <-results {
			if met++; !gone {
				return true
			}
		}
	}
	return gone && met == len(docs) && len(docs) > 0 && b.nowhere(ctx, docs, text)
}

// nowhere makes sure that a text that went from each document is in none now.
func (b *browser) nowhere(ctx context.Context, docs []placed, text string) bool {
	if len(docs) == 1 {
		return true
	}
	for _, d := range docs {
		var shows bool
		if err := d.eval(ctx, "text => reins.shows(text)", &shows, text); err != nil || shows {
			return false
		}
	}
	return true
}

// waitIdle waits until the page is parsed and nothing loads any more; what goes
// on for ever, such as polls and streams, does not count. It returns how many
// requests are open.
func (b *browser) waitIdle(ctx context.Context, t *tab) (int, error) {
	b.listen(t)
	for {
		err := b.await(ctx, func() bool {
			return t.main.doc != nil && t.main.phase >= phaseParsed && !t.loading || t.blockedLocked() != nil
		})
		if err == nil {
			err = t.blocked()
		}
		open, again, changed := t.journal.loading(b, t)
		if err != nil {
			return open, err
		}
		if open == 0 && b.calm(ctx, t) {
			return 0, nil
		}
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		case <-b.conn.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return open, context.Cause(ctx)
		}
	}
}

// calm reports whether two pictures pass in which the page begins to load
// nothing.
func (b *browser) calm(ctx context.Context, t *tab) bool {
	d, err := t.document(ctx)
	if err != nil {
		return false
	}
	if d.eval(ctx, "() => reins.after(1e9, 0)", nil) != nil {
		return false
	}
	open, _, _ := t.journal.loading(b, t)
	b.mu.Lock()
	defer b.mu.Unlock()
	return open == 0 && !t.loading && t.main.doc == d
}
