// Package store is the durable truth of the served form: resources, their
// attachments and retirements, API keys and the audit trail, in one SQLite file
// (STO-1).
//
// What a call acknowledged is on the disk: every change is one transaction with
// its row in the audit trail, written through (WAL, synchronous=FULL) before the
// call returns. A process that is killed at any instant loses nothing that was
// acknowledged, and what it had not acknowledged is there whole or not at all
// (STO-3). Leases and capabilities are not here: they end with their process.
//
// An attachment is changed by compare-and-set: its revision only rises, and a
// call that comes with an older one fails and changes nothing (ATT-2). A
// retirement is for good. Keys are kept as hashes.
//
// The audit trail is bounded: the oldest rows go as new ones come, in the same
// transaction.
//
// A [Store] is safe for concurrent use by one process; which process that is, the
// runtime directory's lock decides, before Open. Open makes the file, brings an
// older one up to date, and refuses one that is not exactly as it should be:
// fenced for a stranger's or a newer program's, corrupt for a damaged one; it
// changes neither. To test with this package, open a file in a directory of the
// test's own: there is no fake.
package store
