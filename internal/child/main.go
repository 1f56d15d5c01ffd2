package child

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Entry is the body of a role. ctx ends when the parent asks the child to stop
// or is gone; the entry then returns. Its error becomes the last line of stderr.
type Entry func(ctx context.Context, self *Self) error

// registry is the table of roles: the process is what it belongs to, since one
// process has one main.
var registry struct {
	sync.Mutex
	roles map[string]Entry
}

// Main makes this process the child it was started as, and does not return
// then; in any other process it remembers the roles for [Start] and returns.
// Call it before anything else; more than once adds roles.
func Main(roles map[string]Entry) {
	registry.Lock()
	if registry.roles == nil {
		registry.roles = map[string]Entry{}
	}
	maps.Copy(registry.roles, roles)
	registry.Unlock()
	role, ok := strings.CutPrefix(os.Args[0], argPrefix)
	if !ok {
		return
	}
	entry, ok := roles[role]
	if !ok {
		return // perhaps another call of Main lists it
	}
	if err := run(role, entry); err != nil {
		fmt.Fprintf(os.Stderr, "%s%s: %v\n", argPrefix, role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// known reports whether Main was called at all, and with role.
func known(role string) (called, listed bool) {
	registry.Lock()
	defer registry.Unlock()
	_, listed = registry.roles[role]
	return registry.roles != nil, listed
}

// fileMask keeps what a child or its own children make from other users, and
// never from themselves.
const fileMask = 0o077

func run(role string, entry Entry) error {
	m, err := readMessage(messageFD, role)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	unix.Close(messageFD)
	unix.Umask(fileMask) // not whatever the parent was started under
	if err := keepOnly(m.Files); err != nil {
		return err
	}
	self := &Self{Role: role, Args: os.Args[1:], Message: m.Body, files: map[string]*os.File{}}
	for name, fd := range m.Files {
		self.files[name] = os.NewFile(uintptr(fd), name)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	self.lifeline = os.NewFile(lifelineFD, "lifeline")
	go func() { // ends with the process
		var b [1]byte
		self.lifeline.Read(b[:])
		cancel(errAsked)
	}()
	return entry(ctx, self)
}

var errAsked = fmt.Errorf("the parent asked this process to stop or is gone")

// keepOnly closes every descriptor that came through exec without a name, and
// marks the others close-on-exec. What the Go runtime opened since is
// close-on-exec already and so not among them.
func keepOnly(files map[string]int) error {
	named := map[int]bool{lifelineFD: true}
	for _, fd := range files {
		named[fd] = true
	}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list own descriptors: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return fmt.Errorf("list own descriptors: %w", err)
	}
	for _, name := range names {
		var fd int
		if _, err := fmt.Sscan(name, &fd); err != nil || fd < messageFD {
			continue
		}
		if named[fd] {
			syscall.CloseOnExec(fd)
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// Self is a child's view of how it was started.
type Self struct {
	Role    string
	Args    []string // from [Spec.Args]
	Message []byte   // from [Spec.Message]

	files    map[string]*os.File
	lifeline *os.File
}

// File returns the descriptor that the parent passed under name.
func (s *Self) File(name string) (*os.File, error) {
	f, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("the parent passed no descriptor named %q", name)
	}
	return f, nil
}

// Become replaces this process by another role of the same binary, keeping its
// process ID, its lifeline and the given files. It is meant for a goroutine
// locked to a thread that has changed its own rights ([DropCapabilities]): the
// new image starts with that thread's. It returns only on failure.
func (s *Self) Become(spec Spec) error {
	m := message{Role: spec.Role, Body: spec.Message, Files: map[string]int{}}
	keep := map[string]*os.File{"lifeline": s.lifeline}
	maps.Copy(keep, spec.Files)
	for name, f := range keep {
		fd, err := rawFD(f)
		if err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
		if name != "lifeline" {
			m.Files[name] = fd
		}
	}
	sealed, err := m.seal()
	if err != nil {
		return err
	}
	fd, err := rawFD(sealed)
	if err != nil {
		return err
	}
	if fd == messageFD {
		_, err = unix.FcntlInt(messageFD, unix.F_SETFD, 0)
	} else {
		err = unix.Dup3(fd, messageFD, 0)
	}
	if err != nil {
		return fmt.Errorf("start message: %w", err)
	}
	err = syscall.Exec(selfPath, argv(spec), []string{})
	return fmt.Errorf("execute own binary again: %w", err)
}

// rawFD reads f's number without the change to blocking that File.Fd makes.
func rawFD(f *os.File) (int, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	n := -1
	if err := c.Control(func(fd uintptr) { n = int(fd) }); err != nil {
		return -1, err
	}
	return n, nil
}
