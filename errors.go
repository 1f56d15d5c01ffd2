package reins

import (
	"context"
	"errors"
	"fmt"
	"maps"
)

// Code names one kind of failure. The set is closed; see [Codes].
type Code string

// The closed set of codes, in the order of the table.
const (
	CodeInvalidInput         Code = "invalid_input"
	CodeUnauthorized         Code = "unauthorized"
	CodeDenied               Code = "denied"
	CodeLeaseEnded           Code = "lease_ended"
	CodeStaleRevision        Code = "stale_revision"
	CodeConflict             Code = "conflict"
	CodeNotFound             Code = "not_found"
	CodeRetired              Code = "retired"
	CodeLocked               Code = "locked"
	CodeFenced               Code = "fenced"
	CodeUnsafeHost           Code = "unsafe_host"
	CodeQuotaExceeded        Code = "quota_exceeded"
	CodeBusy                 Code = "busy"
	CodeCancelled            Code = "cancelled"
	CodeTimeout              Code = "timeout"
	CodeReadinessTimeout     Code = "readiness_timeout"
	CodeNotReady             Code = "not_ready"
	CodeStartupFailed        Code = "startup_failed"
	CodeConnectionTimeout    Code = "connection_timeout"
	CodeConnectionClosed     Code = "connection_closed"
	CodeTransportFailure     Code = "transport_failure"
	CodeBrowserEnded         Code = "browser_ended"
	CodePageCrashed          Code = "page_crashed"
	CodeRuntimeStopped       Code = "runtime_stopped"
	CodeDestroyed            Code = "destroyed"
	CodeHumanControlConflict Code = "human_control_conflict"
	CodeHumanControlled      Code = "human_controlled"
	CodeControlBusy          Code = "control_busy"
	CodeObserveAgain         Code = "observe_again"
	CodeInvalidState         Code = "invalid_state"
	CodeStaleRef             Code = "stale_ref"
	CodeNotActionable        Code = "not_actionable"
	CodeDialogOpen           Code = "dialog_open"
	CodeNavigationBlocked    Code = "navigation_blocked"
	CodeNavigationFailed     Code = "navigation_failed"
	CodeEgressDenied         Code = "egress_denied"
	CodeFrameTooLarge        Code = "frame_too_large"
	CodeFrameStreamFailed    Code = "frame_stream_failed"
	CodeCorrupt              Code = "corrupt"
	CodeCompletionUnknown    Code = "completion_unknown"
	CodeToolFailed           Code = "tool_failed"
	CodeInternal             Code = "internal"
)

// Recovery says what to do next about an error. The set is closed.
type Recovery string

// The ways out that an error can name.
const (
	RecoverRetry          Recovery = "retry"
	RecoverWait           Recovery = "wait"
	RecoverSnapshot       Recovery = "snapshot"
	RecoverListTabs       Recovery = "list_tabs"
	RecoverReconnect      Recovery = "reconnect"
	RecoverRestartBrowser Recovery = "restart_browser"
	RecoverRecreate       Recovery = "recreate"
	RecoverChangeInput    Recovery = "change_input"
	RecoverChangePolicy   Recovery = "change_policy"
	RecoverFixHost        Recovery = "fix_host"
	RecoverAskPerson      Recovery = "ask_person"
	RecoverNone           Recovery = "none"
)

// Sentence says the recovery in words, for a person who looks after the system.
func (r Recovery) Sentence() string {
	switch r {
	case RecoverRetry:
		return "Try again."
	case RecoverWait:
		return "Wait a moment, then try again."
	case RecoverSnapshot:
		return "Take a snapshot and go on from what it shows."
	case RecoverListTabs:
		return "List the tabs and use one that is open."
	case RecoverReconnect:
		return "Try again; the next operation connects a new driver."
	case RecoverRestartBrowser:
		return "Try again; the next operation starts a new browser."
	case RecoverRecreate:
		return "Try again; if it stays, stop the runtime and start it anew."
	case RecoverChangeInput:
		return "Correct what was given, then try again."
	case RecoverChangePolicy:
		return "Change the policy, or do without."
	case RecoverFixHost:
		return "Run reins doctor on the machine and mend what it names."
	case RecoverAskPerson:
		return "Ask a person."
	}
	return "Do not repeat it; nothing leads on from here."
}

// Phase says during what a failure happened.
type Phase string

// The phases of work in which an error can arise.
const (
	PhaseAction    Phase = "action"
	PhaseLifeCycle Phase = "life_cycle"
	PhaseHook      Phase = "hook"
	PhaseCleanUp   Phase = "clean_up"
	PhaseAdmission Phase = "admission"
	PhaseStart     Phase = "start"
	PhaseConnect   Phase = "connect"
	PhaseEgress    Phase = "egress"
	PhaseArtifact  Phase = "artifact"
)

// CodeInfo is one row of the table of codes.
type CodeInfo struct {
	Code      Code     `json:"code"`
	When      string   `json:"when"`
	Status    int      `json:"status"` // HTTP
	Retryable bool     `json:"retryable"`
	Recovery  Recovery `json:"recovery"` // the usual one; an error may name another
}

var codes = []CodeInfo{
	{CodeInvalidInput, "an argument, option or value is not acceptable", 400, false, RecoverChangeInput},
	{CodeUnauthorized, "the token or binding is not valid; one answer for all reasons", 401, false, RecoverNone},
	{CodeDenied, "a host hook or the registration's list of verbs said no", 403, false, RecoverChangePolicy},
	{CodeLeaseEnded, "the lease expired, was released, revoked, replaced or detached", 403, false, RecoverNone},
	{CodeStaleRevision, "the revision is older than the current one", 409, false, RecoverChangeInput},
	{CodeConflict, "different content at the same identity", 409, false, RecoverChangeInput},
	{CodeNotFound, "no such thing", 404, false, RecoverNone},
	{CodeRetired, "the resource is permanently gone", 410, false, RecoverNone},
	{CodeLocked, "another live owner holds the directory", 423, true, RecoverWait},
	{CodeFenced, "ownership or authority cannot be established", 500, false, RecoverFixHost},
	{CodeUnsafeHost, "root, no namespaces or no sandbox", 500, false, RecoverFixHost},
	{CodeQuotaExceeded, "a bound is reached", 429, true, RecoverWait},
	{CodeBusy, "one of a kind is already active", 409, true, RecoverWait},
	{CodeCancelled, "the caller's context ended", 499, true, RecoverRetry},
	{CodeTimeout, "a bound of time passed; the phase says of what", 504, true, RecoverRetry},
	{CodeReadinessTimeout, "a needed capability did not come up in time", 504, true, RecoverWait},
	{CodeNotReady, "a needed capability is not there", 503, true, RecoverWait},
	{CodeStartupFailed, "the browser did not come up", 503, true, RecoverRecreate},
	{CodeConnectionTimeout, "the driver did not connect in time", 504, true, RecoverReconnect},
	{CodeConnectionClosed, "the driver's connection was closed", 502, true, RecoverReconnect},
	{CodeTransportFailure, "the driver or its protocol was lost", 502, true, RecoverReconnect},
	{CodeBrowserEnded, "the browser died", 502, true, RecoverRestartBrowser},
	{CodePageCrashed, "the page died", 502, true, RecoverRetry},
	{CodeRuntimeStopped, "the runtime is stopping or stopped", 503, true, RecoverRecreate},
	{CodeDestroyed, "the handle is destroyed", 410, true, RecoverRecreate},
	{CodeHumanControlConflict, "a person's takeover is pending", 409, true, RecoverWait},
	{CodeHumanControlled, "a person has control", 409, true, RecoverWait},
	{CodeControlBusy, "somebody else holds or asked for control", 409, true, RecoverWait},
	{CodeObserveAgain, "the page may have changed under a takeover or a reconnect", 409, true, RecoverSnapshot},
	{CodeInvalidState, "a closed or closing tab, an old tab ID, an old viewport revision", 409, true, RecoverListTabs},
	{CodeStaleRef, "the ref's element is gone", 409, true, RecoverSnapshot},
	{CodeNotActionable, "the element is hidden, moving, disabled or covered", 422, true, RecoverSnapshot},
	{CodeDialogOpen, "a dialog blocks the tab", 409, true, RecoverSnapshot},
	{CodeNavigationBlocked, "policy or scheme forbids the address", 403, false, RecoverChangePolicy},
	{CodeNavigationFailed, "DNS, refused, TLS, egress or redirects", 502, true, RecoverRetry},
	{CodeEgressDenied, "the network door said no", 403, false, RecoverChangePolicy},
	{CodeFrameTooLarge, "a frame is above the bound", 502, true, RecoverRetry},
	{CodeFrameStreamFailed, "the frame stream broke", 502, true, RecoverRetry},
	{CodeCorrupt, "stored bytes fail their digest", 500, false, RecoverNone},
	{CodeCompletionUnknown, "the effect may or may not have happened", 502, true, RecoverSnapshot},
	{CodeToolFailed, "anything else that a page or browser refused", 422, true, RecoverSnapshot},
	{CodeInternal, "our fault; details are in the log", 500, false, RecoverNone},
}

// Codes returns the table of all codes, one row each, in a fixed order.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// Info returns the row of c; an unknown code gets the row of [CodeInternal].
func (c Code) Info() CodeInfo {
	for _, row := range codes {
		if row.Code == c {
			return row
		}
	}
	return codes[len(codes)-1]
}

// Error is the one type of every failure that leaves Reins. Message is one
// sentence for people that names the thing and the way out; text that came
// from a page is quoted in it and bounded. Cause stays on this side: it is not
// serialised and never shown to a caller.
type Error struct {
	Code       Code           `json:"code"`
	Phase      Phase          `json:"phase,omitempty"`
	Message    string         `json:"message"`
	Retryable  bool           `json:"retryable"`
	Recovery   Recovery       `json:"recovery"`
	Capability string         `json:"capability,omitempty"` // the readiness capability concerned
	Details    map[string]any `json:"details,omitempty"`
	Cause      error          `json:"-"`
}

// Errorf makes an error of code with the table's retryable and recovery. A %w
// operand becomes its cause.
func Errorf(code Code, format string, args ...any) *Error {
	info := code.Info()
	err := fmt.Errorf(format, args...)
	return &Error{
		Code: info.Code, Message: err.Error(), Retryable: info.Retryable,
		Recovery: info.Recovery, Cause: errors.Unwrap(err),
	}
}

// Error implements error: code and message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an *Error of the same code, so that
// errors.Is(err, &reins.Error{Code: reins.CodeBusy}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// In returns a copy of e with its phase set.
func (e *Error) In(phase Phase) *Error {
	c := *e
	c.Phase = phase
	return &c
}

// With returns a copy of e with one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[key] = value
	return &c
}

// Because returns a copy of e with cause as its cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Recover returns a copy of e that names another way out than the table's.
func (e *Error) Recover(r Recovery) *Error {
	c := *e
	c.Recovery = r
	return &c
}

// AsError returns err as an *Error: itself when it wraps one, cancelled or
// timeout for the two context errors, else internal. Nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return Errorf(CodeCancelled, "the call was cancelled by its caller").Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(CodeTimeout, "the call's deadline passed").Because(err)
	}
	return Errorf(CodeInternal, "something failed inside Reins; the log has the details").Because(err)
}

// CodeOf returns the code of err as [AsError] sees it; "" for nil.
func CodeOf(err error) Code {
	if e := AsError(err); e != nil {
		return e.Code
	}
	return ""
}

// ContextError turns the end of ctx into cancelled, timeout, or the *Error
// that was given as its cause. It returns nil while ctx lives.
func ContextError(ctx context.Context) *Error {
	if ctx.Err() == nil {
		return nil
	}
	return AsError(context.Cause(ctx))
}
