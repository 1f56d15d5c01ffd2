package hostdir

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// TestMain also is the program that tests start again as another process: as
// "child", a word that says what it does, and its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(childMain(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

func childMain(what string, args []string) int {
	wait := func() { _, _ = io.Copy(io.Discard, os.Stdin) }
	switch what {
	case "idle": // does nothing, under whatever arguments
		fmt.Println("up")
		wait()
	case "hold": // owns a directory until its input ends
		d, err := Open(context.Background(), args[0], Options{})
		if err != nil {
			fmt.Println(reins.CodeOf(err))
			return 0
		}
		fmt.Println("owned")
		wait()
		if err := d.Close(context.Background()); err != nil {
			fmt.Println(err)
			return 1
		}
	case "churn": // starts and stops without end
		fmt.Println("up")
		for {
			if err := oneLife(args[0], realMachine()); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	case "die": // is killed at one step of a start and stop
		nth, _ := strconv.Atoi(args[1])
		if err := oneLife(args[0], dyingMachine(nth, args[2] == "after")); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("lived")
	}
	return 0
}

// oneLife opens a directory, fills it as browsers do, and closes it.
func oneLife(path string, m machine) error {
	d, err := open(context.Background(), path, Options{}, m)
	if err != nil {
		return err
	}
	s, err := d.NewSlot()
	if err != nil {
		return err
	}
	for i := range 5 {
		sub := filepath.Join(s.Profile, fmt.Sprint("Cache", i))
		err = errors.Join(err, os.MkdirAll(filepath.Join(sub, "a", "b"), 0o700),
			os.WriteFile(filepath.Join(sub, "a", "b", "data"), make([]byte, 4096), 0o600),
			os.Symlink("/etc", filepath.Join(sub, "link")))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(d.Artifacts().Name(), "x.part"), []byte("x"), 0o600))
	w, werr := d.Workspace(context.Background(), "p", "w")
	if err = errors.Join(err, werr); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(w.Profile, "kept"), []byte("x"), 0o600),
		os.Symlink("host-1", filepath.Join(w.Profile, "SingletonLock")), w.Close(), d.Close(context.Background()))
}

// dyingMachine kills its own process at the nth step that a test can see,
// before or after the step took effect.
func dyingMachine(nth int, after bool) machine {
	m, n := realMachine(), 0
	step := func(do func() error) error {
		n++
		if n == nth && !after {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
		err := do()
		if n == nth {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
		return err
	}
	real := m
	m.sync = func(f *os.File) error { return step(func() error { return real.sync(f) }) }
	m.lock = func(f *os.File, how int) error { return step(func() error { return real.lock(f, how) }) }
	m.rename = func(dir *os.File, a, b string) error { return step(func() error { return real.rename(dir, a, b) }) }
	m.fs = func(f *os.File) (facts fsFacts, err error) {
		err = step(func() (err error) { facts, err = real.fs(f); return err })
		return facts, err
	}
	return m
}

// child is a running copy of this program.
type child struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	once sync.Once
}

func startChild(t *testing.T, what string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(self, append([]string{"child", what}, args...)...)}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	out, oerr := c.StdoutPipe()
	if err = errors.Join(err, oerr, c.Start()); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	t.Cleanup(func() { c.kill() })
	return c
}

// line returns the next line that the child says, "" at its end.
func (c *child) line() string {
	if c.out.Scan() {
		return c.out.Text()
	}
	return ""
}

// kill ends the child at once, reaps it and returns what it said meanwhile.
func (c *child) kill() string {
	_ = c.Process.Kill()
	return c.end()
}

// end waits for the end of the child, once.
func (c *child) end() (said string) {
	c.once.Do(func() {
		for c.out.Scan() {
			said += c.out.Text()
		}
		_ = c.Wait()
	})
	return said
}

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "runtime")
}

func mustOpen(t *testing.T, path string, m machine) *Dir {
	t.Helper()
	d, err := open(t.Context(), path, Options{}, m)
	if err != nil {
		t.Fatalf("open: %v (%v)", err, errors.Unwrap(err))
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

func mustClose(t *testing.T, d *Dir) {
	t.Helper()
	if err := d.Close(t.Context()); err != nil {
		t.Fatalf("close: %v (%v)", err, errors.Unwrap(err))
	}
}

func wantCode(t *testing.T, err error, code reins.Code) {
	t.Helper()
	if e := (*reins.Error)(nil); !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// abandoned makes a directory as a killed owner leaves it.
func abandoned(t *testing.T, path string) record {
	t.Helper()
	d := mustOpen(t, path, realMachine())
	s, err := d.NewSlot()
	check(t, err, os.WriteFile(filepath.Join(s.Profile, "Cookies"), []byte("x"), 0o600))
	r := d.record
	d.watch.close()
	check(t, d.release())
	return r
}

// picture describes a tree completely: what a start that failed must not change.
func picture(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	check(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		what := ""
		switch e.Type() {
		case 0:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what = fmt.Sprintf("%x", sha256.Sum256(b))
		case fs.ModeSymlink:
			what, _ = os.Readlink(path)
		}
		rel, _ := filepath.Rel(root, path)
		out = append(out, fmt.Sprintf("%s %o inode %d links %d written %d.%d %s", rel, st.Mode, st.Ino, st.Nlink, st.Mtim.Sec, st.Mtim.Nsec, what))
		return nil
	}))
	return out
}

func samePicture(t *testing.T, before, after []string) {
	t.Helper()
	for _, l := range before {
		if !slices.Contains(after, l) {
			t.Errorf("gone or changed: %s", l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			t.Errorf("new or changed: %s", l)
		}
	}
}

func entries(t *testing.T, path string) []string {
	t.Helper()
	list, err := os.ReadDir(path)
	check(t, err)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fakeProc is a procfs of our own making, for processes and boots that cannot
// be had on cue.
type fakeProc struct {
	t    *testing.T
	path string
}

func newFakeProc(t *testing.T, boot time.Time) *fakeProc {
	p := &fakeProc{t, t.TempDir()}
	p.write("stat", fmt.Sprintf("cpu  1 2 3\nintr 5\nbtime %d\nprocesses 7\n", boot.Unix()))
	p.write("sys/kernel/random/boot_id", "5f748143-cda6-4417-be52-eb5546b8e6a9\n")
	p.write("self/stat", "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1 1\n")
	p.write("meminfo", "x")
	return p
}

func (p *fakeProc) write(name, text string) {
	path := filepath.Join(p.path, name)
	check(p.t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// process adds a process with the four IDs and the arguments.
func (p *fakeProc) process(pid int, ids string, args ...string) {
	p.write(fmt.Sprint(pid, "/status"), "Name:\tx\nState:\tS\nUid:\t"+ids+"\nGid:\t1\t1\t1\t1\n")
	p.write(fmt.Sprint(pid, "/cmdline"), strings.Join(args, "\x00")+"\x00")
}

func (p *fakeProc) ours(pid int, args ...string) {
	id := fmt.Sprint(os.Geteuid())
	p.process(pid, strings.Join([]string{id, id, id, id}, "\t"), args...)
}

func (p *fakeProc) end(pid int) { check(p.t, os.RemoveAll(filepath.Join(p.path, fmt.Sprint(pid)))) }

// machine is the real one but for processes, boot, and how long they are
// waited for: not at all.
func (p *fakeProc) machine() machine {
	m := realMachine()
	m.proc, m.wait = p.path, 0
	return m
}

// testBoot is a boot that is well past.
var testBoot = time.Unix(1_700_000_000, 0)
