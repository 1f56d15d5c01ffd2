package host

import (
	"cmp"
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/control"
)

// takeover is what a resource keeps beside the rules of package control.
type takeover struct {
	timer *time.Timer // calls Pass at due
	due   time.Time
	seen  signature // what the last event told
	taken uint64    // the takeovers that were followed
	on    uint64    // the incarnation that the last one was on (CTL-7)
}

// signature changes with whatever of a snapshot of control is told (CTL-6).
type signature struct {
	control, handoffs uint64
	active            bool
	availability      reins.Availability
}

// followControl does what a change of control asks for: it is called at the end
// of each update, so that nothing that changes it can forget.
func (r *resource) followControl(s *state, now time.Time) {
	if taken := s.control.Taken(); taken != s.takeover.taken {
		s.takeover.taken, s.takeover.on = taken, r.incarnationLocked()
		r.excludeLocked(s, now)
	}
	if next := s.control.Next(); !next.Equal(s.takeover.due) {
		s.takeover.due = next
		if s.takeover.timer != nil {
			s.takeover.timer.Stop()
			s.takeover.timer = nil
		}
		if !next.IsZero() {
			s.takeover.timer = time.AfterFunc(next.Sub(now), func() { r.update(func(*state) {}) })
		}
	}
	sign := signature{s.control.Version(), s.handoffs.Version(), s.control.Running() > 0, r.availabilityLocked()}
	if sign != s.takeover.seen {
		s.takeover.seen = sign
		is := r.controlLocked("")
		r.publish(reins.Event{Kind: "control", Control: &is})
	}
}

// excludeLocked refuses what other people have in the queue when somebody
// takes control (CTL-3). Of agents there is nothing left.
func (r *resource) excludeLocked(s *state, now time.Time) {
	cause := s.control.Refuse(control.Who{Input: true}, now)
	r.cancelLocked(s, cause, func(op *operation) bool { return !op.begun && op.refusedLocked(s, now) != nil })
	for _, g := range s.grants { // they could not let go any more
		if g.lease != nil && !s.control.Holds(g.lease.id) {
			r.restLocked(s, g.lease)
		}
	}
}

// availabilityLocked is whether there is a browser to control (CTL-6).
func (r *resource) availabilityLocked() reins.Availability {
	switch {
	case r.st.fence != nil || r.st.life == reins.StateDestroyed:
		return reins.Destroyed
	case r.incarnationLocked() == 0:
		return reins.Disconnected
	case r.st.inc.conn == nil:
		return reins.Degraded
	}
	return reins.Available
}

// controlLocked is who is in control, as a lease sees it.
func (r *resource) controlLocked(leaseID string) reins.Control {
	out := r.st.control.Snapshot(leaseID)
	out.Availability = r.availabilityLocked()
	out.Requests = r.st.handoffs.Shown()
	for i := range out.Requests {
		out.Requests[i].Reason = r.secrets.text(out.Requests[i].Reason)
	}
	return out
}

// counts reports whether a takeover waits for the operation: it is an agent's,
// and not one that itself waits for a person (CTL-2, CTL-8).
func (op *operation) counts() bool {
	return op.lease.grant.binding.Role == reins.RoleAgent && op.verb != reins.VerbRequestHuman
}

// refusedLocked is why a takeover keeps the operation from beginning, or nil.
func (op *operation) refusedLocked(s *state, now time.Time) *reins.Error {
	if op.verb == reins.VerbRequestHuman {
		return nil
	}
	return s.control.Refuse(control.Who{
		Lease: op.lease.id, Agent: op.lease.grant.binding.Role == reins.RoleAgent,
		Input: op.verb.NeedsBrowser() && !op.verb.ReadOnly(),
	}, now)
}

// overtakenLocked reports whether an agent's action rests on what it saw before
// a person had control (CTL-7).
func (op *operation) overtakenLocked(now connectionID) bool {
	s := &op.r.st
	_, ref := op.action.Target()
	rests := ref != "" || usesFocus(op.verb)
	return rests && op.counts() && !op.verb.ReadOnly() &&
		s.takeover.on == now.incarnation && op.lease.observed < s.takeover.taken
}

// departLocked ends what a lease that ends had of takeover and of held input
// (LSE-4, LSE-5). It is clean-up that the runtime owes: nobody is asked any more
// (GATE-2).
func (r *resource) departLocked(s *state, l *lease, cause *reins.Error) {
	l.input.flushLocked(r)
	dropped := s.control.Drop(l.id, cause)
	if !r.restLocked(s, l) && dropped {
		r.departedLocked(s, l, time.Now(), nil)
	}
}

// departed records the clean-up after a lease.
func (r *resource) departed(l *lease, began time.Time, err error) {
	r.update(func(s *state) { r.departedLocked(s, l, began, err) })
}

func (r *resource) departedLocked(s *state, l *lease, began time.Time, err error) {
	b := l.grant.binding
	rec := reins.Record{
		Time: time.Now(), Project: b.Project, Resource: b.Resource, Actor: b.Actor, Role: b.Role,
		CapabilityID: l.grant.id, LeaseID: l.id, Run: b.Run, Revision: s.attachment.Revision, Incarnation: r.incarnationLocked(),
		Action: "releaseParticipant", Outcome: reins.OutcomeCompleted, Duration: time.Since(began),
	}
	if e := reins.AsError(err); e != nil {
		rec.Outcome, rec.Code = reins.OutcomeFailed, e.Code
	}
	r.gen.audit.send(r.secrets.hideRecord(rec))
}

// inside runs the verbs that need no browser.
func (op *operation) inside(ctx context.Context) (*reins.Result, error) {
	var res *reins.Result
	var err error
	switch a := op.action.(type) {
	case reins.GetControl:
		res = op.controlResult()
	case reins.RequestControl:
		res, err = op.requestControl(ctx, a)
	case reins.RenewControl:
		res, err = op.renewControl(a)
	case reins.ReleaseControl:
		op.r.update(op.giveBackLocked)
		res = op.controlResult()
	case reins.StopAgents:
		res, err = op.stopAgents(ctx)
	case reins.RequestHuman:
		res, err = op.requestHuman(ctx, a)
	case reins.AnswerHuman:
		res, err = op.answerHuman(a)
	case reins.SetViewport:
		res, err = op.setViewport(ctx, a)
	case reins.Inspect:
		res, err = op.inspect()
	default:
		return op.artifacts(ctx)
	}
	if err != nil {
		return nil, err
	}
	res.Meta = op.meta()
	return res, nil
}

// controlResult is the answer of the verbs of control.
func (op *operation) controlResult() *reins.Result {
	op.r.mu.Lock()
	defer op.r.mu.Unlock()
	return op.controlResultLocked()
}

func (op *operation) controlResultLocked() *reins.Result {
	is := op.r.controlLocked(op.lease.id)
	return &reins.Result{Control: &is}
}

// requestControl asks for control and waits until it is held (CTL-2). Agents
// that have not begun are refused in the same step. A caller that leaves has
// asked for nothing, and holds nothing (CTL-5).
func (op *operation) requestControl(ctx context.Context, a reins.RequestControl) (*reins.Result, error) {
	var claim *control.Claim
	var err error
	running, kept := 0, false
	defer func() {
		if claim != nil && !kept { // also when the caller's Progress panics
			op.r.update(func(s *state) { s.control.Withdraw(claim, errWithdrawn()) })
		}
	}()
	op.r.update(func(s *state) {
		now := time.Now()
		if err = op.checkLocked(ctx); err != nil {
			return
		}
		claim, err = s.control.Request(control.Request{
			Lease: op.lease.id, Actor: op.lease.grant.binding.Actor,
			Wait: cmp.Or(time.Duration(a.Wait), reins.DefaultControlWait), Hold: cmp.Or(time.Duration(a.Hold), reins.DefaultControlHold),
		}, now)
		if err != nil {
			return
		}
		running = s.control.Running()
		conflict := reins.Errorf(reins.CodeHumanControlConflict, "a person, %q, is taking control of the browser; try again when they are done", op.lease.grant.binding.Actor).In(reins.PhaseAdmission)
		op.r.cancelLocked(s, conflict, func(o *operation) bool { return o.counts() && !o.begun })
	})
	if err != nil {
		return nil, err
	}
	if running > 0 {
		op.tell(reins.Progress{Stage: "agents", Position: running})
	}
	select {
	case <-claim.Ready():
		op.awaitRest(ctx, claim)
	case <-ctx.Done():
	}
	var res *reins.Result
	op.r.update(func(s *state) { // what is told and what is so are one step
		if ended := reins.ContextError(ctx); ended != nil {
			s.control.Withdraw(claim, ended)
			err = ended
		} else if ended := claim.Err(); ended != nil {
			err = ended
		} else {
			kept, res = true, op.controlResultLocked()
		}
	})
	return res, err
}

// awaitRest waits until what others held is let go, so that nothing of theirs
// comes between (INP-2): as long as the claim stands and its caller waits.
func (op *operation) awaitRest(ctx context.Context, claim *control.Claim) {
	var rested []<-chan struct{}
	op.r.mu.Lock()
	for _, g := range op.r.st.grants {
		if l := g.lease; l != nil && l.input.rested != nil {
			rested = append(rested, l.input.rested)
		}
	}
	op.r.mu.Unlock()
	for _, c := range rested {
		select {
		case <-c:
		case <-claim.Over():
			return
		case <-ctx.Done():
			return
		}
	}
}

// errWithdrawn is the end of a request for control that its own side ended.
func errWithdrawn() *reins.Error {
	return reins.Errorf(reins.CodeCancelled, "the request for control was withdrawn").In(reins.PhaseAction)
}

// giveBackLocked ends the lease's claim, whichever it is.
func (op *operation) giveBackLocked(s *state) { s.control.Drop(op.lease.id, errWithdrawn()) }

func (op *operation) renewControl(a reins.RenewControl) (*reins.Result, error) {
	var err error
	op.r.update(func(s *state) {
		_, err = s.control.Renew(op.lease.id, cmp.Or(time.Duration(a.Hold), reins.DefaultControlHold), time.Now())
	})
	if err != nil {
		return nil, err
	}
	return op.controlResult(), nil
}

// stopAgents stops what agents have running, unless another person is in
// control or about to be (OPS-7).
func (op *operation) stopAgents(ctx context.Context) (*reins.Result, error) {
	b := op.lease.grant.binding
	cause := reins.Errorf(reins.CodeHumanControlConflict, "a person, %q, stopped what agents do in the browser", b.Actor).In(reins.PhaseAction)
	var stopped []*operation
	var busy error
	op.r.update(func(s *state) {
		if is := s.control.Snapshot(op.lease.id); is.Actor != "" && !is.Mine {
			busy = reins.Errorf(reins.CodeControlBusy, "another participant, %q, takes or has control; only they can stop the agents", is.Actor).In(reins.PhaseAdmission)
			return
		}
		stopped = op.r.cancelLocked(s, cause, func(o *operation) bool { return o.counts() && o.begun })
	})
	if busy != nil {
		return nil, busy
	}
	if err := settled(ctx, stopped); err != nil { // those: what begins afterwards was not stopped
		return nil, err
	}
	return op.controlResult(), nil
}

// requestHuman waits for a person (CTL-8).
func (op *operation) requestHuman(ctx context.Context, a reins.RequestHuman) (*reins.Result, error) {
	wait := cmp.Or(time.Duration(a.Timeout), reins.DefaultHumanWait)
	var asked *control.Handoff
	var err error
	op.r.update(func(s *state) {
		now := time.Now()
		if err = op.checkLocked(ctx); err != nil {
			return
		}
		asked, err = s.handoffs.Ask(op.lease.id, reins.HumanRequest{
			ID: op.id, Actor: op.lease.grant.binding.Actor, Reason: a.Reason, Since: now, Expires: now.Add(wait),
		})
	})
	if err != nil {
		return nil, err
	}
	answer := reins.HumanAnswer{Outcome: reins.HumanExpired}
	defer op.r.update(func(s *state) { s.handoffs.Drop(asked) }) // also when the caller's Progress panics
	op.tell(reins.Progress{Stage: "person"})
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-asked.Done():
	case <-late.C:
	case <-ctx.Done():
		return nil, reins.ContextError(ctx)
	}
	op.r.update(func(s *state) {
		s.handoffs.Drop(asked)
		select {
		case <-asked.Done(): // in the same instant as the deadline, and then it counts
			answer = asked.Answer()
		default:
		}
	})
	return &reins.Result{Human: &answer}, nil
}

// answerHuman ends a hand-off. Control goes back first, so that the agent does
// not come to a browser that is still held.
func (op *operation) answerHuman(a reins.AnswerHuman) (*reins.Result, error) {
	answer := reins.HumanAnswer{Outcome: reins.HumanDone, Actor: op.lease.grant.binding.Actor, Note: a.Note}
	if a.Decline {
		answer.Outcome = reins.HumanDeclined
	}
	var err error
	op.r.update(func(s *state) {
		if err = s.handoffs.Answer(a.Request, answer); err == nil && !a.Decline {
			op.giveBackLocked(s)
		}
	})
	if err != nil {
		return nil, err
	}
	return op.controlResult(), nil
}
