package host

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestStress does everything at once, in real time, for the race detector: what
// virtual time orders by rest points happens here at the same instant. What must
// hold is what the fakes watch (LSE-6, OPS-1) and what is left at the end.
func TestStress(t *testing.T) {
	w := newWorld(t, t.TempDir(), reins.Hooks{BeforeOperation: func(context.Context, reins.Operation) error { return nil }}, reins.Limits{Queue: 8})
	r := w.register(t, reins.BrowserSpec{Verbs: reins.AgentVerbs()})
	var revision box[uint64]
	revision.set(1)
	ofControl := map[reins.Role][]reins.Action{
		reins.RoleHuman: {reins.RequestControl{}, reins.RequestControl{}, reins.ReleaseControl{}, reins.RenewControl{}, reins.StopAgents{}, reins.GetControl{}},
		reins.RoleAgent: {reins.RequestHuman{Reason: "help"}},
	}
	worker := func(rng *rand.Rand) {
		for range 120 {
			b := personOf(key1)
			if rng.IntN(2) == 0 {
				b = agentOf(key1, revision.get())
			}
			c, err := w.host.Issue(ctx0, b, 0)
			if err != nil {
				continue // the attachment has just changed, or a bound is reached
			}
			l, err := w.host.Acquire(ctx0, c.Token, b)
			if err != nil {
				continue
			}
			for range rng.IntN(4) {
				ctx, cancel := context.WithTimeout(ctx0, time.Duration(rng.IntN(3000))*time.Microsecond)
				call := reins.Call{Action: reins.Snapshot{}, Key: []string{"", "k"}[rng.IntN(2)]}
				if rng.IntN(3) == 0 {
					call = reins.Call{Action: ofControl[b.Role][rng.IntN(len(ofControl[b.Role]))]}
				}
				_, err := l.Do(ctx, call)
				cancel()
				if reins.CodeOf(err) == reins.CodeInternal {
					t.Errorf("internal: %v", reins.AsError(err).Cause)
				}
			}
			switch rng.IntN(8) {
			case 0:
				w.set("do", []behaviour{hang, dies, failAfter, failBefore}[rng.IntN(4)])
			case 1:
				_ = r.Terminate(ctx0)
			case 2:
				_ = w.host.Revoke(ctx0, c.ID)
			case 3:
				_, _ = l.Renew(ctx0)
			case 4:
				_, _ = w.host.Acquire(ctx0, c.Token, b)
			}
			_ = l.Release(ctx0)
		}
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { worker(rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	wg.Go(func() {
		for n := uint64(2); n < 40; n++ {
			if err := r.Attach(ctx0, attached(n)); err != nil {
				t.Error(err)
			}
			revision.set(n)
		}
	})
	wg.Wait()
	w.mu.Lock()
	clear(w.next)
	w.mu.Unlock()
	gen, err := w.host.current()
	if err != nil {
		t.Fatal(err)
	}
	w.stop(t)
	waiting, running := r.st.queue.Waiting()
	if is := r.controlLocked(""); is.Actor != "" || is.Agents != 0 || len(is.Requests) != 0 || r.st.takeover.timer != nil {
		t.Errorf("left of control: %+v", is)
	}
	if waiting != 0 || running != 0 || len(r.st.ops) != 0 || len(r.st.grants) != 0 || gen.reserved != 0 || w.host.calls.open() != 0 {
		t.Errorf("left: %d waiting, %d running, %d operations, %d grants, %d capabilities, %d hooks",
			waiting, running, len(r.st.ops), len(r.st.grants), gen.reserved, w.host.calls.open())
	}
}
