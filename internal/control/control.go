package control

import (
	"time"

	"github.com/reins-browser/reins"
)

// Request is what a person asks for; both durations are positive.
type Request struct {
	Lease string
	Actor string
	Wait  time.Duration // for running agent operations (CTL-2)
	Hold  time.Duration // until it expires unless renewed (CTL-4)
}

// Who is somebody who wants to begin something.
type Who struct {
	Lease string
	Agent bool
	Input bool // it acts on the browser; watching is everybody's (CTL-3)
}

// Claim is one person's exclusive control, asked for or held. Ready may be
// called without the owner's lock.
type Claim struct {
	req   Request
	held  bool
	since time.Time
	until time.Time
	ready chan struct{}
	over  chan struct{}
	err   *reins.Error
}

// Ready is closed when control is held or the request has ended without.
func (c *Claim) Ready() <-chan struct{} { return c.ready }

// Over is closed when the claim has ended, held or not.
func (c *Claim) Over() <-chan struct{} { return c.over }

// Err is why control was not given, or why it is held no longer; nil while it
// is held. It may be read once Ready is closed, under the owner's lock.
func (c *Claim) Err() *reins.Error { return c.err }

// Control is who is in control of one browser. The zero value is nobody.
// Guarded by its owner's lock.
type Control struct {
	claim   *Claim // pending or held; nil when neither
	running int    // agent operations that have begun and not settled
	taken   uint64 // how often control was given
	version uint64
}

// Version grows with every change of what a snapshot shows, but for the number
// of running operations.
func (c *Control) Version() uint64 { return c.version }

// Taken is how often control was given to somebody (CTL-7).
func (c *Control) Taken() uint64 { return c.taken }

// Running is the number of agent operations that run.
func (c *Control) Running() int { return c.running }

// Request asks for control. It is control_busy while somebody, be it the same
// lease, asks for it or holds it; the error names the person, neither token nor
// lease (CTL-1).
func (c *Control) Request(r Request, now time.Time) (*Claim, error) {
	c.Pass(now)
	if c.claim != nil {
		return nil, c.busy(r.Lease)
	}
	c.claim = &Claim{req: r, since: now, until: now.Add(r.Wait), ready: make(chan struct{}), over: make(chan struct{})}
	c.version++
	c.give(now)
	return c.claim, nil
}

func (c *Control) busy(lease string) *reins.Error {
	does := "asked for"
	if c.claim.held {
		does = "has"
	}
	if c.claim.req.Lease == lease {
		return reins.Errorf(reins.CodeControlBusy, "this lease %s control already; renew it, or release it first", does).In(reins.PhaseAdmission)
	}
	return c.details(reins.Errorf(reins.CodeControlBusy, "another participant, %q, %s control already; wait until they are done", c.claim.req.Actor, does))
}

// details adds who, since when and until when.
func (c *Control) details(e *reins.Error) *reins.Error {
	return e.With("actor", c.claim.req.Actor).With("since", c.claim.since).With("expires", c.claim.until).In(reins.PhaseAdmission)
}

// give hands control over when nothing of the agents runs any more.
func (c *Control) give(now time.Time) {
	q := c.claim
	if q == nil || q.held || c.running > 0 {
		return
	}
	q.held, q.since, q.until = true, now, now.Add(q.req.Hold)
	c.taken++
	c.version++
	close(q.ready)
}

// Began counts an agent's operation whose effects begin; Settled counts it out.
// Between the two a request waits (CTL-2).
func (c *Control) Began() { c.running++ }

// Settled is the other end of Began.
func (c *Control) Settled(now time.Time) {
	c.running--
	c.Pass(now)
	c.give(now)
}

// Renew replaces the expiry of the lease's hold (CTL-4). A lease that does not
// hold control, or not any more, is invalid_state.
func (c *Control) Renew(lease string, hold time.Duration, now time.Time) (time.Time, error) {
	c.Pass(now)
	if !c.Holds(lease) {
		return time.Time{}, reins.Errorf(reins.CodeInvalidState, "this lease does not have control; ask for it again").Recover(reins.RecoverRetry).In(reins.PhaseAdmission)
	}
	c.claim.until = now.Add(hold)
	c.version++
	return c.claim.until, nil
}

// Holds reports whether the lease has control.
func (c *Control) Holds(lease string) bool {
	return c.claim != nil && c.claim.held && c.claim.req.Lease == lease
}

// Drop ends the lease's claim, whichever it is, and reports whether there was
// one. A request that waits gets cause (CTL-4, CTL-5).
func (c *Control) Drop(lease string, cause *reins.Error) bool {
	if c.claim == nil || c.claim.req.Lease != lease {
		return false
	}
	c.end(cause)
	return true
}

// Withdraw is Drop for one claim only, whatever its lease asked for since.
func (c *Control) Withdraw(q *Claim, cause *reins.Error) {
	if c.claim == q {
		c.end(cause)
	}
}

// End ends whatever claim there is, because the browser has ended (CTL-4).
func (c *Control) End(cause *reins.Error) {
	if c.claim != nil {
		c.end(cause)
	}
}

func (c *Control) end(cause *reins.Error) {
	q := c.claim
	c.claim = nil
	c.version++
	q.err = cause
	if !q.held {
		close(q.ready)
	}
	close(q.over)
}

// Pass ends what has come to its time: a request with timeout, a hold as it is
// (CTL-4, CTL-5).
func (c *Control) Pass(now time.Time) {
	q := c.claim
	if q == nil || now.Before(q.until) {
		return
	}
	why := reins.Errorf(reins.CodeTimeout, "control was not given within %s: %d operations of agents still run; stop them, or ask again and wait longer", q.req.Wait, c.running)
	if q.held {
		why = reins.Errorf(reins.CodeTimeout, "control was held until its time was over and not renewed; ask for it again")
	}
	c.end(why.In(reins.PhaseAction))
}

// Next is when Pass has to be called; zero when there is nothing to wait for.
func (c *Control) Next() time.Time {
	if c.claim == nil {
		return time.Time{}
	}
	return c.claim.until
}

// Refuse is why somebody may not begin now, or nil: agents while a person asks
// for control or has it, other people's input while one has it (CTL-2, CTL-3).
func (c *Control) Refuse(w Who, now time.Time) *reins.Error {
	c.Pass(now)
	q := c.claim
	switch {
	case q == nil || q.req.Lease == w.Lease:
		return nil
	case w.Agent && !q.held:
		return c.details(reins.Errorf(reins.CodeHumanControlConflict, "a person, %q, is taking control of the browser; try again when they are done", q.req.Actor))
	case w.Agent:
		return c.details(reins.Errorf(reins.CodeHumanControlled, "a person, %q, has control of the browser; try again when they are done", q.req.Actor))
	case q.held && w.Input:
		return c.details(reins.Errorf(reins.CodeHumanControlled, "another person, %q, has control of the browser; watch, or ask for control when they are done", q.req.Actor))
	}
	return nil
}

// Snapshot is who is in control, as lease sees it (CTL-6). Availability and
// requests are the owner's to add.
func (c *Control) Snapshot(lease string) reins.Control {
	out := reins.Control{State: reins.ControlAgent, Agents: c.running}
	if c.running > 0 {
		out.State = reins.ControlAgentActive
	}
	if q := c.claim; q != nil {
		out.State = reins.ControlPending
		if q.held {
			out.State = reins.ControlHuman
		}
		out.Actor, out.Since, out.Expires, out.Mine = q.req.Actor, q.since, q.until, q.req.Lease == lease
	}
	return out
}
