// Package browser gives a model of Anthropic's browser tools of Reins, through
// anthropic-sdk-go. Tools goes into the request and Results answers what the model
// asked for; Run is the loop around both.
//
//	set, err := toolset.Open(runtime, capability, toolset.Options{})
//	...
//	message, err := browser.Run(ctx, &client, set, anthropic.MessageNewParams{
//		Model: anthropic.ModelClaudeSonnet4_5, MaxTokens: 4096,
//		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(task))},
//	}, 50)
package browser

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/reins-browser/reins/toolset"
)

// Tools are the set's tools as a request names them.
func Tools(set *toolset.Set) []anthropic.ToolUnionParam {
	var out []anthropic.ToolUnionParam
	for _, t := range set.Tools() {
		schema := t.Parameters()
		input := anthropic.ToolInputSchemaParam{
			Properties:  schema["properties"],
			ExtraFields: map[string]any{"additionalProperties": false},
		}
		if required, ok := schema["required"].([]any); ok {
			for _, name := range required {
				input.Required = append(input.Required, name.(string))
			}
		}
		out = append(out, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.Name, Description: anthropic.String(t.Description), InputSchema: input,
		}})
	}
	return out
}

// Results makes the calls that a message of the model asks for, in its order: a
// model that fills two fields and clicks means them so. It is nil when the message
// asks for none.
func Results(ctx context.Context, set *toolset.Set, message *anthropic.Message) []anthropic.ContentBlockParamUnion {
	var out []anthropic.ContentBlockParamUnion
	for _, block := range message.Content {
		if block.Type != "tool_use" {
			continue
		}
		use := block.AsToolUse()
		answer := set.Call(ctx, use.Name, use.Input)
		result := anthropic.ToolResultBlockParam{
			ToolUseID: use.ID,
			IsError:   anthropic.Bool(answer.Err != nil),
			Content:   []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: answer.Text}}},
		}
		if p := answer.Image; p != nil {
			picture := anthropic.NewImageBlockBase64(p.MediaType, base64.StdEncoding.EncodeToString(p.Data))
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: picture.OfImage})
		}
		out = append(out, anthropic.ContentBlockParamUnion{OfToolResult: &result})
	}
	return out
}

// Run talks with the model until it asks for no more calls, at most so many
// messages long, and returns its last one.
func Run(ctx context.Context, client *anthropic.Client, set *toolset.Set, p anthropic.MessageNewParams, messages int) (*anthropic.Message, error) {
	p.Tools = append(p.Tools, Tools(set)...)
	for range messages {
		message, err := client.Messages.New(ctx, p)
		if err != nil {
			return nil, err
		}
		results := Results(ctx, set, message)
		if message.StopReason != anthropic.StopReasonToolUse || results == nil {
			return message, nil
		}
		p.Messages = append(p.Messages, message.ToParam(), anthropic.NewUserMessage(results...))
	}
	return nil, fmt.Errorf("the model was not done after %d messages", messages)
}
