package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// TestAuditNeverBlocks is HK-3 and HK-4: a hook that hangs holds up nothing,
// what does not fit is counted, and one that panics is contained.
func TestAuditNeverBlocks(t *testing.T) {
	release := make(chan struct{})
	calls := 0
	hooks := reins.Hooks{Audit: func(reins.Record) {
		if calls++; calls == 1 {
			<-release
			panic("audit")
		}
	}}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		a := newAudit(hooks.Audit, slog.New(slog.DiscardHandler))
		for range auditBuffer + 101 {
			a.send(reins.Record{})
			synctest.Wait()
		}
		if n := a.dropped(); n != 100 {
			t.Errorf("%d dropped", n)
		}
		if err := a.close(time.Second); reins.CodeOf(err) != reins.CodeTimeout {
			t.Errorf("closing with a hook that hangs: %v", err)
		}
		close(release)
		if err := a.close(time.Second); err != nil {
			t.Error(err)
		}
		if calls != auditBuffer+1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestSlowSubscriber: events never block what they tell of; a slow reader loses
// the oldest and is told how many.
func TestSlowSubscriber(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		ctx, cancel := context.WithCancel(ctx0)
		events, err := w.host.Events(ctx, "p")
		if err != nil {
			t.Fatal(err)
		}
		others, err := w.host.Events(ctx, "other")
		if err != nil {
			t.Fatal(err)
		}
		const n = eventBuffer + 50
		for i := range n {
			r.publish(reins.Event{Kind: "tab", Detail: fmt.Sprint(i)})
			synctest.Wait()
		}
		got, missed := 0, 0
		for got+missed < n {
			e := <-events
			got, missed = got+1, missed+e.Missed
		}
		if want := n - eventBuffer - eventsOut - 1; missed != want { // one more was on its way
			t.Errorf("%d got, %d missed", got, missed)
		}
		cancel()
		for range events {
			t.Error("an event after the end")
		}
		for range others {
			t.Error("an event of another project")
		}
	})
}

// TestWorkDoesNotPushOutEvents: that agents work and rest, over and over, is told
// by the newest snapshot of control; what a person does is told each time
// (CTL-6).
func TestWorkDoesNotPushOutEvents(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		events, err := w.host.Events(ctx0, "p")
		if err != nil {
			t.Fatal(err)
		}
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		for range eventBuffer {
			if err := act(agent, open); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(act(ada, reins.RequestControl{}), act(ada, reins.ReleaseControl{})); err != nil {
			t.Fatal(err)
		}
		missed, takeovers := 0, 0
		var last reins.Event
		for waiting := true; waiting; {
			synctest.Wait() // what there is has been handed over
			select {
			case e := <-events:
				missed += e.Missed
				if e.Control != nil {
					if last = e; e.Control.State == reins.ControlHuman {
						takeovers++
					}
				}
			default:
				waiting = false
			}
		}
		if missed != 0 || takeovers != 1 || last.Control == nil || last.Control.State != reins.ControlAgent {
			t.Errorf("%d missed, %d takeovers, last %+v", missed, takeovers, last.Control)
		}
	})
}
