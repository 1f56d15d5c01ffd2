package host

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// auditBuffer is how many records wait for a slow hook before they are dropped.
// What a page causes gets three quarters of it at most, so that no page can push
// out what participants do.
const (
	auditBuffer = 4096
	pageBuffer  = auditBuffer / 4 * 3
)

// audit hands records to the host's hook in order, from one goroutine, without
// ever holding up an operation (HK-3).
type audit struct {
	hook func(reins.Record)
	log  *slog.Logger
	lost atomic.Uint64
	done chan struct{}

	mu      sync.Mutex // guards closed, so that nothing is sent on a closed queue
	closed  bool
	records chan reins.Record
}

func newAudit(hook func(reins.Record), log *slog.Logger) *audit {
	a := &audit{hook: hook, log: log, done: make(chan struct{}), records: make(chan reins.Record, auditBuffer)}
	if hook == nil {
		close(a.done)
		return a
	}
	go a.run()
	return a
}

func (a *audit) run() {
	defer close(a.done)
	for rec := range a.records {
		a.call(rec)
	}
}

// call contains a hook that panics (HK-4).
func (a *audit) call(rec reins.Record) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("the Audit hook panicked", "panic", p)
		}
	}()
	a.hook(rec)
}

// send queues a record or counts it as dropped.
func (a *audit) send(rec reins.Record) { a.put(rec, auditBuffer) }

// sendPages is send for what a page caused.
func (a *audit) sendPages(rec reins.Record) { a.put(rec, pageBuffer) }

// put queues a record when fewer than room wait.
func (a *audit) put(rec reins.Record, room int) {
	if a.hook == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.records) >= room {
		a.lost.Add(1)
		return
	}
	select {
	case a.records <- rec:
	default:
		a.lost.Add(1)
	}
}

func (a *audit) dropped() uint64 { return a.lost.Load() }

// close takes no more records and waits for the hook to get those that are
// queued, at most for limit: a hook that hangs is left to itself.
func (a *audit) close(limit time.Duration) error {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.records)
	}
	a.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-a.done:
		return nil
	case <-t.C:
		return reins.Errorf(reins.CodeTimeout, "the Audit hook has not taken its last records within %s", limit).In(reins.PhaseHook)
	}
}

// did records something the runtime did by itself for a resource.
func (r *resource) did(action string, began time.Time, err error) {
	rec := reins.Record{
		Time: time.Now(), Project: r.key.Project, Resource: r.key.ID, Action: action,
		Outcome: reins.OutcomeCompleted, Duration: time.Since(began),
	}
	if e := reins.AsError(err); e != nil {
		rec.Outcome, rec.Code, rec.Detail = reins.OutcomeFailed, e.Code, e.Message
	}
	r.update(func(s *state) {
		rec.Incarnation, rec.Revision = s.count, s.attachment.Revision
		rec = r.secrets.hideRecord(rec)
		s.toldLocked(rec)
	})
	r.gen.audit.send(rec)
}

// passed takes one decision of the incarnation's egress door.
func (inc *incarnation) passed(d egress.Decision) {
	inc.refusals.add(d)
	inc.r.passed(inc.number, d)
}

// passed records one decision of the resource's egress door (EGR-8). The host
// asked for is the page's text, bounded by the door.
func (r *resource) passed(number uint64, d egress.Decision) {
	rec := reins.Record{
		Time: d.Time, Project: r.key.Project, Resource: r.key.ID, Incarnation: number,
		Action: "egress", Outcome: reins.OutcomeCompleted,
		Detail: fmt.Sprintf("%s %q port %d", d.Method, d.Host, d.Port),
	}
	if d.Address.IsValid() {
		rec.Detail += " at " + d.Address.String()
	}
	if err := d.Err(); err != nil {
		rec.Outcome, rec.Code = reins.OutcomeFailed, err.Code
		rec.Detail += ": " + string(d.Reason)
	}
	r.gen.audit.sendPages(r.secrets.hideRecord(rec))
}
