// Package frames decides which pictures of a browser go to whom, and when: the
// windows of viewers, the acknowledgements that the producer is owed, and the
// viewport that all viewers share (FRM, VPT).
//
// It is a pure state machine: no goroutine, no lock, no timer, no clock. Whoever
// owns a [Stream] calls it under one lock of its own, with the time it is. What
// has to happen later is told as a time: the owner calls again when it has come.
//
// # Viewers
//
// A [Viewer] has at most one picture that waits for it, the newest, and a window
// of those that it was given and has not acknowledged. When the window is full its
// oldest entry is evicted for the newest picture (FRM-3), and an entry lives no
// longer than [Options.Life] (FRM-5). Entries are identities only: however slow a
// viewer is, it makes nobody keep a picture but the newest.
//
// How fast a viewer gets pictures follows from how long its acknowledgements take
// (FRM-11): so many are on their way at the same time as add nothing to how long
// each takes, and while they are nothing more is given to it; a viewer that never
// acknowledges gets a picture from time to time. What it did not get it has
// skipped. No viewer has a part in what another one gets.
//
// # The producer
//
// Each picture that is admitted is owed one acknowledgement, whoever looks (FRM-4).
// [Stream.Owed] says which are due: at once as long as some viewer would take
// another picture at once, else as late as the fastest one wants, so that a
// browser does not paint what nobody gets. One that is not settled within
// [Options.Life], and more than a few at a time, are the end of the producer
// ([Stream.Broken]).
//
// # A still page
//
// A picture that is the same, byte by byte, as the one before is acknowledged and
// goes to nobody. When none that differs has come for [Still], [Stream.Sharpen] asks
// for one in better quality, once (FRM-11). The last two are remembered with what
// they were made of, so that a blinking cursor does not ask for one again and
// again.
package frames
