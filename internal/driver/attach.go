package driver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	protolog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"

	"github.com/reins-browser/reins/internal/cdp"
)

// onlyType filters targets: those of one type and no others.
func onlyType(kind string) target.Filter {
	return target.Filter{{Type: kind}, {Exclude: true}}
}

// autoAttach adopts targets before their first script (TAB-3): they start
// paused and run once their session is set up.
func autoAttach(which target.Filter) cdp.Request {
	return cdp.Prepare(target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: new(true), Filter: which,
	})
}

// inPages filters what pages contain. Workers are of no interest, but the
// browser stops those of a page at their start even when the filter leaves them
// out, and only their session can let them go. Shared and service workers do
// not belong to one page and start by themselves.
var inPages = target.Filter{{Type: "iframe"}, {Type: "worker"}, {Type: "worklet"}, {Exclude: true}}

// onBrowserEvent handles what the browser session reports.
func (b *browser) onBrowserEvent(e cdp.Event) {
	switch e.Method {
	case target.AttachedToTarget.Method:
		if v, ok := cdp.Is(e, target.AttachedToTarget); ok {
			b.attached(v)
		}
	case target.DetachedFromTarget.Method:
		if v, ok := cdp.Is(e, target.DetachedFromTarget); ok {
			b.detached(string(v.SessionID))
		}
	case target.TargetInfoChanged.Method:
		if v, ok := cdp.Is(e, target.TargetInfoChanged); ok {
			b.infoChanged(v.TargetInfo)
		}
	case target.TargetDestroyed.Method:
		if v, ok := cdp.Is(e, target.TargetDestroyed); ok {
			b.destroyed(v.TargetID)
		}
	case target.TargetCrashed.Method:
		if v, ok := cdp.Is(e, target.TargetCrashed); ok {
			b.pageCrashed(v.TargetID)
		}
	default:
		b.onDownloadEvent(e)
	}
}

// attached adopts a page: one that was there, or one just opened.
func (b *browser) attached(v target.EventAttachedToTarget) {
	info := v.TargetInfo
	id := string(v.SessionID)
	if info.Type != "page" || info.Subtype != "" {
		b.letGo(id)
		return
	}
	b.mu.Lock()
	t := b.tabByTargetLocked(info.TargetID)
	if t == nil && b.live && len(b.tabs) >= b.settings.Tabs {
		for fx := range b.effects {
			fx.notes = append(fx.notes, fmt.Sprintf("a tab that was opened for %.200q was closed: %d tabs are open, which is the bound", info.URL, len(b.tabs)))
		}
		b.mu.Unlock()
		b.session.Send(target.CloseTarget.Method, target.CloseTargetParams{TargetID: info.TargetID})
		b.letGo(id)
		return
	}
	isNew := t == nil
	if isNew {
		t = b.newTabLocked(info)
	}
	s := b.conn.Session(id, func(e cdp.Event) { t.onEvent(e) })
	t.session, t.ready = s, false
	t.main.session = s
	b.recastLocked(t)
	b.mu.Unlock()
	b.work.Go(func() { b.mend(t, s) })
	b.emitHandover()
	b.setUp(t, s, true)
	if isNew {
		b.mu.Lock()
		b.adoptLocked(t)
		b.mu.Unlock()
	}
}

// mend waits for the end of a page's session. One that was dropped for a
// message above the bound is detached, and the page, which lives on, gets
// another (DRV-3).
func (b *browser) mend(t *tab, s *cdp.Session) {
	<-s.Done()
	if !errors.Is(s.Err(), cdp.ErrTooLarge) {
		return
	}
	b.mu.Lock()
	t.ready = false
	b.shrinkLocked(t)
	t.main.eachLocked(func(f *frame) { f.leaveLocked() })
	b.mu.Unlock()
	b.session.Send(target.DetachFromTarget.Method, target.DetachFromTargetParams{SessionID: target.SessionID(s.ID())})
	b.session.Send(target.AttachToTarget.Method, target.AttachToTargetParams{TargetID: t.target, Flatten: new(true)})
}

// letGo runs and detaches a target that is not of interest.
func (b *browser) letGo(session string) {
	b.conn.Session(session, nil).SendAll(cdp.Prepare(runtime.RunIfWaitingForDebugger, none))
	b.session.Send(target.DetachFromTarget.Method, target.DetachFromTargetParams{SessionID: target.SessionID(session)})
}

// newTabLocked makes the tab of a page target, at the right end.
func (b *browser) newTabLocked(info *target.Info) *tab {
	t := &tab{
		b: b, id: b.nextTabIDLocked(), target: info.TargetID, url: cmp.Or(info.URL, blankPage), title: titleOf(info),
		frames: map[proto.FrameID]*frame{}, orphans: map[proto.FrameID]*document{}, ended: make(chan struct{}),
		guards: map[*guard]struct{}{}, watchers: map[*watcher]struct{}{},
		laying: laying{out: b.viewport},
	}
	t.main = &frame{tab: t, id: proto.FrameID(info.TargetID), url: info.URL}
	t.frames[t.main.id] = t.main
	if info.OpenerID != "" {
		t.opener = b.tabByTargetLocked(info.OpenerID)
	}
	b.tabs = append(b.tabs, t)
	return t
}

// adoptLocked reports a new tab to the action that opened it and to the
// parent, and selects it when it was opened in the foreground while that
// action ran (TAB-3).
func (b *browser) adoptLocked(t *tab) {
	b.tellLocked("tab_opened", t)
	if fx := b.openerLocked(t); fx != nil {
		fx.opened = append(fx.opened, t)
		if !fx.background {
			b.selectLocked(t)
		}
	}
	if b.selected == nil && b.live || t.opener != nil && time.Since(t.opener.gesture) < gestureLasts {
		b.selectLocked(t)
	}
	b.changedLocked()
}

// openerLocked is the action under way that opened t; nil when none did.
func (b *browser) openerLocked(t *tab) *effects {
	for fx := range b.effects {
		if t.opener != nil && fx.tab == t.opener || fx.opens == t.target {
			return fx
		}
	}
	if t.opener == nil && len(b.effects) == 1 {
		for fx := range b.effects {
			return fx
		}
	}
	return nil
}

// setUp sends in one write all that a session needs, and lets its target run.
func (b *browser) setUp(t *tab, s *cdp.Session, whole bool) {
	s.Send(page.Enable.Method, page.EnableParams{})
	t.askFrames(s)
	requests := []cdp.Request{
		cdp.Prepare(page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: true}),
		cdp.Prepare(runtime.DiscardConsoleEntries, none), // what was said before is not said again
		cdp.Prepare(runtime.Enable, none),
		cdp.Prepare(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: walkerSource, WorldName: worldName, RunImmediately: new(true),
		}),
		cdp.Prepare(network.Enable, network.EnableParams{
			MaxTotalBufferSize: new(int64(1)), MaxResourceBufferSize: new(int64(1)), MaxPostDataSize: new(int64(0)),
		}),
		cdp.Prepare(inspector.Enable, none),
		cdp.Prepare(protolog.Enable, none),
		autoAttach(inPages),
	}
	s.SendAll(append(requests, b.overrides(whole)...)...)
	cdp.Then(s, runtime.RunIfWaitingForDebugger, none, func(_ proto.Empty, err error) {
		if err == nil && whole {
			b.mu.Lock()
			t.ready = true
			b.changedLocked()
			b.mu.Unlock()
		}
	})
}

// overrides are what a session sets for its page, and what is lost with it;
// whole is for sessions of whole pages.
func (b *browser) overrides(whole bool) []cdp.Request {
	requests := append(b.agentRequests(),
		cdp.Prepare(page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true}),
		cdp.Prepare(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
	)
	if l := b.settings.Locale; l != "" && l != "en-US" {
		// In the form of ICU. It holds for the whole process, so that a second
		// session of one is refused, which does no harm.
		requests = append(requests, cdp.Prepare(emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: strings.ReplaceAll(l, "-", "_")}))
	}
	if patterns := b.intercepted(whole); len(patterns) > 0 {
		requests = append(requests, cdp.Prepare(fetch.Enable, fetch.EnableParams{Patterns: patterns}))
	}
	if !whole {
		return requests
	}
	requests = append(requests,
		cdp.Prepare(webauthn.Enable, webauthn.EnableParams{EnableUI: new(false)}), // keys are asked for in vain (ACT-9)
		cdp.Prepare(page.SetPrerenderingAllowed, page.SetPrerenderingAllowedParams{IsAllowed: false}),
	)
	return append(requests, b.resizeRequests()...)
}

// detached handles the end of a page's session.
func (b *browser) detached(session string) {
	b.mu.Lock()
	var lost *tab
	for _, t := range b.tabs {
		if t.session.ID() == session {
			lost = t
		}
	}
	b.mu.Unlock()
	if lost != nil {
		lost.session.End()
	}
	b.emitHandover()
}

// infoChanged takes in what the browser shows of a tab.
func (b *browser) infoChanged(info *target.Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tabByTargetLocked(info.TargetID)
	if t == nil || t.nav.unreachable != "" { // an error page's title is the browser's
		return
	}
	if title := titleOf(info); t.title != title {
		t.title = title
		b.updatedLocked(t)
	}
}

// titleOf is a page's title. The browser shows an address in the place of one
// that is missing.
func titleOf(info *target.Info) string {
	_, rest, _ := strings.Cut(info.URL, "://")
	if info.Title == info.URL || strings.TrimSuffix(rest, "/") == strings.TrimSuffix(info.Title, "/") {
		return ""
	}
	return info.Title
}

// askTitle has the browser's view of a tab taken in, some time soon: it says
// nothing by itself when a title changes.
func (t *tab) askTitle() {
	cdp.Then(t.b.session, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: t.target}, func(got target.GetTargetInfoResult, err error) {
		if err == nil {
			t.b.infoChanged(got.TargetInfo)
		}
	})
}

// refresh takes in the browser's view of all tabs.
func (b *browser) refresh(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	got, err := cdp.Call(short, b.session, target.GetTargets, target.GetTargetsParams{Filter: onlyType("page")})
	if err != nil {
		return // the view of before stands
	}
	for _, info := range got.TargetInfos {
		b.infoChanged(info)
	}
}

// updatedLocked announces that what infoLocked tells of t has changed.
func (b *browser) updatedLocked(t *tab) {
	b.tellLocked("tab_updated", t)
	b.changedLocked()
}

// destroyed handles the end of a target. The last tab is replaced (TAB-3).
func (b *browser) destroyed(id target.ID) {
	b.mu.Lock()
	t := b.tabByTargetLocked(id)
	if t == nil {
		b.mu.Unlock()
		return
	}
	session := t.session
	b.removeLocked(t)
	last := len(b.tabs) == 0 && b.live
	b.mu.Unlock()
	session.End()
	if last {
		b.session.Send(target.CreateTarget.Method, target.CreateTargetParams{URL: blankPage})
	}
}

const blankPage = "about:blank"

// pageCrashed handles the death of a page's renderer (TAB-5).
func (b *browser) pageCrashed(id target.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tabByTargetLocked(id)
	if t == nil || t.crashed {
		return
	}
	t.crashed, t.loading = true, false
	t.dialog, t.chooser = nil, nil
	t.main.eachLocked(func(f *frame) { f.leaveLocked() })
	t.interruptLocked(errCrashed(t))
	b.tellLocked("page_crashed", t)
	b.changedLocked()
}

// attachedFrame adopts a frame of another process.
func (t *tab) attachedFrame(parent *cdp.Session, v target.EventAttachedToTarget) {
	info := v.TargetInfo
	id := string(v.SessionID)
	if info.Type != "iframe" {
		worker := t.b.conn.Session(id, nil)
		worker.SendAll(cdp.Prepare(runtime.RunIfWaitingForDebugger, none))
		worker.End()
		parent.Send(target.DetachFromTarget.Method, target.DetachFromTargetParams{SessionID: v.SessionID})
		return
	}
	s := t.b.conn.Session(id, func(e cdp.Event) { t.onEvent(e) })
	t.b.mu.Lock()
	f := t.frames[proto.FrameID(info.TargetID)]
	if f == nil {
		under := t.frames[info.ParentFrameID]
		if under == nil {
			under = t.frameOfSessionLocked(parent)
			if info.ParentFrameID != "" { // not told of yet
				under = t.addFrameLocked(info.ParentFrameID, under)
			}
		}
		f = t.addFrameLocked(proto.FrameID(info.TargetID), under)
	}
	f.session = s
	f.url = info.URL
	f.leaveLocked()
	t.b.changedLocked()
	t.b.mu.Unlock()
	t.b.setUp(t, s, false)
}

// detachedFrame handles the end of a session of a frame in another process.
func (t *tab) detachedFrame(session string) {
	t.b.mu.Lock()
	var ended *cdp.Session
	t.main.eachLocked(func(f *frame) {
		if f.session.ID() != session {
			return
		}
		ended = f.session
		f.leaveLocked()
		if f.parent != nil {
			f.session = f.parent.session
		}
	})
	t.b.changedLocked()
	t.b.mu.Unlock()
	if ended != nil {
		ended.End()
	}
}

// frameOfSessionLocked is the uppermost frame that lives on a session.
func (t *tab) frameOfSessionLocked(s *cdp.Session) *frame {
	found := t.main
	t.main.eachLocked(func(f *frame) {
		if f.session == s && (found == t.main || found.parent == f) {
			found = f
		}
	})
	return found
}

// isDocument tells cheaply whether a network event is about a document.
func isDocument(params []byte) bool { return bytes.Contains(params, []byte(`"type":"Document"`)) }
