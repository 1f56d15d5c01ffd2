package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// camera is the part of a fakeLink that makes pictures. It paints when it is told
// to, and like the real one has no more than a few under way.
type camera struct {
	mu     sync.Mutex
	cast   driver.Cast
	number uint64 // of the cast; 0: none is on
	casts  uint64
	frame  uint64
	under  map[uint64]bool // not acknowledged
	port   reins.Viewport
	log    []string
}

const maxUnder = 3

func (l *fakeLink) noted(format string, args ...any) {
	l.camera.mu.Lock()
	defer l.camera.mu.Unlock()
	l.camera.log = append(l.camera.log, fmt.Sprintf(format, args...))
}

// saw is what the driver was told about pictures, and forgets it.
func (l *fakeLink) saw() string {
	l.camera.mu.Lock()
	defer l.camera.mu.Unlock()
	log := strings.Join(l.camera.log, "; ")
	l.camera.log = nil
	return log
}

// order does what a fake of a kind does before it takes effect.
func (l *fakeLink) order(ctx context.Context, kind string) error {
	switch l.w.take(kind) {
	case failBefore:
		return reins.Errorf(reins.CodeToolFailed, "the browser says no")
	case hang:
		select {
		case <-ctx.Done():
			return reins.AsError(ctx.Err())
		case <-l.done:
			return reins.Errorf(reins.CodeConnectionClosed, "the driver was killed")
		}
	case stubborn:
		<-l.done
		return reins.Errorf(reins.CodeConnectionClosed, "the driver was killed")
	case slow:
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return reins.AsError(ctx.Err())
		}
	case unanswered:
		return reins.Errorf(reins.CodeTimeout, "the page is busy")
	case late: // refused
		return reins.Errorf(reins.CodeInvalidState, "it was acknowledged already")
	case dies:
		l.end(reins.Errorf(reins.CodeTransportFailure, "the driver ran out of memory"))
		return reins.Errorf(reins.CodeConnectionClosed, "the driver was killed")
	}
	select {
	case <-l.done:
		return reins.Errorf(reins.CodeConnectionClosed, "the driver was killed")
	default:
		return nil
	}
}

func (l *fakeLink) StartCast(ctx context.Context, c driver.Cast) (uint64, error) {
	if err := l.order(ctx, "cast"); err != nil {
		return 0, err
	}
	l.noted("cast %s", c.Tab)
	l.camera.mu.Lock()
	l.camera.casts++
	l.camera.cast, l.camera.number, l.camera.under = c, l.camera.casts, map[uint64]bool{}
	cast := l.camera.number
	l.camera.mu.Unlock()
	if l.w.take("paint") == fine { // a page that is shown paints once
		l.paint("page")
	}
	return cast, nil
}

func (l *fakeLink) StopCast(ctx context.Context) error {
	if err := l.order(ctx, "stop"); err != nil {
		return err
	}
	l.noted("stop")
	l.camera.mu.Lock()
	defer l.camera.mu.Unlock()
	l.camera.number, l.camera.under = 0, nil
	return nil
}

func (l *fakeLink) AckFrame(ctx context.Context, cast, number uint64) error {
	if err := l.order(ctx, "ack"); err != nil {
		return err
	}
	l.camera.mu.Lock()
	defer l.camera.mu.Unlock()
	if cast != l.camera.number {
		return reins.Errorf(reins.CodeInvalidState, "that screencast is over")
	}
	if !l.camera.under[number] {
		l.w.violate("picture %d was acknowledged twice, or was never sent", number)
	}
	delete(l.camera.under, number)
	return nil
}

func (l *fakeLink) Capture(ctx context.Context, c driver.Cast) (driver.CastFrame, error) {
	if err := l.order(ctx, "capture"); err != nil {
		return driver.CastFrame{}, err
	}
	l.noted("capture %s", c.Tab)
	l.camera.mu.Lock()
	defer l.camera.mu.Unlock()
	return driver.CastFrame{Tab: c.Tab, Viewport: l.camera.port.Revision, Width: 1280, Height: 800, Captured: time.Now(), JPEG: []byte("sharp")}, nil
}

func (l *fakeLink) SetViewport(ctx context.Context, v reins.Viewport) error {
	if err := l.order(ctx, "port"); err != nil {
		return err
	}
	l.noted("port %d: %dx%d at %g", v.Revision, v.Width, v.Height, v.Scale)
	l.camera.mu.Lock()
	defer l.camera.mu.Unlock()
	l.camera.port = v
	return nil
}

// paint sends a picture, unless the browser waits for acknowledgements or nobody
// wants any.
func (l *fakeLink) paint(text string) bool {
	l.camera.mu.Lock()
	c := &l.camera
	if c.number == 0 || len(c.under) >= maxUnder {
		c.mu.Unlock()
		return false
	}
	c.frame++
	c.under[c.frame] = true
	f := driver.CastFrame{Cast: c.number, Number: c.frame, Tab: c.cast.Tab, Viewport: c.port.Revision, Width: 1280, Height: 800, Captured: time.Now(), JPEG: []byte(text)}
	if strings.HasPrefix(text, "huge") {
		f.JPEG, f.TooLarge = nil, 5<<20
	}
	c.mu.Unlock()
	l.opts.Frames(f)
	return true
}

// tell is what the driver tells of a tab.
func (l *fakeLink) tell(kind string, tab reins.Tab) {
	l.opts.Events(driver.Event{Kind: kind, Tab: tab})
}

// acting is what the driver tells of an agent's action that is watched.
func acting(leaseID string) driver.Event {
	return driver.Event{Kind: "acting", Tab: reins.Tab{ID: "t1"}, Lease: leaseID, Box: &reins.Box{X: 10, Y: 10, Width: 40, Height: 20}, X: 30, Y: 20}
}
