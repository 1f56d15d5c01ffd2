// Package api is the HTTP door and the way back in: a handler that serves the
// ports of package reins as JSON over HTTP, and a [Client] that implements them
// over that (API-1). Both know the ports only; whatever runtime is behind the
// handler, and wherever it is, the client's answers are its answers. Package
// reinstest holds the suite that both pass.
//
// # Serving
//
// [New] makes a [Handler] of a runtime and an [Options.Authenticate] function
// that knows API keys. It serves everything below /v1, its own description as
// OpenAPI 3.1 at /openapi.json, and the same for people at /docs, which needs no
// network. Every request passes the checks of internal/webguard first: Host,
// Origin, content type, 4 MiB of body. [Handler.Close] ends its streams and
// waits for them.
//
// # Who may
//
// An API key is an administrator's or one project's; it comes as
// "Authorization: Bearer KEY". A capability's token comes as
// "Reins-Capability: TOKEN", never in an address. With a key, a caller is the
// trusted host and states a capability's binding; without one it is a
// participant, whose peer and source the door observes (MCP-2): what it says of
// them is not looked at, and a token serves nobody at another address.
//
// # Errors
//
// Every failure has one shape, the JSON form of [reins.Error], with the status
// of its code's row in [reins.Codes] (API-4). 429 and 503 carry Retry-After.
// The client returns the same *reins.Error that the runtime did. A call whose
// answer was lost after it may have had an effect is completion_unknown, unless
// it can be repeated without harm: then the client repeats it.
//
// # Cancellation
//
// A participant's action ends with its request: when the connection is lost,
// or when it is told to by DELETE of its call, which is what the client does so
// that it can wait until the browser is quiet (QUI-1). Other calls end their
// wait only, as the ports say.
//
// # Leases from afar
//
// The client's lease follows a stream that tells each change of its authority
// and expiry and its end. Its IsCurrent, Expires and Done read what was told
// last, without I/O; see [Client.Acquire] for how exact that is. A stream that
// breaks is opened again; time goes on meanwhile, by the client's own clock.
//
// # Live view
//
// A person's lease is watched over a WebSocket, [ViewNews] and [ViewRequest]: frames
// and state one way, acknowledgements and actions the other. Actions enter the
// lease in the order in which they came. The view ends when its lease, key or
// subscription does, and says why; one that lost its connection is taken up again
// by the next (take=1), which the client's subscription does by itself.
//
// # Back-pressure
//
// A view keeps no frame for a viewer: what the subscription's window holds is all
// (FRM-3), and the next frame is asked of it when the last one was taken. What a
// viewer asks for beyond a bound is refused.
//
// Events wait for a slow reader in bounded lists, here and at the client; the
// oldest go first and are counted in Event.Missed. A connection that takes no
// byte for half a minute is dropped. Artifacts stream with one chunk in memory.
//
// # Testing
//
// Tests run both halves over a real loopback server; host's tests run the whole
// suite of package reinstest over this package.
package api
