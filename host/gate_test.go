package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// TestGate is GATE-1, GATE-3 and GATE-4: the gate is asked before any effect,
// with everything; a no, a panic or silence keeps the effect from happening;
// each admitted operation has one record, without what was typed.
func TestGate(t *testing.T) {
	var how box[func(context.Context, reins.Operation) error]
	hooks := reins.Hooks{BeforeOperation: func(ctx context.Context, op reins.Operation) error {
		if f := how.get(); f != nil {
			return f(ctx, op)
		}
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		agent := w.lease(t, agentOf(key1, 1))
		var asked reins.Operation
		how.set(func(_ context.Context, op reins.Operation) error { asked = op; return errors.New("no") })
		_, err := agent.Do(ctx0, reins.Call{Action: open})
		code(t, err, reins.CodeDenied)
		if len(w.cells) != 0 {
			t.Error("a denied operation started a browser")
		}
		if asked.ID == "" || asked.Class != reins.ClassAgentAction || asked.Action != reins.Action(open) ||
			asked.Authority.LeaseID != agent.id || asked.Authority.CapabilityID != agent.grant.id ||
			asked.Authority.RuntimeID != "test" || asked.Authority.Generation != "gen_test" || asked.Started.IsZero() {
			t.Errorf("the gate saw %+v", asked)
		}
		how.set(func(context.Context, reins.Operation) error { panic("gate") })
		_, err = agent.Do(ctx0, reins.Call{Action: open})
		code(t, err, reins.CodeDenied)
		how.set(func(ctx context.Context, _ reins.Operation) error { <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		_, err = agent.Do(ctx0, reins.Call{Action: open})
		if e := code(t, err, reins.CodeTimeout); e.Phase != reins.PhaseHook || time.Since(began) != 10*time.Second {
			t.Errorf("silence: %v in phase %s after %s", e, e.Phase, time.Since(began))
		}
		how.set(nil)
		secret := "hunter2"
		if _, err := agent.Do(ctx0, reins.Call{Action: reins.Fill{Ref: "f1e1", Value: reins.TextValue(secret)}}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		var outcomes []reins.Outcome
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, rec := range w.records {
			if rec.Operation == "" {
				continue
			}
			outcomes = append(outcomes, rec.Outcome)
			if rec.Actor != "agent" || rec.LeaseID != agent.id || rec.Project != "p" || strings.Contains(rec.Detail, secret) {
				t.Errorf("record %+v", rec)
			}
		}
		want := []reins.Outcome{reins.OutcomeFailed, reins.OutcomeFailed, reins.OutcomeFailed, reins.OutcomeCompleted}
		if !slices.Equal(outcomes, want) {
			t.Errorf("outcomes %v", outcomes)
		}
	})
}

// TestGateThatEndsAuthority: the last check is after the gate, and an operation
// whose authority ended meanwhile never begins (LSE-6). The record says that
// it was cancelled before it started, not that its outcome is unknown (OPS-6).
func TestGateThatEndsAuthority(t *testing.T) {
	for range 20 {
		var agent *lease
		hooks := reins.Hooks{BeforeOperation: func(context.Context, reins.Operation) error {
			go func() { _ = agent.Release(ctx0) }()
			<-agent.Done()
			return nil
		}}
		bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
			if err := r.Start(ctx0); err != nil {
				t.Fatal(err)
			}
			agent = w.lease(t, agentOf(key1, 1))
			_, err := agent.Do(ctx0, reins.Call{Action: open})
			e := code(t, err, reins.CodeLeaseEnded)
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			var last reins.Record
			for _, rec := range w.records {
				if rec.Operation != "" {
					last = rec
				}
			}
			if e.Details["effect"] != nil || last.Outcome != reins.OutcomeCancelled || len(w.acted) != 0 {
				t.Fatalf("details %v, outcome %s, acted %v", e.Details, last.Outcome, w.acted)
			}
		})
	}
}

// TestLateHooksAreBounded is GATE-1 and HK-4: a hook that never returns is left
// behind eight times for a lease and no more; another lease goes on, and so does
// this one when the calls have returned.
func TestLateHooksAreBounded(t *testing.T) {
	release := make(chan struct{})
	hooks := reins.Hooks{BeforeOperation: func(_ context.Context, op reins.Operation) error {
		if op.Authority.Binding.Role == reins.RoleAgent {
			<-release
		}
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		release = make(chan struct{})
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		for range maxLate {
			code(t, act(agent, open), reins.CodeTimeout)
		}
		for range 3 {
			if e := code(t, act(agent, open), reins.CodeQuotaExceeded); e.Phase != reins.PhaseHook {
				t.Errorf("phase %s", e.Phase)
			}
		}
		if err := act(person, open); err != nil {
			t.Error(err)
		}
		close(release)
		synctest.Wait()
		if err := act(agent, open); err != nil {
			t.Error(err)
		}
		if all, late := w.host.calls.open(), w.host.calls.lateOf(agent); all != 0 || late != 0 {
			t.Errorf("left: %d, %d late", all, late)
		}
	})
}

// TestOpenHookCallsAreBounded is GATE-1 and HK-4: what bounds calls that do not
// return counts those that are still waited for, so that many at the same time
// cannot get past it, and a host that is started again does not forget them.
func TestOpenHookCallsAreBounded(t *testing.T) {
	var open, most atomic.Int64
	var release box[chan struct{}]
	hooks := reins.Hooks{BeforeOperation: func(context.Context, reins.Operation) error {
		n := open.Add(1)
		defer open.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release.get()
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks, limits: reins.Limits{Capabilities: 40}}, func(t *testing.T, w *world, _ *resource) {
		release.set(make(chan struct{}))
		one, two := w.lease(t, personOf(key1)), w.lease(t, personOf(key1))
		ask := func(l *lease) (done []<-chan error) {
			for range 100 {
				d := make(chan error, 1)
				go func() { d <- act(l, reins.GetControl{}) }()
				done = append(done, d)
			}
			synctest.Wait()
			return done
		}
		first := ask(one)
		if n := open.Load(); n != maxCalls {
			t.Errorf("one lease has %d calls open, want %d", n, maxCalls)
		}
		second := ask(two)
		if n := open.Load(); n != 40 {
			t.Errorf("the runtime has %d calls open, want 40", n)
		}
		for _, d := range append(first, second...) {
			if err := <-d; reins.CodeOf(err) != reins.CodeTimeout && reins.CodeOf(err) != reins.CodeQuotaExceeded {
				t.Errorf("it came to %v", err)
			}
		}
		code(t, act(one, reins.GetControl{}), reins.CodeQuotaExceeded)
		w.stop(t)
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		w.register(t, reins.BrowserSpec{})
		again := w.lease(t, personOf(key1))
		for _, d := range ask(again) {
			code(t, <-d, reins.CodeQuotaExceeded)
		}
		if n := most.Load(); n != 40 {
			t.Errorf("%d calls were open at the same time", n)
		}
		close(release.get())
		synctest.Wait()
		if err := act(again, reins.GetControl{}); err != nil || w.host.calls.open() != 0 {
			t.Errorf("afterwards: %v with %d open", err, w.host.calls.open())
		}
	})
}
