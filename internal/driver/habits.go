package driver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins/internal/cdp"
)

// habitAfter is how often a page must have asked for the same thing by itself,
// outside of any action, for that to count as its habit.
const habitAfter = 2

// belatedFor is how long after an action a request may still come of it: from
// the end of a scroll, or once a page's timer for typing ran out.
const belatedFor = 300 * time.Millisecond

const keptHabits = 256 // signatures of one tab

// habits are what pages ask for by themselves: again and again, so that
// polling does not hold up an action (ACT-6), and as they load, so that a first
// look can wait for it. The zero value is ready for use.
type habits struct {
	mu   sync.Mutex
	tabs map[*tab]*habit
}

// habit is that of one tab's document.
type habit struct {
	counts  map[string]int      // by signature, outside of actions and what comes of them
	open    map[string]*request // requests for data and code under way
	changed chan struct{}       // closed and replaced when one ends
}

func newHabit() *habit {
	return &habit{counts: map[string]int{}, open: map[string]*request{}, changed: make(chan struct{})}
}

// ended takes a request off.
func (h *habit) ended(key string) {
	if _, ok := h.open[key]; ok {
		delete(h.open, key)
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

// listen begins to learn a tab's habits; again and again is the same as once.
func (b *browser) listen(t *tab) {
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	if b.habits.tabs == nil {
		b.habits.tabs = map[*tab]*habit{}
	}
	if b.habits.tabs[t] != nil {
		return
	}
	b.habits.tabs[t] = newHabit()
	stop := t.watch(func(e cdp.Event) { b.learn(t, e) })
	b.work.Go(func() {
		select {
		case <-t.ended:
		case <-b.conn.Done():
		}
		stop()
		b.habits.mu.Lock()
		defer b.habits.mu.Unlock()
		delete(b.habits.tabs, t)
	})
}

func (b *browser) learn(t *tab, e cdp.Event) {
	switch e.Method {
	case page.FrameNavigated.Method:
		if v, ok := cdp.Is(e, page.FrameNavigated); ok && v.Frame.ParentID == "" {
			b.habits.mu.Lock()
			defer b.habits.mu.Unlock()
			old := b.habits.tabs[t]
			b.habits.tabs[t] = newHabit()
			if old != nil {
				close(old.changed)
			}
		}
	case network.RequestWillBeSent.Method:
		if v, ok := cdp.Is(e, network.RequestWillBeSent); ok && holdsUp(v.Type) {
			b.asked(t, e, v)
		}
	case network.ResponseReceived.Method:
		if v, ok := cdp.Is(e, network.ResponseReceived); ok && streams(v.Response) {
			b.answered(t, e, v.RequestID)
		} else if ok {
			b.arriving(t, e, v.RequestID, func(r *request) { r.answered(v) })
		}
	case network.DataReceived.Method:
		if v, ok := cdp.Is(e, network.DataReceived); ok {
			b.arriving(t, e, v.RequestID, func(r *request) { r.arrived = time.Now() })
		}
	case network.LoadingFinished.Method:
		v, _ := cdp.Is(e, network.LoadingFinished)
		b.answered(t, e, v.RequestID)
	case network.LoadingFailed.Method:
		v, _ := cdp.Is(e, network.LoadingFailed)
		b.answered(t, e, v.RequestID)
	}
}

// holdsUp tells requests for data and code, which a page's contents wait for.
func holdsUp(kind network.ResourceType) bool {
	switch kind {
	case network.ResourceTypeXHR, network.ResourceTypeFetch, network.ResourceTypeScript, network.ResourceTypeStylesheet:
		return true
	}
	return false
}

func (b *browser) asked(t *tab, e cdp.Event, v network.EventRequestWillBeSent) {
	acting, sign := b.acting(t), signature(v)
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	h := b.habits.tabs[t]
	if h == nil {
		return
	}
	if h.counts[sign] < habitAfter && len(h.open) < keptHabits {
		h.open[e.Session.ID()+string(v.RequestID)] = &request{}
	}
	if !acting && v.Type != network.ResourceTypeStylesheet && (len(h.counts) < keptHabits || h.counts[sign] > 0) {
		h.counts[sign]++
	}
}

func (b *browser) answered(t *tab, e cdp.Event, id network.RequestID) {
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	if h := b.habits.tabs[t]; h != nil {
		h.ended(e.Session.ID() + string(id))
	}
}

// arriving takes in what comes of an answer that does not end yet.
func (b *browser) arriving(t *tab, e cdp.Event, id network.RequestID, take func(*request)) {
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	if h := b.habits.tabs[t]; h != nil && h.open[e.Session.ID()+string(id)] != nil {
		take(h.open[e.Session.ID()+string(id)])
	}
}

// loads says whether something that a page asked for as it loads is under way,
// for how long to wait for it at most, and what is closed when that changes.
func (b *browser) loads(t *tab) (open bool, left time.Duration, changed <-chan struct{}) {
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	h := b.habits.tabs[t]
	if h == nil {
		return false, 0, nil
	}
	now := time.Now()
	left = time.Hour
	for key, r := range h.open {
		each, waits := r.left(now)
		if !waits {
			delete(h.open, key)
			continue
		}
		left = min(left, each)
	}
	return len(h.open) > 0, left, h.changed
}

// awaitLoads waits until nothing that the page asked for as it loads is under
// way. It reports whether there was something.
func (b *browser) awaitLoads(ctx context.Context, t *tab) (waited bool, err error) {
	for {
		open, left, changed := b.loads(t)
		if !open {
			return waited, nil
		}
		waited = true
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-b.conn.Done():
			err = b.conn.Err()
		}
		timer.Stop()
		if err != nil {
			return waited, err
		}
	}
}

// acting reports whether an action that is not a mere look is under way, or
// ended so lately that what the page does may come of it.
func (b *browser) acting(t *tab) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(t.acted) < belatedFor {
		return true
	}
	for fx := range b.effects {
		if fx.tab == t {
			return true
		}
	}
	return false
}

func (b *browser) habitual(t *tab, signature string) bool {
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	h := b.habits.tabs[t]
	return h != nil && h.counts[signature] >= habitAfter
}

// signature is what two requests of one poll have in common: method, address
// without its query, and digits of the path left out.
func signature(v network.EventRequestWillBeSent) string {
	if v.Request == nil {
		return ""
	}
	return habitOf(v.Request.Method, v.Request.URL)
}

func habitOf(method, url string) string {
	address, _, _ := strings.Cut(url, "?")
	return method + " " + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, address)
}
