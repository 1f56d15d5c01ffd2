package host

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/queue"
)

// operation is one admitted call on its way: queue, gate, browser, act, settle.
type operation struct {
	id       string
	r        *resource
	lease    *lease
	action   reins.Action
	verb     reins.Verb
	class    reins.Class
	admitted time.Time
	entry    *queue.Entry
	cancel   context.CancelCauseFunc // ends its context with the reason
	settled  chan struct{}           // closed when nothing of it can happen any more
	progress func(reins.Progress)

	began  time.Time    // when it may first have had an effect
	on     connectionID // what it acted on
	target *reins.Target
	tab    reins.TabID // what it is for, or was on
	named  bool        // its caller named the tab

	begun bool        // guarded by the resource's lock: an effect may have happened
	box   *reins.Box  // likewise: where it acts, once that is known
	where reins.TabID // likewise: in which tab

	merged bool // likewise: a later turn of the wheel has its distance
}

// Do implements [reins.Lease]: the one way to a browser.
func (l *lease) Do(ctx context.Context, call reins.Call) (*reins.Result, error) {
	if call.Action == nil || reflect.TypeOf(call.Action).Kind() == reflect.Pointer {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the call needs an action, as one of the structs such as reins.Click{…}, not nil or a pointer")
	}
	if err := call.Action.Validate(); err != nil {
		return nil, err
	}
	if call.Key != "" {
		return l.once(ctx, call)
	}
	res, _, err := l.run(ctx, call)
	return res, err
}

// once runs a call under its idempotency key, or answers with what came of the
// first call that had it (OPS-5).
func (l *lease) once(ctx context.Context, call reins.Call) (*reins.Result, error) {
	body, err := reins.EncodeAction(call.Action)
	if err != nil {
		return nil, err
	}
	for {
		var use *queue.Keyed[*reins.Result]
		var first bool
		l.r.update(func(*state) {
			if ended := l.liveLocked(time.Now()); ended != nil {
				err = ended
				return
			}
			use, first, err = l.keys.Begin(call.Key, body)
		})
		switch {
		case err != nil:
			return nil, err
		case first:
			return l.firstUse(ctx, call, use)
		}
		select {
		case <-use.Done():
		case <-l.done:
			return nil, l.ended
		case <-ctx.Done():
			return nil, reins.ContextError(ctx)
		}
		if !use.Began() {
			continue // its caller left before it began; this one has not
		}
		if ended := l.live(); ended != nil {
			return nil, ended
		}
		res, err := use.Outcome()
		if res != nil {
			again := *res // its caller may change the first one's
			res = &again
		}
		return res, err
	}
}

// firstUse runs the call that a key was first used for. A key under which
// nothing began may be used again.
func (l *lease) firstUse(ctx context.Context, call reins.Call, use *queue.Keyed[*reins.Result]) (*reins.Result, error) {
	var res *reins.Result
	began, err := false, error(errPanicked)
	defer func() {
		l.r.update(func(*state) {
			if began {
				l.keys.Settle(use, res, err, weight(res))
			} else {
				l.keys.Forget(use, err)
			}
		})
	}()
	res, began, err = l.run(ctx, call)
	return res, err
}

// errPanicked stands until a call has come to an end.
var errPanicked = reins.Errorf(reins.CodeInternal, "the caller's Progress function did not return")

// weight is about how many bytes a kept result holds.
func weight(res *reins.Result) int {
	n := 1024
	if res == nil {
		return n
	}
	n += len(res.Data)
	if res.Snapshot != nil {
		n += len(res.Snapshot.Text)
	}
	if res.Screenshot != nil {
		n += len(res.Screenshot.Image)
	}
	if res.Reading != nil {
		n += len(res.Reading.Markdown)
	}
	if res.Console != nil || res.Network != nil {
		n += 32 << 10 // about what one answer holds of them
	}
	return n
}

// run takes a call all the way. Began says whether an effect may have happened.
// The operation settles whatever happens, also when its caller's own Progress
// function panics.
func (l *lease) run(ctx context.Context, call reins.Call) (res *reins.Result, began bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	op, err := l.admit(call, cancel)
	if err != nil {
		return nil, false, err
	}
	err = errPanicked // unless it did not
	defer func() {
		res, err = op.settle(res, err)
		began = !op.began.IsZero()
	}()
	if res, err = op.perform(ctx); err != nil {
		res, err = nil, op.r.secrets.hideError(op.explain(err))
	}
	op.r.secrets.hide(res)
	return res, false, err
}

// perform takes an admitted operation from the queue to its result. The checks
// before the effect are in this order: turn, gate, browser, and then, under the
// lock that ends authority too, everything once more.
func (op *operation) perform(ctx context.Context) (*reins.Result, error) {
	if err := op.turn(ctx); errors.Is(err, errSuperseded) {
		res := &reins.Result{Meta: op.meta()}
		res.Meta.Started, res.Meta.Duration = op.admitted, time.Since(op.admitted)
		return res, nil
	} else if err != nil {
		return nil, err
	}
	if err := op.gate(ctx); err != nil {
		return nil, err
	}
	if !op.verb.NeedsBrowser() {
		if err := op.begin(ctx, nil); err != nil {
			return nil, err
		}
		return op.inside(ctx)
	}
	inc, conn, err := op.ready(ctx)
	if err != nil {
		return nil, err
	}
	op.tell(reins.Progress{Stage: "running"})
	ctx, stop := context.WithTimeoutCause(ctx, op.limit(), reins.Errorf(reins.CodeTimeout,
		"%s did not end within %s and was stopped", op.verb, op.limit()).In(reins.PhaseAction))
	defer stop()
	if op.verb == reins.VerbRefresh {
		return op.refresh(ctx, inc)
	}
	reply, err := op.act(ctx, inc, conn)
	if err != nil {
		return nil, err
	}
	return op.conclude(ctx, inc, conn, reply)
}

// turn waits for the operation's turn and tells what it waits for (OPS-4).
func (op *operation) turn(ctx context.Context) error {
	op.tellPosition()
	for {
		select {
		case <-op.entry.Ready():
			return op.granted()
		case <-op.entry.Moved():
			op.tellPosition()
		case <-ctx.Done():
			cause := reins.ContextError(ctx)
			never := false
			op.r.update(func(s *state) { never = s.queue.Cancel(op.entry, cause) })
			if never {
				return cause
			}
			<-op.entry.Ready() // closed: it runs or has ended
			ctx = context.WithoutCancel(ctx)
		}
	}
}

// granted is what became of the wait; an operation that named no tab learns in
// per-tab order which one it is for.
func (op *operation) granted() error {
	op.r.mu.Lock()
	defer op.r.mu.Unlock()
	phase, err := op.r.st.queue.Outcome(op.entry)
	switch phase {
	case queue.Cancelled:
		return err
	case queue.Superseded:
		return errSuperseded
	}
	if tab := op.entry.Tab(); tab != "" && op.tab == "" {
		op.tab = tab
		if _, ref := op.action.Target(); ref == "" { // a ref says itself which tab it is in
			op.action = onTab(op.action, tab)
		}
	}
	return nil
}

func (op *operation) tell(p reins.Progress) {
	if op.progress != nil {
		op.progress(p)
	}
}

func (op *operation) tellPosition() {
	if op.progress == nil {
		return
	}
	op.r.mu.Lock()
	n := op.r.st.queue.Position(op.entry)
	op.r.mu.Unlock()
	if n > 0 {
		op.tell(reins.Progress{Stage: "queue", Position: n})
	}
}

// check is why the operation must not go on, or nil.
func (op *operation) check(ctx context.Context) error {
	op.r.mu.Lock()
	defer op.r.mu.Unlock()
	return op.checkLocked(ctx)
}

func (op *operation) checkLocked(ctx context.Context) error {
	if err := op.lease.liveLocked(time.Now()); err != nil {
		return err
	}
	if err := reins.ContextError(ctx); err != nil {
		return err
	}
	return nil
}

// errMoved says that the connection was lost between the look and the begin.
var errMoved = errors.New("the connection is not current any more")

// errReleasing says that what acts on the page has to wait for a release of what
// nobody holds any more.
var errReleasing = errors.New("a release is on its way")

// ready waits for a browser and begins on it.
func (op *operation) ready(ctx context.Context) (*incarnation, *connection, error) {
	for {
		inc, conn, err := op.r.browser(ctx, op)
		if err != nil {
			return nil, nil, err
		}
		switch err := op.begin(ctx, conn); {
		case err == nil:
			return inc, conn, nil
		case errors.Is(err, errReleasing):
			if err := op.r.awaitReleased(ctx); err != nil {
				return nil, nil, err
			}
		case !errors.Is(err, errMoved):
			return nil, nil, err
		}
	}
}

// begin is the last check. It and the ends of authority exclude each other: an
// operation that passed has begun, one that did not never will (LSE-6).
func (op *operation) begin(ctx context.Context, conn *connection) (err error) {
	op.r.update(func(s *state) {
		if err = op.checkLocked(ctx); err != nil {
			return
		}
		if refused := op.refusedLocked(s, time.Now()); refused != nil {
			err = refused
			return
		}
		if conn != nil {
			if s.inc != conn.inc || s.inc.conn != conn || s.inc.ctx.Err() != nil {
				err = errMoved
				return
			}
			if s.releasing != nil && !op.verb.ReadOnly() {
				err = errReleasing
				return
			}
			if stale := op.knowsLocked(conn.id()); stale != nil {
				err = stale
				return
			}
			if elsewhere := op.applyLocked(conn.selected); elsewhere != nil {
				err = elsewhere
				return
			}
			op.on = conn.id()
		}
		op.begun, op.began = true, time.Now()
		if op.counts() {
			s.control.Began()
		}
	})
	return err
}

// explain makes the error a caller gets: of the closed set, and saying that an
// effect may have happened where one may.
func (op *operation) explain(err error) *reins.Error {
	e := reins.AsError(err)
	if e.Code == reins.CodeInternal {
		op.r.gen.host.log.Error("operation failed", "operation", op.id, "verb", op.verb, "err", op.r.secrets.text(err.Error()))
		return e.With("operation", op.id)
	}
	if op.began.IsZero() || op.verb.ReadOnly() || !interrupted(e.Code) || op.verb.Class(reins.RoleHuman) == reins.ClassControl {
		return e
	}
	out := e.With("effect", "unknown")
	out.Message += "; what " + string(op.verb) + " did until then may have happened"
	return out
}

// interrupted are the codes of an operation that was stopped from outside while
// it ran.
func interrupted(c reins.Code) bool {
	switch c {
	case reins.CodeCancelled, reins.CodeTimeout, reins.CodeLeaseEnded, reins.CodeRuntimeStopped,
		reins.CodeRetired, reins.CodeBrowserEnded, reins.CodeHumanControlConflict, reins.CodeHumanControlled:
		return true
	}
	return false
}

// settle frees what the operation held, once, and then tells the audit trail
// (GATE-3), before anybody can take it for gone: a runtime that stops waits for the
// operations there are. A result that comes when authority has ended is dropped
// under the lock that ends it: what is returned was done before (LSE-6).
func (op *operation) settle(res *reins.Result, err error) (*reins.Result, error) {
	r := op.r
	r.update(func(s *state) {
		if !s.queue.Settle(op.entry) {
			s.queue.Cancel(op.entry, err) // it may still wait when its caller panicked
		}
		delete(s.ops, op)
		if op.begun && op.counts() {
			s.control.Settled(time.Now())
		}
		if ended := op.lease.liveLocked(time.Now()); err == nil && ended != nil {
			wipe(res)
			res, err = nil, op.explain(ended)
		}
		if res != nil {
			r.learnLocked(op, res)
		}
		rec := r.secrets.hideRecord(op.record(err))
		if op.class == reins.ClassRawInput {
			op.tallyLocked(rec)
			return
		}
		r.gen.audit.send(rec)
		op.didLocked(s, rec)
	})
	close(op.settled)
	return res, err
}

// wipe clears the bytes of a result that nobody is to get (LSE-8).
func wipe(res *reins.Result) {
	clear(res.Data)
	if res.Screenshot != nil {
		clear(res.Screenshot.Image)
	}
}

// record is the operation's line of the audit trail (GATE-4).
func (op *operation) record(err error) reins.Record {
	b := op.lease.grant.binding
	rec := reins.Record{
		Time: time.Now(), Operation: op.id, Project: b.Project, Resource: b.Resource,
		Actor: b.Actor, Role: b.Role, CapabilityID: op.lease.grant.id, LeaseID: op.lease.id,
		Run: b.Run, Revision: b.Revision, Incarnation: op.on.incarnation, Tab: op.tab,
		Action: string(op.verb), Class: op.class, Target: op.target,
		Outcome: reins.OutcomeCompleted, Duration: time.Since(op.admitted),
	}
	e := reins.AsError(err)
	if e == nil {
		return rec
	}
	rec.Code = e.Code
	switch {
	case e.Code == reins.CodeCompletionUnknown || e.Details["effect"] == "unknown":
		rec.Outcome = reins.OutcomeUnknown
	case op.began.IsZero() && interrupted(e.Code) && e.Phase != reins.PhaseHook:
		rec.Outcome = reins.OutcomeCancelled
	case e.Code == reins.CodeCancelled:
		rec.Outcome = reins.OutcomeCancelled
	default:
		rec.Outcome = reins.OutcomeFailed
	}
	return rec
}

// command is what the driver is asked to do.
func (op *operation) command(files map[string]string) driver.Command {
	op.r.mu.Lock()
	watched := len(op.r.st.view.subs) > 0 && op.class != reins.ClassRawInput
	op.r.mu.Unlock()
	return driver.Command{Action: op.action, Lease: op.lease.id, Files: files, Redact: op.r.secrets.all(), Watched: watched}
}
