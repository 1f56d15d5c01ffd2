package frames

import (
	"slices"
	"time"

	"github.com/reins-browser/reins"
)

const (
	maxErrors = 32                     // that wait for a viewer
	patience  = 500 * time.Millisecond // for acknowledgements, at least; see [Viewer.ready]
	slackness = 30 * time.Millisecond  // by which they may vary
	recovery  = 16                     // acknowledgements
)

// Viewer is one reader of a stream. Guarded by the stream's owner's lock.
type Viewer struct {
	s       *Stream
	size    int // of the window
	waiting *reins.Frame
	window  []entry // given and not acknowledged, oldest first
	errs    []*reins.Error

	depth   int           // how many may be on their way at the same time
	took    time.Duration // how long acknowledgements take, smoothed; 0: not known
	soonest time.Duration // how long they take when nothing is in their way
	full    bool          // depth was what kept a picture back
	rest    int           // acknowledgements before depth may grow again
}

// entry is one picture that a viewer was given.
type entry struct {
	id    reins.FrameID
	given time.Time
}

// Join adds a viewer with a window of that many pictures. The newest one waits for
// it already, if there is one (FRM-12).
func (s *Stream) Join(window int) *Viewer {
	v := &Viewer{s: s, size: window, depth: 1, waiting: s.last}
	s.viewers[v] = struct{}{}
	return v
}

// Leave removes a viewer; idempotent. What it was given and what it waits for is
// nobody's business any more.
func (s *Stream) Leave(v *Viewer) {
	delete(s.viewers, v)
	v.waiting, v.window, v.errs = nil, nil, nil
}

// Err is the oldest error that waits for the viewer, once, or nil.
func (v *Viewer) Err() *reins.Error {
	if len(v.errs) == 0 {
		return nil
	}
	err := v.errs[0]
	v.errs = v.errs[1:]
	return err
}

// Take gives the viewer the newest picture that it has not got, if it may have it
// now. When is the time to ask again, zero when that depends on what else happens.
func (v *Viewer) Take(now time.Time) (f *reins.Frame, when time.Time) {
	if v.waiting == nil {
		return nil, time.Time{}
	}
	v.expire(now)
	if ready := v.ready(now); now.Before(ready) {
		v.full = true
		return nil, ready
	}
	f, v.waiting = v.waiting, nil
	if len(v.window) >= v.size {
		v.window = v.window[1:] // FRM-3
	}
	v.window = append(v.window, entry{f.ID, now})
	return f, time.Time{}
}

// ready is when the viewer may be given a picture. One whose acknowledgements do
// not come is given one from time to time all the same.
func (v *Viewer) ready(now time.Time) time.Time {
	if len(v.window) < v.depth {
		return now
	}
	newest := v.window[len(v.window)-1]
	return newest.given.Add(min(max(2*v.took, patience), 4*patience))
}

// expire retires entries whose time is over (FRM-5).
func (v *Viewer) expire(now time.Time) {
	for len(v.window) > 0 && now.Sub(v.window[0].given) >= v.s.opts.Life {
		v.window = v.window[1:]
	}
}

// Ack retires one picture of the viewer's window. It reports false, and does
// nothing, for one that is not there: evicted, expired, of an earlier generation,
// acknowledged already, or never given (FRM-5).
func (v *Viewer) Ack(id reins.FrameID, now time.Time) bool {
	v.expire(now)
	i := slices.IndexFunc(v.window, func(e entry) bool { return e.id == id })
	if i < 0 {
		return false
	}
	took := now.Sub(v.window[i].given)
	v.window = slices.Delete(v.window, i, i+1)
	v.learn(took)
	return true
}

// learn fits the viewer's pace to how long an acknowledgement took (FRM-11): when it
// took longer than it takes with nothing in the way, pictures queue up on their way,
// and fewer are to be.
func (v *Viewer) learn(took time.Duration) {
	if v.took == 0 {
		v.took, v.soonest = took, took
	}
	v.took += (took - v.took) / 4
	if took < v.soonest {
		v.soonest = took
	} else {
		v.soonest += (took - v.soonest) / 64 // the way may have changed
	}
	v.rest--
	switch {
	case took > v.soonest*3/2+slackness && v.depth > 1:
		v.depth--
		v.rest = recovery
	case took <= v.soonest*5/4+slackness/2 && v.full && v.depth < v.size && v.rest <= 0:
		v.depth++
		v.rest = v.depth // those that are on their way tell nothing of it
	}
	v.full = false
}

// gap is how long the viewer wants no other picture: nothing while it could take one.
func (v *Viewer) gap() time.Duration {
	switch {
	case len(v.window) < v.depth:
		return 0
	case v.took == 0:
		return slowest
	}
	return min(v.took/time.Duration(v.depth), slowest)
}
