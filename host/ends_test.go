package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

// TestResultOfEndedLeaseIsDropped is LSE-6 and QUI-3: a result that comes at the
// moment at which authority ends is nobody's, also when nothing told the
// operation yet and also for a second caller of its key; that it may have had
// an effect is said.
func TestResultOfEndedLeaseIsDropped(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			c, err := w.host.Issue(ctx0, agentOf(key1, 1), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			l, err := w.host.Acquire(ctx0, c.Token, c.Binding)
			if err != nil {
				t.Fatal(err)
			}
			call := reins.Call{Action: []reins.Action{reins.Snapshot{}, open}[i%2], Key: "k"}
			w.set("do", slow) // it ends in the same instant as the lease
			first, second := start(l, call), start(l, call)
			e := code(t, <-first, reins.CodeLeaseEnded)
			if e.Details["reason"] != reasonExpired || (e.Details["effect"] == "unknown") != (i%2 == 1) {
				t.Fatalf("details %v", e.Details)
			}
			code(t, <-second, reins.CodeLeaseEnded)
		}
	})
}

// TestLateYesIsNo is CAP-2, HK-1 and LSE-3: what a hook says when it is not
// waited for any more is no, and one that nobody waits for is not called.
func TestLateYesIsNo(t *testing.T) {
	calls := 0
	hooks := reins.Hooks{Authorize: func(ctx context.Context, _ reins.Binding) error {
		if calls++; calls > 1 {
			<-ctx.Done()
		}
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		calls = 0
		l := w.lease(t, personOf(key1))
		before := l.Expires()
		_, err := l.Renew(ctx0)
		code(t, err, reins.CodeTimeout)
		synctest.Wait() // the call has returned
		gone, cancel := context.WithCancel(ctx0)
		cancel()
		for range 20 {
			_, err = l.Renew(gone)
			code(t, err, reins.CodeCancelled)
			_, err = w.host.Issue(gone, personOf(key1), 0)
			code(t, err, reins.CodeCancelled)
		}
		if !l.Expires().Equal(before) || calls != 2 {
			t.Errorf("expiry moved by %s, the hook was called %d times", l.Expires().Sub(before), calls)
		}
	})
}

// TestHookCallsAreBounded is LSE-3: calls of the hook that have not returned
// count until they do, over all leases, at most as many as capabilities.
func TestHookCallsAreBounded(t *testing.T) {
	release := make(chan struct{})
	var stuck box[bool]
	hooks := reins.Hooks{Authorize: func(context.Context, reins.Binding) error {
		if stuck.get() {
			<-release
		}
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks, limits: reins.Limits{Capabilities: 3}}, func(t *testing.T, w *world, r *resource) {
		release = make(chan struct{})
		l := w.lease(t, personOf(key1))
		stuck.set(true)
		for range 2 {
			_, err := w.host.Issue(ctx0, personOf(key1), 0)
			code(t, err, reins.CodeTimeout)
		}
		_, err := l.Renew(ctx0)
		code(t, err, reins.CodeTimeout)
		_, err = w.host.Issue(ctx0, personOf(key1), 0)
		if e := code(t, err, reins.CodeQuotaExceeded); e.Phase != reins.PhaseHook {
			t.Errorf("phase %s", e.Phase)
		}
		stuck.set(false)
		close(release)
		synctest.Wait()
		if _, err := l.Renew(ctx0); err != nil {
			t.Error(err)
		}
		w.lease(t, personOf(key1))
	})
}

// TestWhatIsShownIsACopy is CAP-1, CAP-7 and LSE-5: whatever a host or a caller
// does to what it was given, authority and registration stay as they were.
func TestWhatIsShownIsACopy(t *testing.T) {
	spoil := func(s *reins.Session) { s.Native = "evil" }
	hooks := reins.Hooks{Authorize: func(_ context.Context, b reins.Binding) error {
		spoil(b.Session)
		return nil
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		given := agentOf(key1, 1)
		own := *given.Session
		given.Session = &own
		c, err := w.host.Issue(ctx0, given, 0)
		if err != nil {
			t.Fatal(err)
		}
		spoil(c.Binding.Session)
		spoil(given.Session)
		l, err := w.host.Acquire(ctx0, c.Token, agentOf(key1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Renew(ctx0); err != nil {
			t.Fatal(err)
		}
		spoil(l.Authority().Binding.Session)
		attachment := attached(1)
		attachment.Session = &reins.Session{Harness: session.Harness, Native: session.Native}
		reg, err := w.host.Register(ctx0, reins.Registration{Key: key1, Attachment: attachment})
		if err != nil {
			t.Fatal(err)
		}
		list, err := w.host.List(ctx0, "p")
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []reins.Registration{reg, list[0].Registration} {
			spoil(shown.Attachment.Session)
			shown.Spec.Verbs[0] = reins.VerbOpenTab
		}
		if b := l.Authority().Binding; !b.Equal(agentOf(key1, 1)) {
			t.Errorf("the lease's binding is %+v", b)
		}
		list, _ = w.host.List(ctx0, "p")
		if got := list[0]; !got.Attachment.Equal(attached(1)) || slices.Contains(got.Spec.Verbs, reins.VerbOpenTab) {
			t.Errorf("registered: %+v", got.Registration)
		}
		_, err = l.Do(ctx0, reins.Call{Action: reins.OpenTab{}})
		code(t, err, reins.CodeDenied)
	})
}

// TestAttachWaitsForOlderChanges is ATT-3: a change that overtakes another one
// waits for the effects of both, and the new agent's authority for it.
func TestAttachWaitsForOlderChanges(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent := w.lease(t, agentOf(key1, 1))
		w.set("do", late) // quiet one second after it is told to stop
		running := start(agent, reins.Call{Action: open})
		began := time.Now()
		attach := func(revision uint64) <-chan error {
			done := make(chan error, 1)
			go func() { done <- r.Attach(ctx0, attached(revision)) }()
			synctest.Wait()
			return done
		}
		second, third := attach(2), attach(3)
		pending(t, second)
		pending(t, third)
		short, cancel := context.WithTimeout(ctx0, time.Millisecond)
		defer cancel()
		_, err := w.host.Issue(short, agentOf(key1, 3), 0)
		code(t, err, reins.CodeTimeout)
		_, err = w.host.Issue(ctx0, agentOf(key1, 2), 0) // waits, and is too old then
		code(t, err, reins.CodeStaleRevision)
		if d := time.Since(began); d != time.Second {
			t.Errorf("in effect after %s", d)
		}
		if err := errors.Join(<-second, <-third); err != nil {
			t.Error(err)
		}
		code(t, <-running, reins.CodeLeaseEnded)
		w.lease(t, agentOf(key1, 3))
	})
}

// TestAttachEndsABrowserThatStaysBusy is ATT-5: what cannot be made quiet ends
// with its incarnation, before the call returns; people keep their leases and
// their capabilities.
func TestAttachEndsABrowserThatStaysBusy(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		unused, err := w.host.Issue(ctx0, personOf(key1), 0)
		if err != nil {
			t.Fatal(err)
		}
		w.set("do", stubborn)
		running := start(agent, reins.Call{Action: open})
		w.set("probe", unanswered)
		if err := r.Attach(ctx0, attached(2)); err != nil {
			t.Fatal(err)
		}
		if w.cells[0].alive() {
			t.Error("the busy browser lives")
		}
		code(t, <-running, reins.CodeLeaseEnded)
		if res, err := person.Do(ctx0, reins.Call{Action: open}); err != nil || res.Meta.Incarnation != 2 {
			t.Errorf("the person goes on with %+v, %v", res, err)
		}
		if _, err := w.host.Acquire(ctx0, unused.Token, unused.Binding); err != nil {
			t.Errorf("a person's capability ended with the attachment: %v", err) // CAP-3, ATT-4
		}
	})
}

// TestDeparturesLeaveTheBrowser is RES-8, and LSE-5 for one that died: its
// authority is not current from the moment on at which the death is known.
func TestDeparturesLeaveTheBrowser(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		agent, person := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		if _, err := agent.Do(ctx0, reins.Call{Action: open}); err != nil {
			t.Fatal(err)
		}
		err := errors.Join(agent.Release(ctx0), person.Release(ctx0), r.Attach(ctx0, reins.Attachment{AuthorityID: "boss", Revision: 2}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if len(w.cells) != 1 || !w.cells[0].alive() || r.Readiness().Overall != "ready" {
			t.Errorf("after everybody left: %d browsers, %s", len(w.cells), r.Readiness().Overall)
		}
		last := w.lease(t, personOf(key1))
		mine := last.Authority()
		r.mu.Lock()
		inc := r.st.inc
		r.mu.Unlock()
		inc.die(reins.Errorf(reins.CodeBrowserEnded, "it died"))
		if mine.Incarnation != 1 || last.IsCurrent(mine) {
			t.Errorf("authority of incarnation %d is current after its death", mine.Incarnation)
		}
	})
}

// spy is a driver that shows what it was asked.
type spy struct {
	link
	seen func(driver.Command)
}

func (s spy) Do(ctx context.Context, c driver.Command) (*driver.Reply, error) {
	s.seen(c)
	return s.link.Do(ctx, c)
}

// TestPageCannotPlaceRefs is SCH-2, SCH-4 and OVW-7: what a page writes in names
// and values does not say in which tab the documents of others are, and an
// action on a ref goes to the driver as it was asked.
func TestPageCannotPlaceRefs(t *testing.T) {
	for outline, want := range map[string][]string{
		"- button \"Go\" [ref=f1e1]\n  - link \"a \\\" b\" [level=1] [ref=f2e9]:\n":       {"f1", "f2"},
		"+ button [disabled] [ref=f3e1]: on\n~ textbox \"x\" [ref=f4e2]\n- gone\n":        {"f3", "f4"},
		"- button \"[ref=f9e1]\" [ref=f1e1]\n":                                            {"f1"},
		"- button \"a \\\\\" [ref=f1e1]\n- button \"\\\" [ref=f9e1]\" [ref=f1e2]\n":       {"f1"},
		"- textbox [placeholder=\"[ref=f9e1]\"] [ref=f1e1]: [ref=f8e1]\n":                 {"f1"},
		"- text: see [ref=f9e1]\n- /url: http://x/[ref=f8e1]\n- option \"b\": [ref=f7e1]": nil,
		"- button [ref=f9": nil,
	} {
		if got := documents(outline); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", outline, got, want)
		}
	}
	bubble(t, bubbleOptions{spec: reins.BrowserSpec{Scheduling: reins.PerTab}}, func(t *testing.T, w *world, r *resource) {
		w.perTab = true
		var mu sync.Mutex
		var clicks []reins.TabID
		drive := w.host.parts.drive
		w.host.parts.drive = func(ctx context.Context, o driver.Options) (link, error) {
			l, err := drive(ctx, o)
			return spy{l, func(c driver.Command) {
				mu.Lock()
				defer mu.Unlock()
				if a, ok := c.Action.(reins.Click); ok {
					clicks = append(clicks, a.Tab)
				}
			}}, err
		}
		agent := w.lease(t, agentOf(key1, 1))
		for _, a := range []reins.Action{reins.Snapshot{Tab: "t2"}, reins.Click{Ref: "f1e1"}, reins.Click{Ref: "f1e1", Tab: "t2"}} {
			if _, err := agent.Do(ctx0, reins.Call{Action: a}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(clicks, []reins.TabID{"", "t2"}) {
			t.Errorf("the driver was told the tabs %q", clicks)
		}
	})
}

// TestNothingSecretIsTold is CAP-4, GATE-4 and LSE-7: tokens and typed text are
// in no log, error, record or event, whatever goes wrong; nor are paths of this
// machine in what a caller gets.
func TestNothingSecretIsTold(t *testing.T) {
	const typed = "hunter2-hunter2"
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		var log bytes.Buffer
		w.host.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		events, err := w.host.Events(ctx0, "p")
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.host.Issue(ctx0, agentOf(key1, 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.host.Acquire(ctx0, c.Token, c.Binding)
		if err != nil {
			t.Fatal(err)
		}
		w.host.log.Info("a capability", "it", c, "token", c.Token, "binding", c.Binding)
		var told []string
		fail := func(err error) {
			if err == nil {
				t.Error("it did not fail")
				return
			}
			told = append(told, fmt.Sprintf("%v %+v %v", err, reins.AsError(err), reins.AsError(err).Details))
		}
		fill := reins.Call{Action: reins.Fill{Ref: "f1e1", Value: reins.TextValue(typed)}, Key: "k"}
		for _, how := range []behaviour{failBefore, dies, failAfter} {
			w.set("do", how)
			fill.Key += "x"
			_, err := l.Do(ctx0, fill)
			fail(err)
		}
		w.set("cell", panics)
		_ = r.Terminate(ctx0)
		_, err = l.Do(ctx0, reins.Call{Action: open})
		fail(err)
		fail(w.host.Revoke(ctx0, string(c.Token)))
		_, err = w.host.Acquire(ctx0, c.Token, personOf(key1))
		fail(err)
		_, err = l.Do(ctx0, reins.Call{Action: reins.Type{Text: typed}})
		fail(err) // denied
		w.stop(t)
		for e := range events {
			told = append(told, fmt.Sprintf("%+v", e))
		}
		for _, rec := range w.records {
			told = append(told, fmt.Sprintf("%+v", rec))
		}
		all := strings.Join(append(told, log.String()), "\n")
		if len(told) < 12 || log.Len() == 0 {
			t.Errorf("only %d texts and %d bytes of log", len(told), log.Len())
		}
		for what, secret := range map[string]string{"the token": string(c.Token), "typed text": typed} {
			if strings.Contains(all, secret) {
				t.Errorf("%s is told in\n%s", what, all)
			}
		}
	})
}

// TestFailedUploadNamesNoPath: a failure of ours is told without the places of
// this machine; the log has them (10, internal).
func TestFailedUploadNamesNoPath(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		var log bytes.Buffer
		w.host.log = slog.New(slog.NewTextHandler(&log, nil))
		l := w.lease(t, agentOf(key1, 1))
		a, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "a.txt", LeaseID: l.id}, strings.NewReader("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Start(ctx0); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		uploads := r.st.inc.room.Uploads().Name()
		r.mu.Unlock()
		blockFolder(t, uploads, a.ID)
		_, err = l.Do(ctx0, reins.Call{Action: reins.Fill{Ref: "f1e1", Value: reins.Value{Artifacts: []string{a.ID}}}})
		if e := code(t, err, reins.CodeInternal); strings.Contains(e.Error(), w.dir) || e.Details["operation"] == nil {
			t.Errorf("%v, details %v", e, e.Details)
		}
		if !strings.Contains(log.String(), "operation failed") {
			t.Errorf("the log has %q", log.String())
		}
	})
}

// TestRefusalsReturnNothing: with an error comes no lease and no resource, also
// to who compares with nil.
func TestRefusalsReturnNothing(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		if res, err := w.host.Open(ctx0, reins.ResourceKey{Project: "p", ID: "none"}); err == nil || res != nil {
			t.Errorf("an unknown resource: %v, %v", res, err)
		}
		c, err := w.host.Issue(ctx0, personOf(key1), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		// Late timers do not let anybody in: the clock decides.
		g := func() *grant {
			gen, _ := w.host.current()
			gen.mu.Lock()
			defer gen.mu.Unlock()
			return gen.byID[c.ID]
		}()
		g.timer.Stop()
		time.Sleep(time.Second)
		if l, err := w.host.Acquire(ctx0, c.Token, c.Binding); reins.CodeOf(err) != reins.CodeUnauthorized || l != nil {
			t.Errorf("an expired capability: %v, %v", l, err)
		}
		if err := w.host.Revoke(ctx0, c.ID); err != nil {
			t.Error(err)
		}
	})
}

// TestPagesCannotPushOutRecords is HK-3: what a page causes does not fill the
// whole buffer of the audit trail.
func TestPagesCannotPushOutRecords(t *testing.T) {
	release := make(chan struct{})
	kinds := map[string]int{}
	hooks := reins.Hooks{Audit: func(rec reins.Record) {
		<-release
		kinds[rec.Action]++
	}}
	bubble(t, bubbleOptions{hooks: hooks}, func(t *testing.T, w *world, r *resource) {
		release = make(chan struct{})
		for range 2 * auditBuffer {
			r.passed(1, egress.Decision{Method: "GET", Host: "flood.example", Port: 443})
		}
		l := w.lease(t, agentOf(key1, 1))
		for range 20 {
			if _, err := l.Do(ctx0, reins.Call{Action: open}); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		synctest.Wait()
		if kinds["navigate"] != 20 || kinds["egress"] > pageBuffer+1 || w.host.Dropped() < auditBuffer {
			t.Errorf("told: %v, dropped %d", kinds, w.host.Dropped())
		}
	})
}

// TestEndedLeaseStartsNoBrowser is LSE-6 and RES-7: an operation whose authority
// ended after its gate does not even start the browser that it would have needed.
func TestEndedLeaseStartsNoBrowser(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		if err := l.Release(ctx0); err != nil {
			t.Fatal(err)
		}
		_, _, err := r.browser(ctx0, &operation{r: r, lease: l})
		code(t, err, reins.CodeLeaseEnded)
		if list, err := w.host.List(ctx0, "p"); err != nil || list[0].Incarnation != 0 || len(w.cells) != 0 {
			t.Errorf("%+v, %v: %d browsers were started", list, err, len(w.cells))
		}
	})
}
