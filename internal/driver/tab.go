package driver

import (
	"context"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// tab is one open tab. Unless said otherwise its fields are guarded by
// browser.mu.
type tab struct {
	b      *browser
	id     reins.TabID
	target target.ID

	session *cdp.Session // of the page; replaced when it was lost while the page lives
	opener  *tab
	main    *frame
	frames  map[proto.FrameID]*frame    // main and all below it, in whatever process
	orphans map[proto.FrameID]*document // of frames that were not told of yet
	url     string
	title   string

	loading bool
	crashed bool
	closing bool          // being closed by an action
	leaving int           // navigations of ours that have not committed
	ready   bool          // its sessions are set up
	ended   chan struct{} // closed when the tab is gone

	dialog        *dialog      // open JavaScript dialog
	chooser       *fileChooser // file chooser that a page asked for and nobody answered
	consoleErrors int          // errors and uncaught exceptions so far
	nav           navigation   // of the main frame
	acted         time.Time    // when the last action on it ended
	dialogs       int          // dialogs that its document has opened
	dismissed     int          // dialogs that were answered for the page so far
	laying        laying       // for the viewport

	carried  *carried                 // by a drag that the browser left to us; see carry.go
	touching map[int]reins.TouchPoint // fingers of people, by ID
	raw      []*cdp.Pending           // events of people that the page has not handled, oldest first; see room
	gesture  time.Time                // when a person last pressed something

	journal journal // has a lock of its own
	heard   heard   // of the goroutine that handles events only

	guards   map[*guard]struct{}
	watchers map[*watcher]struct{}
}

// infoLocked describes the tab for a result.
func (t *tab) infoLocked() reins.Tab {
	info := reins.Tab{
		ID: t.id, URL: bounded(t.url), Title: bounded(t.title),
		Selected: t.b.selected == t, Loading: t.loading, Crashed: t.crashed,
	}
	if t.opener != nil {
		info.Opener = t.opener.id
	}
	return info
}

func (t *tab) info() reins.Tab {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	return t.infoLocked()
}

// pageSession returns the tab's page session of the moment.
func (t *tab) pageSession() *cdp.Session {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	return t.session
}

// endLocked marks the tab as gone and interrupts what works on it.
func (t *tab) endLocked() {
	select {
	case <-t.ended:
		return
	default:
	}
	close(t.ended)
	t.interruptLocked(errClosed(t))
}

func errClosed(t *tab) *reins.Error {
	return reins.Errorf(reins.CodeInvalidState, "tab %s was closed; see list_tabs", t.id)
}

func errCrashed(t *tab) *reins.Error {
	return reins.Errorf(reins.CodePageCrashed, "the page in tab %s crashed; navigate the tab to load it anew", t.id)
}

// guard is one action under way that something on its tab may interrupt.
type guard struct{ cancel context.CancelCauseFunc }

// guard returns a context that ends, with an *Error as its cause, when a dialog
// opens on the tab (dialog_open), its page crashes (page_crashed) or it is
// closed (invalid_state), and at once when that is so already. Release it with
// the returned function.
func (t *tab) guard(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &guard{cancel}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if err := t.blockedLocked(); err != nil {
		cancel(err)
		return ctx, func() {}
	}
	t.guards[g] = struct{}{}
	return ctx, func() {
		t.b.mu.Lock()
		delete(t.guards, g)
		t.b.mu.Unlock()
		cancel(nil)
	}
}

// blocked says why the page cannot be worked on right now; nil when it can.
func (t *tab) blocked() error {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if err := t.blockedLocked(); err != nil {
		return err
	}
	return nil
}

// usable waits, for a bounded time, until the page's session is set up, and
// says why the page cannot be worked on when it cannot.
func (t *tab) usable(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, settlePages)
	defer cancel()
	err := t.b.await(short, func() bool { return t.ready && t.attachedLocked() || t.blockedLocked() != nil })
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return reins.Errorf(reins.CodeToolFailed, "the page in tab %s does not answer; navigate the tab or close it", t.id)
	}
	if err != nil {
		return err
	}
	return t.blocked()
}

// attachedLocked reports whether the page's session lives.
func (t *tab) attachedLocked() bool {
	select {
	case <-t.session.Done():
		return false
	default:
		return true
	}
}

func (t *tab) blockedLocked() *reins.Error {
	select {
	case <-t.ended:
		return errClosed(t)
	default:
	}
	switch {
	case t.crashed:
		return errCrashed(t)
	case t.dialog != nil:
		return errDialog(t, t.dialog)
	}
	return nil
}

func (t *tab) interruptLocked(cause error) {
	for g := range t.guards {
		g.cancel(cause)
		delete(t.guards, g)
	}
}

// watcher receives the DevTools events of a tab.
type watcher struct{ handle func(cdp.Event) }

// watch calls handle for every event on any session of the tab, in order, on
// the connection's reading goroutine and after the model took it in: handle
// must return soon, must not wait for a reply and must not keep the parameters.
// Stop with the returned function; a call under way may still end after it.
func (t *tab) watch(handle func(cdp.Event)) (stop func()) {
	w := &watcher{handle}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	t.watchers[w] = struct{}{}
	return func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		delete(t.watchers, w)
	}
}

// notify hands an event to the watchers.
func (t *tab) notify(e cdp.Event) {
	t.b.mu.Lock()
	var all []*watcher
	for w := range t.watchers {
		all = append(all, w)
	}
	t.b.mu.Unlock()
	for _, w := range all {
		w.handle(e)
	}
}

// bounded makes a page's string fit a result.
func bounded(s string) string {
	const most = reins.MaxPageString
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	runes := 0
	for i := range s {
		if runes == most-1 {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}
