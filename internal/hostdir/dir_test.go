package hostdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

func TestAFirstStartMakesTheLayout_DIR2_OWN2(t *testing.T) {
	path := newPath(t)
	d := mustOpen(t, path, realMachine())
	if got := entries(t, path); !slices.Equal(got, []string{"generations", "runtime.lock", "runtime.mutex"}) {
		t.Errorf("top level holds %v", got)
	}
	gen := filepath.Join(path, "generations", d.Generation())
	if got := entries(t, gen); !slices.Equal(got, []string{"artifacts", "doors", "profiles"}) {
		t.Errorf("generation holds %v", got)
	}
	for name, f := range map[string]*os.File{
		path: d.Root(), gen + "/profiles": d.Profiles(), gen + "/artifacts": d.Artifacts(), gen + "/doors": d.Doors(),
	} {
		var there, here unix.Stat_t
		check(t, unix.Lstat(name, &there), unix.Fstat(int(f.Fd()), &here))
		if f.Name() != name || there.Ino != here.Ino || there.Mode != unix.S_IFDIR|0o700 {
			t.Errorf("%s is held as %s, mode %o", name, f.Name(), there.Mode)
		}
	}
	if d.StatePath() != filepath.Join(path, "state.db") || exists(d.StatePath()) || d.Path() != path {
		t.Error("paths differ")
	}
	var root, st unix.Stat_t
	check(t, unix.Lstat(path, &root), unix.Lstat(filepath.Join(path, "runtime.lock"), &st))
	if st.Mode != unix.S_IFREG|0o600 || st.Nlink != 1 || st.Size != recordSize {
		t.Errorf("the record has mode %o, %d links, %d bytes", st.Mode, st.Nlink, st.Size)
	}
	b, err := os.ReadFile(filepath.Join(path, "runtime.lock"))
	check(t, err)
	var r map[string]any
	check(t, json.Unmarshal(b, &r))
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	stat, _ := os.ReadFile("/proc/self/stat")
	ticks := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))[20]
	for k, want := range map[string]string{
		"schema": "1", "state": "active", "generation": d.Generation(), "pid": fmt.Sprint(os.Getpid()), "uid": fmt.Sprint(os.Geteuid()),
		"boot": strings.TrimSpace(string(boot)), "inode": fmt.Sprint(root.Ino),
	} {
		if got := strings.TrimSuffix(fmt.Sprintf("%v", r[k]), ".0"); got != want && fmt.Sprintf("%.0f", r[k]) != want {
			t.Errorf("record says %s %v, want %s", k, r[k], want)
		}
	}
	if fmt.Sprintf("%.0f", r["ticks"]) != ticks && fmt.Sprint(d.record.Ticks) != ticks {
		t.Errorf("record says ticks %v, want %s", r["ticks"], ticks)
	}
	anchors := entries(t, filepath.Join(path, "runtime.mutex"))
	if len(anchors) != 1 || !strings.Contains(anchors[0], fmt.Sprintf("-%d-", os.Geteuid())) ||
		!strings.Contains(anchors[0], fmt.Sprintf("-%x-", root.Ino)) || !strings.HasSuffix(anchors[0], d.id.Path) {
		t.Errorf("anchors: %v", anchors)
	}
	check(t, d.Check())
}

// LIFE-1, LIFE-4: a stop leaves the permanent files, workspaces and what is not
// ours to touch, marks the record, and lets the next start in.
func TestAStopLeavesOnlyWhatIsPermanent_LIFE1_LIFE4(t *testing.T) {
	path := newPath(t)
	d := mustOpen(t, path, realMachine())
	check(t, os.WriteFile(d.StatePath(), []byte("truth"), 0o600))
	s, err := d.NewSlot()
	check(t, err, os.WriteFile(filepath.Join(s.Profile, "x"), []byte("x"), 0o600))
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, os.WriteFile(filepath.Join(w.Profile, "Cookies"), []byte("x"), 0o600), w.Close())
	lock, anchor := inode(t, filepath.Join(path, "runtime.lock")), d.mutex.inode
	mustClose(t, d)
	mustClose(t, d)
	if got := entries(t, path); !slices.Equal(got, []string{"generations", "runtime.lock", "runtime.mutex", "state.db", "workspaces"}) {
		t.Errorf("top level holds %v", got)
	}
	if got := entries(t, filepath.Join(path, "generations")); len(got) != 0 {
		t.Errorf("generations left: %v", got)
	}
	if b, err := os.ReadFile(w.Profile + "/Cookies"); err != nil || string(b) != "x" {
		t.Errorf("the workspace lost its cookies: %v", err)
	}
	f, err := os.Open(filepath.Join(path, "runtime.lock"))
	check(t, err)
	defer f.Close()
	if r, err := readRecord(f); err != nil || r.State != stateRelinquished || r.Generation != d.Generation() {
		t.Errorf("record after the stop: %+v, %v", r, err)
	}
	wantCode(t, d.Check(), reins.CodeRuntimeStopped)
	_, err = d.NewSlot()
	wantCode(t, err, reins.CodeRuntimeStopped)
	_, err = d.Workspace(t.Context(), "p", "w")
	wantCode(t, err, reins.CodeRuntimeStopped)
	check(t, s.Remove(t.Context()))

	again := mustOpen(t, path, realMachine())
	if again.Generation() == d.Generation() || len(again.Notes()) != 0 {
		t.Errorf("generation %s again, notes %v", again.Generation(), again.Notes())
	}
	if inode(t, filepath.Join(path, "runtime.lock")) != lock || again.mutex.inode != anchor {
		t.Error("a permanent file was replaced")
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	check(t, unix.Lstat(path, &st))
	return st.Ino
}

// DIR-1: owner-only, a directory of its own, on a file system to be trusted.
func TestTheDirectoryItself_DIR1(t *testing.T) {
	base := t.TempDir()
	for name, c := range map[string]struct {
		path string
		prep func(path string) error
		code reins.Code
	}{
		"readable by others": {"a", func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o750)) }, reins.CodeFenced},
		"sticky":             {"b", func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o700|os.ModeSticky)) }, reins.CodeFenced},
		"a file":             {"c", func(p string) error { return os.WriteFile(p, nil, 0o600) }, reins.CodeFenced},
		"a link":             {"d", func(p string) error { return errors.Join(os.Mkdir(p+"x", 0o700), os.Symlink(p+"x", p)) }, reins.CodeFenced},
		"in a folder of everybody": {"e/f", func(p string) error {
			return errors.Join(os.Mkdir(filepath.Dir(p), 0o700), os.Chmod(filepath.Dir(p), 0o777))
		}, reins.CodeFenced},
		"below a file":                              {"c2/f", func(p string) error { return os.WriteFile(filepath.Dir(p), nil, 0o600) }, reins.CodeInvalidInput},
		"in a folder that may not be written to":    {"g/h", func(p string) error { return os.Mkdir(filepath.Dir(p), 0o500) }, reins.CodeInvalidInput},
		"below a folder that may not be written to": {"j/k/l", func(p string) error { return os.Mkdir(filepath.Dir(filepath.Dir(p)), 0o500) }, reins.CodeInvalidInput},
		"very long":   {strings.Repeat("x/", maxPath), func(string) error { return nil }, reins.CodeInvalidInput},
		"no path":     {"", func(string) error { return nil }, reins.CodeInvalidInput},
		"with a zero": {"x\x00y", func(string) error { return nil }, reins.CodeInvalidInput},
	} {
		path := filepath.Join(base, c.path)
		if c.path == "" {
			path = ""
		}
		check(t, c.prep(path))
		before := picture(t, base)
		_, err := Open(t.Context(), path, Options{})
		if e := reins.AsError(err); reins.CodeOf(err) != c.code || e.Phase != reins.PhaseStart || len(e.Message) > 600 {
			t.Errorf("%s: %v", name, err)
		}
		samePicture(t, before, picture(t, base))
	}
	for _, bad := range []string{"/", "/.", "//"} {
		_, err := Open(t.Context(), bad, Options{})
		wantCode(t, err, reins.CodeInvalidInput)
	}
	_, err := Open(t.Context(), filepath.Join(base, "z"), Options{CheckEvery: -1})
	wantCode(t, err, reins.CodeInvalidInput)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ended, filepath.Join(base, "z"), Options{})
	wantCode(t, err, reins.CodeCancelled)
	if exists(filepath.Join(base, "z")) {
		t.Error("a refused start made the directory")
	}
}

func TestAPathThroughALinkIsASpelling_DIR1(t *testing.T) {
	base := t.TempDir()
	check(t, os.Mkdir(filepath.Join(base, "real"), 0o700), os.Symlink("real", filepath.Join(base, "alias")))
	d := mustOpen(t, filepath.Join(base, "alias", "sub", "..", "new", "runtime"), realMachine())
	if want := filepath.Join(base, "real", "new", "runtime"); d.Path() != want {
		t.Errorf("path is %s, want %s", d.Path(), want)
	}
	_, err := Open(t.Context(), filepath.Join(base, "real", "new", "runtime"), Options{})
	wantCode(t, err, reins.CodeLocked)
	// Set-group-ID, inherited from a folder above, says who shares, not who may.
	check(t, os.Chmod(filepath.Join(base, "real"), 0o700|os.ModeSetgid))
	mustClose(t, mustOpen(t, filepath.Join(base, "real", "shared"), realMachine()))
}

func TestNetworkFileSystemsAreRefused_DIR1(t *testing.T) {
	for kind, name := range untrusted {
		m := realMachine()
		m.fs = func(*os.File) (fsFacts, error) { return fsFacts{kind, 1}, nil }
		path := newPath(t)
		_, err := open(t.Context(), path, Options{}, m)
		wantCode(t, err, reins.CodeUnsafeHost)
		if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) {
			t.Errorf("%#x: %v", kind, err)
		}
		if got := entries(t, path); len(got) != 0 {
			t.Errorf("made there: %v", got)
		}
	}
	m := realMachine()
	m.fs = func(*os.File) (fsFacts, error) { return fsFacts{}, unix.EIO }
	_, err := open(t.Context(), newPath(t), Options{}, m)
	wantCode(t, err, reins.CodeFenced)
	// The real call on a real file system of a kind that is easily named.
	f, err := os.Open("/proc")
	check(t, err)
	defer f.Close()
	if facts, err := statfs(f); err != nil || facts.kind != unix.PROC_SUPER_MAGIC {
		t.Errorf("procfs is %#x, %v", facts.kind, err)
	}
}

// OWN-1: the identity survives a boot that numbers devices anew, and without an
// ID of the file system the device number has to do.
func TestIdentityOfTheDirectory_OWN1(t *testing.T) {
	m := realMachine()
	root, err := openRoot(newPath(t), m)
	check(t, err)
	defer root.Close()
	m.fs = func(*os.File) (fsFacts, error) { return fsFacts{1, 77}, nil }
	with, err := identify(root, m)
	check(t, err)
	m.fs = func(*os.File) (fsFacts, error) { return fsFacts{1, 0}, nil }
	without, err := identify(root, m)
	check(t, err)
	if with.Device != 77 || without.Device != without.dev || without.dev == 0 {
		t.Errorf("%+v and %+v", with, without)
	}
	base := with.anchorName()
	for _, other := range []identity{
		{with.UID + 1, with.Device, with.Inode, with.Path, 0}, {with.UID, 78, with.Inode, with.Path, 0},
		{with.UID, with.Device, with.Inode + 1, with.Path, 0}, {with.UID, with.Device, with.Inode, "x" + with.Path[1:], 0},
	} {
		if other.anchorName() == base {
			t.Errorf("%+v has the same anchor", other)
		}
	}
}
