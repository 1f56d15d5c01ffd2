package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

// hooks of a host that says no, hangs, panics, answers late, or ends the
// authority that it was asked about and says yes.
func (m *model) hooks() reins.Hooks {
	answer := func(ctx context.Context, kind, leaseID string) error {
		if m.world == nil {
			return nil
		}
		switch m.take(kind) {
		case failBefore:
			return os.ErrPermission
		case failAfter:
			for _, l := range m.leases {
				if l.id == leaseID {
					m.expect.end(l.grant.id, reasonReleased)
					go func() { _ = l.Release(context.Background()) }()
					<-l.done
				}
			}
		case hang:
			<-ctx.Done()
			return ctx.Err()
		case late:
			<-ctx.Done()
			time.Sleep(time.Minute)
		case panics:
			panic("hook")
		}
		return nil
	}
	return reins.Hooks{
		Authorize: func(ctx context.Context, b reins.Binding) error { return answer(ctx, "authorize", "") },
		BeforeOperation: func(ctx context.Context, op reins.Operation) error {
			m.mu.Lock()
			if op.Class != reins.ClassRawInput { // which is summed up
				m.gated = append(m.gated, op.ID)
			}
			m.mu.Unlock()
			return answer(ctx, "gate", op.Authority.LeaseID)
		},
		Audit: func(r reins.Record) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.records = append(m.records, r)
		},
	}
}

// call is one Do under way or over.
type call struct {
	url    string
	lease  *lease
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	times  int // how often it settled
}

// errLoud is what a caller's Progress panics with.
var errLoud = errors.New("too loud")

// model drives attachment × capability × lease × queue × incarnation over the
// fakes and remembers what must hold.
type model struct {
	*world
	r        *resource
	revision uint64
	caps     []reins.Capability
	leases   []*lease
	calls    []*call
	waits    []chan struct{} // life-cycle calls under way
	issued   int
	gated    []string // operations that came to the gate; guarded by mu
	expect   reference
	told     reins.Control // by the last event of that kind; guarded by mu
}

func (m *model) background(f func()) {
	done := make(chan struct{})
	m.waits = append(m.waits, done)
	go func() {
		defer close(done)
		f()
	}()
}

// do starts a call and returns once it has been admitted or refused, so that
// the order of admission is the order of the URLs.
func (m *model) do(l *lease, a reins.Action) { m.call(l, reins.Call{Action: a}) }

func (m *model) call(l *lease, asked reins.Call) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{lease: l, cancel: cancel, done: make(chan struct{})}
	if nav, ok := asked.Action.(reins.Navigate); ok {
		c.url = nav.URL
	}
	m.calls = append(m.calls, c)
	go func() {
		defer close(c.done)
		defer func() {
			c.times++
			if p := recover(); p != nil && p != errLoud {
				panic(p)
			}
		}()
		_, c.err = l.Do(ctx, asked)
	}()
	synctest.Wait()
}

// navigate does something whose place in the order can be seen: in serial order
// among all, in per-tab order among those that name the same tab.
func (m *model) navigate(t *rapid.T, l *lease) {
	m.issued++
	a := reins.Navigate{URL: fmt.Sprintf("https://example.com/%06d", m.issued)}
	if m.perTab {
		a.Tab = rapid.SampledFrom([]reins.TabID{"t1", "t2", "t3"}).Draw(t, "tab")
		a.URL = fmt.Sprintf("https://%s.example.com/%06d", a.Tab, m.issued)
	}
	m.do(l, a)
}

// issue asks for a capability; the host may say no.
func (m *model) issue(t *rapid.T, agent bool) (c reins.Capability, ok bool) {
	b := personOf(key1)
	if agent {
		b = agentOf(key1, m.revision)
	}
	life := time.Duration(rapid.IntRange(1, 120).Draw(t, "life")) * time.Second
	wait, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := m.host.Issue(wait, b, life)
	if err != nil {
		return c, false
	}
	m.caps = append(m.caps, c)
	m.expect.issued(c)
	return c, true
}

// acquire succeeds exactly when the reference says so (LSE-1).
func (m *model) acquire(t *rapid.T, c reins.Capability) {
	want := m.expect.live(c.ID)
	l, err := m.host.Acquire(context.Background(), c.Token, c.Binding)
	if (err == nil) != want {
		t.Fatalf("acquiring gave %v, want a lease: %v", err, want)
	}
	if err != nil {
		code(t, err, reins.CodeUnauthorized)
		return
	}
	m.leases = append(m.leases, toLease(l))
	m.expect.acquired(c.ID, toLease(l))
}

func (m *model) join(t *rapid.T, agent bool) {
	if c, ok := m.issue(t, agent); ok {
		m.acquire(t, c)
	}
}

// actions are the steps that rapid combines.
func (m *model) actions() map[string]func(*rapid.T) {
	ctx := context.Background()
	lease := func(t *rapid.T) *lease {
		if len(m.leases) == 0 {
			t.Skip()
		}
		newest := max(len(m.leases)-6, 0) // most of the older ones have ended
		return m.leases[rapid.IntRange(newest, len(m.leases)-1).Draw(t, "lease")]
	}
	steps := map[string]func(*rapid.T){
		"issue":       func(t *rapid.T) { m.issue(t, rapid.Bool().Draw(t, "agent")) },
		"agentJoins":  func(t *rapid.T) { m.join(t, true) },
		"personJoins": func(t *rapid.T) { m.join(t, false) },
		"acquire": func(t *rapid.T) {
			if len(m.caps) == 0 {
				t.Skip()
			}
			c := m.caps[rapid.IntRange(0, len(m.caps)-1).Draw(t, "cap")]
			m.acquire(t, c)
		},
		"do": func(t *rapid.T) {
			m.navigate(t, lease(t))
		},
		"doMany": func(t *rapid.T) {
			for range rapid.IntRange(2, 6).Draw(t, "n") {
				m.navigate(t, lease(t))
			}
		},
		"doElse": func(t *rapid.T) {
			m.do(lease(t), rapid.SampledFrom([]reins.Action{
				reins.Snapshot{}, reins.Click{Ref: "f1e1"}, reins.Press{Key: "Enter"}, reins.ListTabs{},
				reins.CloseTab{Tab: "t2"}, reins.CloseTab{}, reins.CloseTab{Tab: "t1", Force: true}, reins.ListArtifacts{},
			}).Draw(t, "action"))
		},
		"behave": func(t *rapid.T) {
			kind := rapid.SampledFrom([]string{"do", "do", "do", "gate", "gate", "authorize", "cell", "link", "close", "probe", "room", "room close"}).Draw(t, "kind")
			fits := map[string][]behaviour{
				"do":   {failBefore, failAfter, hang, late, stubborn, dies, slow},
				"cell": {failBefore, failAfter, hang, panics, slow, dies},
				"link": {failBefore, hang},
				"gate": {failBefore, failAfter, hang, late, panics}, "authorize": {failBefore, hang, late, panics},
				"close": {undying}, "probe": {unanswered}, "room": {failBefore}, "room close": {failBefore},
			}[kind]
			m.set(kind, rapid.SampledFrom(fits).Draw(t, "how"))
		},
		"cancel": func(t *rapid.T) {
			if len(m.calls) == 0 {
				t.Skip()
			}
			m.calls[rapid.IntRange(0, len(m.calls)-1).Draw(t, "call")].cancel()
		},
		"release": func(t *rapid.T) {
			l := lease(t)
			m.expect.released(l)
			m.background(func() { _ = l.Release(ctx) })
			synctest.Wait()
			if l.IsCurrent(l.Authority()) {
				t.Fatal("a released lease is current")
			}
		},
		"revoke": func(t *rapid.T) {
			if len(m.caps) == 0 {
				t.Skip()
			}
			id := m.caps[rapid.IntRange(0, len(m.caps)-1).Draw(t, "cap")].ID
			m.expect.end(id, reasonRevoked)
			m.background(func() { _ = m.host.Revoke(ctx, id) })
		},
		"renew": func(t *rapid.T) {
			l := lease(t)
			before := l.Expires()
			got, err := l.Renew(ctx)
			if err == nil && !got.Equal(l.Expires()) || err != nil && !before.Equal(l.Expires()) {
				t.Fatalf("renewal %v: %s before, %s told, %s now", err, before, got, l.Expires())
			}
			if err == nil {
				m.expect.renewed(t, l)
			}
		},
		"attach": func(t *rapid.T) {
			m.revision++
			m.expect.attached()
			a := attached(m.revision)
			m.background(func() { _ = m.r.Attach(ctx, a) })
			synctest.Wait()
			code(t, m.r.Attach(ctx, attached(m.revision-1)), reins.CodeStaleRevision)
		},
		"terminate": func(t *rapid.T) {
			m.r.mu.Lock()
			running := m.r.incarnationLocked() != 0
			m.r.mu.Unlock()
			m.background(func() { _ = m.r.Terminate(ctx) })
			synctest.Wait()
			m.r.mu.Lock()
			defer m.r.mu.Unlock()
			if is := m.r.controlLocked(""); running && is.Actor != "" {
				t.Fatalf("the browser ended, and control is %+v", is) // CTL-4
			}
		},
		"start":      func(t *rapid.T) { m.background(func() { _ = m.r.Start(ctx) }) },
		"crash":      func(t *rapid.T) { m.anyCell().end(reins.Errorf(reins.CodeBrowserEnded, "it crashed")) },
		"loseDriver": func(t *rapid.T) { m.anyLink().end(reins.Errorf(reins.CodeTransportFailure, "lost")) },
		"pass":       func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) },
		"passLonger": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(5, 90).Draw(t, "s")) * time.Second) },
		"":           func(t *rapid.T) { synctest.Wait(); m.check(t) },
	}
	maps.Copy(steps, m.controlActions(lease))
	return steps
}

// check is what holds at every rest.
func (m *model) check(t *rapid.T) {
	m.mu.Lock()
	wrong, acted := slices.Clone(m.wrong), slices.Clone(m.acted)
	alive := 0
	for _, c := range m.cells {
		if c.alive() {
			alive++
		}
	}
	m.mu.Unlock()
	if len(wrong) > 0 {
		t.Fatalf("violations: %v", wrong) // LSE-6, OPS-1
	}
	lanes := map[string][]string{}
	for _, url := range acted {
		lanes[url[:strings.LastIndexByte(url, '/')]] = append(lanes[url[:strings.LastIndexByte(url, '/')]], url)
	}
	for _, urls := range lanes {
		if !slices.IsSorted(urls) {
			t.Fatalf("operations overtook each other: %v", urls) // OPS-1, SCH-2
		}
	}
	slices.Sort(acted)
	if len(slices.Compact(slices.Clone(acted))) != len(acted) {
		t.Fatalf("an operation acted twice: %v", acted)
	}
	if alive > 1+m.host.spares {
		t.Fatalf("%d browsers are alive: one of the resource and %d spares are allowed", alive, m.host.spares) // RES-7, CELL-11
	}
	m.checkLeases(t)
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	m.checkControl(t)
	for l := range m.liveLeases() {
		if !time.Now().Before(l.grant.expires) {
			t.Fatal("an expired lease lives")
		}
		b := l.grant.binding
		if b.Role == reins.RoleAgent && b.Revision != m.r.st.attachment.Revision {
			t.Fatalf("an agent of revision %d lives at revision %d", b.Revision, m.r.st.attachment.Revision) // ATT-3
		}
	}
	for op := range m.r.st.ops {
		if op.lease.ended != nil && !op.begun {
			t.Fatal("an operation waits under an ended lease")
		}
	}
}

// liveLeases under the resource's lock.
func (m *model) liveLeases() map[*lease]bool {
	out := map[*lease]bool{}
	for _, g := range m.r.st.grants {
		if g.lease != nil {
			out[g.lease] = true
		}
	}
	return out
}

// finish ends everything and checks that nothing is left: every call settled
// once, one record for each that was admitted, all quotas at zero (GATE-3).
func (m *model) finish(t *rapid.T) {
	m.mu.Lock()
	clear(m.next)
	m.mu.Unlock()
	gen, err := m.host.current()
	if err != nil {
		t.Fatal(err)
	}
	m.retire(t)
	m.stop(t)
	for _, w := range m.waits {
		<-w
	}
	for _, c := range m.calls {
		<-c.done
		c.cancel()
		if c.times != 1 {
			t.Fatalf("a call settled %d times", c.times)
		}
		if c.err != nil && reins.AsError(c.err).Code == reins.CodeInternal {
			t.Fatalf("a call failed as internal: %v", reins.AsError(c.err).Cause)
		}
	}
	seen := map[string]int{}
	for _, rec := range m.records {
		if rec.Operation != "" {
			seen[rec.Operation]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Fatalf("operation %s has %d records", id, n)
		}
	}
	for _, id := range m.gated {
		if seen[id] != 1 {
			t.Fatalf("operation %s came to the gate and has %d records", id, seen[id]) // GATE-3
		}
	}
	time.Sleep(2 * time.Minute) // hooks that answer late have answered
	gen.mu.Lock()
	defer gen.mu.Unlock()
	if gen.reserved != 0 || gen.host.calls.open() != 0 || len(gen.byID) != 0 || len(gen.byToken) != 0 {
		t.Fatalf("left: %d capabilities, %d hooks, %d known", gen.reserved, gen.host.calls.open(), len(gen.byID))
	}
	if c := m.r.st.control; c.Running() != 0 || !c.Next().IsZero() || m.r.st.takeover.timer != nil || len(m.r.st.handoffs.Shown()) != 0 {
		t.Fatalf("left of control: %+v", m.r.controlLocked(""))
	}
	if len(m.r.st.owed) != 0 || m.r.st.releasing != nil {
		t.Fatalf("left down: %v", m.r.st.owed) // INP-2
	}
	waiting, running := m.r.st.queue.Waiting()
	if waiting != 0 || running != 0 || len(m.r.st.ops) != 0 || len(m.r.st.grants) != 0 || m.r.st.inc != nil {
		t.Fatalf("left: %d waiting, %d running, %d operations", waiting, running, len(m.r.st.ops))
	}
}

// TestModel runs random histories in virtual time. Goroutines that are left
// make the bubble fail.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(undated{t}, func(t *rapid.T) {
			work, err := os.MkdirTemp(dir, "case")
			if err != nil {
				t.Fatal(err)
			}
			m := &model{revision: 1, expect: reference{caps: map[string]*right{}}}
			m.world = newWorldOf(t, Options{
				Dir: work, Hooks: m.hooks(), Limits: reins.Limits{Queue: 4, CapabilitiesPerResource: 6, Capabilities: 8},
				Spares: rapid.IntRange(0, 2).Draw(t, "spares"),
			})
			// A case that fails ends here too, or its goroutines keep the bubble.
			t.Cleanup(func() { _ = m.host.Stop(context.Background()) })
			spec := reins.BrowserSpec{Verbs: reins.AgentVerbs()}
			if m.perTab = rapid.Bool().Draw(t, "per tab"); m.perTab {
				spec.Scheduling = reins.PerTab
			}
			m.r = m.register(t, spec)
			m.listen(t)
			for _, agent := range []bool{true, false, false} {
				m.join(t, agent)
			}
			t.Repeat(m.actions())
			m.finish(t)
			if err := os.RemoveAll(work); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// toLease names the type where a variable hides it.
func toLease(l reins.Lease) *lease { return l.(*lease) }

// undated hides the test's deadline, which a bubble must not ask for.
type undated struct{ testing.TB }
