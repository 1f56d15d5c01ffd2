package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

// next says what a failure's recovery means for somebody who has only tools. A
// client that cannot list tabs is told of the snapshot instead.
func next(e *reins.Error, tabs bool) string {
	switch e.Code {
	case reins.CodeEgressDenied:
		return "Do not repeat it; whoever runs this server decides what it may reach (reins mcp --allow)."
	case reins.CodeDialogOpen:
		return "Answer the dialog: browser_click on one of its refs, after browser_fill when it asks for text."
	case reins.CodeHumanControlled, reins.CodeHumanControlConflict:
		return "Wait until the person is done, then call browser_snapshot and go on from there."
	case reins.CodeNotFound:
		return "Do not repeat it; use what an earlier result named."
	}
	switch e.Recovery {
	case reins.RecoverRetry:
		return "Try the same call again."
	case reins.RecoverWait:
		return "Wait a moment, then try again."
	case reins.RecoverListTabs:
		if tabs {
			return "Call browser_list_tabs and use a tab that is open."
		}
		return "Call browser_snapshot and go on from there."
	case reins.RecoverSnapshot:
		return "Call browser_snapshot and go on from what it shows."
	case reins.RecoverReconnect:
		return "Try again; the next call connects anew. Take a snapshot first: old refs are gone."
	case reins.RecoverRestartBrowser:
		return "Try again; the next call starts a new browser. Its pages and sign-ins are gone."
	case reins.RecoverRecreate:
		return "Try again; if it stays, this server has to be started anew."
	case reins.RecoverChangeInput:
		return "Correct the arguments and call again."
	case reins.RecoverChangePolicy:
		return "Do not repeat it; whoever runs this server decides what is allowed."
	case reins.RecoverFixHost:
		return "Do not repeat it; whoever runs this server has to fix its machine (reins doctor says how)."
	case reins.RecoverAskPerson:
		return "Ask the person you work for."
	}
	return "Do not repeat it."
}

// failure is a tool result for err (MCP-5): code, sentence, what next, and
// whether there is a way out, in text and in structured form.
func failure(err error, tabs bool) *sdk.CallToolResult {
	e := reins.AsError(err)
	retryable := "no"
	if e.Retryable {
		retryable = "yes"
	}
	text := fmt.Sprintf("%s: %s\nNext: %s\nRetryable: %s", e.Code, bounded(e.Message), next(e, tabs), retryable)
	return &sdk.CallToolResult{
		IsError:           true,
		Content:           []sdk.Content{&sdk.TextContent{Text: text}},
		StructuredContent: structuredFailure(e, tabs),
	}
}

type failureContent struct {
	Code       reins.Code     `json:"code"`
	Message    string         `json:"message"`
	Next       string         `json:"next"`
	Retryable  bool           `json:"retryable"`
	Recovery   reins.Recovery `json:"recovery"`
	Phase      reins.Phase    `json:"phase,omitempty"`
	Capability string         `json:"capability,omitempty"`
	Details    map[string]any `json:"details,omitempty"`
}

func structuredFailure(e *reins.Error, tabs bool) map[string]failureContent {
	return map[string]failureContent{"error": {
		e.Code, bounded(e.Message), next(e, tabs), e.Retryable, e.Recovery, e.Phase, e.Capability, e.Details,
	}}
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
	data, merr := json.Marshal(structuredFailure(e, false)["error"])
	if merr != nil { // details that JSON cannot hold
		data = nil
	}
	return &jsonrpc.Error{Code: code, Message: e.Error(), Data: data}
}
