package frames

import (
	"math"

	"github.com/reins-browser/reins"
)

// Viewports are the sizes that viewers wish, by whatever names a viewer. The zero
// value is empty. Guarded by its owner's lock.
type Viewports struct {
	wishes map[string]wish
}

type wish struct {
	size   reins.SetViewport
	active bool
}

// Wish notes what size a viewer's window has; the zero size takes it back.
func (v *Viewports) Wish(who string, size reins.SetViewport) {
	if size == (reins.SetViewport{}) {
		delete(v.wishes, who)
		return
	}
	if v.wishes == nil {
		v.wishes = map[string]wish{}
	}
	v.wishes[who] = wish{size, v.wishes[who].active}
}

// Active says whether a viewer looks: only then its wish counts (VPT-1).
func (v *Viewports) Active(who string, looks bool) {
	if w, ok := v.wishes[who]; ok {
		w.active = looks
		v.wishes[who] = w
	}
}

// Drop forgets a viewer (VPT-2).
func (v *Viewports) Drop(who string) { delete(v.wishes, who) }

// Effective is the component-wise minimum of the wishes that count, the default
// when there are none (VPT-1), with a scale at which a picture keeps to
// [reins.MaxPixels] (VPT-3). It has no revision.
func (v *Viewports) Effective() reins.Viewport {
	var out reins.Viewport
	for _, w := range v.wishes {
		if !w.active {
			continue
		}
		scale := w.size.Scale
		if scale == 0 {
			scale = 1
		}
		if out.Width == 0 {
			out = reins.Viewport{Width: w.size.Width, Height: w.size.Height, Scale: scale}
		}
		out.Width, out.Height, out.Scale = min(out.Width, w.size.Width), min(out.Height, w.size.Height), min(out.Scale, scale)
	}
	if out.Width == 0 {
		return reins.DefaultViewport()
	}
	most := math.Sqrt(reins.MaxPixels / (float64(out.Width) * float64(out.Height)))
	out.Scale = min(out.Scale, math.Floor(most*100)/100)
	return out
}
