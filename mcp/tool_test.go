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

// further are the tools of the toolset "full" beyond "tabs"; the one that asks
// for a person is not offered by a runtime without people.
var further = []string{
	"browser_select_option", "browser_hover", "browser_drag", "browser_scroll", "browser_upload", "browser_wait_for",
	"browser_read", "browser_handle_dialog", "browser_console", "browser_network", "browser_pdf",
}

func list(t *testing.T, tools ...string) []*sdk.Tool {
	t.Helper()
	return listed(t, mcp.Options{Tools: tools})
}

func listed(t *testing.T, o mcp.Options) []*sdk.Tool {
	t.Helper()
	o.Lease = give(newFakeLease(nil))
	c := connect(t, o, nil)
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
		{[]string{"full"}, slices.Concat(six, tabs, further)},
		{[]string{"default", "browser_read", "browser_handle_dialog"}, append(slices.Clone(six), "browser_read", "browser_handle_dialog")},
		{[]string{"browser_type", "browser_snapshot"}, []string{"browser_snapshot", "browser_type"}},
		{[]string{"default", "browser_list_tabs"}, append(slices.Clone(six), "browser_list_tabs")},
	} {
		if got := names(list(t, test.choice...)); !same(got, test.want) {
			t.Errorf("chosen by %v: %v, want %v", test.choice, got, test.want)
		}
	}
	want := slices.Concat(six, tabs, further, []string{"browser_request_human"})
	if got := names(listed(t, mcp.Options{Tools: []string{"full"}, People: true})); !same(got, want) {
		t.Errorf("with people: %v, want %v", got, want)
	}
	_, err := mcp.NewServer(mcp.Options{Lease: give(newFakeLease(nil)), Tools: []string{"browser_request_human"}})
	if reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Errorf("asking for a person where there are none: %v", err)
	}
	_, err = mcp.NewServer(mcp.Options{Lease: give(newFakeLease(nil)), Tools: []string{"browser_eval"}})
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
	if got, _ := mcp.Verbs([]string{"full"}); len(got) != len(reins.AgentVerbs()) {
		t.Errorf("full: %v, want all of %v", got, reins.AgentVerbs())
	}
	if got, _ := mcp.Verbs([]string{"browser_handle_dialog"}); !slices.Equal(got, []reins.Verb{reins.VerbClick, reins.VerbFill}) {
		t.Errorf("handle_dialog: %v", got)
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

// The whole list is cheap as well.
func TestFullListIsCheap(t *testing.T) {
	body, err := json.Marshal(map[string]any{"tools": listed(t, mcp.Options{Tools: []string{"full"}, People: true})})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(body))
	if len(body) > 16_300 {
		t.Errorf("the full list has %d bytes, above 16300", len(body))
	}
}

// ACT-11: the argument for secrets is there where the host supplies some, and
// nowhere else.
func TestSecretArgument(t *testing.T) {
	for _, secrets := range []bool{false, true} {
		c := connect(t, mcp.Options{Lease: give(newFakeLease(nil)), Tools: []string{"full"}, Secrets: secrets}, nil)
		res, err := c.ListTools(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range res.Tools {
			input := tool.InputSchema.(map[string]any)
			_, has := input["properties"].(map[string]any)["secret"]
			if want := secrets && (tool.Name == "browser_fill" || tool.Name == "browser_type"); has != want {
				t.Errorf("secrets %v: %s has it: %v", secrets, tool.Name, has)
			}
			checkSchema(t, tool.Name, input)
		}
		refused := call(t, c, "browser_fill", map[string]any{"ref": "f1e1", "secret": "pin"}).IsError
		if refused == secrets {
			t.Errorf("secrets %v: refused %v", secrets, refused)
		}
	}
}

// MCP-4, B112: every tool has a title, annotations and schemas of the kind that common
// clients and model services take.
func TestSchemasAreTakenByClients(t *testing.T) {
	for _, tool := range listed(t, mcp.Options{Tools: []string{"full"}, People: true}) {
		if tool.Title == "" || tool.Description == "" || len(tool.Description) > 1024 || tool.Annotations == nil {
			t.Errorf("%s: title %q, description %q, annotations %v", tool.Name, tool.Title, tool.Description, tool.Annotations)
		}
		document := slices.Contains([]string{"browser_snapshot", "browser_screenshot", "browser_read", "browser_console", "browser_network", "browser_pdf"}, tool.Name)
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
