package api

import (
	"context"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// endedMax is how many leases that have ended are remembered, so that their
// holders are told why.
const endedMax = 1024

// leaseTable is the leases that were acquired through this door. Ended ones
// beyond a bound are forgotten, oldest first; the live ones are bounded by the
// runtime.
type leaseTable struct {
	mu   sync.Mutex
	held map[string]*held
	old  []*held // in the order they were acquired
}

// held is one lease and what is needed to know its holder again.
type held struct {
	lease   reins.Lease
	id      string
	hash    capability.Hash
	binding reins.Binding

	mu       sync.Mutex // guards all below
	sequence uint64
	changed  chan struct{} // closed, and replaced, when a renewal changed the expiry
	calls    map[string]context.CancelCauseFunc
}

func (t *leaseTable) add(l *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = map[string]*held{}
	}
	t.held[l.id] = l
	t.old = append(t.old, l)
	ended := 0
	for _, l := range t.old {
		if l.over() {
			ended++
		}
	}
	if ended <= endedMax {
		return
	}
	keep := t.old[:0]
	for _, l := range t.old {
		if ended > endedMax/2 && l.over() {
			ended--
			delete(t.held, l.id)
			continue
		}
		keep = append(keep, l)
	}
	clear(t.old[len(keep):])
	t.old = keep
}

func (t *leaseTable) find(id string) *held {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[id]
}

func (l *held) over() bool {
	select {
	case <-l.lease.Done():
		return true
	default:
		return false
	}
}

// state is the lease as it stands. Later calls have higher sequences and read
// later.
func (l *held) state() LeaseState {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sequence++
	return LeaseState{Lease: l.id, Authority: l.lease.Authority(), Expires: l.lease.Expires(), Now: time.Now(), Sequence: l.sequence}
}

// reason is why the lease has ended. It asks for something that an ended lease
// is refused before anything happens.
func (l *held) reason() *reins.Error {
	if _, err := l.lease.Do(context.Background(), reins.Call{Action: reins.ListArtifacts{}}); err != nil {
		return reins.AsError(err)
	}
	return errLeaseOver
}

// errUnauthorized is the one answer to whatever does not match (LSE-1).
func errUnauthorized() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "the capability or binding is not valid")
}

// held is the lease in the path, for the one who acquired it: the token must be
// its capability's, and the caller one who may use it.
func (c *call) held() (*held, error) {
	l := c.h.leases.find(c.path("lease"))
	if l != nil && c.who.Holds != nil {
		if !c.who.Holds(l.id) {
			return nil, errUnauthorized()
		}
		return l, nil
	}
	if l == nil || !l.hash.Matches(token(c.r)) {
		return nil, errUnauthorized()
	}
	if c.h.o.Binding != nil {
		return l, nil // all leases of this handler are one participant's
	}
	if c.lone {
		if l.binding.Source != reins.SourceAPI || l.binding.Peer != c.h.o.Peer(c.r) {
			return nil, errUnauthorized()
		}
	} else if !c.who.may(l.binding.Project) {
		return nil, errUnauthorized()
	}
	return l, nil
}

var tokenParameter = []parameter{{capabilityHeader, "The token of the capability."}}

func (h *Handler) leaseRoutes() {
	rt := func(method, path, id, summary, about string) route {
		return route{method: method, path: path, id: id, tag: "leases", summary: summary, about: about, headers: tokenParameter, participant: true}
	}
	handle(h, rt("POST", "/v1/leases", "acquire", "Acquire a lease",
		"With the token and the complete binding of a capability. Without an API key, source and peer are what the door observes. Acquiring again replaces the older lease."),
		func(ctx context.Context, c *call, in AcquireForm) (LeaseState, error) { return h.acquire(ctx, c, in) })
	handle(h, rt("GET", "/v1/leases/{lease}", "lease", "Show a lease", "As it stands; an ended one is lease_ended."),
		func(_ context.Context, c *call, _ Nothing) (LeaseState, error) {
			l, err := c.held()
			switch {
			case err != nil:
				return LeaseState{}, err
			case l.over():
				return LeaseState{}, l.reason()
			}
			return l.state(), nil
		})
	handle(h, rt("POST", "/v1/leases/{lease}/renew", "renew", "Renew a lease", "Extends lease and capability together, once the host's policy agreed."),
		func(ctx context.Context, c *call, _ Nothing) (LeaseState, error) {
			l, err := c.held()
			if err != nil {
				return LeaseState{}, err
			}
			if _, err := l.lease.Renew(ctx); err != nil {
				return LeaseState{}, err
			}
			l.tell()
			return l.state(), nil
		})
	handle(h, rt("DELETE", "/v1/leases/{lease}", "release", "Release a lease", "Idempotent; answers when its effects are quiet."),
		func(ctx context.Context, c *call, _ Nothing) (Nothing, error) {
			l, err := c.held()
			if err != nil {
				return Nothing{}, err
			}
			return Nothing{}, l.lease.Release(ctx)
		})
}

func (h *Handler) acquire(ctx context.Context, c *call, in AcquireForm) (LeaseState, error) {
	t := token(c.r)
	if own := h.o.Binding; own != nil { // what is stated can only agree (PIPE-3)
		if !in.Binding.Equal(reins.Binding{}) && !in.Binding.Equal(*own) {
			return LeaseState{}, errUnauthorized()
		}
		in.Binding = *own
	} else if c.lone {
		in.Binding.Source, in.Binding.Peer = reins.SourceAPI, h.o.Peer(c.r)
	} else if !c.who.may(in.Binding.Project) {
		return LeaseState{}, errUnauthorized()
	}
	lease, err := h.runtime.Acquire(ctx, t, in.Binding)
	if err != nil {
		return LeaseState{}, err
	}
	l := newHeld(lease, capability.Sum(t))
	h.issued.add(lease.Authority().CapabilityID, l.binding.Project)
	h.leases.add(l)
	return l.state(), nil
}

func newHeld(lease reins.Lease, hash capability.Hash) *held {
	a := lease.Authority()
	return &held{
		lease: lease, id: a.LeaseID, hash: hash, binding: a.Binding,
		changed: make(chan struct{}), calls: map[string]context.CancelCauseFunc{},
	}
}

// Adopt takes in a lease that the server acquired for a caller it knows by other
// means: only an identity whose Holds reports it may use it, no token does. Renewed
// is to be called after each renewal, so that those who follow the lease are told.
func (h *Handler) Adopt(lease reins.Lease) (state func() LeaseState, renewed func()) {
	l := newHeld(lease, capability.Hash{})
	h.leases.add(l)
	return l.state, l.tell
}

// tell wakes those who follow the lease.
func (l *held) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *held) told() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// follow streams a lease's state whenever it changed, and its end. What it
// waits for is what can change a lease: the resource's events, a renewal, its
// end; now and then it looks for itself.
func (h *Handler) follow(_ context.Context, c *call) error {
	l, err := c.held()
	if err != nil {
		return err
	}
	if l.over() {
		return l.reason()
	}
	feed, err := h.streams.subscribe(l.binding.Project)
	if err != nil {
		return err
	}
	defer feed.leave()
	ctx, done, err := c.life(l.lease.Done())
	if err != nil {
		return err
	}
	defer done()
	out := newSSE(c.w, ctx.Err)
	tick := h.ticker()
	defer tick.Stop()
	look := time.NewTimer(time.Hour) // renewals that went another way (LSE-3)
	defer look.Stop()
	var last LeaseState
	for at := feed.from; ; {
		look.Reset(max(time.Until(l.lease.Expires())/2, 50*time.Millisecond))
		events, next, more := feed.read(at)
		at = next
		if feed.ended() {
			more = nil // the lease has ended too, or will
		}
		renewed := l.told()
		if last.Sequence == 0 || len(events) == 0 || about(events, l.binding.Key()) {
			now := l.state()
			news := now.Authority.Incarnation != last.Authority.Incarnation || !now.Expires.Equal(last.Expires)
			if news && out.send(eventState, "", now) == nil {
				last = now
			} else if news && ctx.Err() == nil {
				return nil // the client left
			}
		}
		select {
		case <-more:
		case <-renewed:
		case <-look.C:
		case <-tick.C:
			if out.alive() != nil && ctx.Err() == nil {
				return nil
			}
		case <-ctx.Done():
			return out.last(l.why(ctx))
		}
	}
}

func about(events []numbered, key reins.ResourceKey) bool {
	for _, e := range events {
		if e.Key == key {
			return true
		}
	}
	return false
}

// why is the reason for which a stream under the lease ends.
func (l *held) why(ctx context.Context) *reins.Error {
	if l.over() {
		return l.reason()
	}
	return reins.AsError(context.Cause(ctx))
}

// ticker beats as often as an idle stream has to show that it lives.
func (h *Handler) ticker() *time.Ticker { return time.NewTicker(h.o.KeepAlive) }
