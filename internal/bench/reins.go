package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is an MCP client of a real `reins mcp`.
type client struct {
	cmd     *exec.Cmd
	dir     string
	session *sdk.ClientSession
	ref     string
}

func startReins(ctx context.Context, o options, s *site) (_ *client, err error) {
	c := &client{}
	if c.dir, err = os.MkdirTemp("", "reins-bench-"); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(o.reins, "mcp", "--dir", filepath.Join(c.dir, "run"), "--engine", o.engine,
		"--allow", s.addr, "--log-level", "error", "--max-bytes", "1000000")
	c.cmd.Stderr = io.Discard
	c.session, err = sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).
		Connect(ctx, &sdk.CommandTransport{Command: c.cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		os.RemoveAll(c.dir)
		return nil, err
	}
	return c, nil
}

func (c *client) Close() {
	c.session.Close() //nolint:errcheck // the process ends with it
	os.RemoveAll(c.dir)
}

func (c *client) call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	res, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, content := range res.Content {
		if t, ok := content.(*sdk.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	if res.IsError {
		return "", fmt.Errorf("%s: %s", tool, text.String())
	}
	return text.String(), nil
}

func (c *client) navigate(ctx context.Context, url string) error {
	_, err := c.call(ctx, "browser_navigate", map[string]any{"url": url, "snapshot": false})
	return err
}

func (c *client) snapshot(ctx context.Context) error {
	_, err := c.call(ctx, "browser_snapshot", nil)
	return err
}

func (c *client) screenshot(ctx context.Context) error {
	_, err := c.call(ctx, "browser_screenshot", nil)
	return err
}

// find takes the ref of the first line that holds what.
func (c *client) find(ctx context.Context, what string) error {
	text, err := c.call(ctx, "browser_snapshot", nil)
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if m := refs.FindStringSubmatch(line); m != nil && strings.Contains(line, what) {
			c.ref = m[1]
			return nil
		}
	}
	return fmt.Errorf("no %s in the snapshot:\n%.2000s", what, text)
}

var refs = regexp.MustCompile(`\[ref=([^\]]+)\]`)

func (c *client) act(ctx context.Context, tool string, arguments map[string]any) error {
	if arguments == nil {
		arguments = map[string]any{}
	}
	arguments["ref"] = c.ref
	_, err := c.call(ctx, tool, arguments)
	return err
}

// memory adds up the proportional set size of the server's process tree, in
// MiB, apart for Reins' own processes and the browser's.
func (c *client) memory() (own, browser float64, err error) {
	children := map[int][]int{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, 0, err
	}
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		stat, err := os.ReadFile(d + "/stat")
		if err != nil {
			continue // it ended
		}
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parent, _ := strconv.Atoi(after[1])
		children[parent] = append(children[parent], pid)
	}
	for queue := []int{c.cmd.Process.Pid}; len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		queue = append(queue, children[pid]...)
		dir := "/proc/" + strconv.Itoa(pid)
		mib := pss(dir + "/smaps_rollup")
		if exe, _ := os.ReadFile(dir + "/comm"); strings.HasPrefix(string(exe), "chrom") || strings.HasPrefix(string(exe), "headless") {
			browser += mib
		} else {
			own += mib
		}
	}
	return own, browser, nil
}

func pss(file string) float64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}
