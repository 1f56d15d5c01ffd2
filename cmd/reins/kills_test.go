package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins/internal/demo"
)

var kills = flag.Int("kills", 12, "how many parts of a running server are killed (B066)")

// B066, OVW-1, CELL-5, DRV-2: any process of a server killed at any moment, on the
// ordinary browser. Of one that dies nothing is left; one that lives answers again
// within three calls, or ten seconds of a busy machine, and each call ends; the next
// one over the same place starts.
func TestKilledParts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	first := program(t, mcpFlags{engine: "full", logLevel: "error"}.mcpArguments(site, true)...)
	var server *exec.Cmd
	var c *sdk.ClientSession
	seen, killed := map[int]bool{}, map[string]int{}
	var slowest time.Duration
	for range *kills {
		if server == nil {
			server = exec.Command(first.Path, first.Args[1:]...)
			server.Args[0], server.Env = "reins", first.Env
			c = connect(t, server)
			if random.IntN(4) > 0 { // else it is killed while it starts
				if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()}); failed {
					t.Fatalf("a server over the same place: %s", text)
				}
			}
		}
		<-time.After(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		all := descendants(server.Process.Pid)
		for _, pid := range all {
			seen[pid] = true
		}
		victim := all[random.IntN(len(all))]
		if random.IntN(4) == 0 {
			victim = all[0]
		}
		what := part(victim, server.Process.Pid)
		killed[what]++
		began := time.Now()
		_ = syscall.Kill(victim, syscall.SIGKILL) // it may just have ended
		if victim == server.Process.Pid {
			gone(t, all, began.Add(2*time.Second))
			slowest = max(slowest, time.Since(began))
			_ = c.Close()
			server = nil
			continue
		}
		for try := 1; ; try++ {
			text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()})
			if !failed {
				break
			}
			if try >= 3 && time.Since(began) > 10*time.Second || !strings.Contains(text, "Retryable: yes") {
				t.Fatalf("after the end of %q, call %d: %s", what, try, text)
			}
			<-time.After(300 * time.Millisecond) // as an agent takes at least
		}
	}
	if server != nil {
		_ = c.Close()
	}
	var left []int
	for pid := range seen {
		left = append(left, pid)
	}
	gone(t, left, time.Now().Add(2*time.Second))
	t.Logf("%d processes seen, all gone, those of a killed server after %s at most; killed %v", len(seen), slowest.Round(time.Millisecond), killed)
	if server == nil { // what the last one left goes with the next start
		next := program(t, "mcp", "--engine", "shell")
		next.Env = first.Env
		c := connect(t, next)
		if text, failed := ask(t, c, "browser_snapshot", nil); failed {
			t.Error(text)
		}
		_ = c.Close()
	}
	nothingLeft(t, first)
}

// part says what a process of a server is.
func part(pid, server int) string {
	if pid == server {
		return "server"
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "ended"
	}
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 || r == ' ' })
	for _, w := range words {
		if kind, ok := strings.CutPrefix(w, "--type="); ok {
			return kind
		}
	}
	if len(words) == 0 {
		return "ending"
	}
	return filepath.Base(words[0])
}
