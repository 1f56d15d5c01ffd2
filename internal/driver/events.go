package driver

import (
	"cmp"
	"slices"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins/internal/cdp"
)

// onEvent takes an event of one of the tab's sessions into the model, then
// hands it to those who watch the tab.
func (t *tab) onEvent(e cdp.Event) {
	if t.shouts(e) {
		return
	}
	switch e.Method {
	case page.ScreencastFrame.Method:
		t.filmed(e)
		return
	case input.DragIntercepted.Method:
		t.dragIntercepted(e)
	case target.AttachedToTarget.Method:
		if v, ok := cdp.Is(e, target.AttachedToTarget); ok {
			t.attachedFrame(e.Session, v)
		}
	case target.DetachedFromTarget.Method:
		if v, ok := cdp.Is(e, target.DetachedFromTarget); ok {
			t.detachedFrame(string(v.SessionID))
		}
	case page.JavascriptDialogOpening.Method:
		if v, ok := cdp.Is(e, page.JavascriptDialogOpening); ok {
			t.dialogOpened(e.Session, v)
		}
	case page.FileChooserOpened.Method:
		if v, ok := cdp.Is(e, page.FileChooserOpened); ok {
			t.chooserOpened(v)
		}
	case fetch.RequestPaused.Method:
		if v, ok := cdp.Is(e, fetch.RequestPaused); ok {
			t.judge(e.Session, v)
		}
	default:
		t.b.mu.Lock()
		if t.updateLocked(e) {
			t.b.changedLocked()
		}
		t.b.mu.Unlock()
	}
	t.journal.take(t, e)
	t.notify(e)
}

// updateLocked takes in events that only change the model; it reports whether
// this one did.
func (t *tab) updateLocked(e cdp.Event) bool {
	switch e.Method {
	case runtime.ExecutionContextCreated.Method, runtime.ExecutionContextDestroyed.Method,
		runtime.ExecutionContextsCleared.Method:
		return t.contextLocked(e)
	case page.FrameAttached.Method, page.FrameDetached.Method, page.FrameNavigated.Method,
		page.NavigatedWithinDocument.Method:
		return t.frameLocked(e)
	case page.LifecycleEvent.Method:
		v, ok := cdp.Is(e, page.LifecycleEvent)
		return ok && t.lifecycleLocked(v)
	case page.FrameStartedLoading.Method:
		v, ok := cdp.Is(e, page.FrameStartedLoading)
		return ok && v.FrameID == t.main.id && t.loadingLocked(true)
	case page.FrameStoppedLoading.Method:
		v, ok := cdp.Is(e, page.FrameStoppedLoading)
		return ok && v.FrameID == t.main.id && t.loadingLocked(false)
	case page.FrameStartedNavigating.Method:
		v, ok := cdp.Is(e, page.FrameStartedNavigating)
		if ok && v.FrameID == t.main.id && !within(v) {
			t.nav.startedLocked(v)
		}
		return ok
	case page.JavascriptDialogClosed.Method:
		return t.dialogClosedLocked()
	case runtime.ExceptionThrown.Method:
		t.consoleErrors++
		return true
	case runtime.ConsoleAPICalled.Method:
		return t.consoleLocked(e)
	case network.ResponseReceived.Method, network.LoadingFailed.Method, network.RequestWillBeSent.Method:
		taken := t.nav.takeLocked(e)
		if taken && e.Method == network.ResponseReceived.Method {
			t.tellRefusalLocked()
		}
		return taken
	case inspector.TargetCrashed.Method:
		return t.frameCrashedLocked(e.Session)
	}
	return false
}

func (t *tab) loadingLocked(now bool) bool {
	if t.loading == now {
		return false
	}
	t.loading = now
	t.b.tellLocked("tab_updated", t)
	return true
}

func (t *tab) consoleLocked(e cdp.Event) bool {
	var v struct {
		Type string `json:"type"`
	}
	if e.Decode(&v) != nil || v.Type != "error" && v.Type != "assert" {
		return false
	}
	t.consoleErrors++
	return true
}

// contextLocked follows the isolated worlds, which documents are known by.
func (t *tab) contextLocked(e cdp.Event) bool {
	switch e.Method {
	case runtime.ExecutionContextCreated.Method:
		v, ok := cdp.Is(e, runtime.ExecutionContextCreated)
		if !ok || v.Context.Name != worldName {
			return false
		}
		var aux struct {
			FrameID proto.FrameID `json:"frameId"`
			Type    string        `json:"type"`
		}
		if jsonv2.Unmarshal(v.Context.AuxData, &aux) != nil || aux.Type != "isolated" {
			return false
		}
		t.b.lastDoc++
		d := &document{
			number: t.b.lastDoc, session: e.Session,
			context: v.Context.UniqueID, id: v.Context.ID, gone: make(chan struct{}),
		}
		if f := t.frames[aux.FrameID]; f != nil {
			f.enterLocked(d)
		} else if len(t.orphans) < mostOrphans {
			t.orphans[aux.FrameID] = d
		}
	case runtime.ExecutionContextDestroyed.Method:
		v, ok := cdp.Is(e, runtime.ExecutionContextDestroyed)
		if !ok {
			return false
		}
		t.leaveAllLocked(func(d *document) bool { return d.context == v.ExecutionContextUniqueID })
	case runtime.ExecutionContextsCleared.Method:
		t.leaveAllLocked(func(d *document) bool { return d.session == e.Session })
	}
	return true
}

// mostOrphans bounds the documents whose frames have not been told of yet.
const mostOrphans = 1000

// leaveAllLocked ends the documents that match.
func (t *tab) leaveAllLocked(match func(*document) bool) {
	t.main.eachLocked(func(f *frame) {
		if f.doc != nil && match(f.doc) {
			f.leaveLocked()
		}
	})
	for id, d := range t.orphans {
		if match(d) {
			delete(t.orphans, id)
		}
	}
}

// enterLocked gives the frame its next document.
func (f *frame) enterLocked(d *document) {
	f.leaveLocked()
	d.frame = f
	f.doc = d
}

// leaveLocked ends the frame's document as one that can be worked on.
func (f *frame) leaveLocked() {
	if f.doc != nil {
		close(f.doc.gone)
		f.doc = nil
	}
}

// frameLocked follows the tree of frames.
func (t *tab) frameLocked(e cdp.Event) bool {
	switch e.Method {
	case page.FrameAttached.Method:
		v, ok := cdp.Is(e, page.FrameAttached)
		if !ok {
			return false
		}
		f := t.frames[v.FrameID]
		if f == nil {
			f = t.addFrameLocked(v.FrameID, t.frames[v.ParentFrameID])
		}
		f.session = e.Session
	case page.FrameDetached.Method:
		v, ok := cdp.Is(e, page.FrameDetached)
		f := t.frames[v.FrameID]
		if !ok || f == nil || f == t.main {
			return false
		}
		if v.Reason == page.FrameDetachedReasonSwap {
			return false // it goes on in another process
		}
		if f.session != e.Session && f.parent.session != e.Session {
			return false // an old process's view of a frame that has moved
		}
		t.removeFrameLocked(f)
	case page.FrameNavigated.Method:
		v, ok := cdp.Is(e, page.FrameNavigated)
		if !ok {
			return false
		}
		t.navigatedLocked(e.Session, v)
	case page.NavigatedWithinDocument.Method:
		v, ok := cdp.Is(e, page.NavigatedWithinDocument)
		f := t.frames[v.FrameID]
		if !ok || f == nil {
			return false
		}
		f.url = withoutUser(v.URL)
		if f == t.main {
			t.nav.within++
			t.url = f.url
			t.b.tellLocked("tab_updated", t)
			t.askTitle()
		}
	}
	return true
}

// navigatedLocked handles the commit of a document.
func (t *tab) navigatedLocked(s *cdp.Session, v page.EventFrameNavigated) {
	f := t.frames[v.Frame.ID]
	if f == nil {
		f = t.addFrameLocked(v.Frame.ID, t.frames[v.Frame.ParentID])
	}
	f.session = s
	t.describeLocked(f, v.Frame)
	if v.Type == page.NavigationTypeBackForwardCacheRestore {
		f.phase = phaseLoaded
		t.askFrames(s) // those inside it came back without a word
		t.arrivedLocked(f, v.Frame)
		t.askTitle()
		return
	}
	for _, c := range slices.Clone(f.children) {
		t.removeFrameLocked(c)
	}
	if f.doc != nil { // the first document of a frame leaves its window to the next
		t.b.lastDoc++
		f.enterLocked(&document{frame: f, number: t.b.lastDoc, session: f.doc.session, context: f.doc.context, id: f.doc.id, gone: make(chan struct{})})
	}
	f.phase, f.painted = phaseCommitted, false
	t.arrivedLocked(f, v.Frame)
}

// arrivedLocked notes that a document is there, if it is the tab's.
func (t *tab) arrivedLocked(f *frame, v *proto.Frame) {
	if f != t.main {
		return
	}
	if t.crashed {
		t.crashed = false
		t.b.recastLocked(t)
	}
	t.heard = heard{}
	t.chooser = nil
	t.title = "" // asked for when it is parsed
	t.nav.arrivedLocked(v.LoaderID)
	t.dialogs = 0
	t.carried = nil
	t.nav.unreachable = v.UnreachableURL
	t.b.tellLocked("tab_updated", t)
}

// describeLocked takes in what the browser says of a frame's document.
func (t *tab) describeLocked(f *frame, v *proto.Frame) {
	f.loader, f.name = v.LoaderID, v.Name
	f.url = cmp.Or(v.URL+v.URLFragment, blankPage)
	if v.UnreachableURL != "" {
		f.url = v.UnreachableURL
	}
	f.url = withoutUser(f.url)
	if f == t.main {
		t.url = f.url
	}
}

func (t *tab) lifecycleLocked(v page.EventLifecycleEvent) bool {
	f := t.frames[v.FrameID]
	if f == nil || f.loader != v.LoaderID {
		return false
	}
	switch {
	case v.Name == "DOMContentLoaded" && f.phase < phaseParsed:
		f.phase = phaseParsed
	case v.Name == "load" && f.phase < phaseLoaded:
		f.phase = phaseLoaded
		if f == t.main { // the browser itself says so some pictures later
			t.loadingLocked(false)
		}
	case v.Name == "firstContentfulPaint":
		f.painted = true
		return true
	default:
		return false
	}
	if f == t.main {
		t.askTitle()
	}
	return true
}

// addFrameLocked adds a frame below parent (the main frame when nil).
func (t *tab) addFrameLocked(id proto.FrameID, parent *frame) *frame {
	if parent == nil {
		parent = t.main
	}
	f := &frame{tab: t, id: id, parent: parent, session: parent.session}
	parent.children = append(parent.children, f)
	t.frames[id] = f
	if d := t.orphans[id]; d != nil {
		delete(t.orphans, id)
		f.enterLocked(d)
	}
	return f
}

// moveLocked puts a frame below another parent, last.
func (t *tab) moveLocked(f, parent *frame) {
	if at := slices.Index(f.parent.children, f); at >= 0 {
		f.parent.children = slices.Delete(f.parent.children, at, at+1)
	}
	f.parent = parent
	parent.children = append(parent.children, f)
}

func (t *tab) removeFrameLocked(f *frame) {
	if at := slices.Index(f.parent.children, f); at >= 0 {
		f.parent.children = slices.Delete(f.parent.children, at, at+1)
	}
	f.eachLocked(func(f *frame) {
		f.leaveLocked()
		delete(t.frames, f.id)
	})
}

// askFrames has the frames that live on a session taken in, in order with its
// events.
func (t *tab) askFrames(s *cdp.Session) {
	cdp.Then(s, page.GetFrameTree, none, func(got page.GetFrameTreeResult, err error) {
		if err == nil {
			t.mergeTree(s, got.FrameTree)
		}
	})
}

// mergeTree takes in the frames that a session had before it was attached.
func (t *tab) mergeTree(s *cdp.Session, tree *page.FrameTree) {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	var merge func(tree *page.FrameTree, parent *frame)
	merge = func(tree *page.FrameTree, parent *frame) {
		f := t.frames[tree.Frame.ID]
		if f == nil {
			f = t.addFrameLocked(tree.Frame.ID, parent)
		} else if parent != nil && f.parent != parent {
			t.moveLocked(f, parent)
		}
		if f.session != s && f.session != nil && f != t.main && parent != nil && f.session != parent.session {
			return // it has moved to a process of its own meanwhile
		}
		f.session = s
		t.describeLocked(f, tree.Frame)
		for _, c := range tree.ChildFrames {
			merge(c, f)
		}
	}
	merge(tree, nil)
	t.b.changedLocked()
}

// frameCrashedLocked handles the death of the process of embedded frames; that
// of the whole page is reported for its target.
func (t *tab) frameCrashedLocked(s *cdp.Session) bool {
	if s == t.session {
		return false
	}
	t.main.eachLocked(func(f *frame) {
		if f.session == s {
			f.leaveLocked()
		}
	})
	return true
}
