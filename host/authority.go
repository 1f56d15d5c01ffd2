package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// The reasons for which authority ends, as lease_ended tells them (LSE-6).
const (
	reasonExpired  = "expired"
	reasonReleased = "released"
	reasonRevoked  = "revoked"
	reasonReplaced = "replaced"
	reasonDetached = "detached"
)

// grant is a capability and the lease acquired with it. What may change is
// guarded by its resource's lock.
type grant struct {
	r       *resource
	id      string
	hash    capability.Hash
	binding reins.Binding
	life    time.Duration

	expires  time.Time
	timer    *time.Timer // ends it at expires
	lease    *lease      // the live one; nil until acquired
	ended    bool
	renewing bool // a hook call of Renew has not returned (LSE-3)
}

func errEnded(reason string) *reins.Error {
	return reins.Errorf(reins.CodeLeaseEnded, "the lease was ended: %s; acquire a new one with a new capability", reason).
		With("reason", reason).In(reins.PhaseAdmission)
}

// apart returns a binding that shares nothing with b: what hosts and callers do
// to theirs changes nobody's authority.
func apart(b reins.Binding) reins.Binding {
	if b.Session != nil {
		session := *b.Session
		b.Session = &session
	}
	return b
}

// errUnauthorized is the one answer to every token or binding that is not good
// (LSE-1).
func errUnauthorized() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "the capability or binding is not valid")
}

// Issue implements [reins.Runtime] (CAP-2, CAP-3, CAP-5).
func (h *Host) Issue(ctx context.Context, b reins.Binding, life time.Duration) (reins.Capability, error) {
	none := reins.Capability{}
	b = apart(b)
	if err := b.Validate(); err != nil {
		return none, err
	}
	if life == 0 {
		life = h.limits.CapabilityLife
	}
	if life < time.Second || life > h.limits.CapabilityLifeMax {
		return none, reins.Errorf(reins.CodeInvalidInput, "a capability may live from 1s to %s, not %s", h.limits.CapabilityLifeMax, life)
	}
	g, err := h.current()
	if err != nil {
		return none, err
	}
	r, err := g.find(b.Key())
	if err != nil {
		return none, err
	}
	return r.issue(ctx, b, life)
}

func (r *resource) issue(ctx context.Context, b reins.Binding, life time.Duration) (reins.Capability, error) {
	none := reins.Capability{}
	if b.Role == reins.RoleAgent {
		if err := r.inEffect(ctx); err != nil {
			return none, err
		}
	}
	if err := r.fits(b); err != nil {
		return none, err
	}
	if err := r.gen.reserve(); err != nil {
		return none, err
	}
	if err := r.gen.authorize(ctx, b, func() {}); err != nil {
		r.gen.unreserve()
		return none, err
	}
	token := capability.NewToken()
	g := &grant{
		r: r, id: capability.NewID(capability.KindCapability), hash: capability.Sum(token),
		binding: b, life: life, expires: time.Now().Add(life),
	}
	if err := r.admitGrant(g); err != nil {
		r.gen.unreserve()
		return none, err
	}
	return reins.Capability{ID: g.id, Token: token, Binding: apart(b), Expires: g.expires}, nil
}

// inEffect waits until a change of attachment that is under way has taken
// effect (ATT-3).
func (r *resource) inEffect(ctx context.Context) error {
	for {
		r.mu.Lock()
		d := r.st.detaching
		r.mu.Unlock()
		if d == nil {
			return nil
		}
		select {
		case <-d.done:
		case <-ctx.Done():
			return reins.ContextError(ctx)
		}
	}
}

// fits checks a binding against the attachment in effect (CAP-3).
func (r *resource) fits(b reins.Binding) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fitsLocked(b)
}

func (r *resource) fitsLocked(b reins.Binding) error {
	switch a := r.st.attachment; {
	case r.st.fence != nil:
		return r.st.fence
	case b.Role == reins.RoleHuman:
		return nil
	case b.Revision < a.Revision:
		return reins.Errorf(reins.CodeStaleRevision, "revision %d of resource %s is not current any more; the current one is %d", b.Revision, r.key, a.Revision).
			With("revision", a.Revision)
	case r.st.detaching != nil:
		return reins.Errorf(reins.CodeBusy, "the attachment of resource %s is changing; try again", r.key)
	case a.Session == nil:
		return reins.Errorf(reins.CodeConflict, "resource %s is detached; attach a session first", r.key).With("revision", a.Revision)
	case b.Revision != a.Revision || b.AuthorityID != a.AuthorityID || *b.Session != *a.Session:
		return reins.Errorf(reins.CodeConflict, "the binding does not name the session that is attached to resource %s at revision %d", r.key, a.Revision).
			With("revision", a.Revision)
	}
	return nil
}

// admitGrant makes a capability known, unless what it needs has changed while
// the host's hook was asked.
func (r *resource) admitGrant(g *grant) (err error) {
	r.update(func(s *state) {
		if err = r.fitsLocked(g.binding); err != nil {
			return
		}
		if n := len(s.grants); n >= r.gen.host.limits.CapabilitiesPerResource {
			err = reins.Errorf(reins.CodeQuotaExceeded, "resource %s has %d live capabilities already; revoke some or wait until they expire", r.key, n).In(reins.PhaseAdmission)
			return
		}
		s.grants[g.id] = g
		g.timer = time.AfterFunc(time.Until(g.expires), func() { r.expire(g) })
		r.gen.index(g)
	})
	return err
}

// expire ends a grant when its time has come; a renewal may have moved it.
func (r *resource) expire(g *grant) {
	r.update(func(s *state) {
		if left := time.Until(g.expires); left > 0 && !g.ended {
			g.timer.Reset(left)
			return
		}
		r.endLocked(s, g, errEnded(reasonExpired))
	})
}

// endLocked ends a capability and its lease: from here on nothing begins under
// it, what waits is cancelled and what runs is told to stop, with cause (CAP-6,
// LSE-6).
func (r *resource) endLocked(s *state, g *grant, cause *reins.Error) {
	if g.ended {
		return
	}
	g.ended = true
	if g.timer != nil {
		g.timer.Stop()
	}
	delete(s.grants, g.id)
	r.gen.forget(g)
	if g.lease != nil {
		r.fenceLeaseLocked(s, g.lease, cause)
		g.lease = nil
	}
}

// fenceLeaseLocked ends one lease.
func (r *resource) fenceLeaseLocked(s *state, l *lease, cause *reins.Error) {
	l.ended = cause
	close(l.done)
	r.leaveViewLocked(s, l, cause)
	r.departLocked(s, l, cause)
	r.cancelLocked(s, cause, func(op *operation) bool { return op.lease == l })
}

// Revoke implements [reins.Runtime] (CAP-6).
func (h *Host) Revoke(ctx context.Context, capabilityID string) error {
	gen, err := h.current()
	if err != nil {
		return err
	}
	gen.mu.Lock()
	g := gen.byID[capabilityID]
	gen.mu.Unlock()
	switch {
	case g != nil:
	case !capability.IsID(capability.KindCapability, capabilityID): // perhaps a token: not to be repeated (CAP-4)
		return reins.Errorf(reins.CodeNotFound, "what was given is not the ID of a capability; use the one that Issue returned beside the token")
	default:
		return reins.Errorf(reins.CodeNotFound, "no live capability %s is known; it may have ended already", capabilityID)
	}
	return g.r.endAndWait(ctx, g, reasonRevoked)
}

// endAndWait ends a grant and returns when its effects are quiet. That goes on
// when ctx ends first.
func (r *resource) endAndWait(ctx context.Context, g *grant, reason string) error {
	var l *lease
	r.update(func(s *state) {
		l = g.lease
		r.endLocked(s, g, errEnded(reason))
	})
	err := r.quiet(ctx, func(op *operation) bool { return op.lease.grant == g })
	if err != nil || l == nil {
		return err
	}
	return l.rest(ctx)
}

// quiet waits until the operations that match now have settled.
func (r *resource) quiet(ctx context.Context, match func(*operation) bool) error {
	return settled(ctx, r.unsettled(match))
}

// settled waits until all of ops have settled.
func settled(ctx context.Context, ops []*operation) error {
	for _, op := range ops {
		select {
		case <-op.settled:
		case <-ctx.Done():
			return reins.ContextError(ctx).In(reins.PhaseCleanUp)
		}
	}
	return nil
}

// Acquire implements [reins.Runtime] (LSE-1, LSE-2).
func (h *Host) Acquire(ctx context.Context, t reins.Token, b reins.Binding) (reins.Lease, error) {
	gen, err := h.current()
	if err != nil {
		return nil, err
	}
	gen.mu.Lock()
	g := gen.byToken[capability.Sum(t)]
	gen.mu.Unlock()
	if g == nil || !g.hash.Matches(t) || !g.binding.Equal(b) {
		return nil, errUnauthorized()
	}
	l, err := g.r.acquire(g)
	if err != nil {
		return nil, err // and not a lease that is none
	}
	return l, nil
}

func (r *resource) acquire(g *grant) (*lease, error) {
	var l *lease
	r.update(func(s *state) {
		if g.ended || s.fence != nil || !time.Now().Before(g.expires) {
			return
		}
		if g.lease != nil {
			r.fenceLeaseLocked(s, g.lease, errEnded(reasonReplaced))
		}
		l = &lease{
			r: r, grant: g, id: capability.NewID(capability.KindLease), since: time.Now(),
			done: make(chan struct{}), calls: make(chan struct{}, maxCalls),
		}
		s.view.people++
		l.seen = r.connectionLocked()
		l.told = l.seen // names of this connection are good, whoever told them
		g.lease = l
	})
	if l == nil {
		return nil, errUnauthorized()
	}
	return l, nil
}

// reserve counts a capability that is about to be issued (CAP-5).
func (g *generation) reserve() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reserved >= g.host.limits.Capabilities {
		return reins.Errorf(reins.CodeQuotaExceeded, "the runtime has %d live capabilities already; revoke some or wait until they expire", g.reserved).In(reins.PhaseAdmission)
	}
	g.reserved++
	return nil
}

func (g *generation) unreserve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reserved--
}

// index makes a grant findable; forget undoes it and frees its place.
func (g *generation) index(c *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byToken[c.hash], g.byID[c.id] = c, c
}

func (g *generation) forget(c *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID[c.id] != c {
		return
	}
	delete(g.byToken, c.hash)
	delete(g.byID, c.id)
	g.reserved--
}

// authorize asks the host's hook about a binding under its deadline (CAP-2,
// HK-1). Calls that do not return count against the bound of capabilities until
// they do; settled runs when this one has (LSE-3).
func (g *generation) authorize(ctx context.Context, b reins.Binding, settled func()) error {
	c := &g.host.calls
	c.mu.Lock()
	if c.authorize >= g.host.limits.Capabilities {
		c.mu.Unlock()
		settled()
		return reins.Errorf(reins.CodeQuotaExceeded, "%d calls of the Authorize hook have not returned; try again later", g.host.limits.Capabilities).In(reins.PhaseHook)
	}
	c.authorize++
	c.mu.Unlock()
	hook := func(ctx context.Context) error { return g.host.hooks.Authorize(ctx, apart(b)) }
	return ask(ctx, "Authorize", g.host.limits.AuthorizeTimeout, hook, func() {
		c.mu.Lock()
		c.authorize--
		c.mu.Unlock()
		settled()
	})
}

// refused is a hook's no. Why stays on this side, except what the hook says as a
// denied of its own: that is for whoever asked, with what to do next.
func refused(name string, err error) error {
	out := reins.Errorf(reins.CodeDenied, "the host's %s hook said no", name).In(reins.PhaseHook).Because(err)
	var said *reins.Error
	if !errors.As(err, &said) || said.Code != reins.CodeDenied || said.Message == "" {
		return out
	}
	out.Message = fmt.Sprintf("the host said no: %.500s", strings.ToValidUTF8(said.Message, "\ufffd"))
	if said.Recovery != "" {
		out = out.Recover(said.Recovery)
	}
	return out
}

// ask calls a hook and waits for its answer at most for limit. An error, a
// panic or no answer is a no (HK-4). Settled runs when the call has returned,
// however late.
func ask(ctx context.Context, name string, limit time.Duration, hook func(context.Context) error, settled func()) error {
	if err := reins.ContextError(ctx); err != nil {
		settled()
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, reins.Errorf(reins.CodeTimeout,
		"the host's %s hook has not answered within %s", name, limit).In(reins.PhaseHook))
	defer cancel()
	answer := make(chan error, 1)
	go func() { // ends with the hook, which the host owns
		err := errors.New("the hook panicked or ended its goroutine")
		defer func() {
			_ = recover() // a panicking hook says no
			settled()
			answer <- err
		}()
		err = hook(ctx)
	}()
	select {
	case err := <-answer:
		switch ended := reins.ContextError(ctx); {
		case ended != nil: // whatever it says, it was not waited for any more
			return ended
		case err == nil:
			return nil
		}
		return refused(name, err)
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
}
