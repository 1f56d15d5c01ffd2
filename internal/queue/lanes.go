package queue

import (
	"slices"

	"github.com/reins-browser/reins"
)

// first is the lane in which a request begins to wait.
func (q *Queue) first(r Request) *lane {
	switch {
	case !q.opts.PerTab:
		return q.context
	case r.Place == OnTab:
		return q.tab(r.Tab)
	case r.Place == Apart:
		return q.apart
	}
	return q.context
}

func (q *Queue) tab(id reins.TabID) *lane {
	l := q.tabs[id]
	if l == nil {
		l = &lane{tab: id}
		q.tabs[id] = l
		q.order = append(q.order, l)
	}
	return l
}

// drop forgets a tab's lane that nobody uses.
func (q *Queue) drop(l *lane) {
	if l.tab != "" && l.holder == nil && len(l.queue) == 0 {
		delete(q.tabs, l.tab)
		q.order = slices.DeleteFunc(q.order, func(o *lane) bool { return o == l })
	}
}

// lanes are all lanes, tabs' lanes by age: what becomes free in one step asks
// for slots in this order.
func (q *Queue) lanes() []*lane {
	return append([]*lane{q.context, q.apart}, q.order...)
}

// unlink takes a waiting entry out of whatever line it stands in.
func (q *Queue) unlink(e *Entry) {
	is := func(o *Entry) bool { return o == e }
	if e.at != nil {
		e.at.queue = slices.DeleteFunc(e.at.queue, is)
		q.drop(e.at)
		e.at = nil
	}
	q.runnable = slices.DeleteFunc(q.runnable, is)
}

// pump moves entries on until nothing can move: heads of free lanes take them,
// and those that hold all they need take slots.
func (q *Queue) pump() {
	for q.advance() {
	}
	for q.grantable() {
		e := q.runnable[0]
		q.runnable = q.runnable[1:]
		q.grant(e)
	}
	if e := q.alone; e != nil && e.phase == Waiting && q.slots == 0 {
		q.grant(e)
	}
}

// notify tells watchers that positions may have changed.
func (q *Queue) notify() {
	for e := range q.watchers {
		select {
		case e.moved <- struct{}{}:
		default:
		}
	}
}

func (q *Queue) grantable() bool {
	return len(q.runnable) > 0 && q.slots < q.opts.AtOnce && q.alone == nil
}

func (q *Queue) grant(e *Entry) {
	q.count(e, -1)
	q.slots++
	q.running[e] = struct{}{}
	e.phase = Running
	close(e.ready)
}

// advance lets the head of each free lane take it; false when none moved.
func (q *Queue) advance() bool {
	moved := false
	for _, l := range q.lanes() {
		moved = q.take(l) || moved
	}
	return moved
}

// take gives a free lane to its head, which then goes on to its next step.
func (q *Queue) take(l *lane) bool {
	if l.holder != nil || len(l.queue) == 0 {
		return false
	}
	e := l.queue[0]
	l.queue = l.queue[1:]
	l.holder, e.at = e, nil
	e.held = append(e.held, l)
	q.step(e)
	return true
}

// step sends an entry that has just taken a lane to where it waits next.
func (q *Queue) step(e *Entry) {
	if !q.opts.PerTab || len(e.held) == 2 {
		q.runnable = append(q.runnable, e)
		return
	}
	switch {
	case e.req.Place == OnTab && e.req.Close:
		q.wait(e, q.context)
	case e.req.Place == Alone:
		q.alone = e
	case e.req.Place == OnSelected:
		q.resolve(e)
	default:
		q.runnable = append(q.runnable, e)
	}
}

func (q *Queue) wait(e *Entry, l *lane) {
	e.at = l
	l.queue = append(l.queue, e)
}

// resolve finds the selected tab for an entry that holds the context lane and
// lets it wait for that tab's lane (SCH-4). A tab that is being closed is
// refused: its close may be waiting for the context lane, which this entry
// would hold for ever.
func (q *Queue) resolve(e *Entry) {
	var tab reins.TabID
	if q.opts.Selected != nil {
		tab = q.opts.Selected()
	}
	switch {
	case tab == "":
		q.alone = e
	case q.closing[tab] != nil:
		q.end(e, Cancelled, closingError(tab))
	default:
		if e.req.Close {
			q.setMark(e, tab)
		}
		q.wait(e, q.tab(tab))
	}
}
