package api

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// lease is a [reins.Lease] that is elsewhere. What may change is what the server
// told last.
type lease struct {
	c          *Client
	id         string
	capability string
	key        reins.ResourceKey
	token      reins.Token
	done       chan struct{}
	ctx        context.Context // of its stream; ended with it
	stop       context.CancelFunc

	mu        sync.Mutex // guards all below
	sequence  uint64
	authority reins.Authority
	expires   time.Time // by this clock, never later than by the server's
	here      time.Time // a moment by this clock that was not after
	there     time.Time // this one by the server's
	timer     *time.Timer
	ended     *reins.Error
	watched   bool // a subscription of it was closed
}

var _ reins.Lease = (*lease)(nil)

// expiryGrace is how long an expired lease waits for the server's word on why
// it ended, or that it did not. It is not current meanwhile.
const expiryGrace = 2 * time.Second

// Acquire implements [reins.Runtime]. The lease follows the server on a stream.
// IsCurrent and Authority read, without I/O, what is known here: a change made
// through this client is known when the call that made it returns, one made
// elsewhere when the stream has told it, which is a matter of milliseconds while
// the stream stands. Expiry is judged by this machine's clock from the moment
// the request for it was sent, so that a lease is never current here after it
// has expired there. What counts is decided there again for each call: nothing
// begins under a lease that has ended, whatever is known here.
func (c *Client) Acquire(ctx context.Context, t reins.Token, b reins.Binding) (reins.Lease, error) {
	if len(t) == 0 || len(t) > 256 || !headerSafe(string(t)) {
		return nil, errUnauthorized()
	}
	asked := time.Now()
	var s LeaseState
	if err := c.call(ctx, request{method: "POST", path: "/v1/leases", token: t, body: AcquireForm{b}, repeat: true}, &s); err != nil {
		return nil, err
	}
	l := &lease{
		c: c, id: s.Lease, capability: s.Authority.CapabilityID, token: t, done: make(chan struct{}),
		key: s.Authority.Binding.Key(),
	}
	l.ctx, l.stop = context.WithCancel(c.ctx)
	l.mu.Lock()
	l.timer = time.AfterFunc(time.Hour, l.expire)
	l.mu.Unlock()
	l.learn(s, asked)
	c.mu.Lock()
	c.leases[l] = struct{}{}
	c.mu.Unlock()
	if err := c.begin(l.follow); err != nil {
		_ = l.release(context.WithoutCancel(ctx)) // else it expires
		l.finish(errClosed())
		return nil, err
	}
	// Older leases of the same capability have been replaced by this one.
	c.refresh(ctx, func(o *lease) bool { return o != l && o.capability == l.capability })
	return l, nil
}

func headerSafe(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// learn takes in a state, unless a newer one is known; asked is when its
// request was sent, zero when the server spoke by itself.
func (l *lease) learn(s LeaseState, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Sequence <= l.sequence || l.ended != nil {
		return
	}
	l.sequence, l.authority = s.Sequence, s.Authority
	// The server said Now after asked. Of all that was asked, what came back
	// soonest tells best how its clock stands to this one.
	if !asked.IsZero() && (l.here.IsZero() || l.here.Add(s.Now.Sub(l.there)).Before(asked)) {
		l.here, l.there = asked, s.Now
	}
	l.expires = l.here.Add(s.Expires.Sub(l.there))
	if latest := time.Now().Add(s.Expires.Sub(s.Now)); latest.Before(l.expires) { // a clock was set
		l.expires = latest
	}
	l.timer.Reset(time.Until(l.expires) + expiryGrace)
}

// expire ends a lease of whose end no word came.
func (l *lease) expire() {
	l.mu.Lock()
	left := time.Until(l.expires) + expiryGrace
	if left > 0 {
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.finish(reins.Errorf(reins.CodeLeaseEnded, "the lease was ended: expired; acquire a new one with a new capability").
		With("reason", "expired").In(reins.PhaseAdmission))
}

// finish ends the lease here, for the first reason that is told.
func (l *lease) finish(why *reins.Error) {
	l.mu.Lock()
	first := l.ended == nil
	if first {
		l.ended = why
		l.timer.Stop()
		close(l.done)
	}
	l.mu.Unlock()
	if !first {
		return
	}
	l.stop()
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	delete(l.c.leases, l)
}

// live is why nothing can begin, or nil.
func (l *lease) live() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return l.ended
	}
	return nil
}

// follow keeps a stream of the lease's changes until it has ended.
func (l *lease) follow() {
	for wait := 20 * time.Millisecond; l.ctx.Err() == nil; wait = min(2*wait, 2*time.Second) {
		heard := false
		err := l.followOnce(func() { heard = true })
		if e := ending(err); e != nil {
			l.finish(e)
			return
		}
		if heard {
			wait = 20 * time.Millisecond
		}
		pause(l.ctx, wait/2+rand.N(wait))
	}
	if l.c.ctx.Err() != nil {
		l.finish(errClosed())
	}
}

// ending is what err says of a lease that cannot go on; nil when the server
// was only not heard.
func ending(err error) *reins.Error {
	switch e := reins.AsError(err); e.Code {
	case reins.CodeUnauthorized:
		return reins.Errorf(reins.CodeLeaseEnded, "the server does not know the lease any more; acquire a new one").
			With("reason", "unknown").In(reins.PhaseAdmission)
	case reins.CodeLeaseEnded, reins.CodeRetired, reins.CodeRuntimeStopped:
		return e
	default:
		return nil
	}
}

// followOnce reads one stream until it breaks or says why the lease has ended.
func (l *lease) followOnce(heard func()) error {
	ctx, alive, cancel := watchdog(l.ctx)
	defer cancel()
	asked := time.Now()
	r, err := l.c.open(ctx, request{method: "GET", path: l.path("/events"), token: l.token, header: map[string]string{"Accept": typeSSE}})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	in := newSSEReader(r.Body, errorMax)
	for {
		e, err := in.next(alive)
		if err != nil {
			return reins.Errorf(reins.CodeTransportFailure, "the stream of the lease broke: %w", err)
		}
		heard()
		var s LeaseState
		if err := e.decode(&s); err != nil {
			return err
		}
		if e.name == eventState {
			l.learn(s, asked)
			asked = time.Time{} // what comes next was not asked for
		}
	}
}

// silence is after how long without a byte a stream counts as broken: servers
// show that they live every 30 s at most.
const silence = 45 * time.Second

// watchdog returns a context that ends when alive is not called for too long.
func watchdog(ctx context.Context) (_ context.Context, alive, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	t := time.AfterFunc(silence, func() {
		end(reins.Errorf(reins.CodeTransportFailure, "the server said nothing for %s", silence))
	})
	return ctx, func() { t.Reset(silence) }, func() { t.Stop(); end(nil) }
}

func (l *lease) path(rest string) string { return "/v1/leases/" + segment(l.id) + rest }

// refresh asks the server how the lease stands.
func (l *lease) refresh(ctx context.Context) error {
	asked := time.Now()
	var s LeaseState
	err := l.c.call(ctx, request{method: "GET", path: l.path(""), token: l.token, repeat: true}, &s)
	if err == nil {
		l.learn(s, asked)
	} else if e := ending(err); e != nil && l.ctx.Err() == nil {
		l.finish(e)
	}
	return err
}

// refresh brings those leases up to date that a call may have changed. The
// call's context may have ended; the truth has not.
func (c *Client) refresh(ctx context.Context, match func(*lease) bool) {
	var list []*lease
	c.mu.Lock()
	for l := range c.leases {
		if match(l) {
			list = append(list, l)
		}
	}
	c.mu.Unlock()
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), controlWait)
	defer cancel()
	var wg sync.WaitGroup
	for _, l := range list {
		wg.Go(func() { _ = l.refresh(ctx) }) // its stream tells else
	}
	wg.Wait()
}

// Authority implements [reins.Lease].
func (l *lease) Authority() reins.Authority {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.authority
	if a.Binding.Session != nil {
		session := *a.Binding.Session
		a.Binding.Session = &session
	}
	return a
}

// IsCurrent implements [reins.Lease]; see [Client.Acquire].
func (l *lease) IsCurrent(a reins.Authority) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil || !time.Now().Before(l.expires) {
		return false
	}
	mine := l.authority
	same := mine.Binding.Equal(a.Binding)
	mine.Binding, a.Binding = reins.Binding{}, reins.Binding{}
	return same && mine == a
}

// Expires implements [reins.Lease], by this machine's clock.
func (l *lease) Expires() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires
}

// Done implements [reins.Lease]; see [Client.Acquire].
func (l *lease) Done() <-chan struct{} { return l.done }

// Renew implements [reins.Lease].
func (l *lease) Renew(ctx context.Context) (time.Time, error) {
	if err := l.live(); err != nil {
		return time.Time{}, err
	}
	asked := time.Now()
	var s LeaseState
	err := l.c.call(ctx, request{method: "POST", path: l.path("/renew"), token: l.token, repeat: true}, &s)
	if err != nil {
		return time.Time{}, l.judged(err)
	}
	l.learn(s, asked)
	return l.Expires(), nil
}

// judged takes in what an error says of the lease's end.
func (l *lease) judged(err error) error {
	if e := ending(err); e != nil && l.ctx.Err() == nil {
		l.finish(e)
		return e
	}
	return err
}

// Release implements [reins.Lease].
func (l *lease) Release(ctx context.Context) error {
	err := l.release(ctx)
	l.mu.Lock()
	ended := l.ended != nil
	l.mu.Unlock()
	switch {
	case err == nil:
	case ended && ending(err) != nil:
		return nil // there was nothing left to release
	default:
		return err
	}
	l.finish(reins.Errorf(reins.CodeLeaseEnded, "the lease was ended: released; acquire a new one with a new capability").
		With("reason", "released").In(reins.PhaseAdmission))
	return nil
}

func (l *lease) release(ctx context.Context) error {
	return l.c.call(ctx, request{method: "DELETE", path: l.path(""), token: l.token, repeat: true}, nil)
}

// Do implements [reins.Lease]. When ctx ends it tells the server and returns
// when the browser is quiet, as near; if the server cannot be told any more it
// returns at once, and the server ends the action with the connection.
func (l *lease) Do(ctx context.Context, call reins.Call) (*reins.Result, error) {
	if call.Action == nil || reflect.TypeOf(call.Action).Kind() == reflect.Pointer {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the call needs an action, as one of the structs such as reins.Click{…}, not nil or a pointer")
	}
	if err := call.Action.Validate(); err != nil {
		return nil, err
	}
	if err := l.live(); err != nil {
		return nil, err
	}
	if err := reins.ContextError(ctx); err != nil {
		return nil, err
	}
	name := newName()
	var out OperationAnswer
	asked := time.Now()
	err := l.untilQuiet(ctx, name, func(ctx context.Context) error {
		q := request{
			method: "POST", path: l.path("/operations"), token: l.token,
			body:   OperationForm{ActionForm{call.Action}, call.Key, name},
			repeat: call.Key != "" || call.Action.Verb().ReadOnly(),
			effect: "the action",
		}
		if call.Progress == nil {
			return l.c.do(ctx, q, &out)
		}
		q.header = map[string]string{"Accept": typeSSE}
		return l.aloud(ctx, q, call.Progress, &out)
	})
	if err == nil && out.Result != nil {
		l.learn(out.State, asked)
		now := out.State.Authority.Incarnation
		l.c.refresh(ctx, func(o *lease) bool { return o.key == l.key && o.Authority().Incarnation != now })
		return out.Result, nil
	}
	if err == nil {
		err = reins.Errorf(reins.CodeTransportFailure, "the server's answer holds no result").In(reins.PhaseConnect)
	}
	if e := reins.AsError(err); e.Code == reins.CodeCancelled && ctx.Err() != nil {
		err = reins.ContextError(ctx).In(e.Phase) // the reason as it is known here
	}
	l.c.refresh(ctx, func(o *lease) bool { return o.key == l.key })
	return nil, l.judged(err)
}

// untilQuiet runs one call of the server whose end is waited for after ctx has
// ended: then the server is told to cancel it.
func (l *lease) untilQuiet(ctx context.Context, name string, run func(context.Context) error) error {
	if l.c.ctx.Err() != nil {
		return errClosed()
	}
	inner, abort := l.c.within(context.WithoutCancel(ctx))
	defer abort(nil)
	over, told := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		if l.cancelCall(inner, name) {
			t := time.NewTimer(settleWait)
			defer t.Stop()
			select {
			case <-over:
				return
			case <-t.C:
			}
		}
		abort(reins.ContextError(ctx))
	})
	err := run(inner)
	close(over)
	if !stop() {
		<-told
	}
	return err
}

// cancelCall tells the server to end a call and reports whether it will answer.
// A call that is not there yet is on its way: it is asked for again.
func (l *lease) cancelCall(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, controlWait)
	defer cancel()
	for ctx.Err() == nil {
		err := l.c.call(ctx, request{method: "DELETE", path: l.path("/operations/" + name), token: l.token, repeat: true}, nil)
		if err == nil {
			return true
		}
		if reins.CodeOf(err) != reins.CodeNotFound {
			return false
		}
		pause(ctx, 20*time.Millisecond)
	}
	return false
}

// aloud reads the stream of a call that tells its progress.
func (l *lease) aloud(ctx context.Context, q request, progress func(reins.Progress), out *OperationAnswer) error {
	ctx, alive, cancel := watchdog(ctx)
	defer cancel()
	r, err := l.c.open(ctx, q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	in := newSSEReader(r.Body, answerMax)
	for {
		e, err := in.next(alive)
		if err != nil {
			return l.c.lost(ctx, request{effect: q.effect, repeat: q.repeat}, err, true)
		}
		switch e.name {
		case eventProgress:
			var p reins.Progress
			if e.decode(&p) == nil {
				progress(p)
			}
		case eventResult, eventError, eventEnd:
			return e.decode(out)
		}
	}
}
