package hostdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// older makes a directory as an older program left it: an empty record that it
// created exclusively, and profiles and artifacts at the top level.
func older(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	check(t, os.Mkdir(path, 0o700), os.Mkdir(filepath.Join(path, profilesName), 0o700), os.Mkdir(filepath.Join(path, artifactsName), 0o700),
		os.MkdirAll(filepath.Join(path, profilesName, "a", "Default"), 0o755),
		os.WriteFile(filepath.Join(path, profilesName, "a", "Default", "Cookies"), []byte("x"), 0o644),
		os.WriteFile(filepath.Join(path, artifactsName, "1.png"), []byte("x"), 0o644),
		os.WriteFile(filepath.Join(path, lockName), nil, 0o600))
	return path
}

// rebooted is a machine that started after everything in a directory was made.
func rebooted(t *testing.T) (machine, *fakeProc) {
	p := newFakeProc(t, time.Now().Add(10*time.Second))
	return p.machine(), p
}

// OWN-4: an empty record from before this boot that nobody holds is adopted,
// once, in place, and the old roots go whatever they hold.
func TestAdoptingAnOlderProgramsDirectory_OWN4(t *testing.T) {
	path := older(t)
	lock := inode(t, filepath.Join(path, lockName))
	m, _ := rebooted(t)
	d := mustOpen(t, path, m)
	if inode(t, filepath.Join(path, lockName)) != lock {
		t.Error("the record was replaced instead of adopted")
	}
	if got := strings.Join(entries(t, path), " "); got != "generations runtime.lock runtime.mutex" {
		t.Errorf("the directory holds %s", got)
	}
	if r, err := readRecord(d.lock); err != nil || r.Legacy || r.Generation != d.Generation() {
		t.Errorf("record: %+v, %v", r, err)
	}
	if len(d.Notes()) != 2 {
		t.Errorf("notes: %v", d.Notes())
	}
	mustClose(t, d)
	settled(t, path) // from now on it is like any other, on the real machine
}

// OWN-4: whoever has the file open, for reading or writing, is a live owner;
// a descriptor of the path alone is not.
func TestTheKernelTellsWhoHoldsTheOldRecord_OWN4(t *testing.T) {
	for how, code := range map[int]reins.Code{unix.O_RDONLY: reins.CodeLocked, unix.O_WRONLY: reins.CodeLocked, unix.O_RDWR: reins.CodeLocked, unix.O_PATH: ""} {
		path := older(t)
		m, _ := rebooted(t)
		fd, err := unix.Open(filepath.Join(path, lockName), how|unix.O_CLOEXEC, 0)
		check(t, err)
		d, err := open(t.Context(), path, Options{}, m)
		if reins.CodeOf(err) != code {
			t.Errorf("opened with %#x: %v", how, err)
		}
		if code != "" && !exists(filepath.Join(path, profilesName, "a", "Default", "Cookies")) {
			t.Errorf("opened with %#x: profiles of a live owner were removed", how)
		}
		check(t, unix.Close(fd))
		if d == nil {
			d = mustOpen(t, path, m) // the holder went: now it may be adopted
		}
		mustClose(t, d)
	}
}

// OWN-4: on the machine as it is, an empty record of this boot is fenced, held or
// not, and nothing is changed.
func TestAnOldRecordOfThisBoot_OWN4(t *testing.T) {
	path := older(t)
	before := picture(t, filepath.Join(path, profilesName))
	_, err := Open(t.Context(), path, Options{})
	wantCode(t, err, reins.CodeFenced)
	samePicture(t, before, picture(t, filepath.Join(path, profilesName)))
	held, err := os.Open(filepath.Join(path, lockName))
	check(t, err)
	_, err = Open(t.Context(), path, Options{})
	wantCode(t, err, reins.CodeLocked)
	check(t, held.Close())
}

// OWN-4: any doubt fences, and the old program's folders stay as they are.
func TestDoubtAboutAnOldRecordFences_OWN4(t *testing.T) {
	lockPath := func(path string) string { return filepath.Join(path, lockName) }
	for name, c := range map[string]struct {
		prep func(t *testing.T, path string, m *machine, p *fakeProc)
		code reins.Code
	}{
		"left since this boot": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.proc = newFakeProc(t, time.Now().Add(-time.Hour)).path
		}, reins.CodeFenced},
		"left in the second of the boot": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			var st unix.Stat_t
			check(t, unix.Lstat(lockPath(path), &st))
			m.proc = newFakeProc(t, time.Unix(st.Mtim.Sec, 0)).path
		}, reins.CodeFenced},
		"born later": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.birth = func(*os.File) (unix.StatxTimestamp, bool) {
				return unix.StatxTimestamp{Sec: time.Now().Add(time.Hour).Unix()}, true
			}
		}, reins.CodeFenced},
		"birth not told": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.birth = func(*os.File) (unix.StatxTimestamp, bool) { return unix.StatxTimestamp{}, false }
		}, reins.CodeFenced},
		"modified later": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			later := time.Now().Add(time.Hour)
			check(t, os.Chtimes(lockPath(path), later, later))
		}, reins.CodeFenced},
		"boot not told": {func(t *testing.T, path string, m *machine, p *fakeProc) { p.write("stat", "cpu 1 2 3\n") }, reins.CodeFenced},
		"no leases here": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.lease = func(*os.File) error { return unix.EINVAL }
		}, reins.CodeFenced},
		"touched during the probe": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.lease = func(f *os.File) error {
				before := time.Now().Add(-time.Hour)
				return errors.Join(probeLease(f), os.Chtimes(lockPath(path), before, before))
			}
		}, reins.CodeFenced},
		"replaced during the probe": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.lease = func(f *os.File) error {
				return errors.Join(probeLease(f), os.Rename(lockPath(path), path+".aside"), os.WriteFile(lockPath(path), nil, 0o600))
			}
		}, reins.CodeFenced},
		"written during the probe": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			m.lease = func(f *os.File) error {
				return errors.Join(probeLease(f), os.WriteFile(lockPath(path), []byte("x"), 0o600))
			}
		}, reins.CodeFenced},
		"linked elsewhere":   {func(t *testing.T, path string, m *machine, p *fakeProc) { check(t, os.Link(lockPath(path), path+".l")) }, reins.CodeFenced},
		"readable by others": {func(t *testing.T, path string, m *machine, p *fakeProc) { check(t, os.Chmod(lockPath(path), 0o644)) }, reins.CodeFenced},
		"old root open to others": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			check(t, os.Chmod(filepath.Join(path, artifactsName), 0o755))
		}, reins.CodeFenced},
		"old root a link": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			check(t, os.Rename(filepath.Join(path, artifactsName), path+".aside"), os.Symlink(path+".aside", filepath.Join(path, artifactsName)))
		}, reins.CodeFenced},
		"unknown generation": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			check(t, os.MkdirAll(filepath.Join(path, generationsName, "x"), 0o700))
		}, reins.CodeFenced},
		"a process on the old profiles": {func(t *testing.T, path string, m *machine, p *fakeProc) {
			p.ours(10, "chromium", "--user-data-dir="+filepath.Join(path, profilesName, "a"))
		}, reins.CodeLocked},
	} {
		t.Run(name, func(t *testing.T) {
			path := older(t)
			m, p := rebooted(t)
			c.prep(t, path, &m, p)
			_, err := open(t.Context(), path, Options{}, m)
			wantCode(t, err, c.code)
			if !strings.Contains(err.Error(), path) && name != "boot not told" {
				t.Errorf("the sentence names nothing: %v", err)
			}
			for _, kept := range []string{profilesName + "/a/Default/Cookies", artifactsName + "/1.png"} {
				if !exists(filepath.Join(path, kept)) {
					t.Errorf("%s is gone", kept)
				}
			}
			if exists(filepath.Join(path, generationsName, "gen")) || len(entries(t, path)) > 6 {
				t.Errorf("the directory holds %v", entries(t, path))
			}
		})
	}
}

// OWN-4: killed between the adoption and the end of the removal, the next start
// goes on with it.
func TestAnInterruptedAdoptionIsFinished_OWN4(t *testing.T) {
	path := older(t)
	m, _ := rebooted(t)
	ctx, cancel := context.WithCancel(t.Context())
	real := m.sync
	m.sync = func(f *os.File) error {
		if f.Name() == filepath.Join(path, lockName) {
			cancel() // just when the record is durable: removing cannot begin
		}
		return real(f)
	}
	_, err := open(ctx, path, Options{}, m)
	wantCode(t, err, reins.CodeCancelled)
	if !exists(filepath.Join(path, profilesName)) {
		t.Fatal("the removal was not interrupted")
	}
	d := mustOpen(t, path, realMachine()) // same boot: the record is ours now
	if got := strings.Join(entries(t, path), " "); got != "generations runtime.lock runtime.mutex" {
		t.Errorf("the directory holds %s", got)
	}
	if r, err := readRecord(d.lock); err != nil || r.Legacy {
		t.Errorf("record: %+v, %v", r, err)
	}
}

// OWN-5: without a record, empty folders of a predecessor that stopped cleanly
// are removed; anything in them fences; a process on them is waited for.
func TestACleanlyStoppedPredecessor_OWN5(t *testing.T) {
	make := func() string {
		path := older(t)
		check(t, os.Remove(filepath.Join(path, lockName)))
		return path
	}
	p := newFakeProc(t, time.Now().Add(-time.Hour)) // no boot gate
	for _, keep := range []string{profilesName, artifactsName} {
		path := make()
		for _, name := range []string{profilesName, artifactsName} {
			if name != keep {
				check(t, os.RemoveAll(filepath.Join(path, name)), os.Mkdir(filepath.Join(path, name), 0o700))
			}
		}
		_, err := open(t.Context(), path, Options{}, p.machine())
		wantCode(t, err, reins.CodeFenced)
		if !strings.Contains(err.Error(), filepath.Join(path, keep)) {
			t.Error(err)
		}
		if !exists(filepath.Join(path, profilesName)) || !exists(filepath.Join(path, artifactsName)) || exists(filepath.Join(path, lockName)) {
			t.Errorf("the directory holds %v", entries(t, path))
		}
	}
	path := make()
	for _, name := range []string{profilesName, artifactsName} {
		check(t, os.RemoveAll(filepath.Join(path, name)), os.Mkdir(filepath.Join(path, name), 0o700))
	}
	p.ours(10, "x", "--user-data-dir="+filepath.Join(path, profilesName, "gone"))
	_, err := open(t.Context(), path, Options{}, p.machine())
	wantCode(t, err, reins.CodeLocked)
	p.end(10)
	check(t, os.Chmod(filepath.Join(path, artifactsName), 0o750))
	_, err = open(t.Context(), path, Options{}, p.machine())
	wantCode(t, err, reins.CodeFenced)
	check(t, os.Chmod(filepath.Join(path, artifactsName), 0o700))
	d := mustOpen(t, path, p.machine())
	if got := strings.Join(entries(t, path), " "); got != "generations runtime.lock runtime.mutex" || len(d.Notes()) != 1 {
		t.Errorf("the directory holds %s, notes %v", got, d.Notes())
	}
	// Without a record there is no generation either.
	path = newPath(t)
	check(t, os.Mkdir(path, 0o700), os.MkdirAll(filepath.Join(path, generationsName, newGeneration()), 0o700))
	_, err = Open(t.Context(), path, Options{})
	wantCode(t, err, reins.CodeFenced)
}
