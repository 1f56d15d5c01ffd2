// Package reins is the vocabulary of Reins: a runtime that owns real, sealed
// Chromium browsers for AI agents and for the people who watch over them.
//
// It holds the nouns (resource, attachment, capability, lease, artifact), the
// verbs as data ([Action], a closed sum with a JSON form), the closed set of
// errors ([Error], [Code]), every limit with its default and range ([Limits]),
// and the three ports through which all of it is used:
//
//   - [Runtime]: register and find resources, issue, revoke and acquire authority;
//   - [Resource]: the life of one browser identity;
//   - [Lease]: what a participant does while its authority lasts.
//
// Package host implements the ports on one machine. Doors (MCP, HTTP, the Go
// toolset) work over the ports and never import host, so that near and far
// runtimes are used alike.
//
// # Authority
//
// A host registers a resource and attaches an agent session to it. It issues a
// [Capability] for one complete [Binding]; whoever presents its token with the
// same binding acquires a [Lease]. Every action runs under a lease, enters the
// resource's queue, and is checked again at the moment it begins. When
// authority ends (expiry, release, revoke, replace, attach, retire) nothing
// begins any more, and what had begun is quiesced.
//
// # Errors
//
// Every failure is an [*Error] of the closed set in [Codes]. Retryable says
// that a way out exists, not that a side effect is safe to repeat; an outcome
// that cannot be known is [CodeCompletionUnknown], never success.
//
// This package imports the standard library only.
package reins
