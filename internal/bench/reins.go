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
	"github.com/reins-browser/reins/internal/bench/chromium"
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
		"--allow", s.addr, "--log-level", "error")
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
	return c.take(text, what)
}

// leave clicks a button that leads to a page with such a button again, which
// the answer shows.
func (c *client) leave(ctx context.Context, what string) error {
	text, err := c.call(ctx, "browser_click", map[string]any{"ref": c.ref, "snapshot": true})
	if err != nil {
		return err
	}
	return c.take(text, what)
}

func (c *client) take(text, what string) error {
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

// usage is the proportional set size of a server's process tree in MiB: of each
// of Reins' own processes, and of the browser's together.
type usage struct {
	own     []float64
	browser float64
}

func (u usage) String() string {
	sum, parts := 0.0, make([]string, len(u.own))
	for i, mib := range u.own {
		sum += mib
		parts[i] = fmt.Sprintf("%.1f", mib)
	}
	return fmt.Sprintf("%.1f MiB in Reins' own processes (%s), %.1f MiB in Chromium's", sum, strings.Join(parts, " + "), u.browser)
}

func (c *client) memory() (u usage, err error) {
	pids, _ := chromium.Tree(c.cmd.Process.Pid)
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		mib := pss(dir + "/smaps_rollup")
		if exe, _ := os.ReadFile(dir + "/comm"); strings.HasPrefix(string(exe), "chrom") || strings.HasPrefix(string(exe), "headless") {
			u.browser += mib
		} else {
			u.own = append(u.own, mib)
		}
	}
	if len(u.own) == 0 {
		return u, fmt.Errorf("the server is gone")
	}
	return u, nil
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
