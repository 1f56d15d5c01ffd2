package queue

import (
	"crypto/sha256"

	"github.com/reins-browser/reins"
)

// Bounds of one lease's memory of idempotency keys.
const (
	MaxKey      = 128     // bytes of a key
	keptKeys    = 1024    // keys remembered
	keptResults = 64      // outcomes remembered
	keptBytes   = 4 << 20 // size of the outcomes remembered
)

// Keys remembers under which idempotency key what was asked, and what came of
// it (OPS-5). Outcomes are kept for the last 64 keys and 4 MiB, the keys
// themselves for the last 1,024: a repeated key whose outcome is gone is
// conflict, never a second action. The zero value is empty. Guarded by its
// owner's lock.
type Keys[T any] struct {
	known   map[string]*Keyed[T]
	order   []*Keyed[T] // oldest first
	settled []*Keyed[T] // those with an outcome, oldest first
	bytes   int
}

// Keyed is the first use of one key.
type Keyed[T any] struct {
	key  string
	what [sha256.Size]byte
	done chan struct{}
	size int
	gone bool
	kept bool
	out  T
	err  error
}

// Done is closed when the outcome is there.
func (k *Keyed[T]) Done() <-chan struct{} { return k.done }

// Began says, once Done is closed, whether the first use came to an outcome. If
// not, nothing of it ever began and the key is free again.
func (k *Keyed[T]) Began() bool { return k.kept }

// Outcome is what the first use came to, once Done is closed.
func (k *Keyed[T]) Outcome() (T, error) { return k.out, k.err }

// Begin looks a key up. First is true when nobody used it: the caller then
// acts, and ends with Settle or Forget. Otherwise the caller waits for Done and
// answers with Outcome. It is conflict when the key was used for another
// action, or when its outcome is no longer kept, and quota_exceeded when all
// remembered keys are in use at this moment.
func (k *Keys[T]) Begin(key string, action []byte) (use *Keyed[T], first bool, err error) {
	if len(key) > MaxKey {
		return nil, false, reins.Errorf(reins.CodeInvalidInput, "the idempotency key has %d bytes; at most %d are taken", len(key), MaxKey)
	}
	what := sha256.Sum256(action)
	if use := k.known[key]; use != nil {
		switch {
		case use.what != what:
			return nil, false, reins.Errorf(reins.CodeConflict, "idempotency key %q was used for another action; use a new key", key)
		case use.gone:
			return nil, false, reins.Errorf(reins.CodeConflict, "idempotency key %q was used before and its outcome is no longer kept; look at the page and use a new key", key)
		}
		return use, false, nil
	}
	if len(k.order) >= keptKeys && !k.forgetOldest() {
		return nil, false, reins.Errorf(reins.CodeQuotaExceeded, "%d keyed operations are under way; wait for some of them", len(k.order))
	}
	use = &Keyed[T]{key: key, what: what, done: make(chan struct{})}
	if k.known == nil {
		k.known = map[string]*Keyed[T]{}
	}
	k.known[key] = use
	k.order = append(k.order, use)
	return use, true, nil
}

// Settle records the outcome; size is what it weighs. Only the first call, and
// none after Forget, has an effect.
func (k *Keys[T]) Settle(use *Keyed[T], out T, err error, size int) {
	if use.ended() {
		return
	}
	use.out, use.err, use.size, use.kept = out, err, size, true
	close(use.done)
	k.settled = append(k.settled, use)
	k.bytes += size
	for len(k.settled) > keptResults || k.bytes > keptBytes && len(k.settled) > 1 {
		k.dropOutcome(k.settled[0])
	}
}

// Forget says that nothing began, so that the key may be used again. Others
// that wait for it are given err.
func (k *Keys[T]) Forget(use *Keyed[T], err error) {
	if use.ended() {
		return
	}
	use.err = err
	close(use.done)
	delete(k.known, use.key)
	k.order = remove(k.order, use)
}

func (k *Keyed[T]) ended() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// dropOutcome keeps the key and lets its outcome go. Waiters that have the
// Keyed already still read it: only new callers are told that it is gone.
func (k *Keys[T]) dropOutcome(use *Keyed[T]) {
	k.settled = remove(k.settled, use)
	k.bytes -= use.size
	fresh := *use
	var none T
	fresh.out, fresh.err, fresh.gone = none, nil, true
	if k.known[use.key] == use {
		k.known[use.key] = &fresh
	}
	for i, o := range k.order {
		if o == use {
			k.order[i] = &fresh
		}
	}
}

// forgetOldest forgets the oldest key whose operation has ended.
func (k *Keys[T]) forgetOldest() bool {
	for _, use := range k.order {
		if !use.ended() {
			continue
		}
		if use.kept && !use.gone {
			k.bytes -= use.size
			k.settled = remove(k.settled, use)
		}
		delete(k.known, use.key)
		k.order = remove(k.order, use)
		return true
	}
	return false
}

func remove[T comparable](list []T, v T) []T {
	for i, o := range list {
		if o == v {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
