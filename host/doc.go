// Package host is the runtime of one machine: it implements the ports of
// package reins over sealed cells, drivers and a private directory.
//
// A program calls [Main] first thing in its main, because cells and drivers are
// re-executions of the program itself; then it makes a [Host] with [New], which
// does no I/O, and lets it [Host.Start] and [Host.Stop] as often as it likes.
// Each start is a new generation: a fresh private directory, no resource, no
// lease. Only the names of retired resources outlive a generation (RES-5).
//
// # One way in
//
// Whatever a participant does is [reins.Lease.Do], and every Do goes the same
// way: admit (is the lease live, is the verb permitted, is there room), queue,
// check, ask the host's gate, make sure a browser runs, check again and begin,
// act, settle, audit. Between the last check and the end of authority there is
// one lock: once a lease has ended nothing begins under it, and what had begun
// is stopped and settles only when the browser is quiet (QUI-2). There is no
// other path to a browser.
//
// # People
//
// A takeover keeps agents from beginning anything (package control has the
// rules); it is looked at in the same two places as the lease, at admission and in
// the last check, under the same lock. The verbs of control and an agent's request
// for a person run past the queue.
//
// Whoever watches has a subscription. Their pictures are one screencast for each
// incarnation, from the first viewer to the last (projector); package frames says who
// gets which, under the resource's lock, so that no picture goes out after the end of
// authority. What one does for the picture of all, its size and its refresh, goes
// through the queue.
//
// # Locks
//
// A resource is one struct with one lock, one function that changes it
// (resource.update) and one done channel. No lock is held during I/O, a hook or
// a callback. A resource's lock may be held while the generation's is taken,
// never the other way round.
//
// # Lives
//
// A generation owns its resources, a resource at most one incarnation, an
// incarnation its body (cell, egress door, directories) and one connection at a
// time. A body is built for nobody, with a door that refuses everything, and
// then owned: at once by the incarnation that waits for it, or later when it is
// a spare that the generation keeps for the next one (CELL-11). An incarnation
// is one goroutine that starts it, watches it, reconnects its driver and takes
// it down in the reverse order of building; it is over when nothing of it is
// left. A caller's context ends the caller's wait, never a start, a stop or a
// clean-up that others may wait for too.
//
// # Back-pressure
//
// Queues, capabilities, registrations, hook calls, events and audit records are
// bounded; see [reins.LimitTable]. Slow readers of events and audit lose the
// oldest and are told how many.
//
// # Testing
//
// The parts below (cell, driver, egress, directory) stand behind small
// unexported seams, so that they can be made to fail before and after they took
// effect, hang and answer late, under testing/synctest. The real ones are
// tested with real browsers by TestRealChromium and the crash test.
package host
