package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins/internal/tasks/agents"
)

// program says how to start the server to measure.
type program struct {
	Reins    string // path of the binary
	Engine   string
	Chromium string
	RunAs    string
	Dir      string
	Allow    []string // HOST:PORT
	Stderr   io.Writer
	Trace    io.Writer // every call and answer, when set
}

func (p program) command() *exec.Cmd {
	args := []string{"mcp", "--tools", "tabs,browser_drag"}
	for _, flag := range []struct{ name, value string }{
		{"--dir", p.Dir}, {"--engine", p.Engine}, {"--chromium", p.Chromium}, {"--run-as", p.RunAs},
	} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	for _, a := range p.Allow {
		args = append(args, "--allow", a)
	}
	cmd := exec.Command(p.Reins, args...)
	cmd.Stderr = p.Stderr
	return cmd
}

// session is one client of one server. It implements [agents.Tools] and counts
// what goes through. It serves one caller at a time; Close ends the server.
type session struct {
	client *mcp.ClientSession
	count  tally
	trace  io.Writer // every call and answer, when set
}

// tally is what an agent's work cost.
type tally struct {
	Calls   int           `json:"calls"`
	Bytes   int           `json:"bytes"`      // of the texts it was given to read
	Time    time.Duration `json:"time_ns"`    // inside calls
	Slowest time.Duration `json:"slowest_ns"` // of the calls
	Slow    string        `json:"slow"`       // the tool of the slowest
}

// connect starts the server and waits until it answered the handshake.
func connect(ctx context.Context, p program) (*session, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "reins-tasks", Version: "1"}, nil)
	c, err := client.Connect(ctx, &mcp.CommandTransport{Command: p.command()}, nil)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Reins, err)
	}
	return &session{client: c}, nil
}

// Close ends the server with its client.
func (s *session) Close() error { return s.client.Close() }

// call makes one tool call, leaving out arguments that are empty.
func (s *session) call(ctx context.Context, tool string, args map[string]any) (string, error) {
	for k, v := range args {
		if v == "" || v == false || v == 0 {
			delete(args, k)
		}
	}
	start := time.Now()
	res, err := s.client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	took := time.Since(start)
	s.count.Calls++
	s.count.Time += took
	if took > s.count.Slowest {
		s.count.Slowest, s.count.Slow = took, tool
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	s.count.Bytes += b.Len()
	s.note(tool, args, took, b.String())
	if res.IsError {
		return "", &agents.Refusal{Text: b.String()}
	}
	return b.String(), nil
}

// note writes down a call for people.
func (s *session) note(tool string, args map[string]any, took time.Duration, answer string) {
	if s.trace == nil {
		return
	}
	given, err := json.Marshal(args)
	if err != nil {
		given = []byte(err.Error())
	}
	fmt.Fprintf(s.trace, "> %s %s (%s)\n%s\n", tool, given, took.Round(100*time.Microsecond), answer)
}

// Navigate implements [agents.Tools], as the methods after it do.
func (s *session) Navigate(ctx context.Context, address string) (string, error) {
	return s.call(ctx, "browser_navigate", map[string]any{"url": address})
}

func (s *session) Snapshot(ctx context.Context, how agents.Look) (string, error) {
	return s.call(ctx, "browser_snapshot", map[string]any{
		"ref": how.Ref, "find": how.Find, "cursor": how.Cursor, "interactive": how.Interactive,
	})
}

func (s *session) Click(ctx context.Context, ref string, how agents.Click) (string, error) {
	args := map[string]any{"ref": ref, "count": how.Count, "button": how.Button, "snapshot": how.See}
	if how.At != nil {
		args["position"] = map[string]int{"x": how.At.X, "y": how.At.Y}
	}
	if len(how.Modifiers) > 0 {
		args["modifiers"] = how.Modifiers
	}
	return s.call(ctx, "browser_click", args)
}

func (s *session) Fill(ctx context.Context, ref string, what agents.Fill) (string, error) {
	args := map[string]any{"ref": ref, "submit": what.Submit, "snapshot": what.See}
	switch {
	case what.Values != nil:
		args["values"] = what.Values
	case what.Files != nil:
		args["files"] = what.Files
	default:
		args["value"] = &what.Value // by reference, since an empty value counts
	}
	return s.call(ctx, "browser_fill", args)
}

func (s *session) Press(ctx context.Context, ref, key string) (string, error) {
	return s.call(ctx, "browser_press", map[string]any{"ref": ref, "key": key})
}

func (s *session) Drag(ctx context.Context, ref, to string) (string, error) {
	return s.call(ctx, "browser_drag", map[string]any{"ref": ref, "to": to})
}

func (s *session) Type(ctx context.Context, ref, text string) (string, error) {
	return s.call(ctx, "browser_type", map[string]any{"ref": ref, "text": text})
}

func (s *session) Tabs(ctx context.Context, verb, tab string) (string, error) {
	tool, ok := map[string]string{"list": "browser_list_tabs", "select": "browser_select_tab", "close": "browser_close_tab"}[verb]
	if !ok {
		return "", fmt.Errorf("agents cannot %q tabs", verb)
	}
	return s.call(ctx, tool, map[string]any{"tab": tab})
}

var openTab = regexp.MustCompile(`(?m)^- (t[0-9]+): `)

// fresh opens address in a new tab, closes all others, and counts from there:
// what it returns is the first thing the agent reads.
func (s *session) fresh(ctx context.Context, address string) (string, error) {
	before, err := s.call(ctx, "browser_list_tabs", map[string]any{})
	if err != nil {
		return "", err
	}
	s.count = tally{}
	page, err := s.call(ctx, "browser_open_tab", map[string]any{"url": address})
	if err != nil {
		return "", err
	}
	kept := s.count
	for _, m := range openTab.FindAllStringSubmatch(before, -1) {
		_, err := s.call(ctx, "browser_close_tab", map[string]any{"tab": m[1], "force": true})
		var refused *agents.Refusal
		if err != nil && !errors.As(err, &refused) { // one that closed by itself is no fault
			return "", err
		}
	}
	s.count = kept
	return page, nil
}
