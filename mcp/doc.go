// Package mcp is the door for MCP clients: browser tools over a [reins.Lease].
//
// A [Server] offers a list of tools that is fixed when it is made. [Server.Serve]
// speaks with one client over one transport: it answers the handshake at once,
// obtains a lease from [Options].Lease when the first call needs one, renews it at
// half of its life while the client is connected, and releases it when the client
// leaves. A lease that ended is asked for anew at the next call; whether there is
// one is the provider's decision, never the client's: no tool takes a project,
// resource, session, actor or any other part of an identity.
//
// # Tools
//
// Without a choice the list is exactly browser_navigate, browser_snapshot,
// browser_screenshot, browser_click, browser_fill and browser_press. The toolset
// "tabs" adds six more and a "tab" argument; "full" adds all others, of which some
// are other names for filling and clicking. Arguments are the fields of the
// actions of package reins under their JSON names and become one by
// [reins.DecodeAction], so that the rules about them live in one place. Only
// spelling is forgiven: "true" for true, "3" for 3, a check box's true without
// quotes.
//
// # Results
//
// Every result has text made to be read by a model. Tools that act add the same
// as structured content, complete: clients hand one or the other to their model,
// and whichever it is, nothing is missing. The results of browser_snapshot and
// browser_screenshot are a text and a picture; they have no structured form, since
// clients that prefer that form would drop the picture. Whatever a page wrote is
// quoted, or in a fence that it cannot close, and named as page content.
//
// A failure is a tool result with isError, a code of the closed set of package
// reins, one sentence, what to do next and whether there is a way out. Protocol
// errors are left to faults of the protocol.
//
// # Order, cancellation, shutdown
//
// Calls enter the lease in the order in which the client sent them. A client's
// cancellation and its departure end the calls concerned through their contexts.
// Serve returns when the transport ended or its context did, after every call of
// its client returned and the lease was released.
//
// # Over HTTP
//
// An [HTTPHandler] serves many clients. Each request is authenticated; a session
// belongs to the binding and the bearer token that it began with, and sessions of
// the same ones share a lease, since a capability backs one. A client is taken to
// be there while a request of it is open or was not long ago. What was open under
// a lease ends with it. Close ends all sessions and waits for them.
//
// # Resources
//
// Artifacts of the lease are resources (reins://project/resource/artifacts/id),
// read in chunks under a check of authority each; the state of the browser is the
// resource reins://readiness.
//
// To test with this package, give it a lease of your own and connect both ends
// through the SDK's in-memory transports.
package mcp
