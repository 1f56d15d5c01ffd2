package queue

import (
	"slices"

	"github.com/reins-browser/reins"
)

// Options bound a queue; all numbers are at least 1.
type Options struct {
	PerTab   bool // SCH-1; false is serial
	PerLease int  // waiting entries of one lease (OPS-2)
	Total    int  // waiting entries in all (OPS-2, SCH-5)
	AtOnce   int  // entries that run at the same time in per-tab order (SCH-2)
	// Selected names the selected tab now, "" when it is not known. It is
	// called under the owner's lock, in per-tab order only (SCH-4).
	Selected func() reins.TabID
}

// Place says where an entry queues in per-tab order. In serial order all but
// Past are the one lane.
type Place int

// The places.
const (
	OnContext  Place = iota // the browser context: list, open, select (SCH-3)
	OnTab                   // Request.Tab
	OnSelected              // the selected tab, found out at the head of the context lane (SCH-4)
	Alone                   // nothing else runs meanwhile: what it touches is not known
	Apart                   // touches no page: a lane of its own
	Past                    // runs at once, past the queue (OPS-7)
)

// Request is what an entry asks for.
type Request struct {
	Lease string
	Place Place
	Tab   reins.TabID // for OnTab
	// Close marks the tab as closing at once; see [Queue.Push].
	Close bool
	// Coalesce, when not empty, lets this entry take the place of the one
	// that waits directly before it in its lane when lease and Coalesce are
	// equal; that one then ends as superseded (OPS-3).
	Coalesce string
	// Watch asks for [Entry.Moved].
	Watch bool
}

// Phase is how far an entry has come.
type Phase int

// The phases.
const (
	Waiting    Phase = iota
	Running          // from grant to Settle
	Settled          // ran and ended
	Cancelled        // never ran; Outcome has the cause
	Superseded       // never ran; a later one took its place (OPS-3)
)

// Entry is one admitted request. Its methods may be called without the
// owner's lock.
type Entry struct {
	req   Request
	phase Phase
	err   error
	ready chan struct{}
	moved chan struct{}
	held  []*lane
	at    *lane       // whose queue it waits in; nil when it waits for a slot
	mark  reins.TabID // the tab it marked as closing
}

// Ready is closed when the entry runs or has ended without running.
func (e *Entry) Ready() <-chan struct{} { return e.ready }

// Moved receives when the entry's position may have changed; never more than
// one pending. It is nil unless the request asked to watch (OPS-4).
func (e *Entry) Moved() <-chan struct{} { return e.moved }

// Lease is the lease the entry was admitted under.
func (e *Entry) Lease() string { return e.req.Lease }

// lane is a first-in first-out line that one entry at a time holds.
type lane struct {
	tab    reins.TabID // "" for lanes that are not a tab's
	queue  []*Entry
	holder *Entry
}

// Queue orders the operations of one resource. Guarded by its owner's lock.
type Queue struct {
	opts     Options
	context  *lane // in serial order the one lane
	apart    *lane
	tabs     map[reins.TabID]*lane
	order    []*lane  // the values of tabs, oldest first
	runnable []*Entry // hold all their lanes, wait for a slot
	running  map[*Entry]struct{}
	slots    int    // running entries that hold a slot
	alone    *Entry // holds the context lane and wants to be the only one
	waiting  int
	perLease map[string]int
	closing  map[reins.TabID]*Entry
	watchers map[*Entry]struct{}
}

// New makes an empty queue. Numbers below 1 count as 1.
func New(o Options) *Queue {
	o.PerLease, o.Total, o.AtOnce = max(o.PerLease, 1), max(o.Total, 1), max(o.AtOnce, 1)
	if !o.PerTab {
		o.AtOnce = 1
	}
	return &Queue{
		opts: o, context: &lane{}, apart: &lane{},
		tabs: map[reins.TabID]*lane{}, running: map[*Entry]struct{}{},
		perLease: map[string]int{}, closing: map[reins.TabID]*Entry{},
		watchers: map[*Entry]struct{}{},
	}
}

// Push admits a request at the end of its lane. It fails with quota_exceeded
// at a bound, which what runs past the queue has too, and, in per-tab order, with invalid_state for a tab that is being
// closed: a request with Close marks its tab from here on, so that what was
// queued before it runs and what comes later does not (SCH-3). The mark goes
// when the entry ends, whichever way.
func (q *Queue) Push(r Request) (*Entry, error) {
	e := &Entry{req: r, ready: make(chan struct{})}
	if r.Watch {
		e.moved = make(chan struct{}, 1)
	}
	if r.Place == Past {
		if q.past(r.Lease) >= q.opts.PerLease {
			return nil, reins.Errorf(reins.CodeQuotaExceeded,
				"%d operations of this lease that wait for nobody are running already; wait for some of them", q.opts.PerLease).In(reins.PhaseAdmission)
		}
		e.phase = Running
		q.running[e] = struct{}{}
		close(e.ready)
		return e, nil
	}
	if q.opts.PerTab && r.Place == OnTab && q.closing[r.Tab] != nil {
		return nil, closingError(r.Tab)
	}
	l := q.first(r)
	if q.supersede(l, e) {
		return e, nil
	}
	if err := q.admit(r.Lease); err != nil {
		q.drop(l)
		return nil, err
	}
	if q.opts.PerTab && r.Place == OnTab && r.Close {
		q.setMark(e, r.Tab)
	}
	q.count(e, 1)
	e.at = l
	l.queue = append(l.queue, e)
	q.pump()
	return e, nil
}

// past is how many entries of a lease run past the queue.
func (q *Queue) past(lease string) int {
	n := 0
	for e := range q.running {
		if e.req.Place == Past && e.req.Lease == lease {
			n++
		}
	}
	return n
}

func closingError(tab reins.TabID) *reins.Error {
	return reins.Errorf(reins.CodeInvalidState, "tab %q is being closed; list the tabs and use another", string(tab)).In(reins.PhaseAdmission)
}

// admit checks the two bounds.
func (q *Queue) admit(lease string) error {
	if n := q.perLease[lease]; n >= q.opts.PerLease {
		return reins.Errorf(reins.CodeQuotaExceeded,
			"%d operations of this lease are waiting already; wait for some of them", n).In(reins.PhaseAdmission)
	}
	if q.waiting >= q.opts.Total {
		return reins.Errorf(reins.CodeQuotaExceeded,
			"%d operations are waiting for this browser already; wait for some of them", q.waiting).In(reins.PhaseAdmission)
	}
	return nil
}

// supersede puts e in the place of the entry at the end of l when both belong
// together (OPS-3).
func (q *Queue) supersede(l *lane, e *Entry) bool {
	if e.req.Coalesce == "" || len(l.queue) == 0 {
		return false
	}
	old := l.queue[len(l.queue)-1]
	if old.req.Lease != e.req.Lease || old.req.Coalesce != e.req.Coalesce || len(old.held) > 0 {
		return false
	}
	l.queue[len(l.queue)-1] = e
	e.at, old.at = l, nil
	q.count(e, 1)
	q.end(old, Superseded, nil)
	return true
}

// count keeps the numbers of waiting entries and the watchers.
func (q *Queue) count(e *Entry, n int) {
	q.waiting += n
	if q.perLease[e.req.Lease] += n; q.perLease[e.req.Lease] == 0 {
		delete(q.perLease, e.req.Lease)
	}
	if e.moved == nil {
		return
	}
	if n > 0 {
		q.watchers[e] = struct{}{}
	} else {
		delete(q.watchers, e)
	}
}

// end takes a waiting entry to its last phase; it must be in no line any more.
func (q *Queue) end(e *Entry, p Phase, err error) {
	q.count(e, -1)
	e.phase, e.err = p, err
	q.release(e)
	close(e.ready)
}

// release gives up lanes and marks.
func (q *Queue) release(e *Entry) {
	for _, l := range e.held {
		l.holder = nil
		q.drop(l)
	}
	e.held = nil
	if q.alone == e {
		q.alone = nil
	}
	if e.mark != "" {
		delete(q.closing, e.mark)
		e.mark = ""
	}
}

func (q *Queue) setMark(e *Entry, tab reins.TabID) {
	e.mark = tab
	q.closing[tab] = e
}

// Cancel ends a waiting entry: it never runs, and Outcome gives err. It
// reports false, and does nothing, for one that runs or has ended.
func (q *Queue) Cancel(e *Entry, err error) bool {
	if e.phase != Waiting {
		return false
	}
	q.unlink(e)
	q.end(e, Cancelled, err)
	q.pump()
	q.notify()
	return true
}

// CancelWhere cancels every waiting entry that match names and returns the
// running ones that it names, for their owner to stop (LSE-4, QUI-4).
func (q *Queue) CancelWhere(match func(*Entry) bool, err error) (running []*Entry) {
	var ended []*Entry
	keep := func(e *Entry) bool {
		if !match(e) {
			return false
		}
		ended = append(ended, e)
		return true
	}
	for _, l := range q.lanes() {
		l.queue = slices.DeleteFunc(l.queue, keep)
		q.drop(l)
	}
	q.runnable = slices.DeleteFunc(q.runnable, keep)
	if q.alone != nil && q.alone.phase == Waiting {
		keep(q.alone)
	}
	for _, e := range ended {
		q.end(e, Cancelled, err)
	}
	for e := range q.running {
		if match(e) {
			running = append(running, e)
		}
	}
	q.pump()
	q.notify()
	return running
}

// Settle ends a running entry and lets the next ones run. It reports false,
// and does nothing, for one that does not run: settling is done once.
func (q *Queue) Settle(e *Entry) bool {
	if e.phase != Running {
		return false
	}
	e.phase = Settled
	delete(q.running, e)
	if e.req.Place != Past {
		q.slots--
	}
	q.release(e)
	q.pump()
	q.notify()
	return true
}

// Outcome is the entry's phase and, when it was cancelled, the cause.
func (q *Queue) Outcome(e *Entry) (Phase, error) { return e.phase, e.err }

// Waiting is the number of entries that wait, and that run.
func (q *Queue) Waiting() (waiting, running int) { return q.waiting, len(q.running) }

// Position is how many operations are ahead of a waiting entry in the lane it
// is in, the running one included; 0 when it runs or has ended (OPS-4).
func (q *Queue) Position(e *Entry) int {
	if e.phase != Waiting {
		return 0
	}
	if e.at == nil {
		return q.slots + max(slices.Index(q.runnable, e), 0)
	}
	n := slices.Index(e.at.queue, e)
	if e.at.holder != nil {
		n++
	}
	return n
}

// Tab is the tab whose lane a running entry holds, "" when none: what
// the selected tab was resolved to. Read it under the owner's lock.
func (e *Entry) Tab() reins.TabID {
	for _, l := range e.held {
		if l.tab != "" {
			return l.tab
		}
	}
	return ""
}
