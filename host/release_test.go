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

// slowUps is pointers over drivers that take a second for each release.
type slowUps struct {
	mu   sync.Mutex
	seen []string
}

type slowLink struct {
	link
	s *slowUps
}

func releasing(w *world) *slowUps {
	s := &slowUps{}
	drive := w.host.parts.drive
	w.host.parts.drive = func(ctx context.Context, o driver.Options) (link, error) {
		l, err := drive(ctx, o)
		return slowLink{l, s}, err
	}
	return s
}

func (l slowLink) Do(ctx context.Context, c driver.Command) (*driver.Reply, error) {
	if a, ok := c.Action.(reins.Pointer); ok {
		what := fmt.Sprintf("%s %s %s", a.Kind, a.Tab, a.Button)
		if c.Lease == "" { // a release that the runtime owes
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				what += " not done"
			}
		}
		l.s.mu.Lock()
		l.s.seen = append(l.s.seen, what)
		l.s.mu.Unlock()
	}
	return l.link.Do(ctx, c)
}

func (s *slowUps) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func press(kind string, tab reins.TabID) reins.Pointer {
	return reins.Pointer{Tab: tab, Kind: kind, Button: "left"}
}

var tabs = bubbleOptions{spec: reins.BrowserSpec{Verbs: reins.AgentVerbs(), Scheduling: reins.PerTab}}

// TestReleaseSparesLaterPress is INP-2: what is owed for somebody who left does
// not let go of what somebody else has pressed meanwhile; when they leave in
// turn it is let go once.
func TestReleaseSparesLaterPress(t *testing.T) {
	bubble(t, tabs, func(t *testing.T, w *world, r *resource) {
		w.perTab = true
		seen := releasing(w)
		ada, other := w.lease(t, personOf(key1)), w.lease(t, bob())
		if err := errors.Join(act(ada, open), act(ada, press("down", "t1"))); err != nil {
			t.Fatal(err)
		}
		w.set("do", late) // a second after it is stopped
		elsewhere := start(ada, reins.Call{Action: reins.Type{Tab: "t2", Text: "aaaa"}})
		left := make(chan error, 1)
		go func() { left <- ada.Release(ctx0) }()
		synctest.Wait()
		if err := act(other, press("down", "t1")); err != nil {
			t.Fatal(err)
		}
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		<-elsewhere
		if got, want := seen.told(), []string{"down t1 left", "down t1 left"}; !slices.Equal(got, want) {
			t.Errorf("the driver was told %q, want %q", got, want)
		}
		if err := other.Release(ctx0); err != nil {
			t.Fatal(err)
		}
		if got, want := seen.told(), []string{"down t1 left", "down t1 left", "up t1 left"}; !slices.Equal(got, want) {
			t.Errorf("the driver was told %q, want %q", got, want)
		}
	})
}

// TestNoPressBesideRelease is INP-2: what acts on the page waits while a release
// is on its way, so that the two cannot change places.
func TestNoPressBesideRelease(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		seen := releasing(w)
		ada, other, agent := w.lease(t, personOf(key1)), w.lease(t, bob()), w.lease(t, agentOf(key1, 1))
		if err := errors.Join(act(ada, open), act(ada, press("down", "t1"))); err != nil {
			t.Fatal(err)
		}
		left := make(chan error, 1)
		go func() { left <- ada.Release(ctx0) }()
		synctest.Wait()
		began := time.Now()
		if err := act(other, reins.Snapshot{}); err != nil || time.Since(began) != 0 {
			t.Errorf("who only looks waited %s: %v", time.Since(began), err)
		}
		if err := act(other, press("down", "t1")); err != nil || time.Since(began) != time.Second {
			t.Errorf("pressed after %s: %v", time.Since(began), err)
		}
		if err := errors.Join(<-left, act(agent, words)); err != nil {
			t.Fatal(err)
		}
		if got, want := seen.told(), []string{"down t1 left", "up t1 left", "down t1 left"}; !slices.Equal(got, want) {
			t.Errorf("the driver was told %q, want %q", got, want)
		}
	})
}

// TestCancelledGoerReleases is INP-2: the release before the page goes elsewhere
// is the runtime's, not the caller's who may leave meanwhile.
func TestCancelledGoerReleases(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		seen := releasing(w)
		ada, other := w.lease(t, personOf(key1)), w.lease(t, bob())
		if err := errors.Join(act(ada, open), act(ada, press("down", "t1"))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(ctx0, time.Second/2)
		defer cancel()
		_, err := other.Do(ctx, reins.Call{Action: open})
		code(t, err, reins.CodeTimeout)
		if got, want := seen.told(), []string{"down t1 left", "up t1 left"}; !slices.Equal(got, want) {
			t.Errorf("the driver was told %q, want %q", got, want)
		}
	})
}

// TestPageChangesTab is INP-2 where the page itself changes the tab: what is held
// on the one that was shown is let go there; on one that is gone there is nothing
// to let go.
func TestPageChangesTab(t *testing.T) {
	for name, c := range map[string]struct {
		events []driver.Event
		want   []string
	}{
		"a popup": {[]driver.Event{
			{Kind: "tab_opened", Tab: reins.Tab{ID: "t2"}},
			{Kind: "tab_selected", Tab: reins.Tab{ID: "t2", Selected: true}},
		}, []string{"up t1 left"}},
		"it closes itself": {[]driver.Event{
			{Kind: "tab_closed", Tab: reins.Tab{ID: "t1"}},
			{Kind: "tab_selected", Tab: reins.Tab{ID: "t2", Selected: true}},
		}, nil},
		"it closes another":    {[]driver.Event{{Kind: "tab_closed", Tab: reins.Tab{ID: "t2"}}}, nil},
		"it tells of itself":   {[]driver.Event{{Kind: "tab_updated", Tab: reins.Tab{ID: "t1", Selected: true}}}, nil},
		"it opens in the back": {[]driver.Event{{Kind: "tab_opened", Tab: reins.Tab{ID: "t2"}}}, nil},
	} {
		bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
			seen := releasing(w)
			ada := w.lease(t, personOf(key1))
			if err := errors.Join(act(ada, open), act(ada, press("down", "t1"))); err != nil {
				t.Fatal(err)
			}
			for _, e := range c.events {
				w.anyLink().opts.Events(e)
			}
			time.Sleep(2 * time.Second)
			if got := seen.told()[1:]; !slices.Equal(got, c.want) {
				t.Errorf("%s: the driver was told %q, want %q", name, got, c.want)
			}
			r.mu.Lock()
			held := len(ada.input.held)
			r.mu.Unlock()
			if gone := name == "a popup" || name == "it closes itself"; (held == 0) != gone {
				t.Errorf("%s: %d are held", name, held)
			}
			before := len(seen.told())
			if err := ada.Release(ctx0); err != nil {
				t.Error(err)
			}
			if got := seen.told()[before:]; (len(got) > 0) != (held > 0) {
				t.Errorf("%s: at the end %q", name, got)
			}
		})
	}
}

// TestNothingHeldCostsNothing: each navigation asks of every participant what they
// hold, which is nothing nearly always.
func TestNothingHeldCostsNothing(t *testing.T) {
	w := newWorld(t, t.TempDir(), reins.Hooks{}, reins.Limits{})
	r := w.register(t, reins.BrowserSpec{})
	for range 8 {
		w.lease(t, personOf(key1))
	}
	n := testing.AllocsPerRun(100, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.oweAllLocked(&r.st)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	w.stop(t)
}
