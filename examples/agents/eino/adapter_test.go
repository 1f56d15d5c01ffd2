package browser

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/toolset"
	"github.com/reins-browser/reins/toolset/toolsettest"
)

// A node runs what a model asks for: to look, to take a picture, and to click what
// is not there.
func TestToolsNode(t *testing.T) {
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
	tools, err := Tools(set)
	if err != nil || len(tools) != 6 {
		t.Fatal(len(tools), err)
	}
	info, err := tools[0].Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := info.ToJSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := json.Marshal(parameters); !strings.Contains(string(body), `"required":["url"]`) || info.Name != "browser_navigate" {
		t.Errorf("%s %s", info.Name, body)
	}
	ctx := toolset.WithRun(t.Context(), "run-7")
	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: tools, ExecuteSequentially: true})
	if err != nil {
		t.Fatal(err)
	}
	call := func(id, name, arguments string) schema.ToolCall {
		return schema.ToolCall{ID: id, Type: "function", Function: schema.FunctionCall{Name: name, Arguments: arguments}}
	}
	said, err := node.Invoke(ctx, schema.AssistantMessage("", []schema.ToolCall{
		call("c1", "browser_snapshot", "{}"), call("c2", "browser_screenshot", "{}"), call("c3", "browser_click", `{"ref":"f1e9"}`),
	}))
	if err != nil || len(said) != 3 || len(lease.Actions()) != 3 {
		t.Fatal(err, said, lease.Actions())
	}
	for i, want := range []string{`[ref=f1e1]`, `"base64data":"UE5H","mime_type":"image/png"`, `stale_ref: the element is gone\nNext: `} {
		if body, _ := json.Marshal(said[i]); !strings.Contains(string(body), want) {
			t.Errorf("message %d lacks %s: %s", i, want, body)
		}
	}
}
