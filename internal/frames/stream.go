package frames

import (
	"bytes"
	"hash/maphash"
	"time"

	"github.com/reins-browser/reins"
)

// Still is how long nothing changes before a page counts as still (FRM-11).
const Still = 150 * time.Millisecond

// Options bound a stream.
type Options struct {
	Life  time.Duration // of an entry of a window, and of an acknowledgement owed (FRM-5)
	Bytes int           // of a picture (FRM-6)
}

// Picture is a picture as the producer made it. Nobody changes its bytes any more.
type Picture struct {
	Cast, Number uint64 // what acknowledges it to the producer; Number 0: nothing is owed
	Tab          reins.TabID
	Viewport     uint64
	Width        int
	Height       int
	Captured     time.Time
	JPEG         []byte
	TooLarge     int // bytes of one that is above the bound; JPEG is empty
}

// Stream is the pictures of one resource, over all of its browsers. Guarded by its
// owner's lock.
type Stream struct {
	opts    Options
	id      reins.FrameID // of the newest picture
	viewers map[*Viewer]struct{}
	last    *reins.Frame // what a viewer gets that joins now (FRM-12); nil when there is none
	cast    []byte       // the newest picture of the screencast

	owed    []owed
	lastDue time.Time
	sending bool // [Stream.Owed] gave one out that is not settled

	changed time.Time // when the newest different picture came; zero: it is sharp already
	sharp   [2]sharp  // newest first
	seed    maphash.Seed
}

// sharp is a picture in better quality, and the picture that it is of.
type sharp struct {
	of    uint64 // hash
	frame *reins.Frame
}

// New makes a stream without viewers.
func New(o Options) *Stream {
	return &Stream{opts: o, viewers: map[*Viewer]struct{}{}, seed: maphash.MakeSeed()}
}

// Begin starts the next generation of the stream, for a browser: what viewers wait
// for or have not acknowledged is forgotten, and so is what the producer is owed
// (FRM-8). Sequences go on (FRM-2).
func (s *Stream) Begin(incarnation uint64) {
	s.id.Incarnation = incarnation
	s.id.Stream++
	s.Clear()
	s.owed, s.sending = nil, false
}

// Clear forgets the pictures there are: they are not what there is to see any more.
func (s *Stream) Clear() {
	s.last, s.cast, s.changed = nil, nil, time.Time{}
	s.sharp = [2]sharp{}
	for v := range s.viewers {
		v.waiting, v.window = nil, nil
	}
}

// ID is the identity of the newest picture.
func (s *Stream) ID() reins.FrameID { return s.id }

// Last is the picture that there is to see, or nil.
func (s *Stream) Last() *reins.Frame { return s.last }

// Viewers are how many there are.
func (s *Stream) Viewers() int { return len(s.viewers) }

// Admit takes a picture of the screencast and spreads it. It reports whether
// viewers have something new to take.
func (s *Stream) Admit(p Picture, now time.Time) bool {
	s.owe(p, now)
	switch {
	case s.drop(p):
		return true
	case bytes.Equal(p.JPEG, s.cast) && s.last != nil && s.last.Viewport == p.Viewport:
		return false
	}
	s.cast, s.changed = p.JPEG, now
	s.spread(p)
	return true
}

// drop tells viewers of a picture that is above the bound; false for one that is
// not (FRM-6). The sequence moves past it.
func (s *Stream) drop(p Picture) bool {
	size := max(p.TooLarge, len(p.JPEG))
	if p.TooLarge == 0 && size <= s.opts.Bytes {
		return false
	}
	s.id.Sequence++
	err := reins.Errorf(reins.CodeFrameTooLarge, "a picture of tab %q has %d bytes, above the bound of %d, and was left out; make the viewport smaller or raise the limit frame_bytes",
		string(p.Tab), size, s.opts.Bytes).With("tab", string(p.Tab)).With("sequence", s.id.Sequence)
	s.Tell(err)
	return true
}

// Tell gives every viewer an error that ends nothing.
func (s *Stream) Tell(err *reins.Error) {
	for v := range s.viewers {
		if v.errs = append(v.errs, err); len(v.errs) > maxErrors {
			v.errs = v.errs[1:]
		}
	}
}

// spread makes a picture the newest for everybody.
func (s *Stream) spread(p Picture) {
	s.id.Sequence++
	s.last = &reins.Frame{
		ID: s.id, Tab: p.Tab, Viewport: p.Viewport, Width: p.Width, Height: p.Height,
		Captured: p.Captured, JPEG: p.JPEG,
	}
	for v := range s.viewers {
		v.waiting = s.last
	}
}

// Sharpen says what a page that has become still needs. Ask is true, once, when a
// picture in better quality is to be made and given to [Stream.Sharp] with of; fresh
// when viewers have something new to take, which was made before. When is the time
// to call again, zero when that depends on what else happens.
func (s *Stream) Sharpen(now time.Time) (of uint64, ask, fresh bool, when time.Time) {
	if s.changed.IsZero() || len(s.viewers) == 0 {
		return 0, false, false, time.Time{}
	}
	if still := s.changed.Add(Still); now.Before(still) {
		return 0, false, false, still
	}
	s.changed = time.Time{}
	of = maphash.Bytes(s.seed, s.cast)
	for i, known := range s.sharp {
		if known.frame != nil && known.of == of && known.frame.Viewport == s.last.Viewport {
			s.sharp[0], s.sharp[i] = s.sharp[i], s.sharp[0]
			s.spread(picture(known.frame))
			return of, false, true, time.Time{}
		}
	}
	return of, true, false, time.Time{}
}

func picture(f *reins.Frame) Picture {
	return Picture{Tab: f.Tab, Viewport: f.Viewport, Width: f.Width, Height: f.Height, Captured: f.Captured, JPEG: f.JPEG}
}

// Sharp takes the picture that Sharpen asked for. Nothing is owed for it, and it is
// of no use when the page has changed since; it reports whether viewers have
// something new to take.
func (s *Stream) Sharp(of uint64, p Picture) bool {
	p.Number = 0
	if !s.changed.IsZero() || s.cast == nil || maphash.Bytes(s.seed, s.cast) != of {
		return false
	}
	if s.drop(p) {
		return true
	}
	s.spread(p)
	s.sharp[1] = s.sharp[0]
	s.sharp[0] = sharp{of, s.last}
	return true
}

// Newer takes a picture that was made because the newest one is of an earlier
// viewport. It is of no use when one has come meanwhile.
func (s *Stream) Newer(p Picture) bool {
	if s.last == nil || p.Viewport <= s.last.Viewport {
		return false
	}
	p.Number = 0
	if !s.drop(p) {
		s.spread(p)
	}
	return true
}

// Fresh takes a picture that was made because there was none, such as of a page
// that paints nothing. It is of no use when one has come meanwhile.
func (s *Stream) Fresh(p Picture) bool {
	if s.last != nil {
		return false
	}
	p.Number = 0
	if !s.drop(p) {
		s.spread(p)
	}
	return true
}
