package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

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
		output := `{"type":"function_call","id":"f1","call_id":"c1","name":"browser_snapshot","arguments":"{}","status":"completed"},
			{"type":"function_call","id":"f2","call_id":"c2","name":"browser_screenshot","arguments":"{}","status":"completed"},
			{"type":"function_call","id":"f3","call_id":"c3","name":"browser_click","arguments":"{\"ref\":\"f1e9\"}","status":"completed"}`
		if len(asked) == 2 {
			output = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Done.","annotations":[]}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"r1","object":"response","status":"completed","model":"x","output":[` + output + `]}`))
	}))
	defer model.Close()
	client := openai.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("none"))
	response, err := Run(toolset.WithRun(t.Context(), "run-7"), &client, set, responses.ResponseNewParams{
		Model: "x", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Go.")},
	}, 5)
	if err != nil || response.OutputText() != "Done." || len(asked) != 2 || len(lease.Actions()) != 3 {
		t.Fatalf("%v, asked %d times, %v", err, len(asked), lease.Actions())
	}
	tools, _ := json.Marshal(asked[0]["tools"])
	if list := asked[0]["tools"].([]any); len(list) != 6 || !strings.Contains(string(tools), `"required":["url"]`) || !strings.Contains(string(tools), `"strict":false`) {
		t.Errorf("%s", tools)
	}
	results, _ := json.Marshal(asked[1])
	for _, want := range []string{`"previous_response_id":"r1"`, `"call_id":"c1"`, `[ref=f1e1]`, `data:image/png;base64,UE5H`, `stale_ref: the element is gone\nNext: `} {
		if !strings.Contains(string(results), want) {
			t.Errorf("the results lack %s:\n%s", want, results)
		}
	}
}
