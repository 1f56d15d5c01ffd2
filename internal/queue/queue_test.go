package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
)

var errGone = errors.New("gone")

func ready(e *Entry) bool {
	select {
	case <-e.Ready():
		return true
	default:
		return false
	}
}

func push(t interface{ Fatal(...any) }, q *Queue, r Request) *Entry {
	e, err := q.Push(r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// naive is the reference for serial order: one list, its head runs (OPS-1).
type naive struct {
	list     []*Entry
	perLease int
	total    int
}

func (n *naive) waiting(lease string) (mine, all int) {
	for i, e := range n.list {
		if i == 0 {
			continue
		}
		all++
		if e.req.Lease == lease {
			mine++
		}
	}
	return mine, all
}

func (n *naive) remove(e *Entry) {
	n.list = slices.DeleteFunc(n.list, func(o *Entry) bool { return o == e })
}

// TestSerialModel drives serial order beside the reference: OPS-1, OPS-2,
// OPS-3, OPS-4, QUI-1 (cancelled while queued: never starts) and settling once.
func TestSerialModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := &naive{perLease: rapid.IntRange(1, 4).Draw(t, "perLease"), total: rapid.IntRange(1, 9).Draw(t, "total")}
		q := New(Options{PerLease: ref.perLease, Total: ref.total})
		var all []*Entry
		started := map[*Entry]bool{}
		lease := rapid.SampledFrom([]string{"a", "b", "c"})
		pick := func(t *rapid.T) *Entry {
			if len(all) == 0 {
				t.Skip()
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "entry")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				r := Request{Lease: lease.Draw(t, "lease"), Watch: rapid.Bool().Draw(t, "watch")}
				if rapid.Bool().Draw(t, "move") {
					r.Coalesce = "t1"
				}
				mine, others := ref.waiting(r.Lease)
				last := len(ref.list) - 1
				merges := r.Coalesce != "" && last > 0 && ref.list[last].req.Lease == r.Lease && ref.list[last].req.Coalesce == r.Coalesce
				e, err := q.Push(r)
				full := mine >= ref.perLease || others >= ref.total
				if !merges && full {
					if reins.CodeOf(err) != reins.CodeQuotaExceeded {
						t.Fatalf("at the bound: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, e)
				if merges {
					if p, _ := q.Outcome(ref.list[last]); p != Superseded {
						t.Fatalf("the older move is %v", p)
					}
					ref.list[last] = e
					return
				}
				ref.list = append(ref.list, e)
			},
			"settle": func(t *rapid.T) {
				e := pick(t)
				runs := len(ref.list) > 0 && ref.list[0] == e
				if got := q.Settle(e); got != runs {
					t.Fatalf("settled %v, want %v", got, runs)
				}
				if runs {
					ref.remove(e)
				}
			},
			"cancel": func(t *rapid.T) {
				e := pick(t)
				waits := slices.Index(ref.list, e) > 0
				if got := q.Cancel(e, errGone); got != waits {
					t.Fatalf("cancelled %v, want %v", got, waits)
				}
				if waits {
					ref.remove(e)
					if p, err := q.Outcome(e); p != Cancelled || err != errGone || started[e] {
						t.Fatalf("outcome %v %v", p, err)
					}
				}
			},
			"cancelLease": func(t *rapid.T) {
				l := lease.Draw(t, "lease")
				running := q.CancelWhere(func(e *Entry) bool { return e.Lease() == l }, errGone)
				want := len(ref.list) > 0 && ref.list[0].req.Lease == l
				if (len(running) == 1) != want {
					t.Fatalf("running of %s: %d", l, len(running))
				}
				for _, e := range slices.Clone(ref.list)[min(1, len(ref.list)):] {
					if e.req.Lease == l {
						ref.remove(e)
					}
				}
			},
			"": func(t *rapid.T) {
				for i, e := range ref.list {
					p, _ := q.Outcome(e)
					if (p == Running) != (i == 0) || ready(e) != (i == 0) || q.Position(e) != i {
						t.Fatalf("entry %d: phase %v, ready %v, position %d", i, p, ready(e), q.Position(e))
					}
				}
				if len(ref.list) > 0 {
					started[ref.list[0]] = true
				}
				for _, e := range all {
					if p, _ := q.Outcome(e); (p == Cancelled || p == Superseded) && started[e] {
						t.Fatal("an entry that ran is cancelled")
					}
				}
				waiting, running := q.Waiting()
				if waiting+running != len(ref.list) {
					t.Fatalf("%d wait and %d run, want %d", waiting, running, len(ref.list))
				}
			},
		})
		drain(t, q, all)
	})
}

// drain settles everything and checks that all quotas are back at zero.
func drain(t *rapid.T, q *Queue, all []*Entry) {
	for range 2*len(all) + 1 {
		for _, e := range all {
			q.Settle(e)
		}
	}
	for _, e := range all {
		if p, _ := q.Outcome(e); p == Waiting || p == Running || !ready(e) {
			t.Fatalf("an entry is left %v", p)
		}
	}
	w, r := q.Waiting()
	if w != 0 || r != 0 || len(q.perLease) != 0 || len(q.tabs) != 0 || len(q.order) != 0 || len(q.closing) != 0 ||
		len(q.runnable) != 0 || q.slots != 0 || q.alone != nil || len(q.watchers) != 0 || q.context.holder != nil {
		t.Fatalf("not empty after all settled: %+v", q)
	}
}

// perTab is what the model of per-tab order remembers.
type perTab struct {
	q        *Queue
	all      []*Entry
	selected reins.TabID
	granted  []*Entry
}

// observe notes what began, in the order of the lines, and checks SCH-1, SCH-2
// and SCH-4: no two on a tab, none beside one that is alone, at most AtOnce,
// first in first out on a tab, and nothing waits that could run.
func (m *perTab) observe(t *rapid.T) {
	onTab := map[reins.TabID]int{}
	alone, slots, context := 0, 0, 0
	for _, e := range m.all {
		p, _ := m.q.Outcome(e)
		if p != Running {
			continue
		}
		if !slices.Contains(m.granted, e) {
			m.granted = append(m.granted, e)
		}
		if e.req.Place == Past {
			continue
		}
		slots++
		for _, l := range e.held {
			if l.holder != e {
				t.Fatal("an entry runs without its lane")
			}
			if l.tab != "" {
				onTab[l.tab]++
			}
			if l == m.q.context {
				context++
			}
		}
		if m.q.alone == e {
			alone++
		}
	}
	for tab, n := range onTab {
		if n > 1 {
			t.Fatalf("%d operations run on %s", n, tab)
		}
	}
	if context > 1 || slots > m.q.opts.AtOnce || alone == 1 && slots > 1 {
		t.Fatalf("%d hold the context, %d run, %d alone", context, slots, alone)
	}
	for _, e := range m.all {
		p, _ := m.q.Outcome(e)
		plain := e.req.Place == OnTab && !e.req.Close
		if p == Waiting && plain && m.q.alone == nil && slots < m.q.opts.AtOnce && m.q.Position(e) == 0 {
			t.Fatal("an entry waits that could run (SCH-2)")
		}
	}
}

// TestPerTabModel checks the rules of per-tab order over random histories.
func TestPerTabModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &perTab{selected: "t1"}
		m.q = New(Options{PerTab: true, PerLease: 50, Total: 60, AtOnce: rapid.IntRange(1, 4).Draw(t, "atOnce"),
			Selected: func() reins.TabID { return m.selected }})
		tab := rapid.SampledFrom([]reins.TabID{"t1", "t2", "t3"})
		fifo := map[reins.TabID][]*Entry{}
		pick := func(t *rapid.T) *Entry {
			if len(m.all) == 0 {
				t.Skip()
			}
			return m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, "entry")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				r := Request{Lease: "a", Place: Place(rapid.IntRange(int(OnContext), int(Past)).Draw(t, "place"))}
				if r.Place == OnTab {
					r.Tab = tab.Draw(t, "tab")
				}
				r.Close = (r.Place == OnTab || r.Place == OnSelected) && rapid.IntRange(0, 3).Draw(t, "close") == 0
				marked := r.Place == OnTab && m.q.closing[r.Tab] != nil
				e, err := m.q.Push(r)
				if err != nil {
					want := reins.CodeQuotaExceeded
					if marked {
						want = reins.CodeInvalidState
					}
					if reins.CodeOf(err) != want {
						t.Fatal(err)
					}
					return
				}
				if marked {
					t.Fatal("work on a closing tab was admitted (SCH-3)")
				}
				m.all = append(m.all, e)
				if r.Place == OnTab {
					fifo[r.Tab] = append(fifo[r.Tab], e)
				}
			},
			"settle": func(t *rapid.T) { m.q.Settle(pick(t)) },
			"settleOldest": func(t *rapid.T) {
				for _, e := range m.all {
					if m.q.Settle(e) {
						return
					}
				}
			},
			"cancel": func(t *rapid.T) { m.q.Cancel(pick(t), errGone) },
			"cancelMany": func(t *rapid.T) {
				m.q.CancelWhere(func(e *Entry) bool { return e.req.Tab == "t2" }, errGone)
			},
			"select": func(t *rapid.T) {
				m.selected = rapid.SampledFrom([]reins.TabID{"t1", "t2", "t3", ""}).Draw(t, "selected")
			},
			"": func(t *rapid.T) {
				m.observe(t)
				for tab, list := range fifo {
					var began []*Entry
					for _, e := range list {
						if p, _ := m.q.Outcome(e); p == Running || p == Settled {
							began = append(began, e)
						} else if p == Waiting {
							break
						}
					}
					for _, e := range list {
						if p, _ := m.q.Outcome(e); (p == Running || p == Settled) && !slices.Contains(began, e) {
							t.Fatalf("an operation on %s overtook another (SCH-2)", tab)
						}
					}
				}
			},
		})
		drain(t, m.q, m.all)
	})
}

// TestLanesTakeTurns: a lane with much work does not keep another from its
// turn (SCH-2).
func TestLanesTakeTurns(t *testing.T) {
	q := New(Options{PerTab: true, PerLease: 100, Total: 100, AtOnce: 1})
	var order []string
	live := map[string]*Entry{}
	for i := range 3 {
		for _, tab := range []reins.TabID{"t1", "t1", "t2"} {
			name := fmt.Sprintf("%s-%d-%d", tab, i, len(live))
			live[name] = push(t, q, Request{Lease: "a", Place: OnTab, Tab: tab})
		}
	}
	for len(live) > 0 {
		n := len(live)
		for name, e := range live {
			if p, _ := q.Outcome(e); p == Running {
				order = append(order, name[:2])
				delete(live, name)
				q.Settle(e)
				break
			}
		}
		if len(live) == n {
			t.Fatal("nothing runs")
		}
	}
	want := []string{"t1", "t2", "t1", "t2", "t1", "t2", "t1", "t1", "t1"}
	if !slices.Equal(order, want) {
		t.Fatalf("order %v, want %v", order, want)
	}
}

// TestCloseMarksAndUnmarks is SCH-3: what was queued before runs first, what
// comes later is refused, and a cancelled close gives the tab back.
func TestCloseMarksAndUnmarks(t *testing.T) {
	q := New(Options{PerTab: true, PerLease: 100, Total: 100, AtOnce: 8, Selected: func() reins.TabID { return "t1" }})
	before := push(t, q, Request{Lease: "a", Place: OnTab, Tab: "t1"})
	shut := push(t, q, Request{Lease: "a", Place: OnTab, Tab: "t1", Close: true})
	if _, err := q.Push(Request{Lease: "a", Place: OnTab, Tab: "t1"}); reins.CodeOf(err) != reins.CodeInvalidState {
		t.Fatalf("later work: %v", err)
	}
	implicit := push(t, q, Request{Lease: "a", Place: OnSelected})
	if p, err := q.Outcome(implicit); p != Cancelled || reins.CodeOf(err) != reins.CodeInvalidState {
		t.Fatalf("later work on the selected tab: %v %v", p, err)
	}
	list := push(t, q, Request{Lease: "a", Place: OnContext})
	if p, _ := q.Outcome(list); p != Running {
		t.Fatal("a waiting close holds the context lane already")
	}
	q.Settle(before)
	if p, _ := q.Outcome(shut); p != Waiting {
		t.Fatal("a close runs beside an operation of the context")
	}
	if !q.Cancel(shut, errGone) {
		t.Fatal("a waiting close cannot be cancelled")
	}
	again := push(t, q, Request{Lease: "a", Place: OnTab, Tab: "t1"})
	if p, _ := q.Outcome(again); p != Running {
		t.Fatal("the tab stayed marked")
	}
}

// TestPastGoesPast is OPS-7: what frees a stuck browser does not wait.
func TestPastGoesPast(t *testing.T) {
	q := New(Options{PerLease: 1, Total: 1})
	stuck := push(t, q, Request{Lease: "a"})
	push(t, q, Request{Lease: "a"})
	force := push(t, q, Request{Lease: "a", Place: Past})
	if p, _ := q.Outcome(force); p != Running {
		t.Fatal("it waits")
	}
	if !q.Settle(force) || q.Settle(force) {
		t.Fatal("settling is done once")
	}
	if p, _ := q.Outcome(stuck); p != Running {
		t.Fatal("it disturbed what ran")
	}
	force = push(t, q, Request{Lease: "a", Place: Past})
	push(t, q, Request{Lease: "b", Place: Past})
	if _, err := q.Push(Request{Lease: "a", Place: Past}); reins.CodeOf(err) != reins.CodeQuotaExceeded { // OPS-2
		t.Fatalf("one more than a lease may have: %v", err)
	}
	q.Settle(force)
	push(t, q, Request{Lease: "a", Place: Past})
}

// TestWatchersAreTold is OPS-4.
func TestWatchersAreTold(t *testing.T) {
	q := New(Options{PerLease: 9, Total: 9})
	first := push(t, q, Request{Lease: "a"})
	second := push(t, q, Request{Lease: "a"})
	third := push(t, q, Request{Lease: "b", Watch: true})
	if q.Position(third) != 2 {
		t.Fatalf("position %d", q.Position(third))
	}
	q.Cancel(second, errGone)
	select {
	case <-third.Moved():
	default:
		t.Fatal("not told")
	}
	if q.Position(third) != 1 {
		t.Fatalf("position %d", q.Position(third))
	}
	q.Settle(first)
	if p, _ := q.Outcome(third); p != Running || q.Position(third) != 0 {
		t.Fatal("does not run")
	}
}
