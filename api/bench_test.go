package api

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// BenchmarkDo is what the API adds to one action over loopback: the runtime
// behind it answers at once, with a snapshot of the default size.
func BenchmarkDo(b *testing.B) {
	f := newFake()
	f.bound = human()
	text := make([]byte, 24_000)
	for i := range text {
		text[i] = "- button \"Go\" [ref=f1e1]\n"[i%25]
	}
	f.do = func(context.Context, *fakeLease, reins.Call) (*reins.Result, error) {
		return &reins.Result{Tab: &reins.Tab{ID: "t1"}, Snapshot: &reins.SnapshotResult{Text: string(text)}}, nil
	}
	_, s := serve(b, f, Options{})
	l, err := dial(b, s.URL, "p").Acquire(b.Context(), theToken, human())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		call reins.Call
	}{
		{"plain", reins.Call{Action: reins.Snapshot{}}},
		{"progress", reins.Call{Action: reins.Snapshot{}, Progress: func(reins.Progress) {}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				if _, err := l.Do(b.Context(), c.call); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
