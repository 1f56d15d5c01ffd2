package mcp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// hold keeps one lease: it acquires it when a call first needs one, anew when it
// ended, renews it while its client is there, and releases it at the end. The
// sessions of one HTTP client share one, since a capability backs one live lease
// (LSE-2).
type hold struct {
	ctx    context.Context // ends when the client leaves
	get    func(context.Context) (reins.Lease, error)
	wanted func() bool // whether the client is there; nil: until ctx ends
	ended  func()      // told each time that a lease ended, when not nil
	logger *slog.Logger
	work   sync.WaitGroup // acquisitions and renewals

	mu      sync.Mutex
	lease   reins.Lease  // nil before the first and while one is acquired
	pending *acquisition // not nil while a lease is acquired
}

// acquisition is shared by all calls that wait for the same lease; done guards
// the rest.
type acquisition struct {
	done  chan struct{}
	lease reins.Lease
	err   error
}

// close waits for what the hold started and releases its lease; its context has
// ended.
func (h *hold) close() {
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
		h.logger.Warn("a lease was not released", "error", err)
	}
}

// live returns the lease when there is one now, else nil.
func (h *hold) live() reins.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lease == nil || over(h.lease) {
		return nil
	}
	return h.lease
}

// current returns the live lease, acquiring one when there is none. A caller that
// leaves does not take the acquisition from the others.
func (h *hold) current(ctx context.Context) (reins.Lease, error) {
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

func (h *hold) acquire(p *acquisition) {
	p.lease, p.err = h.get(h.ctx)
	switch {
	case p.err != nil:
		p.lease = nil // whatever came with the error
	case p.lease == nil:
		p.err = reins.Errorf(reins.CodeInternal, "no lease was given to this MCP server")
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
func (h *hold) renew(l reins.Lease) {
	for {
		timer := time.NewTimer(max(time.Until(l.Expires())/2, 100*time.Millisecond))
		select {
		case <-timer.C:
		case <-l.Done():
			timer.Stop()
			if h.ended != nil {
				h.ended()
			}
			return
		case <-h.ctx.Done():
			timer.Stop()
			return
		}
		if h.wanted != nil && !h.wanted() {
			continue
		}
		if _, err := l.Renew(h.ctx); err != nil && h.ctx.Err() == nil {
			h.logger.Warn("a lease was not renewed", "error", err)
		}
	}
}
