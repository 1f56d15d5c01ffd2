package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/toolset"
	"github.com/reins-browser/reins/toolset/toolsettest"
)

// model looks, takes a picture, clicks what is not there, and is done.
type model struct {
	t     *testing.T
	asked [][]llms.MessageContent
}

func (m *model) Call(context.Context, string, ...llms.CallOption) (string, error) { return "", nil }

func (m *model) GenerateContent(_ context.Context, c []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	if len(o.Tools) != 6 || o.Tools[0].Function.Parameters.(map[string]any)["type"] != "object" {
		m.t.Errorf("tools %+v", o.Tools)
	}
	m.asked = append(m.asked, c)
	if len(m.asked) == 2 {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "Done."}}}, nil
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{ToolCalls: []llms.ToolCall{
		{ID: "c1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "browser_snapshot", Arguments: ""}},
		{ID: "c2", Type: "function", FunctionCall: &llms.FunctionCall{Name: "browser_screenshot", Arguments: "{}"}},
		{ID: "c3", Type: "function", FunctionCall: &llms.FunctionCall{Name: "browser_click", Arguments: `{"ref":"f1e9"}`}},
	}}}}, nil
}

func TestRun(t *testing.T) {
	lease := &toolsettest.Lease{Bound: reins.Binding{Run: "run-7"}, Answer: func(_ context.Context, a reins.Action) (*reins.Result, error) {
		switch a.(type) {
		case reins.Snapshot:
			return &reins.Result{Snapshot: &reins.SnapshotResult{Text: `- button "Go" [ref=f1e1]`}}, nil
		case reins.Screenshot:
			return &reins.Result{Screenshot: &reins.ScreenshotResult{Image: []byte("PNG"), MediaType: "image/png"}}, nil
		}
		return nil, reins.Errorf(reins.CodeStaleRef, "the element is gone")
	}}
	set, err := toolset.New(lease, toolset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	m := &model{t: t}
	task := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "Go.")}
	answer, err := Run(toolset.WithRun(t.Context(), "run-7"), m, set, task, 5)
	if err != nil || answer != "Done." || len(m.asked) != 2 || len(lease.Actions()) != 3 {
		t.Fatalf("%v %q, asked %d times, %v", err, answer, len(m.asked), lease.Actions())
	}
	said := m.asked[1]
	if len(said) != 6 || len(said[1].Parts) != 3 {
		t.Fatalf("%+v", said)
	}
	for i, want := range []string{`[ref=f1e1]`, `Picture of`, "stale_ref: the element is gone\nNext: "} {
		if got := said[i+2].Parts[0].(llms.ToolCallResponse); !strings.Contains(got.Content, want) {
			t.Errorf("result %d: %+v", i, got)
		}
	}
	if p, ok := said[5].Parts[0].(llms.BinaryContent); !ok || string(p.Data) != "PNG" || p.MIMEType != "image/png" {
		t.Errorf("%+v", said[5])
	}
}
