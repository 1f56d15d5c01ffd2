package tooltable_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/tooltable"
	"github.com/reins-browser/reins/toolset/toolsettest"
)

func full(t testing.TB) tooltable.List {
	t.Helper()
	l, err := tooltable.Choose(tooltable.Choice{Names: []string{tooltable.ToolsetFull}, Secrets: true, People: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// FuzzDecode: whatever a model sends is a valid action of the tool's verb, or
// invalid_input with a sentence; never a panic.
func FuzzDecode(f *testing.F) {
	l := full(f)
	for i, t := range l.Tools {
		arguments := map[string]any{}
		for _, p := range t.Parameters(l.Offer) {
			arguments[p.Name] = map[tooltable.Kind]any{
				tooltable.Text: "f1e2", tooltable.Number: 1.5, tooltable.Integer: "3", tooltable.Boolean: "True",
				tooltable.Texts: `["a"]`, tooltable.Point: map[string]any{"x": 1, "y": "2"},
			}[p.Kind]
		}
		body, _ := json.Marshal(arguments)
		f.Add(i, body)
	}
	f.Add(0, []byte(`{"url":null}`))
	f.Add(4, []byte(`{"ref":"f1e1","value":{"secret":"x"}}`))
	f.Add(1, []byte(" "))
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		tool := l.Tools[uint(i)%uint(len(l.Tools))]
		call, err := l.Decode(tool, body)
		if err != nil {
			e := reins.AsError(err)
			if e.Code != reins.CodeInvalidInput || e.Message == "" || !utf8.ValidString(e.Message) || len(e.Message) > 4096 {
				t.Errorf("%s %s: %v", tool.Name(), body, err)
			}
			return
		}
		if a := call.Action(); a.Verb() != tool.Verb() || a.Validate() != nil {
			t.Errorf("%s %s: %#v, %v", tool.Name(), body, a, a.Validate())
		}
	})
}

// A door that says nothing of how more is opened sends nobody there.
func TestFailureNamesOnlyWhatIsOffered(t *testing.T) {
	err := reins.Errorf(reins.CodeEgressDenied, "the address is private")
	if text := tooltable.NewFailure(err, tooltable.Offer{}).Text(); strings.Contains(text, "reins mcp") || strings.Contains(text, "()") {
		t.Error(text)
	}
	if text := tooltable.NewFailure(err, tooltable.Offer{Opens: "reins mcp --allow"}).Text(); !strings.Contains(text, "(reins mcp --allow)") {
		t.Error(text)
	}
}

// Tools are found by the name that models use and by the short one.
func TestToolByName(t *testing.T) {
	l := full(t)
	for _, name := range []string{"browser_select_option", "select_option", "press_key"} {
		if tool := l.Tool(name); tool == nil || !strings.HasSuffix(tool.Name(), strings.TrimPrefix(name, "browser_")) {
			t.Errorf("%s: %v", name, tool)
		}
	}
	if tool := l.Tool("eval"); tool != nil {
		t.Error(tool.Name())
	}
}

// A list's size is that of snapshots that name none, in every place where one is
// taken.
func TestSnapshotBytes(t *testing.T) {
	l, err := tooltable.Choose(tooltable.Choice{SnapshotBytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	lease := &toolsettest.Lease{}
	for tool, arguments := range map[string]string{"snapshot": `{}`, "navigate": `{"url":"a.test"}`} {
		call, err := l.Decode(l.Tool(tool), []byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call.Do(context.Background(), lease, nil); err != nil {
			t.Fatal(err)
		}
		actions := lease.Actions()
		if read, ok := actions[len(actions)-1].(reins.Snapshot); !ok || read.MaxBytes != 5000 {
			t.Errorf("%s read with %#v", tool, actions[len(actions)-1])
		}
	}
}
