package host

import (
	"reflect"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/redact"
)

// What an action may take beyond the bounds that it was given itself.
const (
	margin   = 20 * time.Second
	noBounds = 60 * time.Second // for one that has none
)

// limit is the operation's own deadline once it runs (OPS-7): above every
// bound the driver keeps by itself, so that it ends only what hangs.
func (op *operation) limit() time.Duration {
	v := reflect.ValueOf(op.action)
	if f := v.FieldByName("Timeout"); f.IsValid() {
		if given, ok := f.Interface().(reins.Duration); ok && given > 0 {
			return time.Duration(given) + margin
		}
		return 30*time.Second + margin // the longest default there is
	}
	f := v.FieldByName("Waits")
	if !f.IsValid() {
		return noBounds
	}
	limit := margin + typing(op.action)
	if w, ok := f.Interface().(reins.Waits); ok {
		for _, p := range []*reins.Duration{w.Actionable, w.Settle} {
			if p != nil {
				limit += time.Duration(*p)
			} else {
				limit += 5 * time.Second
			}
		}
	}
	return limit
}

// typing is what an action's text may take, key by key.
func typing(a reins.Action) time.Duration {
	n := 0
	if reins.Secret(a) != "" {
		n = redact.Longest
	}
	switch a := a.(type) {
	case reins.Type:
		n = max(n, len(a.Text))
	case reins.Fill:
		if a.Value.Text != nil {
			n = len(*a.Value.Text)
		}
	}
	return min(time.Duration(n)*10*time.Millisecond, 10*time.Minute)
}
