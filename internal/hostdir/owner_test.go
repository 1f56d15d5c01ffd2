package hostdir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// OWN-1: another process has it: locked, with its number; killed: free at once.
func TestALiveOwnerKeepsOthersOut_OWN1_B078(t *testing.T) {
	path := newPath(t)
	c := startChild(t, "hold", path)
	if got := c.line(); got != "owned" {
		t.Fatal(got)
	}
	before := picture(t, path)
	_, err := Open(t.Context(), path, Options{})
	wantCode(t, err, reins.CodeLocked)
	if e := reins.AsError(err); e.Details["pid"] != c.Process.Pid || !strings.Contains(e.Message, fmt.Sprint("process ", c.Process.Pid)) || !e.Retryable {
		t.Errorf("it does not say who: %+v", e)
	}
	samePicture(t, before, picture(t, path))
	c.kill()
	d := mustOpen(t, path, realMachine())
	if len(d.Notes()) != 1 || !strings.Contains(d.Notes()[0], fmt.Sprint("process ", c.Process.Pid)) {
		t.Errorf("notes: %v", d.Notes())
	}
	if got := entries(t, filepath.Join(path, generationsName)); len(got) != 1 || got[0] != d.Generation() {
		t.Errorf("generations: %v", got)
	}
}

// OWN-1: of many starts at once exactly one wins, on a new directory and on one
// that a killed owner left.
func TestExactlyOneOfManyStartsWins_OWN1_B078(t *testing.T) {
	for _, left := range []bool{false, true} {
		for range 3 {
			path := newPath(t)
			if left {
				abandoned(t, path)
			}
			var all []*child
			for range 4 {
				all = append(all, startChild(t, "hold", path))
			}
			said := map[string]int{}
			for _, c := range all {
				said[c.line()]++
			}
			if said["owned"] != 1 || said["locked"] != 3 {
				t.Fatalf("they said %v", said)
			}
		}
	}
	// The same within one process, where a lock by process would not tell.
	path := newPath(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []*Dir
	for range 8 {
		wg.Go(func() {
			d, err := Open(context.Background(), path, Options{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, d)
			} else if reins.CodeOf(err) != reins.CodeLocked {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d owners", len(won))
	}
	mustClose(t, won[0])
}

func TestALockThatFailsIsFenced_OWN1(t *testing.T) {
	for _, errno := range []error{unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP, unix.EIO} {
		m := realMachine()
		m.lock = func(*os.File, int) error { return errno }
		_, err := open(t.Context(), newPath(t), Options{}, m)
		wantCode(t, err, reins.CodeFenced)
	}
	m := realMachine()
	m.lock = func(f *os.File, how int) error {
		if how == unix.LOCK_UN {
			return unix.EIO
		}
		return unix.Flock(int(f.Fd()), how)
	}
	d, err := open(t.Context(), newPath(t), Options{}, m)
	check(t, err)
	wantCode(t, d.Close(t.Context()), reins.CodeFenced) // an uncertain release
}

// OWN-1: a lock on a file that the name no longer leads to is worth nothing.
func TestAnAnchorReplacedWhileLocking_OWN1(t *testing.T) {
	path := newPath(t)
	m := realMachine()
	m.lock = func(f *os.File, how int) error {
		if how&unix.LOCK_EX != 0 {
			check(t, os.Remove(f.Name()), os.WriteFile(f.Name(), nil, 0o600))
		}
		return unix.Flock(int(f.Fd()), how)
	}
	_, err := open(t.Context(), path, Options{}, m)
	wantCode(t, err, reins.CodeFenced)
	if exists(filepath.Join(path, lockName)) {
		t.Error("it went on to make a record")
	}
}

// failing makes the nth sync of a machine fail, after it took effect.
func failing(m machine, nth int) (machine, *int) {
	n := new(int)
	real := m.sync
	m.sync = func(f *os.File) error {
		err := real(f)
		if *n++; *n == nth {
			return unix.EIO
		}
		return err
	}
	return m, n
}

// OWN-6: a first start that fails before its record is durable removes the
// record that it made; any later start that fails leaves the record that was
// there; and either way the next start works and nothing of a generation stays.
func TestAStartThatFailsUndoesItself_OWN6(t *testing.T) {
	for _, existing := range []bool{false, true} {
		total := 0
		for nth := 1; ; nth++ {
			path := newPath(t)
			var lock uint64
			if existing {
				abandoned(t, path)
				lock = inode(t, filepath.Join(path, lockName))
			}
			m, n := failing(realMachine(), nth)
			d, err := open(t.Context(), path, Options{}, m)
			if err == nil {
				total = *n
				_ = d.Close(context.Background()) // may meet the failing sync
				check(t, d.Close(context.Background()))
				break
			}
			wantCode(t, err, reins.CodeFenced)
			switch has := exists(filepath.Join(path, lockName)); {
			case existing && (!has || inode(t, filepath.Join(path, lockName)) != lock):
				t.Errorf("sync %d: the record that was there is gone", nth)
			case !existing && nth <= 4 && has: // mutex folder, root, record, its name
				t.Errorf("sync %d: the record that was not durable stays", nth)
			case !existing && nth > 4 && !has:
				t.Errorf("sync %d: the durable record is gone", nth)
			}
			if exists(filepath.Join(path, lockName+".new")) {
				t.Errorf("sync %d: an unnamed record stays", nth)
			}
			if nth > 4 { // past the record: the start ended its own generation
				if list := entries(t, filepath.Join(path, generationsName)); len(list) != 0 {
					t.Errorf("sync %d: generations stay: %v", nth, list)
				}
			}
			mustClose(t, mustOpen(t, path, realMachine()))
			if list := entries(t, filepath.Join(path, generationsName)); len(list) != 0 {
				t.Errorf("sync %d: generations stay: %v", nth, list)
			}
		}
		if total < 5 {
			t.Errorf("a start makes only %d things durable", total)
		}
	}
}

// OWN-2, OWN-6: an older program that creates the record at the same instant
// keeps it.
func TestAnOlderProgramThatWasFaster_OWN6(t *testing.T) {
	path := newPath(t)
	m := realMachine()
	m.rename = func(dir *os.File, from, to string) error {
		check(t, os.WriteFile(filepath.Join(path, to), nil, 0o600))
		return renameNew(dir, from, to)
	}
	_, err := open(t.Context(), path, Options{}, m)
	wantCode(t, err, reins.CodeLocked)
	if b, err := os.ReadFile(filepath.Join(path, lockName)); err != nil || len(b) != 0 {
		t.Errorf("the other program's file: %q, %v", b, err)
	}
	if exists(filepath.Join(path, lockName+".new")) {
		t.Error("our own stays")
	}
	// The same after ours was named: only the file that this start made goes.
	path = newPath(t)
	lock := filepath.Join(path, lockName)
	m = realMachine()
	m.sync = func(f *os.File) error {
		if f.Name() != path || !exists(lock) {
			return f.Sync()
		}
		return errors.Join(os.Rename(lock, path+".aside"), os.WriteFile(lock, nil, 0o600), unix.EIO)
	}
	_, err = open(t.Context(), path, Options{}, m)
	wantCode(t, err, reins.CodeFenced)
	if b, err := os.ReadFile(lock); err != nil || len(b) != 0 {
		t.Errorf("the other program's file: %q, %v", b, err)
	}
	// What a kill left of an unnamed record does not count.
	other := newPath(t)
	check(t, os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, lockName+".new"), []byte("torn"), 0o600))
	mustOpen(t, other, realMachine())
	if exists(filepath.Join(other, lockName+".new")) {
		t.Error("what a kill left stays")
	}
}

// LIFE-1, LIFE-2: a stop that fails keeps the mutex, so that no start can come
// between, and can be called again until it succeeds.
func TestAFailedStopCanBeRepeated_LIFE1_LIFE2(t *testing.T) {
	fail := false
	m := realMachine()
	m.sync = func(f *os.File) error {
		if fail {
			return unix.EIO
		}
		return f.Sync()
	}
	path := newPath(t)
	d, err := open(t.Context(), path, Options{}, m)
	check(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = d.Close(ended)
	wantCode(t, err, reins.CodeCancelled)
	fail = true
	err = d.Close(t.Context())
	wantCode(t, err, reins.CodeFenced)
	if reins.AsError(err).Phase != reins.PhaseCleanUp {
		t.Errorf("phase %s", reins.AsError(err).Phase)
	}
	_, err = Open(t.Context(), path, Options{})
	wantCode(t, err, reins.CodeLocked)
	_, err = d.NewSlot()
	wantCode(t, err, reins.CodeRuntimeStopped)
	fail = false
	var wg sync.WaitGroup
	for range 4 { // a later stop joins one under way
		wg.Go(func() {
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	mustOpen(t, path, realMachine())
}

// settled checks that a directory after a start and a stop holds what is
// permanent and nothing else.
func settled(t *testing.T, path string) {
	t.Helper()
	d, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatalf("a start after a kill: %v (%v)", err, errors.Unwrap(err))
	}
	if got := entries(t, filepath.Join(path, generationsName)); len(got) != 1 || got[0] != d.Generation() {
		t.Fatalf("generations after a start: %v", got)
	}
	for _, f := range []*os.File{d.Profiles(), d.Artifacts(), d.Doors()} {
		if got := entries(t, f.Name()); len(got) != 0 {
			t.Fatalf("%s is not empty: %v", f.Name(), got)
		}
	}
	check(t, d.Close(context.Background()))
	// Workspaces stay, and there may be none yet.
	if got := strings.TrimSuffix(strings.Join(entries(t, path), " "), " workspaces"); got != "generations runtime.lock runtime.mutex" {
		t.Fatalf("the directory holds %s", got)
	}
	if got := entries(t, filepath.Join(path, generationsName)); len(got) != 0 {
		t.Fatalf("generations after a stop: %v", got)
	}
}

// OWN-1, OWN-3, LIFE-4, B066, B071, B078: killed at 100 random instants of
// starting, working and stopping, the next start works and nothing is left.
func TestKilledAtRandomInstants_LIFE4_OWN3(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		c := startChild(t, "churn", path)
		if got := c.line(); got != "up" {
			t.Fatal(got)
		}
		timer := time.NewTimer(time.Duration(r.Int64N(int64(40 * time.Millisecond))))
		<-timer.C
		if said := c.kill(); said != "" {
			t.Fatalf("the child failed by itself: %s", said)
		}
		settled(t, path)
	}
}

// The same at every step that is made durable, locked or named, before and
// after it took effect, on a new directory and on an old one.
func TestKilledAtEveryStep_LIFE4_OWN3(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s old %v", when, old), func(t *testing.T) {
				t.Parallel()
				path := newPath(t)
				nth := 1
				for ; !dies(t, path, nth, when); nth++ {
					settled(t, path)
					if !old {
						path = newPath(t)
					}
				}
				t.Logf("killed at %d steps", nth-1)
				if nth < 12 {
					t.Errorf("a start and a stop have only %d steps", nth)
				}
			})
		}
	}
}

// dies runs a start and a stop that is killed at its nth step and reports
// whether it came through, having fewer.
func dies(t *testing.T, path string, nth int, when string) (lived bool) {
	t.Helper()
	c := startChild(t, "die", path, fmt.Sprint(nth), when)
	defer c.kill()
	said := c.line()
	if said != "" && said != "lived" {
		t.Fatalf("step %d: %s", nth, said)
	}
	return said != ""
}
