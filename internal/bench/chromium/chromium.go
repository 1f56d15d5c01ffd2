// Package chromium starts plain Chromium browsers, without a cell, a proxy or a
// driver: what benchmarks hold Reins against. One page of each is driven over its
// DevTools pipe. Close ends it and removes its profile.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/reins-browser/reins/internal/cdp"
)

// Quiet are the flags that keep a browser from calling home and from drawing with
// hardware that a cell does not have.
func Quiet() []string {
	return []string{
		"--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check",
		"--password-store=basic", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-default-apps", "--disable-domain-reliability", "--disable-breakpad",
		"--disable-crash-reporter", "--no-pings", "--disable-search-engine-choice-screen",
		"--disable-client-side-phishing-detection", "--disable-field-trial-config",
		"--gaia-url=http://127.0.0.1:1", "--component-updater=url-source=http://127.0.0.1:1/",
		"--disable-gpu", "--disable-software-rasterizer", "--window-size=1280,800",
		"--enable-features=NetworkServiceSandbox",
		"--disable-features=NetworkTimeServiceQuerying,AutofillServerCommunication,OptimizationHints,Translate," +
			"MediaRouter,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,LensOverlay," +
			"WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,PreloadTopChromeWebUI",
	}
}

// Options set up a browser.
type Options struct {
	Program   string          // path of the browser
	Arguments []string        // besides [Quiet], the profile and about:blank
	Env       []string        // in addition to this process's
	Event     func(cdp.Event) // of the page; see [cdp.Conn.Session]
}

// Browser is one running browser and its page.
type Browser struct {
	Page *cdp.Session

	cmd     *exec.Cmd
	profile string
	conn    *cdp.Conn
}

// Start starts a browser and attaches to its page. Nothing is left when it fails.
func Start(ctx context.Context, o Options) (_ *Browser, err error) {
	b := &Browser{}
	if b.profile, err = os.MkdirTemp("", "reins-bench-"); err != nil {
		return nil, err
	}
	if err := b.spawn(o); err != nil {
		os.RemoveAll(b.profile)
		return nil, err
	}
	if err := b.attach(ctx, o.Event); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Browser) spawn(o Options) error {
	fromUs, toBrowser, err := os.Pipe()
	if err != nil {
		return err
	}
	defer fromUs.Close()
	fromBrowser, fromIt, err := os.Pipe()
	if err != nil {
		toBrowser.Close()
		return err
	}
	defer fromIt.Close()
	arguments := append(append([]string{"--user-data-dir=" + b.profile}, Quiet()...), o.Arguments...)
	b.cmd = exec.Command(o.Program, append(arguments, "about:blank")...)
	b.cmd.Env = append(os.Environ(), o.Env...)
	b.cmd.ExtraFiles = []*os.File{fromUs, fromIt}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		toBrowser.Close()
		fromBrowser.Close()
		return err
	}
	b.conn = cdp.New(fromBrowser, toBrowser, cdp.Options{})
	return nil
}

func (b *Browser) attach(ctx context.Context, event func(cdp.Event)) error {
	page := ""
	for page == "" {
		var targets struct {
			TargetInfos []struct {
				ID   string `json:"targetId"`
				Type string `json:"type"`
			} `json:"targetInfos"`
		}
		if err := b.conn.Root().Call(ctx, "Target.getTargets", nil, &targets); err != nil {
			return err
		}
		for _, t := range targets.TargetInfos {
			if t.Type == "page" {
				page = t.ID
			}
		}
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.conn.Root().Call(ctx, "Target.attachToTarget", map[string]any{"targetId": page, "flatten": true}, &attached); err != nil {
		return err
	}
	if event == nil {
		event = func(cdp.Event) {}
	}
	b.Page = b.conn.Session(attached.SessionID, event)
	return nil
}

// Pid is the process of the browser.
func (b *Browser) Pid() int { return b.cmd.Process.Pid }

// Close ends the browser and removes its profile.
func (b *Browser) Close() {
	syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may be gone
	b.cmd.Wait()                                      //nolint:errcheck // killed
	b.conn.Close()
	os.RemoveAll(b.profile)
}
