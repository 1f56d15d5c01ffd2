package host

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
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
	tab    reins.TabID

	begun bool // guarded by the resource's lock: an effect may have happened
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
	var use *queue.Keyed[*reins.Result]
	var first bool
	l.r.update(func(*state) {
		if ended := l.liveLocked(time.Now()); ended != nil {
			err = ended
			return
		}
		use, first, err = l.keys.Begin(call.Key, body)
	})
	if err != nil {
		return nil, err
	}
	if first {
		res, began, err := l.run(ctx, call)
		l.r.update(func(*state) {
			if began {
				l.keys.Settle(use, res, err, weight(res))
			} else {
				l.keys.Forget(use, err)
			}
		})
		return res, err
	}
	select {
	case <-use.Done():
		res, err := use.Outcome()
		return res, err
	case <-l.done:
		return nil, l.ended
	case <-ctx.Done():
		return nil, reins.ContextError(ctx)
	}
}

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
	return n
}

// run takes a call all the way. Began says whether an effect may have happened.
func (l *lease) run(ctx context.Context, call reins.Call) (_ *reins.Result, began bool, _ error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	op, err := l.admit(call, cancel)
	if err != nil {
		return nil, false, err
	}
	res, err := op.perform(ctx)
	if err != nil {
		res, err = nil, op.explain(err)
	}
	op.settle(res, err)
	return res, !op.began.IsZero(), err
}

// admit checks authority and verb and puts the call into the queue (CAP-7,
// OPS-2).
func (l *lease) admit(call reins.Call, cancel context.CancelCauseFunc) (op *operation, err error) {
	r, verb, role := l.r, call.Action.Verb(), l.grant.binding.Role
	op = &operation{
		id: capability.NewID(capability.KindOperation), r: r, lease: l, action: call.Action, verb: verb,
		class: verb.Class(role), admitted: time.Now(), cancel: cancel, settled: make(chan struct{}),
		progress: call.Progress,
	}
	op.tab, _ = call.Action.Target()
	if role == reins.RoleAgent && !permitted(r.spec, verb) {
		err = reins.Errorf(reins.CodeDenied, "the registration of this browser does not permit the verb %q to agents; it permits %v", verb, r.spec.Verbs).In(reins.PhaseAdmission)
	}
	r.update(func(s *state) {
		if ended := l.liveLocked(op.admitted); ended != nil {
			err = ended
		}
		if err != nil {
			return
		}
		req := r.requestLocked(op)
		req.Lease, req.Watch = l.id, op.progress != nil
		if op.entry, err = s.queue.Push(req); err == nil {
			s.ops[op] = struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	return op, nil
}

// permitted reports whether agents may use a verb on a resource. What was made
// under an agent's lease it may always list, read and delete (LSE-8).
func permitted(spec reins.BrowserSpec, v reins.Verb) bool {
	switch v {
	case reins.VerbListArtifacts, reins.VerbReadArtifact, reins.VerbDeleteArtifact:
		return true
	}
	for _, p := range spec.Verbs {
		if p == v {
			return true
		}
	}
	return false
}

// requestLocked is where an operation queues (SCH-2, SCH-3, SCH-4, OPS-7).
func (r *resource) requestLocked(op *operation) queue.Request {
	tab, ref := op.action.Target()
	if tab == "" && ref != "" {
		tab = r.st.docs[document(ref)]
		if tab == "" {
			return queue.Request{Place: queue.Alone}
		}
	}
	switch a := op.action.(type) {
	case reins.ListTabs, reins.OpenTab, reins.SelectTab:
		return queue.Request{Place: queue.OnContext}
	case reins.ListArtifacts, reins.ReadArtifact, reins.DeleteArtifact:
		return queue.Request{Place: queue.Apart}
	case reins.CloseTab:
		switch {
		case a.Force:
			return queue.Request{Place: queue.Past}
		case tab == "":
			return queue.Request{Place: queue.OnSelected, Close: true}
		}
		return queue.Request{Place: queue.OnTab, Tab: tab, Close: true}
	}
	if tab == "" {
		return queue.Request{Place: queue.OnSelected}
	}
	return queue.Request{Place: queue.OnTab, Tab: tab}
}

// perform takes an admitted operation from the queue to its result. The checks
// before the effect are in this order: turn, gate, browser, and then, under the
// lock that ends authority too, everything once more.
func (op *operation) perform(ctx context.Context) (*reins.Result, error) {
	if err := op.turn(ctx); err != nil {
		return nil, err
	}
	if err := op.gate(ctx); err != nil {
		return nil, err
	}
	if !op.verb.NeedsBrowser() {
		if err := op.begin(ctx, nil); err != nil {
			return nil, err
		}
		return op.artifacts(ctx)
	}
	inc, conn, err := op.ready(ctx)
	if err != nil {
		return nil, err
	}
	op.tell(reins.Progress{Stage: "running"})
	ctx, stop := context.WithTimeoutCause(ctx, op.limit(), reins.Errorf(reins.CodeTimeout,
		"%s did not end within %s and was stopped", op.verb, op.limit()).In(reins.PhaseAction))
	defer stop()
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
			op.r.mu.Lock()
			phase, err := op.r.st.queue.Outcome(op.entry)
			op.r.mu.Unlock()
			if phase == queue.Cancelled {
				return err
			}
			return nil
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

// gate asks the host before any side effect (GATE-1).
func (op *operation) gate(ctx context.Context) error {
	if err := op.check(ctx); err != nil {
		return err
	}
	hook := op.r.gen.host.hooks.BeforeOperation
	if hook == nil {
		return nil
	}
	tab, ref := op.action.Target()
	view := reins.Operation{
		ID: op.id, Authority: op.lease.Authority(), Action: op.action, Verb: op.verb,
		Class: op.class, Tab: tab, Ref: ref, Started: time.Now(),
	}
	call := func(ctx context.Context) error { return hook(ctx, view) }
	return ask(ctx, "BeforeOperation", op.r.gen.host.limits.GateTimeout, call, func() {})
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
		if conn != nil {
			if s.inc != conn.inc || s.inc.conn != conn || s.inc.ctx.Err() != nil {
				err = errMoved
				return
			}
			if stale := op.knowsLocked(conn.id()); stale != nil {
				err = stale
				return
			}
			op.on = conn.id()
			if tab := op.entry.Tab(); tab != "" && op.tab == "" {
				op.action, op.tab = onTab(op.action, tab), tab
			}
		}
		op.begun, op.began = true, time.Now()
	})
	return err
}

// knowsLocked refuses what rests on tab IDs, refs or a focus that belong to an
// earlier connection (TAB-1, TAB-2).
func (op *operation) knowsLocked(now connectionID) *reins.Error {
	l := op.lease
	if l.seen == (connectionID{}) {
		l.seen, l.told = now, now
	}
	tab, ref := op.action.Target()
	switch {
	case ref != "" && l.seen != now:
		return reins.Errorf(reins.CodeStaleRef, "ref %q is from before the browser's driver was replaced; take a snapshot and use a new one", string(ref)).In(reins.PhaseAction)
	case tab != "" && l.told != now:
		return reins.Errorf(reins.CodeInvalidState, "tab %q is from before the browser's driver was replaced; list the tabs and use a new ID", string(tab)).In(reins.PhaseAction)
	case ref == "" && usesFocus(op.verb) && l.seen != now:
		return reins.Errorf(reins.CodeObserveAgain, "the browser's driver was replaced, so the focus may be elsewhere; take a snapshot before %s without a ref", op.verb).In(reins.PhaseAction)
	}
	return nil
}

func usesFocus(v reins.Verb) bool {
	return v == reins.VerbPress || v == reins.VerbType || v == reins.VerbPressKey
}

// onTab names the tab that an action was resolved to.
func onTab(a reins.Action, tab reins.TabID) reins.Action {
	switch a := a.(type) {
	case reins.Navigate:
		a.Tab = tab
		return a
	case reins.Snapshot:
		a.Tab = tab
		return a
	case reins.Screenshot:
		a.Tab = tab
		return a
	case reins.Click:
		a.Tab = tab
		return a
	case reins.Fill:
		a.Tab = tab
		return a
	case reins.Press:
		a.Tab = tab
		return a
	case reins.Type:
		a.Tab = tab
		return a
	case reins.PressKey:
		a.Tab = tab
		return a
	case reins.CloseTab:
		a.Tab = tab
		return a
	}
	return a
}

// limit is the operation's own deadline once it runs (OPS-7): above every
// bound the driver keeps by itself, so that it ends only what hangs.
func (op *operation) limit() time.Duration {
	const margin = 20 * time.Second
	waits := func(w reins.Waits) time.Duration {
		d := margin
		for _, p := range []*reins.Duration{w.Actionable, w.Settle} {
			if p != nil {
				d += time.Duration(*p)
			} else {
				d += 5 * time.Second
			}
		}
		return d
	}
	loads := func(d reins.Duration) time.Duration {
		if d == 0 {
			return 30*time.Second + margin
		}
		return time.Duration(d) + margin
	}
	switch a := op.action.(type) {
	case reins.Navigate:
		return loads(a.Timeout)
	case reins.OpenTab:
		return loads(a.Timeout)
	case reins.Click:
		return waits(a.Waits)
	case reins.Fill:
		return waits(a.Waits) + typing(len(textOf(a.Value)))
	case reins.Press:
		return waits(a.Waits)
	case reins.Type:
		return waits(a.Waits) + typing(len(a.Text))
	case reins.PressKey:
		return waits(a.Waits)
	}
	return 60 * time.Second
}

// typing is what n bytes of text may take, key by key.
func typing(n int) time.Duration {
	return min(time.Duration(n)*10*time.Millisecond, 10*time.Minute)
}

func textOf(v reins.Value) string {
	if v.Text != nil {
		return *v.Text
	}
	return ""
}

// explain makes the error a caller gets: of the closed set, and saying that an
// effect may have happened where one may.
func (op *operation) explain(err error) *reins.Error {
	e := reins.AsError(err)
	if e.Code == reins.CodeInternal {
		op.r.gen.host.log.Error("operation failed", "operation", op.id, "verb", op.verb, "err", err)
		return e.With("operation", op.id)
	}
	if op.began.IsZero() || op.verb.ReadOnly() || !interrupted(e.Code) {
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
		reins.CodeRetired, reins.CodeBrowserEnded:
		return true
	}
	return false
}

// settle frees what the operation held, once, and then tells the audit trail
// (GATE-3).
func (op *operation) settle(res *reins.Result, err error) {
	r := op.r
	r.update(func(s *state) {
		s.queue.Settle(op.entry)
		delete(s.ops, op)
		if res != nil {
			r.learnLocked(op, res)
		}
	})
	r.gen.audit.send(op.record(err))
	close(op.settled)
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
	return driver.Command{Action: op.action, Lease: op.lease.id, Files: files}
}
