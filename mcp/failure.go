package mcp

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/tooltable"
)

// failure is a tool result for err (MCP-5): code, sentence, what next, and
// whether there is a way out, in text and in structured form.
func failure(err error, o tooltable.Offer) *sdk.CallToolResult {
	f := tooltable.NewFailure(err, o)
	return &sdk.CallToolResult{
		IsError:           true,
		Content:           []sdk.Content{&sdk.TextContent{Text: f.Text()}},
		StructuredContent: f.Structured(),
	}
}

// failureData is e as the data of a protocol error; nil where JSON cannot hold
// its details.
func failureData(e *reins.Error) json.RawMessage {
	data, err := json.Marshal(tooltable.NewFailure(e, tooltable.Offer{Opens: opens}))
	if err != nil {
		return nil
	}
	return data
}

// protocolFailure is err for requests that have no tool result to carry it.
func protocolFailure(uri string, err error) error {
	e := reins.AsError(err)
	if e.Code == reins.CodeNotFound {
		return sdk.ResourceNotFoundError(uri)
	}
	code := int64(jsonrpc.CodeInternalError)
	if e.Code == reins.CodeInvalidInput {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: e.Error(), Data: failureData(e)}
}
