package driver

import (
	"context"
	"fmt"
	"os"
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

// connect takes the browser over and models what is open in it. tell is given
// the handover whenever it changes, before it is relied on.
func connect(ctx context.Context, p pipes, settings Settings, prev Handover, emit func(Event), tell func(Handover)) (*browser, error) {
	conn, version, err := cdp.TakeOver(ctx, p.fromBrowser, p.toBrowser, cdp.Options{Message: settings.Message},
		settings.Connection, cdp.Previous{Browser: prev.Browser, Pages: prev.Pages})
	if err != nil {
		return nil, err
	}
	b := &browser{
		conn: conn, settings: settings, version: version, emit: emit, tell: tell,
		downloads: map[string]*download{}, effects: map[*effects]struct{}{},
	}
	if err := b.start(ctx, prev); err != nil {
		conn.Close()
		return nil, err
	}
	return b, nil
}

// settlePages bounds the wait for pages that were open before: one that never
// answers must not keep the others from being used.
const settlePages = 2 * time.Second

func (b *browser) start(ctx context.Context, prev Handover) error {
	s, err := b.conn.AttachBrowser(ctx, b.onBrowserEvent)
	if err != nil {
		return err
	}
	b.session = s
	b.emitHandover()
	requests := append([]cdp.Request{
		cdp.Prepare(target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true, Filter: onlyType("page")}),
		cdp.Prepare(protobrowser.SetDownloadBehavior, b.downloadBehavior()),
	}, denials()...)
	s.SendAll(requests...)
	attach := autoAttach("page")
	if err := s.Call(ctx, attach.Method, attach.Params, nil); err != nil {
		return fmt.Errorf("attaching to the pages: %w", err)
	}
	b.mu.Lock()
	empty := len(b.tabs) == 0
	b.mu.Unlock()
	if empty {
		if _, err := b.newTab(ctx); err != nil {
			return fmt.Errorf("opening a first tab: %w", err)
		}
	}
	short, cancel := context.WithTimeout(ctx, settlePages)
	defer cancel()
	err = b.await(short, func() bool {
		for _, t := range b.tabs {
			if !t.ready && !t.crashed {
				return false
			}
		}
		return true
	})
	if err != nil && short.Err() == nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live = true
	chosen := b.tabByTargetLocked(target.ID(prev.Selected))
	if chosen == nil && b.selected == nil && len(b.tabs) > 0 {
		chosen = b.tabs[len(b.tabs)-1]
	}
	if chosen != nil {
		b.selectLocked(chosen)
	}
	return nil
}

// emitHandover tells the parent what the next driver would have to take over.
func (b *browser) emitHandover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := Handover{Browser: b.session.ID()}
	for _, t := range b.tabs {
		h.Pages = append(h.Pages, t.session.ID())
	}
	if b.selected != nil {
		h.Selected = string(b.selected.target)
	}
	b.tell(h)
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
		agent = strings.ReplaceAll(b.version.UserAgent, "HeadlessChrome", "Chrome")
	}
	_, full, _ := strings.Cut(b.version.Product, "/")
	major, _, _ := strings.Cut(full, ".")
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

// errConnect words the failure of a connect.
func errConnect(err error) *reins.Error {
	if e := reins.AsError(err); e.Code != reins.CodeInternal {
		return e.In(reins.PhaseConnect)
	}
	return reins.Errorf(reins.CodeTransportFailure, "the driver could not connect to the browser: %.300q", err.Error()).Because(err).In(reins.PhaseConnect)
}
