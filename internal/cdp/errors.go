package cdp

import (
	"errors"
	"fmt"
)

// The ways in which a call can fail without an answer of the browser. A
// failing call wraps one of them.
var (
	// ErrClosed: the connection ended.
	ErrClosed = errors.New("the DevTools connection ended")
	// ErrSessionEnded: the session's target is gone or was detached from.
	ErrSessionEnded = errors.New("the DevTools session ended")
	// ErrTooLarge: the session sent a message above the bound (DRV-3).
	ErrTooLarge = errors.New("a DevTools message is above the bound")
	// ErrOverload: too many calls or bytes wait for the browser (DRV-3).
	ErrOverload = errors.New("the browser does not keep up with what is sent to it")
)

// ProtocolError is the browser's refusal of a call.
type ProtocolError struct {
	Method  string `json:"-"`
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// Error implements error. The browser's words are quoted: they can hold text
// of a page.
func (e *ProtocolError) Error() string {
	if e.Data != "" {
		return fmt.Sprintf("%s: %.200q, %.200q (%d)", e.Method, e.Message, e.Data, e.Code)
	}
	return fmt.Sprintf("%s: %.200q (%d)", e.Method, e.Message, e.Code)
}

// Codes of protocol errors that callers tell apart.
const (
	CodeServer         = -32000 // most refusals
	CodeNoSession      = -32001 // the session is unknown
	CodeInvalidParams  = -32602
	CodeMethodNotFound = -32601
)

// IsProtocol reports whether err is the browser's refusal of a call, and
// returns it.
func IsProtocol(err error) (*ProtocolError, bool) {
	var p *ProtocolError
	ok := errors.As(err, &p)
	return p, ok
}
