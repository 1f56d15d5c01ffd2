package host

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins"
)

// TestRegister is RES-1, RES-2 and RES-6.
func TestRegister(t *testing.T) {
	bubble(t, bubbleOptions{limits: reins.Limits{Resources: 4}}, func(t *testing.T, w *world, r *resource) {
		same := reins.Registration{Key: key1, Attachment: attached(1)}
		got, err := w.host.Register(ctx0, same)
		if err != nil || got.Created.IsZero() || got.Spec.Engine != reins.EngineFull {
			t.Fatalf("again: %+v, %v", got, err)
		}
		other := same
		other.Spec.Engine = reins.EngineShell
		_, err = w.host.Register(ctx0, other)
		code(t, err, reins.CodeConflict)
		other = same
		other.Attachment.Revision = 2
		_, err = w.host.Register(ctx0, other)
		code(t, err, reins.CodeConflict)
		for _, bad := range []reins.Registration{
			{Key: reins.ResourceKey{Project: "a b", ID: "x"}},
			{Key: reins.ResourceKey{Project: "p", ID: strings.Repeat("x", 129)}},
			{Key: reins.ResourceKey{Project: "p", ID: "x"}, Spec: reins.BrowserSpec{Backend: reins.BackendDocker}},
			{Key: reins.ResourceKey{Project: "p", ID: "x"}, Spec: reins.BrowserSpec{Egress: reins.EgressPolicy{AllowPrivate: []string{"%%%"}}}},
			{Key: reins.ResourceKey{Project: "p", ID: "res_aaaaaaaaaaaaaaaaaaaaaaaaaa"}},
		} {
			_, err := w.host.Register(ctx0, bad)
			code(t, err, reins.CodeInvalidInput)
		}
		made, err := w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "p"}})
		if err != nil || made.Key.ID == "" {
			t.Fatalf("without an ID: %+v, %v", made, err)
		}
		if len(w.cells) != 0 {
			t.Error("registering started a browser")
		}
		retire := func(key reins.ResourceKey) {
			h, err := w.host.Open(ctx0, key)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(h.Retire(ctx0), h.Retire(ctx0)); err != nil {
				t.Fatal(err)
			}
		}
		retire(made.Key) // leaves no tombstone
		_, err = w.host.Open(ctx0, made.Key)
		code(t, err, reins.CodeNotFound)
		for i := range 3 {
			key := reins.ResourceKey{Project: "p", ID: fmt.Sprint("n", i)}
			if _, err := w.host.Register(ctx0, reins.Registration{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "more"}})
		if e := code(t, err, reins.CodeQuotaExceeded); e.Recovery != reins.RecoverWait {
			t.Errorf("recovery %s", e.Recovery)
		}
		for i := range 3 {
			retire(reins.ResourceKey{Project: "p", ID: fmt.Sprint("n", i)})
		}
		retire(key1)
		_, err = w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "p"}})
		if e := code(t, err, reins.CodeQuotaExceeded); e.Recovery != reins.RecoverNone {
			t.Errorf("recovery %s when tombstones fill the bound", e.Recovery)
		}
		_, err = w.host.Register(ctx0, same)
		code(t, err, reins.CodeRetired)
		_, err = w.host.Open(ctx0, key1)
		code(t, err, reins.CodeRetired)
	})
}

// TestRetire is RES-5: fenced at once, quiet before it returns, and repeatable
// while a step fails.
func TestRetire(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		l := w.lease(t, agentOf(key1, 1))
		if _, err := w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "a.txt"}, strings.NewReader("a")); err != nil {
			t.Fatal(err)
		}
		w.set("do", late)
		running := start(l, reins.Call{Action: open})
		w.set("room close", failBefore)
		if err := r.Retire(ctx0); err == nil {
			t.Fatal("a failed step was not told")
		}
		e := code(t, <-running, reins.CodeLeaseEnded)
		if e.Details["reason"] != reasonRevoked {
			t.Errorf("details %v", e.Details)
		}
		code(t, r.Start(ctx0), reins.CodeRetired)
		_, err := w.host.Issue(ctx0, personOf(key1), 0)
		code(t, err, reins.CodeRetired)
		_, err = w.host.Artifacts(key1).Put(ctx0, reins.Artifact{Kind: "upload", Name: "b.txt"}, strings.NewReader("b"))
		code(t, err, reins.CodeRetired)
		if err := r.Retire(ctx0); err != nil {
			t.Fatalf("the second try: %v", err)
		}
		<-r.done
		gen, _ := w.host.current()
		if n, bytes := gen.store.Usage(key1); n != 0 || bytes != 0 {
			t.Errorf("%d artifacts, %d bytes left", n, bytes)
		}
	})
}

// TestList is RES-3.
func TestList(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, r *resource) {
		for _, key := range []reins.ResourceKey{{Project: "p", ID: "a"}, {Project: "q", ID: "b"}} {
			if _, err := w.host.Register(ctx0, reins.Registration{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		l := w.lease(t, agentOf(key1, 1))
		w.lease(t, personOf(key1))
		w.set("do", hang)
		start(l, reins.Call{Action: open})
		list, err := w.host.List(ctx0, "p")
		if err != nil || len(list) != 2 || list[0].Key.ID != "a" || list[0].State != reins.StateStopped || list[0].Incarnation != 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		one := list[1]
		if one.State != reins.StateRunning || one.Incarnation != 1 || one.Connection != 1 || one.StartedAt.IsZero() ||
			one.Participants != 2 || one.Control.State != reins.ControlAgentActive || one.Readiness.Overall != "ready" || !one.Attachment.Equal(attached(1)) {
			t.Errorf("%+v", one)
		}
		_, err = w.host.List(ctx0, "not a project")
		code(t, err, reins.CodeInvalidInput)
	})
}

// TestSharedWorkspace is RES-5 and WSP-2: a workspace that several resources of a
// project name goes with the last of them.
func TestSharedWorkspace(t *testing.T) {
	bubble(t, bubbleOptions{}, func(t *testing.T, w *world, _ *resource) {
		retire := func(project, id string) {
			r, err := w.host.Open(ctx0, reins.ResourceKey{Project: project, ID: id})
			if err == nil {
				err = r.Retire(ctx0)
			}
			if err != nil {
				t.Error(err)
			}
		}
		removed := func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return fmt.Sprint(w.removed)
		}
		for _, key := range []reins.ResourceKey{{Project: "p", ID: "a"}, {Project: "p", ID: "b"}, {Project: "p", ID: "c"}, {Project: "q", ID: "a"}} {
			reg := reins.Registration{Key: key, Spec: reins.BrowserSpec{Workspace: "desk"}}
			if key.ID == "c" {
				reg.Spec.Workspace = "shelf"
			}
			if _, err := w.host.Register(ctx0, reg); err != nil {
				t.Fatal(err)
			}
		}
		retire("p", "a")
		if got := removed(); got != "[]" {
			t.Errorf("removed %s while another resource names it", got)
		}
		var both sync.WaitGroup
		for _, id := range []string{"b", "c"} {
			both.Go(func() { retire("p", id) })
		}
		both.Wait()
		if got := removed(); got != "[p/desk p/shelf]" && got != "[p/shelf p/desk]" {
			t.Errorf("removed %s", got)
		}
		// Several at once: exactly one of them removes it.
		for n := range 8 {
			if _, err := w.host.Register(ctx0, reins.Registration{Key: reins.ResourceKey{Project: "q", ID: fmt.Sprint("n", n)}, Spec: reins.BrowserSpec{Workspace: "desk"}}); err != nil {
				t.Fatal(err)
			}
			both.Go(func() { retire("q", fmt.Sprint("n", n)) })
		}
		both.Wait()
		if strings.Contains(removed(), "q/") {
			t.Errorf("removed %s while another resource names it", removed())
		}
		retire("q", "a")
		if strings.Count(removed(), "q/desk") != 1 {
			t.Errorf("removed %s", removed())
		}
	})
}
