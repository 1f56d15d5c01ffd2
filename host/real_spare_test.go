package host

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
	"github.com/reins-browser/reins/internal/driver"
)

// spareOf waits until a host has a spare and returns it; it stays one.
func spareOf(t testing.TB, h *Host) *spare {
	t.Helper()
	var out *spare
	within(t, 60*time.Second, "a spare is ready", func() bool {
		p := h.gen.spares
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.ready {
			if s.lost() == nil {
				out = s
			}
		}
		return out != nil
	})
	return out
}

// TestRealSpare is CELL-11 with real browsers on both engines: a spare is sealed
// and verified like any browser, its door refuses whatever it is asked for, a
// resource gets it within milliseconds with its own policy and under names that
// it has never seen, and a stop leaves nothing of those that nobody wanted.
func TestRealSpare(t *testing.T) {
	for _, engine := range []reins.Engine{reins.EngineFull, reins.EngineShell} {
		t.Run(string(engine), func(t *testing.T) { realSpare(t, engine) })
	}
}

func realSpare(t *testing.T, engine reins.Engine) {
	var asked atomic.Int32
	base, policy := site(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		html(`<title>Room</title><button onclick="this.textContent = 'pressed'">Press</button>`)(w, r)
	}})
	h, err := New(Options{
		Dir: filepath.Join(t.TempDir(), "runtime"), Hooks: reins.Hooks{Authorize: allow},
		Backends: []cell.Backend{process.New(process.Options{})},
		Spares:   1, SpareSpec: reins.BrowserSpec{Engine: engine},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop(context.Background()) // after a failure; it is looked at below
	refusesAll(t, h, base, &asked)

	spec := reins.BrowserSpec{Engine: engine, Egress: policy, Verbs: reins.AgentVerbs()}
	var took []time.Duration
	for i := range 3 {
		s := spareOf(t, h)
		key := reins.ResourceKey{Project: "project", ID: fmt.Sprint("room", i)}
		if _, err := h.Register(t.Context(), reins.Registration{Key: key, Attachment: attached(1), Spec: spec}); err != nil {
			t.Fatal(err)
		}
		r, err := h.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		if profile := profileOf(t, h, key); profile != s.room.Profile() {
			t.Fatalf("%s runs in %q, not in the spare's %q", key, profile, s.room.Profile())
		}
		if i > 0 { // one is enough to work with
			if err := r.Retire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(took)
	t.Logf("%s: claim p50 %s, of %v", engine, took[len(took)/2], took)
	worksAgain(t, h, reins.ResourceKey{Project: "project", ID: "room0"}, base)

	profile := spareOf(t, h).room.Profile()
	if pid, _ := tree(t, profile); pid == 0 {
		t.Errorf("no process carries a spare's profile %q (OWN-3)", profile)
	}
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range processes(t) {
		if p.has(h.dir) || strings.Contains(strings.Join(p.args, " "), h.dir) {
			t.Errorf("process %d is left: %v", p.pid, p.args)
		}
	}
}

// refusesAll takes a spare that nobody owns to a site that its later owner may
// use, and to the Internet: neither is asked. Then the spare loses its driver and
// is replaced.
func refusesAll(t *testing.T, h *Host, base string, asked *atomic.Int32) {
	t.Helper()
	s := spareOf(t, h)
	private(t, s.room.Profile())
	confined(t, s.room.Profile()) // verified before it could be claimed
	for _, url := range []string{base, "http://example.com/"} {
		_, err := s.first.link.Do(t.Context(), driver.Command{Action: reins.Navigate{URL: url}, Lease: "nobody"})
		code(t, err, reins.CodeEgressDenied)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the site was asked %d times by a browser that nobody owned", n)
	}
	s.first.link.Kill()
	within(t, 10*time.Second, "a spare without a driver is ended", func() bool {
		pid, _ := tree(t, s.room.Profile())
		return pid == 0
	})
}

// worksAgain uses a browser that was a spare, ends it, and uses the next one,
// which was a spare too: what was named in the first means nothing in the second
// (TAB-2, SNAP-4).
func worksAgain(t *testing.T, h *Host, key reins.ResourceKey, base string) {
	t.Helper()
	l := acquire(t, h, agentOf(key, 1))
	first := do(t, l, reins.Navigate{URL: base})
	if first.Meta.Incarnation != 1 || first.Meta.Connection != 1 || first.Navigation.Status != http.StatusOK {
		t.Errorf("in the first: %+v, %+v", first.Navigation, first.Meta)
	}
	ref := refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, "Press")
	do(t, l, reins.Click{Ref: ref})
	if text := do(t, l, reins.Snapshot{}).Snapshot.Text; !strings.Contains(text, "pressed") {
		t.Errorf("the button was not pressed:\n%s", text)
	}
	s := spareOf(t, h)
	r, err := h.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := do(t, l, reins.Navigate{URL: base})
	if profile := profileOf(t, h, key); profile != s.room.Profile() {
		t.Errorf("the second runs in %q, not in the spare's %q", profile, s.room.Profile())
	}
	if second.Meta.Incarnation != 2 || second.Tab.ID == first.Tab.ID || second.Selected != second.Tab.ID {
		t.Errorf("in the second: tab %s after %s, %+v", second.Tab.ID, first.Tab.ID, second.Meta)
	}
	now := refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, "Press")
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Click{Ref: ref}})
	code(t, err, reins.CodeStaleRef)
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Snapshot{Tab: first.Tab.ID}})
	code(t, err, reins.CodeInvalidState)
	do(t, l, reins.Click{Ref: now})
}
