package child

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

const selfPath = "/proc/self/exe"

// Spec says what child to start.
type Spec struct {
	Role    string
	Args    []string            // after the role on the command line, for other programs to read
	Message []byte              // handed over unseen by other processes; at most 16 MiB
	Files   map[string]*os.File // the child's descriptors by name; the caller keeps its own
	Attr    syscall.SysProcAttr // namespaces, ID maps, ambient capabilities; Setsid, Pdeathsig and PidFD are set by Start
}

// Isolate puts the child into user, network, PID, IPC and UTS namespaces of its
// own with its user mapped to itself, without any capability there. Its mounts
// stay the parent's. A host that forbids it makes Start fail with unsafe_host,
// and so does a parent that is not dumpable, since it may not map the child's
// user (DRV-5).
func (s *Spec) Isolate() {
	s.Attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	s.Attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	s.Attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
}

func argv(s Spec) []string { return append([]string{argPrefix + s.Role}, s.Args...) }

// Start starts a child. It fails with invalid_input when [Main] was not called
// or lacks the role, with unsafe_host when the host forbids the namespaces that
// were asked for, with startup_failed when the system refuses otherwise, and with
// the context's error when that ended before; nothing is left behind then.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if err := reins.ContextError(ctx); err != nil {
		return nil, err.In(reins.PhaseStart)
	}
	if err := Listed(s.Role); err != nil {
		return nil, err
	}
	p, err := start(s)
	switch {
	case err == nil:
		return p, nil
	case s.Attr.Cloneflags&unix.CLONE_NEWUSER != 0 && forbidden(err):
		return nil, reins.Errorf(reins.CodeUnsafeHost, "this host does not let an ordinary user make namespaces (%w), which child process %q is sealed with; run reins doctor for what to change", err, s.Role).In(reins.PhaseStart)
	}
	return nil, reins.Errorf(reins.CodeStartupFailed, "child process %q did not start: %w", s.Role, err).In(reins.PhaseStart)
}

// forbidden reports whether the kernel refused namespaces: by a setting, by a
// security module, or because its bound on them is zero or reached.
func forbidden(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS}, func(errno error) bool { return errors.Is(err, errno) })
}

// Listed says whether this program can be the child that a role names: nil, or
// the invalid_input that [Start] would refuse with.
func Listed(role string) error {
	switch called, listed := known(role); {
	case !called:
		return reins.Errorf(reins.CodeInvalidInput, "this program cannot start the child process %q because host.Main was not called; call it first thing in main (tests: in TestMain)", role)
	case !listed:
		return reins.Errorf(reins.CodeInvalidInput, "this program cannot start the child process %q because its main does not list that role; call host.Main first thing in main", role)
	}
	return nil
}

func start(s Spec) (_ *Process, err error) {
	var l launch
	defer func() { l.closeChildEnds() }()
	p := &Process{role: s.Role, done: make(chan struct{})}
	defer func() {
		if err != nil {
			p.closeParentEnds()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l.own(null)
	stderr, stderrW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.own(stderrW)
	p.stderr = stderr
	lifelineR, lifelineW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.own(lifelineR)
	p.lifeline = lifelineW
	m := message{Role: s.Role, Body: s.Message, Files: map[string]int{}}
	names := slices.Sorted(maps.Keys(s.Files))
	for i, name := range names {
		m.Files[name] = firstFD + i
	}
	sealed, err := m.seal()
	if err != nil {
		return nil, err
	}
	l.own(sealed)
	l.files = append(l.files, null, null, stderrW, sealed, lifelineR)
	for _, name := range names {
		l.files = append(l.files, s.Files[name])
	}
	if err := l.fork(p, s); err != nil {
		return nil, err
	}
	p.watch()
	return p, nil
}

// launch is the child's side of a start: descriptors by position, and those
// that are only for the child.
type launch struct {
	files []*os.File
	owned []*os.File
}

func (l *launch) own(f *os.File) { l.owned = append(l.owned, f) }

func (l *launch) closeChildEnds() {
	for _, f := range l.owned {
		f.Close()
	}
}

// fork starts s on the forking thread and stores the process in p. Numbers are
// duplicated first, so that a caller closing a file meanwhile cannot make the
// child inherit whatever got its number next.
func (l *launch) fork(p *Process, s Spec) error {
	var fds []uintptr
	defer func() {
		for _, fd := range fds {
			unix.Close(int(fd))
		}
	}()
	for i, f := range l.files {
		fd, err := duplicate(f)
		if err != nil {
			return fmt.Errorf("descriptor %d: %w", i, err)
		}
		fds = append(fds, uintptr(fd))
	}
	attr := s.Attr
	attr.Setsid, attr.Pdeathsig, attr.PidFD = true, syscall.SIGKILL, nil
	var err error
	thread := acquireThread()
	thread.do(func() {
		var pid int
		pid, _, err = syscall.StartProcess(selfPath, argv(s), &syscall.ProcAttr{Dir: "/", Env: []string{}, Files: fds, Sys: &attr})
		if err == nil {
			p.pid = pid
			p.os, err = os.FindProcess(pid) // not reaped yet, so the number is still its own
		}
	})
	if err != nil {
		thread.release()
		return err
	}
	p.thread = thread
	return nil
}

func duplicate(f *os.File) (int, error) {
	if f == nil {
		return -1, os.ErrInvalid
	}
	c, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var fd int
	var dupErr error
	err = c.Control(func(n uintptr) { fd, dupErr = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = dupErr
	}
	return fd, err
}
