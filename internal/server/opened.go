package server

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// openLease gives a page a lease on a resource: the one that it has, or a new one under
// a human capability that the server issues and keeps (API-3).
func (p *people) openLease(ctx context.Context, g *page, key reins.ResourceKey) (api.LeaseState, error) {
	if err := key.Validate(); err != nil {
		return api.LeaseState{}, err
	}
	if !g.session.access.may(key) {
		return api.LeaseState{}, reins.Errorf(reins.CodeDenied, "your session is not for resource %s; ask for a link that is", key).In(reins.PhaseAdmission)
	}
	if o := p.openedOf(g, key); o != nil {
		return o.state(), nil
	}
	c, err := p.runtime.Issue(ctx, reins.Binding{
		Project: key.Project, Resource: key.ID, Actor: g.session.access.Actor,
		Role: reins.RoleHuman, Peer: g.session.id, Source: reins.SourceViewer,
	}, 0)
	if err != nil {
		return api.LeaseState{}, err
	}
	l, err := p.runtime.Acquire(ctx, c.Token, c.Binding)
	if err != nil {
		return api.LeaseState{}, err
	}
	o := &opened{lease: l, key: key, done: make(chan struct{})}
	var renewed func()
	o.state, renewed = p.adopt(l)
	if err := p.keep(g, o, renewed); err != nil {
		p.release(l)
		return api.LeaseState{}, err
	}
	return o.state(), nil
}

// openedOf is the live lease that a page has on a resource, or nil.
func (p *people) openedOf(g *page, key reins.ResourceKey) *opened {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range g.opened {
		if o.key == key && !over(o.lease) {
			return o
		}
	}
	return nil
}

func over(l reins.Lease) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// keep makes a lease the page's, and begins to renew it.
func (p *people) keep(g *page, o *opened, renewed func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case g.over:
		return errNoSession()
	case len(g.opened) >= openedMax:
		return reins.Errorf(reins.CodeQuotaExceeded, "this page holds %d resources already; close one", openedMax).In(reins.PhaseAdmission)
	}
	g.opened[o.lease.Authority().LeaseID] = o
	p.work.Go(func() { p.renew(g, o, renewed) })
	return nil
}

// renew extends a lease at half of its remaining life while its page is there
// (LSE-3), and releases it when the page is gone.
func (p *people) renew(g *page, o *opened, renewed func()) {
	defer close(o.done)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(g.opened, o.lease.Authority().LeaseID)
	}()
	for {
		timer := time.NewTimer(max(time.Until(o.lease.Expires())/2, 100*time.Millisecond))
		select {
		case <-timer.C:
		case <-o.lease.Done():
			timer.Stop()
			return
		case <-g.ended:
			timer.Stop()
			p.release(o.lease)
			return
		}
		if !g.here() {
			continue
		}
		if _, err := o.lease.Renew(p.ctx); err == nil {
			renewed()
		} else if p.ctx.Err() == nil && !over(o.lease) {
			p.log.Warn("a person's lease was not renewed", "err", err)
		}
	}
}

// closeLease releases a lease of a page and waits until it is.
func (p *people) closeLease(ctx context.Context, g *page, lease string) error {
	p.mu.Lock()
	o := g.opened[lease]
	p.mu.Unlock()
	if o == nil {
		return nil // it has ended already
	}
	if err := o.lease.Release(ctx); err != nil {
		return err
	}
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
}

func (p *people) release(l reins.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), releaseTime)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		p.log.Warn("a person's lease was not released", "err", err)
	}
}
