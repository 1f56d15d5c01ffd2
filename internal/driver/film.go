package driver

import (
	"context"
	"slices"
	"sync"
)

// film holds the frames that wait for the link: no more than what the browser
// has unacknowledged. They have a sender of their own, so that a picture on its
// way holds nothing up but, for its own length, what is sent at the same time.
type film struct {
	mu      sync.Mutex
	waiting []CastFrame
	wake    chan struct{}
}

func newFilm() *film { return &film{wake: make(chan struct{}, 1)} }

// put adds a frame and never blocks.
func (f *film) put(frame CastFrame) {
	f.mu.Lock()
	f.waiting = append(f.waiting, frame)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// cut drops the frames of a cast that is over.
func (f *film) cut(cast uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = slices.DeleteFunc(f.waiting, func(frame CastFrame) bool { return frame.Cast == cast })
}

// play shows frames in their order until ctx ends or one cannot be shown.
func (f *film) play(ctx context.Context, show func(CastFrame) error) {
	for {
		f.mu.Lock()
		var next CastFrame
		some := len(f.waiting) > 0
		if some {
			next = f.waiting[0]
			f.waiting = slices.Delete(f.waiting, 0, 1)
		}
		f.mu.Unlock()
		if some {
			if show(next) != nil {
				return // a parent that is gone has no use for it
			}
			continue
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
	}
}
