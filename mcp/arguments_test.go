package mcp_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// send calls a tool with arguments as JSON text and returns the actions that
// reached the lease.
func send(t *testing.T, tool, arguments string) ([]reins.Action, *sdk.CallToolResult) {
	t.Helper()
	lease := newFakeLease(nil)
	c := connect(t, mcp.Options{Lease: give(lease), Tools: []string{"full"}, Secrets: true}, nil)
	params := &sdk.CallToolParams{Name: tool}
	if arguments != "" {
		params.Arguments = json.RawMessage(arguments)
	}
	res, err := c.CallTool(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	return lease.actions(), res
}

// MCP-3: arguments are the actions of the vocabulary; only spelling is forgiven.
func TestArgumentsBecomeActions(t *testing.T) {
	for _, test := range []struct {
		tool, arguments string
		want            reins.Action
	}{
		{"browser_navigate", `{"url":"a.test","wait":"load","timeout_ms":"1500","snapshot":false}`,
			reins.Navigate{URL: "a.test", Wait: "load", Timeout: reins.Duration(1500 * time.Millisecond)}},
		{"browser_snapshot", `{}`, reins.Snapshot{}},
		{"browser_snapshot", ``, reins.Snapshot{}},
		{"browser_snapshot", `{"ref":"f1e2","find":"x","interactive":"true","changes":true,"depth":3.0,"max_bytes":"2000","cursor":"c","tab":"t2"}`,
			reins.Snapshot{Tab: "t2", Ref: "f1e2", Find: "x", Interactive: true, Changes: true, Depth: 3, MaxBytes: 2000, Cursor: "c"}},
		{"browser_snapshot", `{"ref":null,"find":7}`, reins.Snapshot{Find: "7"}},
		{"browser_screenshot", `{"full_page":true,"format":"webp"}`, reins.Screenshot{FullPage: true, Format: "webp", Image: true}},
		{"browser_screenshot", `{"image":false}`, reins.Screenshot{}},
		{"browser_click", `{"ref":"f1e2","button":"right","count":2,"modifiers":"Shift","position":{"x":1.5,"y":2},"snapshot":"True"}`,
			reins.Click{Ref: "f1e2", Button: "right", Count: 2, Modifiers: []string{"Shift"}, Position: &reins.Point{X: 1.5, Y: 2}, Waits: reins.Waits{Snapshot: true}}},
		{"browser_click", `{"ref":"f1e2","modifiers":"[\"Alt\",\"Meta\"]","position":"{\"x\":1,\"y\":2}"}`,
			reins.Click{Ref: "f1e2", Modifiers: []string{"Alt", "Meta"}, Position: &reins.Point{X: 1, Y: 2}}},
		{"browser_fill", `{"ref":"f1e2","value":"true","submit":true}`, reins.Fill{Ref: "f1e2", Value: reins.TextValue("true"), Submit: true}},
		{"browser_fill", `{"ref":"f1e2","value":true}`, reins.Fill{Ref: "f1e2", Value: reins.CheckedValue(true)}},
		{"browser_fill", `{"ref":"f1e2","value":7.5}`, reins.Fill{Ref: "f1e2", Value: reins.TextValue("7.5")}},
		{"browser_fill", `{"ref":"f1e2","value":""}`, reins.Fill{Ref: "f1e2", Value: reins.TextValue("")}},
		{"browser_fill", `{"ref":"f1e2","value":["a","b"]}`, reins.Fill{Ref: "f1e2", Value: reins.Value{Options: []string{"a", "b"}}}},
		{"browser_fill", `{"ref":"f1e2","values":["a","b"]}`, reins.Fill{Ref: "f1e2", Value: reins.Value{Options: []string{"a", "b"}}}},
		{"browser_fill", `{"ref":"f1e2","files":["art_1"]}`, reins.Fill{Ref: "f1e2", Value: reins.Value{Artifacts: []string{"art_1"}}}},
		{"browser_fill", `{"ref":"f1e2","secret":"login.pin"}`, reins.Fill{Ref: "f1e2", Value: reins.SecretValue("login.pin")}},
		{"browser_type", `{"ref":"f1e2","secret":"pin"}`, reins.Type{Ref: "f1e2", Secret: "pin"}},
		{"browser_select_option", `{"ref":"f1e2","values":"Two"}`, reins.Fill{Ref: "f1e2", Value: reins.Value{Options: []string{"Two"}}}},
		{"browser_upload", `{"ref":"f1e2","files":["art_1"],"tab":"t2"}`, reins.Fill{Tab: "t2", Ref: "f1e2", Value: reins.Value{Artifacts: []string{"art_1"}}}},
		{"browser_hover", `{"ref":"f1e2","snapshot":true}`, reins.Hover{Ref: "f1e2", Waits: reins.Waits{Snapshot: true}}},
		{"browser_drag", `{"ref":"f1e2","to":"f1e3"}`, reins.Drag{Ref: "f1e2", To: "f1e3"}},
		{"browser_drag", `{"ref":"f1e2","by":{"x":-5,"y":0}}`, reins.Drag{Ref: "f1e2", By: &reins.Point{X: -5}}},
		{"browser_scroll", `{"y":"400.5"}`, reins.Scroll{Y: 400.5}},
		{"browser_scroll", `{"ref":"f1e2"}`, reins.Scroll{Ref: "f1e2"}},
		{"browser_wait_for", `{"text":"Done","timeout_ms":500,"snapshot":true}`, reins.WaitFor{Text: "Done", Timeout: reins.Duration(500 * time.Millisecond), Snapshot: true}},
		{"browser_wait_for", `{"ref":"f1e2","state":"enabled"}`, reins.WaitFor{Ref: "f1e2", State: "enabled"}},
		{"browser_read", `{"max_bytes":2000,"cursor":"r1"}`, reins.Read{MaxBytes: 2000, Cursor: "r1"}},
		{"browser_handle_dialog", `{}`, reins.Click{Ref: "dialog-accept"}},
		{"browser_handle_dialog", `{"accept":false,"tab":"t2"}`, reins.Click{Tab: "t2", Ref: "dialog-dismiss"}},
		{"browser_console", `{"level":"debug","all":"true"}`, reins.Console{Level: "debug", All: true}},
		{"browser_network", `{"failed":true,"match":"/api"}`, reins.Network{Failed: true, Match: "/api"}},
		{"browser_pdf", `{"landscape":true}`, reins.PDF{Landscape: true}},
		{"browser_press", `{"key":"Control+A","ref":"f1e2"}`, reins.Press{Key: "Control+A", Ref: "f1e2"}},
		{"browser_press", `{"key":5}`, reins.Press{Key: "5"}},
		{"browser_list_tabs", `{}`, reins.ListTabs{}},
		{"browser_open_tab", `{}`, reins.OpenTab{}},
		{"browser_open_tab", `{"url":"a.test","snapshot":false}`, reins.OpenTab{URL: "a.test"}},
		{"browser_select_tab", `{"tab":"t2"}`, reins.SelectTab{Tab: "t2"}},
		{"browser_close_tab", `{"tab":"t2","force":true}`, reins.CloseTab{Tab: "t2", Force: true}},
		{"browser_type", `{"text":"héllo","tab":"t1"}`, reins.Type{Text: "héllo", Tab: "t1"}},
		{"browser_press_key", `{"key":"é"}`, reins.PressKey{Key: "é"}},
	} {
		got, res := send(t, test.tool, test.arguments)
		if len(got) == 0 || !reflect.DeepEqual(got[0], test.want) {
			t.Errorf("%s %s: %#v, want %#v (%s)", test.tool, test.arguments, got, test.want, textOf(t, res))
		}
	}
}

// MCP-5: bad arguments are tool errors that name the argument; nothing is done.
func TestBadArguments(t *testing.T) {
	for _, test := range []struct{ tool, arguments, names string }{
		{"browser_navigate", `{}`, "url"},
		{"browser_navigate", `{"url":["a"]}`, "url must be a text"},
		{"browser_navigate", `{"url":"a.test","wait":"idle"}`, "wait"},
		{"browser_navigate", `{"url":"a.test","timeout_ms":1}`, "timeout_ms"},
		{"browser_navigate", `{"url":"a.test","timeout_ms":"soon"}`, "timeout_ms must be a whole number"},
		{"browser_navigate", `{"url":"a.test","timeout_ms":1.5}`, "timeout_ms must be a whole number"},
		{"browser_navigate", `[]`, "not a JSON object"},
		{"browser_snapshot", `{"max_bytes":5}`, "max_bytes"},
		{"browser_snapshot", `{"everything":true}`, `"everything" is unknown; browser_snapshot takes ref, find`},
		{"browser_snapshot", `{"interactive":"maybe"}`, "interactive must be true or false"},
		{"browser_click", `{}`, "ref"},
		{"browser_click", `{"ref":"f1e2","modifiers":["Hyper"]}`, "modifier"},
		{"browser_click", `{"ref":"f1e2","modifiers":7}`, "modifiers must be a list of texts"},
		{"browser_click", `{"ref":"f1e2","position":{"x":"a"}}`, "position must be an object"},
		{"browser_fill", `{"ref":"f1e2"}`, "exactly one of value, values and files"},
		{"browser_fill", `{"ref":"f1e2","value":"a","files":["b"]}`, "exactly one of value, values and files"},
		{"browser_fill", `{"ref":"f1e2","value":{"file":"/etc/passwd"}}`, "a value is text"},
		{"browser_press", `{}`, "key"},
		{"browser_list_tabs", `{"all":true}`, "browser_list_tabs takes no arguments"},
		{"browser_select_tab", `{}`, "tab is missing"},
	} {
		got, res := send(t, test.tool, test.arguments)
		text := textOf(t, res)
		if len(got) != 0 || !res.IsError || !strings.HasPrefix(text, "invalid_input: ") || !strings.Contains(text, test.names) {
			t.Errorf("%s %s: %v %q, want invalid_input naming %s", test.tool, test.arguments, got, text, test.names)
		}
	}
}

// Without the toolset a tab is an unknown argument.
func TestTabIsRefusedByDefault(t *testing.T) {
	lease := newFakeLease(nil)
	c := connect(t, mcp.Options{Lease: give(lease)}, nil)
	res := call(t, c, "browser_snapshot", map[string]any{"tab": "t2"})
	if !res.IsError || len(lease.actions()) != 0 {
		t.Errorf("%v %s", lease.actions(), textOf(t, res))
	}
}

// Whatever a client sends as arguments gets an answer, and nothing unvalidated
// reaches the lease.
func FuzzArguments(f *testing.F) {
	f.Add("browser_fill", `{"ref":"f1e2","value":["a"]}`)
	f.Add("browser_click", `{"ref":"f1e2","position":"{}","count":1e300}`)
	f.Add("browser_navigate", `{"url":"x","timeout_ms":-1e99}`)
	f.Add("browser_type", `{"text":"\ud800"}`)
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		if !json.Valid([]byte(arguments)) {
			return
		}
		lease := newFakeLease(nil)
		c := connect(t, mcp.Options{Lease: give(lease), Tools: []string{"tabs"}}, nil)
		res, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		if err != nil {
			return // an unknown tool, or no object: a fault of the protocol
		}
		for _, a := range lease.actions() {
			if err := a.Validate(); err != nil {
				t.Errorf("%s %s reached the lease: %v", tool, arguments, err)
			}
		}
		if textOf(t, res) == "" && !res.IsError && tool != "browser_snapshot" {
			t.Errorf("%s %s: an empty answer", tool, arguments)
		}
	})
}

// ACT-4: an empty ref names nothing; it does not mean the focus.
func TestEmptyRefsAreRefused(t *testing.T) {
	for tool, arguments := range map[string]string{
		"browser_press": `{"ref":"","key":"Enter"}`,
		"browser_type":  `{"ref":"","text":"x"}`,
		"browser_click": `{"ref":""}`,
		"browser_fill":  `{"ref":"","value":"x"}`,
	} {
		if actions, res := send(t, tool, arguments); len(actions) != 0 || !res.IsError {
			t.Errorf("%s with an empty ref did %v", tool, actions)
		}
	}
}
