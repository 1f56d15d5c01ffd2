package api

import (
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

const (
	feedLength = 256             // events that a feed remembers, for slow readers and those who come back
	feedsMax   = 1024            // feeds at a time
	feedLinger = 2 * time.Minute // how long a feed is kept for those who come back
)

// events is a feed for each project that somebody follows or has just followed.
type events struct {
	h *Handler

	mu    sync.Mutex
	over  bool
	feeds map[string]*feed
	wg    sync.WaitGroup
}

// feed remembers the last events of one project under numbers of its own. One
// goroutine takes them from the runtime; readers go at their own pace.
type feed struct {
	project string
	epoch   string // tells its numbers from those of another feed
	stop    context.CancelFunc

	users int         // guarded by events.mu
	timer *time.Timer // guarded by events.mu; ends it when nobody came back

	mu      sync.Mutex
	last    []numbered
	next    uint64
	changed chan struct{} // closed, and replaced, with each event
	over    bool          // the runtime ends it
}

// numbered is an event and its place in the feed.
type numbered struct {
	reins.Event
	number uint64
}

// subscription is one reader's hold of a feed; from is where it begins.
type subscription struct {
	*feed
	from  uint64
	leave func()
}

// subscribe follows a project from now on.
func (e *events) subscribe(project string) (*subscription, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return nil, errStopping
	}
	f := e.feeds[project]
	if f == nil {
		var err error
		if f, err = e.open(project); err != nil {
			return nil, err
		}
	}
	f.users++
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &subscription{feed: f, from: f.next, leave: sync.OnceFunc(func() { e.leave(f) })}, nil
}

// open begins a feed. Its caller holds the lock.
func (e *events) open(project string) (*feed, error) {
	if len(e.feeds) >= feedsMax {
		return nil, reins.Errorf(reins.CodeQuotaExceeded, "%d projects are followed already; try again in some minutes", feedsMax).In(reins.PhaseAdmission)
	}
	ctx, cancel := context.WithCancel(e.h.closing)
	from, err := e.h.runtime.Events(ctx, project)
	if err != nil {
		cancel()
		return nil, err
	}
	f := &feed{project: project, epoch: strings.ToLower(rand.Text()), stop: cancel, changed: make(chan struct{})}
	if e.feeds == nil {
		e.feeds = map[string]*feed{}
	}
	e.feeds[project] = f
	e.wg.Go(func() {
		defer cancel()
		for ev := range from {
			f.add(ev)
		}
		e.mu.Lock()
		if e.feeds[project] == f {
			delete(e.feeds, project)
		}
		e.mu.Unlock()
		f.close()
	})
	return f, nil
}

func (e *events) leave(f *feed) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.users--; f.users > 0 || e.feeds[f.project] != f {
		return
	}
	f.timer = time.AfterFunc(feedLinger, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if f.users == 0 && e.feeds[f.project] == f {
			delete(e.feeds, f.project)
			f.stop()
		}
	})
}

// close waits for all feeds, whose contexts have ended.
func (e *events) close() {
	e.mu.Lock()
	e.over = true
	for _, f := range e.feeds {
		if f.timer != nil {
			f.timer.Stop()
		}
		f.stop()
	}
	e.mu.Unlock()
	e.wg.Wait()
}

func (f *feed) add(ev reins.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = append(f.last, numbered{ev, f.next})
	if f.next++; len(f.last) > feedLength {
		f.last = f.last[1:]
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	close(f.changed) // and stays so
}

// read returns what there is from a number on, where to go on, and what is
// closed when there is more. What has gone already is counted in the first
// event's Missed.
func (f *feed) read(from uint64) (_ []numbered, next uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from >= f.next || len(f.last) == 0 {
		return nil, f.next, f.changed
	}
	first := f.last[0].number
	out := append([]numbered(nil), f.last[max(from, first)-first:]...)
	if from < first {
		out[0].Missed += int(first - from)
	}
	return out, f.next, f.changed
}

func (f *feed) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// id is how a client names the place after an event of a number.
func (f *feed) id(number uint64) string { return f.epoch + "-" + strconv.FormatUint(number, 10) }

// after is where a client that names a place goes on; lost when this feed does
// not know it.
func (f *feed) after(id string) (from uint64, known bool) {
	epoch, number, ok := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok || err != nil || epoch != f.epoch || n > f.next {
		return f.next, false
	}
	return n, true
}

func (h *Handler) eventRoutes() {
	stream(h, route{method: "GET", path: projectPath + "/events", id: "events", tag: "events",
		summary: "Follow a project", about: "An event open where the stream begins, then an event for each change, and end, an Error, when there are no more. With Last-Event-ID it goes on there; what is not known any more is counted in missed.",
		headers: []parameter{{eventHeader, "Where to go on."}}},
		typeSSE, reflect.TypeFor[Nothing](), reflect.TypeFor[reins.Event](), h.sendEvents)
}

// opening is the data of the event that a stream begins with.
type opening struct {
	Lost bool `json:"lost,omitempty"` // the place that was asked for is not known
}

func (h *Handler) sendEvents(_ context.Context, c *call) error {
	feed, err := h.streams.subscribe(c.path("project"))
	if err != nil {
		return err
	}
	defer feed.leave()
	at, begin := feed.from, opening{}
	if id := c.r.Header.Get(eventHeader); id != "" {
		from, known := feed.after(id)
		at, begin.Lost = from, !known
	}
	ctx, done, err := c.life(nil)
	if err != nil {
		return err
	}
	defer done()
	out := newSSE(c.w, ctx.Err)
	tick := h.ticker()
	defer tick.Stop()
	gone := out.send(eventOpen, feed.id(at), begin)
	for gone == nil {
		over := feed.ended() && !h.stopping() // before the last look
		list, next, more := feed.read(at)
		for _, e := range list {
			if !c.who.sees(e.Key.ID) {
				continue
			}
			if gone = out.send(eventChange, feed.id(e.number+1), e.Event); gone != nil {
				break
			}
		}
		at = next
		if gone != nil {
			break
		}
		if over {
			return out.last(h.whyOver(ctx, c.path("project")))
		}
		select {
		case <-more:
		case <-tick.C:
			gone = out.alive()
		case <-ctx.Done():
			gone = ctx.Err()
		}
	}
	return out.last(reins.AsError(context.Cause(ctx)))
}

// whyOver is why the runtime has no more events of a project.
func (h *Handler) whyOver(ctx context.Context, project string) *reins.Error {
	if _, err := h.runtime.List(ctx, project); err != nil {
		return reins.AsError(err)
	}
	return reins.Errorf(reins.CodeRuntimeStopped, "the runtime was stopped; follow again").In(reins.PhaseLifeCycle)
}
