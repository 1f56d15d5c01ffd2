package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/host"
	"github.com/reins-browser/reins/internal/store"
)

// truth is the runtime that the doors serve: the host, with what has to last written
// to the store first.
type truth struct {
	host  *host.Host
	store *store.Store
	log   *slog.Logger

	draining atomic.Bool // no new leases

	registering sync.Mutex // one at a time: checked, kept, registered

	mu   sync.Mutex
	lame map[reins.ResourceKey]lame // kept, and not what this host can take
}

// lame is a registration that is kept but not registered, and why.
type lame struct {
	reins.Registration
	why *reins.Error
}

var _ reins.Runtime = (*truth)(nil)

func errDraining() *reins.Error {
	return reins.Errorf(reins.CodeNotReady, "the server is stopping; come again when it has started anew").Recover(reins.RecoverReconnect).In(reins.PhaseLifeCycle)
}

// restore registers what is kept and finishes what a kill interrupted (STO-2, STO-3).
// It runs before anybody is served.
func (t *truth) restore(ctx context.Context) error {
	all, err := t.store.Resources(ctx, "")
	if err != nil {
		return err
	}
	for _, reg := range all {
		if err := reins.ContextError(ctx); err != nil {
			return err
		}
		if _, err := t.host.Restore(reg); err != nil {
			if reins.CodeOf(err) == reins.CodeRuntimeStopped {
				return err
			}
			t.lame[reg.Key] = lame{reg, reins.AsError(err)}
			t.log.Error("a kept resource cannot be registered here", "resource", reg.Key.String(), "err", err)
		}
	}
	left, err := t.store.Unpurged(ctx)
	if err != nil {
		return err
	}
	for _, reg := range left {
		if err := t.purge(ctx, reg); err != nil {
			// It stays retired; the next start tries again.
			t.log.Error("what a retired resource left was not removed", "resource", reg.Key.String(), "err", err)
		}
	}
	return nil
}

// purge removes what a retired resource left behind: it is one once more, which
// nobody sees, and is retired again.
func (t *truth) purge(ctx context.Context, reg reins.Registration) error {
	if reg.Spec.Workspace != "" { // all else ended with its generation
		if _, err := t.host.Restore(reg); err != nil {
			return err
		}
		r, err := t.host.Open(ctx, reg.Key)
		if err != nil {
			return err
		}
		if err := r.Retire(ctx); err != nil {
			return err
		}
	}
	return t.store.Purged(ctx, actor(ctx), reg.Key)
}

// Register implements [reins.Runtime].
func (t *truth) Register(ctx context.Context, reg reins.Registration) (reins.Registration, error) {
	t.registering.Lock()
	defer t.registering.Unlock()
	if t.draining.Load() {
		return reins.Registration{}, errDraining()
	}
	reg, err := t.host.Prepare(reg)
	if err != nil {
		return reins.Registration{}, err
	}
	if reg, err = t.store.Register(ctx, actor(ctx), reg); err != nil {
		return reins.Registration{}, err
	}
	out, err := t.host.Restore(reg)
	if err == nil {
		t.forget(reg.Key)
	}
	return out, err
}

// forget takes a key out of the lame ones.
func (t *truth) forget(key reins.ResourceKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lame, key)
}

func (t *truth) lameOf(key reins.ResourceKey) (lame, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.lame[key]
	return l, ok
}

// gone says more about a key that the host does not know: that it was retired, also
// before this process, or why it cannot be had here.
func (t *truth) gone(ctx context.Context, key reins.ResourceKey, err error) error {
	if reins.CodeOf(err) != reins.CodeNotFound {
		return err
	}
	if l, ok := t.lameOf(key); ok {
		return l.why
	}
	if _, kept := t.store.Resource(ctx, key); reins.CodeOf(kept) == reins.CodeRetired {
		return kept
	}
	return err
}

// Open implements [reins.Runtime].
func (t *truth) Open(ctx context.Context, key reins.ResourceKey) (reins.Resource, error) {
	r, err := t.host.Open(ctx, key)
	if err == nil {
		return &resource{Resource: r, t: t, key: key}, nil
	}
	if l, ok := t.lameOf(key); ok {
		return &resource{Resource: crippled{l.why}, t: t, key: key}, nil
	}
	return nil, t.gone(ctx, key, err)
}

// List implements [reins.Runtime].
func (t *truth) List(ctx context.Context, project string) ([]reins.ResourceInfo, error) {
	all, err := t.host.List(ctx, project)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lame) == 0 {
		return all, nil
	}
	for key, l := range t.lame {
		if key.Project == project {
			all = append(all, reins.ResourceInfo{
				Registration: l.Registration, State: reins.StateError, Readiness: crippled{l.why}.Readiness(),
				Control: reins.Control{State: reins.ControlAgent, Availability: reins.Disconnected},
			})
		}
	}
	slices.SortFunc(all, func(a, b reins.ResourceInfo) int { return cmp.Compare(a.Key.ID, b.Key.ID) })
	return all, nil
}

// Issue implements [reins.Runtime]. What an API key had issued ends with the key.
func (t *truth) Issue(ctx context.Context, b reins.Binding, life time.Duration) (reins.Capability, error) {
	if t.draining.Load() {
		return reins.Capability{}, errDraining()
	}
	c, err := t.host.Issue(ctx, b, life)
	if err != nil {
		return c, t.gone(ctx, b.Key(), err)
	}
	if key := sender(ctx).key; key != nil && !key.note(c.ID, made{until: c.Expires}) {
		_ = t.host.Revoke(ctx, c.ID) // nobody was told its token
		return reins.Capability{}, errKeyEnded()
	}
	return c, nil
}

// Revoke implements [reins.Runtime].
func (t *truth) Revoke(ctx context.Context, id string) error { return t.host.Revoke(ctx, id) }

// Acquire implements [reins.Runtime].
func (t *truth) Acquire(ctx context.Context, token reins.Token, b reins.Binding) (reins.Lease, error) {
	if t.draining.Load() {
		return nil, errDraining()
	}
	l, err := t.host.Acquire(ctx, token, b)
	if err != nil {
		return nil, err
	}
	id := l.Authority().CapabilityID
	if key := sender(ctx).key; key != nil && !key.note(id, made{lease: l}) {
		_ = l.Release(ctx)
		return nil, errKeyEnded()
	}
	return l, nil
}

// Artifacts implements [reins.Runtime].
func (t *truth) Artifacts(key reins.ResourceKey) reins.Artifacts { return t.host.Artifacts(key) }

// Events implements [reins.Runtime].
func (t *truth) Events(ctx context.Context, project string) (<-chan reins.Event, error) {
	return t.host.Events(ctx, project)
}

// lameKeys are the registrations that cannot be had here, in order.
func (t *truth) lameKeys() []reins.ResourceKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]reins.ResourceKey, 0, len(t.lame))
	for key := range t.lame {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b reins.ResourceKey) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// resource is a host's resource whose changes that last are kept first.
type resource struct {
	reins.Resource
	t   *truth
	key reins.ResourceKey
}

// Attach implements [reins.Resource]: kept, then in effect. Where the host refuses,
// the resource or the runtime is ending, and the newer revision is what the next
// start has.
func (r *resource) Attach(ctx context.Context, a reins.Attachment) error {
	if _, ok := r.Resource.(crippled); ok {
		return r.Resource.Attach(ctx, a)
	}
	if err := a.Validate(); err != nil {
		return err
	}
	if err := r.t.store.Attach(ctx, actor(ctx), r.key, a); err != nil {
		return err
	}
	return r.Resource.Attach(ctx, a)
}

// Retire implements [reins.Resource]: from the moment that it is kept no start
// registers the resource again, whatever becomes of the rest. That goes on when ctx
// ends, as the port says; where nobody waits for its end, the next call or the next
// start keeps that nothing is left.
func (r *resource) Retire(ctx context.Context) error {
	if err := r.t.store.Retire(ctx, actor(ctx), r.key); err != nil {
		return err
	}
	if err := r.Resource.Retire(ctx); err != nil {
		return err
	}
	if _, ok := r.Resource.(crippled); ok {
		r.t.forget(r.key)
		return nil // what it left, the next start removes
	}
	return r.t.store.Purged(context.WithoutCancel(ctx), actor(ctx), r.key)
}

// crippled is the resource of a registration that is kept and cannot be had here.
type crippled struct{ why *reins.Error }

func (c crippled) Attach(context.Context, reins.Attachment) error { return c.why }
func (c crippled) Start(context.Context) error                    { return c.why }
func (c crippled) Stop(context.Context) error                     { return c.why }
func (c crippled) Resume(context.Context) error                   { return c.why }
func (c crippled) Terminate(context.Context) error                { return c.why }
func (c crippled) Retire(context.Context) error                   { return nil }

func (c crippled) Readiness() reins.Readiness {
	is := reins.Capable{State: "failed", Cause: c.why.Message, Remedy: c.why.Recovery.Sentence()}
	return reins.Readiness{Overall: "failed", Facts: map[string]string{},
		Capabilities: map[string]reins.Capable{reins.CapableRuntime: is, reins.CapableBrowser: is, reins.CapableAutomation: is}}
}

func (c crippled) WaitFor(context.Context, ...string) (reins.Readiness, error) {
	return c.Readiness(), c.why
}
