// Package toolset gives Go agent libraries the browser tools that MCP clients
// have: each a name, a description, a JSON schema of its arguments, and a call
// (TOOL-1). It depends on no agent library; examples/agents has an adapter for each
// that is in use.
//
//	set, err := toolset.Open(runtime, capability, toolset.Options{Run: "run-7"})
//	...
//	defer set.Close()
//	for _, tool := range set.Tools() {
//		// hand tool.Name, tool.Description and tool.Schema to the model
//	}
//	answer := set.Call(toolset.WithRun(ctx, "run-7"), call.Name, call.Arguments)
//
// # Authority
//
// A [Set] knows only a capability, or a lease. No argument of a tool names a
// project, resource, session or actor, so no model can. Scope and run, where they
// are given, must be those that the capability is bound to; and the run of each
// call's context must be the same, else the call is refused and nothing is done.
// The binding, with its run, is what every gate and audit record is told.
//
// # Leases
//
// [Open] acquires the lease when the first call needs it, renews it at half of its
// life, asks for a new one when it ended, and releases it in [Set.Close]. [New]
// takes a lease that is somebody else's, who renews and releases it.
//
// # Answers
//
// An [Answer] has a text made to be read by a model, whether the call succeeded or
// not; what failed says what to do next. Pictures come beside it, and most answers
// as JSON too. Whatever a page wrote is quoted or fenced, and named as page content.
//
// # Order and cancellation
//
// Calls enter the lease in the order in which they are made. A model may ask for
// several in one message, and means them in order: where a library runs those at
// the same time, tell it not to. A call ends with its context, and the action with
// the call. Close ends the calls that are under way and waits for them.
//
// To test with this package, give [New] a lease of your own.
package toolset
