package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/store"
)

// Keyring knows API keys by their hashes, and what was made under each.
type Keyring struct {
	mu   sync.RWMutex
	keys map[capability.Hash]*liveKey
	ids  map[string]*liveKey
}

// liveKey is a key that is good. What was made under it ends with it (API-2).
type liveKey struct {
	store.Key
	hash  capability.Hash
	ended chan struct{}

	mu   sync.Mutex // guards all below
	over bool
	made map[string]made // by capability ID
	full int             // how many are looked through for ended ones
}

// made is a capability that was issued, or acquired, under a key.
type made struct {
	until time.Time
	lease reins.Lease // not nil once acquired: renewed with it
}

func (m made) live(now time.Time) bool {
	return now.Before(m.until) || m.lease != nil && now.Before(m.lease.Expires())
}

// NewKeyring makes a keyring that knows no key.
func NewKeyring() *Keyring {
	return &Keyring{keys: map[capability.Hash]*liveKey{}, ids: map[string]*liveKey{}}
}

// Add makes a key known.
func (r *Keyring) Add(k store.HashedKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := &liveKey{Key: k.Key, hash: k.Hash, ended: make(chan struct{}), made: map[string]made{}, full: 64}
	r.keys[k.Hash], r.ids[k.ID] = live, live
}

// Fresh makes an administrator's key that is kept nowhere, for as long as the keyring.
func (r *Keyring) Fresh() reins.Token {
	token := capability.NewToken()
	r.Add(store.HashedKey{Key: store.Key{ID: capability.NewID("key"), Created: time.Now()}, Hash: capability.Sum(token)})
	return token
}

// find is the key of a token, or nil.
func (r *Keyring) find(t reins.Token) *liveKey {
	if len(t) != capability.TokenLength {
		return nil
	}
	r.mu.RLock()
	k := r.keys[capability.Sum(t)]
	r.mu.RUnlock()
	if k == nil || !k.hash.Matches(t) {
		return nil
	}
	return k
}

// byID is the key of an ID, or nil.
func (r *Keyring) byID(id string) *liveKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[id]
}

func (r *Keyring) count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.keys)
}

// drop makes a key unknown and returns it, nil when it was not known.
func (r *Keyring) drop(id string) *liveKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.ids[id]
	if k != nil {
		delete(r.ids, id)
		delete(r.keys, k.hash)
	}
	return k
}

// end ends a key: its streams at once, then all capabilities that were made under
// it. It returns when their effects are quiet.
func (k *liveKey) end(ctx context.Context, revoke func(context.Context, string) error) error {
	k.mu.Lock()
	if !k.over {
		k.over = true
		close(k.ended)
	}
	all := slices.Sorted(maps.Keys(k.made))
	k.mu.Unlock()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, id := range all {
		wg.Go(func() {
			if err := revoke(ctx, id); reins.CodeOf(err) != reins.CodeNotFound {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return reins.AsError(err)
	}
	return nil
}

// note remembers a capability that was made under the key. It reports false when the
// key has ended: then nobody may have it.
func (k *liveKey) note(id string, m made) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return false
	}
	if len(k.made) >= k.full {
		now := time.Now()
		maps.DeleteFunc(k.made, func(_ string, m made) bool { return !m.live(now) })
		k.full = max(64, 2*len(k.made))
	}
	k.made[id] = m
	return true
}

func errKeyEnded() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "the API key is not valid any more").In(reins.PhaseAdmission)
}
