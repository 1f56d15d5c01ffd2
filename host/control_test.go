package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// controlOf asks for a snapshot of control.
func controlOf(t *testing.T, l reins.Lease) reins.Control {
	t.Helper()
	res, err := l.Do(ctx0, reins.Call{Action: reins.GetControl{}})
	if err != nil {
		t.Fatal(err)
	}
	return *res.Control
}

// bob is another person than ada.
func bob() reins.Binding {
	b := personOf(key1)
	b.Actor = "bob"
	return b
}

func act(l reins.Lease, a reins.Action) error {
	_, err := l.Do(ctx0, reins.Call{Action: a})
	return err
}

var (
	anyone = bubbleOptions{spec: reins.BrowserSpec{Verbs: reins.AgentVerbs()}}
	words  = reins.Type{Text: "aaaa"}
)

// TestTakeover is CTL-1 to CTL-4 from request to release: what agents have
// queued fails, what they have begun is waited for, nobody else gets in, others
// may watch, and afterwards agents go on by themselves.
func TestTakeover(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada, other := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1)), w.lease(t, bob())
		w.set("do", slow)
		running := start(agent, reins.Call{Action: words})
		queued := start(agent, reins.Call{Action: words})
		waiting := start(other, reins.Call{Action: words}) // a person's, not refused while it is pending
		if c := controlOf(t, ada); c.State != reins.ControlAgentActive || c.Agents != 1 || c.Availability != reins.Available {
			t.Errorf("before: %+v", c)
		}
		var told []reins.Progress
		asked := start(ada, reins.Call{Action: reins.RequestControl{}, Progress: func(p reins.Progress) { told = append(told, p) }})
		if e := code(t, <-queued, reins.CodeHumanControlConflict); e.Details["effect"] != nil {
			t.Errorf("what never began: %v", e.Details)
		}
		code(t, act(agent, reins.Snapshot{}), reins.CodeHumanControlConflict)
		code(t, act(agent, reins.CloseTab{Tab: "t1", Force: true}), reins.CodeHumanControlConflict) // past the queue, not past this
		code(t, act(other, reins.RequestControl{}), reins.CodeControlBusy)
		code(t, act(ada, reins.RequestControl{}), reins.CodeControlBusy)
		if c := controlOf(t, other); c.State != reins.ControlPending || c.Actor != "ada" || c.Mine {
			t.Errorf("pending: %+v", c)
		}
		pending(t, asked)
		if err := errors.Join(<-running, <-asked); err != nil {
			t.Fatal(err)
		}
		if want := []reins.Progress{{Stage: "agents", Position: 1}}; !slices.Equal(told, want) {
			t.Errorf("told %v", told) // OPS-4
		}
		code(t, <-waiting, reins.CodeHumanControlled)
		held := controlOf(t, ada)
		if held.State != reins.ControlHuman || !held.Mine || held.Agents != 0 || time.Until(held.Expires) != time.Minute {
			t.Errorf("held: %+v", held)
		}
		for _, c := range []struct {
			l    *lease
			a    reins.Action
			want reins.Code
		}{
			{agent, reins.Snapshot{}, reins.CodeHumanControlled}, {agent, words, reins.CodeHumanControlled},
			{agent, reins.ListArtifacts{}, reins.CodeHumanControlled},
			{other, words, reins.CodeHumanControlled}, {other, reins.SelectTab{Tab: "t1"}, reins.CodeHumanControlled},
			{other, reins.Snapshot{}, ""}, {other, reins.ListTabs{}, ""}, {other, reins.ListArtifacts{}, ""},
			{other, reins.RenewControl{}, reins.CodeInvalidState}, {other, reins.StopAgents{}, reins.CodeControlBusy},
			{other, reins.ReleaseControl{}, ""}, // of nothing
			{ada, words, ""}, {ada, reins.Snapshot{}, ""},
			{agent, reins.RequestControl{}, reins.CodeDenied}, {agent, reins.AnswerHuman{Request: "op_1"}, reins.CodeDenied},
		} {
			if err := act(c.l, c.a); reins.CodeOf(err) != c.want {
				t.Errorf("%s %T while it is held: %v, want %q", c.l.grant.binding.Actor, c.a, err, c.want)
			}
		}
		if err := errors.Join(act(ada, reins.ReleaseControl{}), act(ada, reins.ReleaseControl{}), act(agent, reins.Snapshot{}), act(agent, words)); err != nil {
			t.Error(err)
		}
	})
}

// TestTakeoverEnds is CTL-4 and LSE-5: what ends a hold or a request, each at
// once and for good.
func TestTakeoverEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(w *world, r *resource, ada *lease) error
		pending reins.Code // what a request that waits gets
		audited bool       // as clean-up that nobody is asked about (GATE-2)
	}{
		"release": {func(w *world, r *resource, ada *lease) error { return act(ada, reins.ReleaseControl{}) }, reins.CodeCancelled, false},
		"expiry": {func(w *world, r *resource, ada *lease) error {
			time.Sleep(61 * time.Second)
			return nil
		}, reins.CodeTimeout, false},
		"departure":  {func(w *world, r *resource, ada *lease) error { return ada.Release(ctx0) }, reins.CodeLeaseEnded, true},
		"revocation": {func(w *world, r *resource, ada *lease) error { return w.host.Revoke(ctx0, ada.grant.id) }, reins.CodeLeaseEnded, true},
		"termination": {func(w *world, r *resource, ada *lease) error {
			return r.Terminate(ctx0)
		}, reins.CodeBrowserEnded, false},
		"death": {func(w *world, r *resource, ada *lease) error {
			w.anyCell().end(reins.Errorf(reins.CodeBrowserEnded, "it crashed"))
			synctest.Wait()
			return nil
		}, reins.CodeBrowserEnded, false},
	} {
		for _, held := range []bool{true, false} {
			asked := 0
			o := anyone
			o.hooks = reins.Hooks{BeforeOperation: func(context.Context, reins.Operation) error { asked++; return nil }}
			bubble(t, o, func(t *testing.T, w *world, r *resource) {
				agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
				if err := r.Start(ctx0); err != nil {
					t.Fatal(err)
				}
				var running <-chan error
				if !held {
					w.set("do", hang)
					running = start(agent, reins.Call{Action: reins.Navigate{URL: "https://example.com", Timeout: reins.Duration(5 * time.Minute)}})
				}
				request := start(ada, reins.Call{Action: reins.RequestControl{}})
				before := asked
				if err := c.end(w, r, ada); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				want := c.pending
				if held {
					want = ""
				}
				if err := <-request; reins.CodeOf(err) != want {
					t.Errorf("%s: the request came to %v, want %q", name, err, want)
				}
				r.mu.Lock()
				is, timer := r.controlLocked(""), r.st.takeover.timer
				r.mu.Unlock()
				if is.Actor != "" || timer != nil {
					t.Errorf("%s, held %v: left %+v", name, held, is) // CTL-5
				}
				if held {
					if err := act(agent, reins.Snapshot{}); err != nil {
						t.Errorf("%s: the agent does not go on: %v", name, err)
					}
				}
				w.mu.Lock()
				audited := slices.ContainsFunc(w.records, func(rec reins.Record) bool {
					return rec.Action == "releaseParticipant" && rec.Actor == "ada" && rec.LeaseID == ada.id
				})
				w.mu.Unlock()
				if audited != c.audited || c.audited && !held && asked != before {
					t.Errorf("%s, held %v: audited %v, the gate was asked %d times", name, held, audited, asked-before)
				}
				if running != nil {
					_ = agent.Release(ctx0)
					<-running
				}
			})
		}
	}
}

// TestTakeoverGivenUp is CTL-5: a request whose caller left, or whose time came,
// leaves nothing behind when it returns.
func TestTakeoverGivenUp(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("do", hang)
		running := start(agent, reins.Call{Action: reins.Navigate{URL: "https://example.com", Timeout: reins.Duration(5 * time.Minute)}})
		free := func() {
			t.Helper()
			r.mu.Lock()
			defer r.mu.Unlock()
			if is := r.controlLocked(""); is.State != reins.ControlAgentActive {
				t.Fatalf("left: %+v", is)
			}
		}
		began := time.Now()
		e := code(t, act(ada, reins.RequestControl{Wait: reins.Duration(2 * time.Second)}), reins.CodeTimeout)
		if free(); time.Since(began) != 2*time.Second || e.Details["effect"] != nil {
			t.Errorf("after %s: %v %v", time.Since(began), e, e.Details)
		}
		ctx, cancel := context.WithTimeout(ctx0, time.Second)
		defer cancel()
		_, err := ada.Do(ctx, reins.Call{Action: reins.RequestControl{}})
		code(t, err, reins.CodeTimeout)
		free()
		// Given and cancelled in the same instant: it is not kept by nobody.
		for range 20 {
			w.set("do", slow)
			ended := start(ada, reins.Call{Action: reins.GetControl{}})
			<-ended
			ctx, cancel := context.WithCancel(ctx0)
			r.mu.Lock()
			n := r.st.control.Running()
			r.mu.Unlock()
			if n == 1 {
				_ = act(ada, reins.StopAgents{})
				code(t, <-running, reins.CodeHumanControlConflict)
			}
			done := make(chan error, 1)
			go func() {
				_, err := ada.Do(ctx, reins.Call{Action: reins.RequestControl{}})
				done <- err
			}()
			cancel()
			if err := <-done; (err == nil) != controlOf(t, ada).Mine {
				t.Fatalf("%v, and control is %+v", err, controlOf(t, ada))
			}
			_ = act(ada, reins.ReleaseControl{})
		}
	})
}

// TestTakeoverOutlivesAttachments is ATT-4: a change of attachment ends agents,
// and nothing of a person's.
func TestTakeoverOutlivesAttachments(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		if err := errors.Join(act(agent, open), act(ada, reins.RequestControl{}), r.Attach(ctx0, attached(2))); err != nil {
			t.Fatal(err)
		}
		next := w.lease(t, agentOf(key1, 2))
		code(t, act(next, open), reins.CodeHumanControlled)
		code(t, act(agent, open), reins.CodeLeaseEnded)
		if c := controlOf(t, ada); !c.Mine || c.State != reins.ControlHuman {
			t.Errorf("control is %+v", c)
		}
		if err := errors.Join(act(ada, words), act(ada, reins.ReleaseControl{}), act(next, open)); err != nil {
			t.Error(err)
		}
		code(t, act(next, reins.Click{Ref: "f1e1"}), reins.CodeObserveAgain) // whoever gave it the ref
	})
}

// TestStopAgents is OPS-7 and B122: who wants control need not wait for what
// runs. What was cut off says that it may have happened in part, the queue goes
// on, and nothing of the agent's comes afterwards.
func TestStopAgents(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("do", late)
		running := start(agent, reins.Call{Action: words, Key: "k"})
		asked := start(ada, reins.Call{Action: reins.RequestControl{}})
		began := time.Now()
		if err := act(ada, reins.StopAgents{}); err != nil || time.Since(began) != time.Second {
			t.Errorf("stopped after %s: %v", time.Since(began), err) // when it is quiet
		}
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
		e := code(t, <-running, reins.CodeHumanControlConflict)
		if e.Details["effect"] != "unknown" || !strings.Contains(e.Message, "may have happened") {
			t.Errorf("%v, details %v", e, e.Details)
		}
		_, err := agent.Do(ctx0, reins.Call{Action: words, Key: "k"}) // the same outcome again, not the act
		code(t, err, reins.CodeHumanControlConflict)
		if err := act(ada, words); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the audit trail has it
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.IndexFunc(w.records, func(rec reins.Record) bool { return rec.Action == "type" })
		if i < 0 || w.records[i].Outcome != reins.OutcomeUnknown {
			t.Errorf("records %+v", w.records)
		}
	})
}

// TestGateIsNotWaitedFor: what an agent has at the gate, or waiting for a
// browser, has not begun: a takeover refuses it and does not wait (CTL-2).
func TestGateIsNotWaitedFor(t *testing.T) {
	o := anyone
	o.hooks = reins.Hooks{BeforeOperation: func(ctx context.Context, op reins.Operation) error {
		if op.Verb == reins.VerbType {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	bubble(t, o, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		atGate := start(agent, reins.Call{Action: words})
		began := time.Now()
		if err := act(ada, reins.RequestControl{}); err != nil || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		code(t, <-atGate, reins.CodeHumanControlConflict)
		_ = act(ada, reins.ReleaseControl{})
		w.set("cell", slow)
		starting := start(agent, reins.Call{Action: open})
		if err := act(ada, reins.RequestControl{}); err != nil {
			t.Error(err)
		}
		code(t, <-starting, reins.CodeHumanControlConflict)
		time.Sleep(2 * time.Second)
		if len(w.acted) != 0 {
			t.Errorf("it acted: %v", w.acted)
		}
	})
}

// TestObserveAgain is CTL-7: what an agent knows of the page from before a
// takeover is not acted on until it has looked again.
func TestObserveAgain(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		take := func() {
			t.Helper()
			if err := errors.Join(act(ada, reins.RequestControl{}), act(ada, reins.ReleaseControl{})); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(act(agent, reins.Snapshot{}), act(agent, reins.Click{Ref: "f1e1"})); err != nil {
			t.Fatal(err)
		}
		take()
		for range 2 {
			for _, a := range []reins.Action{reins.Click{Ref: "f1e1"}, reins.Fill{Ref: "f1e1", Value: reins.TextValue("x")}, reins.Press{Key: "Enter"}, words} {
				code(t, act(agent, a), reins.CodeObserveAgain)
			}
		}
		for _, a := range []reins.Action{open, reins.ListTabs{}, reins.Screenshot{Ref: "f1e1"}, reins.Scroll{Y: 10}} {
			if err := act(agent, a); reins.CodeOf(err) == reins.CodeObserveAgain {
				t.Errorf("%T: %v", a, err)
			}
		}
		if err := errors.Join(act(ada, reins.Click{Ref: "f1e1"}), act(agent, reins.Snapshot{}), act(agent, reins.Click{Ref: "f1e1"}), act(agent, words)); err != nil {
			t.Error(err)
		}
		take()
		late := w.lease(t, agentOf(key1, 1)) // whatever it holds, it is not from after it
		code(t, act(late, reins.Click{Ref: "f1e1"}), reins.CodeObserveAgain)
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		another := w.lease(t, agentOf(key1, 1))
		if err := errors.Join(act(another, open), act(another, words)); err != nil {
			t.Errorf("another browser: %v", err)
		}
	})
}

// TestLineLost is B124: a person whose line breaks keeps control until it
// expires, within their time nobody else gets it, and when it is over everybody
// is told.
func TestLineLost(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		events, err := w.host.Events(ctx0, "p")
		if err != nil {
			t.Fatal(err)
		}
		agent, ada, other := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1)), w.lease(t, bob())
		if err := act(ada, reins.RequestControl{Hold: reins.Duration(30 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // the line is gone for five seconds
		code(t, act(other, reins.RequestControl{}), reins.CodeControlBusy)
		code(t, act(agent, reins.Snapshot{}), reins.CodeHumanControlled)
		if err := act(ada, reins.RenewControl{Hold: reins.Duration(10 * time.Second)}); err != nil { // CTL-4
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if c := controlOf(t, ada); !c.Mine || time.Until(c.Expires) != time.Second {
			t.Errorf("within the time: %+v", c)
		}
		time.Sleep(2 * time.Minute) // and now for longer than that
		code(t, act(ada, reins.RenewControl{}), reins.CodeInvalidState)
		if err := act(agent, reins.Snapshot{}); err != nil {
			t.Error(err)
		}
		if err := act(other, reins.RequestControl{}); err != nil {
			t.Error(err)
		}
		w.stop(t)
		var states []reins.ControlState
		for e := range events {
			if e.Kind != "control" || e.Control.State == reins.ControlAgentActive { // which the newest may stand for
				continue
			}
			if n := len(states); n == 0 || states[n-1] != e.Control.State {
				states = append(states, e.Control.State)
			}
		}
		want := []reins.ControlState{reins.ControlHuman, reins.ControlAgent, reins.ControlHuman, reins.ControlAgent}
		if !slices.Equal(states, want) {
			t.Errorf("told %v, want %v", states, want) // CTL-6
		}
	})
}

// TestNoTakeoverByThePage is B123: what an agent's own work sets off is not
// taken for a person's.
func TestNoTakeoverByThePage(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		if err := act(agent, reins.Snapshot{}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			for _, a := range []reins.Action{reins.Snapshot{}, words, reins.Screenshot{}} { // a person beside it
				if err := errors.Join(act(ada, a), act(agent, reins.Click{Ref: "f1e1"})); err != nil && reins.CodeOf(err) != reins.CodeInternal {
					t.Fatal(err)
				}
			}
		}
		if c := controlOf(t, ada); c.State != reins.ControlAgent || c.Actor != "" {
			t.Errorf("control is %+v", c)
		}
	})
}

// TestRequestHuman is CTL-8: it needs no place in the queue, a takeover neither
// waits for it nor refuses it, and it comes to a note, a no, or nobody.
func TestRequestHuman(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		ask := func(l *lease) (<-chan *reins.Result, <-chan error) {
			res, done := make(chan *reins.Result, 1), make(chan error, 1)
			go func() {
				got, err := l.Do(ctx0, reins.Call{Action: reins.RequestHuman{Reason: "type the code", Timeout: reins.Duration(time.Minute)}})
				res <- got
				done <- err
			}()
			synctest.Wait()
			return res, done
		}
		w.set("do", slow)
		busy := start(agent, reins.Call{Action: open})
		got, done := ask(agent) // beside what runs
		code(t, act(agent, reins.RequestHuman{Reason: "again"}), reins.CodeBusy)
		if err := <-busy; err != nil {
			t.Fatal(err)
		}
		open := controlOf(t, ada).Requests
		if len(open) != 1 || open[0].Actor != "agent" || open[0].Reason != "type the code" || open[0].Expires.Sub(open[0].Since) != time.Minute {
			t.Fatalf("shown %+v", open)
		}
		if err := errors.Join(act(ada, reins.RequestControl{}), act(ada, words)); err != nil {
			t.Fatal(err)
		}
		code(t, act(agent, reins.AnswerHuman{Request: open[0].ID}), reins.CodeDenied)
		if err := act(ada, reins.AnswerHuman{Request: open[0].ID, Note: "signed in"}); err != nil {
			t.Fatal(err)
		}
		res, err := <-got, <-done
		if err != nil || *res.Human != (reins.HumanAnswer{Outcome: reins.HumanDone, Actor: "ada", Note: "signed in"}) {
			t.Fatalf("it came to %+v, %v", res, err)
		}
		if c := controlOf(t, ada); c.State != reins.ControlAgent || len(c.Requests) != 0 {
			t.Errorf("after the answer: %+v", c)
		}
		code(t, act(ada, reins.AnswerHuman{Request: open[0].ID}), reins.CodeNotFound)
		if err := act(agent, reins.Snapshot{}); err != nil {
			t.Error(err)
		}

		if err := act(ada, reins.RequestControl{}); err != nil {
			t.Fatal(err)
		}
		got, done = ask(agent) // not refused while somebody has control
		if err := act(ada, reins.AnswerHuman{Request: controlOf(t, ada).Requests[0].ID, Decline: true}); err != nil {
			t.Fatal(err)
		}
		if res, err := <-got, <-done; err != nil || res.Human.Outcome != reins.HumanDeclined || !controlOf(t, ada).Mine {
			t.Errorf("it came to %+v, %v", res, err)
		}
		began := time.Now()
		got, done = ask(agent)
		if res, err := <-got, <-done; err != nil || res.Human.Outcome != reins.HumanExpired || time.Since(began) != time.Minute {
			t.Errorf("after %s: %+v, %v", time.Since(began), res, err)
		}
		got, done = ask(agent)
		_ = agent.Release(ctx0)
		code(t, <-done, reins.CodeLeaseEnded)
		if c := controlOf(t, ada); len(c.Requests) != 0 {
			t.Errorf("left: %+v", c.Requests)
		}
		<-got
	})
}
