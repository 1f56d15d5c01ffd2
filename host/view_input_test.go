package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// inputs notes what raw input drivers are told, in short.
func inputs(w *world) func() []string {
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
				seen = append(seen, fmt.Sprintf("%s %g,%g %g/%d", a.Kind, a.X, a.Y, a.DY, a.Buttons))
			case reins.Touch:
				seen = append(seen, fmt.Sprintf("touch %s %d", a.Kind, len(a.Points)))
			case reins.Key:
				seen = append(seen, fmt.Sprintf("key %s %s %v", a.Kind, a.Key, a.Modifiers))
			case reins.InsertText:
				seen = append(seen, fmt.Sprintf("text %q %v", a.Text, a.Compose))
			case reins.Navigate, reins.OpenTab, reins.Clipboard:
				seen = append(seen, string(a.Verb()))
			}
		}}, err
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := seen
		seen = nil
		return out
	}
}

func key(kind, k string) reins.Key {
	return reins.Key{Tab: "t1", Kind: kind, Key: k, Code: "Key" + k}
}

func touch(kind string, ids ...int) reins.Touch {
	t := reins.Touch{Tab: "t1", Kind: kind}
	for _, id := range ids {
		t.Points = append(t.Points, reins.TouchPoint{ID: id, X: 10, Y: 20})
	}
	return t
}

// TestEverythingHeldIsReleased is INP-2 and B084: keys, fingers and an unfinished
// composition of who leaves are let go, once nobody else holds them, and so they are
// before the page goes elsewhere and before the viewport changes.
func TestEverythingHeldIsReleased(t *testing.T) {
	press := []reins.Action{
		key("down", "Shift"), key("down", "a"), key("up", "a"), touch("start", 0, 1), touch("end", 1),
		reins.InsertText{Tab: "t1", Text: "に", Compose: true},
	}
	let := []string{`text "" true`, "key up Shift []", "touch cancel 0"}
	for name, c := range map[string]struct {
		end  func(w *world, ada, bob *lease) error
		want []string
	}{
		"they leave":  {func(_ *world, ada, _ *lease) error { return ada.Release(ctx0) }, let},
		"revoked":     {func(w *world, ada, _ *lease) error { return w.host.Revoke(ctx0, ada.grant.id) }, let},
		"navigation":  {func(_ *world, _, bob *lease) error { return act(bob, open) }, append(slices.Clone(let), "navigate")},
		"another tab": {func(_ *world, _, bob *lease) error { return act(bob, reins.OpenTab{}) }, append(slices.Clone(let), "open_tab")},
		"another viewport": {func(_ *world, _, bob *lease) error {
			if _, err := bob.Subscribe(ctx0, reins.SubscribeOptions{}); err != nil {
				return err
			}
			return act(bob, reins.SetViewport{Width: 500, Height: 500})
		}, let},
		"the page takes another tab": {func(w *world, _, _ *lease) error {
			w.anyLink().tell("tab_selected", reins.Tab{ID: "t2", Selected: true})
			synctest.Wait()
			return nil
		}, let},
		"somebody takes control": {func(_ *world, _, bob *lease) error { return act(bob, reins.RequestControl{}) }, let},
		"another holds the key too": {func(_ *world, ada, bob *lease) error {
			return errors.Join(act(bob, key("down", "Shift")), ada.Release(ctx0), bob.Release(ctx0))
		}, []string{"key down Shift []", `text "" true`, "touch cancel 0", "key up Shift []"}},
		"they let go": {func(_ *world, ada, _ *lease) error {
			return errors.Join(act(ada, key("up", "Shift")), act(ada, touch("end")), act(ada, reins.InsertText{Tab: "t1", Text: "に"}), ada.Release(ctx0))
		}, []string{"key up Shift []", "touch end 0", `text "に" false`}},
	} {
		bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
			seen := inputs(w)
			ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
			if err := act(ada, open); err != nil {
				t.Fatal(err)
			}
			for _, a := range press {
				if err := act(ada, a); err != nil {
					t.Fatalf("%s: %T: %v", name, a, err)
				}
			}
			seen()
			if err := c.end(w, ada, bob); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := seen(); !slices.Equal(got, c.want) {
				t.Errorf("%s: the driver was told %q, want %q", name, got, c.want)
			}
		})
	}
}

// TestInputIsForWhatIsSeen is INP-1: every kind of event for another tab is refused,
// and what has a place for another viewport too; what is refused is not held.
func TestInputIsForWhatIsSeen(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		ada := w.lease(t, personOf(key1))
		watch(t, ada, reins.SubscribeOptions{}, 0)
		if err := errors.Join(act(ada, open), act(ada, reins.SetViewport{Width: 500, Height: 400})); err != nil {
			t.Fatal(err)
		}
		for _, a := range []reins.Action{
			reins.Pointer{Tab: "t2", Kind: "down"}, reins.Touch{Tab: "t2", Kind: "start", Points: []reins.TouchPoint{{}}},
			reins.Key{Tab: "t2", Kind: "down", Key: "a"}, reins.InsertText{Tab: "t2", Text: "a", Compose: true}, reins.Clipboard{Tab: "t2", Kind: "copy"},
			reins.Pointer{Tab: "t1", Viewport: 7, Kind: "down"}, reins.Touch{Tab: "t1", Viewport: 7, Kind: "start", Points: []reins.TouchPoint{{}}},
		} {
			code(t, act(ada, a), reins.CodeInvalidState)
		}
		if n := len(ada.input.held); n != 0 {
			t.Errorf("%d refused events count as held", n)
		}
		if err := act(ada, reins.Pointer{Tab: "t1", Viewport: 1, Kind: "move"}); err != nil {
			t.Error(err)
		}
		for i := range 100 { // a client that presses keys that there are not
			err := act(ada, reins.Key{Tab: "t1", Kind: "down", Key: fmt.Sprint("k", i)})
			if want := reins.Code(""); i < maxHeld && reins.CodeOf(err) != want || i >= maxHeld && reins.CodeOf(err) != reins.CodeQuotaExceeded {
				t.Fatalf("key %d: %v", i, err)
			}
		}
	})
}

// TestWheelAddsUp is OPS-3: turns of a wheel that wait become one of the same
// distance, moves of fingers the latest.
func TestWheelAddsUp(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		seen := inputs(w)
		ada := w.lease(t, personOf(key1))
		if err := act(ada, open); err != nil {
			t.Fatal(err)
		}
		w.set("do", slow)
		all := []<-chan error{start(ada, reins.Call{Action: open})}
		for i := range 100 {
			turn := point("wheel", float64(i))
			turn.DY = 10
			all = append(all, start(ada, reins.Call{Action: turn}))
		}
		zoom := point("wheel", 1)
		zoom.DY, zoom.Modifiers = 5, []string{"Control"}
		all = append(all, start(ada, reins.Call{Action: zoom}))
		for range 50 {
			all = append(all, start(ada, reins.Call{Action: touch("move", 1)}))
		}
		for _, d := range all {
			if err := <-d; err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"navigate", "navigate", "wheel 99,0 1000/0", "wheel 1,0 5/0", "touch move 1"}; !slices.Equal(seen(), want) {
			t.Errorf("the driver was not told %q", want)
		}
	})
}

// TestInputIsSummedUp is GATE-3 and GATE-4: one record for a participant and second,
// with counts, whatever it was; no key and no text in records or activities.
func TestInputIsSummedUp(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		ada := w.lease(t, personOf(key1))
		a := watch(t, ada, reins.SubscribeOptions{}, 0)
		if err := act(ada, open); err != nil {
			t.Fatal(err)
		}
		for _, e := range []reins.Action{
			point("move", 1), reins.Key{Tab: "t1", Kind: "down", Key: "ß", Text: "ß"}, reins.Key{Tab: "t1", Kind: "up", Key: "ß"},
			reins.InsertText{Tab: "t1", Text: "hunter2"}, reins.Clipboard{Tab: "t1", Kind: "paste", Text: "hunter2"},
		} {
			if err := act(ada, e); err != nil {
				t.Fatal(err)
			}
		}
		pass(2 * time.Second)
		if err := act(ada, key("down", "a")); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		var got []string
		for _, rec := range w.records {
			if rec.Class == reins.ClassRawInput {
				got = append(got, rec.Action+": "+rec.Detail)
			}
		}
		if want := []string{"input: key down 1, key up 1, move 1, paste 1, text 1", "key: key down 1"}; !slices.Equal(got, want) {
			t.Errorf("recorded %q", got)
		}
		told, _ := json.Marshal(a.is().state)
		recs, _ := json.Marshal(w.records)
		for _, secret := range []string{"hunter2", "ß"} {
			if strings.Contains(string(told)+string(recs), secret) {
				t.Errorf("%q is told", secret)
			}
		}
	})
}

// TestOthersInputUnderControl is CTL-3: while one person has control another's input
// of any kind is refused, and nothing of it is held.
func TestOthersInputUnderControl(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
		if err := errors.Join(act(ada, open), act(ada, reins.RequestControl{})); err != nil {
			t.Fatal(err)
		}
		for _, a := range []reins.Action{
			point("down", 1), touch("start", 1), key("down", "a"), reins.InsertText{Tab: "t1", Text: "a"}, reins.Clipboard{Tab: "t1", Kind: "paste", Text: "a"},
		} {
			code(t, act(bob, a), reins.CodeHumanControlled)
			if err := act(ada, a); err != nil {
				t.Errorf("the holder's %s: %v", a.Verb(), err)
			}
		}
		if watch(t, bob, reins.SubscribeOptions{}, 0).newest() == "" {
			t.Error("others cannot watch")
		}
	})
}

// TestViewport is VPT-1, VPT-2 and FRM-2: what changes nothing restarts nothing; a
// leaving viewer's wish goes with it, after a while when it may come back; a browser
// that starts and a driver that takes over have the size from the start.
func TestViewport(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
		size := func(l *lease, wide, high int) reins.Viewport {
			t.Helper()
			res, err := l.Do(ctx0, reins.Call{Action: reins.SetViewport{Width: wide, Height: high}})
			if err != nil {
				t.Fatal(err)
			}
			return *res.Viewport
		}
		if v := size(ada, 300, 300); v != reins.DefaultViewport() {
			t.Errorf("of who does not watch: %+v", v)
		}
		a, b := watch(t, ada, reins.SubscribeOptions{}, 0), watch(t, bob, reins.SubscribeOptions{}, 0)
		pass(time.Second)
		if v := a.is().state.Viewport; v != (reins.Viewport{Revision: 1, Width: 300, Height: 300, Scale: 1}) {
			t.Errorf("once she watches: %+v", v)
		}
		size(ada, 1000, 600)
		size(ada, 1000, 600)
		size(bob, 2000, 500)
		sizes(link)
		if v := size(bob, 1500, 500); v.Revision != 3 || sizes(link) != "" {
			t.Errorf("what changes nothing made revision %d", v.Revision)
		}
		_ = b.sub.Close()
		pass(returnTime / 2)
		b = watch(t, bob, reins.SubscribeOptions{}, 0) // a reload
		pass(2 * returnTime)
		if saw := sizes(link); saw != "" {
			t.Errorf("a reload changed the size: %s", saw)
		}
		_ = b.sub.Close()
		pass(2 * returnTime)
		if saw := sizes(link); saw != "port 4: 1000x600 at 1" {
			t.Errorf("after he left: %s", saw)
		}
		link.end(reins.Errorf(reins.CodeTransportFailure, "the driver ran out of memory"))
		pass(time.Second)
		if saw := sizes(w.anyLink()); !strings.HasPrefix(saw, "port 4: 1000x600 at 1") {
			t.Errorf("another driver was told: %s", saw)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		a = watch(t, ada, reins.SubscribeOptions{}, 0)
		if saw := sizes(filmed(t, w, r)); !strings.HasPrefix(saw, "port 4: 1000x600 at 1") {
			t.Errorf("the next browser was told: %s", saw)
		}
		if err := ada.Release(ctx0); err != nil {
			t.Fatal(err)
		}
		<-a.done
		pass(time.Second)
		if saw := sizes(w.anyLink()); !strings.Contains(saw, "port 5: 1280x800 at 1") {
			t.Errorf("with nobody left: %s", saw)
		}
	})
}

// sizes is what a driver was told of its viewport.
func sizes(l *fakeLink) string {
	var out []string
	for _, told := range strings.Split(l.saw(), "; ") {
		if strings.HasPrefix(told, "port") {
			out = append(out, told)
		}
	}
	return strings.Join(out, "; ")
}

// TestViewportInTurn is VPT-2 and GATE-1: a change of the viewport waits for what
// runs, and the gate is asked.
func TestViewportInTurn(t *testing.T) {
	for _, order := range []reins.Scheduling{reins.Serial, reins.PerTab} {
		var mu sync.Mutex
		asked := 0
		o := anyone
		o.spec.Scheduling = order
		o.hooks.BeforeOperation = func(_ context.Context, op reins.Operation) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Class == reins.ClassViewport {
				asked++
			}
			return nil
		}
		bubble(t, o, func(t *testing.T, w *world, r *resource) {
			w.perTab = order == reins.PerTab
			link := filmed(t, w, r)
			ada, agent := w.lease(t, personOf(key1)), w.lease(t, agentOf(key1, 1))
			watch(t, ada, reins.SubscribeOptions{}, 0)
			link.saw()
			w.set("do", slow)
			busy := start(agent, reins.Call{Action: reins.Navigate{Tab: "t1", URL: "https://example.com/1"}})
			sized := start(ada, reins.Call{Action: reins.SetViewport{Width: 500, Height: 500}})
			if saw := link.saw(); strings.Contains(saw, "port") {
				t.Errorf("%s: while an agent acts: %s", order, saw)
			}
			if err := errors.Join(<-busy, <-sized); err != nil {
				t.Fatal(err)
			}
			if saw := link.saw(); !strings.Contains(saw, "port 1: 500x500 at 1") || asked != 1 {
				t.Errorf("%s: then %s, asked %d times", order, saw, asked)
			}
			w.set("port", failBefore)
			code(t, act(ada, reins.SetViewport{Width: 600, Height: 600}), reins.CodeToolFailed)
			if err := act(ada, reins.SetViewport{Width: 600, Height: 600}); err != nil || sizes(link) != "port 2: 600x600 at 1" {
				t.Errorf("%s: after it failed: %v", order, err)
			}
		})
	}
}

// TestPictureOfTheViewport is INP-1 and FRM-2: a still page whose picture is from before
// a change of the viewport is looked at again until there is one of the new size.
func TestPictureOfTheViewport(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada := w.lease(t, personOf(key1))
		a := watch(t, ada, reins.SubscribeOptions{}, 0)
		pass(time.Second)
		link.saw()
		w.set("capture", unanswered) // the first look fails
		if err := act(ada, reins.SetViewport{Width: 500, Height: 400}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		r.mu.Lock()
		v := r.st.view.stream.Last().Viewport
		r.mu.Unlock()
		if v != 1 || a.newest() != "sharp" || link.saw() != "port 1: 500x400 at 1; capture t1" {
			t.Errorf("the picture is of revision %d", v)
		}
		pass(time.Minute)
		if saw := link.saw(); saw != "" {
			t.Errorf("then %s", saw)
		}
	})
}

// TestRefresh is FRM-8: every viewer gets the next generation; it waits for what the
// producer is owed; who has no view is busy; a caller that leaves keeps what was
// restored; what is broken ends the incarnation before the caller hears of it.
func TestRefresh(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		link := filmed(t, w, r)
		ada, bob := w.lease(t, personOf(key1)), w.lease(t, bob())
		code(t, act(ada, reins.Refresh{}), reins.CodeBusy)
		a, b := watch(t, ada, reins.SubscribeOptions{}, 0), watch(t, bob, reins.SubscribeOptions{}, 0)
		pass(time.Second)
		link.saw()
		generation := func() uint64 { ids := b.is().ids; return ids[len(ids)-1].Stream }
		before := generation()
		w.set("ack", slow)
		link.paint("moved")
		began := time.Now()
		if err := act(ada, reins.Refresh{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if took := time.Since(began); took < time.Second || generation() != before+1 || link.saw() != "cast t1" {
			t.Errorf("it took %s and came to generation %d after %d", took, generation(), before)
		}
		w.set("cast", slow)
		ctx, cancel := context.WithTimeout(ctx0, 100*time.Millisecond)
		_, err := ada.Do(ctx, reins.Call{Action: reins.Refresh{}})
		cancel()
		code(t, err, reins.CodeTimeout)
		pass(time.Minute)
		if generation() != before+2 || a.is().end != nil {
			t.Errorf("after its caller left: generation %d, %v", generation(), a.is().end)
		}
		w.mu.Lock()
		w.each = map[string]behaviour{"paint": hang, "capture": unanswered}
		w.mu.Unlock()
		code(t, act(ada, reins.Refresh{}), reins.CodeFrameStreamFailed) // a page that shows nothing
		if a.is().end != nil || len(b.is().errs) == 0 {
			t.Errorf("a busy page ended the view: %v, told %v", a.is().end, b.is().errs)
		}
		w.mu.Lock()
		w.each = map[string]behaviour{"cast": failBefore}
		w.mu.Unlock()
		code(t, act(ada, reins.Refresh{}), reins.CodeFrameStreamFailed)
		if r.info().State == reins.StateRunning {
			t.Error("what is broken runs on")
		}
		<-a.done
		<-b.done
		code(t, b.is().end, reins.CodeFrameStreamFailed)
		w.mu.Lock()
		w.each = nil
		w.mu.Unlock()
	})
}

// TestInspect is VIEW-6: people look into the cell, agents do not; it starts nothing,
// is bounded, and says so when it cannot.
func TestInspect(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		ada, agent := w.lease(t, personOf(key1)), w.lease(t, agentOf(key1, 1))
		code(t, act(agent, reins.Inspect{}), reins.CodeDenied)
		look := func() reins.Inspection {
			t.Helper()
			res, err := ada.Do(ctx0, reins.Call{Action: reins.Inspect{}})
			if err != nil {
				t.Fatal(err)
			}
			return *res.Inspection
		}
		if is := look(); is.Incarnation != 0 || is.Processes == nil || r.info().State != reins.StateStopped {
			t.Errorf("without a browser: %+v", is)
		}
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		folder := r.st.inc.room.Downloads().Name()
		if err := errors.Join(os.WriteFile(folder+"/a.txt", []byte("12345"), 0o600), os.Symlink("/etc/passwd", folder+"/b")); err != nil {
			t.Fatal(err)
		}
		is := look()
		if is.Incarnation != 1 || len(is.Processes) != reins.MaxInspected || is.Left != 1000-reins.MaxInspected {
			t.Errorf("%d processes, %d left", len(is.Processes), is.Left)
		}
		if len(is.Connections) != 1 || is.Connections[0].Host != "example.com" || len(is.Files) != 1 || is.Files[0].Name != "a.txt" || is.Files[0].Size != 5 {
			t.Errorf("%+v, %+v", is.Connections, is.Files)
		}
		w.set("processes", failBefore)
		code(t, act(ada, reins.Inspect{}), reins.CodeToolFailed)
	})
}
