package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// pointers notes what raw input a driver is told.
func pointers(w *world) func() []string {
	var mu sync.Mutex
	var seen []string
	drive := w.host.parts.drive
	w.host.parts.drive = func(ctx context.Context, o driver.Options) (link, error) {
		l, err := drive(ctx, o)
		return spy{l, func(c driver.Command) {
			mu.Lock()
			defer mu.Unlock()
			switch a := c.Action.(type) {
			case reins.Pointer:
				what := fmt.Sprintf("%s %s %g,%g held %d", a.Kind, a.Button, a.X, a.Y, a.Buttons)
				if a.Kind == "up" && sinceEpoch() > 0 {
					what += " after " + sinceEpoch().String()
				}
				seen = append(seen, what)
			case reins.Navigate:
				seen = append(seen, "navigate")
			}
		}}, err
	}
	return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(seen) }
}

func point(kind string, x float64) reins.Pointer { return reins.Pointer{Tab: "t1", Kind: kind, X: x} }

// TestMovesMerge is OPS-3 and GATE-3: a press behind three hundred moves waits
// for one of them; all of them settle as completed, and the audit trail has one
// record with counts for each second.
func TestMovesMerge(t *testing.T) {
	var mu sync.Mutex
	asked := map[reins.Class]int{}
	hooks := reins.Hooks{BeforeOperation: func(_ context.Context, op reins.Operation) error {
		mu.Lock()
		defer mu.Unlock()
		asked[op.Class]++
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks, limits: reins.Limits{Queue: 4}}, func(t *testing.T, w *world, r *resource) {
		seen := pointers(w)
		ada := w.lease(t, personOf(key1))
		if err := act(ada, open); err != nil {
			t.Fatal(err)
		}
		w.set("do", slow)
		busy := start(ada, reins.Call{Action: open})
		var done []<-chan error
		for i := range 300 { // far more than may wait
			done = append(done, start(ada, reins.Call{Action: point("move", float64(i))}))
		}
		done = append(done, start(ada, reins.Call{Action: point("down", 299)}), start(ada, reins.Call{Action: point("move", 300)}))
		for _, d := range append(done, busy) {
			if err := <-d; err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"navigate", "navigate", "move  299,0 held 0", "down  299,0 held 1", "move  300,0 held 1"}
		if got := seen(); !slices.Equal(got, want) {
			t.Errorf("the driver was told %q", got)
		}
		time.Sleep(2 * time.Second)
		w.mu.Lock()
		var told []string
		for _, rec := range w.records {
			if rec.Class == reins.ClassRawInput {
				told = append(told, fmt.Sprint(rec.Action, " ", rec.Actor, " ", rec.Outcome, " ", rec.Detail))
			}
		}
		w.mu.Unlock()
		if want := []string{"pointer ada completed move 299", "pointer ada completed down 1, move 2"}; !slices.Equal(told, want) {
			t.Errorf("the audit trail has %q", told)
		}
		mu.Lock()
		defer mu.Unlock()
		if asked[reins.ClassRawInput] != 3 {
			t.Errorf("the gate was asked %v", asked)
		}
	})
}

// TestRawInputIsForWhatIsShown is INP-1 and CAP-7.
func TestRawInputIsForWhatIsShown(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		if err := errors.Join(act(agent, open), act(ada, point("move", 1))); err != nil {
			t.Fatal(err)
		}
		code(t, act(agent, point("move", 1)), reins.CodeDenied)
		code(t, act(ada, reins.Pointer{Tab: "t2", Kind: "down"}), reins.CodeInvalidState)
		if ada.input.mask() != 0 {
			t.Error("a refused press counts as held")
		}
	})
}

// TestHeldInputIsReleased is INP-2, LSE-4 and GATE-2: what somebody holds is let
// go where it is when they leave, when the page goes elsewhere and when somebody
// else takes control; not while another holds it too; and the gate is not asked.
func TestHeldInputIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(w *world, r *resource, ada, bob *lease) error
		want    []string
		audited bool
	}{
		"they leave": {func(_ *world, _ *resource, ada, _ *lease) error { return ada.Release(ctx0) },
			[]string{"up  7,0 held 0"}, true},
		"revoked": {func(w *world, _ *resource, ada, _ *lease) error { return w.host.Revoke(ctx0, ada.grant.id) },
			[]string{"up  7,0 held 0"}, true},
		"in the middle of an event": {func(w *world, _ *resource, ada, _ *lease) error {
			w.set("do", late)
			moving := start(ada, reins.Call{Action: point("move", 9)})
			err := ada.Release(ctx0)
			<-moving
			return err
		}, []string{"move  9,0 held 1", "up  9,0 held 0 after 1s"}, true}, // when that is quiet
		"the page goes": {func(_ *world, _ *resource, _, bob *lease) error { return act(bob, open) },
			[]string{"up  7,0 held 0", "navigate"}, false},
		"somebody takes control": {func(_ *world, _ *resource, _, bob *lease) error {
			return act(bob, reins.RequestControl{})
		}, []string{"up  7,0 held 0"}, true},
		"another holds it too": {func(_ *world, _ *resource, ada, bob *lease) error {
			return errors.Join(act(bob, point("down", 8)), ada.Release(ctx0), bob.Release(ctx0))
		}, []string{"down  8,0 held 1", "up  8,0 held 0"}, true},
		"the browser ends": {func(_ *world, r *resource, ada, _ *lease) error {
			return errors.Join(r.Terminate(ctx0), r.Start(ctx0), ada.Release(ctx0))
		}, nil, false},
		"they let go": {func(_ *world, _ *resource, ada, _ *lease) error {
			return errors.Join(act(ada, point("up", 7)), ada.Release(ctx0))
		}, []string{"up  7,0 held 0"}, false},
	} {
		bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
			seen := pointers(w)
			ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
			if err := errors.Join(act(ada, open), act(ada, point("down", 5)), act(ada, point("move", 7))); err != nil {
				t.Fatal(err)
			}
			before := len(seen())
			if err := c.end(w, r, ada, bob); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := seen()[before:]; !slices.Equal(got, c.want) {
				t.Errorf("%s: the driver was told %q, want %q", name, got, c.want)
			}
			r.mu.Lock()
			if ada.ended != nil && ada.input.tally != nil {
				t.Errorf("%s: a record is owed of somebody who left", name) // GATE-3
			}
			r.mu.Unlock()
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if got := slices.ContainsFunc(w.records, func(rec reins.Record) bool {
				return rec.Action == "releaseParticipant" && rec.Outcome == reins.OutcomeCompleted
			}); got != c.audited {
				t.Errorf("%s: audited %v", name, got)
			}
		})
	}
}
