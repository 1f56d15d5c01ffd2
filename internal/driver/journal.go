package driver

import (
	"slices"
	"sync"

	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins/internal/cdp"
)

const (
	keptEntries = 500    // of each of a tab's two logs
	keptLooks   = 64     // leases whose last look is remembered
	logBytes    = 24_000 // of one answer, about
)

// journal keeps what the pages of one tab wrote to their consoles and asked of
// the network: bounded, the oldest goes first. It has a lock of its own, a leaf.
// The zero value is empty and ready for use.
type journal struct {
	mu      sync.Mutex
	clock   int // of everything that was noted; only grows
	console ring[*message]
	network ring[*traffic]
	open    map[string]*traffic            // by session and request ID
	page    struct{ console, network int } // the clock when the page that is shown began
	looks   []look                         // least recent first
	changed chan struct{}                  // closed at the next change of open
}

// look is how far a lease has seen one of the logs.
type look struct {
	lease string
	verb  string
	at    int
}

// entry is what both kinds of entry have.
type entry interface{ when() int }

// ring is the newest entries of a log.
type ring[E entry] struct {
	entries []E
	dropped int // the clock of the newest that was dropped
}

func (r *ring[E]) add(e E) {
	if len(r.entries) >= keptEntries {
		r.dropped = r.entries[0].when()
		r.entries = slices.Delete(r.entries, 0, 1)
	}
	r.entries = append(r.entries, e)
}

// take notes an event of one of the tab's sessions.
func (j *journal) take(t *tab, e cdp.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Method == page.FrameNavigated.Method {
		if v, ok := cdp.Is(e, page.FrameNavigated); ok && v.Frame.ParentID == "" {
			j.turnLocked(e.Session.ID(), string(v.Frame.LoaderID))
		}
		return
	}
	if !j.consoleLocked(e) && j.networkLocked(e) {
		j.changedLocked()
	}
}

// turnLocked begins a page: its document's request came before it.
func (j *journal) turnLocked(session, loader string) {
	j.page.console, j.page.network = j.clock, j.clock
	for i, r := range slices.Backward(j.network.entries) {
		if r.loader != loader {
			continue
		}
		j.page.network = min(j.page.network, j.network.entries[i].began-1)
	}
	for id, r := range j.open { // of the document before nothing will be heard
		if r.session == session && r.loader != loader && r.Type != "document" {
			r.ended = j.tickLocked()
			delete(j.open, id)
		}
	}
	j.changedLocked()
}

func (j *journal) tickLocked() int {
	j.clock++
	return j.clock
}

func (j *journal) changedLocked() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// sinceLocked is from when on a lease is told, and notes that it looks now. A
// lease that looks for the first time is told of the page that is shown.
func (j *journal) sinceLocked(lease, verb string, whole bool, page int) int {
	since := page
	if i := slices.IndexFunc(j.looks, func(l look) bool { return l.lease == lease && l.verb == verb }); i >= 0 {
		if !whole {
			since = j.looks[i].at
		}
		j.looks = slices.Delete(j.looks, i, i+1)
	}
	if len(j.looks) >= 2*keptLooks {
		j.looks = slices.Delete(j.looks, 0, 1)
	}
	j.looks = append(j.looks, look{lease, verb, j.clock})
	return since
}

// fitting is how many of the newest of n things fit one answer.
func fitting(n int, size func(i int) int) int {
	room := logBytes
	for i := n - 1; i >= 0; i-- {
		if room -= size(i) + 40; room < 0 {
			return n - 1 - i
		}
	}
	return n
}
