package host

import (
	"context"
	"sync"

	"github.com/reins-browser/reins"
)

// eventBuffer is how many events wait for a slow reader; the oldest go first.
const eventBuffer = 256

// eventsOut is how many are handed over already, so that a reader still gets
// the last ones of a generation after its end.
const eventsOut = 16

// events spreads what happens to those who subscribed. Publishing never blocks.
type events struct {
	wg sync.WaitGroup

	mu   sync.Mutex
	over bool
	subs map[*subscriber]struct{}
}

// subscriber is one reader: a bounded list and a goroutine that feeds it.
type subscriber struct {
	project string
	out     chan reins.Event
	wake    chan struct{} // one pending at most

	mu     sync.Mutex
	queued []reins.Event
	missed int
}

func newEvents() *events { return &events{subs: map[*subscriber]struct{}{}} }

func (e *events) publish(ev reins.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.subs {
		if s.project == ev.Key.Project {
			s.add(ev)
		}
	}
}

func (s *subscriber) add(ev reins.Event) {
	s.mu.Lock()
	if n := len(s.queued); n > 0 && quietControl(ev) && quietControl(s.queued[n-1]) && ev.Key == s.queued[n-1].Key {
		s.queued = s.queued[:n-1] // which agents at work follow each other with
	}
	if len(s.queued) >= eventBuffer {
		s.queued = s.queued[1:]
		s.missed++
	}
	s.queued = append(s.queued, ev)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// quietControl is a snapshot of control in which no person has a part: one comes
// with each beginning and end of an agent's work, and the newest says it all.
func quietControl(ev reins.Event) bool {
	return ev.Control != nil && ev.Control.Actor == "" && len(ev.Control.Requests) == 0
}

func (s *subscriber) next() (reins.Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queued) == 0 {
		return reins.Event{}, false
	}
	ev := s.queued[0]
	s.queued = s.queued[1:]
	ev.Missed, s.missed = s.missed, 0
	return ev, true
}

// subscribe delivers a project's events until ctx or over ends, then closes
// the channel.
func (e *events) subscribe(ctx, over context.Context, project string) <-chan reins.Event {
	s := &subscriber{project: project, out: make(chan reins.Event, eventsOut), wake: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		close(s.out)
		return s.out
	}
	e.subs[s] = struct{}{}
	e.wg.Go(func() {
		defer close(s.out)
		defer s.rest()
		defer e.drop(s)
		for {
			ev, ok := s.next()
			if !ok {
				select {
				case <-s.wake:
					continue
				case <-ctx.Done():
				case <-over.Done():
				}
				return
			}
			select {
			case s.out <- ev:
			case <-ctx.Done():
				return
			case <-over.Done():
				s.put(ev)
				return
			}
		}
	})
	return s.out
}

// rest hands over what there is still room for, without waiting.
func (s *subscriber) rest() {
	for {
		ev, ok := s.next()
		if !ok || !s.put(ev) {
			return
		}
	}
}

func (s *subscriber) put(ev reins.Event) bool {
	select {
	case s.out <- ev:
		return true
	default:
		return false
	}
}

func (e *events) drop(s *subscriber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.subs, s)
}

// close waits for every feeder; their contexts have ended.
func (e *events) close() {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	e.wg.Wait()
}

// Events implements [reins.Runtime].
func (h *Host) Events(ctx context.Context, project string) (<-chan reins.Event, error) {
	if err := (reins.ResourceKey{Project: project, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	g, err := h.current()
	if err != nil {
		return nil, err
	}
	return g.events.subscribe(ctx, g.over, project), nil
}
