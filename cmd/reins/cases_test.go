package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// standIn is a browser that tells a version and gives up, leaving a child behind.
func standIn() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("Stand-in 156.0.1.2")
		return
	}
	_, _ = os.StartProcess("/bin/sleep", []string{"sleep", "1"}, &os.ProcAttr{})
	fmt.Fprintln(os.Stderr, "stand-in browser gives up")
	os.Exit(7)
}

// holdings are what a server must not gather.
type holdings struct{ processes, zombies, descriptors, threads, folders, memory int }

func holdingsOf(t *testing.T, server int, dir string) (h holdings) {
	t.Helper()
	for _, pid := range descendants(server) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			h.zombies++
		}
		h.processes++
	}
	for name, n := range map[string]*int{"fd": &h.descriptors, "task": &h.threads} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", server, name))
		if err != nil {
			t.Fatal(err)
		}
		*n = len(entries)
	}
	slots, err := filepath.Glob(filepath.Join(dir, "generations", "*", "profiles", "*"))
	if err != nil {
		t.Fatal(err)
	}
	h.folders = len(slots)
	own, _ := memoryHeld(server)
	h.memory = int(own >> 20)
	return h
}

// holds asks until the condition holds; nothing announces it.
func holds(limit time.Duration, condition func() bool) bool {
	for end := time.Now().Add(limit); !condition(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// B064, B067, B071: a browser that gives up at every start, asked for again and
// again, is started ever more rarely, and nothing gathers: no process, zombie,
// descriptor, thread or profile.
func TestBrokenStartsGatherNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runtime")
	browser := filepath.Join(t.TempDir(), "stand-in")
	copyProgram(t, itself(t), browser)
	var said lockedText
	cmd := program(t, "mcp", "--dir", dir, "--chromium", browser)
	cmd.Stderr = &said
	c := connect(t, cmd)
	launches := func() int { return strings.Count(said.String(), "a browser did not start") }
	var first holdings
	calls := 0
	for begin := time.Now(); time.Since(begin) < 6*time.Second; calls++ {
		text, failed := ask(t, c, "browser_snapshot", nil)
		if !failed || !strings.Contains(text, "gives up") || !strings.Contains(text, "Retryable: yes") {
			t.Fatalf("call %d: %q", calls, text)
		}
		if launches() >= 2 && first == (holdings{}) {
			first = holdingsOf(t, cmd.Process.Pid, dir)
		}
		<-time.After(25 * time.Millisecond)
	}
	n := launches()
	t.Logf("%d calls made %d launches; after two of them %+v", calls, n, first)
	if n < 3 || n > 8 || calls < 3*n {
		t.Errorf("%d calls made %d launches", calls, n)
	}
	var last holdings
	if !holds(5*time.Second, func() bool {
		last = holdingsOf(t, cmd.Process.Pid, dir)
		return last.processes <= 1 && last.zombies+last.folders == 0
	}) {
		t.Errorf("left: %+v", last)
	}
	if last.descriptors > first.descriptors+4 || last.threads > first.threads+8 || last.memory > first.memory+32 {
		t.Errorf("after two launches %+v, after %d %+v", first, n, last)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// B067, B071: browsers that are killed, one after another, leave neither zombies
// nor profiles, and cost the server nothing that lasts.
func TestKilledBrowsersGatherNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runtime")
	cmd := program(t, "mcp", "--engine", "shell", "--dir", dir, "--log-level", "error")
	c := connect(t, cmd)
	var first, last holdings
	const rounds = 12
	for round := range rounds {
		for try := 0; ; try++ {
			text, failed := ask(t, c, "browser_snapshot", nil)
			if !failed {
				break
			}
			if try == 2 {
				t.Fatalf("round %d: %s", round, text)
			}
		}
		last = holdingsOf(t, cmd.Process.Pid, dir)
		if round == 2 {
			first = last
		}
		killBrowser(t, cmd.Process.Pid)
	}
	t.Logf("in the third round %+v, in the last %+v", first, last)
	if last.descriptors > first.descriptors+4 || last.threads > first.threads+8 || last.folders > 1 || last.memory > first.memory+32 {
		t.Errorf("in the third round %+v, in the last %+v", first, last)
	}
	if !holds(5*time.Second, func() bool {
		last = holdingsOf(t, cmd.Process.Pid, dir)
		return last.zombies+last.folders == 0
	}) {
		t.Errorf("of killed browsers there stay %+v", last)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// B065, OWN-1: a second client on one directory is told at its first call who has
// it, and disturbs nobody; when the first leaves without a word it gets the place.
func TestTwoClientsOnOneDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runtime")
	first, second := program(t, "mcp", "--engine", "shell", "--dir", dir), program(t, "mcp", "--engine", "shell", "--dir", dir)
	a := connect(t, first)
	if text, failed := ask(t, a, "browser_snapshot", nil); failed {
		t.Fatal(text)
	}
	b := connect(t, second)
	text, failed := ask(t, b, "browser_snapshot", nil)
	if !failed || !strings.Contains(text, fmt.Sprintf("process %d owns", first.Process.Pid)) || !strings.Contains(text, "Retryable: yes") {
		t.Errorf("the second is told %q", text)
	}
	if text, failed := ask(t, a, "browser_snapshot", nil); failed {
		t.Errorf("the first was disturbed: %s", text)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if !holds(10*time.Second, func() bool { text, failed = ask(t, b, "browser_snapshot", nil); return !failed }) {
		t.Errorf("once the first is gone the second is told %q", text)
	}
}

// B076: SIGTERM at an awkward moment ends the server soon and in order.
func TestSignalAtAnAwkwardMoment(t *testing.T) {
	release := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/dialog":
			fmt.Fprint(w, `<title>Dialog</title><script>setTimeout(() => alert("stay"), 50)</script>`)
		case "/wedged":
			fmt.Fprint(w, `<title>Wedged</title><script>setTimeout(() => { for (;;); }, 50)</script>`)
		case "/leave":
			fmt.Fprint(w, `<title>Leave</title><script>onbeforeunload = e => { e.preventDefault(); return "stay" }</script>`)
		}
	}))
	defer site.Close()
	defer close(release)
	for _, at := range []string{"/slow", "/dialog", "/wedged", "/leave"} {
		t.Run(at[1:], func(t *testing.T) {
			cmd := program(t, "mcp", "--engine", "shell", "--allow", site.Listener.Addr().String())
			c := connect(t, cmd)
			if text, failed := ask(t, c, "browser_snapshot", nil); failed {
				t.Fatal(text)
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			done := make(chan struct{})
			go func() { // its answer, if any, is of no interest
				defer close(done)
				_, _ = c.CallTool(ctx, &sdk.CallToolParams{Name: "browser_navigate", Arguments: map[string]any{"url": site.URL + at}})
				_, _ = c.CallTool(ctx, &sdk.CallToolParams{Name: "browser_snapshot", Arguments: map[string]any{}})
			}()
			<-time.After(700 * time.Millisecond) // it is at it
			all := descendants(cmd.Process.Pid)
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			gone(t, all, began.Add(10*time.Second))
			t.Logf("%d processes gone %s after the signal", len(all), time.Since(began).Round(time.Millisecond))
			<-done
			_ = c.Close()
			nothingLeft(t, cmd)
			lock, err := filepath.Glob(filepath.Join(stateOf(cmd), "reins", "*", "runtime.lock"))
			if err != nil || len(lock) != 1 {
				t.Fatalf("records %v, %v", lock, err)
			}
			if b, err := os.ReadFile(lock[0]); err != nil || !strings.Contains(string(b), `"state":"relinquished"`) {
				t.Errorf("the record is %q, %v", b, err)
			}
		})
	}
}

// stateOf is where a command keeps its state.
func stateOf(cmd *exec.Cmd) (dir string) {
	for _, e := range cmd.Env {
		if v, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			dir = v
		}
	}
	return dir
}
