package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// carl is a third person.
func carl() reins.Binding {
	b := personOf(key1)
	b.Actor = "carl"
	return b
}

// busyBob has bob hold a button and run something that ends when he leaves, or
// control waits for both (INP-2).
func busyBob(t *testing.T, w *world) (l *lease, running <-chan error) {
	t.Helper()
	l = w.lease(t, bob())
	if err := errors.Join(act(l, open), act(l, press("down", "t1"))); err != nil {
		t.Fatal(err)
	}
	w.set("do", hang)
	return l, start(l, reins.Call{Action: words})
}

// TestControlIsHeldWhenReturned is CTL-2 and CTL-5: a request returns with success
// when control is held, and at no other time: not when its caller has left and
// not when the hold has ended while others' input was let go.
func TestControlIsHeldWhenReturned(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, r *resource, ada *lease, leave context.CancelFunc) error
		want reins.Code
	}{
		"the caller leaves": {func(_ *world, _ *resource, _ *lease, leave context.CancelFunc) error { leave(); return nil }, reins.CodeCancelled},
		"it expires":        {func(*world, *resource, *lease, context.CancelFunc) error { time.Sleep(6 * time.Second); return nil }, reins.CodeTimeout},
		"it is released": {func(_ *world, _ *resource, ada *lease, _ context.CancelFunc) error {
			return act(ada, reins.ReleaseControl{})
		}, reins.CodeCancelled},
		"the browser ends": {func(_ *world, r *resource, _ *lease, _ context.CancelFunc) error { return r.Terminate(ctx0) }, reins.CodeBrowserEnded},
		"they are revoked": {func(w *world, _ *resource, ada *lease, _ context.CancelFunc) error {
			return w.host.Revoke(ctx0, ada.grant.id)
		}, reins.CodeLeaseEnded},
	} {
		bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
			ada := w.lease(t, personOf(key1))
			other, running := busyBob(t, w)
			ctx, cancel := context.WithCancel(ctx0)
			defer cancel()
			asked := make(chan error, 1)
			go func() {
				_, err := ada.Do(ctx, reins.Call{Action: reins.RequestControl{Hold: reins.Duration(5 * time.Second)}})
				asked <- err
			}()
			synctest.Wait()
			pending(t, asked)
			if err := c.end(w, r, ada, cancel); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			synctest.Wait()
			select {
			case err := <-asked:
				if reins.CodeOf(err) != c.want {
					t.Errorf("%s: it came to %v, want %s", name, err, c.want)
				}
			default:
				t.Errorf("%s: the request still waits", name)
			}
			r.mu.Lock()
			is := r.controlLocked("")
			r.mu.Unlock()
			if is.Actor != "" {
				t.Errorf("%s: left %+v", name, is)
			}
			_ = other.Release(ctx0)
			<-running
		})
	}
}

// TestControlPassedOn: somebody who takes control while another request still
// waits for what was held waits neither for that request nor for ever.
func TestControlPassedOn(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		ada, third := w.lease(t, personOf(key1)), w.lease(t, carl())
		other, running := busyBob(t, w)
		r.update(func(s *state) { // ada holds a button too; in serial order hers would wait for bob's
			ada.input.held = map[string]pressed{"right": {"t1", reins.Pointer{Tab: "t1", Kind: "up", Button: "right"}}}
		})
		asked := start(ada, reins.Call{Action: reins.RequestControl{}})
		pending(t, asked)
		if err := act(ada, reins.ReleaseControl{}); err != nil {
			t.Fatal(err)
		}
		next := start(third, reins.Call{Action: reins.RequestControl{}})
		_ = other.Release(ctx0)
		<-running
		code(t, <-asked, reins.CodeCancelled)
		if err := <-next; err != nil || !controlOf(t, third).Mine {
			t.Errorf("it came to %v", err)
		}
	})
}

// TestProgressPanics: a caller whose own function panics leaves nothing behind of
// what it asked for (CTL-5, CTL-8).
func TestProgressPanics(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("do", hang)
		running := start(agent, reins.Call{Action: words})
		panics := func(l *lease, a reins.Action, stage string) {
			t.Helper()
			defer func() {
				if recover() == nil {
					t.Errorf("%T did not panic", a)
				}
			}()
			_, _ = l.Do(ctx0, reins.Call{Action: a, Progress: func(p reins.Progress) {
				if p.Stage == stage {
					panic("the caller's")
				}
			}})
		}
		panics(agent, reins.RequestHuman{Reason: "please"}, "person")
		panics(ada, reins.RequestControl{}, "agents")
		if is := controlOf(t, ada); len(is.Requests) != 0 || is.Actor != "" {
			t.Errorf("left: %+v", is)
		}
		_ = agent.Release(ctx0)
		<-running
		w.set("do", slow)
		next := w.lease(t, agentOf(key1, 1))
		busy := start(next, reins.Call{Action: open})
		panics(next, open, "queue")
		if err := errors.Join(<-busy, act(next, open)); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoIsDriving is B126 and CTL-6: at every moment the resource's state, what each
// participant is told on asking and what a refusal says agree on who has control,
// since when and until when; a refused one gets a reason, not silence.
func TestWhoIsDriving(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada, other := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1)), w.lease(t, bob())
		agree := func(state reins.ControlState, actor string, refused map[*lease]reins.Code) {
			t.Helper()
			infos, err := w.host.List(ctx0, "p")
			if err != nil {
				t.Fatal(err)
			}
			is := infos[0].Control
			if is.State != state || is.Actor != actor || is.Mine || (actor != "") == is.Expires.IsZero() {
				t.Errorf("the resource has %+v, want %s of %q", is, state, actor)
			}
			for _, l := range []*lease{ada, other} {
				mine := controlOf(t, l)
				if mine.Mine != (actor == l.grant.binding.Actor) {
					t.Errorf("%s is told %+v", l.grant.binding.Actor, mine)
				}
				if mine.Mine = false; mine.State != is.State || mine.Actor != is.Actor || !mine.Since.Equal(is.Since) || !mine.Expires.Equal(is.Expires) {
					t.Errorf("%s is told %+v, and it is %+v", l.grant.binding.Actor, mine, is)
				}
			}
			for l, want := range refused {
				e := code(t, act(l, words), want)
				if e.Details["actor"] != actor || e.Details["since"] != is.Since || e.Details["expires"] != is.Expires {
					t.Errorf("refused with %v %v, and it is %+v", e, e.Details, is)
				}
			}
		}
		if err := act(ada, open); err != nil {
			t.Fatal(err)
		}
		agree(reins.ControlAgent, "", nil)
		w.set("do", slow)
		running := start(agent, reins.Call{Action: words})
		agree(reins.ControlAgentActive, "", nil)
		asked := start(ada, reins.Call{Action: reins.RequestControl{}})
		agree(reins.ControlPending, "ada", map[*lease]reins.Code{agent: reins.CodeHumanControlConflict})
		code(t, act(other, reins.RequestControl{}), reins.CodeControlBusy) // refused
		if err := errors.Join(<-running, <-asked); err != nil {
			t.Fatal(err)
		}
		held := map[*lease]reins.Code{agent: reins.CodeHumanControlled, other: reins.CodeHumanControlled}
		agree(reins.ControlHuman, "ada", held)
		time.Sleep(30 * time.Second)
		agree(reins.ControlHuman, "ada", held) // its time runs
		time.Sleep(31 * time.Second)
		agree(reins.ControlAgent, "", nil)
		if err := act(other, reins.RequestControl{}); err != nil {
			t.Fatal(err)
		}
		agree(reins.ControlHuman, "bob", map[*lease]reins.Code{agent: reins.CodeHumanControlled, ada: reins.CodeHumanControlled})
	})
}
