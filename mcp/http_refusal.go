package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/webguard"
)

// large is a refusal with a status of its own.
type large struct{ error }

// tooLarge marks the refusal of a body above the bound (MCP-7). One without a
// length was cut where it was.
func tooLarge(r *http.Request, err error) error {
	if r.ContentLength > webguard.MaxBody || r.ContentLength < 0 && reins.CodeOf(err) == reins.CodeInvalidInput {
		return large{err}
	}
	return err
}

// Unwrap lets it be read as the error that it is.
func (l large) Unwrap() error { return l.error }

// refusedCode is JSON-RPC's, from the range that it leaves to servers.
const refusedCode = -32000

// refuse answers a request that did not get as far as a session, as a JSON-RPC
// error under the status that its code has.
func refuse(w http.ResponseWriter, err error) {
	e := reins.AsError(err)
	status := e.Code.Info().Status
	var big large
	switch {
	case errors.As(err, &big):
		status = http.StatusRequestEntityTooLarge
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="reins"`)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	body, merr := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"` // null: whose request it was has not been read
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, &jsonrpc.Error{Code: refusedCode, Message: e.Error(), Data: failureData(e)}})
	if merr != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // to a client that is gone
}

// retrySeconds is when to try again what a bound or a stop refused.
const retrySeconds = 5
