package reins_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/reins-browser/reins"
)

func ms(n int) *reins.Duration {
	d := reins.Duration(time.Duration(n) * time.Millisecond)
	return &d
}

var everyAction = []struct {
	action reins.Action
	json   string
}{
	{reins.Navigate{URL: "example.com", Wait: "load", Timeout: *ms(5000)}, `{"verb":"navigate","url":"example.com","wait":"load","timeout_ms":5000}`},
	{reins.Snapshot{}, `{"verb":"snapshot"}`},
	{reins.Snapshot{Tab: "t2", Ref: "f1e4", MaxBytes: 2000, Depth: 3, Interactive: true, Find: "x", Changes: true, Cursor: "c"},
		`{"verb":"snapshot","tab":"t2","ref":"f1e4","max_bytes":2000,"depth":3,"interactive":true,"find":"x","changes":true,"cursor":"c"}`},
	{reins.Screenshot{FullPage: true, Format: "jpeg", Quality: 70, Scale: "device", Image: true},
		`{"verb":"screenshot","full_page":true,"format":"jpeg","quality":70,"scale":"device","image":true}`},
	{reins.Click{Ref: "f1e1", Button: "right", Count: 2, Modifiers: []string{"Shift"}, Position: &reins.Point{X: 1, Y: 2}, Waits: reins.Waits{Settle: ms(0), Snapshot: true}},
		`{"verb":"click","ref":"f1e1","button":"right","count":2,"modifiers":["Shift"],"position":{"x":1,"y":2},"settle_ms":0,"snapshot":true}`},
	{reins.Fill{Ref: "f1e1", Value: reins.TextValue(""), Submit: true}, `{"verb":"fill","ref":"f1e1","value":"","submit":true}`},
	{reins.Fill{Ref: "f1e1", Value: reins.CheckedValue(false)}, `{"verb":"fill","ref":"f1e1","value":false}`},
	{reins.Fill{Ref: "f1e1", Value: reins.Value{Options: []string{"a", "b"}}}, `{"verb":"fill","ref":"f1e1","value":["a","b"]}`},
	{reins.Fill{Ref: "f1e1", Value: reins.Value{Artifacts: []string{"a1"}}}, `{"verb":"fill","ref":"f1e1","value":{"artifacts":["a1"]}}`},
	{reins.Press{Key: "Control+A"}, `{"verb":"press","key":"Control+A"}`},
	{reins.ListTabs{}, `{"verb":"list_tabs"}`},
	{reins.OpenTab{URL: "about:blank"}, `{"verb":"open_tab","url":"about:blank"}`},
	{reins.SelectTab{Tab: "t1"}, `{"verb":"select_tab","tab":"t1"}`},
	{reins.CloseTab{Tab: "t1", Force: true}, `{"verb":"close_tab","tab":"t1","force":true}`},
	{reins.Type{Text: "né"}, `{"verb":"type","text":"né"}`},
	{reins.PressKey{Key: "F5"}, `{"verb":"press_key","key":"F5"}`},
	{reins.Fill{Ref: "f1e1", Value: reins.SecretValue("login.pin")}, `{"verb":"fill","ref":"f1e1","value":{"secret":"login.pin"}}`},
	{reins.Type{Ref: "f1e1", Secret: "pin"}, `{"verb":"type","ref":"f1e1","secret":"pin"}`},
	{reins.Hover{Ref: "f1e1", Position: &reins.Point{X: 1, Y: 2}, Modifiers: []string{"Alt"}, Waits: reins.Waits{Snapshot: true}},
		`{"verb":"hover","ref":"f1e1","position":{"x":1,"y":2},"modifiers":["Alt"],"snapshot":true}`},
	{reins.Drag{Ref: "f1e1", To: "f1e2", At: &reins.Point{X: 1}, Onto: &reins.Point{Y: 2}}, `{"verb":"drag","ref":"f1e1","to":"f1e2","at":{"x":1,"y":0},"onto":{"x":0,"y":2}}`},
	{reins.Drag{Tab: "t1", Ref: "f1e1", By: &reins.Point{X: -30}}, `{"verb":"drag","tab":"t1","ref":"f1e1","by":{"x":-30,"y":0}}`},
	{reins.Scroll{Y: 400}, `{"verb":"scroll","y":400}`},
	{reins.Scroll{Ref: "f1e1", To: "view", Waits: reins.Waits{Settle: ms(0)}}, `{"verb":"scroll","ref":"f1e1","to":"view","settle_ms":0}`},
	{reins.WaitFor{Text: "Done", Timeout: *ms(500), Snapshot: true}, `{"verb":"wait_for","text":"Done","timeout_ms":500,"snapshot":true}`},
	{reins.WaitFor{Ref: "f1e1", State: "hidden"}, `{"verb":"wait_for","ref":"f1e1","state":"hidden"}`},
	{reins.WaitFor{Idle: true}, `{"verb":"wait_for","idle":true}`},
	{reins.Read{Ref: "f1e1", MaxBytes: 2000, Cursor: "r1"}, `{"verb":"read","ref":"f1e1","max_bytes":2000,"cursor":"r1"}`},
	{reins.Console{Level: "debug", All: true}, `{"verb":"console","level":"debug","all":true}`},
	{reins.Network{Failed: true, Match: "/api", All: true}, `{"verb":"network","failed":true,"match":"/api","all":true}`},
	{reins.PDF{Landscape: true}, `{"verb":"pdf","landscape":true}`},
	{reins.RequestHuman{Reason: "type the code", Timeout: *ms(60000)}, `{"verb":"request_human","reason":"type the code","timeout_ms":60000}`},
	{reins.Pointer{Tab: "t1", Kind: "down", X: 1.5, Y: 2, Button: "right", Count: 2, Modifiers: []string{"Shift"}, Buttons: 2},
		`{"verb":"pointer","tab":"t1","kind":"down","x":1.5,"y":2,"button":"right","count":2,"modifiers":["Shift"],"buttons":2}`},
	{reins.Pointer{Tab: "t1", Kind: "wheel", DY: -100}, `{"verb":"pointer","tab":"t1","kind":"wheel","x":0,"y":0,"dy":-100}`},
	{reins.GetControl{}, `{"verb":"control"}`},
	{reins.RequestControl{Wait: *ms(1000), Hold: *ms(5000)}, `{"verb":"request_control","wait_ms":1000,"hold_ms":5000}`},
	{reins.RenewControl{Hold: *ms(5000)}, `{"verb":"renew_control","hold_ms":5000}`},
	{reins.ReleaseControl{}, `{"verb":"release_control"}`},
	{reins.StopAgents{}, `{"verb":"stop_agents"}`},
	{reins.AnswerHuman{Request: "op_1", Note: "done", Decline: true}, `{"verb":"answer_human","request":"op_1","note":"done","decline":true}`},
	{reins.ListArtifacts{}, `{"verb":"list_artifacts"}`},
	{reins.ReadArtifact{Artifact: "a1", Offset: 5, Length: 10}, `{"verb":"read_artifact","artifact":"a1","offset":5,"length":10}`},
	{reins.DeleteArtifact{Artifact: "a1"}, `{"verb":"delete_artifact","artifact":"a1"}`},
}

func TestActionJSON(t *testing.T) {
	seen := map[reins.Verb]bool{}
	for _, c := range everyAction {
		got, err := reins.EncodeAction(c.action)
		if err != nil || string(got) != c.json {
			t.Errorf("EncodeAction(%#v) = %s, %v; want %s", c.action, got, err, c.json)
		}
		back, err := reins.DecodeAction([]byte(c.json))
		if err != nil {
			t.Errorf("DecodeAction(%s): %v", c.json, err)
		} else if diff := cmp.Diff(c.action, back); diff != "" {
			t.Errorf("DecodeAction(%s): %s", c.json, diff)
		}
		seen[c.action.Verb()] = true
	}
	for _, v := range reins.AgentVerbs() {
		if !seen[v] {
			t.Errorf("verb %s has no case here", v)
		}
	}
}

func TestActionRefusals(t *testing.T) {
	for _, c := range []struct{ json, names string }{
		{`[]`, "object"},
		{`{"verb":"eval"}`, "eval"},
		{`{"verb":"click","ref":"e1","project":"p"}`, "project"},
		{`{"verb":"click"}`, "ref is missing"},
		{`{"verb":"click","ref":"e1","count":4}`, "count"},
		{`{"verb":"click","ref":"e1","button":"thumb"}`, "button"},
		{`{"verb":"click","ref":"e1","modifiers":["Hyper"]}`, "Hyper"},
		{`{"verb":"click","ref":"e1","settle_ms":60001}`, "settle_ms"},
		{`{"verb":"click","ref":"e1","settle_ms":"1s"}`, "milliseconds"},
		{`{"verb":"fill","ref":"e1"}`, "value"},
		{`{"verb":"fill","ref":"e1","value":null}`, "value"},
		{`{"verb":"fill","ref":"e1","value":{"path":"/etc/passwd"}}`, "value"},
		{`{"verb":"navigate","url":""}`, "url"},
		{`{"verb":"navigate","url":"x","wait":"idle"}`, "idle"},
		{`{"verb":"navigate","url":"x","timeout_ms":99}`, "timeout_ms"},
		{`{"verb":"snapshot","max_bytes":999}`, "max_bytes"},
		{`{"verb":"screenshot","ref":"e1","full_page":true}`, "not both"},
		{`{"verb":"press"}`, "key is missing"},
		{`{"verb":"read_artifact","artifact":"../x"}`, "artifact"},
		{`{"verb":"select_tab"}`, "tab is missing"},
		{`{"verb":"fill","ref":"e1","value":{"secret":"a b"}}`, "secret"},
		{`{"verb":"fill","ref":"e1","value":{"secret":""}}`, "value"},
		{`{"verb":"fill","ref":"e1","value":{"secret":"a","artifacts":["b"]}}`, "value"},
		{`{"verb":"type","text":"a","secret":"b"}`, "not both"},
		{`{"verb":"hover"}`, "ref is missing"},
		{`{"verb":"hover","ref":"e1","modifiers":["Hyper"]}`, "Hyper"},
		{`{"verb":"drag","ref":"e1"}`, "exactly one of to"},
		{`{"verb":"drag","ref":"e1","to":"e2","by":{"x":1,"y":1}}`, "exactly one of to"},
		{`{"verb":"drag","ref":"e1","by":{"x":1,"y":1},"onto":{"x":1,"y":1}}`, "onto"},
		{`{"verb":"drag","ref":"e1","by":{"x":1e9,"y":1}}`, "by takes"},
		{`{"verb":"scroll"}`, "needs x or y"},
		{`{"verb":"scroll","y":10,"to":"top"}`, "not both"},
		{`{"verb":"scroll","to":"view"}`, "ref is missing"},
		{`{"verb":"scroll","to":"left"}`, "left"},
		{`{"verb":"wait_for"}`, "exactly one of text"},
		{`{"verb":"wait_for","text":"a","idle":true}`, "exactly one of text"},
		{`{"verb":"wait_for","state":"visible"}`, "ref is missing"},
		{`{"verb":"wait_for","ref":"e1","text":"a"}`, "goes with state"},
		{`{"verb":"wait_for","ref":"e1","state":"blue"}`, "blue"},
		{`{"verb":"wait_for","text":"a","timeout_ms":120001}`, "timeout_ms"},
		{`{"verb":"read","max_bytes":999}`, "max_bytes"},
		{`{"verb":"console","level":"loud"}`, "loud"},
		{`{"verb":"network","match":"` + strings.Repeat("a", 1025) + `"}`, "match"},
		{`{"verb":"pointer","kind":"move"}`, "tab is missing"},
		{`{"verb":"pointer","tab":"t1"}`, "kind is missing"},
		{`{"verb":"pointer","tab":"t1","kind":"touch"}`, "touch"},
		{`{"verb":"pointer","tab":"t1","kind":"move","x":1e6}`, "x and y"},
		{`{"verb":"pointer","tab":"t1","kind":"move","button":"left"}`, "for down and up"},
		{`{"verb":"pointer","tab":"t1","kind":"down","dy":1}`, "for wheel"},
		{`{"verb":"request_control","wait_ms":999}`, "wait_ms"},
		{`{"verb":"request_control","hold_ms":3600001}`, "hold_ms"},
		{`{"verb":"renew_control","hold_ms":-1}`, "hold_ms"},
		{`{"verb":"request_human","reason":" "}`, "reason is missing"},
		{`{"verb":"request_human","reason":"` + strings.Repeat("é", reins.MaxReason+1) + `"}`, "characters"},
		{`{"verb":"request_human","reason":"a","timeout_ms":999}`, "timeout_ms"},
		{`{"verb":"answer_human"}`, "request"},
		{`{"verb":"answer_human","request":"op_1","note":"` + strings.Repeat("é", reins.MaxReason+1) + `"}`, "characters"},
		{`{"verb":"navigate","url":"` + strings.Repeat("a", reins.MaxURL+1) + `"}`, "bytes"},
		{`{"verb":"fill","ref":"e1","value":"` + strings.Repeat("a", reins.MaxFill+1) + `"}`, "bytes"},
	} {
		_, err := reins.DecodeAction([]byte(c.json))
		e := reins.AsError(err)
		if e == nil || e.Code != reins.CodeInvalidInput || !strings.Contains(e.Message, c.names) {
			t.Errorf("DecodeAction(%.80s) = %v; want invalid_input naming %q", c.json, err, c.names)
		}
	}
}

// TestActions: every verb that is known has an empty action.
func TestActions(t *testing.T) {
	verbs := map[reins.Verb]bool{}
	for _, a := range reins.Actions() {
		if verbs[a.Verb()] {
			t.Errorf("verb %s is there twice", a.Verb())
		}
		verbs[a.Verb()] = true
	}
	for _, c := range everyAction {
		if !verbs[c.action.Verb()] {
			t.Errorf("verb %s has no empty action", c.action.Verb())
		}
	}
}

func TestVerbDecisions(t *testing.T) { // CAP-7, GATE-1
	if got := reins.DefaultVerbs(); len(got) != 6 {
		t.Errorf("default verbs: %v", got)
	}
	if c := reins.VerbNavigate.Class(reins.RoleAgent); c != reins.ClassAgentAction {
		t.Errorf("an agent's navigate classifies as %s", c)
	}
	if c := reins.VerbNavigate.Class(reins.RoleHuman); c != reins.ClassNavigation {
		t.Errorf("a person's navigate classifies as %s", c)
	}
	if c := reins.VerbRequestHuman.Class(reins.RoleAgent); c != reins.ClassAgentAction {
		t.Errorf("an agent's request_human classifies as %s", c)
	}
	for _, v := range []reins.Verb{reins.VerbControl, reins.VerbRequestControl, reins.VerbRenewControl, reins.VerbReleaseControl, reins.VerbStopAgents, reins.VerbAnswerHuman} {
		if v.Class(reins.RoleHuman) != reins.ClassControl || v.NeedsBrowser() || slices.Contains(reins.AgentVerbs(), v) {
			t.Errorf("%s: class %s, for agents %v", v, v.Class(reins.RoleHuman), slices.Contains(reins.AgentVerbs(), v))
		}
	}
	for _, v := range []reins.Verb{reins.VerbRefresh, reins.VerbInspect, reins.VerbSetViewport, reins.VerbPointer, reins.VerbClipboard} {
		if slices.Contains(reins.AgentVerbs(), v) { // VIEW-6
			t.Errorf("%s is for agents", v)
		}
	}
	if c := reins.VerbReadArtifact.Class(reins.RoleAgent); c != reins.ClassArtifact {
		t.Errorf("an agent's read_artifact classifies as %s", c)
	}
}

func FuzzDecodeAction(f *testing.F) {
	for _, c := range everyAction {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := reins.DecodeAction(b)
		if err != nil {
			if c := reins.CodeOf(err); c != reins.CodeInvalidInput {
				t.Fatalf("code %s for %q", c, b)
			}
			return
		}
		out, err := reins.EncodeAction(a)
		if err != nil || !json.Valid(out) {
			t.Fatalf("EncodeAction(%#v) = %s, %v", a, out, err)
		}
		if _, err := reins.DecodeAction(out); err != nil {
			t.Fatalf("%s does not decode again: %v", out, err)
		}
	})
}
