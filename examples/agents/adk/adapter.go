// Package browser gives agents of Google's ADK browser tools of Reins, as a
// tool.Toolset. The run of a call is the ADK session that it is made in, so the
// capability is issued with Binding.Run set to that session's ID.
//
//	set, err := toolset.Open(runtime, capability, toolset.Options{Run: sessionID, RunOf: browser.Session})
//	...
//	agent, err := llmagent.New(llmagent.Config{
//		Name: "shopper", Model: model, Instruction: browser.Instruction,
//		Toolsets: []tool.Toolset{browser.Tools(set)},
//	})
package browser

import (
	"context"
	"encoding/json"
	"path"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"

	"github.com/reins-browser/reins/toolset"
)

// Instruction tells the model what it cannot know of ADK: that the calls of one
// message run at the same time, in no order.
const Instruction = "Call one browser tool at a time, and wait for its result before you call the next."

// Session is the run of a tool's context, for [toolset.Options].
func Session(ctx context.Context) string {
	if c, ok := ctx.(tool.Context); ok {
		return c.SessionID()
	}
	return ""
}

// Tools are the set's tools.
func Tools(set *toolset.Set) tool.Toolset { return tools{set} }

type tools struct{ set *toolset.Set }

// Name implements tool.Toolset.
func (tools) Name() string { return "browser" }

// Tools implements tool.Toolset.
func (s tools) Tools(agent.ReadonlyContext) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, t := range s.set.Tools() {
		schema := &jsonschema.Schema{}
		if err := json.Unmarshal(t.Schema, schema); err != nil {
			return nil, err
		}
		made, err := functiontool.New(functiontool.Config{Name: t.Name, Description: t.Description, InputSchema: schema},
			func(ctx tool.Context, arguments map[string]any) (map[string]any, error) {
				return call(ctx, t, arguments)
			})
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}
	return out, nil
}

// call makes a call. Results of ADK are JSON, so a picture becomes an artifact of
// the session, where the agent has a service for those.
func call(ctx tool.Context, t toolset.Tool, arguments map[string]any) (map[string]any, error) {
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	answer := t.Call(ctx, body)
	if answer.Err != nil {
		return map[string]any{"error": answer.Text}, nil
	}
	out := map[string]any{"result": answer.Text}
	if p := answer.Image; p != nil && ctx.Artifacts() != nil {
		name := "browser_" + ctx.FunctionCallID() + "." + path.Base(p.MediaType)
		if _, err := ctx.Artifacts().Save(ctx, name, genai.NewPartFromBytes(p.Data, p.MediaType)); err != nil {
			return nil, err
		}
		out["picture"] = name
	}
	return out, nil
}
