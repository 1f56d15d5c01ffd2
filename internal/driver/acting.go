package driver

import (
	"context"

	"github.com/reins-browser/reins"
)

// acting tells those who watch where the action is about to act, once (FRM-10):
// the element that it found, and the point that it acts at.
func (x *action) acting(s *spot) {
	if !x.cmd.Watched || x.shown || len(s.Place) != 4 {
		return
	}
	x.shown = true
	dx, dy := s.x-s.X, s.y-s.Y // from its document's window to the tab's
	b := x.tab.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.emit(Event{Kind: "acting", Tab: x.tab.infoLocked(), Lease: x.cmd.Lease, X: s.x, Y: s.y,
		Box: &reins.Box{X: s.Place[0] + dx, Y: s.Place[1] + dy, Width: s.Place[2], Height: s.Place[3]}})
}

// showPlace is acting for an element that is acted on without the pointer. One
// that is out of view is left to whatever brings it into view.
func (b *browser) showPlace(ctx context.Context, x *action, d *document, n int) {
	if !x.cmd.Watched || x.shown {
		return
	}
	s := &spot{doc: d, number: n}
	if err := d.eval(ctx, "n => reins.spotOf(n)", &s.readyInfo, n); err != nil || !s.OK {
		return
	}
	if _, _, err := b.climb(ctx, s, false); err == nil {
		x.acting(s)
	}
}
