package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/cell"
)

// STO-2, STO-3, RES-5, ATT-2: a server that starts again has what the one before
// acknowledged, and nothing that was retired.
func TestStartsWithWhatWasKept(t *testing.T) {
	dir := t.TempDir() + "/runtime"
	first := start(t, dir, nil)
	c := first.client("")
	kept := register(t, c, "kept", nil)
	made := register(t, c, "", nil)
	register(t, c, "retired", func(r *reins.Registration) { r.Spec.Workspace = "w" })
	r, err := c.Open(t.Context(), kept.Key)
	if err != nil {
		t.Fatal(err)
	}
	newer := reins.Attachment{AuthorityID: "host", Revision: 7, Session: &reins.Session{Harness: "h", Native: "two"}}
	if err := r.Attach(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	gone, err := c.Open(t.Context(), reins.ResourceKey{Project: "p", ID: "retired"})
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	capability, err := c.Issue(t.Context(), agentOf(made, reins.SourceAPI), 0)
	if err != nil {
		t.Fatal(err)
	}
	first.stop()

	second := start(t, dir, nil)
	c = second.client("")
	all, err := c.List(t.Context(), "p")
	if err != nil || len(all) != 2 {
		t.Fatalf("%d resources: %v", len(all), err)
	}
	for _, i := range all {
		want := map[string]reins.Registration{"kept": {Key: kept.Key, Attachment: newer, Created: kept.Created}, made.Key.ID: made}[i.Key.ID]
		if !i.Attachment.Equal(want.Attachment) || !i.Created.Equal(want.Created) {
			t.Errorf("%+v, want %+v", i.Registration, want)
		}
	}
	if again := register(t, c, made.Key.ID, nil); !again.Created.Equal(made.Created) { // RES-2, RES-6
		t.Errorf("registered anew: %+v", again)
	}
	_, err = c.Acquire(t.Context(), capability.Token, capability.Binding) // no lease is revived
	expect(t, err, reins.CodeUnauthorized)
	_, err = c.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "retired"}})
	expect(t, err, reins.CodeRetired)
	_, err = c.Open(t.Context(), reins.ResourceKey{Project: "p", ID: "retired"})
	expect(t, err, reins.CodeRetired)
	_, err = c.Issue(t.Context(), agentOf(kept, reins.SourceAPI), 0) // at revision 1
	expect(t, err, reins.CodeStaleRevision)
	_, err = c.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "res_abcdefghijklmnopqrstuvwxyz"}})
	expect(t, err, reins.CodeInvalidInput)
	if left, err := second.store.Unpurged(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// STO-3: what a kill left of a retirement the next start finishes, the workspace with
// it, before it serves anybody.
func TestFinishesRetirements(t *testing.T) {
	dir := t.TempDir() + "/runtime"
	first := start(t, dir, nil)
	register(t, first.truth, "a", func(r *reins.Registration) { r.Spec.Workspace = "w" })
	register(t, first.truth, "b", func(r *reins.Registration) { r.Spec.Workspace = "shared" })
	register(t, first.truth, "c", func(r *reins.Registration) { r.Spec.Workspace = "shared" })
	for _, id := range []string{"a", "b"} { // kept, and killed before the host was told
		if err := first.store.Retire(t.Context(), "x", reins.ResourceKey{Project: "p", ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	first.stop()
	second := start(t, dir, nil)
	if left, err := second.store.Unpurged(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v\n%s", left, err, second.log)
	}
	all, err := second.truth.List(t.Context(), "p")
	if err != nil || len(all) != 1 || all[0].Key.ID != "c" {
		t.Errorf("%v %v", all, err)
	}
}

// A registration that this host cannot take keeps nobody from being served, says why,
// and can be retired.
func TestCrippledRegistration(t *testing.T) {
	dir := t.TempDir() + "/runtime"
	first := start(t, dir, func(o *Options) {
		o.Backends = []cell.Backend{noBrowser{reins.BackendProcess}, noBrowser{reins.BackendDocker}}
	})
	register(t, first.truth, "boxed", func(r *reins.Registration) { r.Spec.Backend = reins.BackendDocker })
	register(t, first.truth, "plain", nil)
	first.stop()
	second := start(t, dir, nil)
	c := second.client("")
	all, err := c.List(t.Context(), "p")
	if err != nil || len(all) != 2 || all[0].Key.ID != "boxed" || all[0].State != reins.StateError || !strings.Contains(all[0].Readiness.Capabilities["browser"].Cause, "docker") {
		t.Fatalf("%+v %v", all, err)
	}
	key := reins.ResourceKey{Project: "p", ID: "boxed"}
	r, err := c.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, r.Start(t.Context()), reins.CodeInvalidInput)
	expect(t, r.Attach(t.Context(), reins.Attachment{AuthorityID: "x", Revision: 9}), reins.CodeInvalidInput)
	if err := r.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = c.Open(t.Context(), key)
	expect(t, err, reins.CodeRetired)
	second.stop()
	third := start(t, dir, nil)
	if all, err := third.truth.List(t.Context(), "p"); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}

// Where the store cannot keep a change, nothing of it takes effect, and the caller is
// told; a registration that the host refuses is not kept.
func TestKeptBeforeItIs(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", func(o *Options) { o.Limits.Resources = 1 })
	a := register(t, s.truth, "a", nil)
	_, err := s.truth.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "b"}})
	expect(t, err, reins.CodeQuotaExceeded)
	_, err = s.truth.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "c"}, Spec: reins.BrowserSpec{Backend: reins.BackendDocker}})
	expect(t, err, reins.CodeInvalidInput)
	if all, err := s.store.Resources(t.Context(), ""); err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := s.truth.Open(t.Context(), a.Key)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"attach": r.Attach(t.Context(), reins.Attachment{AuthorityID: "host", Revision: 2}),
		"retire": r.Retire(t.Context()),
	} {
		if err == nil {
			t.Errorf("%s is acknowledged and not kept", what)
		}
	}
	if all, err := s.host.List(t.Context(), "p"); err != nil || len(all) != 1 || all[0].Attachment.Revision != 1 || all[0].State == reins.StateDestroyed {
		t.Errorf("%v %v", all, err)
	}
	// GATE-1: no effect begins whose attempt is not kept.
	l := leaseOn(t, s, a)
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	expect(t, err, reins.CodeDenied)
	if ready := s.ready(t.Context()); ready["store"].State == stateReady {
		t.Errorf("ready without a store: %v", ready)
	}
}

func leaseOn(t *testing.T, s *site, reg reins.Registration) reins.Lease {
	t.Helper()
	c, err := s.truth.Issue(t.Context(), agentOf(reg, reins.SourceLibrary), 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.truth.Acquire(t.Context(), c.Token, c.Binding)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// GATE-1, GATE-3: the attempt is in the trail before the outcome, under one operation.
func TestAttemptBeforeEffect(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	reg := register(t, s.truth, "a", nil)
	l := leaseOn(t, s, reg)
	_, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	expect(t, err, reins.CodeStartupFailed)
	s.host.Stop(context.Background()) // all outcomes are told
	s.ledger.close()
	s.ledger = nil
	trail, err := s.client("").Audit(t.Context(), api.AuditQuery{Project: "p", Resource: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	operations := map[string]bool{}
	for _, e := range trail {
		if e.Record.Action == "snapshot" {
			seen = append(seen, string(e.Record.Outcome))
			operations[e.Record.Operation] = true
			if e.Record.Actor != "bot" || e.Record.LeaseID != l.Authority().LeaseID || e.Record.Revision != 1 {
				t.Errorf("%+v", e.Record)
			}
		}
	}
	if strings.Join(seen, " ") != "attempted failed" || len(operations) != 1 {
		t.Errorf("%v in %+v", seen, trail)
	}
}

// API-2: a fresh server makes one administrator's key, in a file that is its user's
// alone; it is told nowhere else, and no second one is made.
func TestFirstKey(t *testing.T) {
	dir := t.TempDir() + "/runtime"
	s := start(t, dir, nil)
	info, err := os.Stat(filepath.Join(dir, AdminKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	key := s.admin()
	keys, err := s.client(key).Keys(t.Context(), "")
	if err != nil || len(keys) != 1 || keys[0].Project != "" {
		t.Fatalf("%v %v", keys, err)
	}
	s.stop()
	again := start(t, dir, nil)
	if again.admin() != key {
		t.Error("another key was made")
	}
	// Whoever took the file away and revoked the key has no way in, as wished.
	if err := again.client(key).RevokeKey(t.Context(), keys[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = again.client(key).Keys(t.Context(), "")
	expect(t, err, reins.CodeUnauthorized)
	again.stop()
	third := start(t, dir, nil)
	_, err = third.client(key).Keys(t.Context(), "")
	expect(t, err, reins.CodeUnauthorized)
	for _, s := range []*site{s, again, third} {
		if strings.Contains(s.log.String(), key) {
			t.Error("the key is in the log")
		}
	}
}

// API-2, LSE-6: who may make, see and revoke keys; what was made under a key ends with
// it: lease, capability that nobody acquired yet, and stream.
func TestKeys(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	admin := s.client("")
	reg := register(t, admin, "a", nil)
	project, err := admin.CreateKey(t.Context(), api.KeyForm{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	b := agentOf(reg, reins.SourceMCP)
	agent, err := admin.CreateKey(t.Context(), api.KeyForm{Binding: &b})
	if err != nil {
		t.Fatal(err)
	}
	mine := s.client(project.Token)
	if all, err := mine.List(t.Context(), "p"); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	for what, err := range map[string]error{
		"other project": second(mine.List(t.Context(), "q")),
		"keys":          second(mine.Keys(t.Context(), "p")),
		"make a key":    second(mine.CreateKey(t.Context(), api.KeyForm{Project: "p"})),
		"revoke":        mine.RevokeKey(t.Context(), agent.ID),
		"audit of all":  second(mine.Audit(t.Context(), api.AuditQuery{})),
		"join another":  second(mine.Join(t.Context(), api.JoinForm{Actor: "m", Projects: []string{"q"}})),
		"join all":      second(mine.Join(t.Context(), api.JoinForm{Actor: "m", Projects: []string{"*"}})),
		"agent's key":   second(s.client(agent.Token).List(t.Context(), "p")),
	} {
		if reins.CodeOf(err) != reins.CodeDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := mine.Audit(t.Context(), api.AuditQuery{Project: "p"}); err != nil {
		t.Error(err)
	}
	unused, err := mine.Issue(t.Context(), agentOf(reg, reins.SourceAPI), 0)
	if err != nil {
		t.Fatal(err)
	}
	used, err := mine.Issue(t.Context(), agentOf(reg, reins.SourceAPI), 0)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := mine.Acquire(t.Context(), used.Token, used.Binding)
	if err != nil {
		t.Fatal(err)
	}
	events, err := mine.Events(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.RevokeKey(t.Context(), project.ID); err != nil {
		t.Fatal(err)
	}
	for range events { // until it ends
	}
	<-lease.Done()
	_, err = mine.List(t.Context(), "p")
	expect(t, err, reins.CodeUnauthorized)
	for _, c := range []reins.Capability{unused, used} {
		_, err = admin.Acquire(t.Context(), c.Token, c.Binding)
		expect(t, err, reins.CodeUnauthorized)
	}
	expect(t, admin.RevokeKey(t.Context(), project.ID), "")
	expect(t, admin.RevokeKey(t.Context(), "key_nothing"), reins.CodeNotFound)
	expect(t, admin.RevokeKey(t.Context(), project.Token), reins.CodeNotFound)
	if s := s.log.String(); strings.Contains(s, project.Token) || strings.Contains(s, agent.Token) {
		t.Error("a token is in the log")
	}
}

func second[T any](_ T, err error) error { return err }

// A key that is revoked while something is issued under it: nobody gets that.
func TestKeyEndsWhileIssuing(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	reg := register(t, s.truth, "a", nil)
	for range 50 {
		made, err := s.client("").CreateKey(t.Context(), api.KeyForm{Project: "p"})
		if err != nil {
			t.Fatal(err)
		}
		k := s.keys.find(reins.Token(made.Token))
		ended := make(chan error, 1)
		go func() { ended <- keeper{s.Server}.RevokeKey(context.Background(), api.Identity{}, made.ID) }()
		c, err := s.truth.Issue(as(t.Context(), who{key: k}), agentOf(reg, reins.SourceAPI), time.Minute)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err == nil {
			_, err = s.truth.Acquire(t.Context(), c.Token, c.Binding)
		}
		expect(t, err, reins.CodeUnauthorized)
	}
}

// API-5, LIFE-3: healthy, ready with reasons, and neither takes work while it ends.
func TestHealth(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	b := s.browser()
	if r := b.send("GET", "/healthz", ""); r.StatusCode != 200 || !strings.Contains(r.body, `"ok"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("GET", "/readyz", ""); r.StatusCode != 200 || !strings.Contains(r.body, `"ready":true`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("GET", "/metrics", ""); r.StatusCode != 200 || !strings.Contains(r.body, `reins_build_info{version="test"} 1`) || !strings.Contains(r.body, `route="GET /readyz"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	reg := register(t, s.truth, "a", nil)
	s.Drain(t.Context())
	r := b.send("GET", "/readyz", "")
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(r.body, "stopping") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := b.send("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	_, err := s.truth.Issue(t.Context(), agentOf(reg, reins.SourceAPI), 0)
	expect(t, err, reins.CodeNotReady)
	_, err = s.truth.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "late"}})
	expect(t, err, reins.CodeNotReady)
}
