package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

var six = []string{"browser_navigate", "browser_snapshot", "browser_screenshot", "browser_click", "browser_fill", "browser_press"}

func list(t *testing.T, tools ...string) []*sdk.Tool {
	t.Helper()
	c := connect(t, mcp.Options{Lease: give(newFakeLease(nil)), Tools: tools}, nil)
	res, err := c.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Tools
}

func names(tools []*sdk.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func same(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// MCP-3: which tools there are.
func TestToolsAreExactlyThoseChosen(t *testing.T) {
	tabs := []string{"browser_list_tabs", "browser_open_tab", "browser_select_tab", "browser_close_tab", "browser_type", "browser_press_key"}
	for _, test := range []struct {
		choice, want []string
	}{
		{nil, six},
		{[]string{"default"}, six},
		{[]string{"tabs"}, append(slices.Clone(six), tabs...)},
		{[]string{"browser_type", "browser_snapshot"}, []string{"browser_snapshot", "browser_type"}},
		{[]string{"default", "browser_list_tabs"}, append(slices.Clone(six), "browser_list_tabs")},
	} {
		if got := names(list(t, test.choice...)); !same(got, test.want) {
			t.Errorf("chosen by %v: %v, want %v", test.choice, got, test.want)
		}
	}
	_, err := mcp.NewServer(mcp.Options{Lease: give(newFakeLease(nil)), Tools: []string{"browser_eval"}})
	if reins.CodeOf(err) != reins.CodeInvalidInput || !strings.Contains(err.Error(), `"browser_eval"`) {
		t.Errorf("an unknown tool: %v", err)
	}
	if _, err := mcp.NewServer(mcp.Options{}); reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Errorf("no lease: %v", err)
	}
}

// CAP-7: the registration permits what the tools need, and no more.
func TestVerbsOfTools(t *testing.T) {
	got, err := mcp.Verbs(nil)
	want := reins.DefaultVerbs()
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("default: %v %v, want %v", got, err, want)
	}
	if got, _ := mcp.Verbs([]string{"tabs"}); len(got) != 12 {
		t.Errorf("tabs: %v, want 12", got)
	}
	if _, err := mcp.Verbs([]string{"browser_eval"}); reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Errorf("unknown: %v", err)
	}
}

// MCP-4: what the list costs a client before it does anything. Four bytes a token
// is a low estimate of what JSON costs, so the bound is in bytes.
func TestDefaultListIsCheap(t *testing.T) {
	body, err := json.Marshal(map[string]any{"tools": list(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(body))
	if len(body) > 5200 {
		t.Errorf("the default list has %d bytes, above 5200", len(body))
	}
}

// MCP-4: every tool has a title, annotations and schemas of the kind that common
// clients and model services take.
func TestSchemasAreTakenByClients(t *testing.T) {
	for _, tool := range list(t, "tabs") {
		if tool.Title == "" || tool.Description == "" || len(tool.Description) > 1024 || tool.Annotations == nil {
			t.Errorf("%s: title %q, description %q, annotations %v", tool.Name, tool.Title, tool.Description, tool.Annotations)
		}
		document := tool.Name == "browser_snapshot" || tool.Name == "browser_screenshot"
		if (tool.OutputSchema == nil) != document {
			t.Errorf("%s: output schema %v", tool.Name, tool.OutputSchema)
		}
		input := tool.InputSchema.(map[string]any)
		if input["type"] != "object" || input["properties"] == nil || input["additionalProperties"] != false {
			t.Errorf("%s: input schema %v", tool.Name, input)
		}
		checkSchema(t, tool.Name, input)
		if tool.OutputSchema != nil {
			checkSchema(t, tool.Name+" output", tool.OutputSchema.(map[string]any))
		}
	}
}

func checkSchema(t *testing.T, path string, s map[string]any) {
	t.Helper()
	for key, value := range s {
		switch key {
		case "type":
			if _, ok := value.(string); !ok {
				t.Errorf("%s has the type %v", path, value)
			}
		case "required":
			properties, _ := s["properties"].(map[string]any)
			names := value.([]any)
			if len(names) == 0 {
				t.Errorf("%s has an empty list", path)
			}
			for _, name := range names {
				if properties[name.(string)] == nil {
					t.Errorf("%s requires %v, which it does not define", path, name)
				}
			}
		case "properties":
			for name, p := range value.(map[string]any) {
				if !strings.HasSuffix(path, "output") && p.(map[string]any)["description"] == nil {
					t.Errorf("%s.%s has no description", path, name)
				}
				checkSchema(t, path+"."+name, p.(map[string]any))
			}
		case "items":
			checkSchema(t, path+"[]", value.(map[string]any))
		case "description", "enum", "additionalProperties":
		default:
			t.Errorf("%s uses %s", path, key)
		}
	}
	if s["type"] == "array" && s["items"] == nil {
		t.Errorf("%s is a list of anything", path)
	}
}

// MCP-4: annotations say what the verbs say.
func TestAnnotationsFollowVerbs(t *testing.T) {
	for _, tool := range list(t, "tabs") {
		verb := reins.Verb(strings.TrimPrefix(tool.Name, "browser_"))
		a := tool.Annotations
		if a.ReadOnlyHint != verb.ReadOnly() || a.ReadOnlyHint && (*a.DestructiveHint || !a.IdempotentHint) {
			t.Errorf("%s: %+v", tool.Name, a)
		}
	}
	click := list(t)[slices.Index(names(list(t)), "browser_click")]
	if !*click.Annotations.DestructiveHint || click.Annotations.IdempotentHint {
		t.Errorf("a click may change anything: %+v", click.Annotations)
	}
}

// MCP-3: "tab" is offered with the toolset that has tabs, and only there.
func TestTabArgument(t *testing.T) {
	has := func(tool *sdk.Tool) bool {
		return tool.InputSchema.(map[string]any)["properties"].(map[string]any)["tab"] != nil
	}
	for _, tool := range list(t) {
		if has(tool) {
			t.Errorf("%s takes a tab by default", tool.Name)
		}
	}
	for _, tool := range list(t, "tabs") {
		if slices.Contains(six, tool.Name) && !has(tool) {
			t.Errorf("%s takes no tab with the toolset", tool.Name)
		}
	}
}
