package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/reins-browser/reins"
)

const (
	keysMax   = 4096 // answers that are remembered
	keyLength = 128
)

// keyTable remembers what was made under an idempotency key (API-4). It is
// bounded: the oldest answers are forgotten first. A failure frees its key.
type keyTable struct {
	mu    sync.Mutex
	made  map[keyID]*keyed
	order []keyID // of those that succeeded, oldest first
}

// keyID is a key of one caller for one kind of creation at one address.
type keyID struct{ who, path, key string }

// keyed is one creation under way or over.
type keyed struct {
	done    chan struct{}
	request [sha256.Size]byte
	answer  any   // set when done is closed and it succeeded
	err     error // set when done is closed and it failed
}

// once runs a creation under the key that the request names, or answers with
// what the first request under it made. Another request under the same key is a
// conflict.
func (c *call) once(rt route, in any, serve func() (any, error)) (any, error) {
	key := c.r.Header.Get(keyHeader)
	if key == "" {
		return serve()
	}
	if len(key) > keyLength {
		return nil, reins.Errorf(reins.CodeInvalidInput, "an idempotency key has at most %d bytes", keyLength).In(reins.PhaseAdmission)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, reins.AsError(err)
	}
	sum := sha256.Sum256(append(body, c.r.URL.RawQuery...))
	id := keyID{c.who.Name, rt.id + " " + c.r.URL.Path, key}
	for {
		k, first := c.h.keys.begin(id, sum)
		if first {
			return c.h.keys.run(id, k, serve)
		}
		if k.request != sum {
			return nil, reins.Errorf(reins.CodeConflict, "the idempotency key was used for another request; use a new one").In(reins.PhaseAdmission)
		}
		select {
		case <-k.done:
		case <-c.r.Context().Done():
			return nil, reins.ContextError(c.r.Context())
		}
		if k.err == nil {
			return again(k.answer)
		}
		if err := reins.ContextError(c.r.Context()); err != nil {
			return nil, err
		}
	}
}

// again is an answer for the second time. A token is shown once (CAP-4).
func again(answer any) (any, error) {
	if made, ok := answer.(reins.Capability); ok {
		return nil, reins.Errorf(reins.CodeConflict, "this key has made capability %s, whose token is shown once; revoke it and use a new key", made.ID).
			With("capability", made.ID).In(reins.PhaseAdmission)
	}
	if made, ok := answer.(NewKey); ok {
		return nil, reins.Errorf(reins.CodeConflict, "this idempotency key has made API key %s, whose token is shown once; revoke it and use a new one", made.ID).
			With("key", made.ID).In(reins.PhaseAdmission)
	}
	return answer, nil
}

func (t *keyTable) begin(id keyID, sum [sha256.Size]byte) (k *keyed, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.made[id]; k != nil {
		return k, false
	}
	if t.made == nil {
		t.made = map[keyID]*keyed{}
	}
	k = &keyed{done: make(chan struct{}), request: sum, err: context.Canceled}
	t.made[id] = k
	return k, true
}

// run makes what is to be made; whatever happens, the key is settled.
func (t *keyTable) run(id keyID, k *keyed, serve func() (any, error)) (answer any, err error) {
	err = reins.Errorf(reins.CodeInternal, "the request did not end")
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if k.err = err; err != nil {
			delete(t.made, id)
		} else {
			k.answer = kept(answer)
			t.order = append(t.order, id)
			if len(t.order) > keysMax {
				delete(t.made, t.order[0])
				t.order = t.order[1:]
			}
		}
		close(k.done)
	}()
	return serve()
}

// kept is what is remembered of an answer: never a token (CAP-4).
func kept(answer any) any {
	if made, ok := answer.(reins.Capability); ok {
		made.Token = ""
		return made
	}
	if made, ok := answer.(NewKey); ok {
		made.Token = ""
		return made
	}
	return answer
}
