// Package toolsettest plays the browser's part for tests of agents: a lease that
// answers what a test says, for [toolset.New]. There is no browser, no network and
// no authority behind it.
package toolsettest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// Lease is a lease that plays. It never ends by itself. The zero value answers
// every action with success. It is safe for concurrent use, once it is in use its
// fields are not changed.
type Lease struct {
	// Bound is the binding that the lease claims: its Scope and Run are what
	// toolsets compare.
	Bound reins.Binding
	// Answer says what comes of an action; nil succeeds with nothing to tell.
	Answer func(context.Context, reins.Action) (*reins.Result, error)

	mu   sync.Mutex
	done []reins.Action
}

var _ reins.Lease = (*Lease)(nil)

// Actions are the actions that reached the lease, in order.
func (l *Lease) Actions() []reins.Action {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.done)
}

// Do implements [reins.Lease].
func (l *Lease) Do(ctx context.Context, c reins.Call) (*reins.Result, error) {
	l.mu.Lock()
	l.done = append(l.done, c.Action)
	l.mu.Unlock()
	if l.Answer == nil {
		return &reins.Result{}, nil
	}
	return l.Answer(ctx, c.Action)
}

// Authority implements [reins.Lease].
func (l *Lease) Authority() reins.Authority { return reins.Authority{Binding: l.Bound} }

// IsCurrent implements [reins.Lease].
func (l *Lease) IsCurrent(a reins.Authority) bool { return a.Binding.Equal(l.Bound) }

// Done implements [reins.Lease].
func (l *Lease) Done() <-chan struct{} { return nil }

// Expires implements [reins.Lease].
func (l *Lease) Expires() time.Time { return time.Now().Add(time.Hour) }

// Renew implements [reins.Lease].
func (l *Lease) Renew(context.Context) (time.Time, error) { return l.Expires(), nil }

// Release implements [reins.Lease].
func (l *Lease) Release(context.Context) error { return nil }

// Subscribe implements [reins.Lease]: agents have no view.
func (l *Lease) Subscribe(context.Context, reins.SubscribeOptions) (reins.Subscription, error) {
	return nil, reins.Errorf(reins.CodeNotReady, "only people's leases have a view")
}
