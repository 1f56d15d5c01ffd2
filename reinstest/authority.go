package reinstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var attachTests = map[string]func(*testing.T, Factory){
	"ATT-1 and ATT-2 revisions":       revisions,
	"ATT-3 and ATT-4 a newer session": reattaches,
}

func revisions(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	w.want(r.Attach(w.ctx, reins.Attachment{Session: &session}), reins.CodeInvalidInput)
	w.want(r.Attach(w.ctx, reins.Attachment{AuthorityID: "a b", Revision: 3}), reins.CodeInvalidInput)
	if err := r.Attach(w.ctx, attached(1)); err != nil { // the same again
		t.Error(err)
	}
	if err := r.Attach(w.ctx, attached(5)); err != nil {
		t.Fatal(err)
	}
	stale := w.want(r.Attach(w.ctx, attached(4)), reins.CodeStaleRevision)
	other := attached(5)
	other.AuthorityID = "another"
	conflict := w.want(r.Attach(w.ctx, other), reins.CodeConflict)
	for _, e := range []*reins.Error{stale, conflict} {
		if e.Details["revision"] != uint64(5) {
			t.Errorf("%v does not name the current revision: %v", e, e.Details)
		}
	}
	if err := r.Attach(w.ctx, reins.Attachment{AuthorityID: "boss", Revision: 6}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Issue(w.ctx, agent(5), 0)
	w.want(err, reins.CodeStaleRevision)
	_, err = w.Issue(w.ctx, agent(6), 0) // detached
	w.want(err, reins.CodeConflict)
	if all, err := w.List(w.ctx, "p"); err != nil || len(all) != 1 || all[0].Attachment.Revision != 6 || all[0].Attachment.Session != nil {
		t.Errorf("list %+v, %v", all, err)
	}
}

func reattaches(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	unused := w.issue(agent(1), 0)
	a, h := w.lease(agent(1)), w.lease(person("ada"))
	if _, err := a.Do(w.ctx, navigate("https://first.example/")); err != nil {
		t.Fatal(err)
	}
	incarnation := h.Authority().Incarnation
	g := newGate()
	w.set(nil, g.hold)
	running := w.do(a, navigate("https://running.example/"))
	w.arrived(g)
	queued := w.do(a, navigate("https://queued.example/"))
	if err := r.Attach(w.ctx, attached(2)); err != nil {
		t.Fatal(err)
	}
	w.ended(a, "detached")
	for _, d := range []*doing{running, queued} {
		w.closed(d.done, "the end of an operation of before")
		if e := w.want(d.err, reins.CodeLeaseEnded); e.Details["reason"] != "detached" {
			t.Errorf("it ended by %v", e.Details)
		}
	}
	if urls := w.urls(); urls[len(urls)-1] != "https://running.example/" {
		t.Errorf("came to the gate: %v", urls)
	}
	_, err := w.Acquire(w.ctx, unused.Token, unused.Binding)
	w.want(err, reins.CodeUnauthorized)
	w.set(nil, nil)
	if _, err := h.Do(w.ctx, navigate("https://person.example/")); err != nil {
		t.Errorf("a person's lease: %v", err)
	}
	if now := h.Authority().Incarnation; now != incarnation || incarnation == 0 {
		t.Errorf("incarnation %d, before %d (ATT-5)", now, incarnation)
	}
	if _, err := w.lease(agent(2)).Do(w.ctx, navigate("https://second.example/")); err != nil {
		t.Error(err)
	}
}

var capabilityTests = map[string]func(*testing.T, Factory){
	"CAP-2 the host is asked":        asksHost,
	"CAP-3 who may get one":          fitsAttachment,
	"CAP-4 the token hides":          hidesToken,
	"CAP-5 lives and bounds":         boundsCapabilities,
	"CAP-6 revoke":                   revokes,
	"CAP-7 verbs":                    permitsVerbs,
	"HK-4 hooks that fail are a no":  failingHooks,
	"GATE-1 the gate knows and says": gates,
}

func asksHost(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 90*time.Second)
	if len(w.asked) != 1 || !w.asked[0].Equal(agent(1)) || !c.Binding.Equal(agent(1)) {
		t.Errorf("asked about %+v, issued for %+v", w.asked, c.Binding)
	}
	if left := time.Until(c.Expires); left < 30*time.Second || left > 91*time.Second {
		t.Errorf("it lives %s", left)
	}
	if c.ID == "" || len(c.Token) < 43 {
		t.Errorf("capability %+v", c)
	}
}

func failingHooks(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{AuthorizeTimeout: 100 * time.Millisecond, GateTimeout: 100 * time.Millisecond})
	w.register(reins.BrowserSpec{})
	hang := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for _, c := range []struct {
		name string
		no   func(context.Context) error
		code reins.Code
	}{
		{"error", func(context.Context) error { return errors.New("no") }, reins.CodeDenied},
		{"panic", func(context.Context) error { panic("no") }, reins.CodeDenied},
		{"silence", hang, reins.CodeTimeout},
	} {
		w.set(func(ctx context.Context, _ reins.Binding) error { return c.no(ctx) }, nil)
		_, err := w.Issue(w.ctx, agent(1), 0)
		if e := want(t, err, c.code); e.Phase != reins.PhaseHook {
			t.Errorf("%s: phase %q", c.name, e.Phase)
		}
		w.set(nil, func(ctx context.Context, _ reins.Operation) error { return c.no(ctx) })
		_, err = w.lease(person("ada")).Do(w.ctx, navigate("https://a.example/"))
		want(t, err, c.code)
	}
}

func fitsAttachment(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	for name, c := range map[string]struct {
		change func(*reins.Binding)
		code   reins.Code
	}{
		"another revision":  {func(b *reins.Binding) { b.Revision = 2 }, reins.CodeConflict},
		"another session":   {func(b *reins.Binding) { b.Session.Native = "x" }, reins.CodeConflict},
		"another authority": {func(b *reins.Binding) { b.AuthorityID = "x" }, reins.CodeConflict},
		"no session":        {func(b *reins.Binding) { b.Session = nil }, reins.CodeInvalidInput},
		"no actor":          {func(b *reins.Binding) { b.Actor = "" }, reins.CodeInvalidInput},
		"unprintable":       {func(b *reins.Binding) { b.Actor = "a\nb" }, reins.CodeInvalidInput},
		"no UTF-8":          {func(b *reins.Binding) { b.Peer = "\xff" }, reins.CodeInvalidInput},
		"no role":           {func(b *reins.Binding) { b.Role = "boss" }, reins.CodeInvalidInput},
		"no source":         {func(b *reins.Binding) { b.Source = "fax" }, reins.CodeInvalidInput},
		"no resource":       {func(b *reins.Binding) { b.Resource = "none" }, reins.CodeNotFound},
	} {
		b := agent(1)
		c.change(&b)
		if _, err := w.Issue(w.ctx, b, 0); reins.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("the host was asked about %+v", w.asked)
	}
	w.issue(person("ada"), 0)
}

func hidesToken(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 0)
	secret := string(c.Token)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %q", c, c, c.Token)} {
		if strings.Contains(text, secret) {
			t.Error("a token shows")
		}
	}
	_, err := w.Acquire(w.ctx, c.Token, agent(2))
	if e := w.want(err, reins.CodeUnauthorized); strings.Contains(fmt.Sprintf("%+v", e), secret) {
		t.Error("a token is in an error")
	}
	err = w.Revoke(w.ctx, secret)
	if e := w.want(err, reins.CodeNotFound); strings.Contains(fmt.Sprintf("%+v", e), secret) {
		t.Error("a token is in an error")
	}
}

func boundsCapabilities(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{CapabilitiesPerResource: 2, Capabilities: 3, CapabilityLife: time.Minute, CapabilityLifeMax: time.Minute})
	w.register(reins.BrowserSpec{})
	for _, life := range []time.Duration{1, time.Millisecond, time.Second - 1, time.Minute + 1, time.Hour, -1, -time.Second} {
		_, err := w.Issue(w.ctx, agent(1), life)
		w.want(err, reins.CodeInvalidInput)
	}
	first := w.issue(agent(1), 0)
	w.issue(person("ada"), time.Second)
	_, err := w.Issue(w.ctx, agent(1), 0)
	w.want(err, reins.CodeQuotaExceeded)
	other := reins.ResourceKey{Project: "q", ID: "two"}
	if _, err := w.Register(w.ctx, reins.Registration{Key: other}); err != nil {
		t.Fatal(err)
	}
	b := person("ada")
	b.Project, b.Resource = other.Project, other.ID
	w.issue(b, 0)
	_, err = w.Issue(w.ctx, b, 0)
	w.want(err, reins.CodeQuotaExceeded)
	if err := w.Revoke(w.ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	w.issue(agent(1), 0)
	w.until("the expiry of the shortest", func() bool { _, err := w.Issue(w.ctx, b, 0); return err == nil })
}

func revokes(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 0)
	l, other := w.acquire(c), w.lease(agent(1))
	g := newGate()
	w.set(nil, g.hold)
	running := w.do(l, navigate("https://a.example/"))
	w.arrived(g)
	if err := w.Revoke(w.ctx, c.ID); err != nil {
		t.Fatal(err)
	}
	w.ended(l, "revoked")
	w.closed(running.done, "the running operation")
	w.want(running.err, reins.CodeLeaseEnded)
	w.want(w.Revoke(w.ctx, c.ID), reins.CodeNotFound)
	w.want(w.Revoke(w.ctx, "nothing"), reins.CodeNotFound)
	w.want(w.Revoke(w.ctx, "../x"), reins.CodeNotFound)
	w.want(w.Revoke(w.ctx, ""), reins.CodeNotFound)
	w.set(nil, nil)
	if _, err := other.Do(w.ctx, navigate("https://b.example/")); err != nil {
		t.Errorf("another's lease: %v", err)
	}
}

func permitsVerbs(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{Verbs: []reins.Verb{reins.VerbNavigate}})
	a := w.lease(agent(1))
	_, err := a.Do(w.ctx, reins.Call{Action: reins.Snapshot{}})
	w.want(err, reins.CodeDenied)
	if _, err := a.Do(w.ctx, navigate("https://a.example/")); err != nil {
		t.Error(err)
	}
	if _, err := w.lease(person("ada")).Do(w.ctx, reins.Call{Action: reins.ListTabs{}}); err != nil {
		t.Errorf("a person lists tabs: %v", err)
	}
}

func gates(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	w.register(reins.BrowserSpec{})
	a := w.lease(agent(1))
	res, err := a.Do(w.ctx, navigate("https://a.example/"))
	if err != nil {
		t.Fatal(err)
	}
	op := w.passed[0]
	mine := a.Authority()
	if op.ID == "" || op.Class != reins.ClassAgentAction || op.Verb != reins.VerbNavigate || !op.Authority.Binding.Equal(agent(1)) ||
		op.Authority.LeaseID != mine.LeaseID || op.Authority.CapabilityID != mine.CapabilityID || op.Started.IsZero() {
		t.Errorf("the gate saw %+v", op)
	}
	if m := res.Meta; m.Operation != op.ID || m.LeaseID != mine.LeaseID || m.CapabilityID != mine.CapabilityID || m.Incarnation != 1 || m.Started.IsZero() {
		t.Errorf("the result was made under %+v (LSE-7)", m)
	}
}
