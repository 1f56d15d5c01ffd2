package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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

// TestRegister is RES-1, RES-2 and RES-6.
func TestRegister(t *testing.T) {
	bubble(t, bubbleOptions{limits: reins.Limits{Resources: 4}}, func(t *testing.T, w *world, r *resource) {
		same := reins.Registration{Key: key1, Attachment: attached(1)}
		got, err := w.host.Register(ctx0, same)
		if err != nil || got.Created.IsZero() || got.Spec.Engine != reins.EngineFull {
			t.Fatalf("again: %+v, %v", got, err)
		}
		other := same
		other.Spec.Engine = reins.EngineShell
		_, err = w.host.Register(ctx0, other)
		code(t, err, reins.CodeConflict)
		other = same
		other.Attachment.Revision = 2
		_, err = w.host.Register(ctx0, other)
		code(t, err, reins.CodeConflict)
		for _, bad := range []reins.Registration{
			{Key: reins.ResourceKey{Project: "a b", ID: "x"}},
			{Key: reins.ResourceKey{Project: "p", ID: strings.Repeat("x", 129)}},
			{Key: reins.ResourceKey{Project: "p", ID: "x"}, Spec: reins.BrowserSpec{Backend: reins.BackendDocker}},
			{Key: reins.ResourceKey{Project: "p", ID: "x"}, Spec: reins.BrowserSpec{Egress: reins.EgressPolicy{AllowPrivate: []string{"%%%"}}}},
			{Key: reins.ResourceKey{Project: "p", ID: "res_aaaaaaaaaaaaaaaaaaaaaaaaaa"}},
		} {
			_, err := w.host.Register(ctx0, bad)
			code(t, err, reins.CodeInvalidInput)
		}
		made, err := w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "p"}})
		if err != nil || made.Key.ID == "" {
			t.Fatalf("without an ID: %+v, %v", made, err)
		}
		if len(w.cells) != 0 {
			t.Error("registering started a browser")
		}
		retire := func(key reins.ResourceKey) {
			h, err := w.host.Open(ctx0, key)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(h.Retire(ctx0), h.Retire(ctx0)); err != nil {
				t.Fatal(err)
			}
		}
		retire(made.Key) // leaves no tombstone
		_, err = w.host.Open(ctx0, made.Key)
		code(t, err, reins.CodeNotFound)
		for i := range 3 {
			key := reins.ResourceKey{Project: "p", ID: fmt.Sprint("n", i)}
			if _, err := w.host.Register(ctx0, reins.Registration{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "more"}})
		if e := code(t, err, reins.CodeQuotaExceeded); e.Recovery != reins.RecoverWait {
			t.Errorf("recovery %s", e.Recovery)
		}
		for i := range 3 {
			retire(reins.ResourceKey{Project: "p", ID: fmt.Sprint("n", i)})
		}
		retire(key1)
		_, err = w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "p"}})
		if e := code(t, err, reins.CodeQuotaExceeded); e.Recovery != reins.RecoverNone {
			t.Errorf("recovery %s when tombstones fill the bound", e.Recovery)
		}
		_, err = w.host.Register(ctx0, same)
		code(t, err, reins.CodeRetired)
		_, err = w.host.Open(ctx0, key1)
		code(t, err, reins.CodeRetired)
	})
}

// TestRetire is RES-5: fenced at once, quiet before it returns, and repeatable
// while a step fails.
func TestRetire(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		if _, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "a.txt"}, strings.NewReader("a")); err != nil {
			t.Fatal(err)
		}
		w.set("do", late)
		running := start(l, reins.Call{Action: open})
		w.set("room close", failBefore)
		if err := r.Retire(ctx0); err == nil {
			t.Fatal("a failed step was not told")
		}
		e := code(t, <-running, reins.CodeLeaseEnded)
		if e.Details["reason"] != reasonRevoked {
			t.Errorf("details %v", e.Details)
		}
		code(t, r.Start(ctx0), reins.CodeRetired)
		_, err := w.host.Issue(ctx0, personOf(key1), 0)
		code(t, err, reins.CodeRetired)
		_, err = w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "b.txt"}, strings.NewReader("b"))
		code(t, err, reins.CodeRetired)
		if err := r.Retire(ctx0); err != nil {
			t.Fatalf("the second try: %v", err)
		}
		<-r.done
		gen, _ := w.host.current()
		if n, bytes := gen.store.Usage(key1); n != 0 || bytes != 0 {
			t.Errorf("%d artifacts, %d bytes left", n, bytes)
		}
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

// TestArtifactsOfLeases is LSE-8: an agent sees what was made under its exact
// lease or marked for it, a person all of the resource.
func TestArtifactsOfLeases(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		one, two, person := w.lease(t, agentOf(key1, 1)), w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		put := func(lease string) string {
			a, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", MediaType: "text/plain", Name: "n.txt", LeaseID: lease}, strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			return a.ID
		}
		mine, nobodys := put(one.id), put("")
		list := func(l *lease) (out []string) {
			res, err := l.Do(ctx0, reins.Call{Action: reins.ListArtifacts{}})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range res.Artifacts {
				out = append(out, a.ID)
			}
			return out
		}
		if got := list(one); !slices.Equal(got, []string{mine}) {
			t.Errorf("the first agent sees %v", got)
		}
		if got := list(two); len(got) != 0 {
			t.Errorf("the second agent sees %v", got)
		}
		if got := list(person); len(got) != 2 {
			t.Errorf("the person sees %v", got)
		}
		res, err := one.Do(ctx0, reins.Call{Action: reins.ReadArtifact{Artifact: mine, Offset: 1, Length: 3}})
		if err != nil || string(res.Data) != "ell" || res.Meta.LeaseID != one.id {
			t.Errorf("read %+v, %v", res, err)
		}
		for _, id := range []string{nobodys, "art_none"} {
			_, err = one.Do(ctx0, reins.Call{Action: reins.ReadArtifact{Artifact: id}})
			code(t, err, reins.CodeNotFound)
			_, err = one.Do(ctx0, reins.Call{Action: reins.DeleteArtifact{Artifact: id}})
			code(t, err, reins.CodeNotFound)
		}
		if _, err := one.Do(ctx0, reins.Call{Action: reins.DeleteArtifact{Artifact: mine}}); err != nil {
			t.Error(err)
		}
		if len(w.cells) != 0 {
			t.Error("reading stored bytes started a browser")
		}
	})
}

// TestUploadsStayInside is ACT-3: a file is put where the browser reads it,
// under a name that is no path, whole or not at all.
func TestUploadsStayInside(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"plain.txt", "safe name.txt"} {
		if err := copyUpload(filepath.Join(dir, fmt.Sprint(i)), name, strings.NewReader("body")); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyUpload(filepath.Join(dir, "torn"), "x", &torn{}); err == nil {
		t.Error("a torn copy was not told")
	}
	var files []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if want := []string{"/0/plain.txt", "/1/safe name.txt"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v (%v)", files, err)
	}
}

type torn struct{ n int }

func (r *torn) Read(p []byte) (int, error) {
	if r.n++; r.n > 1 {
		return 0, errors.New("torn")
	}
	return len(p), nil
}

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
		_, err = w.lease(t, personOf(key1)).Subscribe(ctx0, reins.SubscribeOptions{})
		if e := code(t, err, reins.CodeNotReady); e.Capability != "view" {
			t.Errorf("capability %q", e.Capability)
		}
		_, err = w.lease(t, agentOf(key1, 1)).Subscribe(ctx0, reins.SubscribeOptions{})
		code(t, err, reins.CodeDenied)
	})
}
