package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// TestOutcomes is OPS-6 and GATE-3: what came of an operation is completed,
// failed, cancelled before it started, or unknown, never better than it was; to
// its caller an effect that is not known is said.
func TestOutcomes(t *testing.T) {
	type world3 struct {
		*world
		r *resource
		l *lease
	}
	cancelled := func(w world3, a reins.Action) error {
		ctx, cancel := context.WithCancel(ctx0)
		done := make(chan error, 1)
		go func() {
			_, err := w.l.Do(ctx, reins.Call{Action: a})
			done <- err
		}()
		synctest.Wait()
		cancel()
		return <-done
	}
	do := func(w world3, a reins.Action) error {
		_, err := w.l.Do(ctx0, reins.Call{Action: a})
		return err
	}
	for _, c := range []struct {
		name    string
		how     behaviour
		run     func(world3) error
		code    reins.Code
		outcome reins.Outcome
		unknown bool // its caller is told so
	}{
		{"done", fine, func(w world3) error { return do(w, open) }, "", reins.OutcomeCompleted, false},
		{"refused by the page", failBefore, func(w world3) error { return do(w, open) }, reins.CodeNotActionable, reins.OutcomeFailed, false},
		{"cancelled at work", hang, func(w world3) error { return cancelled(w, open) }, reins.CodeCancelled, reins.OutcomeUnknown, true},
		{"cancelled while it reads", hang, func(w world3) error { return cancelled(w, reins.Snapshot{}) }, reins.CodeCancelled, reins.OutcomeCancelled, false},
		{"too slow", hang, func(w world3) error { return do(w, open) }, reins.CodeTimeout, reins.OutcomeUnknown, true},
		{"the driver was lost", dies, func(w world3) error { return do(w, open) }, reins.CodeCompletionUnknown, reins.OutcomeUnknown, false},
		{"the browser died", failAfter, func(w world3) error { return do(w, open) }, reins.CodeCompletionUnknown, reins.OutcomeUnknown, false},
		{"it died while it read", failAfter, func(w world3) error { return do(w, reins.Snapshot{}) }, reins.CodeBrowserEnded, reins.OutcomeFailed, false},
		{"released at work", hang, func(w world3) error {
			done := start(w.l, reins.Call{Action: open})
			_ = w.l.Release(ctx0)
			return <-done
		}, reins.CodeLeaseEnded, reins.OutcomeUnknown, true},
		{"released in the queue", hang, func(w world3) error {
			other := w.lease(t, personOf(key1))
			first := start(other, reins.Call{Action: reins.Snapshot{}})
			done := start(w.l, reins.Call{Action: open})
			_ = w.l.Release(ctx0)
			err := <-done
			_ = other.Release(ctx0)
			<-first
			return err
		}, reins.CodeLeaseEnded, reins.OutcomeCancelled, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
				if err := r.Start(ctx0); err != nil {
					t.Fatal(err)
				}
				l := w.lease(t, agentOf(key1, 1))
				w.set("do", c.how)
				err := c.run(world3{w, r, l})
				if reins.CodeOf(err) != c.code {
					t.Fatalf("%v, want %q", err, c.code)
				}
				if err != nil && (reins.AsError(err).Details["effect"] == "unknown") != c.unknown {
					t.Errorf("details %v", reins.AsError(err).Details)
				}
				synctest.Wait()
				w.mu.Lock()
				defer w.mu.Unlock()
				n := 0
				for _, rec := range w.records {
					if rec.LeaseID != l.id {
						continue
					}
					if n++; rec.Outcome != c.outcome || rec.Code != c.code || rec.CapabilityID != l.grant.id || rec.Duration < 0 {
						t.Errorf("record %+v", rec)
					}
				}
				if n != 1 {
					t.Errorf("%d records", n)
				}
			})
		})
	}
}

// TestForcedCloseGoesPast is OPS-7: what frees a stuck browser waits for nothing.
func TestForcedCloseGoesPast(t *testing.T) {
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Verbs: reins.AgentVerbs()}}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.closing = make(chan struct{})
		w.set("do", stubborn)
		stuck, queued := start(l, reins.Call{Action: open}), start(l, reins.Call{Action: open})
		began := time.Now()
		if _, err := l.Do(ctx0, reins.Call{Action: reins.CloseTab{Tab: "t1", Force: true}}); err != nil {
			t.Errorf("a forced close: %v", err)
		}
		code(t, <-stuck, reins.CodeInvalidState)
		if err := <-queued; err != nil || !time.Now().Equal(began) {
			t.Errorf("what waited: %v after %s", err, time.Since(began))
		}
	})
}

// TestTerminateKeeps is RES-4 and LSE-5: the end of one incarnation leaves
// registration, leases and artifacts.
func TestTerminateKeeps(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		put, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "a.txt", LeaseID: l.id}, strings.NewReader("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Do(ctx0, reins.Call{Action: open}); err != nil {
			t.Fatal(err)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		list, err := w.host.List(ctx0, "p")
		if err != nil || len(list) != 1 || list[0].Incarnation != 1 || list[0].State != reins.StateStopped || list[0].Connection != 0 ||
			list[0].Participants != 1 || list[0].Readiness.Overall != "stopped" || !list[0].Attachment.Equal(attached(1)) {
			t.Errorf("%+v, %v", list, err)
		}
		if res, err := l.Do(ctx0, reins.Call{Action: reins.ReadArtifact{Artifact: put.ID}}); err != nil || string(res.Data) != "a" {
			t.Errorf("the lease's artifact: %+v, %v", res, err)
		}
		if w.rooms != 0 {
			t.Error("a terminated browser left its files")
		}
	})
}
