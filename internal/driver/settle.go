package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// settling follows what one input sets off in a tab: navigations until they
// are parsed, and requests for data and code until they end (ACT-6). It is told
// by events only.
type settling struct {
	tab    *tab
	fx     *effects
	stop   func()
	inputs time.Time

	mu       sync.Mutex
	navs     map[proto.FrameID]bool // navigations under way; true once committed
	begun    bool                   // there was one
	requests map[string]*request
	sent     map[string]int         // requests since the input, by signature
	contents map[proto.FrameID]bool // frames whose navigation was answered: whether with contents
	files    int                    // navigations that ended with contents, but without a document
	linked   bool                   // the input clicked a link that saves a file
	windows  int                    // that the page asked to open
	pages    int                    // of them, those for an address
	changed  chan struct{}          // closed and replaced at each change
}

// settle begins to follow an action's tab; call it before the input is sent.
func (b *browser) settle(x *action) *settling {
	t := x.tab
	s := &settling{tab: t, fx: x.fx, inputs: time.Now(), navs: map[proto.FrameID]bool{}, requests: map[string]*request{}, sent: map[string]int{}, contents: map[proto.FrameID]bool{}, changed: make(chan struct{})}
	s.stop = t.watch(s.take)
	return s
}

// expectFile has the action wait for a download to begin, whether or not the
// browser tells of the request for it.
func (s *settling) expectFile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked = true
}

// take is the watcher of the tab's events.
func (s *settling) take(e cdp.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takeLocked(e) {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *settling) takeLocked(e cdp.Event) bool {
	switch e.Method {
	case network.RequestWillBeSent.Method:
		v, ok := cdp.Is(e, network.RequestWillBeSent)
		return ok && s.sentLocked(e, v)
	case network.ResponseReceived.Method:
		v, ok := cdp.Is(e, network.ResponseReceived)
		r := s.requests[e.Session.ID()+string(v.RequestID)]
		if ok && v.Type == network.ResourceTypeDocument && v.Response != nil {
			s.contents[v.FrameID] = v.Response.Status != 204 && v.Response.Status != 205
		}
		if !ok || r == nil {
			return false
		}
		r.answered(v)
		if streams(v.Response) {
			delete(s.requests, e.Session.ID()+string(v.RequestID))
		}
		return true
	case network.DataReceived.Method:
		v, ok := cdp.Is(e, network.DataReceived)
		r := s.requests[e.Session.ID()+string(v.RequestID)]
		if !ok || r == nil {
			return false
		}
		r.arrived = time.Now()
		return true
	case network.LoadingFinished.Method:
		v, _ := cdp.Is(e, network.LoadingFinished)
		return s.endedLocked(e, v.RequestID)
	case network.LoadingFailed.Method:
		v, _ := cdp.Is(e, network.LoadingFailed)
		return s.endedLocked(e, v.RequestID)
	}
	return s.navigationLocked(e)
}

func (s *settling) navigationLocked(e cdp.Event) bool {
	switch e.Method {
	case page.WindowOpen.Method:
		s.windows++
		if v, ok := cdp.Is(e, page.WindowOpen); ok && v.URL != "" && v.URL != blankPage {
			s.pages++
		}
	case page.FrameRequestedNavigation.Method:
		v, ok := cdp.Is(e, page.FrameRequestedNavigation)
		if ok && v.Disposition == page.ClientNavigationDispositionDownload {
			s.files++
			return true
		}
		if !ok || v.Disposition != page.ClientNavigationDispositionCurrentTab {
			return false
		}
		if !s.navs[v.FrameID] {
			s.navs[v.FrameID] = false
		}
	case page.FrameStartedNavigating.Method:
		v, ok := cdp.Is(e, page.FrameStartedNavigating)
		if !ok || within(v) {
			return false
		}
		s.navs[v.FrameID], s.begun = false, true
	case page.FrameNavigated.Method:
		v, ok := cdp.Is(e, page.FrameNavigated)
		if !ok {
			return false
		}
		if _, known := s.navs[v.Frame.ID]; known {
			s.navs[v.Frame.ID] = true
		}
		for id, r := range s.requests { // those of the document before will not be heard of again
			if r.main && v.Frame.ParentID == "" && r.loader != v.Frame.LoaderID {
				delete(s.requests, id)
			}
		}
	case page.LifecycleEvent.Method:
		v, ok := cdp.Is(e, page.LifecycleEvent)
		if !ok || v.Name != "DOMContentLoaded" || !s.navs[v.FrameID] {
			return false
		}
		delete(s.navs, v.FrameID)
	case page.FrameStoppedLoading.Method:
		v, _ := cdp.Is(e, page.FrameStoppedLoading)
		if committed, known := s.navs[v.FrameID]; known && !committed {
			if contents, answered := s.contents[v.FrameID]; contents || !answered {
				s.files++
			}
		}
		delete(s.navs, v.FrameID)
	case page.NavigatedWithinDocument.Method:
		v, _ := cdp.Is(e, page.NavigatedWithinDocument)
		if !s.navs[v.FrameID] {
			delete(s.navs, v.FrameID)
		}
	case page.FrameDetached.Method:
		v, ok := cdp.Is(e, page.FrameDetached)
		if !ok || v.Reason == page.FrameDetachedReasonSwap {
			return false
		}
		delete(s.navs, v.FrameID)
	default:
		return false
	}
	return true
}

// within tells a navigation that stays in its document.
func within(v page.EventFrameStartedNavigating) bool {
	return strings.Contains(strings.ToLower(string(v.NavigationType)), "samedocument")
}

// sentLocked takes in a request. Pictures, media and the like hold nothing up,
// nor does what the page asks for again and again by itself.
func (s *settling) sentLocked(e cdp.Event, v network.EventRequestWillBeSent) bool {
	if !holdsUp(v.Type) || v.Request == nil || s.tab.b.habitual(s.tab, signature(v)) {
		return false
	}
	what := signature(v)
	if s.pollsLocked(what) {
		return true
	}
	s.requests[e.Session.ID()+string(v.RequestID)] = &request{loader: v.LoaderID, main: v.FrameID == s.tab.main.id, signature: what}
	return true
}

// pollsLocked counts a request, and finds that the page sends it again and
// again: it came habitAfter times since the input, and some time after it.
// Nothing like it is waited for then.
func (s *settling) pollsLocked(signature string) bool {
	s.sent[signature]++
	if s.sent[signature] <= habitAfter || time.Since(s.inputs) < pollAfter {
		return false
	}
	for id, r := range s.requests {
		if r.signature == signature {
			delete(s.requests, id)
		}
	}
	return true
}

func (s *settling) endedLocked(e cdp.Event, id network.RequestID) bool {
	key := e.Session.ID() + string(id)
	if s.requests[key] == nil {
		return false
	}
	delete(s.requests, key)
	return true
}

// streams recognises answers that are meant to go on.
func streams(r *network.Response) bool {
	return r != nil && streaming(r.MimeType)
}

func streaming(mediaType string) bool {
	switch mediaType {
	case "text/event-stream", "application/x-ndjson", "application/stream+json", "multipart/x-mixed-replace", "application/grpc-web-text":
		return true
	}
	return false
}

// openLocked counts what is still to be waited for, and says when to look
// again although nothing may happen.
func (s *settling) openLocked() (navs, requests int, again time.Duration) {
	again = time.Hour
	now := time.Now()
	for _, r := range s.requests {
		if left, open := r.left(now); open {
			requests++
			again = min(again, left)
		}
	}
	return len(s.navs), requests, again
}

// standing is how a document stands after an action (js/act.js: standing).
type standing struct {
	Busy  int    `json:"busy"`
	Focus int    `json:"focus"`
	Role  string `json:"role"`
	Name  string `json:"name"`
	Frame bool   `json:"frame"` // the focus is in a frame
	Title string `json:"title"`

	// Changed: the document has changed since an element of it was found.
	Changed bool `json:"changed"`

	// Now is what has been turned over on the element acted on: "checked".
	Now string `json:"now"`
}

// finish waits until what the input set off is there, at most for bound, and
// puts that into the reply. before is what was known of the page before.
func (s *settling) finish(ctx context.Context, x *action, bound time.Duration, before *standing, doc *document) error {
	defer s.stop()
	end := s.inputs.Add(bound)
	short, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	guarded, release := s.tab.guard(short)
	defer release()
	changes := x.changes()
	now, err := s.wait(guarded, before)
	s.mu.Lock()
	navs, requests, _ := s.openLocked()
	s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		changes.Settled = before == nil || now.Busy <= before.Busy
	case short.Err() != nil: // the bound passed
		changes.Pending = navs + requests
	case interrupted(err):
		changes.Settled = true
	case reins.CodeOf(err) == reins.CodePageCrashed, s.tab.b.conn.Err() != nil:
		return err
	}
	s.told(ctx, x, now, before, doc)
	return nil
}

// told puts how the page stands into the reply.
func (s *settling) told(ctx context.Context, x *action, now *stood, before *standing, doc *document) {
	if now == nil {
		return
	}
	s.tab.retitle(now)
	s.tell(x, now, doc)
	if now.doc != doc {
		s.tab.awaitLoad(ctx)
	}
	if _, filled := x.cmd.Action.(reins.Fill); now.Now != "" && !filled {
		x.note("it is now %s", now.Now)
	}
	if now.Frame {
		short, cancel := context.WithTimeout(ctx, frameAnswers)
		defer cancel()
		s.tab.b.inner(short, now)
	}
	if now.Focus != 0 && (before == nil || now.Focus != before.Focus || now.doc != doc) {
		changes := x.changes()
		changes.Focus = &reins.Target{Role: now.Role, Name: now.Name}
		changes.FocusRef = elementRef(now.doc.number, now.Focus)
	}
}

// tell says so when a page shows another address with its old contents: an
// application that changes its view may take its time.
func (s *settling) tell(x *action, now *stood, doc *document) {
	s.tab.b.mu.Lock()
	moved := s.tab.url != s.fx.url && now.doc == doc && s.tab.main.doc == doc
	s.tab.b.mu.Unlock()
	if moved && !now.Changed {
		x.note("the address has changed, but the page has not yet; what it shows may still be the old view")
	}
}

// retitle takes in the title that the page has now; the browser tells of it
// some time later.
func (t *tab) retitle(now *stood) {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if t.main.doc == now.doc && now.Title != "" && t.title != now.Title {
		t.title = now.Title
		t.b.updatedLocked(t)
	}
}

// inner follows the focus into the frames that it is in.
func (b *browser) inner(ctx context.Context, at *stood) {
	docs, err := at.doc.frame.tab.documents(ctx)
	for i := 0; err == nil && at.Frame && i < len(docs); i++ {
		if docs[i].parent < 0 || docs[docs[i].parent].document != at.doc {
			continue
		}
		n, errOwner := b.ownerNumber(ctx, at.doc, docs[i].frame)
		if errOwner != nil || n != at.Focus {
			continue
		}
		var next standing
		if err = docs[i].eval(ctx, "() => reins.standing()", &next); err == nil && next.Focus != 0 {
			at.standing, at.doc = next, docs[i].document
		} else {
			return
		}
	}
}

// interrupted tells the ends of a wait that are themselves what the action led
// to: a dialog, a closed tab.
func interrupted(err error) bool {
	var e *reins.Error
	return errors.As(err, &e) && (e.Code == reins.CodeDialogOpen || e.Code == reins.CodeInvalidState)
}

// stood is a standing and the document that it is of.
type stood struct {
	standing
	doc *document
}

// wait returns how the page stands once nothing is open and two pictures were
// painted since.
func (s *settling) wait(ctx context.Context, before *standing) (*stood, error) {
	for {
		if err := s.idle(ctx); err != nil {
			return nil, err
		}
		if err := s.opened(ctx); err != nil {
			return nil, err
		}
		d, err := s.tab.document(ctx)
		if err == nil {
			busy := 0
			if before != nil {
				busy = before.Busy
			}
			now := &stood{doc: d}
			millis := int64(0)
			if end, ok := ctx.Deadline(); ok {
				millis = max(0, time.Until(end).Milliseconds())
			}
			if err = d.eval(ctx, "(busy, ms) => reins.after(busy, ms)", &now.standing, busy, millis); err == nil {
				s.mu.Lock()
				navs, requests, _ := s.openLocked()
				s.mu.Unlock()
				if navs+requests == 0 {
					return now, s.opened(ctx)
				}
				continue
			}
		}
		if !errors.Is(err, errReplaced) {
			return nil, err
		}
		if err := s.tab.b.await(ctx, func() bool { return s.tab.main.doc != nil || s.tab.blockedLocked() != nil }); err != nil {
			return nil, err
		}
	}
}

// comesSoon is how long a window or a download that was asked for may take to
// be there; one that the browser refuses never is.
const comesSoon = time.Second

// opened waits until the windows that the page asked for are tabs that hold
// their page, and navigations that did not lead to a document are downloads.
func (s *settling) opened(ctx context.Context) error {
	s.mu.Lock()
	windows, pages, files := s.windows, s.pages, s.files
	if s.linked {
		files = max(files, 1)
	}
	s.mu.Unlock()
	if windows+files == 0 {
		return s.landed(ctx)
	}
	short, cancel := context.WithTimeout(ctx, comesSoon)
	defer cancel()
	err := s.tab.b.await(short, func() bool {
		there := 0
		for _, t := range s.fx.opened {
			if t.holdsPageLocked() {
				there++
			}
		}
		return len(s.fx.opened)+len(s.fx.notes) >= windows && there+len(s.fx.notes)+len(s.fx.downloads) >= pages &&
			len(s.fx.downloads) >= files || s.tab.blockedLocked() != nil
	})
	if err != nil && (ctx.Err() != nil || short.Err() == nil) {
		return err
	}
	return s.landed(ctx)
}

// soonLanded is how large a download may be that is waited for; larger ones are
// told when they end.
const soonLanded = 8 << 20

// landed waits until the small downloads that the action began have ended, for
// three quarters of what is left of the bound: one that takes longer does not
// make the page one that is busy.
func (s *settling) landed(ctx context.Context) error {
	end, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, time.Until(end)*3/4)
	defer cancel()
	err := s.tab.b.await(short, func() bool {
		return s.tab.blockedLocked() != nil || !slices.ContainsFunc(s.fx.downloads, func(d *download) bool {
			return d.state == downloadRunning && d.total <= soonLanded
		})
	})
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return nil
	}
	return err
}

// holdsPageLocked reports whether a tab that was opened for an address has got
// past the empty document that it began with, and its page is parsed, as far as
// it will be.
func (t *tab) holdsPageLocked() bool {
	return t.blockedLocked() != nil || t.main.doc != nil && t.main.url != blankPage && t.main.phase >= phaseParsed
}

// begins waits, for a moment, until a navigation is under way: one that was held
// up by a question goes on some time after the answer.
func (s *settling) begins(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, comesSoon)
	defer cancel()
	for {
		s.mu.Lock()
		begun := s.begun
		changed := s.changed
		s.mu.Unlock()
		if begun || s.tab.blocked() != nil {
			return
		}
		select {
		case <-changed:
		case <-s.tab.ended:
		case <-short.Done():
			return
		}
	}
}

// idle waits until no navigation and no request is open.
func (s *settling) idle(ctx context.Context) error {
	for {
		s.mu.Lock()
		navs, requests, again := s.openLocked()
		changed := s.changed
		s.mu.Unlock()
		if navs+requests == 0 {
			return nil
		}
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-s.tab.b.conn.Done():
			timer.Stop()
			return s.tab.b.conn.Err()
		}
		timer.Stop()
	}
}

// changes is the part of the result that says what the action set off.
func (x *action) changes() *reins.Changes {
	if x.reply.Result.Changes == nil {
		x.reply.Result.Changes = &reins.Changes{}
	}
	return x.reply.Result.Changes
}
