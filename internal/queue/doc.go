// Package queue decides which operation of a resource runs when.
//
// It is a pure state machine: no goroutine, no clock, no lock. Whoever owns a
// [Queue] calls it under one lock of its own, so that admission, fencing and
// the queue change together. A waiting caller holds an [Entry] and waits on
// [Entry.Ready], which the queue closes, still under that lock, when the entry
// may run or has ended; what happened is then read from [Queue.Outcome].
//
// # Order
//
// In serial order there is one lane: strictly first in, first out, one entry
// at a time, whoever sent it (OPS-1). In per-tab order there is a lane for each
// tab and one for the browser context (SCH-1). An entry takes its lanes one
// after the other, each first in first out, and then waits for one of
// [Options.AtOnce] slots, again first in first out; a lane puts forward one
// entry at a time, so no lane starves (SCH-2). Lanes are only ever waited for
// in orders that cannot form a ring: see [Queue.Push] on tabs being closed.
//
// # Bounds
//
// A lease may have [Options.PerLease] entries waiting and the queue
// [Options.Total]; one more is quota_exceeded at once (OPS-2, SCH-5). Running
// entries count in neither. Coalescing pushes replace and are never refused.
//
// # Ends
//
// A waiting entry ends by [Queue.Cancel] and then never runs. A running one ends
// by [Queue.Settle], once, which frees its lanes whatever its outcome (SCH-6).
//
// [Keys] is the memory of idempotency keys of one lease (OPS-5), with the same
// locking rule.
package queue
