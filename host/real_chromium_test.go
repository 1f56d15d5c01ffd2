package host

import (
	"bytes"
	"context"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins"
)

// TestRealChromium is the whole promise in one test, on both engines: two
// resources in one project and one session, at the same time; a private
// profile of its own for each, inside the generation; sandboxed renderers and
// confinement as the kernel tells it; a screenshot of each; a confirmed end;
// and nothing left of the generation.
func TestRealChromium(t *testing.T) {
	for _, engine := range []reins.Engine{reins.EngineFull, reins.EngineShell} {
		t.Run(string(engine), func(t *testing.T) { realChromium(t, engine) })
	}
}

func realChromium(t *testing.T, engine reins.Engine) {
	base, policy := site(t, map[string]http.HandlerFunc{
		"/red":  html(`<title>Red room</title><body style="background:#f00"><button onclick="this.textContent='pressed'">Press red</button>`),
		"/blue": html(`<title>Blue room</title><body style="background:#00f"><button onclick="this.textContent='pressed'">Press blue</button>`),
	})
	h := real(t, reins.Hooks{})
	rooms := []struct {
		key   reins.ResourceKey
		name  string
		lease reins.Lease
	}{
		{key: reins.ResourceKey{Project: "project", ID: "red"}, name: "red"},
		{key: reins.ResourceKey{Project: "project", ID: "blue"}, name: "blue"},
	}
	var wg sync.WaitGroup
	for i := range rooms {
		rooms[i].lease = realLease(t, h, rooms[i].key, reins.BrowserSpec{Engine: engine, Egress: policy})
		wg.Go(func() {
			room := rooms[i]
			res, err := room.lease.Do(t.Context(), reins.Call{Action: reins.Navigate{URL: base + "/" + room.name}})
			if err != nil {
				t.Errorf("navigate: %v (cause %v)", err, reins.AsError(err).Cause)
				return
			}
			if !strings.Contains(strings.ToLower(res.Navigation.Title), room.name) || res.Navigation.Status != 200 {
				t.Errorf("navigation: %+v", res.Navigation)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	generation := filepath.Join(h.dir, "generations", rooms[0].lease.Authority().Generation)
	seen := map[string]bool{}
	for _, room := range rooms {
		profile := profileOf(t, h, room.key)
		if seen[profile] || !strings.HasPrefix(profile, generation+"/profiles/") {
			t.Fatalf("profile %q is shared or outside %q", profile, generation)
		}
		seen[profile] = true
		private(t, profile)
		confined(t, profile)
		shows(t, h, room.lease, room.name)
	}
	inits := map[string]int{}
	for profile := range seen {
		inits[profile], _ = tree(t, profile)
	}
	if err := h.Stop(t.Context()); err != nil {
		t.Fatalf("stop: %v", err)
	}
	for profile, pid := range inits {
		if left, _ := tree(t, profile); left != 0 {
			t.Errorf("process %d of %q is left", left, profile)
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
			t.Errorf("the cell's init %d lives", pid)
		}
	}
	if _, err := os.Lstat(generation); !os.IsNotExist(err) {
		t.Errorf("the generation %q is left: %v", generation, err)
	}
	for _, room := range rooms {
		select {
		case <-room.lease.Done():
		default:
			t.Errorf("the lease on %s outlived its runtime", room.key)
		}
	}
}

func profileOf(t *testing.T, h *Host, key reins.ResourceKey) string {
	t.Helper()
	r, err := h.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	res := r.(*resource)
	res.mu.Lock()
	defer res.mu.Unlock()
	if res.st.inc == nil {
		t.Fatalf("%s has no browser", key)
	}
	return res.st.inc.room.Profile()
}

// private checks that a profile is used, and by its owner only (WSP-1, DIR-1).
func private(t *testing.T, profile string) {
	t.Helper()
	info, err := os.Stat(profile)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("profile %q has mode %o", profile, info.Mode().Perm())
	}
	if names, err := os.ReadDir(profile); err != nil || len(names) == 0 {
		t.Errorf("profile %q is empty (%v): the browser keeps its files elsewhere", profile, err)
	}
}

// confined reads from /proc that the cell is one and its renderers sandboxed
// (CELL-2, CELL-4, OVW-2).
func confined(t *testing.T, profile string) {
	t.Helper()
	initPID, all := tree(t, profile)
	if initPID == 0 {
		t.Fatalf("no process carries the profile %q (OWN-3)", profile)
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	renderers := 0
	for _, p := range all {
		if p.has("--no-sandbox") {
			t.Errorf("process %d runs with --no-sandbox", p.pid)
		}
		uid := strings.Fields(p.status["Uid"])
		if len(uid) != 4 || uid[1] == "0" {
			t.Errorf("process %d runs as %v", p.pid, uid)
		}
		if p.netns != "" && p.netns == own {
			t.Errorf("process %d shares the host's network", p.pid)
		}
		if p.status["NoNewPrivs"] != "1" || p.status["Seccomp"] != "2" {
			t.Errorf("process %d %v: NoNewPrivs %s, Seccomp %s", p.pid, p.args[:1], p.status["NoNewPrivs"], p.status["Seccomp"])
		}
		if !p.has("--type=renderer") {
			continue
		}
		renderers++
		if depth := len(strings.Fields(p.status["NSpid"])); depth < 3 {
			t.Errorf("renderer %d is %d PID namespaces deep", p.pid, depth)
		}
		if strings.Trim(p.status["CapEff"], "0") != "" {
			t.Errorf("renderer %d holds capabilities %s", p.pid, p.status["CapEff"])
		}
		if p.status["Seccomp_filters"] == "1" {
			t.Errorf("renderer %d has only the cell's filter, not its own", p.pid)
		}
	}
	if renderers == 0 {
		t.Error("no renderer was seen")
	}
}

// shows takes a snapshot, presses the button by its ref, and looks at the
// middle of a screenshot.
func shows(t *testing.T, h *Host, l reins.Lease, name string) {
	t.Helper()
	snap := do(t, l, reins.Snapshot{})
	click := do(t, l, reins.Click{Ref: refOf(t, snap.Snapshot.Text, "Press "+name)})
	if click.Meta.LeaseID != l.Authority().LeaseID || click.Meta.Incarnation != 1 || click.Meta.Connection != 1 {
		t.Errorf("meta of a click: %+v", click.Meta) // LSE-7
	}
	if again := do(t, l, reins.Snapshot{}); !strings.Contains(again.Snapshot.Text, "pressed") {
		t.Errorf("the button was not pressed:\n%s", again.Snapshot.Text)
	}
	shot := do(t, l, reins.Screenshot{Image: true}).Screenshot
	key := reins.ResourceKey{Project: shot.Artifact.Project, ID: shot.Artifact.Resource}
	meta, r, err := h.Artifacts(key).Open(t.Context(), shot.Artifact.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil || int64(len(data)) != meta.Size || len(shot.Image) == 0 {
		t.Fatalf("%d of %d bytes, %d for a model: %v", len(data), meta.Size, len(shot.Image), err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	red, _, blue, _ := img.At(img.Bounds().Dx()/2, img.Bounds().Dy()/2).RGBA()
	if (name == "red") != (red > 0xf000 && blue < 0x1000) {
		t.Errorf("the screenshot of %s shows red %x, blue %x", name, red, blue)
	}
	list, err := h.Artifacts(key).List(context.Background())
	if err != nil || len(list) != 1 {
		t.Errorf("%d artifacts: %v", len(list), err)
	}
}
