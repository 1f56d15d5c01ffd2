package mcp

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/reins-browser/reins"
)

// errTooLarge has a status of its own.
var errTooLarge = reins.Errorf(reins.CodeInvalidInput, "the request's body is above %d bytes; send less at once", maxBody)

// refusedCode is JSON-RPC's, from the range that it leaves to servers.
const refusedCode = -32000

// refuse answers a request that did not get as far as a session, as a JSON-RPC
// error under the status that its code has.
func refuse(w http.ResponseWriter, err error) {
	e := reins.AsError(err)
	status := e.Code.Info().Status
	switch {
	case err == error(errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="reins"`)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	data, merr := json.Marshal(structuredFailure(e, false)["error"])
	if merr != nil { // details that JSON cannot hold
		data = nil
	}
	body, merr := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"` // null: whose request it was has not been read
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, &jsonrpc.Error{Code: refusedCode, Message: e.Error(), Data: data}})
	if merr != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // to a client that is gone
}

// retrySeconds is when to try again what a bound or a stop refused.
const retrySeconds = 5
