// Package control decides who may act on a browser: everybody side by side, or
// one person alone (CTL).
//
// It is a pure state machine: no goroutine, no clock, no lock, no timer. Whoever
// owns a [Control] calls it under one lock of its own, with the time it is, so
// that a takeover, the ends of authority and the beginnings of effects exclude
// each other. Besides, the owner calls [Control.Pass] when the time of
// [Control.Next] has come.
//
// # Takeover
//
// A person asks ([Control.Request]) and from then on agents are refused
// ([Control.Refuse]): nothing of theirs begins any more. What has begun is
// counted by [Control.Began] and [Control.Settled]; once none is left the person
// holds control. There is one [Claim] at a time, asked for or held (CTL-1), and
// it ends by time, by its holder, by the loss of the holder's lease or with the
// browser, each idempotently (CTL-4). A caller waits on [Claim.Ready], which is
// closed, still under the owner's lock, when the claim is held or has ended; what
// happened is then read from [Claim.Err].
//
// # Hand-off
//
// [Handoffs] are agents' requests for a person (CTL-8). They neither count as
// running nor are they refused: an agent asks because it cannot go on.
//
// Both have a version that grows with every change that a snapshot would show,
// so that their owner knows when to tell (CTL-6).
package control
