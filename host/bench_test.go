package host

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// echo is a driver that answers at once.
type echo struct{ *fakeLink }

func (echo) Do(context.Context, driver.Command) (*driver.Reply, error) {
	return &driver.Reply{Result: reins.Result{Tab: &reins.Tab{ID: "t1"}, Selected: "t1"}}, nil
}

// echoes is a host whose browsers answer at once, with as many resources as are
// wanted, each with as many agents on it.
func echoes(b *testing.B, hooks reins.Hooks, resources, agents int) (w *world, leases [][]reins.Lease) {
	w = newWorld(b, b.TempDir(), hooks, reins.Limits{Capabilities: 65536})
	w.host.parts.drive = func(ctx context.Context, o driver.Options) (link, error) {
		l, err := w.drive(ctx, o)
		return echo{l.(*fakeLink)}, err
	}
	for i := range resources {
		key := reins.ResourceKey{Project: "p", ID: fmt.Sprint("r", i)}
		if _, err := w.host.Register(ctx0, reins.Registration{Key: key, Attachment: attached(1)}); err != nil {
			b.Fatal(err)
		}
		mine := make([]reins.Lease, agents)
		for j := range mine {
			mine[j] = acquire(b, w.host, agentOf(key, 1))
		}
		if _, err := mine[0].Do(ctx0, reins.Call{Action: open}); err != nil {
			b.Fatal(err)
		}
		leases = append(leases, mine)
	}
	return w, leases
}

// BenchmarkFence is what the host adds to an operation: admit, queue, check,
// gate, begin, settle, audit, with a browser that answers at once. Operations go
// round all resources and all participants, one at a time.
func BenchmarkFence(b *testing.B) {
	hooks := reins.Hooks{
		Audit:           func(reins.Record) {},
		BeforeOperation: func(context.Context, reins.Operation) error { return nil },
	}
	for _, resources := range []int{1, 100, 1000} {
		for _, agents := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("resources=%d/participants=%d", resources, agents), func(b *testing.B) {
				w, leases := echoes(b, hooks, resources, agents)
				call := reins.Call{Action: open}
				took := make([]time.Duration, 0, 1<<16)
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					l := leases[n%resources][n/resources%agents]
					n++
					began := time.Now()
					if _, err := l.Do(ctx0, call); err != nil {
						b.Fatal(err)
					}
					if len(took) < cap(took) {
						took = append(took, time.Since(began))
					}
				}
				b.StopTimer()
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
				w.stop(b)
			})
		}
	}
}

// TestRegisteredResourcesAreSmall: ten thousand registrations that nobody uses
// fit into 64 MiB.
func TestRegisteredResourcesAreSmall(t *testing.T) {
	const many = 10_000
	w := newWorld(t, t.TempDir(), reins.Hooks{}, reins.Limits{Resources: many})
	before := heap()
	began := time.Now()
	for i := range many {
		key := reins.ResourceKey{Project: "p", ID: fmt.Sprint("r", i)}
		if _, err := w.host.Register(ctx0, reins.Registration{Key: key, Attachment: attached(1)}); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	bytes := heap() - before
	t.Logf("%d resources: %.1f MiB, registered in %s", many, float64(bytes)/(1<<20), took)
	if bytes > 64<<20 {
		t.Errorf("%d registered resources take %d bytes", many, bytes)
	}
	w.stop(t)
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// arrival is a driver that notes when an order came to it.
type arrival struct {
	*fakeLink
	came *time.Time
}

func (a arrival) Do(context.Context, driver.Command) (*driver.Reply, error) {
	*a.came = time.Now()
	return &driver.Reply{Result: reins.Result{Selected: "t1"}}, nil
}

// BenchmarkInput is INP-4: from the arrival of a person's event to its dispatch to
// the driver, with an idle queue, a gate and an audit hook.
func BenchmarkInput(b *testing.B) {
	w := newWorld(b, b.TempDir(), reins.Hooks{
		Audit:           func(reins.Record) {},
		BeforeOperation: func(context.Context, reins.Operation) error { return nil },
	}, reins.Limits{})
	var came time.Time
	w.host.parts.drive = func(ctx context.Context, o driver.Options) (link, error) {
		l, err := w.drive(ctx, o)
		return arrival{l.(*fakeLink), &came}, err
	}
	w.register(b, reins.BrowserSpec{})
	l := w.lease(b, personOf(key1))
	if err := act(l, open); err != nil {
		b.Fatal(err)
	}
	took := make([]time.Duration, 0, 1<<18)
	for b.Loop() {
		began := time.Now()
		if err := act(l, point("move", 1)); err != nil {
			b.Fatal(err)
		}
		took = append(took, came.Sub(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Nanoseconds())/1000, "p95-µs")
	w.stop(b)
}
