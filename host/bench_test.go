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
	audit := func(reins.Record) {}
	yes := func(context.Context, reins.Operation) error { return nil }
	for _, c := range []struct {
		name  string
		hooks reins.Hooks
	}{{"audit", reins.Hooks{Audit: audit}}, {"gate and audit", reins.Hooks{Audit: audit, BeforeOperation: yes}}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, b.TempDir(), c.hooks, reins.Limits{})
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
