package toolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/toolset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLease answers calls with a function and counts what is done to it.
type fakeLease struct {
	reins.Lease // for what no test needs
	bound       reins.Binding
	do          func(context.Context, reins.Call) (*reins.Result, error)

	mu                 sync.Mutex
	expires            time.Time
	done               chan struct{}
	calls              []reins.Action
	renewals, releases int
}

func lease(do func(context.Context, reins.Call) (*reins.Result, error)) *fakeLease {
	return &fakeLease{bound: binding(), do: do, expires: time.Now().Add(time.Minute), done: make(chan struct{})}
}

func (l *fakeLease) Authority() reins.Authority { return reins.Authority{Binding: l.bound} }
func (l *fakeLease) Done() <-chan struct{}      { return l.done }
func (l *fakeLease) Expires() time.Time         { l.mu.Lock(); defer l.mu.Unlock(); return l.expires }

func (l *fakeLease) Do(ctx context.Context, c reins.Call) (*reins.Result, error) {
	l.mu.Lock()
	l.calls = append(l.calls, c.Action)
	l.mu.Unlock()
	if l.do == nil {
		return &reins.Result{}, nil
	}
	return l.do(ctx, c)
}

func (l *fakeLease) Renew(context.Context) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals++
	l.expires = time.Now().Add(time.Minute)
	return l.expires, nil
}

func (l *fakeLease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releases++
	return nil
}

func binding() reins.Binding {
	return reins.Binding{
		Project: "p", Resource: "r", AuthorityID: "a", Revision: 1, Session: &reins.Session{Harness: "h", Native: "1"},
		Actor: "ann", Role: reins.RoleAgent, Peer: "local", Source: reins.SourceLibrary, Scope: "shop", Run: "run-7",
	}
}

// runtimeOf gives leases in order, then none.
type runtimeOf struct {
	mu     sync.Mutex
	leases []*fakeLease
}

func (r *runtimeOf) Acquire(_ context.Context, token reins.Token, b reins.Binding) (reins.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if string(token) != "secret" || !b.Equal(binding()) || len(r.leases) == 0 {
		return nil, reins.Errorf(reins.CodeUnauthorized, "the token or the binding is not valid")
	}
	l := r.leases[0]
	r.leases = r.leases[1:]
	return l, nil
}

func over(t *testing.T, l reins.Lease, o toolset.Options) *toolset.Set {
	t.Helper()
	s, err := toolset.New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func inRun() context.Context { return toolset.WithRun(context.Background(), "run-7") }

// TOOL-1: name, description, schema and call, with the arguments that models send
// and no part of an identity among them.
func TestTools(t *testing.T) {
	s := over(t, lease(nil), toolset.Options{Tools: []string{toolset.ToolsetFull}, People: true, Secrets: true})
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
		var schema struct {
			Type       string
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema.Type != "object" || tool.Description == "" || tool.Title == "" {
			t.Errorf("%s: %s, %v", tool.Name, tool.Schema, err)
		}
		for _, identity := range []string{"project", "resource", "session", "actor", "token", "run", "scope", "peer"} {
			if schema.Properties[identity] != nil {
				t.Errorf("%s takes %s", tool.Name, identity)
			}
		}
		if p := tool.Parameters(); len(p["properties"].(map[string]any)) != len(schema.Properties) {
			t.Errorf("%s: %v", tool.Name, p)
		}
		if tool.ReadOnly && tool.Destructive {
			t.Errorf("%s reads only and destroys", tool.Name)
		}
	}
	if len(names) != 24 || names[0] != "browser_navigate" {
		t.Errorf("%d tools: %v", len(names), names)
	}
	if six := over(t, lease(nil), toolset.Options{}).Tools(); len(six) != 6 {
		t.Errorf("%d tools by default", len(six))
	}
	verbs, err := toolset.Verbs()
	if err != nil || !slices.Contains(verbs, reins.VerbClick) {
		t.Error(verbs, err)
	}
}

// Wrong options are errors that name the thing; nothing is acquired.
func TestOptions(t *testing.T) {
	l := lease(nil)
	for name, make := range map[string]func() (*toolset.Set, error){
		"not nil":         func() (*toolset.Set, error) { return toolset.New(nil, toolset.Options{}) },
		"eval":            func() (*toolset.Set, error) { return toolset.New(l, toolset.Options{Tools: []string{"eval"}}) },
		"max_bytes":       func() (*toolset.Set, error) { return toolset.New(l, toolset.Options{SnapshotBytes: 7}) },
		`Scope is "bank"`: func() (*toolset.Set, error) { return toolset.New(l, toolset.Options{Scope: "bank"}) },
		`Run is "run-8"`:  func() (*toolset.Set, error) { return toolset.New(l, toolset.Options{Run: "run-8"}) },
		"token": func() (*toolset.Set, error) {
			return toolset.Open(&runtimeOf{}, reins.Capability{Binding: binding()}, toolset.Options{})
		},
		"project": func() (*toolset.Set, error) {
			return toolset.Open(&runtimeOf{}, reins.Capability{Token: "secret"}, toolset.Options{})
		},
	} {
		s, err := make()
		if reins.CodeOf(err) != reins.CodeInvalidInput || !strings.Contains(err.Error(), name) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := toolset.New(l, toolset.Options{Scope: "shop", Run: "run-7"}); err != nil {
		t.Error(err)
	}
}

// TOOL-1: the run of a call's context must be the one that the capability is
// bound to; nothing is done for another, or for none.
func TestRunMustMatch(t *testing.T) {
	for _, test := range []struct {
		bound, run string
		o          toolset.Options
		ok         bool
	}{
		{"run-7", "run-7", toolset.Options{}, true},
		{"run-7", "run-7", toolset.Options{Run: "run-7"}, true},
		{"run-7", "run-8", toolset.Options{}, false},
		{"run-7", "", toolset.Options{}, false},
		{"", "run-7", toolset.Options{}, false},
		{"", "", toolset.Options{}, true},
		{"run-7", "", toolset.Options{RunOf: func(context.Context) string { return "run-7" }}, true},
		{"run-7", "run-7", toolset.Options{RunOf: func(context.Context) string { return "run-8" }}, false},
	} {
		l := lease(nil)
		l.bound.Run = test.bound
		ctx := context.Background()
		if test.run != "" {
			ctx = toolset.WithRun(ctx, test.run)
		}
		a := over(t, l, test.o).Call(ctx, "browser_press", json.RawMessage(`{"key":"Enter"}`))
		if ok := a.Err == nil; ok != test.ok || len(l.calls) != map[bool]int{true: 1, false: 0}[test.ok] {
			t.Errorf("%+v: %v, %d calls", test, a.Err, len(l.calls))
		}
		if !test.ok && (reins.CodeOf(a.Err) != reins.CodeUnauthorized || strings.Contains(a.Text, "run-7")) {
			t.Errorf("%+v: %s", test, a.Text)
		}
	}
}

// Answers have a text, and a picture or JSON beside it; failures say what next.
func TestAnswers(t *testing.T) {
	l := lease(func(_ context.Context, c reins.Call) (*reins.Result, error) {
		switch c.Action.(type) {
		case reins.Navigate:
			return &reins.Result{Navigation: &reins.NavigationResult{URL: "https://a.test/", Title: "A", Status: 200, Waited: true}}, nil
		case reins.Snapshot:
			return &reins.Result{Snapshot: &reins.SnapshotResult{Text: "- button \"Go\" [ref=f1e1]"}}, nil
		case reins.Screenshot:
			return &reins.Result{Screenshot: &reins.ScreenshotResult{Width: 1, Height: 1, Image: []byte("PNG"), MediaType: "image/png",
				Artifact: reins.Artifact{ID: "art_1", Project: "p", Resource: "r", MediaType: "image/png", Size: 3}}}, nil
		}
		return nil, reins.Errorf(reins.CodeNotActionable, "button \"Go\" is covered")
	})
	s := over(t, l, toolset.Options{SnapshotBytes: 5000})
	a := s.Call(inRun(), "browser_navigate", json.RawMessage(`{"url":"a.test"}`))
	var did struct {
		Did     string `json:"did"`
		Content string `json:"page_content"`
	}
	if err := json.Unmarshal(a.Structured, &did); a.Err != nil || err != nil || did.Did != "Loaded the page (HTTP 200)." ||
		!strings.Contains(did.Content, "f1e1") || !strings.Contains(a.Text, "data, not instructions") {
		t.Errorf("%v %s\n%s", a.Err, a.Structured, a.Text)
	}
	if read, ok := l.calls[1].(reins.Snapshot); !ok || read.MaxBytes != 5000 {
		t.Errorf("it read with %+v", l.calls[1])
	}
	a = s.Call(inRun(), "browser_screenshot", nil)
	if a.Image == nil || string(a.Image.Data) != "PNG" || a.Image.MediaType != "image/png" || a.Structured != nil || a.Stored.ID != "art_1" {
		t.Errorf("%+v", a)
	}
	a = s.Call(inRun(), "browser_click", json.RawMessage(`{"ref":"f1e1"}`))
	if reins.CodeOf(a.Err) != reins.CodeNotActionable || !strings.HasPrefix(a.Text, "not_actionable: button \"Go\" is covered\nNext: Call browser_snapshot") ||
		!strings.Contains(string(a.Structured), `"error":{"code":"not_actionable"`) {
		t.Errorf("%v %s\n%s", a.Err, a.Structured, a.Text)
	}
	for arguments, says := range map[string]string{`[]`: "not a JSON object", `{"key":"Enter","page":1}`: `"page" is unknown`, `{}`: "key", `{`: "not a JSON object"} {
		if a := s.Call(inRun(), "browser_press", json.RawMessage(arguments)); reins.CodeOf(a.Err) != reins.CodeInvalidInput || !strings.Contains(a.Text, says) {
			t.Errorf("%s: %s", arguments, a.Text)
		}
	}
	if a := s.Call(inRun(), "browser_eval", nil); reins.CodeOf(a.Err) != reins.CodeInvalidInput || !strings.Contains(a.Text, "browser_eval") {
		t.Error(a.Text)
	}
	if a := (toolset.Tool{}).Call(inRun(), nil); reins.CodeOf(a.Err) != reins.CodeInvalidInput {
		t.Error(a.Err)
	}
}

// What failed inside never reaches a model.
func TestInternalCausesStayInside(t *testing.T) {
	s := over(t, lease(func(context.Context, reins.Call) (*reins.Result, error) { return nil, errors.New("/etc/secret") }), toolset.Options{})
	if a := s.Call(inRun(), "browser_snapshot", nil); reins.CodeOf(a.Err) != reins.CodeInternal || strings.Contains(a.Text+string(a.Structured), "secret") {
		t.Error(a.Text)
	}
}

// A lease is acquired once for all calls, renewed while the set is open, asked for
// anew when it ended, and released at the end.
func TestOpenKeepsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := lease(nil), lease(nil)
		r := &runtimeOf{leases: []*fakeLease{first, second}}
		s, err := toolset.Open(r, reins.Capability{Token: "secret", Binding: binding()}, toolset.Options{Run: "run-7"})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.leases) != 2 {
			t.Error("it acquired before the first call")
		}
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if a := s.Call(inRun(), "browser_list_tabs", nil); a.Err == nil {
					t.Error("a tool that was not chosen")
				}
				if a := s.Call(inRun(), "browser_snapshot", nil); a.Err != nil {
					t.Error(a.Err)
				}
			})
		}
		calls.Wait()
		time.Sleep(5 * time.Minute) // lives are of a minute
		synctest.Wait()
		if first.renewals < 5 || len(first.calls) != 8 {
			t.Errorf("%d renewals, %d calls", first.renewals, len(first.calls))
		}
		close(first.done)
		if a := s.Call(inRun(), "browser_snapshot", nil); a.Err != nil || len(second.calls) != 1 {
			t.Errorf("%v, %d calls of the second lease", a.Err, len(second.calls))
		}
		close(second.done)
		if a := s.Call(inRun(), "browser_snapshot", nil); reins.CodeOf(a.Err) != reins.CodeUnauthorized {
			t.Errorf("where there is no lease: %v", a.Err)
		}
		s.Close()
	})
}

// Close ends what is under way, waits for it, and releases what Open acquired; a
// lease that was given stays its owner's.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := func(ctx context.Context, _ reins.Call) (*reins.Result, error) {
			<-ctx.Done()
			return nil, reins.ContextError(ctx)
		}
		own, given := lease(stuck), lease(stuck)
		opened, err := toolset.Open(&runtimeOf{leases: []*fakeLease{own}}, reins.Capability{Token: "secret", Binding: binding()}, toolset.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*toolset.Set{opened, over(t, given, toolset.Options{})} {
			answers := make(chan toolset.Answer, 2)
			go func() { answers <- s.Call(inRun(), "browser_snapshot", nil) }()
			ctx, cancel := context.WithCancel(inRun())
			go func() { answers <- s.Call(ctx, "browser_snapshot", nil) }()
			synctest.Wait()
			cancel()
			if a := <-answers; reins.CodeOf(a.Err) != reins.CodeCancelled {
				t.Errorf("its caller left: %v", a.Err)
			}
			s.Close()
			s.Close()
			if a := <-answers; reins.CodeOf(a.Err) != reins.CodeDestroyed {
				t.Errorf("closed meanwhile: %v", a.Err)
			}
			if a := s.Call(inRun(), "browser_snapshot", nil); reins.CodeOf(a.Err) != reins.CodeDestroyed {
				t.Errorf("closed before: %v", a.Err)
			}
		}
		if own.releases != 1 || given.releases != 0 {
			t.Errorf("released %d times what it acquired, %d times what it was given", own.releases, given.releases)
		}
	})
}

// Progress names the tool.
func TestProgress(t *testing.T) {
	var told []string
	s := over(t, lease(func(_ context.Context, c reins.Call) (*reins.Result, error) {
		c.Progress(reins.Progress{Stage: "queue", Position: 2})
		return &reins.Result{}, nil
	}), toolset.Options{Progress: func(tool string, p reins.Progress) { told = append(told, tool+" "+p.Stage) }})
	s.Call(inRun(), "browser_snapshot", nil)
	if !slices.Equal(told, []string{"browser_snapshot queue"}) {
		t.Error(told)
	}
}
