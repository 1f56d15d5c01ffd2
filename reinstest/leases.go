package reinstest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var leaseTests = map[string]func(*testing.T, Factory){
	"LSE-1 everything must match":       acquires,
	"LSE-2 acquiring again replaces":    replaces,
	"LSE-3 renew":                       renews,
	"LSE-3 one renewal at a time":       renewsOnce,
	"LSE-4 release":                     releases,
	"LSE-5 authority":                   authority,
	"LSE-6 expiry":                      expires,
	"LSE-8 artifacts":                   leasedArtifacts,
	"FRM-1 a live view is for people":   subscribes,
	"QUI-1 a caller that left acquires": leftCallers,
}

func acquires(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 0)
	var said string
	refused := func(name string, token reins.Token, b reins.Binding) {
		t.Helper()
		l, err := w.Acquire(w.ctx, token, b)
		e := reins.AsError(err)
		if reins.CodeOf(err) != reins.CodeUnauthorized || l != nil {
			t.Errorf("%s: %v, %v", name, l, err)
			return
		}
		if said == "" {
			said = e.Message
		}
		if e.Message != said || len(e.Details) != 0 {
			t.Errorf("%s is told apart: %+v", name, e)
		}
	}
	for name, change := range map[string]func(*reins.Binding){
		"project":   func(b *reins.Binding) { b.Project = "q" },
		"resource":  func(b *reins.Binding) { b.Resource = "x" },
		"authority": func(b *reins.Binding) { b.AuthorityID = "x" },
		"revision":  func(b *reins.Binding) { b.Revision = 2 },
		"harness":   func(b *reins.Binding) { b.Session.Harness = "x" },
		"native":    func(b *reins.Binding) { b.Session.Native = "x" },
		"session":   func(b *reins.Binding) { b.Session = nil },
		"actor":     func(b *reins.Binding) { b.Actor = "x" },
		"role":      func(b *reins.Binding) { b.Role = reins.RoleHuman },
		"peer":      func(b *reins.Binding) { b.Peer = "x" },
		"source":    func(b *reins.Binding) { b.Source = reins.SourceMCP },
		"scope":     func(b *reins.Binding) { b.Scope = "" },
		"run":       func(b *reins.Binding) { b.Run = "x" },
		"all":       func(b *reins.Binding) { *b = reins.Binding{} },
	} {
		b := agent(1)
		change(&b)
		refused(name, c.Token, b)
	}
	half := c.Token[:len(c.Token)-1]
	for name, token := range map[string]reins.Token{
		"none": "", "made up": "reins_x", "cut": half, "changed": half + "~", "control characters": "a\r\nX: y", "long": reins.Token(bytes.Repeat([]byte("x"), 1<<16)),
	} {
		refused("token "+name, token, agent(1))
	}
	gone := w.issue(agent(1), 0)
	if err := w.Revoke(w.ctx, gone.ID); err != nil {
		t.Fatal(err)
	}
	refused("revoked", gone.Token, agent(1))
	l := w.acquire(c)
	if err := l.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	refused("used up", c.Token, agent(1))
}

func replaces(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 0)
	first := w.acquire(c)
	g := newGate()
	w.set(nil, g.hold)
	running := w.do(first, navigate("https://a.example/"))
	w.arrived(g)
	second := w.acquire(c)
	w.ended(first, "replaced")
	w.closed(running.done, "the running operation")
	w.want(running.err, reins.CodeLeaseEnded)
	w.set(nil, nil)
	if second.Authority().LeaseID == first.Authority().LeaseID || !second.IsCurrent(second.Authority()) {
		t.Error("the second lease is not one of its own")
	}
	if second.IsCurrent(first.Authority()) {
		t.Error("the older authority is current")
	}
	if err := first.Release(w.ctx); err != nil { // of nothing
		t.Error(err)
	}
	if _, err := second.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Error(err)
	}
}

func renews(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), time.Minute)
	l := w.acquire(c)
	if d := l.Expires().Sub(c.Expires); d > 50*time.Millisecond || d < -5*time.Second {
		t.Errorf("the lease expires %s after its capability", d)
	}
	before, old := l.Authority(), l.Expires()
	w.set(func(context.Context, reins.Binding) error { return errors.New("no") }, nil)
	_, err := l.Renew(w.ctx)
	w.want(err, reins.CodeDenied)
	if d := l.Expires().Sub(old).Abs(); d > 5*time.Second {
		t.Error("a denied renewal moved the expiry")
	}
	w.set(nil, nil)
	when, err := l.Renew(w.ctx)
	if err != nil || !when.After(old) || !l.Expires().Equal(when) {
		t.Errorf("renewed to %s (%v), before %s", when, err, old)
	}
	if after := l.Authority(); after.LeaseID != before.LeaseID || !l.IsCurrent(before) {
		t.Errorf("renewing changed the lease: %+v", after)
	}
	if last := w.asked[len(w.asked)-1]; !last.Equal(agent(1)) {
		t.Errorf("asked about %+v", last)
	}
}

func renewsOnce(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	asked, answer := newGate(), newGate()
	w.set(func(ctx context.Context, _ reins.Binding) error {
		asked.release()
		return answer.hold(ctx, reins.Operation{})
	}, nil)
	first := &doing{done: make(chan struct{})}
	go func() {
		defer close(first.done)
		_, first.err = l.Renew(w.ctx)
	}()
	w.closed(asked.open, "the host's question")
	_, err := l.Renew(w.ctx)
	w.want(err, reins.CodeBusy)
	answer.release()
	w.closed(first.done, "the first renewal")
	w.want(first.err, "")
}

func releases(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	a, b := w.lease(agent(1)), w.lease(agent(1))
	g := newGate()
	w.set(nil, g.hold)
	mine := w.do(a, navigate("https://mine.example/"))
	w.arrived(g)
	more := w.do(a, navigate("https://more.example/"))
	others := w.do(b, navigate("https://others.example/"))
	for range 2 {
		if err := a.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.ended(a, "released")
	for _, d := range []*doing{mine, more} {
		w.closed(d.done, "an operation of the lease")
		w.want(d.err, reins.CodeLeaseEnded)
	}
	g.release()
	w.closed(others.done, "another's operation")
	w.want(others.err, "")
}

func authority(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 0)
	l := w.acquire(c)
	idle := l.Authority()
	if idle.RuntimeID == "" || idle.Generation == "" || idle.Incarnation != 0 || idle.CapabilityID != c.ID || idle.LeaseID == "" || !idle.Binding.Equal(agent(1)) {
		t.Errorf("authority %+v", idle)
	}
	if !l.IsCurrent(idle) || l.IsCurrent(reins.Authority{}) {
		t.Error("current is not what the lease says")
	}
	idle.Binding.Session.Native = "changed by its reader"
	if l.IsCurrent(idle) || !l.IsCurrent(l.Authority()) {
		t.Error("the reader of an authority changes the lease")
	}
	if _, err := l.Do(w.ctx, navigate("https://a.example/")); err != nil {
		t.Fatal(err)
	}
	first := l.Authority()
	if first.Incarnation != 1 || !l.IsCurrent(first) {
		t.Errorf("authority with a browser %+v", first)
	}
	if err := r.Terminate(w.ctx); err != nil {
		t.Fatal(err)
	}
	if l.IsCurrent(first) || l.Authority().Incarnation != 0 || !l.IsCurrent(l.Authority()) {
		t.Error("an authority of an ended incarnation is current, or the lease did not outlive it")
	}
	if _, err := l.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Fatal(err)
	}
	if now := l.Authority(); now.Incarnation != 2 || l.IsCurrent(first) {
		t.Errorf("authority with the next browser %+v", now)
	}
}

func expires(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.acquire(w.issue(agent(1), time.Second))
	kept := w.acquire(w.issue(agent(1), 3*time.Second))
	g := newGate()
	w.set(nil, g.hold)
	running := w.do(l, navigate("https://a.example/"))
	w.ended(l, "expired")
	w.closed(running.done, "the running operation")
	w.want(running.err, reins.CodeLeaseEnded)
	if _, err := kept.Renew(w.ctx); err != nil {
		t.Errorf("a lease that has not expired: %v", err)
	}
}

func leasedArtifacts(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	a, b, h := w.lease(agent(1)), w.lease(agent(1)), w.lease(person("ada"))
	data := bytes.Repeat([]byte("0123456789abcdef"), 100<<10) // more than a chunk
	mine, err := w.Artifacts(key).Put(w.ctx, reins.Artifact{Kind: "upload", LeaseID: a.Authority().LeaseID}, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lease reins.Lease
		sees  int
	}{"its lease": {a, 1}, "another agent": {b, 0}, "a person": {h, 1}} {
		res, err := c.lease.Do(w.ctx, reins.Call{Action: reins.ListArtifacts{}})
		if err != nil || len(res.Artifacts) != c.sees {
			t.Errorf("%s sees %+v, %v", name, res, err)
		}
		var got bytes.Buffer
		for c.sees == 1 && got.Len() < len(data) {
			res, err := c.lease.Do(w.ctx, reins.Call{Action: reins.ReadArtifact{Artifact: mine.ID, Offset: int64(got.Len())}})
			if err != nil || len(res.Data) == 0 {
				t.Fatalf("%s reads: %v", name, err)
			}
			got.Write(res.Data)
		}
		if c.sees == 1 && !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%s read other bytes", name)
		}
	}
	_, err = b.Do(w.ctx, reins.Call{Action: reins.ReadArtifact{Artifact: mine.ID}})
	w.want(err, reins.CodeNotFound)
	_, err = b.Do(w.ctx, reins.Call{Action: reins.DeleteArtifact{Artifact: mine.ID}})
	w.want(err, reins.CodeNotFound)
	if !b.IsCurrent(b.Authority()) {
		t.Error("a refusal ended the lease")
	}
	if _, err := a.Do(w.ctx, reins.Call{Action: reins.DeleteArtifact{Artifact: mine.ID}}); err != nil {
		t.Error(err)
	}
	if all, err := w.Artifacts(key).List(w.ctx); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

func subscribes(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	_, err := l.Subscribe(w.ctx, reins.SubscribeOptions{})
	w.want(err, reins.CodeDenied)
	if err := l.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	_, err = l.Subscribe(w.ctx, reins.SubscribeOptions{})
	w.want(err, reins.CodeLeaseEnded)
}

// leftCallers: a call whose context has ended before it says so, and does
// nothing.
func leftCallers(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	l := w.lease(agent(1))
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := l.Do(ctx, navigate("https://a.example/"))
	w.want(err, reins.CodeCancelled)
	_, err = l.Renew(ctx)
	w.want(err, reins.CodeCancelled)
	_, err = w.Issue(ctx, agent(1), 0)
	w.want(err, reins.CodeCancelled)
	if urls := w.urls(); len(urls) != 0 {
		t.Errorf("came to the gate: %v", urls)
	}
	if !l.IsCurrent(l.Authority()) {
		t.Error("a caller that left took the lease along")
	}
}
