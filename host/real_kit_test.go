package host

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
)

// site is a small web site on loopback and the policy that lets a browser
// reach exactly it.
func site(t testing.TB, pages map[string]http.HandlerFunc) (base string, policy reins.EgressPolicy) {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range pages {
		mux.HandleFunc(path, h)
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL, reins.EgressPolicy{AllowPrivate: []string{strings.TrimPrefix(srv.URL, "http://")}}
}

func html(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html>", body)
	}
}

// real starts a host over real cells and drivers.
func real(t testing.TB, hooks reins.Hooks) *Host {
	t.Helper()
	if hooks.Authorize == nil {
		hooks.Authorize = allow
	}
	dir := filepath.Join(t.TempDir(), "runtime")
	h, err := New(Options{Dir: dir, Hooks: hooks, Backends: []cell.Backend{process.New(process.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return h
}

// drive registers a resource with a session and acquires an agent's lease.
func realLease(t testing.TB, h *Host, key reins.ResourceKey, spec reins.BrowserSpec) reins.Lease {
	t.Helper()
	spec.Verbs = reins.AgentVerbs()
	if _, err := h.Register(t.Context(), reins.Registration{Key: key, Attachment: attached(1), Spec: spec}); err != nil {
		t.Fatal(err)
	}
	return acquire(t, h, agentOf(key, 1))
}

func acquire(t testing.TB, h *Host, b reins.Binding) reins.Lease {
	t.Helper()
	c, err := h.Issue(t.Context(), b, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.Acquire(t.Context(), c.Token, b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func do(t testing.TB, l reins.Lease, a reins.Action) *reins.Result {
	t.Helper()
	res, err := l.Do(t.Context(), reins.Call{Action: a})
	if err != nil {
		t.Fatalf("%s: %v (cause %v)", a.Verb(), err, reins.AsError(err).Cause)
	}
	return res
}

// refOf finds the ref of the first line of an outline that holds text.
func refOf(t testing.TB, outline, text string) reins.Ref {
	t.Helper()
	for line := range strings.Lines(outline) {
		if _, rest, ok := strings.Cut(line, "[ref="); ok && strings.Contains(line, text) {
			return reins.Ref(rest[:strings.IndexByte(rest, ']')])
		}
	}
	t.Fatalf("no ref for %q in\n%s", text, outline)
	return ""
}

// proc is one process as the kernel tells of it.
type proc struct {
	pid, parent int
	args        []string
	status      map[string]string
	netns       string
}

// processes reads all processes that can be read.
func processes(t testing.TB) map[int]proc {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]proc{}
	for _, dir := range names {
		p := proc{status: map[string]string{}}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue
		}
		p.args = strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
		status, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if k, v, ok := strings.Cut(line, ":"); ok {
				p.status[k] = strings.TrimSpace(v)
			}
		}
		if stat, err := os.ReadFile(dir + "/stat"); err == nil {
			if _, rest, ok := strings.Cut(string(stat), ") "); ok && len(strings.Fields(rest)) > 19 {
				p.status["start"] = strings.Fields(rest)[19]
			}
		}
		p.parent, _ = strconv.Atoi(p.status["PPid"])
		p.netns, _ = os.Readlink(dir + "/ns/net")
		out[p.pid] = p
	}
	return out
}

func (p proc) has(arg string) bool {
	for _, a := range p.args {
		if a == arg || strings.Contains(a, arg+" ") || strings.HasSuffix(a, arg) {
			return true
		}
	}
	return false
}

// tree is a cell's init and all below it, found by the host path of its
// profile that init carries (OWN-3).
func tree(t testing.TB, profile string) (initPID int, all []proc) {
	t.Helper()
	procs := processes(t)
	for _, p := range procs {
		if p.has("--user-data-dir="+profile) && initPID == 0 {
			initPID = p.pid
		}
	}
	if initPID == 0 {
		return 0, nil
	}
	for _, p := range procs {
		for q := p; q.pid > 1; q = procs[q.parent] {
			if q.pid == initPID {
				all = append(all, p)
				break
			}
		}
	}
	return initPID, all
}

// within waits until a condition holds, or fails.
func within(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
