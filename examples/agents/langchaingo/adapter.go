// Package browser gives a model browser tools of Reins through LangChainGo. Tools
// goes into the options of a call and Results answers what the model asked for; Run
// is the loop around both, for any model of the library that calls tools.
//
//	set, err := toolset.Open(runtime, capability, toolset.Options{})
//	...
//	answer, err := browser.Run(ctx, model, set, []llms.MessageContent{
//		llms.TextParts(llms.ChatMessageTypeHuman, task),
//	}, 50)
package browser

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"github.com/reins-browser/reins/toolset"
)

// Tools are the set's tools as a call's options name them.
func Tools(set *toolset.Set) []llms.Tool {
	var out []llms.Tool
	for _, t := range set.Tools() {
		out = append(out, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters(),
		}})
	}
	return out
}

// Results makes the calls that a choice of the model asks for, in its order: a
// model that fills two fields and clicks means them so. What it returns, the
// model's own message first, is to be added to the conversation; nil when the
// choice asks for no calls. The library's tool results are texts, so pictures
// follow as a message of their own.
func Results(ctx context.Context, set *toolset.Set, choice *llms.ContentChoice) []llms.MessageContent {
	if len(choice.ToolCalls) == 0 {
		return nil
	}
	asked := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	if choice.Content != "" {
		asked.Parts = append(asked.Parts, llms.TextPart(choice.Content))
	}
	out := []llms.MessageContent{asked}
	pictures := llms.MessageContent{Role: llms.ChatMessageTypeHuman}
	for _, call := range choice.ToolCalls {
		if call.FunctionCall == nil {
			continue
		}
		out[0].Parts = append(out[0].Parts, call)
		answer := set.Call(ctx, call.FunctionCall.Name, json.RawMessage(call.FunctionCall.Arguments))
		out = append(out, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: answer.Text},
		}})
		if p := answer.Image; p != nil {
			pictures.Parts = append(pictures.Parts, llms.BinaryPart(p.MediaType, p.Data))
		}
	}
	if len(pictures.Parts) > 0 {
		out = append(out, pictures)
	}
	return out
}

// Run talks with the model until it asks for no more calls, at most so many
// answers long, and returns the last one.
func Run(ctx context.Context, model llms.Model, set *toolset.Set, conversation []llms.MessageContent, most int) (string, error) {
	for range most {
		response, err := model.GenerateContent(ctx, conversation, llms.WithTools(Tools(set)))
		if err != nil {
			return "", err
		}
		if len(response.Choices) == 0 {
			return "", fmt.Errorf("the model gave no answer")
		}
		results := Results(ctx, set, response.Choices[0])
		if results == nil {
			return response.Choices[0].Content, nil
		}
		conversation = append(conversation, results...)
	}
	return "", fmt.Errorf("the model was not done after %d answers", most)
}
