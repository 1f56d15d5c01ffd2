package tooltable

import (
	"fmt"

	"github.com/reins-browser/reins"
)

// Failure is an error as somebody with tools is told of it (MCP-5): code,
// sentence, what to do next, and whether there is a way out.
type Failure struct {
	Code       reins.Code     `json:"code"`
	Message    string         `json:"message"`
	Next       string         `json:"next"`
	Retryable  bool           `json:"retryable"`
	Recovery   reins.Recovery `json:"recovery"`
	Phase      reins.Phase    `json:"phase,omitempty"`
	Capability string         `json:"capability,omitempty"`
	Details    map[string]any `json:"details,omitempty"`
}

// NewFailure is err as those are told of it who have what is offered.
func NewFailure(err error, o Offer) Failure {
	e := reins.AsError(err)
	return Failure{e.Code, Bounded(e.Message), next(e, o), e.Retryable, e.Recovery, e.Phase, e.Capability, e.Details}
}

// Text is the failure as a model reads it, in three lines.
func (f Failure) Text() string {
	retryable := "no"
	if f.Retryable {
		retryable = "yes"
	}
	return fmt.Sprintf("%s: %s\nNext: %s\nRetryable: %s", f.Code, f.Message, f.Next, retryable)
}

// Structured is the failure in the place of an answer's structured form.
func (f Failure) Structured() map[string]Failure { return map[string]Failure{"error": f} }

// next says what a failure's recovery means for somebody who has only tools. A
// client that cannot list tabs is told of the snapshot instead.
func next(e *reins.Error, o Offer) string {
	switch e.Code {
	case reins.CodeEgressDenied:
		if o.Opens != "" {
			return "Do not repeat it; whoever runs this server decides what it may reach (" + o.Opens + ")."
		}
		return "Do not repeat it; whoever runs this server decides what it may reach."
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
		if o.Tabs {
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
