package reinstest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

var resourceTests = map[string]func(*testing.T, Factory){
	"RES-1 register":           registers,
	"RES-2 same and different": registersAgain,
	"RES-3 list":               lists,
	"RES-5 retire":             retires,
	"RES-6 bound":              boundsResources,
	"refusals":                 refusesResources,
	"stopped":                  stops,
}

func registers(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	before := time.Now().Add(-time.Second)
	reg := reins.Registration{
		Key: key, Attachment: attached(1),
		Spec: reins.BrowserSpec{
			Scheduling: reins.PerTab, Locale: "de-DE", TimeZone: "Europe/Berlin",
			Verbs:      []reins.Verb{reins.VerbSnapshot, reins.VerbNavigate},
			Egress:     reins.EgressPolicy{AllowHosts: []string{"*.example.com"}, MaxBytesUp: 1 << 40},
			Navigation: reins.NavigationPolicy{Deny: []string{"bad.example.com"}},
		},
	}
	got, err := w.Register(w.ctx, reg)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := reg.Spec.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if got.Key != key || !got.Attachment.Equal(reg.Attachment) || !sameSpec(got.Spec, spec) || got.Created.Before(before) {
		t.Errorf("registered %+v", got)
	}
	for range 2 { // a made ID is another each time
		made, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "p"}})
		if err != nil || made.Key.Validate() != nil || made.Key == key {
			t.Fatalf("made %+v, %v", made, err)
		}
		if _, err := w.Open(w.ctx, made.Key); err != nil {
			t.Error(err)
		}
	}
	all, err := w.List(w.ctx, "p")
	if err != nil || len(all) != 3 {
		t.Fatalf("list %+v, %v", all, err)
	}
	for _, info := range all {
		if info.State != reins.StateStopped || info.Incarnation != 0 || !info.StartedAt.IsZero() {
			t.Errorf("registering started a browser: %+v", info)
		}
	}
}

// sameSpec compares specs; an empty list is the same as none.
func sameSpec(a, b reins.BrowserSpec) bool {
	text := func(s reins.BrowserSpec) string { return strings.ReplaceAll(fmt.Sprintf("%+v", s), "<nil>", "[]") }
	return text(a) == text(b)
}

func registersAgain(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	reg := reins.Registration{Key: key, Attachment: attached(1)}
	first, err := w.Register(w.ctx, reg)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Register(w.ctx, reg)
	if err != nil || !second.Created.Equal(first.Created) {
		t.Errorf("again: %+v, %v", second, err)
	}
	other := reg
	other.Attachment = attached(2)
	_, err = w.Register(w.ctx, other)
	w.want(err, reins.CodeConflict)
	other = reg
	other.Spec.Locale = "fr"
	_, err = w.Register(w.ctx, other)
	w.want(err, reins.CodeConflict)
	if _, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "q", ID: key.ID}}); err != nil {
		t.Errorf("the same ID in another project: %v", err)
	}
}

func lists(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	ids := []string{".", "..", "A", "a.b_c:d-e", strings.Repeat("x", 128)}
	for i := len(ids) - 1; i >= 0; i-- {
		if _, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "..", ID: ids[i]}}); err != nil {
			t.Fatalf("ID %q: %v", ids[i], err)
		}
		r, err := w.Open(w.ctx, reins.ResourceKey{Project: "..", ID: ids[i]})
		if err != nil {
			t.Fatalf("ID %q: %v", ids[i], err)
		}
		if err := r.Attach(w.ctx, attached(uint64(i)+1)); err != nil {
			t.Fatalf("ID %q: %v", ids[i], err)
		}
	}
	all, err := w.List(w.ctx, "..")
	if err != nil || len(all) != len(ids) {
		t.Fatalf("%d resources, %v", len(all), err)
	}
	for i, info := range all {
		if info.Key != (reins.ResourceKey{Project: "..", ID: ids[i]}) || info.Attachment.Revision != uint64(i)+1 {
			t.Errorf("place %d: %+v", i, info)
		}
		if info.Control.State != reins.ControlAgent || info.Readiness.Overall == "" {
			t.Errorf("incomplete: %+v", info)
		}
	}
	if none, err := w.List(w.ctx, "nobody"); err != nil || none == nil || len(none) != 0 {
		t.Errorf("a project without resources: %v, %v", none, err)
	}
}

func retires(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	if _, err := w.Artifacts(key).Put(w.ctx, reins.Artifact{Kind: "upload", Name: "a"}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	a, h := w.lease(agent(1)), w.lease(person("ada"))
	g := newGate()
	w.set(nil, g.hold)
	running := w.do(a, navigate("https://a.example/"))
	w.arrived(g)
	for range 3 {
		if err := r.Retire(w.ctx); err != nil {
			t.Fatalf("retire: %v", err)
		}
	}
	w.closed(running.done, "the running operation")
	if running.err == nil {
		t.Error("an operation went on past the end of its resource")
	}
	for _, l := range []reins.Lease{a, h} {
		w.closed(l.Done(), "the lease's end")
		if _, err := l.Do(w.ctx, navigate("https://b.example/")); err == nil {
			t.Error("a lease of a retired resource acts")
		}
	}
	_, err := w.Open(w.ctx, key)
	w.want(err, reins.CodeRetired)
	_, err = w.Register(w.ctx, reins.Registration{Key: key, Attachment: attached(1)})
	w.want(err, reins.CodeRetired)
	_, err = w.Issue(w.ctx, person("ada"), 0)
	w.want(err, reins.CodeRetired)
	_, err = w.Artifacts(key).List(w.ctx)
	w.want(err, reins.CodeRetired)
	w.want(r.Attach(w.ctx, attached(2)), reins.CodeRetired)
	w.want(r.Start(w.ctx), reins.CodeRetired)
	if now := r.Readiness(); now.Overall != "destroyed" {
		t.Errorf("readiness %+v", now)
	}
	if all, err := w.List(w.ctx, key.Project); err != nil || len(all) != 0 {
		t.Errorf("list %v, %v", all, err)
	}
}

func boundsResources(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{Resources: 2})
	for _, id := range []string{"a", "b"} {
		if _, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "p", ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"c", ""} {
		_, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "p", ID: id}})
		w.want(err, reins.CodeQuotaExceeded)
	}
	for _, id := range []string{"a", "b"} {
		r, err := w.Open(w.ctx, reins.ResourceKey{Project: "p", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Retire(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Register(w.ctx, reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "c"}})
	if e := w.want(err, reins.CodeQuotaExceeded); e.Recovery != reins.RecoverNone {
		t.Errorf("tombstones fill the bound, and the way out is %q", e.Recovery)
	}
}

func refusesResources(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	for _, reg := range []reins.Registration{
		{}, {Key: reins.ResourceKey{Project: "a b"}}, {Key: reins.ResourceKey{Project: "a/b", ID: "c"}},
		{Key: reins.ResourceKey{Project: "p", ID: strings.Repeat("x", 129)}},
		{Key: key, Attachment: reins.Attachment{Session: &session}},
		{Key: key, Attachment: reins.Attachment{AuthorityID: "a", Revision: 1, Session: &reins.Session{}}},
		{Key: key, Spec: reins.BrowserSpec{Engine: "netscape"}},
		{Key: key, Spec: reins.BrowserSpec{Verbs: []reins.Verb{"eval"}}},
		{Key: key, Spec: reins.BrowserSpec{TimeZone: "../etc"}},
		{Key: key, Spec: reins.BrowserSpec{Egress: reins.EgressPolicy{MaxBytesUp: -1}}},
	} {
		_, err := w.Register(w.ctx, reg)
		w.want(err, reins.CodeInvalidInput)
	}
	for _, k := range []reins.ResourceKey{{}, {Project: "p"}, {Project: "p", ID: "a/b"}, {Project: "é", ID: "a"}} {
		r, err := w.Open(w.ctx, k)
		w.want(err, reins.CodeInvalidInput)
		if r != nil {
			t.Error("a resource beside an error")
		}
	}
	r, err := w.Open(w.ctx, key)
	w.want(err, reins.CodeNotFound)
	if r != nil {
		t.Error("a resource beside an error")
	}
	_, err = w.List(w.ctx, "a b")
	w.want(err, reins.CodeInvalidInput)
	_, err = w.Events(w.ctx, "")
	w.want(err, reins.CodeInvalidInput)
	if all, err := w.List(w.ctx, "p"); err != nil || len(all) != 0 {
		t.Errorf("what was refused left %v, %v", all, err)
	}
}

// stops is LIFE-1 as seen through the ports.
func stops(t *testing.T, f Factory) {
	w := begin(t, f, reins.Limits{})
	r := w.register(reins.BrowserSpec{})
	c := w.issue(agent(1), 0)
	l := w.acquire(c)
	if _, err := l.Do(w.ctx, navigate("https://a.example/")); err != nil {
		t.Fatal(err)
	}
	events, err := w.Events(w.ctx, key.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.closed(l.Done(), "the lease's end")
	_, err = l.Do(w.ctx, navigate("https://b.example/"))
	w.want(err, reins.CodeRuntimeStopped)
	over := false
	for !over {
		select {
		case _, more := <-events:
			over = !more
		case <-time.After(patience):
			t.Fatal("the events do not end")
		}
	}
	_, err = w.Register(w.ctx, reins.Registration{Key: key})
	w.want(err, reins.CodeRuntimeStopped)
	_, err = w.Open(w.ctx, key)
	w.want(err, reins.CodeRuntimeStopped)
	_, err = w.List(w.ctx, "p")
	w.want(err, reins.CodeRuntimeStopped)
	_, err = w.Issue(w.ctx, agent(1), 0)
	w.want(err, reins.CodeRuntimeStopped)
	_, err = w.Acquire(w.ctx, c.Token, c.Binding)
	w.want(err, reins.CodeRuntimeStopped)
	w.want(w.Revoke(w.ctx, c.ID), reins.CodeRuntimeStopped)
	_, err = w.Events(w.ctx, "p")
	w.want(err, reins.CodeRuntimeStopped)
	_, err = w.Artifacts(key).List(w.ctx)
	w.want(err, reins.CodeRuntimeStopped)
	w.want(r.Start(w.ctx), reins.CodeRuntimeStopped)
	w.want(r.Attach(w.ctx, attached(2)), reins.CodeRuntimeStopped)
}
