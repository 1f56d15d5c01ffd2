package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// The executable itself: the wrapper that distributions put before it reads
// files of the user's.
const chromium = "/usr/lib/chromium/chromium"

// startBrowser starts a real browser on a profile and returns it once it has
// children whose command line is one blank separated title.
func startBrowser(t *testing.T, profile string) *exec.Cmd {
	t.Helper()
	c := exec.Command(chromium, "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--user-data-dir="+profile, "about:blank")
	c.Env = []string{"HOME=" + t.TempDir()}
	// Its end of these pipes ends it when this process is gone, however.
	in, toBrowser, err := os.Pipe()
	check(t, err)
	fromBrowser, out, err := os.Pipe()
	check(t, err)
	c.ExtraFiles = []*os.File{in, out}
	check(t, c.Start(), in.Close(), out.Close())
	t.Cleanup(func() { _ = errors.Join(toBrowser.Close(), fromBrowser.Close()) })
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for titled(t, profile) == 0 {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			t.Fatal("the browser did not come up")
		}
	}
	return c
}

// titled is how many processes name a profile in a title of one string.
func titled(t *testing.T, profile string) (n int) {
	for _, e := range entries(t, "/proc") {
		if _, err := strconv.Atoi(e); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e, "cmdline"))
		if err == nil && strings.Contains(string(line), " --user-data-dir="+profile) && usesProfile(line, filepath.Dir(profile)) {
			n++
		}
	}
	return n
}

// OWN-3, B066: a real browser keeps the generation its profile is in; killed, it
// is waited for, children too, and all of it goes.
func TestARealBrowserKeepsItsGeneration_OWN3_B066(t *testing.T) {
	path := newPath(t)
	old := abandoned(t, path)
	profile := filepath.Join(path, generationsName, old.Generation, profilesName, "some")
	c := startBrowser(t, profile)
	m := realMachine()
	m.wait = 0
	_, err := open(t.Context(), path, Options{}, m)
	wantCode(t, err, reins.CodeLocked)
	if !exists(profile) {
		t.Fatal("the profile of a live browser was removed")
	}
	check(t, c.Process.Kill())
	d := mustOpen(t, path, realMachine())
	if exists(profile) || titled(t, profile) != 0 {
		t.Error("something of the browser is left")
	}
	mustClose(t, d)
}

// B062, WSP-2: a real browser starts on a profile that a browser of another
// host had locked when it died, and the profile is kept.
func TestARealBrowserTakesADeadOnesProfile_B062(t *testing.T) {
	d := mustOpen(t, newPath(t), realMachine())
	w, err := d.Workspace(t.Context(), "p", "w")
	check(t, err, os.WriteFile(filepath.Join(w.Profile, "kept"), []byte("x"), 0o600),
		os.Symlink("oldhost-4242", filepath.Join(w.Profile, "SingletonLock")),
		os.Symlink("1234567890", filepath.Join(w.Profile, "SingletonCookie")),
		os.Symlink("/nowhere/SingletonSocket", filepath.Join(w.Profile, "SingletonSocket")), w.Close())
	w, err = d.Workspace(t.Context(), "p", "w")
	check(t, err)
	if len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "oldhost-4242") {
		t.Errorf("notes: %v", w.Notes)
	}
	c := startBrowser(t, w.Profile)
	target, err := os.Readlink(filepath.Join(w.Profile, "SingletonLock"))
	if err != nil || !strings.HasSuffix(target, fmt.Sprint("-", c.Process.Pid)) {
		t.Errorf("the profile is locked by %q, %v", target, err)
	}
	if !exists(filepath.Join(w.Profile, "kept")) {
		t.Error("the profile was not kept")
	}
	check(t, c.Process.Kill(), w.Close())
	// Its processes end; then the next browser may have it.
	again, err := d.Workspace(t.Context(), "p", "w")
	check(t, err)
	if len(again.Notes) != 1 || !strings.Contains(again.Notes[0], target) {
		t.Errorf("notes: %v", again.Notes)
	}
	check(t, again.Close())
}
