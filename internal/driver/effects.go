package driver

import (
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins"
)

// effects collects what happens in the browser while one action runs (ACT-7).
// Its fields are guarded by browser.mu.
type effects struct {
	lease      string // whose action it is
	tab        *tab
	background bool      // what the action opens is meant to stay in the background
	opens      target.ID // the target that the action itself makes
	url        string
	title      string
	doc        *document
	consoleAt  int
	opened     []*tab
	closed     []reins.TabID
	downloads  []*download
	notes      []string
	refusals   []string     // of documents, by the network door
	dialog     *dialog      // opened meanwhile on the tab
	chooser    *fileChooser // asked for meanwhile on the tab
}

// begin starts collecting for an action on t. Every begin needs an end.
func (b *browser) begin(t *tab) *effects {
	b.mu.Lock()
	defer b.mu.Unlock()
	fx := &effects{tab: t}
	if t != nil {
		fx.url, fx.title, fx.doc, fx.consoleAt = t.url, t.title, t.main.doc, t.consoleErrors
	}
	b.effects[fx] = struct{}{}
	return fx
}

// of says whose action it is.
func (fx *effects) of(b *browser, lease string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fx.lease = lease
}

// inBackground says that tabs which the action opens stay unselected.
func (fx *effects) inBackground(b *browser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fx.background = true
}

// end stops collecting. Downloads that were not reported become events.
func (fx *effects) end(b *browser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.effects, fx)
	if fx.tab != nil {
		fx.tab.acted = time.Now()
	}
	for _, d := range fx.downloads {
		if d.holders--; d.holders == 0 {
			b.tellDownloadLocked(d)
		}
	}
}

// changesLocked says what happened so far. Focus, Value, Settled and Pending
// are for the caller to set.
func (fx *effects) changesLocked() *reins.Changes {
	c := &reins.Changes{ClosedTabs: fx.closed}
	t := fx.tab
	if t != nil {
		c.Navigated = t.main.doc != fx.doc || t.url != fx.url
		c.Within = c.Navigated && fx.doc != nil && t.main.doc == fx.doc
		if t.url != fx.url {
			c.URL = bounded(t.url)
		}
		if t.title != fx.title {
			c.Title = bounded(t.title)
		}
		c.ConsoleErrors = t.consoleErrors - fx.consoleAt
		if t.dialog != nil {
			c.Dialog = t.dialog.describe()
		}
		if t.chooser != nil && fx.chooser == t.chooser {
			c.FileChooser = &reins.FileChoice{Multiple: t.chooser.multiple}
		}
	}
	for _, o := range fx.opened {
		c.OpenedTabs = append(c.OpenedTabs, o.infoLocked())
	}
	for _, d := range fx.downloads {
		c.Downloads = append(c.Downloads, d.describe())
	}
	return c
}

// report fills a reply with what happened: tab, selected tab, changes,
// downloads, notes.
func (fx *effects) report(b *browser, r *Reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := fx.changesLocked()
	if old := r.Result.Changes; old != nil {
		changes.Focus, changes.FocusRef, changes.Value, changes.Settled, changes.Pending = old.Focus, old.FocusRef, old.Value, old.Settled, old.Pending
		if old.FileChooser != nil {
			changes.FileChooser = old.FileChooser
		}
	}
	r.Result.Changes = changes
	for _, d := range fx.downloads {
		if saved, ok := d.saved(); ok {
			r.Downloads = append(r.Downloads, saved)
			d.reported = true
		}
	}
	r.Result.Notes = append(append(r.Result.Notes, fx.notes...), fx.refusals...)
	b.placeLocked(fx.tab, r)
}

// placeLocked names in a reply the tab acted on and the selected one (TAB-3).
func (b *browser) placeLocked(t *tab, r *Reply) {
	if t != nil {
		info := t.infoLocked()
		r.Result.Tab = &info
	}
	if b.selected != nil {
		r.Result.Selected = b.selected.id
	}
}
