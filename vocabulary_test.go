package reins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

func TestCodes(t *testing.T) {
	seen := map[reins.Code]bool{}
	for _, c := range reins.Codes() {
		if seen[c.Code] || c.When == "" || c.Status < 400 || c.Status > 599 || c.Recovery == "" {
			t.Errorf("row %+v", c)
		}
		seen[c.Code] = true
		if got := c.Code.Info(); got != c {
			t.Errorf("Info(%s) = %+v", c.Code, got)
		}
	}
	if len(seen) != 42 {
		t.Errorf("%d codes; the closed set has 42", len(seen))
	}
	if got := reins.Code("made_up").Info().Code; got != reins.CodeInternal {
		t.Errorf("an unknown code counts as %s", got)
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("secret path")
	e := reins.Errorf(reins.CodeBusy, "the workspace %q is in use: %w", "w", cause).With("workspace", "w").In(reins.PhaseStart)
	if !errors.Is(e, cause) || !errors.Is(e, &reins.Error{Code: reins.CodeBusy}) || errors.Is(e, &reins.Error{Code: reins.CodeLocked}) {
		t.Errorf("Is does not see cause and code of %v", e)
	}
	b, _ := json.Marshal(e.Because(cause))
	if strings.Contains(string(b), "Cause") || !strings.Contains(string(b), `"phase":"start"`) {
		t.Errorf("JSON: %s", b)
	}
	if got := reins.AsError(fmt.Errorf("outer: %w", e)); got != e {
		t.Errorf("AsError lost the error: %v", got)
	}
	for err, want := range map[error]reins.Code{
		context.Canceled: reins.CodeCancelled, context.DeadlineExceeded: reins.CodeTimeout, cause: reins.CodeInternal,
	} {
		if got := reins.AsError(err); got.Code != want || strings.Contains(got.Message, "secret") {
			t.Errorf("AsError(%v) = %v", err, got)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	if reins.ContextError(ctx) != nil {
		t.Error("a live context has an error")
	}
	cancel(e)
	if got := reins.ContextError(ctx); got != e {
		t.Errorf("ContextError = %v; want the named cause", got)
	}
}

func TestLimits(t *testing.T) {
	l, err := reins.Limits{}.WithDefaults()
	if err != nil || l.Queue != 128 || l.CapabilityLife != 5*time.Minute || l.Message != 64<<20 || l.Tabs != 32 {
		t.Errorf("defaults: %+v, %v", l, err)
	}
	names := map[string]bool{}
	for _, i := range reins.LimitTable() {
		if names[i.Name] || i.Min > i.Default || i.Default > i.Max || i.What == "" || i.Rule == "" {
			t.Errorf("row %+v", i)
		}
		names[i.Name] = true
	}
	var zero map[string]any
	b, _ := json.Marshal(l)
	if json.Unmarshal(b, &zero); len(zero) != len(names) {
		t.Errorf("%d fields have a JSON name, %d rows in the table", len(zero), len(names))
	}
	for name := range zero {
		if !names[name] {
			t.Errorf("field %s has no row", name)
		}
	}
	for _, bad := range []reins.Limits{{Queue: -1}, {Queue: 1025}, {CapabilityLife: time.Millisecond}, {CapabilityLife: 2 * time.Hour}} {
		if _, err := bad.WithDefaults(); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	_, err = reins.Limits{CloseGrace: time.Hour}.WithDefaults()
	if e := reins.AsError(err); e == nil || e.Message != "limit close_grace is 1h0m0s; use 100ms to 30s" {
		t.Errorf("the sentence names neither value nor range: %v", err)
	}
}

func agent() reins.Binding {
	return reins.Binding{Project: "p", Resource: "r", AuthorityID: "a", Revision: 1,
		Session: &reins.Session{Harness: "opencode", Native: "456"}, Actor: "agent one", Role: reins.RoleAgent, Peer: "pid 12", Source: reins.SourceMCP}
}

func TestBinding(t *testing.T) { // CAP-1, CAP-3
	if err := agent().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*reins.Binding){
		"no project":          func(b *reins.Binding) { b.Project = "" },
		"path in project":     func(b *reins.Binding) { b.Project = "a/b" },
		"no session":          func(b *reins.Binding) { b.Session = nil },
		"revision 0":          func(b *reins.Binding) { b.Revision = 0 },
		"human with session":  func(b *reins.Binding) { b.Role = reins.RoleHuman },
		"unknown role":        func(b *reins.Binding) { b.Role = "root" },
		"unknown source":      func(b *reins.Binding) { b.Source = "web" },
		"line break in actor": func(b *reins.Binding) { b.Actor = "a\nb" },
		"no peer":             func(b *reins.Binding) { b.Peer = "" },
		"long run":            func(b *reins.Binding) { b.Run = strings.Repeat("x", 257) },
		"bad UTF-8":           func(b *reins.Binding) { b.Actor = "\xff" },
	} {
		b := agent()
		change(&b)
		if reins.CodeOf(b.Validate()) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", name, b.Validate())
		}
		if b.Equal(agent()) {
			t.Errorf("%s: still equal", name)
		}
	}
	a, b := agent(), agent()
	if !a.Equal(b) {
		t.Error("equal bindings with distinct session pointers differ")
	}
	b.Session.Native = "457"
	if a.Equal(b) {
		t.Error("another session counts as equal")
	}
}

func TestAttachment(t *testing.T) { // ATT-1
	s := &reins.Session{Harness: "h", Native: "n"}
	if reins.CodeOf(reins.Attachment{Session: s}.Validate()) != reins.CodeInvalidInput {
		t.Error("revision 0 with a session is accepted")
	}
	for _, ok := range []reins.Attachment{{}, {AuthorityID: "a", Revision: 1}, {AuthorityID: "a", Revision: 2, Session: s}} {
		if err := ok.Validate(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
}

func TestTokenHides(t *testing.T) { // CAP-4
	c := reins.Capability{ID: "cap", Token: "s3cret"}
	var log strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "capability", c, "token", c.Token)
	}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %x %q", c, c, c.Token, c.Token), log.String()} {
		if strings.Contains(s, "s3cret") || strings.Contains(s, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("the token shows in %q", s)
		}
	}
}

func TestBrowserSpec(t *testing.T) {
	s, err := reins.BrowserSpec{}.WithDefaults()
	if err != nil || s.Backend != reins.BackendProcess || s.Engine != reins.EngineFull || s.Locale != "en-US" || len(s.Verbs) != 6 {
		t.Errorf("defaults: %+v, %v", s, err)
	}
	for _, bad := range []reins.BrowserSpec{
		{Backend: "vm"}, {Engine: "gecko"}, {Engine: reins.EngineShell, Desktop: true}, {Scheduling: "random"},
		{Verbs: []reins.Verb{"eval"}}, {Verbs: []reins.Verb{reins.VerbReadArtifact}}, {TimeZone: "Mars/Base"},
		{TimeZone: "../etc/passwd"}, {Locale: "en_US; rm"}, {Workspace: "../x"}, {Egress: reins.EgressPolicy{MaxBytesUp: -1}},
	} {
		if _, err := bad.WithDefaults(); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
