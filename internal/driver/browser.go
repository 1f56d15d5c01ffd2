package driver

import (
	"context"
	"slices"
	"strconv"
	"sync"

	protobrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// none are the parameters of commands that take none.
var none proto.Empty

// browser is the model of one connected browser. Handlers of events change it
// under mu and announce that by changedLocked; actions wait with await.
type browser struct {
	conn     *cdp.Conn
	session  *cdp.Session // the browser session: tabs attach through it
	settings Settings
	version  *protobrowser.GetVersionResult
	mouth
	telling sync.Mutex // held while a handover is told, so that the newest is told last; before mu

	mu        sync.Mutex
	live      bool     // everything that was there before is attached
	previous  Handover // what the driver before left, until it is released
	tabs      []*tab   // open ones, left to right
	selected  *tab     // one of tabs; nil only before the first and between the last and its successor
	lastTab   int      // number of the newest tab
	lastDoc   int      // number of the newest document
	downloads map[string]*download
	effects   map[*effects]struct{} // of the actions under way
	waiters   []chan struct{}       // closed at the next change
	passes    map[string]string     // origin to the header that answers it (NAV-5)
	asking    bool                  // whether the browser itself answers
	viewport  reins.Viewport        // of all tabs
	cast      *casting              // nil while there is none
	casts     uint64                // number of the newest

	views  views  // what snapshots showed; has a lock of its own
	habits habits // what pages ask for by themselves; has a lock of its own
	texts  texts  // what reading left over; has a lock of its own

	clipping sync.Mutex // held while a person uses the clipboard

	hung chan struct{}  // closed when the browser itself does not answer
	work sync.WaitGroup // goroutines that end with the connection
}

// changedLocked wakes who waits on the model.
func (b *browser) changedLocked() {
	for _, w := range b.waiters {
		close(w)
	}
	b.waiters = nil
}

// wake has who waits on the model look again.
func (b *browser) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changedLocked()
}

// await waits until cond, called under mu, holds. It fails with the cause of
// ctx or when the connection ends.
func (b *browser) await(ctx context.Context, cond func() bool) error {
	for {
		b.mu.Lock()
		if cond() {
			b.mu.Unlock()
			return nil
		}
		changed := make(chan struct{})
		b.waiters = append(b.waiters, changed)
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.conn.Done():
			return b.conn.Err()
		}
	}
}

// tabByTargetLocked returns the open tab of a target, or nil.
func (b *browser) tabByTargetLocked(id target.ID) *tab {
	for _, t := range b.tabs {
		if t.target == id {
			return t
		}
	}
	return nil
}

// resolveTab finds the tab that an action names, by tab ID, by the document of
// a ref, or else the selected one (SCH-4, TAB-2, SNAP-4).
func (b *browser) resolveTab(id reins.TabID, ref reins.Ref) (*tab, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var t *tab
	if id != "" {
		if t = b.tabByIDLocked(id); t == nil {
			return nil, b.unknownTabLocked(id)
		}
	}
	doc, _, isElement := parseRef(ref)
	switch {
	case ref != "" && !isElement && !isDialogRef(ref):
		return nil, reins.Errorf(reins.CodeInvalidInput, "ref %.40q is not a ref from a snapshot", string(ref))
	case isElement:
		d := b.documentLocked(doc)
		if d == nil {
			return nil, errStale(ref)
		}
		if t != nil && d.frame.tab != t {
			return nil, reins.Errorf(reins.CodeStaleRef, "ref %s is of tab %s, not of tab %s; leave tab out or take a new snapshot", ref, d.frame.tab.id, t.id)
		}
		return d.frame.tab, nil
	case t != nil:
		return t, nil
	case isDialogRef(ref):
		if t := b.tabOfDialogLocked(); t != nil {
			return t, nil
		}
	}
	if b.selected == nil {
		return nil, reins.Errorf(reins.CodeInvalidState, "no tab is open; open one with open_tab")
	}
	return b.selected, nil
}

func (b *browser) tabByIDLocked(id reins.TabID) *tab {
	for _, t := range b.tabs {
		if t.id == id {
			return t
		}
	}
	return nil
}

// unknownTabLocked says which tabs there are instead.
func (b *browser) unknownTabLocked(id reins.TabID) error {
	open := "no tab is open"
	for i, t := range b.tabs {
		switch {
		case i == 0:
			open = "open tabs: " + string(t.id)
		case i < 20:
			open += ", " + string(t.id)
		case i == 20:
			open += ", …"
		}
	}
	return reins.Errorf(reins.CodeInvalidState, "tab %.40q is not open (%s); see list_tabs", string(id), open)
}

// tabOfDialogLocked is the selected tab when it has a dialog, else the only
// other one that has.
func (b *browser) tabOfDialogLocked() *tab {
	if b.selected != nil && b.selected.dialog != nil {
		return b.selected
	}
	var found *tab
	for _, t := range b.tabs {
		if t.dialog != nil {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

// documentLocked returns the current document of that number, or nil.
func (b *browser) documentLocked(number int) *document {
	for _, t := range b.tabs {
		for _, f := range t.frames {
			if f.doc != nil && f.doc.number == number {
				return f.doc
			}
		}
	}
	return nil
}

// selectLocked makes t the selected tab.
func (b *browser) selectLocked(t *tab) {
	if b.selected == t {
		return
	}
	b.selected = t
	if t != nil {
		b.tellLocked("tab_selected", t)
	}
	b.changedLocked()
}

// tellLocked emits an event about t.
func (b *browser) tellLocked(kind string, t *tab) {
	b.emit(Event{Kind: kind, Tab: t.infoLocked()})
}

// listLocked describes the open tabs, left to right.
func (b *browser) listLocked() []reins.Tab {
	out := make([]reins.Tab, 0, len(b.tabs))
	for _, t := range b.tabs {
		out = append(out, t.infoLocked())
	}
	return out
}

// removeLocked takes a closed tab out and selects its opener or left neighbour
// when it was selected (TAB-3).
func (b *browser) removeLocked(t *tab) {
	at := slices.Index(b.tabs, t)
	if at < 0 {
		return
	}
	b.tabs = slices.Delete(b.tabs, at, at+1)
	t.endLocked()
	if b.cast != nil && b.cast.tab == t {
		b.endCastLocked()
	}
	for fx := range b.effects {
		fx.closed = append(fx.closed, t.id)
	}
	b.tellLocked("tab_closed", t)
	if b.selected == t {
		b.selected = nil
		switch {
		case t.opener != nil && slices.Contains(b.tabs, t.opener):
			b.selectLocked(t.opener)
		case len(b.tabs) > 0:
			b.selectLocked(b.tabs[max(0, at-1)])
		}
	}
	for _, other := range b.tabs {
		if other.opener == t {
			other.opener = nil
		}
	}
	b.changedLocked()
}

// nextTabID names a new tab; names are never used again (TAB-2).
func (b *browser) nextTabIDLocked() reins.TabID {
	b.lastTab++
	return reins.TabID("t" + strconv.Itoa(b.lastTab))
}
