// Package pipe lets a host hand a browser to a worker that it starts: over a
// channel that is bound, out of band, to one complete binding (PIPE-1).
//
// # Both ends
//
// The host makes a [Pair] and gives the worker one end as an inherited file, or
// makes a [Listener] on a unix socket that only one user's process can reach. Over
// its own end it calls [Serve] with the binding: project, resource, session,
// actor, scope, run, and as peer a name for the channel. It issues a capability
// for the same binding and gives the worker the token. The worker calls [Dial]
// and acquires its lease with the token alone: nothing that comes over a channel
// can name another participant, resource or project, and a token that was issued
// for another binding is of no use on it (PIPE-3).
//
// A channel is one resource's. A session that works with several has several.
//
// # What is carried
//
// The requests of package api, for one participant, as HTTP/1.1 (PIPE-2). A unix
// socket can pass others along: the channel carries the ends of socket pairs,
// each of which is a connection. So a request that is slow to be read holds no
// other up, and the kernel bounds what is written and not yet read.
//
// # Back-pressure
//
// [Options.Requests] connections are served at a time; those beyond wait where the
// worker opened them. A worker that takes nothing of a connection for
// [Options.Patience] loses its channel; other channels do not notice.
//
// # Shutdown
//
// A channel ends when either side closes it, when the worker's process is gone,
// or when the worker does what no worker does. Then its streams end, its actions
// are cancelled and its leases released; [Channel.Done] is closed when that is
// done. While it lives, its leases are renewed at half of their life (LSE-3).
//
// # Testing
//
// Both ends work within one process: Serve one end of a Pair, Dial the other.
package pipe
