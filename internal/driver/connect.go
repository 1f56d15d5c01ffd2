package driver

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	protobrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// pipes are the driver's copies of the browser's doors.
type pipes struct {
	fromBrowser, toBrowser *os.File
}

// mouth is what a browser tells its parent by.
type mouth struct {
	emit func(Event) // must not block; called in order
	// tell is given the handover whenever it changes, and returns once it is safe
	// to rely on it: when the process is killed then, the parent has it (DRV-2).
	tell func(Handover)
	film *film
}

// connect takes the browser over and models what is open in it.
func connect(ctx context.Context, p pipes, settings Settings, prev Handover, to mouth) (*browser, error) {
	conn, version, err := cdp.TakeOver(ctx, p.fromBrowser, p.toBrowser, cdp.Options{Message: settings.Message}, settings.Connection)
	if err != nil {
		return nil, err
	}
	b := &browser{
		conn: conn, settings: settings, version: version, mouth: to,
		downloads: map[string]*download{}, effects: map[*effects]struct{}{}, hung: make(chan struct{}),
		lastTab: prev.Numbers.Tab, lastDoc: prev.Numbers.Document,
	}
	b.viewport = reins.Viewport{Width: settings.Width, Height: settings.Height, Scale: settings.Scale}
	if prev.Viewport != (reins.Viewport{}) {
		b.viewport = prev.Viewport
	}
	if err := b.start(ctx, prev); err != nil {
		conn.Close()
		return nil, err
	}
	return b, nil
}

const settlePages = 2 * time.Second

func (b *browser) start(ctx context.Context, prev Handover) error {
	s, err := b.conn.AttachBrowser(ctx, b.onBrowserEvent)
	if err != nil {
		return err
	}
	b.session = s
	b.mu.Lock()
	b.previous = prev
	b.mu.Unlock()
	b.emitHandover()
	s.SendAll(b.browserRequests()...)
	s.Send(target.SetDiscoverTargets.Method, target.SetDiscoverTargetsParams{Discover: true, Filter: onlyType("page")})
	attach := autoAttach(onlyType("page"))
	if err := s.Call(ctx, attach.Method, attach.Params, nil); err != nil {
		return fmt.Errorf("attaching to the pages: %w", err)
	}
	if err := b.succeed(ctx, prev); err != nil {
		return err
	}
	b.mu.Lock()
	empty := len(b.tabs) == 0
	b.mu.Unlock()
	if empty {
		if _, err := b.newTab(ctx); err != nil {
			return fmt.Errorf("opening a first tab: %w", err)
		}
	}
	if err := b.awaitPages(ctx); err != nil {
		return err
	}
	b.goLive(target.ID(prev.Selected))
	b.emitHandover()
	return nil
}

// succeed frees and detaches what the driver before left (DRV-2). By now the
// pages have sessions of ours, so that no dialog opens without one that can
// answer it; what went with the old sessions is set again.
func (b *browser) succeed(ctx context.Context, prev Handover) error {
	old := cdp.Previous{Browsers: prev.Left, Pages: prev.Pages}
	if prev.Browser != "" {
		old.Browsers = append(old.Browsers, prev.Browser)
	}
	if err := b.conn.Release(ctx, old); err != nil {
		return fmt.Errorf("detaching the driver before: %w", err)
	}
	b.mu.Lock()
	b.previous = Handover{}
	tabs := slices.Clone(b.tabs)
	b.mu.Unlock()
	if len(old.Browsers) == 0 {
		return nil
	}
	b.session.SendAll(b.browserRequests()...)
	for _, t := range tabs {
		for _, s := range t.sessions() {
			s.SendAll(b.overrides(s == t.pageSession())...)
		}
	}
	return nil
}

// awaitPages waits until the pages that were open before can be used, for a
// bounded time: one that never answers must not keep the others from it.
func (b *browser) awaitPages(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, settlePages)
	defer cancel()
	err := b.await(short, func() bool {
		for _, t := range b.tabs {
			if !t.ready && !t.crashed && t.dialog == nil {
				return false
			}
		}
		return true
	})
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// goLive selects a tab, the one that was selected before if it is still there.
// From here on a new page is one that was opened now.
func (b *browser) goLive(selected target.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live = true
	chosen := b.tabByTargetLocked(selected)
	if chosen == nil && b.selected == nil && len(b.tabs) > 0 {
		chosen = b.tabs[len(b.tabs)-1]
	}
	if chosen != nil {
		b.selectLocked(chosen)
	}
}

// emitHandover tells the parent what the next driver would have to take over,
// and returns when the parent has it or is gone. It must not be called under
// mu.
func (b *browser) emitHandover() {
	b.telling.Lock()
	defer b.telling.Unlock()
	b.tell(b.handover())
}

// numbers are those that whoever has seen an outcome of b may know of.
func (b *browser) numbers() Numbers {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Numbers{b.lastTab, b.lastDoc}
}

func (b *browser) handover() Handover {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := Handover{Browser: b.session.ID(), Left: slices.Clone(b.previous.Left), Pages: slices.Clone(b.previous.Pages)}
	if b.previous.Browser != "" {
		h.Left = append(h.Left, b.previous.Browser)
	}
	for _, t := range b.tabs {
		h.Pages = append(h.Pages, t.session.ID())
	}
	if b.selected != nil {
		h.Selected = string(b.selected.target)
	} else {
		h.Selected = b.previous.Selected
	}
	h.Numbers = Numbers{b.lastTab, b.lastDoc}
	if b.viewport.Revision > 0 {
		h.Viewport = b.viewport
	}
	return h
}

// rename gives all that has been named another name, above n: a browser that
// was started for nobody shows itself for the first time to somebody who knew
// others before (TAB-2, SNAP-4). No command may have run.
func (b *browser) rename(n Numbers) {
	b.mu.Lock()
	b.lastTab, b.lastDoc = max(b.lastTab, n.Tab), max(b.lastDoc, n.Document)
	for _, t := range b.tabs {
		t.id = b.nextTabIDLocked()
		for _, f := range t.frames {
			if f.doc != nil {
				b.lastDoc++
				f.doc.number = b.lastDoc
			}
		}
		for _, d := range t.orphans {
			b.lastDoc++
			d.number = b.lastDoc
		}
	}
	b.mu.Unlock()
	b.emitHandover()
}

// browserRequests set what holds for the whole browser.
func (b *browser) browserRequests() []cdp.Request {
	return append([]cdp.Request{cdp.Prepare(protobrowser.SetDownloadBehavior, b.downloadBehavior())}, denials()...)
}

// downloadBehavior has downloads saved under GUIDs (ACT-10), or refused where
// there is no folder for them.
func (b *browser) downloadBehavior() protobrowser.SetDownloadBehaviorParams {
	if b.settings.Downloads == "" {
		return protobrowser.SetDownloadBehaviorParams{Behavior: protobrowser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: new(true)}
	}
	return protobrowser.SetDownloadBehaviorParams{
		Behavior: protobrowser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: b.settings.Downloads, EventsEnabled: new(true),
	}
}

// deniedPermissions are what pages would otherwise ask a person for (ACT-9).
var deniedPermissions = []string{
	"geolocation", "notifications", "push", "midi", "camera", "microphone", "clipboard-read",
	"idle-detection", "local-fonts", "window-management", "nfc", "display-capture", "persistent-storage",
	"top-level-storage-access", "speaker-selection", "captured-surface-control", "local-network-access",
}

// denials refuse them everywhere. One that this browser does not know is
// answered with an error that nobody waits for.
func denials() []cdp.Request {
	var out []cdp.Request
	for _, name := range deniedPermissions {
		out = append(out, cdp.Prepare(protobrowser.SetPermission, protobrowser.SetPermissionParams{
			Permission: &protobrowser.PermissionDescriptor{Name: name}, Setting: protobrowser.PermissionSettingDenied,
		}))
	}
	return out
}

// agentRequests make a headless browser call itself what an ordinary one of
// its version does (CELL-9).
func (b *browser) agentRequests() []cdp.Request {
	agent := b.settings.UserAgent
	if agent == "" {
		if !strings.Contains(b.version.UserAgent, "Headless") {
			return nil
		}
		agent = b.version.UserAgent
	}
	_, full, _ := strings.Cut(b.version.Product, "/")
	major, _, _ := strings.Cut(full, ".")
	if b.settings.UserAgent == "" { // ordinary ones tell only their major version
		agent = strings.NewReplacer("HeadlessChrome", "Chrome", full, major+".0.0.0").Replace(agent)
	}
	brands := func(version, other string) []*emulation.UserAgentBrandVersion {
		return []*emulation.UserAgentBrandVersion{{Brand: "Chromium", Version: version}, {Brand: "Not)A;Brand", Version: other}}
	}
	return []cdp.Request{cdp.Prepare(emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
		UserAgent: agent, Platform: "Linux x86_64", AcceptLanguage: b.settings.Locale,
		UserAgentMetadata: &emulation.UserAgentMetadata{
			Brands: brands(major, "24"), FullVersionList: brands(full, "24.0.0.0"),
			Platform: "Linux", Architecture: "x86", Bitness: "64",
		},
	})}
}

// close ends the connection; the browser and its tabs stay.
func (b *browser) close() {
	b.conn.Close()
	b.work.Wait()
}
