package reinstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var operationTests = map[string]func(*testing.T, Factory){
	"OPS-1 first come, first served":    keepsOrder,
	"OPS-2 the queue is bounded":        boundsQueue,
	"OPS-4 what a call waits for":       tellsProgress,
	"OPS-5 idempotency keys":            repeatsOnce,
	"QUI-1 cancelled in the queue":      cancelsQueued,
	"QUI-1 cancelled while it runs":     cancelsRunning,
	"QUI-1 a deadline":                  timesOut,
	"actions that are none are refused": refusesActions,
}

func keepsOrder(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	leases := []reins.Lease{w.lease(agent(1)), w.lease(agent(1)), w.lease(person("ada"))}
	g := newGate()
	w.set(nil, g.hold)
	all := []*doing{w.do(leases[0], navigate("https://0.example/"))}
	w.arrived(g)
	want := []string{"https://0.example/"}
	for i := 1; i < 12; i++ {
		url := fmt.Sprintf("https://%d.example/", i)
		call, queued := navigate(url), newGate()
		call.Progress = func(p reins.Progress) {
			if p.Stage == "queue" {
				queued.release()
			}
		}
		all, want = append(all, w.do(leases[i%3], call)), append(want, url)
		w.closed(queued.open, "its place in the queue")
	}
	g.release()
	for i, d := range all {
		w.closed(d.done, "an operation")
		if d.err != nil || d.res == nil || d.res.Meta.LeaseID != leases[i%3].Authority().LeaseID {
			t.Errorf("operation %d: %+v, %v", i, d.res, d.err)
		}
	}
	if got := w.urls(); !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

func boundsQueue(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{Queue: 2})
	w.register(reins.BrowserSpec{})
	l, other := w.lease(agent(1)), w.lease(agent(1))
	g := newGate()
	w.set(nil, g.hold)
	all := []*doing{w.do(l, navigate("https://0.example/"))}
	w.arrived(g)
	for i := range 2 {
		queued := newGate()
		call := navigate(fmt.Sprintf("https://%d.example/", i+1))
		call.Progress = func(reins.Progress) { queued.release() }
		all = append(all, w.do(l, call))
		w.closed(queued.open, "its place in the queue")
	}
	_, err := l.Do(w.ctx, navigate("https://over.example/"))
	w.want(err, reins.CodeQuotaExceeded)
	all = append(all, w.do(other, navigate("https://other.example/")))
	g.release()
	for _, d := range all {
		w.closed(d.done, "an operation")
		w.want(d.err, "")
	}
}

func tellsProgress(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	g := newGate()
	w.set(nil, g.hold)
	first := w.do(l, navigate("https://a.example/"))
	w.arrived(g)
	var mu sync.Mutex
	var told []reins.Progress
	queued := newGate()
	call := navigate("https://b.example/")
	call.Progress = func(p reins.Progress) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
		queued.release()
	}
	second := w.do(l, call)
	w.closed(queued.open, "progress")
	g.release()
	w.closed(first.done, "the first")
	w.closed(second.done, "the second")
	w.want(second.err, "")
	mu.Lock()
	defer mu.Unlock()
	if told[0] != (reins.Progress{Stage: "queue", Position: 1}) {
		t.Errorf("told %+v", told)
	}
	for _, p := range told {
		if !slices.Contains([]string{"queue", "browser", "running"}, p.Stage) {
			t.Errorf("told %+v", p)
		}
	}
}

func repeatsOnce(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l, other := w.lease(agent(1)), w.lease(agent(1))
	call := navigate("https://a.example/")
	call.Key = "k 1\"é"
	first, err := l.Do(w.ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Do(w.ctx, call)
	if err != nil || again.Meta.Operation != first.Meta.Operation {
		t.Errorf("again: %+v, %v", again, err)
	}
	changed := navigate("https://b.example/")
	changed.Key = call.Key
	_, err = l.Do(w.ctx, changed)
	w.want(err, reins.CodeConflict)
	if _, err := other.Do(w.ctx, changed); err != nil {
		t.Errorf("another lease has keys of its own: %v", err)
	}
	long := navigate("https://c.example/")
	long.Key = strings.Repeat("k", 129)
	_, err = l.Do(w.ctx, long)
	w.want(err, reins.CodeInvalidInput)
	if got := w.urls(); !slices.Equal(got, []string{"https://a.example/", "https://b.example/"}) {
		t.Errorf("came to the gate: %v", got)
	}
}

func cancelsQueued(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	g := newGate()
	w.set(nil, g.hold)
	first := w.do(l, navigate("https://first.example/"))
	w.arrived(g)
	queued := newGate()
	call := navigate("https://second.example/")
	call.Progress = func(reins.Progress) { queued.release() }
	second := w.do(l, call)
	w.closed(queued.open, "its place in the queue")
	third := w.do(l, navigate("https://third.example/"))
	second.cancel()
	w.closed(second.done, "the cancelled call")
	w.want(second.err, reins.CodeCancelled)
	g.release()
	w.closed(first.done, "the first call")
	w.closed(third.done, "the third call")
	w.want(first.err, "")
	w.want(third.err, "")
	if got := w.urls(); !slices.Equal(got, []string{"https://first.example/", "https://third.example/"}) {
		t.Errorf("came to the gate: %v", got)
	}
	second.cancel() // case B118: taking back what has ended changes nothing
	if !l.IsCurrent(l.Authority()) {
		t.Error("a cancelled call took the lease along")
	}
}

func cancelsRunning(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	g := newGate()
	left := make(chan struct{})
	w.set(nil, func(ctx context.Context, op reins.Operation) error {
		defer close(left)
		return g.hold(ctx, op)
	})
	d := w.do(l, navigate("https://a.example/"))
	w.arrived(g)
	d.cancel()
	w.closed(d.done, "the cancelled call")
	w.want(d.err, reins.CodeCancelled)
	w.closed(left, "the end of what it had begun")
	w.set(nil, nil)
	if _, err := l.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Error(err)
	}
}

func timesOut(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	g := newGate()
	w.set(nil, g.hold)
	ctx, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
	defer cancel()
	_, err := l.Do(ctx, navigate("https://a.example/"))
	w.want(err, reins.CodeTimeout)
	because := reins.Errorf(reins.CodeBusy, "its caller has better things to do")
	caused, end := context.WithCancelCause(w.ctx)
	w.set(nil, func(ctx context.Context, op reins.Operation) error { end(because); return g.hold(ctx, op) })
	_, err = l.Do(caused, navigate("https://b.example/"))
	if e := w.want(err, reins.CodeBusy); e.Message != because.Message {
		t.Errorf("the caller's cause became %v", e)
	}
}

func refusesActions(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	for _, a := range []reins.Action{
		nil, (*reins.Click)(nil), &reins.Navigate{URL: "https://a.example/"}, reins.Navigate{}, reins.Click{}, reins.Click{Ref: "f1e1", Count: 9},
		reins.Fill{Ref: "f1e1"}, reins.Press{}, reins.Navigate{URL: strings.Repeat("a", reins.MaxURL+1)},
		reins.ReadArtifact{Artifact: "../x"}, reins.ReadArtifact{Artifact: "a", Offset: -1},
	} {
		res, err := l.Do(w.ctx, reins.Call{Action: a})
		if reins.CodeOf(err) != reins.CodeInvalidInput || res != nil {
			t.Errorf("%#v: %v, %v", a, res, err)
		}
	}
	if len(w.passed) != 0 {
		t.Errorf("came to the gate: %v", w.passed)
	}
	long := strings.Repeat("é<&\u2028 ", 100<<10) // near the bound of a value
	w.set(nil, func(_ context.Context, op reins.Operation) error {
		if got := *op.Action.(reins.Fill).Value.Text; got != long {
			t.Errorf("a text of %d bytes arrived with %d", len(long), len(got))
		}
		return nil
	})
	if _, err := l.Do(w.ctx, reins.Call{Action: reins.Fill{Ref: "f1e1", Value: reins.TextValue(long)}}); err != nil {
		t.Error(err)
	}
}
