package artifact

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// retryAfter is when files that could not be removed are tried again.
const retryAfter = time.Minute

// Delete removes one artifact. It is gone from lists and its readers end before
// the files are touched; when those cannot be removed it fails, the quota stays
// charged, and calling it again tries again. Not_found as for [Store.Stat].
func (s *Store) Delete(ctx context.Context, a Access, id string) error {
	if err := reins.ContextError(ctx); err != nil {
		return err.In(reins.PhaseArtifact)
	}
	s.mu.Lock()
	e := s.entries[a.Key][id]
	switch {
	case s.closed:
		s.mu.Unlock()
		return errStopped()
	case e == nil || !a.sees(e) || e.state == filling || e.busy != nil || e.state == listed && !e.visible(time.Now()):
		s.mu.Unlock()
		return errNotFound(a.Key, id)
	}
	s.claimLocked(e)
	s.mu.Unlock()
	return s.erase(e)
}

// Purge removes all artifacts of a resource, breaks off puts and reads of them
// and returns when nothing of it is left on disk or charged (ART-5). When some
// could not be removed it fails after trying all, and may be called again.
func (s *Store) Purge(ctx context.Context, key reins.ResourceKey) error {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return errStopped()
		}
		var mine []*entry
		var others []chan struct{}
		for _, e := range s.entries[key] {
			switch {
			case e.busy == nil:
				s.claimLocked(e)
				mine = append(mine, e)
			default:
				if e.state < doomed {
					s.doomLocked(e)
				}
				others = append(others, e.busy)
			}
		}
		s.mu.Unlock()
		if len(mine)+len(others) == 0 {
			return nil
		}
		var errs []error
		for _, e := range mine {
			errs = append(errs, s.erase(e))
		}
		if err := errors.Join(errs...); err != nil {
			return reins.AsError(err).Because(err)
		}
		for _, c := range others {
			select {
			case <-c:
			case <-ctx.Done():
				return reins.ContextError(ctx).In(reins.PhaseCleanUp)
			}
		}
	}
}

// claimLocked makes the caller the one who removes e's files.
func (s *Store) claimLocked(e *entry) {
	if e.state < doomed {
		s.doomLocked(e)
	}
	e.busy = make(chan struct{})
}

// doomLocked takes e from all lists and ends its readers.
func (s *Store) doomLocked(e *entry) {
	e.state = doomed
	close(e.ended)
	s.unscheduleLocked(e)
}

// erase removes the files of an entry that the caller made busy and doomed,
// and then, once, gives its quota back (ART-5).
func (s *Store) erase(e *entry) error {
	var errs []error
	for _, name := range []string{e.path, e.path + ".part"} {
		if err := s.disk.unlink(s.dir, name); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(e.busy)
	e.busy = nil
	if err != nil {
		s.scheduleLocked(e, time.Now().Add(retryAfter))
		return diskError("removing an artifact's file", err)
	}
	e.state = gone
	key := e.key()
	s.quota.give(key, usage{1, e.charged})
	delete(s.entries[key], e.meta.ID)
	if len(s.entries[key]) == 0 {
		delete(s.entries, key)
	}
	return nil
}

// sweep removes what is due until the store is closed.
func (s *Store) sweep() {
	defer close(s.swept)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
		for _, e := range s.takeDue(time.Now()) {
			_ = s.erase(e) // it scheduled itself again
		}
		s.mu.Lock()
		timer.Stop()
		if len(s.due) > 0 {
			timer.Reset(time.Until(s.due[0].dueAt))
		}
		s.mu.Unlock()
	}
}

func (s *Store) takeDue(now time.Time) []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*entry
	for !s.closed && len(s.due) > 0 && !now.Before(s.due[0].dueAt) {
		e := s.due[0]
		s.unscheduleLocked(e)
		if e.busy == nil {
			s.claimLocked(e)
			out = append(out, e)
		}
	}
	return out
}

func (s *Store) scheduleLocked(e *entry, at time.Time) {
	s.unscheduleLocked(e)
	e.dueAt = at
	heap.Push(&s.due, e)
	if s.due[0] == e {
		select {
		case s.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (s *Store) unscheduleLocked(e *entry) {
	if e.index >= 0 {
		heap.Remove(&s.due, e.index)
	}
}

// dueHeap orders entries by when the sweeper is to remove them.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].dueAt.Before(h[j].dueAt) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
