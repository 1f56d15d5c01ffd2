package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/child"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Entry{Role: Main})
	goleak.VerifyTestMain(m)
}

// programs are the engines' executables.
var programs = map[reins.Engine]string{
	reins.EngineFull:  "/usr/lib/chromium/chromium",
	reins.EngineShell: "/usr/lib/chromium/chromium-headless-shell",
}

// eachEngine runs a test on both engines, side by side: most of a test is waiting
// for a browser. What the test shares between them must bear that, and what it
// defers runs before them.
func eachEngine(t *testing.T, test func(*testing.T, reins.Engine)) {
	for _, engine := range []reins.Engine{reins.EngineShell, reins.EngineFull} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			test(t, engine)
		})
	}
}

// chromium is a running browser and the driver's ends of its pipes.
type chromium struct {
	toBrowser, fromBrowser *os.File
	cmd                    *exec.Cmd
	downloads              string
	exited                 chan struct{}
}

// launch starts a Chromium that ends with the test.
func launch(tb testing.TB, engine reins.Engine, flags ...string) *chromium {
	tb.Helper()
	if os.Getuid() == 0 {
		tb.Fatal("Chromium's sandbox needs an ordinary user; run the tests with -exec scripts/as-user")
	}
	in, toBrowser, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	fromBrowser, out, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	home, err := os.MkdirTemp("", "reins-chromium")
	if err != nil {
		tb.Fatal(err)
	}
	c := &chromium{toBrowser: toBrowser, fromBrowser: fromBrowser, downloads: filepath.Join(home, "downloads"), exited: make(chan struct{})}
	if err := os.Mkdir(c.downloads, 0o700); err != nil {
		tb.Fatal(err)
	}
	profile := filepath.Join(home, "profile")
	if err := os.Mkdir(profile, 0o700); err != nil {
		tb.Fatal(err)
	}
	// No scheme of HTTP authentication: a question for credentials is an answer
	// of status 401, never a prompt that waits for a person (NAV-5).
	if err := os.WriteFile(filepath.Join(profile, "Local State"), []byte(`{"auth":{"schemes":""}}`), 0o600); err != nil {
		tb.Fatal(err)
	}
	// A PDF is a download, not a viewer in which nothing can be read.
	if err := errors.Join(os.Mkdir(filepath.Join(profile, "Default"), 0o700), os.WriteFile(filepath.Join(profile, "Default", "Preferences"),
		[]byte(`{"plugins":{"always_open_pdf_externally":true}}`), 0o600)); err != nil {
		tb.Fatal(err)
	}
	c.cmd = exec.Command(programs[engine], append([]string{
		"--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-popup-blocking", "--no-default-browser-check", "--password-store=basic",
		"--user-data-dir=" + profile, "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-default-apps", "--no-pings", "--disable-gpu", "--disable-software-rasterizer",
		"--disable-field-trial-config", "--disable-breakpad", "--gaia-url=http://127.0.0.1:1",
		"--component-updater=url-source=http://127.0.0.1:1/",
		"--disable-features=NetworkTimeServiceQuerying,AutofillServerCommunication,OptimizationHints,Translate,MediaRouter,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,PreloadTopChromeWebUI,SpareRendererForSitePerProcess",
		"--site-per-process", "--host-resolver-rules=MAP *.test 127.0.0.1",
	}, flags...)...)
	c.cmd.Env = []string{"HOME=" + home, "DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/null", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/dev/null"}
	c.cmd.ExtraFiles = []*os.File{in, out}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	in.Close()
	out.Close()
	go func() {
		c.cmd.Wait()
		close(c.exited)
	}()
	tb.Cleanup(func() {
		toBrowser.Close()
		fromBrowser.Close()
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.exited
		os.RemoveAll(home)
	})
	return c
}

// copies are what a driver gets of the pipes.
func (c *chromium) copies(tb testing.TB) pipes {
	tb.Helper()
	dup := func(f *os.File) *os.File {
		raw, err := f.SyscallConn()
		if err != nil {
			tb.Fatal(err)
		}
		var fd int
		raw.Control(func(n uintptr) { fd, err = syscall.Dup(int(n)) })
		if err != nil {
			tb.Fatal(err)
		}
		syscall.CloseOnExec(fd)
		syscall.SetNonblock(fd, true)
		return os.NewFile(uintptr(fd), f.Name())
	}
	return pipes{fromBrowser: dup(c.fromBrowser), toBrowser: dup(c.toBrowser)}
}

func (c *chromium) settings() Settings {
	return Settings{Connection: 1, Message: 64 << 20, Memory: 512 << 20, Tabs: 8, Downloads: c.downloads, Width: 1280, Height: 800, Scale: 1, Locale: "en-US"}
}

// testBrowser is the model in this process, with what it told its parent.
type testBrowser struct {
	*browser
	chromium *chromium

	mu     sync.Mutex
	events []Event
	last   Handover
}

// newBrowser starts a Chromium and connects to it in this process.
func newBrowser(tb testing.TB, engine reins.Engine, flags ...string) *testBrowser {
	tb.Helper()
	c := launch(tb, engine, flags...)
	s := c.settings()
	s.Engine = engine
	return connectTo(tb, c, s, Handover{})
}

func connectTo(tb testing.TB, c *chromium, s Settings, prev Handover) *testBrowser {
	tb.Helper()
	b := &testBrowser{chromium: c}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	model, err := connect(ctx, c.copies(tb), s, prev, mouth{emit: b.record, film: newFilm(), tell: func(h Handover) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.last = h
	}})
	if err != nil {
		tb.Fatal(err)
	}
	b.browser = model
	tb.Cleanup(model.close)
	return b
}

func (b *testBrowser) record(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

func (b *testBrowser) told() Handover {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// kinds lists the kinds of the events so far.
func (b *testBrowser) kinds() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		out = append(out, e.Kind)
	}
	return strings.Join(out, " ")
}

// try runs an action under a deadline.
func (b *testBrowser) try(a reins.Action) (*Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return b.do(ctx, Command{Action: a, Lease: "lease"})
}

// act is try for what must succeed.
func (b *testBrowser) act(tb testing.TB, a reins.Action) *Reply {
	tb.Helper()
	r, err := b.try(a)
	if err != nil {
		tb.Fatalf("%s: %v", a.Verb(), err)
	}
	return r
}

// open navigates the selected tab.
func (b *testBrowser) open(tb testing.TB, url string) *Reply {
	tb.Helper()
	return b.act(tb, reins.Navigate{URL: url})
}

// tabNow is the selected tab.
func (b *testBrowser) tabNow() *tab {
	b.browser.mu.Lock()
	defer b.browser.mu.Unlock()
	return b.selected
}

// script evaluates an expression in the main document of the selected tab.
// What it does, it does in the isolated world.
func (b *testBrowser) script(tb testing.TB, expression string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d, err := b.tabNow().document(ctx)
	if err != nil {
		tb.Fatalf("script: %v", err)
	}
	var out any
	if err := d.eval(ctx, "() => ("+expression+")", &out); err != nil {
		tb.Fatalf("script %s: %v", expression, err)
	}
	return fmt.Sprint(out)
}

// eventually waits until a condition on the model holds, called under its lock.
func (b *testBrowser) eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := b.await(ctx, cond); err != nil {
		tb.Fatalf("%s did not happen: %v", what, err)
	}
}

// wantCode fails unless err is of a code.
func wantCode(tb testing.TB, err error, code reins.Code) {
	tb.Helper()
	if reins.CodeOf(err) != code {
		tb.Errorf("got %v, want %s", err, code)
	}
}

// site serves pages: path to HTML, "" being the rest.
func site(tb testing.TB, pages map[string]string) *httptest.Server {
	tb.Helper()
	mux := http.NewServeMux()
	for path, html := range pages {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, html)
		})
	}
	return serve(tb, mux)
}

// serve serves a handler on loopback until the test ends.
func serve(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	// A browser asks again on a new connection when one is closed: handlers that
	// wait for the end of their request end with the server.
	ctx, cancel := context.WithCancel(context.Background())
	s := httptest.NewUnstartedServer(h)
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Start()
	tb.Cleanup(func() {
		cancel()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// at is the site's address under another host name, which is another site to
// the browser.
func at(s *httptest.Server, host, path string) string {
	return strings.Replace(s.URL, "127.0.0.1", host, 1) + path
}
