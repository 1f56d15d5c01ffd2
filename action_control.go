package reins

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The verbs of takeover (CTL). All but request_human are people's, and a
// registration cannot permit them to agents. None of them waits in the queue:
// what frees a browser never stands behind what holds it (OPS-7).
const (
	VerbControl        Verb = "control"
	VerbRequestControl Verb = "request_control"
	VerbRenewControl   Verb = "renew_control"
	VerbReleaseControl Verb = "release_control"
	VerbStopAgents     Verb = "stop_agents"
	VerbAnswerHuman    Verb = "answer_human"

	VerbRequestHuman Verb = "request_human"
)

// MaxReason bounds what an agent tells a person, and a person an agent, in
// characters (CTL-8).
const MaxReason = 2048

// Bounds of takeover and of requests for a person (CTL-2, CTL-4, CTL-8).
const (
	DefaultControlWait = 30 * time.Second
	DefaultControlHold = 60 * time.Second
	DefaultHumanWait   = 10 * time.Minute
)

// GetControl reads who is in control (CTL-6); the answer is [Result.Control].
type GetControl struct{}

// RequestControl asks for exclusive control (CTL-1, CTL-2). It returns when
// control is held: once no agent's operation runs any more. Cancelling the
// call withdraws the request; a lease that holds control when its call is
// cancelled gives it back.
type RequestControl struct {
	Wait Duration `json:"wait_ms,omitempty"` // for running agent operations; default 30 s, 1 s..10 min
	Hold Duration `json:"hold_ms,omitempty"` // until it expires unless renewed; default 60 s, 5 s..1 h
}

// RenewControl replaces the expiry of this lease's hold (CTL-4). One that does
// not hold control is invalid_state.
type RenewControl struct {
	Hold Duration `json:"hold_ms,omitempty"` // from now; default 60 s, 5 s..1 h
}

// ReleaseControl gives back this lease's hold or withdraws its request.
// Idempotent (CTL-4).
type ReleaseControl struct{}

// StopAgents stops the agents' running operations, such as those that a
// request for control waits for (OPS-7), and returns when the browser is quiet.
// They fail with human_control_conflict; what they did may have happened.
type StopAgents struct{}

// RequestHuman asks for a person and waits until one ends the hand-off,
// declines, or the deadline passes (CTL-8). A lease has one at a time; a second
// is busy. The answer is [Result.Human].
type RequestHuman struct {
	Reason  string   `json:"reason"`               // 1..2,048 characters, shown to people
	Timeout Duration `json:"timeout_ms,omitempty"` // default 10 min, 1 s..1 h
}

// AnswerHuman ends a hand-off that an agent asked for. Unless it declines, it
// gives back this lease's control with it, so that the agent can go on. A
// request that is not open any more is not_found.
type AnswerHuman struct {
	Request string `json:"request"`           // [HumanRequest.ID]
	Note    string `json:"note,omitempty"`    // for the agent; at most 2,048 characters
	Decline bool   `json:"decline,omitempty"` // nobody will do it
}

// Verb and friends make each struct an Action.

func (GetControl) Verb() Verb     { return VerbControl }
func (RequestControl) Verb() Verb { return VerbRequestControl }
func (RenewControl) Verb() Verb   { return VerbRenewControl }
func (ReleaseControl) Verb() Verb { return VerbReleaseControl }
func (StopAgents) Verb() Verb     { return VerbStopAgents }
func (RequestHuman) Verb() Verb   { return VerbRequestHuman }
func (AnswerHuman) Verb() Verb    { return VerbAnswerHuman }

func (GetControl) Target() (TabID, Ref)     { return "", "" }
func (RequestControl) Target() (TabID, Ref) { return "", "" }
func (RenewControl) Target() (TabID, Ref)   { return "", "" }
func (ReleaseControl) Target() (TabID, Ref) { return "", "" }
func (StopAgents) Target() (TabID, Ref)     { return "", "" }
func (RequestHuman) Target() (TabID, Ref)   { return "", "" }
func (AnswerHuman) Target() (TabID, Ref)    { return "", "" }

func (GetControl) isAction()     {}
func (RequestControl) isAction() {}
func (RenewControl) isAction()   {}
func (ReleaseControl) isAction() {}
func (StopAgents) isAction()     {}
func (RequestHuman) isAction()   {}
func (AnswerHuman) isAction()    {}

func checkWords(field, s string) error {
	if !utf8.ValidString(s) {
		return Errorf(CodeInvalidInput, "%s is not valid UTF-8", field)
	}
	if n := utf8.RuneCountInString(s); n > MaxReason {
		return Errorf(CodeInvalidInput, "%s has %d characters; at most %d are taken", field, n, MaxReason)
	}
	return nil
}

func checkMillis(field string, d Duration, lo, hi time.Duration) error {
	if d != 0 && (time.Duration(d) < lo || time.Duration(d) > hi) {
		return Errorf(CodeInvalidInput, "%s %d is out of range; use %d to %d ms", field, time.Duration(d).Milliseconds(), lo.Milliseconds(), hi.Milliseconds())
	}
	return nil
}

func checkHold(d Duration) error { return checkMillis("hold_ms", d, 5*time.Second, time.Hour) }

// Validate implements Action.
func (GetControl) Validate() error { return nil }

// Validate implements Action.
func (a RequestControl) Validate() error {
	return firstError(checkMillis("wait_ms", a.Wait, time.Second, 10*time.Minute), checkHold(a.Hold))
}

// Validate implements Action.
func (a RenewControl) Validate() error { return checkHold(a.Hold) }

// Validate implements Action.
func (ReleaseControl) Validate() error { return nil }

// Validate implements Action.
func (StopAgents) Validate() error { return nil }

// Validate implements Action.
func (a RequestHuman) Validate() error {
	if strings.TrimSpace(a.Reason) == "" {
		return Errorf(CodeInvalidInput, "reason is missing; say what the person is to do")
	}
	return firstError(checkWords("reason", a.Reason), checkMillis("timeout_ms", a.Timeout, time.Second, time.Hour))
}

// Validate implements Action.
func (a AnswerHuman) Validate() error {
	return firstError(checkID("request", a.Request), checkWords("note", a.Note))
}
