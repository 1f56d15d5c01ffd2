package driver

import (
	"encoding/json"
	"fmt"

	"github.com/reins-browser/reins"
)

// What the parent keeps of a driver's word. The driver reads what hostile pages
// make, so it may be somebody else's by now: what it says is bounded, and is of the
// words that there are (DRV-5). A driver that says anything else is ended.
const (
	mostNotice  = 1 << 20  // bytes of one notice
	mostWaiting = 64 << 20 // bytes of notices that wait for whoever takes them
	mostName    = 64       // bytes of a tab's ID, and of an event's kind
	mostNumber  = 1 << 40  // of tabs and documents: there is always one above
)

// noticeOf is the notice in a frame.
func noticeOf(f wireFrame) (notice, error) {
	var n notice
	switch {
	case len(f.parts) != 1:
		return n, fmt.Errorf("a notice has %d parts, want 1", len(f.parts))
	case len(f.parts[0]) > mostNotice:
		return n, fmt.Errorf("a notice of %d bytes is above the bound of %d", len(f.parts[0]), mostNotice)
	}
	if err := json.Unmarshal(f.parts[0], &n); err != nil {
		return n, err
	}
	n.size = len(f.parts[0])
	switch {
	case n.Event == nil && n.Handover == nil && !n.Ready:
		return n, fmt.Errorf("a notice of nothing")
	case n.Event != nil && (len(n.Event.Kind) > mostName || !nameBounded(n.Event.Tab)):
		return n, fmt.Errorf("an event with a name above the bound of %d bytes", mostName)
	case n.Handover != nil && !n.Handover.Numbers.sane():
		return n, fmt.Errorf("a handover with numbers that nothing can have")
	case n.Handover != nil && n.Handover.Viewport != (reins.Viewport{}) && checkViewport(n.Handover.Viewport) != nil:
		return n, fmt.Errorf("a handover with a viewport that nobody can have set")
	}
	return n, nil
}

// sane is what is wrong with an outcome, or nil.
func (o outcome) sane() error {
	if o.Error != nil && o.Error.Code.Info().Code != o.Error.Code {
		return fmt.Errorf("an error with the unknown code %.40q", o.Error.Code)
	}
	if !o.Numbers.sane() {
		return fmt.Errorf("numbers that nothing can have")
	}
	if o.View != nil && o.View.Frame != nil {
		return o.View.Frame.sane()
	}
	if o.Reply == nil {
		return nil
	}
	r := o.Reply.Result
	tabs := append([]reins.Tab{{ID: r.Selected}}, r.Tabs...)
	if r.Tab != nil {
		tabs = append(tabs, *r.Tab)
	}
	for _, t := range tabs {
		if !nameBounded(t) {
			return fmt.Errorf("a tab with a name above the bound of %d bytes", mostName)
		}
	}
	return nil
}

// sane is what is wrong with a frame, or nil.
func (f CastFrame) sane() error {
	if len(f.Tab) > mostName || f.TooLarge < 0 || f.Width < 0 || f.Height < 0 || f.Width > pictureSide || f.Height > pictureSide {
		return fmt.Errorf("a frame of %d by %d pixels of tab %.40q", f.Width, f.Height, f.Tab)
	}
	return nil
}

func nameBounded(t reins.Tab) bool { return len(t.ID) <= mostName && len(t.Opener) <= mostName }

func (n Numbers) sane() bool {
	return 0 <= n.Tab && n.Tab <= mostNumber && 0 <= n.Document && n.Document <= mostNumber
}
