package api

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// mailboxMax is how many events wait for a slow reader; the oldest go first.
const mailboxMax = 256

// mailbox is a bounded list of events between the stream and its reader.
type mailbox struct {
	wake chan struct{}

	mu     sync.Mutex
	queued []reins.Event
	missed int
}

func (m *mailbox) put(e reins.Event) {
	m.mu.Lock()
	m.missed += e.Missed
	e.Missed = 0
	if len(m.queued) >= mailboxMax {
		m.queued = m.queued[1:]
		m.missed++
	}
	m.queued = append(m.queued, e)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// lose counts events that nobody can tell any more: at least one.
func (m *mailbox) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed++
}

func (m *mailbox) take() (reins.Event, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queued) == 0 {
		return reins.Event{}, false
	}
	e := m.queued[0]
	m.queued = m.queued[1:]
	e.Missed, m.missed = m.missed, 0
	return e, true
}

// Events implements [reins.Runtime]. When it returns the server is followed. A
// stream that breaks is opened again where it broke; what the server could not
// keep meanwhile counts as missed, at least one. The channel is closed when ctx
// or the client ends, and when the server says that there are no more.
func (c *Client) Events(ctx context.Context, project string) (<-chan reins.Event, error) {
	if err := (reins.ResourceKey{Project: project, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	if err := reins.ContextError(ctx); err != nil {
		return nil, err
	}
	f := &follower{c: c, project: project, box: &mailbox{wake: make(chan struct{}, 1)}}
	f.ctx, f.cancel = c.within(ctx)
	opened := make(chan error, 1)
	out := make(chan reins.Event, 16)
	over := make(chan struct{})
	err := c.begin(func() {
		defer close(over)
		f.run(opened)
	})
	if err == nil {
		if err = c.begin(func() { f.deliver(out, over) }); err == nil {
			err = <-opened
		}
	}
	if err != nil {
		f.cancel(nil)
		return nil, err
	}
	return out, nil
}

// follower is one Events.
type follower struct {
	c       *Client
	project string
	box     *mailbox
	ctx     context.Context
	cancel  context.CancelCauseFunc
	last    string // where the stream is
	open    bool   // it was, once
}

// run follows until there is nothing more to follow. Opened gets the outcome of
// the first try.
func (f *follower) run(opened chan<- error) {
	defer f.cancel(nil)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		heard := false
		over, err := f.once(func() {
			if heard = true; !f.open {
				f.open = true
				opened <- nil
			}
		})
		if !f.open {
			opened <- err
			return
		}
		if over || f.ctx.Err() != nil {
			return
		}
		if heard {
			wait = 20 * time.Millisecond
		}
		pause(f.ctx, wait/2+rand.N(wait))
	}
}

// once reads one stream; over when the server says that there are no more.
func (f *follower) once(heard func()) (over bool, err error) {
	ctx, alive, cancel := watchdog(f.ctx)
	defer cancel()
	header := map[string]string{"Accept": typeSSE}
	if f.last != "" {
		header[eventHeader] = f.last
	}
	r, err := f.c.open(ctx, request{method: "GET", path: projectOf(f.project) + "/events", header: header})
	if err != nil {
		switch reins.CodeOf(err) {
		case reins.CodeUnauthorized, reins.CodeDenied, reins.CodeInvalidInput, reins.CodeNotFound:
			return true, err
		}
		return false, err
	}
	defer r.Body.Close()
	in := newSSEReader(r.Body, errorMax)
	for {
		e, err := in.next(alive)
		if err != nil {
			return false, f.c.lost(f.ctx, request{}, err, true)
		}
		if e.id != "" {
			f.last = e.id
		}
		switch e.name {
		case eventOpen:
			var begin opening
			if e.decode(&begin) == nil && begin.Lost {
				f.box.lose()
			}
			heard()
		case eventChange:
			var ev reins.Event
			if e.decode(&ev) == nil {
				f.box.put(ev)
			}
		case eventEnd:
			return true, e.decode(nil)
		}
	}
}

// deliver hands events to the reader until there are no more.
func (f *follower) deliver(out chan<- reins.Event, over <-chan struct{}) {
	defer close(out)
	for {
		e, ok := f.box.take()
		if !ok {
			select {
			case <-f.box.wake:
				continue
			case <-over:
			}
			if e, ok = f.box.take(); !ok {
				return
			}
		}
		select {
		case out <- e:
		case <-f.ctx.Done():
			select {
			case out <- e: // there may be room for the last ones
			default:
				return
			}
		}
	}
}
