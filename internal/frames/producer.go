package frames

import (
	"slices"
	"time"

	"github.com/reins-browser/reins"
)

const (
	maxOwed = 32                     // acknowledgements at a time; Chromium waits after two or three
	fastest = 25 * time.Millisecond  // between acknowledgements
	slowest = 250 * time.Millisecond // that one is held back for viewers
)

// Ack names a picture to the producer.
type Ack struct{ Cast, Number uint64 }

// owed is an acknowledgement that was not settled yet.
type owed struct {
	Ack
	due  time.Time
	ends time.Time
	sent bool
}

// owe notes that a picture came which wants to be acknowledged (FRM-4).
func (s *Stream) owe(p Picture, now time.Time) {
	if p.Number == 0 {
		return
	}
	due := s.lastDue.Add(max(fastest, s.gap()))
	if due.Before(now) {
		due = now
	}
	s.lastDue = due
	s.owed = append(s.owed, owed{Ack{p.Cast, p.Number}, due, now.Add(s.opts.Life), false})
}

// gap is how long the fastest viewer wants no other picture.
func (s *Stream) gap() time.Duration {
	if len(s.viewers) == 0 {
		return 0
	}
	gap := slowest
	for v := range s.viewers {
		gap = min(gap, v.gap())
	}
	return gap
}

// Owed gives out the acknowledgement that is to be sent now, one at a time and each
// once; the owner tells [Stream.Settled] when the producer has answered. When is the
// time to ask again, zero when that depends on what else happens.
func (s *Stream) Owed(now time.Time) (a Ack, ok bool, when time.Time) {
	if s.sending || len(s.owed) == 0 {
		return Ack{}, false, time.Time{}
	}
	first := &s.owed[0]
	if now.Before(first.due) {
		return Ack{}, false, first.due
	}
	first.sent, s.sending = true, true
	return first.Ack, true, time.Time{}
}

// Settled says that the producer has answered, whatever it said: an acknowledgement
// that it refuses is settled too (FRM-4). One that is not owed any more is nothing.
func (s *Stream) Settled(a Ack) {
	n := len(s.owed)
	s.owed = slices.DeleteFunc(s.owed, func(o owed) bool { return o.Ack == a && o.sent })
	if len(s.owed) < n {
		s.sending = false
	}
}

// Quiet reports whether the producer is owed nothing.
func (s *Stream) Quiet() bool { return len(s.owed) == 0 }

// Broken is why the producer cannot be relied on any more: an acknowledgement was
// not settled in time, or too many are owed (FRM-4). When is the time to ask again.
func (s *Stream) Broken(now time.Time) (err *reins.Error, when time.Time) {
	switch {
	case len(s.owed) == 0:
		return nil, time.Time{}
	case len(s.owed) > maxOwed:
		return reins.Errorf(reins.CodeFrameStreamFailed, "the browser sent %d pictures without waiting for their acknowledgement; its view was ended", len(s.owed)), time.Time{}
	case !now.Before(s.owed[0].ends):
		return reins.Errorf(reins.CodeFrameStreamFailed, "a picture was not acknowledged to the browser within %s; its view was ended", s.opts.Life), time.Time{}
	}
	return nil, s.owed[0].ends
}
