package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// TestNewChecks is LIFE-0 and the limits: New does no I/O and refuses what
// cannot work, and Start says that Main is missing.
func TestNewChecks(t *testing.T) {
	fine := Options{Dir: "/nowhere/at/all", Hooks: reins.Hooks{Authorize: allow}, Backends: []cell.Backend{&world{}}}
	for name, change := range map[string]func(*Options){
		"no directory": func(o *Options) { o.Dir = "" },
		"relative":     func(o *Options) { o.Dir = "some/where" },
		"no hook":      func(o *Options) { o.Hooks.Authorize = nil },
		"no backend":   func(o *Options) { o.Backends = nil },
		"nil backend":  func(o *Options) { o.Backends = []cell.Backend{nil} },
		"twice":        func(o *Options) { o.Backends = []cell.Backend{&world{}, &world{}} },
		"bad limit":    func(o *Options) { o.Limits.Queue = 1 << 20 },
		"bad runtime":  func(o *Options) { o.RuntimeID = "a b" },
		"limits clash": func(o *Options) { o.Limits.CapabilityLife = 2 * time.Hour },
	} {
		o := fine
		change(&o)
		if _, err := New(o); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	h, err := New(fine)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.List(ctx0, "p")
	code(t, err, reins.CodeRuntimeStopped)
	if err := h.Stop(ctx0); err != nil {
		t.Errorf("stopping a host that never started: %v", err)
	}
	h.parts.ready = func() error { return reins.Errorf(reins.CodeInvalidInput, "host.Main was not called") }
	code(t, h.Start(ctx0), reins.CodeInvalidInput)
}

// unfitBackend cannot hold a browser.
type unfitBackend struct{ *world }

func (unfitBackend) Check(context.Context) []cell.Finding {
	return []cell.Finding{{Name: "fonts", Optional: true}, {Name: "root", Detail: "this is root", Remedy: "be somebody else"}}
}

// TestStartRefuses is CELL-10: a machine that cannot hold a browser is told at
// start what is missing and what to do.
func TestStartRefuses(t *testing.T) {
	h, err := New(Options{Dir: t.TempDir(), Hooks: reins.Hooks{Authorize: allow}, Backends: []cell.Backend{unfitBackend{&world{}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.parts.ready = func() error { return nil }
	if e := code(t, h.Start(ctx0), reins.CodeUnsafeHost); !strings.Contains(e.Message, "this is root; be somebody else") {
		t.Errorf("message %q", e.Message)
	}
}

// TestStartAndStopAlternate is LIFE-0 and LIFE-1: a stop ends leases and
// handles, and the next start is a new generation without them.
func TestStartAndStopAlternate(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.set("do", hang)
		running, queued := start(l, reins.Call{Action: open}), start(l, reins.Call{Action: open})
		code(t, w.host.Start(ctx0), reins.CodeBusy)
		events, err := w.host.Events(ctx0, "p")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.host.Stop(ctx0); err != nil {
			t.Fatal(err)
		}
		code(t, <-running, reins.CodeRuntimeStopped) // QUI-4
		code(t, <-queued, reins.CodeRuntimeStopped)
		_, err = l.Do(ctx0, reins.Call{Action: open})
		if c := reins.CodeOf(err); c != reins.CodeLeaseEnded && c != reins.CodeRuntimeStopped {
			t.Errorf("a later call: %v", err)
		}
		code(t, r.Start(ctx0), reins.CodeRuntimeStopped)
		last := reins.Event{}
		for e := range events { // closed with the generation
			last = e
		}
		if last.State != reins.StateDestroyed {
			t.Errorf("the last event is %+v", last)
		}
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if list, err := w.host.List(ctx0, "p"); err != nil || len(list) != 0 {
			t.Errorf("the new generation knows %v (%v)", list, err)
		}
	})
}

// TestFailedCleanUp is LIFE-2: what could not be ended is told, blocks a new
// generation, and is tried again by the next Stop.
func TestFailedCleanUp(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		w.set("close", undying)
		e := code(t, w.host.Stop(ctx0), reins.CodeFenced)
		if e.Phase != reins.PhaseCleanUp {
			t.Errorf("phase %s", e.Phase)
		}
		code(t, w.host.Start(ctx0), reins.CodeFenced)
		w.mu.Lock()
		w.closeErr = errors.New("the disk is full")
		w.mu.Unlock()
		if e := code(t, w.host.Stop(ctx0), reins.CodeFenced); !strings.Contains(e.Message, "the disk is full") {
			t.Errorf("message %q", e.Message)
		}
		w.mu.Lock()
		w.closeErr = nil
		w.mu.Unlock()
		if err := w.host.Stop(ctx0); err != nil {
			t.Fatal(err)
		}
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCleanUpIsTriedAgain is LIFE-2 without anybody who asks: what a browser left
// goes as soon as it can.
func TestCleanUpIsTriedAgain(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		w.set("room close", failBefore)
		code(t, r.Terminate(ctx0), reins.CodeTimeout)
		w.set("room close", failBefore)
		<-time.After(pause(1))
		synctest.Wait()
		if got := r.Readiness(); got.Overall != "failed" {
			t.Errorf("after the second failure: %+v", got)
		}
		<-time.After(pause(2))
		synctest.Wait()
		w.mu.Lock()
		rooms := w.rooms
		w.mu.Unlock()
		if got := r.Readiness(); got.Overall != "stopped" || rooms != 0 {
			t.Errorf("%d rooms are left; %+v", rooms, got)
		}
		if err := r.Start(ctx0); err != nil {
			t.Error(err)
		}
	})
}

// TestLostDirectory is OWN-7: authority is fenced first, then everything ends,
// and one clean-up is tried.
func TestLostDirectory(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.set("do", hang)
		running := start(l, reins.Call{Action: open})
		over := w.host.Done()
		close(w.lost)
		code(t, <-running, reins.CodeRuntimeStopped)
		<-over
		synctest.Wait()
		if l.IsCurrent(l.Authority()) || w.anyCell().alive() {
			t.Error("something outlived the directory")
		}
		code(t, r.Start(ctx0), reins.CodeRuntimeStopped)
	})
}

// TestStartIsShared is RES-7: one start however many wait, one outcome for all,
// and no storm of starts after a failure (B064).
func TestStartIsShared(t *testing.T) {
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Scheduling: reins.PerTab}}, func(t *testing.T, w *world, r *resource) {
		w.perTab = true
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		w.set("cell", hang)
		var waits []<-chan error
		for i := range 6 {
			l := []*lease{agent, person}[i%2]
			tab := reins.TabID(fmt.Sprint("t", i))
			waits = append(waits, start(l, reins.Call{Action: reins.Navigate{URL: "https://example.com", Tab: tab}}))
		}
		gone, cancel := context.WithCancel(ctx0)
		cancel()
		code(t, r.Start(gone), reins.CodeCancelled)
		began := time.Now()
		texts := map[string]bool{}
		for _, done := range waits {
			texts[code(t, <-done, reins.CodeStartupFailed).Message] = true
		}
		if d := time.Since(began); len(texts) != 1 || d != time.Minute {
			t.Errorf("outcomes %v after %s", texts, d)
		}
		synctest.Wait()
		if got := r.Readiness(); got.Overall != "failed" || got.Capabilities[reins.CapableBrowser].Cause == "" {
			t.Errorf("readiness %+v", got)
		}
		_, err := agent.Do(ctx0, reins.Call{Action: open})
		if e := code(t, err, reins.CodeStartupFailed); e.Details["retry_after_ms"] == nil {
			t.Errorf("an operation in the pause: %v", e.Details)
		}
		if r.st.count != 1 {
			t.Errorf("%d starts", r.st.count)
		}
		if err := r.Start(ctx0); err != nil { // an explicit one tries at once
			t.Fatal(err)
		}
		if got := r.Readiness(); got.Overall != "ready" || got.Facts["sandbox"] != "on" {
			t.Errorf("readiness %+v", got)
		}
	})
}

// TestStartFails: whatever part fails, before or after it took effect, the
// start is startup_failed or says more, nothing is left, and the next works.
func TestStartFails(t *testing.T) {
	for _, c := range []struct {
		part string
		how  behaviour
		want reins.Code
	}{
		{"room", failBefore, reins.CodeBusy},
		{"cell", failBefore, reins.CodeStartupFailed},
		{"cell", failAfter, reins.CodeUnsafeHost},
		{"cell", panics, reins.CodeStartupFailed},
		{"cell", dies, reins.CodeStartupFailed},
		{"link", failBefore, reins.CodeStartupFailed},
		{"link", hang, reins.CodeStartupFailed},
	} {
		t.Run(c.part+" "+string(c.how), func(t *testing.T) {
			bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
				w.set(c.part, c.how)
				code(t, r.Start(ctx0), c.want)
				synctest.Wait()
				if w.rooms != 0 || slices.ContainsFunc(w.cells, (*fakeCell).alive) {
					t.Error("a failed start left something")
				}
				if err := r.Start(ctx0); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestTerminate is RES-4, LSE-5 and QUI-4: it ends this incarnation and what
// uses it, leaves the lease, and the next operation starts the next one.
func TestTerminate(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		none := l.Authority()
		w.set("do", hang)
		running, queued := start(l, reins.Call{Action: open}), start(l, reins.Call{Action: open})
		mine := l.Authority()
		if none.Incarnation != 0 || mine.Incarnation != 1 || l.IsCurrent(none) || !l.IsCurrent(mine) {
			t.Errorf("authority %+v, then %+v", none, mine)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		code(t, <-running, reins.CodeBrowserEnded)
		code(t, <-queued, reins.CodeBrowserEnded)
		if l.IsCurrent(mine) || !l.IsCurrent(l.Authority()) {
			t.Error("the ended incarnation's authority is current, or the lease's is not")
		}
		if got := r.Readiness().Overall; got != "stopped" {
			t.Errorf("readiness %s", got)
		}
		res, err := l.Do(ctx0, reins.Call{Action: open})
		if err != nil || res.Meta.Incarnation != 2 || !res.Meta.Reconnected {
			t.Errorf("the next operation: %+v, %v", res, err)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		if err := r.Terminate(ctx0); err != nil {
			t.Errorf("without a browser: %v", err)
		}
		w.set("cell", hang) // during a start
		waiting := start(l, reins.Call{Action: open})
		if err := r.Terminate(ctx0); err != nil {
			t.Fatal(err)
		}
		code(t, <-waiting, reins.CodeBrowserEnded)
		if r.st.failures != 0 {
			t.Error("a terminated start counts as a failure")
		}
	})
}

// TestBrowserCrash is RES-8, TAB-5 and OPS-6: of what ran the outcome is unknown,
// what waited is told why, and the next operation starts anew.
func TestBrowserCrash(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		w.set("do", hang)
		running, queued := start(l, reins.Call{Action: open}), start(l, reins.Call{Action: open})
		w.anyCell().end(reins.Errorf(reins.CodeBrowserEnded, "the browser crashed: signal 11"))
		for done, want := range map[<-chan error]reins.Code{running: reins.CodeCompletionUnknown, queued: reins.CodeBrowserEnded} {
			if e := code(t, <-done, want); !strings.Contains(e.Message, "signal 11") {
				t.Errorf("message %q", e.Message)
			}
		}
		w.set("do", failAfter) // the browser dies under an action
		_, err := l.Do(ctx0, reins.Call{Action: open})
		code(t, err, reins.CodeCompletionUnknown)
		if res, err := l.Do(ctx0, reins.Call{Action: open}); err != nil || res.Meta.Incarnation != 3 {
			t.Errorf("after two crashes: %+v, %v", res, err)
		}
	})
}

// TestWaitFor is RDY-3, and Subscribe tells that there is no live view.
func TestWaitFor(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if got := r.Readiness(); got.Overall != "unknown" {
			t.Errorf("before anything: %+v", got)
		}
		_, err := r.WaitFor(ctx0, "wings")
		code(t, err, reins.CodeInvalidInput)
		_, err = r.WaitFor(ctx0, reins.CapableDesktop)
		code(t, err, reins.CodeNotReady)
		w.set("cell", slow)
		short, cancel := context.WithTimeout(ctx0, time.Millisecond)
		defer cancel()
		got, err := r.WaitFor(short, reins.CapableBrowser)
		code(t, err, reins.CodeReadinessTimeout)
		if got.Overall != "checking" {
			t.Errorf("during the start: %+v", got)
		}
		if got, err = r.WaitFor(ctx0); err != nil || got.Overall != "ready" || len(got.Capabilities) != 3 {
			t.Errorf("at last: %+v, %v", got, err)
		}
		w.anyLink().end(reins.Errorf(reins.CodeTransportFailure, "lost"))
		synctest.Wait()
		if got := r.Readiness(); got.Overall != "partial" || got.Capabilities[reins.CapableAutomation].Cause == "" {
			t.Errorf("without a driver: %+v", got)
		}
		// RDY-2: a driver that cannot be connected, while the browser lives on.
		w.set("link", failBefore)
		waited := make(chan error, 1)
		go func() {
			_, err := r.WaitFor(ctx0)
			waited <- err
		}()
		<-time.After(backoff(1))
		synctest.Wait() // the next try waits for its pause
		got = r.Readiness()
		if is := got.Capabilities[reins.CapableAutomation]; got.Overall != "degraded" || is.State != "failed" || is.Cause == "" || !strings.HasSuffix(is.Remedy, ".") ||
			got.Capabilities[reins.CapableRuntime].State != "ready" || got.Capabilities[reins.CapableBrowser].State != "unknown" {
			t.Errorf("with a driver that does not come: %+v", got)
		}
		if err := <-waited; err != nil { // RDY-3: a retry replaces the earlier failure
			t.Fatal(err)
		}
		if got := r.Readiness(); got.Overall != "ready" || got.Capabilities[reins.CapableAutomation].State != "ready" {
			t.Errorf("once it came: %+v", got)
		}
		_, err = w.lease(t, agentOf(key1, 1)).Subscribe(ctx0, reins.SubscribeOptions{})
		code(t, err, reins.CodeDenied)
		if err := r.Retire(ctx0); err != nil {
			t.Fatal(err)
		}
		if got := r.Readiness(); got.Overall != "destroyed" {
			t.Errorf("retired: %+v", got)
		}
	})
}

// TestSlowCleanUp is LIFE-2: Stop returns when the limit passes, the clean-up
// goes on, a later Stop joins it, and Start waits for it.
func TestSlowCleanUp(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		w.mu.Lock()
		w.slowClose = 40 * time.Second
		w.mu.Unlock()
		began := time.Now()
		code(t, w.host.Stop(ctx0), reins.CodeTimeout)
		if d := time.Since(began); d != 30*time.Second {
			t.Errorf("returned after %s", d)
		}
		joined := make(chan error, 1)
		go func() { joined <- w.host.Stop(ctx0) }()
		if err := w.host.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 40*time.Second {
			t.Errorf("started after %s, while the clean-up took 40s", d)
		}
		if err := <-joined; err != nil {
			t.Error(err)
		}
	})
}
