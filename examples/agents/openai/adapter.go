// Package browser gives a model of OpenAI's browser tools of Reins, through
// openai-go and its Responses API. Tools goes into the request and Results answers
// what the model asked for; Run is the loop around both.
//
//	set, err := toolset.Open(runtime, capability, toolset.Options{})
//	...
//	response, err := browser.Run(ctx, &client, set, responses.ResponseNewParams{
//		Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(task)},
//	}, 50)
package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/reins-browser/reins/toolset"
)

// Tools are the set's tools as a request names them. They are not "strict": that
// mode wants every argument in every call.
func Tools(set *toolset.Set) []responses.ToolUnionParam {
	var out []responses.ToolUnionParam
	for _, t := range set.Tools() {
		out = append(out, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: t.Parameters(), Strict: openai.Bool(false),
		}})
	}
	return out
}

// Results makes the calls that a response of the model asks for, in its order: a
// model that fills two fields and clicks means them so. It is nil when the response
// asks for none.
func Results(ctx context.Context, set *toolset.Set, response *responses.Response) responses.ResponseInputParam {
	var out responses.ResponseInputParam
	for _, item := range response.Output {
		if item.Type != "function_call" {
			continue
		}
		call := item.AsFunctionCall()
		answer := set.Call(ctx, call.Name, json.RawMessage(call.Arguments))
		output := responses.ResponseFunctionCallOutputItemListParam{
			{OfInputText: &responses.ResponseInputTextContentParam{Text: answer.Text}},
		}
		if p := answer.Image; p != nil {
			address := "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
			output = append(output, responses.ResponseFunctionCallOutputItemUnionParam{
				OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: openai.String(address)},
			})
		}
		result := responses.ResponseInputItemParamOfFunctionCallOutput(output)
		result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
		out = append(out, result)
	}
	return out
}

// Run talks with the model until it asks for no more calls, at most so many
// responses long, and returns its last one.
func Run(ctx context.Context, client *openai.Client, set *toolset.Set, p responses.ResponseNewParams, most int) (*responses.Response, error) {
	p.Tools = append(p.Tools, Tools(set)...)
	for range most {
		response, err := client.Responses.New(ctx, p)
		if err != nil {
			return nil, err
		}
		results := Results(ctx, set, response)
		if results == nil {
			return response, nil
		}
		p.PreviousResponseID = openai.String(response.ID)
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
	}
	return nil, fmt.Errorf("the model was not done after %d responses", most)
}
