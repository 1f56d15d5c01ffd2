package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
)

// watcher reads a subscription as a page would: it keeps what it was told, and
// acknowledges each picture after a while.
type watcher struct {
	sub  reins.Subscription
	done chan struct{}

	mu  sync.Mutex
	all watched
}

// watched is what a watcher was told so far.
type watched struct {
	seen  []string // pictures
	ids   []reins.FrameID
	state reins.ViewState // the newest
	told  int             // states
	errs  []*reins.Error
	end   error
}

func (w *watcher) is() watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func (w *watcher) take(u reins.Update, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.end = err
	if u.State != nil {
		w.all.state, w.all.told = *u.State, w.all.told+1
	}
	if u.Err != nil {
		w.all.errs = append(w.all.errs, u.Err)
	}
	if u.Frame != nil {
		w.all.seen, w.all.ids = append(w.all.seen, string(u.Frame.JPEG)), append(w.all.ids, u.Frame.ID)
	}
}

// watch subscribes a lease and reads on in the background.
func watch(t *testing.T, l reins.Lease, o reins.SubscribeOptions, lag time.Duration) *watcher {
	t.Helper()
	sub, err := l.Subscribe(ctx0, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{sub: sub, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			u, err := sub.Next(ctx0)
			w.take(u, err)
			if err != nil {
				return
			}
			if u.Frame != nil && lag >= 0 {
				time.Sleep(lag)
				sub.Ack(u.Frame.ID)
			}
		}
	}()
	synctest.Wait()
	return w
}

// pass lets time pass, and what happens then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// newest is the picture that was seen last.
func (w *watcher) newest() string {
	seen := w.is().seen
	if len(seen) == 0 {
		return ""
	}
	return seen[len(seen)-1]
}

// filmed starts a browser whose tab t1 is selected.
func filmed(t *testing.T, w *world, r *resource) *fakeLink {
	t.Helper()
	if err := r.Start(ctx0); err != nil {
		t.Fatal(err)
	}
	l := w.anyLink()
	l.tell("tab_opened", reins.Tab{ID: "t1", URL: "https://example.com/", Title: "Example"})
	l.tell("tab_selected", reins.Tab{ID: "t1", URL: "https://example.com/", Title: "Example", Selected: true})
	return l
}

// TestViewersSeeOneScreencast is FRM-1, FRM-4, FRM-11 and FRM-12: the first viewer
// starts it, all get its pictures, who comes late gets one at once, a still page gets
// a sharp one and then nothing, the last viewer ends it.
func TestViewersSeeOneScreencast(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
		a := watch(t, ada, reins.SubscribeOptions{}, 0)
		if a.newest() != "page" || link.saw() != "cast t1" {
			t.Fatalf("the first viewer saw %q", a.is().seen)
		}
		pass(time.Minute)
		if !slices.Equal(a.is().seen, []string{"page", "sharp"}) || link.saw() != "capture t1" {
			t.Errorf("of a still page came %q", a.is().seen)
		}
		b := watch(t, bob, reins.SubscribeOptions{}, 0)
		if !slices.Equal(b.is().seen, []string{"sharp"}) || b.is().ids[0] != a.is().ids[1] {
			t.Errorf("who came late saw %q, %v", b.is().seen, b.is().ids)
		}
		for i := range 5 {
			if !link.paint(fmt.Sprint("moved ", i)) {
				t.Fatal("the browser waits for acknowledgements")
			}
			pass(40 * time.Millisecond)
		}
		synctest.Wait()
		if a.newest() != "moved 4" || b.newest() != "moved 4" || !slices.IsSortedFunc(a.is().ids, compareIDs) {
			t.Errorf("they saw %q and %q", a.is().seen, b.is().seen)
		}
		_ = a.sub.Close()
		<-a.done
		code(t, a.is().end, reins.CodeCancelled)
		synctest.Wait()
		if saw := link.saw(); saw != "" {
			t.Errorf("with one viewer left: %s", saw)
		}
		if err := bob.Release(ctx0); err != nil {
			t.Fatal(err)
		}
		<-b.done
		code(t, b.is().end, reins.CodeLeaseEnded)
		synctest.Wait()
		if saw := link.saw(); saw != "stop" {
			t.Errorf("with nobody left: %q", saw)
		}
	})
}

func compareIDs(a, b reins.FrameID) int { return int(a.Sequence) - int(b.Sequence) }

// TestSubscribeOnce is FRM-1 and CAP-7.
func TestSubscribeOnce(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		ada, agent := w.lease(t, personOf(key1)), w.lease(t, agentOf(key1, 1))
		_, err := agent.Subscribe(ctx0, reins.SubscribeOptions{})
		code(t, err, reins.CodeDenied)
		for _, window := range []int{-1, 33} {
			_, err = ada.Subscribe(ctx0, reins.SubscribeOptions{Window: window})
			code(t, err, reins.CodeInvalidInput)
		}
		first := watch(t, ada, reins.SubscribeOptions{Window: 32}, 0)
		_, err = ada.Subscribe(ctx0, reins.SubscribeOptions{})
		code(t, err, reins.CodeBusy)
		second := watch(t, ada, reins.SubscribeOptions{Take: true}, 0)
		<-first.done
		if e := code(t, first.is().end, reins.CodeBusy); e.Details["reason"] != "taken" {
			t.Errorf("the first one was told %v", e)
		}
		_ = first.sub.Close() // late, and nobody's
		if p := second.is().state.Participants; len(p) != 2 || !p[0].Watching && !p[1].Watching {
			t.Errorf("participants %+v", p)
		}
		_ = second.sub.Close()
		_ = second.sub.Close()
		third := watch(t, ada, reins.SubscribeOptions{}, 0)
		if third.is().state.Life != reins.StateStopped || third.is().state.Incarnation != 0 {
			t.Errorf("without a browser: %+v", third.is().state)
		}
	})
}

// TestGateOfTheView is GATE-1: the host is asked before a view begins, and there is a
// record of it.
func TestGateOfTheView(t *testing.T) {
	no := true
	o := anyone
	o.hooks.BeforeOperation = func(_ context.Context, op reins.Operation) error {
		if op.Class == reins.ClassFrameStream && no {
			return reins.Errorf(reins.CodeDenied, "not today")
		}
		return nil
	}
	bubble(t, o, func(t *testing.T, w *world, r *resource) {
		ada := w.lease(t, personOf(key1))
		_, err := ada.Subscribe(ctx0, reins.SubscribeOptions{})
		code(t, err, reins.CodeDenied)
		no = false
		watch(t, ada, reins.SubscribeOptions{}, 0)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		var got []string
		for _, rec := range w.records {
			got = append(got, fmt.Sprint(rec.Action, " ", rec.Class, " ", rec.Actor, " ", rec.Outcome, " ", rec.Code))
		}
		if want := []string{"subscribe frame-stream ada failed denied", "subscribe frame-stream ada completed "}; !slices.Equal(got, want) {
			t.Errorf("recorded %q", got)
		}
	})
}

// TestEndOfAuthorityEndsTheView is LSE-6, LSE-5 and LSE-4: however it ends, Next
// fails at once, no picture comes after it, and others go on.
func TestEndOfAuthorityEndsTheView(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, r *resource, ada *lease) error
		code reins.Code
		all  bool // others' views end too
	}{
		"release": {func(_ *world, _ *resource, ada *lease) error { return ada.Release(ctx0) }, reins.CodeLeaseEnded, false},
		"revoke":  {func(w *world, _ *resource, ada *lease) error { return w.host.Revoke(ctx0, ada.grant.id) }, reins.CodeLeaseEnded, false},
		"expiry": {func(_ *world, _ *resource, ada *lease) error {
			time.Sleep(time.Until(ada.Expires()))
			return nil
		}, reins.CodeLeaseEnded, true},
		"retire":    {func(_ *world, r *resource, _ *lease) error { return r.Retire(ctx0) }, reins.CodeLeaseEnded, true},
		"terminate": {func(_ *world, r *resource, _ *lease) error { return r.Terminate(ctx0) }, reins.CodeBrowserEnded, true},
		"death": {func(w *world, _ *resource, _ *lease) error {
			w.anyCell().end(reins.Errorf(reins.CodeBrowserEnded, "it crashed"))
			return nil
		}, reins.CodeBrowserEnded, true},
		"attach": {func(_ *world, r *resource, _ *lease) error { return r.Attach(ctx0, attached(2)) }, "", false}, // ATT-4
	} {
		bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
			link := filmed(t, w, r)
			ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
			a, b := watch(t, ada, reins.SubscribeOptions{}, 0), watch(t, bob, reins.SubscribeOptions{}, 0)
			link.paint("before")
			synctest.Wait()
			began := time.Now()
			if name == "expiry" {
				began = ada.Expires()
			}
			if err := c.end(w, r, ada); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			synctest.Wait()
			if c.code == "" {
				link.paint("after")
				synctest.Wait()
				if a.is().end != nil || a.newest() != "after" {
					t.Errorf("%s ended a person's view: %v", name, a.is().end)
				}
				return
			}
			if name == "retire" && reins.CodeOf(a.is().end) == reins.CodeRetired {
				c.code = reins.CodeRetired // the view was asked between the fence and the end of its lease
			}
			if code(t, a.is().end, c.code); time.Since(began) > 0 {
				t.Errorf("%s took %s", name, time.Since(began))
			}
			link.paint("after")
			synctest.Wait()
			if a.newest() == "after" {
				t.Errorf("%s: a picture came after the end", name)
			}
			if _, err := a.sub.Next(ctx0); reins.CodeOf(err) != c.code && (name != "retire" || reins.CodeOf(err) != reins.CodeLeaseEnded) || a.sub.Ack(a.is().ids[0]) {
				t.Errorf("%s: later %v", name, err)
			}
			if (b.is().end != nil) != c.all || !c.all && b.newest() != "after" {
				t.Errorf("%s: another viewer has %v and saw %q", name, b.is().end, b.newest())
			}
		})
	}
}

// TestViewGoesOn: after the end of a browser the page subscribes anew under the same
// lease, and the picture comes with the next incarnation (LSE-5, FRM-12); after the
// loss of a driver it goes on by itself, in a new generation (FRM-2).
func TestViewGoesOn(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada := w.lease(t, personOf(key1))
		a := watch(t, ada, reins.SubscribeOptions{}, 0)
		link.end(reins.Errorf(reins.CodeTransportFailure, "the driver ran out of memory"))
		pass(time.Second)
		next := w.anyLink()
		if next == link {
			t.Fatal("a viewer is no reason for a new driver")
		}
		next.tell("tab_selected", reins.Tab{ID: "t2", URL: "https://example.com/", Selected: true})
		synctest.Wait()
		if a.is().end != nil || a.newest() != "page" || a.is().ids[len(a.is().ids)-1].Stream <= a.is().ids[0].Stream || a.is().ids[0].Incarnation != 1 {
			t.Errorf("after the loss of a driver: %v %q %v", a.is().end, a.is().seen, a.is().ids)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		<-a.done
		b := watch(t, ada, reins.SubscribeOptions{}, 0)
		pass(time.Minute)
		if len(b.is().seen) != 0 || b.is().state.Life != reins.StateStopped {
			t.Errorf("without a browser it saw %q, %+v", b.is().seen, b.is().state)
		}
		filmed(t, w, r)
		pass(100 * time.Millisecond)
		if b.is().end != nil || b.newest() != "page" || b.is().ids[0].Incarnation != 2 || b.is().state.Life != reins.StateRunning || b.is().state.Selected != "t1" {
			t.Errorf("of the next browser it saw %q, %v, %+v", b.is().seen, b.is().ids, b.is().state)
		}
	})
}

// TestViewFollowsTheTab is FRM-1 and FRM-12: what is shown is the selected tab, at
// once, also of one that paints nothing.
func TestViewFollowsTheTab(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		a := watch(t, w.lease(t, personOf(key1)), reins.SubscribeOptions{}, 0)
		w.set("paint", hang) // nothing comes of itself
		link.tell("tab_opened", reins.Tab{ID: "t2"})
		link.tell("tab_selected", reins.Tab{ID: "t2", Selected: true})
		pass(200 * time.Millisecond)
		if a.newest() != "sharp" || a.is().state.Selected != "t2" || len(a.is().state.Tabs) != 2 || !a.is().state.Tabs[1].Selected || a.is().state.Tabs[0].Selected {
			t.Errorf("saw %q, %+v", a.is().seen, a.is().state)
		}
		if saw := link.saw(); saw != "cast t1; cast t2; capture t2" {
			t.Errorf("the driver was told: %s", saw)
		}
		late := watch(t, w.lease(t, bob()), reins.SubscribeOptions{}, 0)
		if late.newest() != "sharp" {
			t.Errorf("who came late saw %q", late.is().seen)
		}
	})
}

// TestProducerFails is FRM-4, FRM-5 and FRM-9: an acknowledgement that is refused is
// settled; one that fails or comes late, and a screencast that cannot be started, end
// the incarnation, after all who watch have lost their leases; a busy page ends
// nothing.
func TestProducerFails(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		how   behaviour
		fatal bool
	}{
		"acknowledgement refused":    {"ack", late, false},
		"acknowledgement failed":     {"ack", failBefore, true},
		"acknowledgement late":       {"ack", hang, true},
		"acknowledgement unanswered": {"ack", stubborn, true},
		"driver died under it":       {"ack", dies, false},
		"no screencast":              {"cast", failBefore, true},
		"busy page":                  {"cast", unanswered, false},
		"slow":                       {"cast", slow, false},
		"no sharp picture":           {"capture", unanswered, false},
	} {
		bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
			filmed(t, w, r)
			ada, agent := w.lease(t, personOf(key1)), w.lease(t, agentOf(key1, 1))
			w.mu.Lock()
			w.each = map[string]behaviour{c.kind: c.how}
			w.mu.Unlock()
			a := watch(t, ada, reins.SubscribeOptions{}, 0)
			pass(time.Minute)
			w.mu.Lock()
			w.each = nil
			w.mu.Unlock()
			if agent.live() != nil {
				t.Errorf("%s: the agent lost its lease", name)
			}
			if !c.fatal {
				if a.is().end != nil || ada.live() != nil {
					t.Errorf("%s ended the view: %v", name, a.is().end)
				}
				return
			}
			if e := code(t, a.is().end, reins.CodeFrameStreamFailed); len(e.Message) > 2*maxDiagnose {
				t.Errorf("%s: told in %d bytes", name, len(e.Message))
			}
			code(t, ada.live(), reins.CodeLeaseEnded)
			if info := r.info(); info.State != reins.StateStopped {
				t.Errorf("%s: the browser is %s", name, info.State)
			}
			if err := act(agent, open); err != nil {
				t.Errorf("%s: the next operation: %v", name, err)
			}
		})
	}
}

// TestOversized is FRM-6.
func TestOversized(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		a := watch(t, w.lease(t, personOf(key1)), reins.SubscribeOptions{}, 0)
		for i := range 10 {
			link.paint(fmt.Sprint("huge ", i))
			pass(50 * time.Millisecond)
		}
		link.paint("small")
		synctest.Wait()
		if len(a.is().errs) != 10 || a.is().errs[0].Code != reins.CodeFrameTooLarge || a.is().errs[0].Details["tab"] != "t1" || a.newest() != "small" || a.is().end != nil {
			t.Errorf("told %v, saw %q, %v", a.is().errs, a.is().seen, a.is().end)
		}
		if n := a.is().ids[len(a.is().ids)-1].Sequence - a.is().ids[0].Sequence; n < 11 {
			t.Errorf("the sequence moved by %d", n)
		}
	})
}

// TestStateIsCoalesced is FRM-10: however much happens, a viewer that comes back is
// told one state, the newest.
func TestStateIsCoalesced(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada := w.lease(t, personOf(key1))
		sub, err := ada.Subscribe(ctx0, reins.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			link.tell("tab_updated", reins.Tab{ID: "t1", Title: fmt.Sprint(i)})
		}
		states := 0
		ctx, cancel := context.WithTimeout(ctx0, time.Second)
		defer cancel()
		for {
			u, err := sub.Next(ctx)
			if err != nil {
				break
			}
			if u.State != nil {
				if states++; u.State.Tabs[0].Title != "999" {
					t.Errorf("told of title %q", u.State.Tabs[0].Title)
				}
			}
		}
		if states != 1 {
			t.Errorf("%d states", states)
		}
		a := watch(t, w.lease(t, bob()), reins.SubscribeOptions{}, 0)
		for i := range 1000 {
			link.tell("tab_updated", reins.Tab{ID: "t1", Title: fmt.Sprint(i)})
			pass(time.Millisecond)
		}
		pass(time.Second)
		if a.is().told < 10 || a.is().told > 25 || a.is().state.Tabs[0].Title != "999" {
			t.Errorf("in a second it was told %d states, of title %q", a.is().told, a.is().state.Tabs[0].Title)
		}
	})
}

// TestStateTells is FRM-10 and GATE-4: who is here, who has control, what is done, and
// no typed text in it.
func TestStateTells(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada, agent := w.lease(t, personOf(key1)), w.lease(t, agentOf(key1, 1))
		a := watch(t, ada, reins.SubscribeOptions{}, 0)
		w.set("do", slow)
		typing := start(agent, reins.Call{Action: reins.Type{Text: "top secret"}})
		link.opts.Events(acting(agent.id))
		pass(100 * time.Millisecond)
		if op := a.is().state.Operation; op == nil || op.Verb != "type" || op.Actor != "agent" || op.Box == nil || op.Outcome != "" {
			t.Errorf("while it types: %+v", op)
		}
		if c := a.is().state.Cursor; c == nil || c.X != 30 || c.Role != reins.RoleAgent {
			t.Errorf("the cursor is %+v", c)
		}
		if err := <-typing; err != nil {
			t.Fatal(err)
		}
		act(agent, reins.Navigate{URL: "https://example.com/a"})
		act(ada, point("move", 1))
		act(ada, reins.RequestControl{})
		act(agent, open) // refused, and of no interest
		pass(2 * time.Second)
		var did []string
		for _, x := range a.is().state.Activities {
			did = append(did, strings.TrimSpace(fmt.Sprint(x.Actor, " ", x.Verb, " ", x.URL, " ", x.Detail, " ", x.Outcome)))
			if x.Started.IsZero() || x.Ended.Before(x.Started) {
				t.Errorf("times of %+v", x)
			}
		}
		want := []string{"start   completed", "agent type   completed", "agent navigate https://example.com/a  completed", "ada request_control   completed", "ada pointer  move 1 completed"}
		if !slices.Equal(did, want) {
			t.Errorf("activities %q", did)
		}
		if c := a.is().state.Control; c.State != reins.ControlHuman || !c.Mine || a.is().state.Operation != nil {
			t.Errorf("in control is %+v", c)
		}
		if p := a.is().state.Participants; len(p) != 2 || !p[0].Mine || !p[0].Watching || p[1].Role != reins.RoleAgent || p[1].Watching {
			t.Errorf("here are %+v", p)
		}
		for range 300 {
			act(ada, reins.Snapshot{})
		}
		pass(time.Second)
		if n := len(a.is().state.Activities); n != reins.MaxActivities {
			t.Errorf("%d activities are kept", n)
		}
		link.tell("dialog", reins.Tab{ID: "t1"})
		pass(time.Second)
		if a.is().state.Dialog == nil {
			t.Error("a dialog is not told")
		}
	})
}

// TestSlowViewersHoardNothing is B088: beside viewers that take nothing, and one that
// takes and never acknowledges, a fast one gets all; nothing is kept for the others
// but the newest picture, which they get when they come back.
func TestSlowViewersHoardNothing(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		fast := watch(t, w.lease(t, personOf(key1)), reins.SubscribeOptions{}, 0)
		mute := watch(t, w.lease(t, bob()), reins.SubscribeOptions{Window: 32}, -1)
		var stalled []reins.Subscription
		for i := range 10 {
			b := bob()
			b.Actor = fmt.Sprint("stalled", i)
			sub, err := w.lease(t, b).Subscribe(ctx0, reins.SubscribeOptions{Window: 32})
			if err != nil {
				t.Fatal(err)
			}
			stalled = append(stalled, sub)
		}
		const many, size = 100, 1 << 20
		before, last := heap(), ""
		for i := range many {
			last = fmt.Sprint(i)
			link.paint(last + strings.Repeat("x", size))
			pass(30 * time.Millisecond)
			fast.forget()
			mute.forget()
		}
		if grown := heap() - before; grown > 20*size {
			t.Errorf("%d MiB of pictures left %d MiB behind", many*size>>20, grown>>20)
		}
		if all, some := len(fast.is().ids), len(mute.is().ids); all < many || some > many/4 {
			t.Errorf("the fast one got %d of %d, who never acknowledges %d", all, many, some)
		}
		for _, sub := range stalled {
			u, err := sub.Next(ctx0)
			if err != nil || u.Frame == nil || !strings.HasPrefix(string(u.Frame.JPEG), last+"x") {
				t.Errorf("who comes back gets %+v, %v", u.Frame.ID, err)
			}
		}
	})
}

// forget drops the pictures that were seen.
func (w *watcher) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.all.seen)
}
