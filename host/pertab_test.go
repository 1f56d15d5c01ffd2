package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// perTab runs f on a resource whose tabs have lanes of their own.
func perTab(t *testing.T, o bubbleOptions, f func(t *testing.T, w *world, r *resource)) {
	t.Helper()
	o.spec = reins.BrowserSpec{Scheduling: reins.PerTab, Verbs: reins.AgentVerbs()}
	bubble(t, o, func(t *testing.T, w *world, r *resource) {
		w.perTab = true
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		f(t, w, r)
	})
}

// on loads something in a tab.
func on(tab reins.TabID) reins.Call {
	return reins.Call{Action: reins.Navigate{Tab: tab, URL: "https://" + string(tab) + ".example.com/"}}
}

// TestPerTabAtOnce is SCH-2 and SCH-5: so many tabs act at the same time, the
// others take turns, one operation a turn; and so many wait and no more.
func TestPerTabAtOnce(t *testing.T) {
	perTab(t, bubbleOptions{limits: reins.Limits{TabsAtOnce: 2, QueuePerTab: 3}}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.mu.Lock()
		w.each = map[string]behaviour{"do": slow}
		w.mu.Unlock()
		var done []<-chan error
		for _, tab := range []reins.TabID{"t1", "t2", "t3", "t3", "t4"} { // two run, three wait
			done = append(done, start(l, on(tab)))
		}
		_, err := l.Do(ctx0, on("t5"))
		code(t, err, reins.CodeQuotaExceeded)
		for i, want := range []time.Duration{1, 1, 2, 3, 2} { // t4 before the second of t3
			go func() {
				if err := <-done[i]; err != nil || sinceEpoch() != want*time.Second {
					t.Errorf("operation %d ended after %s, want %ds: %v", i, sinceEpoch(), want, err)
				}
			}()
		}
		time.Sleep(4 * time.Second)
	})
}

// sinceEpoch is how much of a bubble's time has passed.
func sinceEpoch() time.Duration {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// TestPerTabClosing is SCH-3: a close marks its tab at once; what was queued
// before runs first, what comes later is refused; and whatever keeps the close
// from happening gives the tab back.
func TestPerTabClosing(t *testing.T) {
	var deny box[func(context.Context) error]
	o := bubbleOptions{hooks: reins.Hooks{BeforeOperation: func(ctx context.Context, op reins.Operation) error {
		if f := deny.get(); f != nil && op.Verb == reins.VerbCloseTab {
			return f(ctx)
		}
		return nil
	}}}
	perTab(t, o, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		for name, c := range map[string]struct {
			gate func(context.Context) error
			stop bool // its caller leaves while it waits
			want reins.Code
		}{
			"it closes": {nil, false, ""},
			"denied":    {func(context.Context) error { return errors.New("no") }, false, reins.CodeDenied},
			"timed out": {func(ctx context.Context) error { <-ctx.Done(); return nil }, false, reins.CodeTimeout},
			"cancelled": {nil, true, reins.CodeCancelled},
		} {
			deny.set(c.gate)
			w.set("do", slow)
			before := start(l, on("t2"))
			queued := start(l, on("t2"))
			ctx, leave := context.WithCancel(ctx0)
			closing := make(chan error, 1)
			go func() {
				_, err := l.Do(ctx, reins.Call{Action: reins.CloseTab{Tab: "t2"}})
				closing <- err
			}()
			synctest.Wait()
			if _, err := l.Do(ctx0, on("t2")); reins.CodeOf(err) != reins.CodeInvalidState {
				t.Errorf("%s: later work: %v", name, err)
			}
			if err := act(l, reins.ListTabs{}); err != nil { // it waits on its own lane
				t.Errorf("%s: the context: %v", name, err)
			}
			if c.stop {
				leave()
			}
			if err := errors.Join(<-before, <-queued); err != nil {
				t.Errorf("%s: what was queued before: %v", name, err)
			}
			if err := <-closing; reins.CodeOf(err) != c.want {
				t.Errorf("%s: %v", name, err)
			}
			leave()
			if _, err := l.Do(ctx0, on("t2")); err != nil {
				t.Errorf("%s: the tab stayed marked: %v", name, err)
			}
		}
	})
}

// TestPerTabSelected is SCH-4: an operation without a tab is for the selected
// one, found out when it starts, and holds the context until it is done.
func TestPerTabSelected(t *testing.T) {
	perTab(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		if err := act(l, open); err != nil { // alone: which tab it is on is not known yet
			t.Fatal(err)
		}
		w.set("do", slow)
		first := start(l, reins.Call{Action: open}) // on t1, as the driver says
		behind, context, other := start(l, on("t1")), start(l, reins.Call{Action: reins.ListTabs{}}), start(l, on("t2"))
		if err := <-other; err != nil || sinceEpoch() != 0 {
			t.Errorf("another tab waited: %v", err)
		}
		pending(t, behind)
		pending(t, context)
		if err := errors.Join(<-first, <-behind, <-context); err != nil {
			t.Error(err)
		}
	})
}

// TestPerTabFailure is SCH-6: what fails frees its lane, what cannot be stopped
// costs its page and nothing else, and when not even that helps, the connection
// goes and the others connect anew.
func TestPerTabFailure(t *testing.T) {
	perTab(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.set("do", failBefore)
		_, err := l.Do(ctx0, on("t1"))
		code(t, err, reins.CodeNotActionable)
		for _, closes := range []bool{true, false} {
			if w.closing = nil; closes {
				w.closing = make(chan struct{})
			}
			w.set("do", stubborn)
			ctx, cancel := context.WithCancel(ctx0)
			stuck := make(chan error, 1)
			go func() {
				_, err := l.Do(ctx, on("t1"))
				stuck <- err
			}()
			synctest.Wait()
			w.set("do", hang)
			beside := start(l, on("t2"))
			links := len(w.links)
			cancel()
			code(t, <-stuck, reins.CodeCancelled)
			synctest.Wait()
			if closes {
				pending(t, beside)
			} else {
				code(t, <-beside, reins.CodeCompletionUnknown)
			}
			if res, err := l.Do(ctx0, reins.Call{Action: reins.ListTabs{}}); err != nil || res.Meta.Reconnected == closes || (len(w.links) == links) != closes {
				t.Errorf("closes %v: %v, %d drivers, %+v", closes, err, len(w.links)-links, res)
			}
			if closes {
				another := w.lease(t, personOf(key1))
				if err := act(another, reins.CloseTab{Tab: "t3"}); err != nil {
					t.Error(err)
				}
				// What hangs beside it ends with its own lease.
				_ = l.Release(ctx0)
				<-beside
				l = w.lease(t, agentOf(key1, 1))
			}
		}
	})
}

// TestPerTabTakeover is CTL-2 in per-tab order: a takeover waits for what agents
// have running on every tab.
func TestPerTabTakeover(t *testing.T) {
	perTab(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("do", slow)
		one := start(agent, on("t1"))
		time.Sleep(500 * time.Millisecond)
		w.set("do", slow)
		two := start(agent, on("t2"))
		if c := controlOf(t, ada); c.Agents != 2 {
			t.Errorf("%+v", c)
		}
		if err := act(ada, reins.RequestControl{}); err != nil || sinceEpoch() != 1500*time.Millisecond {
			t.Errorf("given after %s: %v", sinceEpoch(), err)
		}
		if err := errors.Join(<-one, <-two); err != nil {
			t.Error(err)
		}
	})
}

// TestLateLeaseKnowsTheTabs: a lease that begins while a browser runs may use the
// names of its tabs, and is not told that the browser was connected anew (TAB-1).
func TestLateLeaseKnowsTheTabs(t *testing.T) {
	perTab(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		res, err := w.lease(t, agentOf(key1, 1)).Do(ctx0, on("t1"))
		if err != nil || res.Meta.Reconnected || len(res.Notes) > 0 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
