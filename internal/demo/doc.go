// Package demo is what `reins demo` shows: a small shop on the loopback
// interface ([Serve]) and a walk through it by an MCP client ([Walk]).
//
// The shop has what trips agents up on real sites: a sign-in that refuses at
// first, a table that loads, sorts and filters by script, a form with a control
// of every kind, a frame of another site, and a dialog that asks once more. All
// of it is in this package; nothing is loaded from elsewhere.
//
// The walk knows the shop as a person does: it finds things by role and name in
// the snapshots that it reads, and it believes nothing but the outcome. It stops
// at the first call that did not do what it was for, with an error that says so.
//
// The shop keeps one visitor's order, in memory. It takes connections from
// anywhere on this machine and holds nothing worth taking.
package demo
