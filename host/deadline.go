package host

import (
	"time"

	"github.com/reins-browser/reins"
)

// limit is the operation's own deadline once it runs (OPS-7): above every
// bound the driver keeps by itself, so that it ends only what hangs.
func (op *operation) limit() time.Duration {
	const margin = 20 * time.Second
	waits := func(w reins.Waits) time.Duration {
		d := margin
		for _, p := range []*reins.Duration{w.Actionable, w.Settle} {
			if p != nil {
				d += time.Duration(*p)
			} else {
				d += 5 * time.Second
			}
		}
		return d
	}
	loads := func(d reins.Duration) time.Duration {
		if d == 0 {
			return 30*time.Second + margin
		}
		return time.Duration(d) + margin
	}
	switch a := op.action.(type) {
	case reins.Navigate:
		return loads(a.Timeout)
	case reins.OpenTab:
		return loads(a.Timeout)
	case reins.Click:
		return waits(a.Waits)
	case reins.Fill:
		return waits(a.Waits) + typing(len(textOf(a.Value)))
	case reins.Press:
		return waits(a.Waits)
	case reins.Type:
		return waits(a.Waits) + typing(len(a.Text))
	case reins.PressKey:
		return waits(a.Waits)
	}
	return 60 * time.Second
}

// typing is what n bytes of text may take, key by key.
func typing(n int) time.Duration {
	return min(time.Duration(n)*10*time.Millisecond, 10*time.Minute)
}

func textOf(v reins.Value) string {
	if v.Text != nil {
		return *v.Text
	}
	return ""
}
