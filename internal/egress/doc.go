// Package egress is the one way out of a cell: a proxy that judges every
// target by name and by address and dials only what it judged.
//
// A [Proxy] belongs to one resource. It accepts on the listener of that
// resource's cell, so that whatever arrives is that resource: there is no
// credential to leak (EGR-1). Plain HTTP in absolute form, WebSocket upgrades
// and CONNECT tunnels share one policy and one dialler (EGR-2).
//
// # What happens to a request
//
//  1. The bytes of its head are read strictly before anything else sees them:
//     line ends, names, values, one length, one host. What two parsers could
//     read in two ways is refused (EGR-8).
//  2. The target is brought to one spelling: a plain host name, or an address
//     in its canonical form. What cannot be is refused, and never handed to a
//     resolver (EGR-4).
//  3. The name and the port are judged by the resource's rules and by the
//     tables of ports and names. A refused name is never resolved (EGR-5).
//  4. The name is resolved once. Every address of the answer is judged; one
//     that is forbidden forbids the name (EGR-3).
//  5. The connection is made to a judged address, by number. Pooled
//     connections are shared only between requests whose name, port and
//     judged addresses are the same.
//
// Every step that fails is a refusal with a named [Reason] (EGR-10), and each
// request or tunnel is told once to Options.Audit as a [Decision].
//
// The tables behind the verdict are [Table], [Ports] and [Names]; the
// document docs/egress.md is made from them. What is inside a tunnel is not
// looked at.
//
// # Bounds and shutdown
//
// The number of connections, the size of a head, the time of a dial, idleness
// and life are those of reins.Limits, and bytes per direction those of the
// policy (EGR-7). Bodies stream; a connection holds two copy buffers and one
// head at most. [Proxy.Close] ends every connection at once and returns when
// nothing of the proxy runs any more.
//
// # Testing with it
//
// Options.Resolver, Options.Dial and Options.Own are the seams: with a
// resolver that answers "public" addresses and a Dial that leads them to a
// local listener, everything between is the real thing.
package egress
