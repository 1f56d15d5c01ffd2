package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestRealFiles takes a file through a browser: one that the host marked for the
// lease goes into a file control (ACT-3), what the site sends back becomes an
// artifact of the lease (ACT-10), by a link and by a navigation (NAV-4).
func TestRealFiles(t *testing.T) {
	var got sync.Map
	base, policy := site(t, map[string]http.HandlerFunc{
		"/form": html(`<title>Form</title><form method=post action=/up enctype=multipart/form-data>
<input type=file name=f aria-label=Paper><button>Send</button></form><a href=/get>Report</a>`),
		"/up": func(w http.ResponseWriter, r *http.Request) {
			f, head, err := r.FormFile("f")
			if err != nil {
				http.Error(w, err.Error(), 400)
				return
			}
			defer f.Close()
			body, _ := io.ReadAll(f)
			got.Store("name", head.Filename)
			got.Store("body", string(body))
			html("<title>Thanks</title>")(w, r)
		},
		"/get": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Disposition", `attachment; filename="../../a report.csv"`)
			fmt.Fprint(w, "day,total\n1,2\n")
		},
	})
	h := real(t, reins.Hooks{})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	paper, err := h.Artifacts(key1).Put(t.Context(), reins.Artifact{
		Kind: "upload", MediaType: "text/plain", Name: "paper.txt", LeaseID: l.Authority().LeaseID,
	}, strings.NewReader("the paper"))
	if err != nil {
		t.Fatal(err)
	}
	do(t, l, reins.Navigate{URL: base + "/form"})
	snap := do(t, l, reins.Snapshot{}).Snapshot.Text
	do(t, l, reins.Fill{Ref: refOf(t, snap, "Paper"), Value: reins.Value{Artifacts: []string{paper.ID}}})
	do(t, l, reins.Fill{Ref: refOf(t, snap, "Paper"), Value: reins.Value{Artifacts: []string{paper.URI()}}})
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Fill{Ref: refOf(t, snap, "Paper"), Value: reins.Value{Artifacts: []string{"art_of_nobody"}}}})
	code(t, err, reins.CodeNotFound)
	do(t, l, reins.Click{Ref: refOf(t, snap, "Send")})
	if name, _ := got.Load("name"); name != "paper.txt" {
		t.Errorf("the site got a file named %v", name)
	}
	if body, _ := got.Load("body"); body != "the paper" {
		t.Errorf("the site got %v", body)
	}
	byNavigation := do(t, l, reins.Navigate{URL: base + "/get"})
	if d := byNavigation.Navigation.Download; d == nil || d.Artifact == nil {
		t.Fatalf("a navigation that became a download: %+v, changes %+v", byNavigation.Navigation, byNavigation.Changes)
	}
	do(t, l, reins.Navigate{URL: base + "/form"})
	snap = do(t, l, reins.Snapshot{}).Snapshot.Text
	do(t, l, reins.Click{Ref: refOf(t, snap, "Report")})
	var list []reins.Artifact
	within(t, 5*time.Second, "both downloads are stored", func() bool { // the second may end after its action
		list = nil
		for _, a := range do(t, l, reins.ListArtifacts{}).Artifacts {
			if a.Kind == "download" {
				list = append(list, a)
			}
		}
		return len(list) == 2
	})
	for _, a := range list {
		chunk := do(t, l, reins.ReadArtifact{Artifact: a.ID})
		if string(chunk.Data) != "day,total\n1,2\n" || strings.ContainsAny(a.Name, `/\`) || !strings.HasSuffix(a.Name, "a report.csv") {
			t.Errorf("artifact %+v holds %q", a, chunk.Data)
		}
	}
}

// TestRealDriverLoss kills the driver under a page (TAB-1, DRV-2): the page
// lives on, the next result says that it was connected anew.
func TestRealDriverLoss(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/": html(`<title>Kept</title><button onclick="this.textContent = 'kept ' + (window.n = (window.n || 0) + 1)">Count</button>`),
	})
	h := real(t, reins.Hooks{})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineFull, Egress: policy})
	do(t, l, reins.Navigate{URL: base})
	old := refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, "Count")
	oldTab := do(t, l, reins.Click{Ref: old}).Tab.ID
	r, err := h.Open(t.Context(), key1)
	if err != nil {
		t.Fatal(err)
	}
	res := r.(*resource)
	res.mu.Lock()
	conn := res.st.inc.conn
	res.mu.Unlock()
	conn.link.Kill()
	within(t, 5*time.Second, "the loss is noticed", func() bool { return r.Readiness().Overall == "partial" })
	again := do(t, l, reins.Snapshot{})
	if !again.Meta.Reconnected || again.Meta.Connection != 2 || again.Meta.Incarnation != 1 || !strings.Contains(again.Snapshot.Text, "kept 1") {
		t.Errorf("after the loss: %+v\n%s", again.Meta, again.Snapshot.Text)
	}
	// What belongs to the connection before stays refused, whatever was seen
	// since (TAB-2, SNAP-4).
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Click{Ref: old}})
	code(t, err, reins.CodeStaleRef)
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Snapshot{Tab: oldTab}})
	code(t, err, reins.CodeInvalidState)
	do(t, l, reins.Click{Ref: refOf(t, again.Snapshot.Text, "kept 1")})
	now := do(t, l, reins.Snapshot{}).Snapshot.Text
	if !strings.Contains(now, "kept 2") {
		t.Errorf("a click after it:\n%s", now)
	}
	if err := r.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, l, reins.Navigate{URL: base})
	do(t, l, reins.Snapshot{})
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Click{Ref: refOf(t, now, "kept 2")}})
	code(t, err, reins.CodeStaleRef) // nor of a browser before
}

// TestRealStuckPage cancels an action on a page that never yields (QUI-1,
// B070): the call ends within the ladder, and the next one works.
func TestRealStuckPage(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/":     html(`<title>Trap</title><button onclick="for (;;) {}">Spin</button>`),
		"/slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	h := real(t, reins.Hooks{})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	do(t, l, reins.Navigate{URL: base})
	spin := refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, "Spin")
	for name, a := range map[string]reins.Action{"a script": reins.Click{Ref: spin}, "a load": reins.Navigate{URL: base + "/slow"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		began := time.Now()
		_, err := l.Do(ctx, reins.Call{Action: a})
		cancel()
		took := time.Since(began)
		if c := reins.CodeOf(err); name == "a load" && c != reins.CodeTimeout || took > 12*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
		t.Logf("%s was stopped after %s: %v", name, took, err)
		do(t, l, reins.Navigate{URL: base})
	}
}

// TestRealAudit: what a browser asks of the network is decided and recorded, a
// forbidden address is refused (EGR-8), and operations have their records.
func TestRealAudit(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{"/": html(`<title>Home</title><img src="http://127.0.0.1:8099/x.png">`)})
	var records box[[]reins.Record]
	h := real(t, reins.Hooks{Audit: func(r reins.Record) { records.set(append(records.get(), r)) }})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	do(t, l, reins.Navigate{URL: base})
	for _, c := range []struct {
		url    string
		code   reins.Code
		reason string
	}{
		{"http://169.254.169.254/", reins.CodeEgressDenied, "forbidden-address"},
		{"https://169.254.169.254/", reins.CodeEgressDenied, "forbidden-address"},
		{"https://a.internal/", reins.CodeEgressDenied, "forbidden-name"},
		{"http://no-such-name.invalid/", "", ""},
		{"https://no-such-name.invalid/", "", ""},
	} {
		_, err := l.Do(t.Context(), reins.Call{Action: reins.Navigate{URL: c.url}})
		e := reins.AsError(err)
		if e == nil || c.code != "" && (e.Code != c.code || e.Details["reason"] != c.reason) || e.Details["reason"] == nil {
			t.Errorf("%s: %v, want %s for %s", c.url, err, c.code, c.reason)
		}
	}
	has := func(action string, outcome reins.Outcome, detail string) bool {
		for _, r := range records.get() {
			if r.Action == action && r.Outcome == outcome && strings.Contains(r.Detail, detail) {
				return true
			}
		}
		return false
	}
	defer func() {
		if t.Failed() {
			for _, r := range records.get() {
				t.Logf("record: %+v", r)
			}
		}
	}()
	within(t, 5*time.Second, "all is recorded", func() bool {
		return has("start", reins.OutcomeCompleted, "") && has("egress", reins.OutcomeCompleted, "127.0.0.1") &&
			has("egress", reins.OutcomeFailed, `"127.0.0.1" port 8099`) && has("egress", reins.OutcomeFailed, "169.254.169.254") &&
			has("navigate", reins.OutcomeCompleted, "") && has("navigate", reins.OutcomeFailed, "")
	})
}

// TestRealStopWhileBusy stops the runtime under running actions (LIFE-1, QUI-4,
// B076): bounded, confirmed, and nothing is left.
func TestRealStopWhileBusy(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/dialog": html(`<title>Dialog</title><button onclick="alert('stay')">Ask</button>`),
		"/spin":   html(`<title>Spin</title><button onclick="for (;;) {}">Spin</button>`),
		"/slow":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	h := real(t, reins.Hooks{})
	var wg sync.WaitGroup
	var profiles []string
	for i, c := range []struct{ page, press string }{{"/dialog", "Ask"}, {"/spin", "Spin"}, {"/slow", ""}} {
		l := realLease(t, h, reins.ResourceKey{Project: "p", ID: fmt.Sprint("r", i)}, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
		if c.press == "" {
			do(t, l, reins.Navigate{URL: "about:blank"})
		} else {
			do(t, l, reins.Navigate{URL: base + c.page})
		}
		profiles = append(profiles, profileOf(t, h, reins.ResourceKey{Project: "p", ID: fmt.Sprint("r", i)}))
		var a reins.Action = reins.Navigate{URL: base + c.page}
		if c.press != "" {
			a = reins.Click{Ref: refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, c.press)}
		}
		running := make(chan struct{})
		wg.Go(func() {
			_, _ = l.Do(t.Context(), reins.Call{Action: a, Progress: func(p reins.Progress) {
				if p.Stage == "running" {
					close(running)
				}
			}})
		})
		<-running
	}
	began := time.Now()
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
	for _, profile := range profiles {
		if pid, _ := tree(t, profile); pid != 0 {
			t.Errorf("process %d of %q is left", pid, profile)
		}
	}
}

// TestRealPerTab lets two tabs of one browser act at the same time (SCH-2) and
// takes only the page of an action that cannot be stopped (SCH-6).
func TestRealPerTab(t *testing.T) {
	gate := make(chan struct{})
	base, policy := site(t, map[string]http.HandlerFunc{
		"/wait": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
			html("<title>Waited</title>")(w, r)
		},
		"/go": func(w http.ResponseWriter, r *http.Request) {
			close(gate)
			html("<title>Went</title>")(w, r)
		},
	})
	h := real(t, reins.Hooks{})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy, Scheduling: reins.PerTab})
	first := do(t, l, reins.ListTabs{}).Tabs[0].ID
	second := do(t, l, reins.OpenTab{}).Tab.ID
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := l.Do(t.Context(), reins.Call{Action: reins.Navigate{Tab: first, URL: base + "/wait"}}); err != nil || res.Navigation.Title != "Waited" {
			t.Errorf("the first tab: %+v, %v", res, err)
		}
	})
	// In one lane this would wait for what waits for it.
	if res := do(t, l, reins.Navigate{Tab: second, URL: base + "/go"}); res.Navigation.Title != "Went" {
		t.Errorf("the second tab: %+v", res)
	}
	wg.Wait()
	if tabs := do(t, l, reins.ListTabs{}).Tabs; len(tabs) != 2 {
		t.Errorf("tabs %v", tabs)
	}
}

// TestRealLostDirectory moves the runtime directory away under a browser
// (OWN-7): authority is fenced, the browser is gone, and the one clean-up that
// is tried reaches it where it is now.
func TestRealLostDirectory(t *testing.T) {
	h := real(t, reins.Hooks{})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell})
	do(t, l, reins.Navigate{URL: "about:blank"})
	profile, over := profileOf(t, h, key1), h.Done()
	if err := os.Rename(h.dir, h.dir+".moved"); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(5 * time.Second)
	defer limit.Stop()
	select {
	case <-over:
	case <-limit.C:
		t.Fatal("the loss was not noticed")
	}
	_, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	code(t, err, reins.CodeRuntimeStopped)
	within(t, 3*time.Second, "the browser is gone", func() bool {
		pid, _ := tree(t, profile)
		return pid == 0
	})
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(filepath.Join(h.dir+".moved", "generations")); err != nil || len(names) != 0 {
		t.Errorf("generations left: %v (%v)", names, err)
	}
}
