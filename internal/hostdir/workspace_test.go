package hostdir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// WSP-2: a named profile survives generations and kills; one writer at a time;
// projects and names do not mix, whatever they are.
func TestAWorkspaceLastsAndHasOneWriter_WSP2(t *testing.T) {
	path := newPath(t)
	d := mustOpen(t, path, realMachine())
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, os.WriteFile(filepath.Join(w.Profile, "Cookies"), []byte("x"), 0o600))
	if info, err := os.Lstat(w.Profile); err != nil || info.Mode() != os.ModeDir|0o700 || !inside(w.Profile, filepath.Join(path, workspacesName)) {
		t.Errorf("profile %s: %v, %v", w.Profile, info, err)
	}
	_, err = d.Workspace(t.Context(), "p", "w")
	wantCode(t, err, reins.CodeBusy)
	if !strings.Contains(err.Error(), `"w"`) || !strings.Contains(err.Error(), `"p"`) {
		t.Error(err)
	}
	wantCode(t, d.RemoveWorkspace(t.Context(), "p", "w"), reins.CodeBusy)
	seen := []string{w.Profile}
	for _, k := range [][2]string{{"p", "."}, {"p", ".."}, {"..", "w"}, {"p2", "w"}, {"p", "w2"}, {"pw", "x"}, {"p", "wx"}} {
		o, err := d.Workspace(t.Context(), k[0], k[1])
		check(t, err)
		if slices.Contains(seen, o.Profile) || filepath.Dir(filepath.Dir(o.Profile)) != filepath.Join(path, workspacesName) {
			t.Errorf("%v is at %s", k, o.Profile)
		}
		seen = append(seen, o.Profile)
		check(t, o.Close())
	}
	for _, k := range [][2]string{{"", "w"}, {"p", ""}, {"p", "a/b"}, {"p", strings.Repeat("x", 129)}} {
		_, err := d.Workspace(t.Context(), k[0], k[1])
		wantCode(t, err, reins.CodeInvalidInput)
	}
	check(t, w.Close(), w.Close())
	mustClose(t, d)
	d = mustOpen(t, path, realMachine())
	w, err = d.Workspace(t.Context(), "p", "w")
	check(t, err)
	if b, err := os.ReadFile(filepath.Join(w.Profile, "Cookies")); err != nil || string(b) != "x" || len(w.Notes) != 0 {
		t.Errorf("cookies %q, %v, notes %v", b, err, w.Notes)
	}
	check(t, w.Close())
}

// B062, WSP-2: what a dead browser left to keep others out goes, whatever it
// says, once, and the profile stays; the kernel lock decides who lives.
func TestDeadBrowsersLocksAreCleared_WSP2_B062(t *testing.T) {
	host, err := os.Hostname()
	check(t, err)
	c := startChild(t, "idle") // alive and no browser
	d := mustOpen(t, newPath(t), realMachine())
	for i, lock := range []string{"oldhost-4242", host + "-4194304", fmt.Sprint(host, "-", c.Process.Pid), "odd\x1b[31m" + strings.Repeat("x", 300), ""} {
		w, err := d.Workspace(t.Context(), "p", fmt.Sprint(i))
		check(t, err, os.WriteFile(filepath.Join(w.Profile, "History"), []byte("x"), 0o600))
		if lock != "" {
			check(t, os.Symlink(lock, filepath.Join(w.Profile, "SingletonLock")))
		}
		check(t, os.Symlink("1234567890", filepath.Join(w.Profile, "SingletonCookie")),
			os.Symlink("/nowhere/SingletonSocket", filepath.Join(w.Profile, "SingletonSocket")),
			os.WriteFile(filepath.Join(w.Profile, "DevToolsActivePort"), []byte("9222\n"), 0o600), w.Close())
		w, err = d.Workspace(t.Context(), "p", fmt.Sprint(i))
		check(t, err)
		if got := entries(t, w.Profile); !slices.Equal(got, []string{"History"}) {
			t.Errorf("%q: the profile holds %v", lock, got)
		}
		if want := min(len(lock), 1); len(w.Notes) != want {
			t.Errorf("%q: notes %v", lock, w.Notes)
		}
		for _, n := range w.Notes {
			if strings.ContainsRune(n, 0x1b) || len(n) > 600 || !strings.Contains(n, strings.SplitN(lock, "\x1b", 2)[0]) {
				t.Errorf("note %q", n)
			}
		}
		check(t, w.Close())
	}
}

// OWN-3, WSP-2: a process that still runs on the profile without holding it
// keeps it, and keeps it from being removed.
func TestAProcessOnAWorkspaceKeepsIt_OWN3_WSP2(t *testing.T) {
	p := newFakeProc(t, testBoot)
	d := mustOpen(t, newPath(t), p.machine())
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, os.Symlink("host-1", filepath.Join(w.Profile, "SingletonLock")), w.Close())
	p.ours(10, "chromium", "--user-data-dir="+w.Profile)
	_, err = d.Workspace(t.Context(), "p", "w")
	wantCode(t, err, reins.CodeLocked)
	wantCode(t, d.RemoveWorkspace(t.Context(), "p", "w"), reins.CodeLocked)
	if !exists(filepath.Join(w.Profile, "SingletonLock")) {
		t.Error("the lock of a live browser was cleared")
	}
	p.end(10)
	again, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, again.Close())
}

func TestOddWorkspacesAreFenced_DIR3(t *testing.T) {
	for name, spoil := range map[string]func(home, profile string) error{
		"folder open to others":  func(home, _ string) error { return os.Chmod(home, 0o750) },
		"profile open to others": func(_, profile string) error { return os.Chmod(profile, 0o755) },
		"profile a link": func(_, profile string) error {
			return firstError(os.Rename(profile, profile+"x"), os.Symlink(profile+"x", profile))
		},
		"lock a link": func(home, _ string) error {
			return firstError(os.Remove(filepath.Join(home, "lock")), os.Symlink("/etc/passwd", filepath.Join(home, "lock")))
		},
		"lock linked elsewhere": func(home, _ string) error { return os.Link(filepath.Join(home, "lock"), filepath.Join(home, "x")) },
		"all open to others":    func(home, _ string) error { return os.Chmod(filepath.Dir(home), 0o755) },
		"a folder in the lock's place": func(_, profile string) error {
			return os.MkdirAll(filepath.Join(profile, "SingletonLock", "x"), 0o700)
		},
	} {
		d := mustOpen(t, newPath(t), realMachine())
		w, err := d.Workspace(t.Context(), "p", "w")
		check(t, err, w.Close(), spoil(filepath.Dir(w.Profile), w.Profile))
		if _, err = d.Workspace(t.Context(), "p", "w"); reins.CodeOf(err) != reins.CodeFenced {
			t.Errorf("%s: %v", name, err)
		}
		mustClose(t, d)
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// RES-5: a removed workspace is gone with its folder and comes back empty.
func TestRemovingAWorkspace_RES5(t *testing.T) {
	path := newPath(t)
	d := mustOpen(t, path, realMachine())
	check(t, d.RemoveWorkspace(t.Context(), "p", "never"))
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, os.WriteFile(filepath.Join(w.Profile, "Cookies"), []byte("x"), 0o600), w.Close())
	o, err := d.Workspace(t.Context(), "p", "other")
	check(t, err, o.Close())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, d.RemoveWorkspace(ended, "p", "w"), reins.CodeCancelled)
	check(t, d.RemoveWorkspace(t.Context(), "p", "w"), d.RemoveWorkspace(t.Context(), "p", "w"))
	if got := entries(t, filepath.Join(path, workspacesName)); len(got) != 1 {
		t.Errorf("workspaces: %v", got)
	}
	w, err = d.Workspace(t.Context(), "p", "w")
	check(t, err)
	if got := entries(t, w.Profile); len(got) != 0 {
		t.Errorf("it came back with %v", got)
	}
	check(t, w.Close())
}

// LIFE-4: what a kill left of a removal goes with the next start; nothing else
// in the folder does.
func TestAnInterruptedRemovalIsFinished_LIFE4(t *testing.T) {
	path := newPath(t)
	d := mustOpen(t, path, realMachine())
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, w.Close())
	all := filepath.Join(path, workspacesName)
	left := filepath.Join(all, capability.NewID(removedKind))
	check(t, os.MkdirAll(filepath.Join(left, "profile"), 0o700), os.WriteFile(filepath.Join(left, "lock"), nil, 0o600),
		os.Mkdir(filepath.Join(all, "removed_by_hand"), 0o700))
	mustClose(t, d)
	mustClose(t, mustOpen(t, path, realMachine()))
	if got := entries(t, all); len(got) != 2 || exists(left) || !exists(w.Profile) {
		t.Errorf("workspaces: %v", got)
	}
}

// WSP-2: takers and removers at once: never two holders, never an error but busy.
func TestManyTakersAndRemovers_WSP2(t *testing.T) {
	d := mustOpen(t, newPath(t), newFakeProc(t, testBoot).machine())
	var wg sync.WaitGroup
	var holders sync.Mutex
	for i := range 8 {
		wg.Go(func() {
			for range 60 {
				if i%4 == 3 {
					if err := d.RemoveWorkspace(context.Background(), "p", "w"); err != nil && reins.CodeOf(err) != reins.CodeBusy {
						t.Error("remove:", err)
					}
					continue
				}
				w, err := d.Workspace(context.Background(), "p", "w")
				if err != nil {
					if reins.CodeOf(err) != reins.CodeBusy {
						t.Error("take:", err)
					}
					continue
				}
				if !holders.TryLock() {
					t.Error("two hold it")
				} else {
					if err := os.WriteFile(filepath.Join(w.Profile, "x"), nil, 0o600); err != nil {
						t.Error("the profile went under its holder:", err)
					}
					holders.Unlock()
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
