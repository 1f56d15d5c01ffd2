package driver

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/reins-browser/reins"
)

// Cast says what a screencast shows (FRM-7). The picture has as many pixels as
// the viewport has on its device, within MaxWidth and MaxHeight.
type Cast struct {
	Tab       reins.TabID `json:"tab,omitempty"`        // the selected one when empty
	Quality   int         `json:"quality"`              // of the JPEG, 0..100
	MaxWidth  int         `json:"max_width,omitempty"`  // pixels, 1..4,096; 2,560 when 0
	MaxHeight int         `json:"max_height,omitempty"` // pixels, 1..4,096; 1,600 when 0
	EveryNth  int         `json:"every_nth,omitempty"`  // of the frames that Chromium makes, 1..60; 1 when 0
}

// Bounds of a screencast (FRM-7).
const (
	castWidth, castHeight = 2560, 1600 // of a picture when nothing else is asked for, pixels
	castSide              = 4096       // pixels
	castEveryNth          = 60
)

// whole is c with its defaults, or why it cannot be done.
func (c Cast) whole() (Cast, error) {
	if c.MaxWidth == 0 {
		c.MaxWidth = castWidth
	}
	if c.MaxHeight == 0 {
		c.MaxHeight = castHeight
	}
	if c.EveryNth == 0 {
		c.EveryNth = 1
	}
	switch {
	case c.Quality < 0 || c.Quality > 100:
		return c, reins.Errorf(reins.CodeInvalidInput, "the quality of a screencast is %d; it takes 0 to 100", c.Quality)
	case c.MaxWidth < 1 || c.MaxHeight < 1 || c.MaxWidth > castSide || c.MaxHeight > castSide || c.MaxWidth*c.MaxHeight > reins.MaxPixels:
		return c, reins.Errorf(reins.CodeInvalidInput, "a screencast of at most %d by %d pixels was asked for; a side takes 1 to %d, and their product at most %d", c.MaxWidth, c.MaxHeight, castSide, reins.MaxPixels)
	case c.EveryNth < 1 || c.EveryNth > castEveryNth:
		return c, reins.Errorf(reins.CodeInvalidInput, "a screencast of every frame in %d was asked for; it takes 1 to %d", c.EveryNth, castEveryNth)
	}
	return c, nil
}

// CastFrame is one picture of a screencast, or of [Process.Capture].
type CastFrame struct {
	Cast     uint64      `json:"cast"`     // of StartCast
	Number   uint64      `json:"number"`   // from 1 in each cast, what AckFrame names; 0 of a Capture
	Tab      reins.TabID `json:"tab"`      //
	Viewport uint64      `json:"viewport"` // revision that the page was laid out for when it was captured
	Width    int         `json:"width"`    // of the picture, pixels
	Height   int         `json:"height"`   // of the picture, pixels
	Captured time.Time   `json:"captured"` //
	// TooLarge is how many bytes a picture has that is above the bound: JPEG is
	// empty then. It is to be acknowledged like any other (FRM-6).
	TooLarge int    `json:"too_large,omitempty"`
	JPEG     []byte `json:"-"`
}

// frameBytes bounds a picture when nothing else is set (FRM-6).
const frameBytes = 4 << 20

// viewOrder is what the parent wants of the picture: an order like an action,
// beside them; one field is set.
type viewOrder struct {
	Start    *Cast           `json:"start,omitempty"`
	Stop     bool            `json:"stop,omitempty"`
	Ack      *frameName      `json:"ack,omitempty"`
	Capture  *Cast           `json:"capture,omitempty"`
	Viewport *reins.Viewport `json:"viewport,omitempty"`
}

// frameName names a frame of a driver's casts.
type frameName struct {
	Cast   uint64 `json:"cast"`
	Number uint64 `json:"number"`
}

// viewed is what came of a viewOrder.
type viewed struct {
	Cast  uint64     `json:"cast,omitempty"`  // of Start
	Frame *CastFrame `json:"frame,omitempty"` // of Capture
}

// wire is f as it travels: a frame of a kind of its own, with the picture as
// bytes.
func (f CastFrame) wire() (wireFrame, error) {
	head, err := json.Marshal(f)
	if err != nil {
		return wireFrame{}, err
	}
	return wireFrame{kind: frameCast, id: f.Number, parts: [][]byte{head, f.JPEG}}, nil
}

// castFrameOf reads what wire made.
func castFrameOf(w wireFrame) (CastFrame, error) {
	var f CastFrame
	if len(w.parts) != 2 {
		return f, fmt.Errorf("a frame of a cast has %d parts, want 2", len(w.parts))
	}
	if err := json.Unmarshal(w.parts[0], &f); err != nil {
		return f, err
	}
	f.JPEG = w.parts[1]
	if f.Number == 0 || f.Number != w.id || (f.TooLarge > 0) != (len(f.JPEG) == 0) {
		return f, fmt.Errorf("frame %d of a cast contradicts itself", w.id)
	}
	return f, f.sane()
}
