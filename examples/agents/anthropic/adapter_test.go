package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/toolset"
	"github.com/reins-browser/reins/toolset/toolsettest"
)

// A model that looks, takes a picture, clicks what is not there, and is done.
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
	var asked []map[string]any
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request map[string]any
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		asked = append(asked, request)
		content, stop := `[{"type":"tool_use","id":"c1","name":"browser_snapshot","input":{}},
			{"type":"tool_use","id":"c2","name":"browser_screenshot","input":{}},
			{"type":"tool_use","id":"c3","name":"browser_click","input":{"ref":"f1e9"}}]`, "tool_use"
		if len(asked) == 2 {
			content, stop = `[{"type":"text","text":"Done."}]`, "end_turn"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"m","type":"message","role":"assistant","model":"x","content":` + content + `,"stop_reason":"` + stop + `","usage":{"input_tokens":1,"output_tokens":1}}`))
	}))
	defer model.Close()
	client := anthropic.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("none"))
	message, err := Run(toolset.WithRun(t.Context(), "run-7"), &client, set, anthropic.MessageNewParams{
		Model: "x", MaxTokens: 1000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Go."))},
	}, 5)
	if err != nil || message.Content[0].Text != "Done." || len(asked) != 2 || len(lease.Actions()) != 3 {
		t.Fatalf("%v %+v, asked %d times, %v", err, message, len(asked), lease.Actions())
	}
	tools, _ := json.Marshal(asked[0]["tools"])
	if list := asked[0]["tools"].([]any); len(list) != 6 || !strings.Contains(string(tools), `"required":["url"]`) || !strings.Contains(string(tools), `"type":"object"`) {
		t.Errorf("%s", tools)
	}
	last := asked[1]["messages"].([]any)
	results, _ := json.Marshal(last[len(last)-1])
	for _, want := range []string{`"tool_use_id":"c1"`, `[ref=f1e1]`, `"data":"UE5H"`, `"media_type":"image/png"`, `stale_ref: the element is gone\nNext: `, `"is_error":true`} {
		if !strings.Contains(string(results), want) {
			t.Errorf("the results lack %s:\n%s", want, results)
		}
	}
}
