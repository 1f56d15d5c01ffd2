package browser

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/artifact"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/genai"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/toolset"
	"github.com/reins-browser/reins/toolset/toolsettest"
)

// scripted is a model that looks, takes a picture, clicks what is not there, and is
// done.
type scripted struct{ asked []*model.LLMRequest }

func (*scripted) Name() string { return "scripted" }

func (m *scripted) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.asked = append(m.asked, r)
		calls := []genai.FunctionCall{{Name: "browser_snapshot"}, {Name: "browser_screenshot"}, {Name: "browser_click", Args: map[string]any{"ref": "f1e9"}}}
		part := genai.NewPartFromText("Done.")
		if n := len(m.asked); n <= len(calls) {
			part = &genai.Part{FunctionCall: &calls[n-1]}
		}
		yield(&model.LLMResponse{Content: &genai.Content{Role: "model", Parts: []*genai.Part{part}}}, nil)
	}
}

func TestAgent(t *testing.T) {
	for _, run := range []string{"session-1", "session-2"} { // the second is not this one's
		lease := &toolsettest.Lease{Bound: reins.Binding{Run: run}, Answer: func(_ context.Context, a reins.Action) (*reins.Result, error) {
			switch a.(type) {
			case reins.Snapshot:
				return &reins.Result{Snapshot: &reins.SnapshotResult{Text: `- button "Go" [ref=f1e1]`}}, nil
			case reins.Screenshot:
				return &reins.Result{Screenshot: &reins.ScreenshotResult{Image: []byte("PNG"), MediaType: "image/png"}}, nil
			}
			return nil, reins.Errorf(reins.CodeStaleRef, "the element is gone")
		}}
		set, err := toolset.New(lease, toolset.Options{Run: run, RunOf: Session})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		m := &scripted{}
		said := talk(t, m, set)
		wants := []string{`[ref=f1e1]`, `"picture":"browser_`, `stale_ref: the element is gone\nNext: `, `Done.`}
		if run != "session-1" {
			wants = []string{`unauthorized: this call is not of the run`, `Done.`}
		}
		for _, want := range wants {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %s in\n%s", run, want, said)
			}
		}
		if made := len(lease.Actions()); made != map[string]int{"session-1": 3}[run] {
			t.Errorf("%s: %d actions", run, made)
		}
		declared, _ := json.Marshal(m.asked[0].Config.Tools)
		if !strings.Contains(string(declared), "browser_navigate") || !strings.Contains(string(declared), `"required":["url"]`) {
			t.Errorf("%s", declared)
		}
	}
}

// talk runs an agent once and returns what was said, as JSON.
func talk(t *testing.T, m model.LLM, set *toolset.Set) string {
	t.Helper()
	shopper, err := llmagent.New(llmagent.Config{
		Name: "shopper", Model: m, Instruction: Instruction, Toolsets: []tool.Toolset{Tools(set)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{
		AppName: "shop", Agent: shopper, SessionService: session.InMemoryService(), ArtifactService: artifact.InMemoryService(), AutoCreateSession: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for event, err := range r.Run(t.Context(), "ada", "session-1", genai.NewContentFromText("Go.", "user"), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(event.Content)
		if err != nil {
			t.Fatal(err)
		}
		said.Write(body)
	}
	return said.String()
}
