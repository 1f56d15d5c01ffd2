// Package browser gives agents of Eino browser tools of Reins. Tools are for a
// ToolsNode, which has to run them one after the other: a model that fills two
// fields and clicks means them in that order.
//
//	set, err := toolset.Open(runtime, capability, toolset.Options{})
//	...
//	tools, err := browser.Tools(set)
//	...
//	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: tools, ExecuteSequentially: true})
package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/reins-browser/reins/toolset"
)

// Tools are the set's tools.
func Tools(set *toolset.Set) ([]tool.BaseTool, error) {
	var out []tool.BaseTool
	for _, t := range set.Tools() {
		var s jsonschema.Schema
		if err := json.Unmarshal(t.Schema, &s); err != nil {
			return nil, err
		}
		out = append(out, &browserTool{t, &schema.ToolInfo{
			Name: t.Name, Desc: t.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(&s),
		}})
	}
	return out, nil
}

// browserTool is a tool whose results may hold pictures.
type browserTool struct {
	tool toolset.Tool
	info *schema.ToolInfo
}

var _ tool.EnhancedInvokableTool = (*browserTool)(nil)

// Info implements tool.BaseTool.
func (t *browserTool) Info(context.Context) (*schema.ToolInfo, error) { return t.info, nil }

// InvokableRun implements tool.EnhancedInvokableTool. What failed is an answer to
// the model and no error, which would end the agent.
func (t *browserTool) InvokableRun(ctx context.Context, arguments *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	answer := t.tool.Call(ctx, json.RawMessage(arguments.Text))
	out := &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: answer.Text}}}
	if p := answer.Image; p != nil {
		data := base64.StdEncoding.EncodeToString(p.Data)
		out.Parts = append(out.Parts, schema.ToolOutputPart{
			Type:  schema.ToolPartTypeImage,
			Image: &schema.ToolOutputImage{MessagePartCommon: schema.MessagePartCommon{Base64Data: &data, MIMEType: p.MediaType}},
		})
	}
	return out, nil
}
