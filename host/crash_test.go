package host

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
)

// crashVariable makes this test binary an embedding program that is going to be
// killed; its value is the runtime directory. Only this file reads it.
const crashVariable = "REINS_TEST_CRASH_DIR"

// idleVariable, when set besides, makes it one that only keeps spares.
const idleVariable = "REINS_TEST_CRASH_IDLE"

// embed is such a program: it starts a runtime and keeps a browser busy.
func embed(dir string) error {
	ctx := context.Background()
	srv := httptest.NewServer(html(`<title>Busy</title><button onclick="n.textContent = +n.textContent + 1">More</button><p id=n>0</p>
<script>setInterval(() => { localStorage.x = Math.random(); fetch('/x?' + Math.random()) }, 5)</script>`))
	o := Options{Dir: dir, Hooks: reins.Hooks{Authorize: allow}, Backends: []cell.Backend{process.New(process.Options{})}}
	idle := os.Getenv(idleVariable) != ""
	if idle {
		o.Spares = 2
	}
	h, err := New(o)
	if err != nil {
		return err
	}
	if err := h.Start(ctx); err != nil {
		return err
	}
	fmt.Println("started")
	if idle {
		return keepSpares(h)
	}
	policy := reins.EgressPolicy{AllowPrivate: []string{strings.TrimPrefix(srv.URL, "http://")}}
	if _, err := h.Register(ctx, reins.Registration{Key: key1, Attachment: attached(1), Spec: reins.BrowserSpec{Egress: policy}}); err != nil {
		return err
	}
	b := agentOf(key1, 1)
	c, err := h.Issue(ctx, b, 0)
	if err != nil {
		return err
	}
	l, err := h.Acquire(ctx, c.Token, b)
	if err != nil {
		return err
	}
	if _, err := l.Do(ctx, reins.Call{Action: reins.Navigate{URL: srv.URL}}); err != nil {
		return err
	}
	fmt.Println("busy")
	for {
		snap, err := l.Do(ctx, reins.Call{Action: reins.Snapshot{}})
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(snap.Snapshot.Text, `"More"`)
		_, rest, _ = strings.Cut(rest, "[ref=")
		ref, _, _ := strings.Cut(rest, "]")
		if _, err := l.Do(ctx, reins.Call{Action: reins.Click{Ref: reins.Ref(ref)}}); err != nil {
			return err
		}
		if _, err := l.Do(ctx, reins.Call{Action: reins.Screenshot{}}); err != nil && reins.CodeOf(err) != reins.CodeQuotaExceeded {
			return err
		}
	}
}

// keepSpares says when all of a host's spares are there, and nothing more.
func keepSpares(h *Host) error {
	for range time.Tick(10 * time.Millisecond) {
		p := h.gen.spares
		p.mu.Lock()
		n := len(p.ready)
		p.mu.Unlock()
		if n == p.want {
			fmt.Println("idle")
			<-h.Done()
			break
		}
	}
	return fmt.Errorf("the runtime has ended")
}

// TestCrashSpares kills a program that keeps spares, while it starts them and
// once they are there: they end with it like any other (CELL-5, CELL-11).
func TestCrashSpares(t *testing.T) {
	t.Setenv(idleVariable, "yes")
	dir, backend := filepath.Join(t.TempDir(), "runtime"), process.New(process.Options{})
	for i := range 4 {
		when, after := "started", rand.N(900*time.Millisecond)
		if i%2 == 1 {
			when, after = "idle", 0
		}
		crashOnce(t, dir, when, after)
		again(t, dir, backend)
	}
}

// TestCrash kills such a program with SIGKILL at random moments of its start
// and work: a second later none of its processes lives (OVW-1, CELL-5), the
// next start works (OWN-3), and nothing of the generation before is left
// (LIFE-4).
func TestCrash(t *testing.T) {
	const rounds, early, late = 26, 900 * time.Millisecond, 400 * time.Millisecond
	dir, backend := filepath.Join(t.TempDir(), "runtime"), process.New(process.Options{})
	for i := range rounds {
		when := "started" // killed on the way up
		after := rand.N(early)
		if i%2 == 1 {
			when, after = "busy", rand.N(late) // killed at work
		}
		crashOnce(t, dir, when, after)
		again(t, dir, backend)
	}
}

// crashOnce runs the program, kills it some time after it said a word, and looks
// around.
func crashOnce(t *testing.T, dir, word string, after time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), crashVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 8)
	go func() { // ends with the program
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	listen(t, lines, word)
	<-time.NewTimer(after).C
	family := descendants(t, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatalf("the program ended by itself before it was killed: %v", err)
	}
	for range lines {
		continue // until the program's end of the pipe is closed
	}
	if state := wait(cmd); state.Exited() {
		t.Fatalf("the program ended by itself with status %d", state.ExitCode())
	}
	left := func() (out []string) {
		for pid, p := range processes(t) {
			if old, ok := family[pid]; ok && old.status["start"] == p.status["start"] && p.status["State"][0] != 'Z' || p.has(dir) {
				out = append(out, fmt.Sprint(pid, p.args))
			}
		}
		return out
	}
	// Its end, not the signal, is what the second counts from: a loaded machine
	// takes its time to tear a program down.
	defer func() {
		if t.Failed() {
			t.Logf("killed %s after it was %s; left: %v", after, word, left())
		}
	}()
	within(t, time.Second, "all processes of a killed program are gone", func() bool { return len(left()) == 0 })
}

func listen(t *testing.T, lines <-chan string, word string) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the program ended before it was %s", word)
			}
			if line == word {
				return
			}
		case <-limit.C:
			t.Fatalf("the program was not %s within 30 s", word)
		}
	}
}

func wait(cmd *exec.Cmd) *os.ProcessState {
	_ = cmd.Wait() // killed is what it should be
	return cmd.ProcessState
}

// descendants are all processes below pid, and it.
func descendants(t *testing.T, pid int) map[int]proc {
	t.Helper()
	procs, out := processes(t), map[int]proc{}
	for _, p := range procs {
		for q := p; q.pid > 1; q = procs[q.parent] {
			if q.pid == pid {
				out[p.pid] = p
				break
			}
		}
	}
	return out
}

// again starts and stops a runtime over the directory and looks for leftovers.
func again(t *testing.T, dir string, backend cell.Backend) {
	t.Helper()
	h, err := New(Options{Dir: dir, Hooks: reins.Hooks{Authorize: allow}, Backends: []cell.Backend{backend}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatalf("the start after a kill: %v (cause %v)", err, reins.AsError(err).Cause)
	}
	if names, err := os.ReadDir(filepath.Join(dir, "generations")); err != nil || len(names) != 1 {
		t.Errorf("%d generations after a start: %v", len(names), err)
	}
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(filepath.Join(dir, "generations")); err == nil && len(names) != 0 {
		t.Errorf("generations left after a stop: %v", names)
	}
}
