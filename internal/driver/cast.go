package driver

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"math"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// casting is the screencast of one tab. Its fields are guarded by browser.mu.
type casting struct {
	number  uint64
	spec    Cast // with its defaults; smaller once a picture was too large for a message
	tab     *tab
	session *cdp.Session       // that it runs on
	rolled  time.Time          // when it was started on that, last
	sent    uint64             // frames so far
	unacked map[uint64]unacked // by number
}

// unacked is a frame that the browser waits to have acknowledged.
type unacked struct {
	session *cdp.Session
	id      int64 // the browser's
}

const (
	// mostUnacked bounds the frames that a parent owes acknowledgements for. The
	// browser stops at three, and counts anew when a cast is started anew.
	mostUnacked = 12
	// startAnswers is how long the start of a cast waits for the browser's word:
	// a page that is busy gives it late, and is shown all the same.
	startAnswers = 500 * time.Millisecond
	smallest     = 320 // pixels; pictures are not made smaller than that to fit a message
)

// view carries out an order about the picture.
func (b *browser) view(ctx context.Context, o viewOrder) (viewed, error) {
	switch {
	case o.Start != nil:
		cast, err := b.startCast(ctx, *o.Start)
		return viewed{Cast: cast}, err
	case o.Stop:
		b.stopCast()
		return viewed{}, nil
	case o.Ack != nil:
		return viewed{}, b.ackFrame(ctx, *o.Ack)
	case o.Capture != nil:
		f, err := b.captureFrame(ctx, *o.Capture)
		return viewed{Frame: f}, err
	case o.Viewport != nil:
		return viewed{}, b.setViewport(*o.Viewport)
	}
	return viewed{}, reins.Errorf(reins.CodeInvalidInput, "an order about the picture is empty")
}

// startCast replaces the cast by another one.
func (b *browser) startCast(ctx context.Context, c Cast) (uint64, error) {
	spec, err := c.whole()
	if err != nil {
		return 0, err
	}
	t, err := b.resolveTab(c.Tab, "")
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	select {
	case <-t.ended:
		b.mu.Unlock()
		return 0, errClosed(t)
	default:
	}
	b.endCastLocked()
	b.casts++
	b.cast = &casting{number: b.casts, spec: spec, tab: t, unacked: map[uint64]unacked{}}
	number := b.casts
	started := b.rollLocked()
	b.layOutLocked(t)
	b.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, startAnswers)
	defer cancel()
	if _, err := started.Wait(short); err != nil && short.Err() == nil && !errors.Is(err, cdp.ErrSessionEnded) {
		return number, b.failure(err)
	}
	return number, nil
}

// rollLocked has the browser make frames of the cast's tab, whether or not it
// did before. The first one comes at once.
func (b *browser) rollLocked() cdp.Reply[struct{}] {
	c := b.cast
	c.session, c.rolled = c.tab.session, time.Now()
	c.session.Send(page.StopScreencast.Method, nil) // one that runs is not started anew
	return cdp.Reply[struct{}]{Pending: c.session.Send(page.StartScreencast.Method, page.StartScreencastParams{
		Format: page.StartScreencastFormatJpeg, Quality: new(int64(c.spec.Quality)),
		MaxWidth: int64(c.spec.MaxWidth), MaxHeight: int64(c.spec.MaxHeight), EveryNthFrame: int64(c.spec.EveryNth),
	})}
}

// recastLocked goes on with the cast of t where its page has got another session
// or process, or is laid out anew.
func (b *browser) recastLocked(t *tab) {
	if b.cast != nil && b.cast.tab == t {
		b.rollLocked()
	}
}

func (b *browser) stopCast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endCastLocked()
}

// endCastLocked ends the cast; its frames are acknowledged with it.
func (b *browser) endCastLocked() {
	if b.cast == nil {
		return
	}
	b.cast.session.Send(page.StopScreencast.Method, nil)
	b.film.cut(b.cast.number)
	b.cast = nil
}

// ackFrame passes an acknowledgement on, once for each frame (FRM-4).
func (b *browser) ackFrame(ctx context.Context, n frameName) error {
	b.mu.Lock()
	var owed unacked
	known := b.cast != nil && b.cast.number == n.Cast
	if known {
		owed, known = b.cast.unacked[n.Number]
		delete(b.cast.unacked, n.Number)
	}
	b.mu.Unlock()
	if !known {
		return errRefusedFrame(n)
	}
	_, err := cdp.Call(ctx, owed.session, page.ScreencastFrameAck, page.ScreencastFrameAckParams{SessionID: owed.id})
	if _, refused := cdp.IsProtocol(err); refused || errors.Is(err, cdp.ErrSessionEnded) {
		return errRefusedFrame(n).Because(err)
	}
	if err != nil {
		return b.failure(err)
	}
	return nil
}

func errRefusedFrame(n frameName) *reins.Error {
	return reins.Errorf(reins.CodeInvalidState, "frame %d of cast %d waits for no acknowledgement; each frame takes one, while its page is there", n.Number, n.Cast)
}

// filmed is a frame as the browser tells of it.
type filmed struct {
	Data     []byte `json:"data"`
	ID       int64  `json:"sessionId"`
	Metadata struct {
		Timestamp float64 `json:"timestamp"` // seconds since the epoch
	} `json:"metadata"`
}

// filmed takes in a frame of the tab.
func (t *tab) filmed(e cdp.Event) {
	b := t.b
	b.mu.Lock()
	c := b.cast
	of := c != nil && c.session == e.Session
	b.mu.Unlock()
	if !of {
		return // of a cast that is over
	}
	var v filmed
	var size struct{ Width, Height int }
	err := e.Decode(&v)
	if err == nil {
		var config, cerr = jpeg.DecodeConfig(bytes.NewReader(v.Data))
		size.Width, size.Height, err = config.Width, config.Height, cerr
	}
	frame := CastFrame{Tab: t.id, Width: size.Width, Height: size.Height, JPEG: v.Data, Captured: timeOf(v.Metadata.Timestamp)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cast != c || c.session != e.Session {
		return
	}
	revision, fits := t.revisionLocked(c, frame)
	if err != nil || !fits {
		e.Session.Send(page.ScreencastFrameAck.Method, page.ScreencastFrameAckParams{SessionID: v.ID})
		return
	}
	if len(c.unacked) >= mostUnacked {
		return // nobody acknowledges any
	}
	c.sent++
	c.unacked[c.sent] = unacked{e.Session, v.ID}
	frame.Cast, frame.Number, frame.Viewport = c.number, c.sent, revision
	if len(frame.JPEG) > b.frameBytes() {
		frame.TooLarge, frame.JPEG = len(frame.JPEG), nil
	}
	b.film.put(frame)
}

func timeOf(seconds float64) time.Time {
	return time.UnixMicro(int64(math.Round(seconds * 1e6)))
}

// frameBytes bounds one picture.
func (b *browser) frameBytes() int {
	if b.settings.Frame > 0 {
		return int(b.settings.Frame)
	}
	return frameBytes
}

// shrinkLocked makes the pictures of t's cast smaller, after one that was too
// large for a message has cost the page its session.
func (b *browser) shrinkLocked(t *tab) {
	if c := b.cast; c != nil && c.tab == t {
		c.spec.MaxWidth, c.spec.MaxHeight = max(c.spec.MaxWidth/2, smallest), max(c.spec.MaxHeight/2, smallest)
	}
}
