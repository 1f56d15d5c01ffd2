package driver

import (
	"context"
	"errors"

	"github.com/reins-browser/reins"
)

// StartCast starts a screencast of a tab, in the foreground or not, in the place
// of the one before, and returns its number, which its frames bear: the first
// ones may be handed out before it returns. It follows its tab wherever that
// navigates, through crashes too, and ends with it. It fails with invalid_input
// for settings out of bounds and with invalid_state for a tab that is not open.
// Like the other orders about the picture it waits for no action and no page.
func (p *Process) StartCast(ctx context.Context, c Cast) (cast uint64, err error) {
	v, err := p.view(ctx, viewOrder{Start: &c})
	return v.Cast, err
}

// StopCast stops the screencast, if there is one. Frames that are not
// acknowledged yet need not be; a few may still be handed out.
func (p *Process) StopCast(ctx context.Context) error {
	_, err := p.view(ctx, viewOrder{Stop: true})
	return err
}

// AckFrame acknowledges one frame to the browser, which has few of them under way
// at a time. One that was acknowledged already, or is of a cast, a tab or a page
// process that is gone, is refused with invalid_state: nothing waits for it.
func (p *Process) AckFrame(ctx context.Context, cast, number uint64) error {
	_, err := p.view(ctx, viewOrder{Ack: &frameName{cast, number}})
	return err
}

// Capture takes one picture of a tab as it is now, be it still or in the
// background; EveryNth means nothing. It fails with frame_too_large for one above
// the bound, and with timeout for a page that is busy.
func (p *Process) Capture(ctx context.Context, c Cast) (CastFrame, error) {
	v, err := p.view(ctx, viewOrder{Capture: &c})
	if err != nil || v.Frame == nil {
		return CastFrame{}, err
	}
	return *v.Frame, nil
}

// SetViewport gives all tabs, and those to come, a size (VPT-1); the next driver
// keeps it. Frames bear its revision once the page is laid out for it, and raw
// input for another one is refused from now on (INP-1).
func (p *Process) SetViewport(ctx context.Context, v reins.Viewport) error {
	_, err := p.view(ctx, viewOrder{Viewport: &v})
	return err
}

// view gives an order about the picture and waits for what comes of it.
func (p *Process) view(ctx context.Context, o viewOrder) (viewed, error) {
	if err := reins.ContextError(ctx); err != nil {
		return viewed{}, err
	}
	select {
	case <-p.done:
		return viewed{}, p.lost()
	default:
	}
	result, err := p.order(ctx, order{View: &o})
	if cancelled := reins.ContextError(ctx); cancelled != nil {
		return viewed{}, cancelled
	}
	switch {
	case err != nil:
		p.child.Kill() // a link that broke is not used again
		<-p.done
		return viewed{}, p.lost().Because(err)
	case result.Error != nil:
		return viewed{}, result.Error
	case result.View == nil:
		return viewed{}, p.lost().Because(errors.New("an order about the picture was answered with something else"))
	}
	return *result.View, nil
}

// mostFrames is how many frames wait to be handed on. The browser has no more
// than a few under way, so that a driver which sends more is not sound.
const mostFrames = 16

// play hands frames on in their order, until there are no more.
func play(frames <-chan CastFrame, to func(CastFrame)) {
	for f := range frames {
		if to != nil {
			to(f)
		}
	}
}
