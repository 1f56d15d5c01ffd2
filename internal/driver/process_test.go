package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// startDriver starts a driver process on a Chromium; it ends with the test.
func startDriver(tb testing.TB, c *chromium, engine reins.Engine, connection uint64, prev Handover, events func(Event)) *Process {
	tb.Helper()
	s := c.settings()
	s.Engine, s.Connection = engine, connection
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	p, err := Start(ctx, Options{ToBrowser: c.toBrowser, FromBrowser: c.fromBrowser, Previous: prev, Settings: s, Events: events})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Kill)
	return p
}

func run(p *Process, a reins.Action) (*Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return p.Do(ctx, Command{Action: a})
}

// DRV-1: the parent works the browser through the link, and gets events and
// the handover from it.
func TestProcess(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		s := site(t, map[string]string{"/": `<title>Home</title>`})
		var mu sync.Mutex
		var kinds []string
		c := launch(t, engine)
		p := startDriver(t, c, engine, 1, Handover{}, func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			kinds = append(kinds, e.Kind)
		})
		r, err := run(p, reins.Navigate{URL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Result.Navigation; n.Title != "Home" || n.Status != 200 {
			t.Errorf("navigated to %+v", n)
		}
		if h := p.Handover(); h.Browser == "" || len(h.Pages) != 1 || h.Selected == "" {
			t.Errorf("handover %+v", h)
		}
		_, err = run(p, reins.SelectTab{Tab: "t9"})
		wantCode(t, err, reins.CodeInvalidState)
		if err := p.Close(t.Context()); err != nil || p.Err() != nil {
			t.Errorf("closed with %v, %v", err, p.Err())
		}
		<-p.Done()
		if _, err := run(p, reins.ListTabs{}); reins.CodeOf(err) != reins.CodeConnectionClosed {
			t.Errorf("after Close: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(kinds, " "); !strings.Contains(got, "tab_opened") || !strings.Contains(got, "tab_updated") {
			t.Errorf("events %s", got)
		}
		select {
		case <-c.exited:
			t.Error("the browser ended with its driver")
		default:
		}
	})
}

// DRV-5: the driver lives in namespaces of its own and cannot open files, make
// sockets, start programs; read from the kernel.
func TestSealed(t *testing.T) {
	c := launch(t, reins.EngineShell)
	p := startDriver(t, c, reins.EngineShell, 1, Handover{}, nil)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.child.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		if !bytes.Contains(status, []byte(want)) {
			t.Errorf("status lacks %q:\n%s", want, status)
		}
	}
	for _, kind := range []string{"user", "net", "pid", "ipc", "uts"} {
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", p.child.PID(), kind))
		ours, oerr := os.Readlink("/proc/self/ns/" + kind)
		if err = errors.Join(err, oerr); err != nil || its == ours {
			t.Errorf("the driver's %s namespace is %s, this process's is %s (%v)", kind, its, ours, err)
		}
	}
	// Its network has no way out: nothing but a loopback that is down.
	routes, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/route", p.child.PID()))
	if lines := bytes.Count(routes, []byte("\n")); err != nil || lines > 1 {
		t.Errorf("the driver's network has routes: %s (%v)", routes, err)
	}
}

// DRV-2, OPS-6: what a command came to when its driver is lost.
func TestLostUnderCommand(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	c := launch(t, reins.EngineShell)
	p := startDriver(t, c, reins.EngineShell, 1, Handover{}, nil)
	failed := make(chan error, 1)
	go func() {
		_, err := run(p, reins.Navigate{URL: s.URL})
		failed <- err
	}()
	waitFor(t, "the tab loads", func() bool {
		r, err := run(p, reins.ListTabs{})
		return err == nil && r.Result.Tabs[0].Loading
	})
	syscall.Kill(p.child.PID(), syscall.SIGKILL)
	wantCode(t, <-failed, reins.CodeCompletionUnknown)
	wantCode(t, p.Err(), reins.CodeTransportFailure)
	_, err := run(p, reins.Navigate{URL: s.URL})
	wantCode(t, err, reins.CodeTransportFailure)
}

// DRV-3: what exceeds a driver's memory ends it and nothing else.
func TestMemoryBound(t *testing.T) {
	s := site(t, map[string]string{
		"/":      `<title>Home</title>`,
		"/flood": `<title>Flood</title><script>console.error("x".repeat(60 << 20))</script>`,
	})
	c := launch(t, reins.EngineShell)
	settings := c.settings()
	settings.Engine, settings.Memory, settings.Message = reins.EngineShell, 64<<20, 256<<20
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := Start(ctx, Options{ToBrowser: c.toBrowser, FromBrowser: c.fromBrowser, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if _, err := run(p, reins.Navigate{URL: s.URL + "/flood"}); err != nil {
		wantCode(t, err, reins.CodeCompletionUnknown)
	}
	<-p.Done()
	wantCode(t, p.Err(), reins.CodeTransportFailure)
	next := startDriver(t, c, reins.EngineShell, 2, p.Handover(), nil)
	if _, err := run(next, reins.Navigate{URL: s.URL + "/"}); err != nil {
		t.Error(err)
	}
}

// waitFor polls a condition that no event tells of.
func waitFor(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("waited in vain until %s", what)
		}
	}
}

// DRV-4: a Start that cannot succeed leaves nothing behind.
func TestStartFails(t *testing.T) {
	t.Run("silent browser", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = Start(ctx, Options{ToBrowser: w, FromBrowser: r, Settings: Settings{Connection: 1}})
		wantCode(t, err, reins.CodeConnectionTimeout)
	})
	t.Run("no browser", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		w.Close()
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		_, err = Start(t.Context(), Options{ToBrowser: null, FromBrowser: r, Settings: Settings{Connection: 1}})
		wantCode(t, err, reins.CodeTransportFailure)
		if err == nil || !strings.Contains(err.Error(), "DevTools connection ended") {
			t.Errorf("the error does not tell the driver's last words: %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err = Start(ctx, Options{ToBrowser: w, FromBrowser: r, Settings: Settings{Connection: 1}})
		wantCode(t, err, reins.CodeCancelled)
	})
}

// QUI-1: a cancelled command returns when the page is quiet.
func TestCancel(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/spin":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<title>Spin</title><script>for(;;);</script>`)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<title>Home</title>`)
		}
	}))
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		c := launch(t, engine)
		p := startDriver(t, c, engine, 1, Handover{}, nil)
		for _, path := range []string{"/hang", "/spin"} {
			ctx, cancel := context.WithCancel(t.Context())
			stop := time.AfterFunc(500*time.Millisecond, cancel)
			_, err := p.Do(ctx, Command{Action: reins.Navigate{URL: s.URL + path}})
			wantCode(t, err, reins.CodeCancelled)
			stop.Stop()
			cancel()
			r, err := run(p, reins.Navigate{URL: s.URL + "/"})
			if err != nil || r.Result.Navigation.Title != "Home" {
				t.Fatalf("after %s: %+v, %v", path, r, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := p.Do(ctx, Command{Action: reins.Navigate{URL: s.URL + "/hang"}})
		wantCode(t, err, reins.CodeTimeout)
	})
}

// DRV-2: drivers killed at any moment leave the browser and its tabs to the
// next one.
func TestKilledDrivers(t *testing.T) {
	s := site(t, map[string]string{
		"/":       `<title>Home</title><script>window.kept = 1</script>`,
		"/dialog": `<title>Dialog</title><script>setTimeout(() => { alert("held up"); document.title = "answered" }, 1)</script>`,
		"/spin":   `<title>Spin</title><script>setTimeout(() => { for (;;); }, 1)</script>`,
		"/big":    `<title>Big</title><script>for (let i = 0; i < 100; i++) console.log("x".repeat(20000))</script>` + strings.Repeat("<p>some text to read<button>press</button>", 3000),
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		rounds := map[reins.Engine]int{reins.EngineShell: 24, reins.EngineFull: 12}[engine]
		c := launch(t, engine)
		var prev Handover
		paths := []string{"/", "/dialog", "/spin", "/big"}
		random := rand.New(rand.NewPCG(1, uint64(len(engine))))
		for i := range rounds {
			p := startDriver(t, c, engine, uint64(i+1), prev, nil)
			if i == 0 {
				if _, err := run(p, reins.OpenTab{URL: s.URL + "/"}); err != nil {
					t.Fatal(err)
				}
			}
			r, err := run(p, reins.ListTabs{})
			if err != nil || len(r.Result.Tabs) != 2 {
				t.Fatalf("round %d: tabs %+v, %v", i, r, err)
			}
			path := paths[i%len(paths)]
			done := make(chan struct{})
			go func() {
				defer close(done)
				tab := r.Result.Tabs[0].ID
				if _, err := run(p, reins.Navigate{Tab: tab, URL: s.URL + path}); err != nil {
					return
				}
				for { // large replies are under way when the driver dies
					if _, err := run(p, reins.Snapshot{Tab: tab, MaxBytes: 1_000_000}); err != nil {
						return
					}
				}
			}()
			wait := time.NewTimer(time.Duration(random.IntN(150)) * time.Millisecond)
			select {
			case <-wait.C:
			case <-done:
				<-wait.C
			}
			p.Kill()
			<-done
			prev = p.Handover()
		}
		p := startDriver(t, c, engine, uint64(rounds+1), prev, nil)
		r, err := run(p, reins.ListTabs{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range r.Result.Tabs {
			n, err := run(p, reins.Navigate{Tab: tab.ID, URL: s.URL + "/"})
			if err != nil || n.Result.Navigation.Title != "Home" {
				t.Errorf("tab %+v cannot be used any more: %v", tab, err)
			}
		}
	})
}

// The link's cost above the driver's own work: at most 0.3 ms at the median.
func BenchmarkLink(b *testing.B) {
	c := launch(b, reins.EngineShell)
	p := startDriver(b, c, reins.EngineShell, 1, Handover{}, nil)
	for b.Loop() {
		// No such tab: the browser is not asked.
		if _, err := run(p, reins.SelectTab{Tab: "t9"}); reins.CodeOf(err) != reins.CodeInvalidState {
			b.Fatal(err)
		}
	}
}

// wireOf is what a frame is on the link.
func wireOf(tb testing.TB, f wireFrame) []byte {
	tb.Helper()
	near, far := net.Pipe()
	var got []byte
	read := make(chan error, 1)
	go func() {
		var err error
		got, err = io.ReadAll(far)
		read <- err
	}()
	if err := errors.Join(newWire(near).write(f), near.Close(), <-read); err != nil {
		tb.Fatal(err)
	}
	return got
}

// The parent takes bytes from a process that is not trusted (DRV-3, DRV-5).
func FuzzOutcome(f *testing.F) {
	good, err := outcome{Reply: &Reply{Picture: &Picture{Width: 1, Data: []byte("data"), Model: []byte("model")}}}.frame(7)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wireOf(f, good))
	picture, err := CastFrame{Cast: 1, Number: 2, JPEG: []byte("jpeg")}.wire()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wireOf(f, picture))
	seen, err := outcome{View: &viewed{Frame: &CastFrame{JPEG: []byte("jpeg")}}}.frame(8)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wireOf(f, seen))
	f.Add(wireOf(f, wireFrame{kind: frameOutcome, parts: [][]byte{[]byte("{}"), nil, nil, nil}}))
	f.Add([]byte("r\x01\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("r\xff\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readFrame(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again := wireOf(t, got); !bytes.HasPrefix(b, again) {
			t.Errorf("%q was read as what is written %q", b, again)
		}
		o, err := outcomeOf(got)
		if set := btoi(o.Reply != nil) + btoi(o.Error != nil) + btoi(o.View != nil); err == nil && set != 1 {
			t.Errorf("%q: taken as %+v", b, o)
		}
		if f, err := castFrameOf(got); err == nil && (f.Number == 0 || len(f.JPEG) > 16<<20) {
			t.Errorf("%q: taken as %+v", b, f)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// DRV-3: what is above a bound of the link is refused before memory is taken
// for it, and an end in the middle of a frame is told from one between frames.
func TestFrameBounds(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     error // nil is any
	}{
		{"five parts", "r\x05\x00\x00\x00\x00\x00\x00\x00\x01", nil},
		{"a part above its bound", "r\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x04\x00\x00\x01", nil},
		{"cut in the head", "r\x01\x00", io.ErrUnexpectedEOF},
		{"cut in the lengths", "r\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00", io.ErrUnexpectedEOF},
		{"cut before a part", "r\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", io.ErrUnexpectedEOF},
		{"cut in a large part", "r\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x20\x00\x00xx", io.ErrUnexpectedEOF},
		{"a picture above its bound", "f\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01", nil},
		{"nothing", "", io.EOF},
	} {
		_, err := readFrame(strings.NewReader(c.in))
		if err == nil || c.want != nil && err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// DRV-3: notices that nobody takes end the driver; an update of a tab replaces
// the one before it.
func TestOutbox(t *testing.T) {
	o := newOutbox()
	update := func(tab reins.TabID) notice {
		return notice{Event: &Event{Kind: "tab_updated", Tab: reins.Tab{ID: tab}}}
	}
	for range 3 * mostNotices {
		o.put(update("t1"))
	}
	o.put(notice{Handover: &Handover{Browser: "A"}})
	o.put(notice{Handover: &Handover{Browser: "B"}})
	o.put(update("t1"))
	lines, err := o.take(t.Context())
	if err != nil || len(lines) != 3 || lines[1].Handover.Browser != "B" {
		t.Errorf("%d notices, %v", len(lines), err)
	}
	for range mostNotices + 1 {
		o.put(notice{Event: &Event{Kind: "tab_opened"}})
	}
	select {
	case <-o.full:
	default:
		t.Error("the bound does not hold")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.take(ctx)
	if _, err := o.take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The text of a snapshot crosses the link as it is, and cannot bring bytes that
// are no text.
func TestOutcomeText(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"- button \"<é>\"\u2028\n": "- button \"<é>\"\u2028\n",
		"bad \xff text":            "bad \ufffd text",
		strings.Repeat("x", 2<<20): strings.Repeat("x", 2<<20),
	} {
		sent := &Reply{Result: reins.Result{Snapshot: &reins.SnapshotResult{Text: in, Elements: 3}}}
		f, err := outcome{Reply: sent}.frame(1)
		if err != nil {
			t.Fatal(err)
		}
		f, err = readFrame(bytes.NewReader(wireOf(t, f)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := outcomeOf(f)
		if err != nil {
			t.Fatal(err)
		}
		if s := got.Reply.Result.Snapshot; s.Text != want || s.Elements != 3 || sent.Result.Snapshot.Text != in {
			t.Errorf("%.40q came as %.40q", in, s.Text)
		}
	}
}
