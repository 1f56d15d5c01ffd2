package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

// reference is what the rules of chapter 2 say about every capability and lease
// of a history, in plain variables: the model's leases are held against it after
// each step.
type reference struct {
	mu   sync.Mutex // hooks end leases too
	caps map[string]*right
}

// right is one capability.
type right struct {
	agent   bool
	life    time.Duration
	expires time.Time
	ended   string // why, "" while it lives
	held    []*held
}

// held is one lease of it. More than one reason is right when two ends come in
// the same instant.
type held struct {
	l     *lease
	ended []string
}

func (e *reference) issued(c reins.Capability) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.caps[c.ID] = &right{agent: c.Binding.Role == reins.RoleAgent, expires: c.Expires, life: time.Until(c.Expires)}
}

// passLocked lets a right end by time.
func (r *right) passLocked() {
	if r.ended == "" && time.Now().After(r.expires) {
		r.endLocked(reasonExpired)
	}
}

func (r *right) endLocked(reason string) {
	if r.ended != "" {
		return
	}
	r.ended = reason
	if n := len(r.held); n > 0 && r.held[n-1].ended == nil {
		r.held[n-1].ended = []string{reason}
		if time.Now().Equal(r.expires) { // both are true
			r.held[n-1].ended = append(r.held[n-1].ended, reasonExpired)
		}
	}
}

func (e *reference) end(id, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.caps[id].passLocked()
	e.caps[id].endLocked(reason)
}

// released: only the lease that lives takes its capability along (LSE-4).
func (e *reference) released(l *lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.caps[l.grant.id]
	r.passLocked()
	if r.held[len(r.held)-1].l == l {
		r.endLocked(reasonReleased)
	}
}

// live reports whether a capability can be acquired now (LSE-1, CAP-5).
func (e *reference) live(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.caps[id]
	r.passLocked()
	return r.ended == "" && time.Now().Before(r.expires)
}

func (e *reference) acquired(id string, l *lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.caps[id]
	if n := len(r.held); n > 0 && r.held[n-1].ended == nil {
		r.held[n-1].ended = []string{reasonReplaced} // LSE-2
	}
	r.held = append(r.held, &held{l: l})
}

// renewed follows a renewal that succeeded: only of a lease that lives (LSE-3).
func (e *reference) renewed(t *rapid.T, l *lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.caps[l.grant.id]
	if r.passLocked(); r.ended != "" || r.held[len(r.held)-1].l != l {
		t.Fatal("an ended lease was renewed")
	}
	r.expires = time.Now().Add(r.life)
}

// attached ends all agents (ATT-3), and no person (ATT-4).
func (e *reference) attached() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.caps {
		if r.passLocked(); r.agent {
			r.endLocked(reasonDetached)
		}
	}
}

// checkLeases holds every lease there ever was against the reference: whether it
// is current, and why it ended (LSE-5, LSE-6).
func (m *model) checkLeases(t *rapid.T) {
	m.expect.mu.Lock()
	defer m.expect.mu.Unlock()
	for _, r := range m.expect.caps {
		if r.passLocked(); r.ended == "" && time.Now().Equal(r.expires) {
			r.endLocked(reasonExpired)
		}
		for _, h := range r.held {
			if got, want := h.l.IsCurrent(h.l.Authority()), h.ended == nil; got != want {
				t.Fatalf("a lease is current: %v, want %v (%v)", got, want, h.ended)
			}
			if h.ended == nil {
				continue
			}
			if in := h.l.input; in.mask() != 0 || in.tally != nil {
				t.Fatalf("a lease that ended holds %v and owes %+v", in.held, in.tally) // INP-2, GATE-3
			}
			if !isClosed(h.l.done) {
				t.Fatalf("a lease that ended (%v) does not say so", h.ended)
			}
			if reason, _ := h.l.ended.Details["reason"].(string); !slices.Contains(h.ended, reason) {
				t.Fatalf("a lease ended with %q, want one of %v", reason, h.ended)
			}
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listen keeps what events tell of control.
func (m *model) listen(t *rapid.T) {
	events, err := m.host.Events(context.Background(), key1.Project)
	if err != nil {
		t.Fatal(err)
	}
	m.told = reins.Control{State: reins.ControlAgent, Availability: reins.Disconnected}
	m.background(func() {
		for e := range events {
			if e.Kind == "control" {
				m.mu.Lock()
				m.told = *e.Control
				m.mu.Unlock()
			}
		}
	})
}

// participants are those whose leases live, the newest last.
func (m *model) participants() (agents, people []*lease) {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	for _, l := range m.leases {
		switch {
		case l.ended != nil:
		case l.grant.binding.Role == reins.RoleAgent:
			agents = append(agents, l)
		default:
			people = append(people, l)
		}
	}
	return agents, people
}

// controlActions are the steps of people and of agents that ask for them.
func (m *model) controlActions(one func(*rapid.T) *lease) map[string]func(*rapid.T) {
	seconds := func(t *rapid.T, what string, lo, hi int) reins.Duration {
		return reins.Duration(time.Duration(rapid.IntRange(lo, hi).Draw(t, what)) * time.Second)
	}
	return map[string]func(*rapid.T){
		"takeControl": func(t *rapid.T) {
			m.do(one(t), reins.RequestControl{Wait: seconds(t, "wait", 1, 10), Hold: seconds(t, "hold", 5, 60)})
		},
		"leavePressed": func(t *rapid.T) { // with something under way, and another presses meanwhile
			_, people := m.participants()
			if len(people) < 2 {
				t.Skip()
			}
			one, two := people[0], people[len(people)-1]
			m.do(one, reins.Pointer{Tab: "t1", Kind: "down"})
			m.set("do", rapid.SampledFrom([]behaviour{hang, late, slow, stubborn, dies}).Draw(t, "how"))
			m.do(one, reins.Type{Tab: "t2", Text: "aaaa"})
			m.expect.released(one)
			m.background(func() { _ = one.Release(context.Background()) })
			synctest.Wait()
			m.do(two, reins.Pointer{Tab: "t1", Kind: "down"})
		},
		"contend": func(t *rapid.T) { // agents act and wait, and a person wants control
			agents, people := m.participants()
			if len(agents) == 0 || len(people) == 0 {
				t.Skip()
			}
			m.set("do", rapid.SampledFrom([]behaviour{hang, late, slow, stubborn, dies}).Draw(t, "how"))
			for range rapid.IntRange(1, 3).Draw(t, "n") {
				m.navigate(t, agents[len(agents)-1])
			}
			m.navigate(t, people[0])
			m.do(people[len(people)-1], reins.RequestControl{Wait: seconds(t, "wait", 1, 10), Hold: seconds(t, "hold", 5, 60)})
		},
		"keepControl": func(t *rapid.T) { m.do(one(t), reins.RenewControl{Hold: seconds(t, "hold", 5, 60)}) },
		"giveControl": func(t *rapid.T) { m.do(one(t), reins.ReleaseControl{}) },
		"stopAgents":  func(t *rapid.T) { m.do(one(t), reins.StopAgents{}) },
		"point": func(t *rapid.T) {
			m.do(one(t), reins.Pointer{Tab: "t1", Kind: rapid.SampledFrom([]string{"move", "move", "down", "up"}).Draw(t, "kind")})
		},
		"pageShows": func(t *rapid.T) { // by itself
			kind := rapid.SampledFrom([]string{"tab_selected", "tab_closed"}).Draw(t, "kind")
			tab := reins.Tab{ID: rapid.SampledFrom([]reins.TabID{"t1", "t2"}).Draw(t, "tab"), Selected: kind == "tab_selected"}
			if l := m.anyLink(); l.opts.Events != nil && !isClosed(l.done) {
				l.tell(kind, tab)
			}
		},
		"doLoudly": func(t *rapid.T) { // for a caller whose own function panics
			a := rapid.SampledFrom([]reins.Action{
				reins.Snapshot{}, reins.RequestControl{}, reins.RequestHuman{Reason: "help"}, reins.Pointer{Tab: "t1", Kind: "down"},
			}).Draw(t, "action")
			m.call(one(t), reins.Call{Action: a, Progress: func(reins.Progress) { panic(errLoud) }})
		},
		"askPerson": func(t *rapid.T) {
			m.do(one(t), reins.RequestHuman{Reason: "help", Timeout: seconds(t, "timeout", 1, 30)})
		},
		"answer": func(t *rapid.T) {
			m.r.mu.Lock()
			open := m.r.st.handoffs.Shown()
			m.r.mu.Unlock()
			if len(open) == 0 {
				t.Skip()
			}
			m.do(one(t), reins.AnswerHuman{Request: open[0].ID, Decline: rapid.Bool().Draw(t, "decline")})
		},
		"doKeyed": func(t *rapid.T) {
			l, key := one(t), fmt.Sprint("key", rapid.IntRange(1, 2).Draw(t, "key"))
			// A lane of its own, so that acting twice is seen and order is not asked for.
			a := reins.Navigate{URL: fmt.Sprintf("https://%s.example.com/%s/%s", l.id, key, "once"), Tab: "t1"}
			m.call(l, reins.Call{Action: a, Key: key}) // OPS-5
		},
	}
}

// checkControl is what holds of control at every rest, under the resource's
// lock (CTL-1 to CTL-8).
func (m *model) checkControl(t *rapid.T) {
	s := &m.r.st
	is := m.r.controlLocked("")
	running, asking, claiming := 0, map[string]bool{}, map[string]bool{}
	for op := range s.ops {
		claiming[op.lease.id] = claiming[op.lease.id] || op.verb == reins.VerbRequestControl
		if op.begun && op.counts() {
			running++
		}
		asking[op.id] = op.verb == reins.VerbRequestHuman
	}
	if running != s.control.Running() {
		t.Fatalf("%d operations of agents run, %d are counted", running, s.control.Running())
	}
	holders := 0
	for l := range m.liveLeases() {
		mine := m.r.controlLocked(l.id)
		if !mine.Mine {
			continue
		}
		holders++
		if l.grant.binding.Role != reins.RoleHuman {
			t.Fatal("an agent is in control")
		}
		if is.State == reins.ControlPending && !claiming[l.id] {
			t.Fatalf("nobody waits for the control that is asked for: %+v", is) // CTL-5
		}
	}
	for what, o := range s.owed {
		if heldLocked(s, what) || s.inc == nil || o.what != what {
			t.Fatalf("%s of %s is owed, and held, or of no browser", what, o.from.id) // INP-2
		}
	}
	switch is.State {
	case reins.ControlHuman, reins.ControlPending:
		if holders != 1 || !is.Expires.After(time.Now()) {
			t.Fatalf("%d live leases have %+v", holders, is)
		}
		if is.State == reins.ControlHuman && running > 0 {
			t.Fatalf("a person has control while %d operations of agents run", running)
		}
		for op := range s.ops {
			if !op.begun && op.refusedLocked(s, time.Now()) != nil {
				t.Fatalf("%s of %s waits while control is %s", op.verb, op.lease.grant.binding.Actor, is.State)
			}
		}
	default:
		if holders != 0 || s.takeover.timer != nil {
			t.Fatalf("%d are in control of %+v", holders, is)
		}
	}
	for _, r := range is.Requests {
		if !asking[r.ID] || !r.Expires.After(time.Now()) {
			t.Fatalf("a request for a person is left over: %+v", r)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told.State != is.State || m.told.Actor != is.Actor || !m.told.Expires.Equal(is.Expires) ||
		m.told.Availability != is.Availability || len(m.told.Requests) != len(is.Requests) {
		t.Fatalf("told %+v, and it is %+v", m.told, is) // CTL-6
	}
}

// retire ends some histories with the resource instead of the runtime (RES-5).
func (m *model) retire(t *rapid.T) {
	if !rapid.Bool().Draw(t, "retire") {
		return
	}
	var err error
	for range 3 { // a step that was told to fail does so once
		if err = m.r.Retire(context.Background()); err == nil {
			break
		}
	}
	synctest.Wait()
	if err != nil || !isClosed(m.r.done) {
		t.Fatalf("retiring: %v", err)
	}
	if n, size := m.r.gen.store.Usage(key1); n != 0 || size != 0 {
		t.Fatalf("%d artifacts with %d bytes are left", n, size)
	}
}
