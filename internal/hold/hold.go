// Package hold keeps one lease for whoever acts under it: it acquires the lease
// when a call first needs one, anew when it ended, renews it at half of its life
// while it is wanted, and releases it at the end. The doors that offer tools share
// it (mcp, toolset).
//
// What a [Lease] starts ends with its context; [Lease.Close] waits for that and
// releases. It holds one lease at a time, since a capability backs one (LSE-2), and
// all calls that wait for it share one acquisition.
package hold

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// releaseTimeout bounds the release of a lease whose client left.
const releaseTimeout = 10 * time.Second

// Options make a Lease. Get is required.
type Options struct {
	// Get returns a lease. Its context is the one given to New.
	Get func(context.Context) (reins.Lease, error)
	// Wanted, when not nil, is whether the lease is to be renewed; nil means
	// until the context ends.
	Wanted func() bool
	// Ended, when not nil, is told each time that a lease ended.
	Ended func()
	// Logger receives what nobody else can be told; nil is nothing.
	Logger *slog.Logger
}

// Lease is one lease that is kept. It is safe for concurrent use.
type Lease struct {
	ctx  context.Context // ends when the client leaves
	o    Options
	work sync.WaitGroup // acquisitions and renewals

	mu      sync.Mutex
	lease   reins.Lease  // nil before the first and while one is acquired
	pending *acquisition // not nil while a lease is acquired
}

// New makes a Lease for as long as ctx lives; nothing is acquired yet.
func New(ctx context.Context, o Options) *Lease {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Lease{ctx: ctx, o: o}
}

// acquisition is shared by all calls that wait for the same lease; done guards
// the rest.
type acquisition struct {
	done  chan struct{}
	lease reins.Lease
	err   error
}

// Close waits for what the hold started and releases its lease; its context has
// ended.
func (h *Lease) Close() {
	h.work.Wait()
	h.mu.Lock()
	lease := h.lease
	h.mu.Unlock()
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), releaseTimeout)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		h.o.Logger.Warn("a lease was not released", "error", err)
	}
}

// Live returns the lease when there is one now, else nil.
func (h *Lease) Live() reins.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lease == nil || over(h.lease) {
		return nil
	}
	return h.lease
}

// Current returns the live lease, acquiring one when there is none. A caller that
// leaves does not take the acquisition from the others.
func (h *Lease) Current(ctx context.Context) (reins.Lease, error) {
	h.mu.Lock()
	if h.lease != nil && !over(h.lease) {
		defer h.mu.Unlock()
		return h.lease, nil
	}
	if h.ctx.Err() != nil {
		h.mu.Unlock()
		return nil, reins.ContextError(h.ctx)
	}
	if h.pending == nil {
		h.pending = &acquisition{done: make(chan struct{})}
		p := h.pending
		h.work.Go(func() { h.acquire(p) })
	}
	p := h.pending
	h.mu.Unlock()
	select {
	case <-p.done:
		return p.lease, p.err
	case <-ctx.Done():
		return nil, reins.ContextError(ctx)
	}
}

func (h *Lease) acquire(p *acquisition) {
	p.lease, p.err = h.o.Get(h.ctx)
	switch {
	case p.err != nil:
		p.lease = nil // whatever came with the error
	case p.lease == nil:
		p.err = reins.Errorf(reins.CodeInternal, "no lease was given, and no reason")
	}
	h.mu.Lock()
	h.lease, h.pending = p.lease, nil
	if p.err == nil {
		h.work.Go(func() { h.renew(p.lease) })
	}
	h.mu.Unlock()
	close(p.done)
}

func over(l reins.Lease) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// renew extends the lease at half of its remaining life until it ends or the
// client leaves (LSE-3). A renewal that failed is tried again at half of what
// then remains, so ever sooner, but not more often than every tenth of a second;
// so is one that was not wanted, for a client that comes back.
func (h *Lease) renew(l reins.Lease) {
	for {
		timer := time.NewTimer(max(time.Until(l.Expires())/2, 100*time.Millisecond))
		select {
		case <-timer.C:
		case <-l.Done():
			timer.Stop()
			if h.o.Ended != nil {
				h.o.Ended()
			}
			return
		case <-h.ctx.Done():
			timer.Stop()
			return
		}
		if h.o.Wanted != nil && !h.o.Wanted() {
			continue
		}
		if _, err := l.Renew(h.ctx); err != nil && h.ctx.Err() == nil {
			h.o.Logger.Warn("a lease was not renewed", "error", err)
		}
	}
}
