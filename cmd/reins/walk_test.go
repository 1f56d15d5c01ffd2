package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// deadline bounds what these tests wait for; nothing waits as long when it works.
const deadline = 60 * time.Second

// connect starts the command and connects a client to it.
func connect(t *testing.T, cmd *exec.Cmd) *sdk.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if cmd.Stderr == nil {
		cmd.Stderr = testWriter{t}
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, &sdk.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// The main job, for real: the built program, an official client, both engines. The
// walk checks the outcome of each call itself.
func TestWalk(t *testing.T) {
	for _, engine := range []string{"full", "shell"} {
		t.Run(engine, func(t *testing.T) {
			site, err := demo.Serve()
			if err != nil {
				t.Fatal(err)
			}
			defer site.Close()
			cmd := program(t, mcpFlags{engine: engine, logLevel: "warn"}.mcpArguments(site, true)...)
			c := connect(t, cmd)
			ctx, cancel := context.WithTimeout(context.Background(), 2*deadline)
			defer cancel()
			tools, err := c.ListTools(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range tools.Tools {
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); len(names) != 6 || !strings.Contains(got, "browser_press") {
				t.Errorf("the tools are %s", got)
			}
			tour := &demo.Tour{Site: site, Client: c, Out: testWriter{t}}
			if err := tour.Walk(ctx); err != nil {
				t.Fatal(err)
			}
			left := descendants(cmd.Process.Pid)
			if len(left) < 5 {
				t.Errorf("only the processes %v: is this a browser?", left)
			}
			if err := c.Close(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			gone(t, left, time.Now().Add(time.Second))
			nothingLeft(t, cmd)
		})
	}
}

// nothingLeft checks that no generation is left (LIFE-4).
func nothingLeft(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(stateOf(cmd), "reins", "*", "generations", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// soon is how long processes of an ended part may still be there (OVW-1).
func soon() time.Time { return time.Now().Add(time.Second) }

// gone waits until none of the processes is there any more; a zombie is not.
func gone(t *testing.T, pids []int, until time.Time) {
	t.Helper()
	for {
		var left []string
		for _, pid := range pids {
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
				left = append(left, strings.TrimSpace(string(stat[:min(60, len(stat))])))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("still there: %v", left)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// hang is a server that takes connections and never answers.
func hang(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// lostClient is a client that starts a server, makes it busy with a page that
// never comes, says so, and waits to be killed: client TARGET COMMAND [ARG...].
func lostClient() {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Args[0] = "reins"
	cmd.Stderr = os.Stderr
	c, err := sdk.NewClient(&sdk.Implementation{Name: "lost", Version: "1"}, nil).
		Connect(context.Background(), &sdk.CommandTransport{Command: cmd}, nil)
	if err == nil {
		_, err = c.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_snapshot", Arguments: map[string]any{}})
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("busy", cmd.Process.Pid)
	_, err = c.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_navigate", Arguments: map[string]any{"url": "http://" + os.Args[1] + "/"}})
	fmt.Println("answered", err)
}

// MCP-8, OVW-1, B066: kill -9 of the client takes everything with it within a second,
// whatever was under way.
func TestKilledClientLeavesNothing(t *testing.T) {
	target := hang(t)
	server := program(t, "mcp", "--allow", target, "--engine", "shell")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command(self, append([]string{target, server.Path}, server.Args[1:]...)...)
	client.Args[0] = "client"
	client.Env, client.Stderr = server.Env, testWriter{t}
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "busy %d\n", &pid); err != nil {
		_ = client.Process.Kill()
		t.Fatalf("the client did not come so far: %v", err)
	}
	all := descendants(pid)
	if len(all) < 4 {
		t.Fatalf("only the processes %v: is this a browser?", all)
	}
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = client.Wait()
	gone(t, all, killed.Add(time.Second))
	t.Logf("%d processes gone %s after the client", len(all), time.Since(killed).Round(time.Millisecond))
	nothingLeft(t, server)
}

// LIFE-3, B076: SIGTERM and SIGINT end it in order, with success.
func TestSignalsEndIt(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := program(t, "mcp", "--engine", "shell")
		in, err := cmd.StdinPipe() // stays open
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, out, "Chromium is up")
		all := descendants(cmd.Process.Pid)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: it ended with %v", signal, err)
		}
		gone(t, all, time.Now().Add(time.Second))
		nothingLeft(t, cmd)
	}
}

// waitFor reads until the text came.
func waitFor(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var all strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(all.String(), text) {
		n, err := r.Read(buffer)
		all.Write(buffer[:n])
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			t.Fatalf("it said %q and then %v", all.String(), err)
		}
	}
}

// DIR-1, OWN-1, B065: a second client in the same place gets its own browser and does not
// disturb the first.
func TestTwoClientsDoNotMeet(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	arguments := mcpFlags{engine: "shell", logLevel: "warn"}.mcpArguments(site, true)
	first := program(t, arguments...)
	second := program(t, arguments...)
	second.Env = first.Env
	a, b := connect(t, first), connect(t, second)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for _, each := range []struct {
		client *sdk.ClientSession
		tool   string
		see    string
	}{
		{a, "browser_navigate", `heading "Sign in"`}, {b, "browser_navigate", `heading "Sign in"`},
		{a, "browser_snapshot", `heading "Sign in"`}, {b, "browser_snapshot", `heading "Sign in"`},
	} {
		arguments := map[string]any{}
		if each.tool == "browser_navigate" {
			arguments["url"] = site.URL()
		}
		res, err := each.client.CallTool(ctx, &sdk.CallToolParams{Name: each.tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if text := res.Content[0].(*sdk.TextContent).Text; res.IsError || !strings.Contains(text, each.see) {
			t.Errorf("%s: %s", each.tool, text)
		}
	}
}
