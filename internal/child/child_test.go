package child_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/child"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "without-main" {
		_, err := child.Start(context.Background(), child.Spec{Role: "report"})
		fmt.Print(err)
		return
	}
	child.Main(map[string]child.Entry{
		"report": report, "wait": wait, "stubborn": stubborn, "talk": talk,
		"parent": parent, "confined": confined, "capable": capable, "later": report,
		"greedy": greedy, "echo": echo, "cramped": cramped,
	})
	goleak.VerifyTestMain(m)
}

// status is what a child says about itself.
type status struct {
	PID, TGID  int
	Args       []string
	Message    string
	Env        []string
	Files      []string // what its descriptors are
	Dumpable   int
	NoNewPrivs int
	Caps       string
	Bounding   string
	Dir        string
	FileMask   string
}

func report(_ context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	s := status{PID: os.Getpid(), Args: self.Args, Message: string(self.Message), Env: os.Environ()}
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, n := range names {
		if target, err := os.Readlink(n); err == nil {
			s.Files = append(s.Files, target)
		}
	}
	s.Dumpable, _ = unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	s.NoNewPrivs, _ = unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	text, _ := os.ReadFile("/proc/self/status")
	s.Caps, s.Bounding = field(string(text), "CapPrm"), field(string(text), "CapBnd")
	s.FileMask = field(string(text), "Umask")
	s.Dir, _ = os.Getwd()
	return json.NewEncoder(out).Encode(s)
}

func field(status, name string) string {
	_, rest, _ := strings.Cut(status, name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func wait(ctx context.Context, self *child.Self) error {
	if out, err := self.File("out"); err == nil {
		fmt.Fprintln(out, os.Getpid())
	}
	<-ctx.Done()
	return nil
}

func stubborn(_ context.Context, self *child.Self) error {
	signal.Ignore(syscall.SIGTERM)
	out, err := self.File("out")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	for {
		_ = unix.Pause()
	}
}

func talk(_ context.Context, self *child.Self) error {
	for i := range 20000 {
		fmt.Fprintf(os.Stderr, "line %d\n", i)
	}
	fmt.Fprintf(os.Stderr, "bad \xff byte\n")
	return errors.New("no more to say")
}

// echo answers over a connection that was non-blocking when passed.
func echo(_ context.Context, self *child.Self) error {
	f, err := self.File("link")
	if err != nil {
		return err
	}
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		return err
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("read gave %v, not a deadline", err)
	}
	_, err = f.WriteString("ok")
	return err
}

// parent starts children and lives on; the test kills it.
func parent(ctx context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	// A process that may start isolated children is dumpable; children are not.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	for range 3 {
		s := child.Spec{Role: "stubborn", Files: map[string]*os.File{"out": out}}
		if len(self.Args) > 0 {
			s.Isolate()
		}
		p, err := child.Start(ctx, s)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, p.PID())
	}
	<-ctx.Done()
	return nil
}

func start(t *testing.T, s child.Spec) *child.Process {
	t.Helper()
	p, err := child.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); <-p.Done() })
	return p
}

// withOut starts s with a pipe as "out" and returns its reading end.
func withOut(t *testing.T, s child.Spec) (*child.Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s.Files = maps.Clone(s.Files)
	if s.Files == nil {
		s.Files = map[string]*os.File{}
	}
	s.Files["out"] = w
	p := start(t, s)
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	return p, r
}

func readStatus(t *testing.T, p *child.Process, r io.Reader) status {
	t.Helper()
	var s status
	if err := json.NewDecoder(r).Decode(&s); err != nil {
		<-p.Done()
		t.Fatalf("%v; %s; stderr %q", err, p.Exit(), p.Stderr())
	}
	return s
}

func TestChildHasOnlyWhatItWasGiven_DRV1(t *testing.T) {
	// A descriptor that an embedding program forgot to mark close-on-exec.
	leak, err := unix.Open("/etc/hostname", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	t.Setenv("LEAK", "1")
	p, r := withOut(t, child.Spec{Role: "report", Args: []string{"--user-data-dir=/somewhere"}, Message: []byte("secret")})
	s := readStatus(t, p, r)
	if !slices.Equal(s.Args, []string{"--user-data-dir=/somewhere"}) || s.Message != "secret" {
		t.Errorf("args %q, message %q", s.Args, s.Message)
	}
	if len(s.Env) != 0 {
		t.Errorf("environment %q is not empty", s.Env)
	}
	// Left are the given ones and what the Go runtime opened itself.
	if i := slices.IndexFunc(s.Files, func(f string) bool { return f == "/etc/hostname" || strings.Contains(f, "memfd") }); i >= 0 {
		t.Errorf("descriptor on %s leaked; all: %q", s.Files[i], s.Files)
	}
	if s.Dumpable != 0 || s.Dir != "/" || s.FileMask != "0077" {
		t.Errorf("dumpable %d, directory %q, file mask %s", s.Dumpable, s.Dir, s.FileMask)
	}
	<-p.Done()
	if e := p.Exit(); e != (child.Exit{}) {
		t.Errorf("exit %s: %s", e, p.Stderr())
	}
}

func TestCommandLineShowsRoleAndArgs(t *testing.T) {
	p, r := withOut(t, child.Spec{Role: "wait", Args: []string{"--user-data-dir=/a b"}, Message: []byte("secret")})
	if _, err := r.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
	if err != nil || string(line) != "reins:wait\x00--user-data-dir=/a b\x00" {
		t.Fatalf("command line %q (%v)", line, err)
	}
}

func TestNonBlockingFilesStaySo(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	p := start(t, child.Spec{Role: "echo", Files: map[string]*os.File{"link": theirs}})
	theirs.Close()
	_ = ours.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 2)
	if _, err := io.ReadFull(ours, b); err != nil || string(b) != "ok" {
		<-p.Done()
		t.Fatalf("%q, %v; stderr %q", b, err, p.Stderr())
	}
}

func TestStopLadder(t *testing.T) {
	for _, c := range []struct {
		role string
		want child.Exit
	}{
		{"wait", child.Exit{}},
		{"stubborn", child.Exit{Code: -1, Signal: syscall.SIGKILL}},
	} {
		p, r := withOut(t, child.Spec{Role: c.role})
		if _, err := r.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		grace := 50 * time.Millisecond
		if c.role == "wait" {
			grace = 20 * time.Second
		}
		if got := p.Stop(t.Context(), grace); got != c.want {
			t.Errorf("%s: ended by %s, want %s", c.role, got, c.want)
		}
		if err := syscall.Kill(p.PID(), 0); err != syscall.ESRCH {
			t.Errorf("%s: still there: %v", c.role, err)
		}
	}
}

func TestStopWithEndedContextKills(t *testing.T) {
	p, r := withOut(t, child.Spec{Role: "stubborn"})
	if _, err := r.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := p.Stop(ctx, time.Hour); got.Signal != syscall.SIGKILL {
		t.Errorf("ended by %s", got)
	}
}

func TestStderrKeepsTheLastLines(t *testing.T) {
	p := start(t, child.Spec{Role: "talk"})
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Code != 1 {
		t.Fatalf("%s, %v", exit, err)
	}
	got := p.Stderr()
	if len(got) > 16<<10+3 || !strings.Contains(got, "line 19999\nbad \uFFFD byte\nreins:talk: no more to say\n") {
		t.Errorf("%d bytes ending in %q", len(got), got[max(0, len(got)-100):])
	}
}

func TestStartRefuses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		spec child.Spec
		want reins.Code
	}{
		{"unlisted role", t.Context(), child.Spec{Role: "nobody"}, reins.CodeInvalidInput},
		{"ended context", ended, child.Spec{Role: "wait"}, reins.CodeCancelled},
		{"nil file", t.Context(), child.Spec{Role: "wait", Files: map[string]*os.File{"x": nil}}, reins.CodeStartupFailed},
		{"refused by kernel", t.Context(), child.Spec{Role: "wait", Attr: syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345}}}, reins.CodeStartupFailed},
	} {
		p, err := child.Start(c.ctx, c.spec)
		if reins.CodeOf(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if p != nil {
			p.Kill()
			<-p.Done()
		}
	}
}

// cramped starts an isolated child before and after its user may have no more
// namespaces, and tells the codes.
func cramped(ctx context.Context, self *child.Self) error {
	out, err := self.File("out")
	if err != nil {
		return err
	}
	// A process that may start isolated children is dumpable; children are not.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	for range 2 {
		s := child.Spec{Role: "wait"}
		s.Isolate()
		p, err := child.Start(ctx, s)
		if err == nil {
			p.Stop(ctx, time.Second)
		}
		fmt.Fprintln(out, reins.CodeOf(err), err)
		// The bound is of this user namespace; the host's stays.
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

// CELL-10, DRV-5: where namespaces are forbidden an isolated child is refused as
// such, with the way out.
func TestForbiddenNamespacesAreUnsafeHost_CELL10_DRV5(t *testing.T) {
	s := child.Spec{Role: "cramped"}
	s.Isolate()
	s.Attr.Cloneflags = unix.CLONE_NEWUSER // /proc is still its own
	s.Attr.AmbientCaps = []uintptr{unix.CAP_SYS_RESOURCE}
	p, r := withOut(t, s)
	said, err := io.ReadAll(r)
	<-p.Done()
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if err != nil || p.Exit() != (child.Exit{}) || len(lines) != 2 {
		t.Fatalf("it said %q (%v), %s: %s", said, err, p.Exit(), p.Stderr())
	}
	if lines[0] != "<nil>" {
		t.Errorf("with namespaces: %s", lines[0])
	}
	if !strings.HasPrefix(lines[1], string(reins.CodeUnsafeHost)) || !strings.Contains(lines[1], "reins doctor") {
		t.Errorf("without: %s", lines[1])
	}
}

func TestStartWithoutMainSaysSo(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := os.StartProcess(exe, []string{exe, "without-main"}, &os.ProcAttr{Files: []*os.File{nil, w, os.Stderr}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if _, waitErr := p.Wait(); err != nil || waitErr != nil {
		t.Fatal(err, waitErr)
	}
	if !strings.HasPrefix(string(out), "invalid_input: ") || !strings.Contains(string(out), "host.Main was not called") {
		t.Errorf("said %q", out)
	}
}

// A program name alone makes nobody a child: the sealed descriptor is missing.
func TestForgedNameIsRefused(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	forged, err := os.CreateTemp(t.TempDir(), "message")
	if err != nil {
		t.Fatal(err)
	}
	defer forged.Close()
	fmt.Fprint(forged, `{"magic":"reins-child-1","role":"report"}`)
	for _, third := range []*os.File{nil, forged} {
		p, err := os.StartProcess(exe, []string{"reins:report"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil, third}})
		if err != nil {
			t.Fatal(err)
		}
		state, err := p.Wait()
		if err != nil || state.ExitCode() != 1 {
			t.Errorf("descriptor %v: %v, %v", third, state, err)
		}
	}
}

func TestParentKilledLeavesNobody_OVW1(t *testing.T) {
	for _, args := range [][]string{nil, {"isolated"}} {
		p, r := withOut(t, child.Spec{Role: "parent", Args: args})
		var pids []int
		ready := 0
		for ready < 3 || len(pids) < 3 {
			var word string
			if _, err := fmt.Fscan(r, &word); err != nil {
				t.Fatalf("%v; stderr %q", err, p.Stderr())
			}
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			} else {
				ready++
			}
		}
		begin := time.Now()
		p.Kill()
		// The children hold the pipe's writing end: its end is theirs.
		_ = r.SetReadDeadline(begin.Add(time.Second))
		if _, err := io.ReadAll(r); err != nil {
			t.Fatalf("children %v live on a second later: %v", pids, err)
		}
		t.Logf("%v: gone after %v", args, time.Since(begin))
	}
}
