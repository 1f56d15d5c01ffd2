package host

import (
	"context"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// echo is a driver that answers at once.
type echo struct{ *fakeLink }

func (echo) Do(context.Context, driver.Command) (*driver.Reply, error) {
	return &driver.Reply{Result: reins.Result{Tab: &reins.Tab{ID: "t1"}, Selected: "t1"}}, nil
}

// BenchmarkFence is what the host adds to an operation: admit, queue, check,
// gate, begin, settle, audit, with a browser that answers at once.
func BenchmarkFence(b *testing.B) {
	for name, hooks := range map[string]reins.Hooks{
		"plain":          {},
		"gate and audit": {BeforeOperation: func(context.Context, reins.Operation) error { return nil }, Audit: func(reins.Record) {}},
	} {
		b.Run(name, func(b *testing.B) {
			if hooks.Audit == nil {
				hooks.Audit = func(reins.Record) {}
			}
			w := newWorld(b, b.TempDir(), hooks, reins.Limits{})
			w.host.parts.drive = func(ctx context.Context, o driver.Options) (link, error) {
				l, err := w.drive(ctx, o)
				return echo{l.(*fakeLink)}, err
			}
			w.register(b, reins.BrowserSpec{})
			l := w.lease(b, agentOf(key1, 1))
			call := reins.Call{Action: open}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Do(ctx0, call); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			w.stop(b)
		})
	}
}
