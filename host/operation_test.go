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

// TestVerbs is CAP-7: only the registration's verbs for agents, at the fence;
// stored bytes of their own always; people may use all.
func TestVerbs(t *testing.T) {
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Verbs: []reins.Verb{reins.VerbNavigate, reins.VerbListTabs}}}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		for _, c := range []struct {
			l    *lease
			a    reins.Action
			want reins.Code
		}{
			{agent, open, ""},
			{agent, reins.ListTabs{}, ""},
			{agent, reins.Snapshot{}, reins.CodeDenied},
			{agent, reins.OpenTab{}, reins.CodeDenied},
			{agent, reins.ListArtifacts{}, ""},
			{person, reins.Snapshot{}, ""},
			{person, reins.OpenTab{}, ""},
			{agent, reins.Click{}, reins.CodeInvalidInput},
			{agent, nil, reins.CodeInvalidInput},
			{agent, (*reins.Navigate)(nil), reins.CodeInvalidInput},
		} {
			if _, err := c.l.Do(ctx0, reins.Call{Action: c.a}); reins.CodeOf(err) != c.want {
				t.Errorf("%v: %v, want %q", c.a, err, c.want)
			}
		}
	})
}

// TestQueueBoundAndProgress is OPS-2 and OPS-4.
func TestQueueBoundAndProgress(t *testing.T) {
	bubble(t, bubbleOptions{limits: reins.Limits{Queue: 2}}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("cell", slow)
		w.set("do", slow)
		var told []reins.Progress
		first := start(agent, reins.Call{Action: open, Progress: func(p reins.Progress) { told = append(told, p) }})
		var queued []reins.Progress
		start(agent, reins.Call{Action: open})
		last := start(agent, reins.Call{Action: open, Progress: func(p reins.Progress) { queued = append(queued, p) }})
		_, err := agent.Do(ctx0, reins.Call{Action: open})
		code(t, err, reins.CodeQuotaExceeded)
		others := start(person, reins.Call{Action: open})
		for _, done := range []<-chan error{first, last, others} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if want := []reins.Progress{{Stage: "browser"}, {Stage: "running"}}; !slices.Equal(told, want) {
			t.Errorf("the first was told %v", told)
		}
		// The second ends as soon as it begins: the last may not see position 1.
		if n := len(queued); n < 2 || queued[0] != (reins.Progress{Stage: "queue", Position: 2}) || queued[n-1].Stage != "running" {
			t.Errorf("the last was told %v", queued)
		}
	})
}

// TestIdempotency is OPS-5.
func TestIdempotency(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent := w.lease(t, agentOf(key1, 1))
		w.set("do", slow)
		first := start(agent, reins.Call{Action: open, Key: "k"})
		second := start(agent, reins.Call{Action: open, Key: "k"})
		_, err := agent.Do(ctx0, reins.Call{Action: reins.Navigate{URL: "https://else.example"}, Key: "k"})
		code(t, err, reins.CodeConflict)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Fatal(err)
		}
		one, _ := agent.Do(ctx0, reins.Call{Action: open, Key: "k"})
		if len(w.acted) != 1 || one == nil || one.Meta.Operation == "" {
			t.Errorf("it acted %d times", len(w.acted))
		}
		w.set("do", slow) // something to wait behind
		start(agent, reins.Call{Action: open})
		leaves, leave := context.WithCancel(ctx0)
		left := make(chan error, 1)
		go func() {
			_, err := agent.Do(leaves, reins.Call{Action: open, Key: "shared"})
			left <- err
		}()
		synctest.Wait()
		stays := start(agent, reins.Call{Action: open, Key: "shared"})
		leave()
		code(t, <-left, reins.CodeCancelled)
		if err := <-stays; err != nil {
			t.Errorf("a caller that stayed shared the fate of one that left: %v", err)
		}
		cancelled, cancel := context.WithCancel(ctx0)
		cancel()
		_, err = agent.Do(cancelled, reins.Call{Action: open, Key: "never"})
		code(t, err, reins.CodeCancelled)
		if _, err := agent.Do(ctx0, reins.Call{Action: open, Key: "never"}); err != nil {
			t.Errorf("what never began cannot be asked again: %v", err)
		}
	})
}

// TestLadder is QUI-1 to QUI-3 and OPS-6: each rung ends what the one before
// could not, takes no longer than it may, and the operation settles only then.
func TestLadder(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     behaviour
		probe  behaviour
		took   time.Duration
		links  int // drivers that were started
		cells  int // browsers that were started, after one more operation
		perTab bool
	}{
		{"it stops by itself", hang, fine, 0, 1, 1, false},
		{"it answers late", late, fine, time.Second, 1, 1, false},
		{"the driver must go", stubborn, fine, 2 * time.Second, 2, 1, false},
		{"the browser must go", stubborn, unanswered, 7 * time.Second, 3, 2, false},
		{"the page must go", stubborn, fine, 2 * time.Second, 1, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := reins.BrowserSpec{}
			if c.perTab {
				spec = reins.BrowserSpec{Scheduling: reins.PerTab}
			}
			bubble(t, bubbleOptions{spec: spec}, func(t *testing.T, w *world, r *resource) {
				agent := w.lease(t, agentOf(key1, 1))
				if c.perTab {
					w.closing = make(chan struct{})
				}
				w.set("do", c.do)
				call, cancel := context.WithCancel(ctx0)
				done := make(chan error, 1)
				go func() {
					_, err := agent.Do(call, reins.Call{Action: reins.Navigate{URL: "https://example.com/", Tab: "t1"}})
					done <- err
				}()
				synctest.Wait()
				w.set("probe", c.probe)
				began := time.Now()
				cancel()
				e := code(t, <-done, reins.CodeCancelled)
				if took := time.Since(began); took != c.took {
					t.Errorf("quiet after %s, want %s", took, c.took)
				}
				if e.Details["effect"] != "unknown" {
					t.Errorf("details %v do not say that the effect is unknown", e.Details)
				}
				if _, err := agent.Do(ctx0, reins.Call{Action: open}); err != nil {
					t.Fatal(err)
				}
				if len(w.links) != c.links || len(w.cells) != c.cells {
					t.Errorf("%d drivers and %d browsers, want %d and %d", len(w.links), len(w.cells), c.links, c.cells)
				}
			})
		})
	}
}

// TestReconnect is TAB-1 and TAB-2: a lost driver does not end the browser, the
// next operation connects anew and says so, and what belongs to the connection
// before is refused until it was seen again.
func TestReconnect(t *testing.T) {
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Verbs: reins.AgentVerbs()}}, func(t *testing.T, w *world, r *resource) {
		agent := w.lease(t, agentOf(key1, 1))
		if _, err := agent.Do(ctx0, reins.Call{Action: reins.Snapshot{}}); err != nil {
			t.Fatal(err)
		}
		w.set("do", dies)
		_, err := agent.Do(ctx0, reins.Call{Action: reins.Press{Key: "Enter"}})
		code(t, err, reins.CodeCompletionUnknown)
		for _, c := range []struct {
			a    reins.Action
			want reins.Code
		}{
			{reins.Press{Key: "Enter"}, reins.CodeObserveAgain},
			{reins.Type{Text: "x"}, reins.CodeObserveAgain},
			{reins.PressKey{Key: "Enter"}, reins.CodeObserveAgain},
			{reins.Click{Ref: "f1e1"}, reins.CodeStaleRef},
			{reins.Navigate{URL: "https://example.com", Tab: "t1"}, reins.CodeInvalidState},
		} {
			_, err := agent.Do(ctx0, reins.Call{Action: c.a})
			code(t, err, c.want)
		}
		res, err := agent.Do(ctx0, reins.Call{Action: reins.Snapshot{}})
		if err != nil || !res.Meta.Reconnected || res.Meta.Connection != 2 || res.Meta.Incarnation != 1 || len(res.Notes) == 0 {
			t.Fatalf("the first result after it: %+v (%v)", res, err)
		}
		if res, err := agent.Do(ctx0, reins.Call{Action: reins.Press{Key: "Enter"}}); err != nil || res.Meta.Reconnected {
			t.Errorf("after a snapshot: %+v (%v)", res, err)
		}
		if len(w.cells) != 1 {
			t.Error("the browser did not survive its driver")
		}
	})
}

// TestDriverKeepsFailing is DRV-6: three losses within a minute end the
// incarnation, three in more time do not.
func TestDriverKeepsFailing(t *testing.T) {
	for _, between := range []time.Duration{10 * time.Second, 40 * time.Second} {
		bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
			agent := w.lease(t, agentOf(key1, 1))
			for range 3 {
				w.set("do", dies)
				_, err := agent.Do(ctx0, reins.Call{Action: open})
				code(t, err, reins.CodeCompletionUnknown)
				time.Sleep(between)
			}
			if _, err := agent.Do(ctx0, reins.Call{Action: open}); err != nil {
				t.Fatal(err)
			}
			if survived := len(w.cells) == 1; survived != (between == 40*time.Second) {
				t.Errorf("three losses %s apart: %d browsers", between, len(w.cells))
			}
		})
	}
}

// TestBrowserThatAnswersNobody is DRV-6: a browser that leaves a new driver waiting
// for all of its time is ended, and whoever waits has the next one.
func TestBrowserThatAnswersNobody(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent := w.lease(t, agentOf(key1, 1))
		if _, err := agent.Do(ctx0, reins.Call{Action: open}); err != nil {
			t.Fatal(err)
		}
		w.anyLink().end(reins.Errorf(reins.CodeTransportFailure, "the browser has not said its version"))
		w.set("link", hang)
		began := time.Now()
		_, err := agent.Do(ctx0, reins.Call{Action: open})
		if e := code(t, err, reins.CodeBrowserEnded); !e.Retryable || time.Since(began) != backoff(1)+w.host.limits.ConnectTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		res, err := agent.Do(ctx0, reins.Call{Action: open})
		if err != nil || res.Meta.Incarnation != 2 || w.cells[0].alive() {
			t.Errorf("the next one: %+v, %v", res, err)
		}
	})
}

// TestPerTabOverlaps is SCH-2 at the host: named tabs act at the same time, one
// tab's operations in turn, and a ref is followed to its tab (SCH-4).
func TestPerTabOverlaps(t *testing.T) {
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Scheduling: reins.PerTab, Verbs: reins.AgentVerbs()}}, func(t *testing.T, w *world, r *resource) {
		w.perTab = true
		agent := w.lease(t, agentOf(key1, 1))
		if _, err := agent.Do(ctx0, reins.Call{Action: reins.Snapshot{Tab: "t1"}}); err != nil {
			t.Fatal(err)
		}
		w.set("do", hang)
		one, cancel := context.WithCancel(ctx0)
		stuck := make(chan error, 1)
		go func() {
			_, err := agent.Do(one, reins.Call{Action: reins.Navigate{URL: "https://one.example", Tab: "t1"}})
			stuck <- err
		}()
		synctest.Wait()
		byRef := start(agent, reins.Call{Action: reins.Click{Ref: "f1e1"}})
		if err := <-start(agent, reins.Call{Action: reins.Navigate{URL: "https://two.example", Tab: "t2"}}); err != nil {
			t.Errorf("another tab waited: %v", err)
		}
		if err := <-start(agent, reins.Call{Action: reins.ListTabs{}}); err != nil {
			t.Errorf("the context waited: %v", err)
		}
		pending(t, byRef)
		cancel()
		code(t, <-stuck, reins.CodeCancelled)
		if err := <-byRef; err != nil {
			t.Error(err)
		}
	})
}

// TestDeadline is OPS-7: what hangs ends by itself, with the browser quiet.
func TestDeadline(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent := w.lease(t, agentOf(key1, 1))
		w.set("do", hang)
		began := time.Now()
		_, err := agent.Do(ctx0, reins.Call{Action: reins.Navigate{URL: "https://example.com", Timeout: reins.Duration(time.Second)}})
		if e := code(t, err, reins.CodeTimeout); e.Phase != reins.PhaseAction || time.Since(began) != 21*time.Second {
			t.Errorf("%v in phase %s after %s", e, e.Phase, time.Since(began))
		}
	})
}

// TestLimitIsAboveOwnBounds: every verb has a deadline, above the bounds that
// the driver keeps (OPS-7), and a tab can be named for every one that has any.
func TestLimitIsAboveOwnBounds(t *testing.T) {
	long := reins.Duration(time.Minute)
	waits := reins.Waits{Actionable: &long, Settle: &long}
	for _, c := range []struct {
		a    reins.Action
		want time.Duration
	}{
		{reins.Navigate{}, 50 * time.Second},
		{reins.Navigate{Timeout: reins.Duration(5 * time.Minute)}, 5*time.Minute + 20*time.Second},
		{reins.OpenTab{Timeout: long}, 80 * time.Second},
		{reins.WaitFor{Timeout: reins.Duration(2 * time.Minute)}, 140 * time.Second},
		{reins.Click{}, 30 * time.Second},
		{reins.Click{Waits: waits}, 140 * time.Second},
		{reins.Type{Text: strings.Repeat("x", 1000)}, 40 * time.Second},
		{reins.Fill{Value: reins.TextValue(strings.Repeat("x", reins.MaxFill))}, 10*time.Minute + 30*time.Second},
		{reins.Snapshot{}, time.Minute},
		{reins.ListTabs{}, time.Minute},
	} {
		if got := (&operation{action: c.a}).limit(); got != c.want {
			t.Errorf("%s may take %s, want %s", c.a.Verb(), got, c.want)
		}
	}
	for _, v := range reins.AgentVerbs() {
		a, err := reins.DecodeAction([]byte(minimal(v)))
		if err != nil {
			t.Fatal(err)
		}
		if v == reins.VerbListTabs || v == reins.VerbOpenTab || v == reins.VerbRequestHuman {
			continue // of the whole browser, or of nothing in it
		}
		if tab, ref := onTab(a, "t7").Target(); tab != "t7" {
			t.Errorf("%s was put on tab %q, ref %q", v, tab, ref)
		}
	}
}

// minimal is the shortest valid form of a verb.
func minimal(v reins.Verb) string {
	more := map[reins.Verb]string{
		reins.VerbNavigate: `,"url":"https://example.com"`, reins.VerbClick: `,"ref":"f1e1"`,
		reins.VerbFill: `,"ref":"f1e1","value":"x"`, reins.VerbPress: `,"key":"Enter"`,
		reins.VerbSelectTab: `,"tab":"t1"`, reins.VerbType: `,"text":"x"`, reins.VerbPressKey: `,"key":"Enter"`,
		reins.VerbHover: `,"ref":"f1e1"`, reins.VerbDrag: `,"ref":"f1e1","to":"f1e2"`,
		reins.VerbScroll: `,"to":"top"`, reins.VerbWaitFor: `,"text":"x"`,
		reins.VerbRequestHuman: `,"reason":"x"`,
	}
	return `{"verb":"` + string(v) + `"` + more[v] + `}`
}

// TestForceGoesPast is OPS-7: closing a tab with force does not wait behind
// what is stuck on it.
func TestForceGoesPast(t *testing.T) {
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Verbs: reins.AgentVerbs()}}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.closing = make(chan struct{})
		w.set("do", stubborn)
		stuck := start(agent, reins.Call{Action: open})
		polite := start(person, reins.Call{Action: reins.CloseTab{}})
		pending(t, polite)
		if _, err := person.Do(ctx0, reins.Call{Action: reins.CloseTab{Force: true}}); err != nil {
			t.Fatal(err)
		}
		code(t, <-stuck, reins.CodeInvalidState)
		if err := <-polite; err != nil {
			t.Error(err)
		}
	})
}

// TestAttachEndsTheBrowser is ATT-5: an operation that nothing can make quiet
// costs exactly the incarnation, before Attach returns.
func TestAttachEndsTheBrowser(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("do", stubborn)
		stuck := start(agent, reins.Call{Action: open})
		w.set("probe", unanswered)
		began := time.Now()
		if err := r.Attach(ctx0, attached(2)); err != nil {
			t.Fatal(err)
		}
		if took, limit := time.Since(began), rungCancel+rungClose+rungKill+rungProbe; took > limit {
			t.Errorf("attached after %s, above %s", took, limit)
		}
		code(t, <-stuck, reins.CodeLeaseEnded)
		if w.cells[0].alive() {
			t.Error("the browser that does not become quiet lives")
		}
		if _, err := person.Do(ctx0, reins.Call{Action: open}); err != nil || len(w.cells) != 2 {
			t.Errorf("a person afterwards: %v, %d browsers", err, len(w.cells))
		}
	})
}

// TestPanickingCaller: a Progress function that panics costs its own call only,
// whether it waited or was about to act; the lane is free again.
func TestPanickingCaller(t *testing.T) {
	for _, stage := range []string{"queue", "running"} {
		bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
			agent := w.lease(t, agentOf(key1, 1))
			w.set("do", slow)
			first := start(agent, reins.Call{Action: open})
			panicked := make(chan any, 1)
			go func() {
				defer func() { panicked <- recover() }()
				_, _ = agent.Do(ctx0, reins.Call{Action: open, Key: "k", Progress: func(p reins.Progress) {
					if p.Stage == stage {
						panic("progress")
					}
				}})
			}()
			if p := <-panicked; p != "progress" {
				t.Errorf("%s: recovered %v", stage, p)
			}
			if err := <-first; err != nil {
				t.Error(err)
			}
			if _, err := agent.Do(ctx0, reins.Call{Action: open, Key: "k"}); err != nil {
				t.Error(err)
			}
		})
	}
}
