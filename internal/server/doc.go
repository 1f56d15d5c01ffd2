// Package server is the served form: a host whose truth is durable, and the doors in
// front of it.
//
// # Truth
//
// What the host forgets when it stops, the store keeps (STO): resources, attachments,
// retirements, API keys and the audit trail, in state.db of the runtime directory,
// under the same lock. A [Server] writes the store before it tells the host, so that
// whatever anybody was told, or saw take effect, is there after a kill at any
// instant:
//
//   - a registration is checked by the host, kept, then registered: one that is kept
//     and was not acknowledged is there whole, after the next start;
//   - an attachment is kept, then takes effect: no session that was displaced comes
//     back;
//   - a retirement is kept, then carried out, and when nothing of the resource is left
//     that is kept too: what a kill interrupted, the next start finishes before it
//     serves anybody. A retired resource never comes back.
//
// Leases, capabilities, links and sessions are in memory only: none survives its
// process. The attempt at each operation is on the disk before its effect begins
// (GATE-1); how it ended follows within a tenth of a second.
//
// A registration that is kept but that this host cannot take (its backend is gone, the
// bound was lowered) keeps nobody else from being served: asking for it tells why, and
// it can be retired.
//
// # Who may
//
// An API key is known by its hash, in memory. Revoking one ends what was made under
// it: leases, capabilities, streams, people's sessions (API-2). An agent's key names
// one binding and opens the MCP door only (MCP-2). People come in by a link that works
// once (API-3); they are known by a cookie, which only a browser sends, and a secret
// of the page, which no other page knows. The server holds the capabilities of both.
//
// # Doors
//
// A [Door] is one [http.Handler]: the API below /v1, its description at /openapi.json
// and /docs, MCP at /mcp, people's pages, /healthz, /readyz and /metrics. It works over
// any runtime; `reins mcp` puts one in front of a private runtime without a store.
//
// # Shutdown
//
// [Server.Drain] gives no more leases and waits a while for calls under way;
// [Server.Stop] ends streams with their reason, then sessions, the host, and last the
// store. Whatever was started is waited for.
//
// To test with this package, start a Server in a directory of the test's own with a
// cell backend that suits the test; only what starts browsers needs a real one.
package server
