package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/demo"
)

// ask calls a tool and returns the text of the answer.
func ask(t *testing.T, c *sdk.ClientSession, tool string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if arguments == nil {
		arguments = map[string]any{}
	}
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

// A machine that cannot hold a browser is told of in every call, not by an end of
// the server that a client would show as "failed".
func TestNoBrowserIsSaid(t *testing.T) {
	cmd := program(t, "mcp", "--chromium", "/no/such/browser")
	c := connect(t, cmd)
	for range 2 {
		text, failed := ask(t, c, "browser_snapshot", nil)
		if !failed || !strings.Contains(text, "/no/such/browser") || !strings.Contains(text, "\nNext: ") {
			t.Errorf("it said %q", text)
		}
	}
	// RDY-4: the readiness says so too, with the cause and what to do about it.
	got, err := c.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: "reins://readiness"})
	if err != nil || len(got.Contents) != 1 {
		t.Fatalf("readiness: %+v, %v", got, err)
	}
	var r reins.Readiness
	if err := json.Unmarshal([]byte(got.Contents[0].Text), &r); err != nil {
		t.Fatal(err)
	}
	is := r.Capabilities[reins.CapableRuntime]
	if r.Overall != "failed" || is.State != "failed" || !strings.Contains(is.Cause, "/no/such/browser") || is.Remedy == "" {
		t.Errorf("the readiness is %s", got.Contents[0].Text)
	}
}

// MCP-6, B118: a call that is taken back ends now, and the next one is answered.
func TestCancelledCallFreesTheBrowser(t *testing.T) {
	target := hang(t)
	c := connect(t, program(t, "mcp", "--engine", "shell", "--allow", target))
	if text, failed := ask(t, c, "browser_snapshot", nil); failed {
		t.Fatal(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "browser_navigate", Arguments: map[string]any{"url": "http://" + target + "/"}})
	if err == nil {
		t.Fatal("a page that never comes was answered")
	}
	began := time.Now()
	text, failed := ask(t, c, "browser_snapshot", nil)
	if took := time.Since(began); failed || took > time.Second {
		t.Errorf("the next call took %s: %s", took, text)
	}
}

// RES-8, B121: a browser that dies is said, tools stay, and the next call has a
// new browser.
func TestDeadBrowserIsSaidAndReplaced(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	cmd := program(t, mcpFlags{engine: "shell", logLevel: "error"}.mcpArguments(site, true)...)
	c := connect(t, cmd)
	if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()}); failed {
		t.Fatal(text)
	}
	killBrowser(t, cmd.Process.Pid)
	tools, err := c.ListTools(context.Background(), nil)
	if err != nil || len(tools.Tools) != 6 {
		t.Errorf("the tools: %v %v", tools, err)
	}
	// The death may be seen before, during or after the next call begins.
	text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()})
	if failed {
		if !strings.Contains(text, "Retryable: yes") {
			t.Errorf("it said %q", text)
		}
		text, failed = ask(t, c, "browser_navigate", map[string]any{"url": site.URL()})
	}
	if failed || !strings.Contains(text, `heading "Sign in"`) {
		t.Errorf("after it: %s", text)
	}
}

// killBrowser ends the browsers' first processes below pid at once.
func killBrowser(t *testing.T, pid int) {
	t.Helper()
	killed := 0
	for _, id := range descendants(pid) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
		if (strings.HasPrefix(string(name), "chrom") || strings.HasPrefix(string(name), "headless")) && !strings.Contains(string(line), "--type=") {
			if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("there is no browser to kill")
	}
}

// OVW-1, OWN-3, B066, B078: kill -9 of the server leaves no process, and the next one clears
// what it left on disk.
func TestKilledServerIsSucceeded(t *testing.T) {
	cmd := program(t, "mcp", "--engine", "shell")
	c := connect(t, cmd)
	if text, failed := ask(t, c, "browser_snapshot", nil); failed {
		t.Fatal(text)
	}
	all := descendants(cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, all, time.Now().Add(time.Second))
	_ = c.Close()
	next := program(t, "mcp", "--engine", "shell")
	next.Env = cmd.Env
	c = connect(t, next)
	if text, failed := ask(t, c, "browser_snapshot", nil); failed {
		t.Error(text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, next)
}

// A client that closes only the end that it reads from is gone too: the server
// cleans up and ends.
func TestClosedOutputEndsIt(t *testing.T) {
	cmd := program(t, "mcp", "--engine", "shell")
	in, err := cmd.StdinPipe() // stays open
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, said, "Chromium is up")
	all := descendants(cmd.Process.Pid)
	_ = out.Close()
	if _, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	gone(t, all, time.Now().Add(time.Second))
	nothingLeft(t, cmd)
}

// MCP-8: a client that leaves without having read its answers, and keeps the end
// of stdout open, does not keep the server either.
func TestUnreadOutputEndsIt(t *testing.T) {
	cmd := program(t, "mcp", "--engine", "shell")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe() // stays open, and is not read
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, said, "Chromium is up")
	all := descendants(cmd.Process.Pid)
	// The SDK reads on while an answer is stuck; a pipe holds 64 KiB.
	ask := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"nobody/answers/`+strings.Repeat("x", 900)+`"}`+"\n", 50)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n", ask, ask, ask, ask,
	} {
		if _, err := fmt.Fprint(in, line); err != nil {
			t.Fatal(err)
		}
	}
	_ = in.Close()
	ended := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := cmd.Process.Wait()
		ended <- state
	}()
	select {
	case state := <-ended:
		if !state.Success() {
			t.Errorf("it ended with %v", state)
		}
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("it is still there")
	}
	gone(t, all, time.Now().Add(time.Second))
	nothingLeft(t, cmd)
}

// MCP-3: the toolset for tabs, and its agent's right to those verbs (CAP-7).
func TestTabsToolset(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	c := connect(t, program(t, append(mcpFlags{engine: "shell", logLevel: "error"}.mcpArguments(site, true), "--tools", "tabs")...))
	tools, err := c.ListTools(context.Background(), nil)
	if err != nil || len(tools.Tools) != 12 {
		t.Fatalf("%d tools: %v", len(tools.Tools), err)
	}
	for _, step := range []struct {
		tool      string
		arguments map[string]any
		see       string
	}{
		{"browser_navigate", map[string]any{"url": site.URL()}, `heading "Sign in"`},
		{"browser_open_tab", map[string]any{"url": site.URL() + "pilot"}, "Pilot station"},
		{"browser_list_tabs", nil, "Open tabs: 2."},
		{"browser_snapshot", map[string]any{"tab": "t1"}, `heading "Sign in"`},
		{"browser_select_tab", map[string]any{"tab": "t1"}, "Selected tab t1."},
		{"browser_press_key", map[string]any{"key": "Tab"}, "Pressed Tab"},
		{"browser_type", map[string]any{"text": "ada@", "snapshot": true}, "Typed 4 characters."},
		{"browser_close_tab", map[string]any{"tab": "t2"}, "It closed tab t2."},
		{"browser_list_tabs", nil, "Open tabs: 1."},
	} {
		if text, failed := ask(t, c, step.tool, step.arguments); failed || !strings.Contains(text, step.see) {
			t.Errorf("%s %v: %s", step.tool, step.arguments, text)
		}
	}
	// A tool that is not offered is a verb that is not permitted either: the fence
	// decides, whatever the list says.
	alone := connect(t, program(t, "mcp", "--engine", "shell", "--tools", "browser_snapshot"))
	if text, failed := ask(t, alone, "browser_snapshot", nil); failed {
		t.Error(text)
	}
	_, err = alone.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_click", Arguments: map[string]any{"ref": "f1e1"}})
	if err == nil {
		t.Error("a tool that is not offered was called")
	}
}

// LIFE-3, OVW-1, B076: a second signal ends it at once, and its children with it.
func TestSecondSignalEndsItAtOnce(t *testing.T) {
	cmd := program(t, "mcp", "--engine", "shell")
	in, err := cmd.StdinPipe() // stays open
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, said, "Chromium is up")
	all := descendants(cmd.Process.Pid)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	// Two signals at the same instant are one to the kernel, so they go on coming;
	// a stop in order takes longer than the time between them.
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for over := false; !over; {
		_ = cmd.Process.Signal(syscall.SIGINT) // fails once it has ended
		select {
		case <-ended:
			over = true
		case <-again.C:
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("it ended with %d", code)
	}
	gone(t, all, time.Now().Add(time.Second))
}

// LIFE-3: a client that closed its end and then sends the usual signal does not
// cut short what is cleaned up.
func TestSignalAfterDepartureIsPatient(t *testing.T) {
	cmd := program(t, "mcp", "--engine", "shell")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, said, "Chromium is up")
	all := descendants(cmd.Process.Pid)
	_ = in.Close()
	<-time.After(20 * time.Millisecond)     // it has noticed, and is at it
	_ = cmd.Process.Signal(syscall.SIGTERM) // fails once it has ended
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	gone(t, all, time.Now().Add(time.Second))
	nothingLeft(t, cmd)
}
