package driver

import (
	"strings"
	"sync"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins/internal/cdp"
)

// habitAfter is how often a page must have asked for the same thing by itself,
// outside of any action, for that to count as its habit.
const habitAfter = 2

const keptHabits = 256 // signatures of one tab

// habits are the requests that pages make by themselves, again and again:
// polling does not hold up an action (ACT-6). The zero value is ready for use.
type habits struct {
	mu   sync.Mutex
	tabs map[*tab]map[string]int
}

// listen begins to learn a tab's habits; again and again is the same as once.
func (b *browser) listen(t *tab) {
	b.habits.mu.Lock()
	defer b.habits.mu.Unlock()
	if b.habits.tabs == nil {
		b.habits.tabs = map[*tab]map[string]int{}
	}
	if b.habits.tabs[t] != nil {
		return
	}
	b.habits.tabs[t] = map[string]int{}
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
			b.habits.tabs[t] = map[string]int{}
			b.habits.mu.Unlock()
		}
	case network.RequestWillBeSent.Method:
		v, ok := cdp.Is(e, network.RequestWillBeSent)
		if !ok || v.Type != network.ResourceTypeXHR && v.Type != network.ResourceTypeFetch && v.Type != network.ResourceTypeScript || b.acting(t) {
			return
		}
		b.habits.mu.Lock()
		defer b.habits.mu.Unlock()
		if known := b.habits.tabs[t]; known != nil && (len(known) < keptHabits || known[signature(v)] > 0) {
			known[signature(v)]++
		}
	}
}

// acting reports whether an action that is not a mere look is under way.
func (b *browser) acting(t *tab) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
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
	return b.habits.tabs[t][signature] >= habitAfter
}

// signature is what two requests of one poll have in common: method, address
// without its query, and digits of the path left out.
func signature(v network.EventRequestWillBeSent) string {
	if v.Request == nil {
		return ""
	}
	address, _, _ := strings.Cut(v.Request.URL, "?")
	return v.Request.Method + " " + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, address)
}
