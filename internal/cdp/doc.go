// Package cdp is one connection to a browser over a pair of byte pipes: calls
// and their replies, flat sessions, and events.
//
// # Order
//
// One goroutine reads the browser's messages and acts on them in the order in
// which the browser sent them: an event is handed to its session's handler, a
// reply releases its waiter. So when a call returns, everything that the browser
// reported before its reply has been handled. A handler therefore must return
// soon and must never wait for a reply; it may send ([Session.Send]) as much as
// it likes, and it may register the session that an event announces, which then
// misses nothing.
//
// Messages go out in the order of Send. Those of one [Session.SendAll] leave in
// one write, which is what makes a click's three events cost one round trip.
//
// # Back-pressure and bounds
//
// What the browser sends is never queued here: it is handled or it waits in the
// pipe. What is sent is queued, up to bounds on unanswered calls and on bytes
// not yet written; exceeding one ends the connection with [ErrOverload], because
// then either side has stopped listening. A message above the bound on its size
// is skipped without being stored, and the session that sent it ends with
// [ErrTooLarge]; the others go on (DRV-3).
//
// # Ends
//
// A session ends when its target detaches ([Session.End]), a connection by
// [Conn.Close] or by the end of a pipe. Either end fails at once everything that
// still waits on it. Close waits for the goroutines of the connection.
//
// # Taking over
//
// The browser's ends of the pipes outlive whoever drives it. [TakeOver] makes
// sense of pipes that another process was killed on (DRV-2).
//
// # Testing with it
//
// A Conn takes any reader and writer that fail once they are closed; io.Pipe and
// net.Pipe do.
package cdp
