package child

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confinement is what a running child gives up. A zero number leaves that
// bound as it is.
type Confinement struct {
	// Memory is how many bytes of data the process may have beyond what it
	// has now; the runtime ends it with "out of memory" there. Set the Go
	// memory limit somewhat lower, so that garbage is collected first.
	Memory int64
	Files  uint64 // open descriptors
	Tasks  uint64 // processes and threads of this user in its user namespace
	// Filter limits system calls; nil installs none.
	Filter *Filter
}

// Confine takes the rights c names from this process, for good and on all its
// threads: not dumpable, no core file, resource bounds, no-new-privileges and
// the filter. It fails when the kernel refuses any of it or when the process
// still has a capability; the child must end then.
func Confine(c Confinement) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	if err := c.bound(); err != nil {
		return err
	}
	// The filter carries no-new-privileges to the other threads.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if effective, err := capabilities(); err != nil || effective != 0 {
		return fmt.Errorf("the process still has capabilities %#x (%w)", effective, err)
	}
	if c.Filter == nil {
		return nil
	}
	return c.Filter.install()
}

func (c Confinement) bound() error {
	set := func(what string, resource int, v uint64) error {
		var now unix.Rlimit
		err := unix.Getrlimit(resource, &now)
		if err == nil {
			v = min(v, now.Max) // what is tighter already stays so
			// syscall, not unix: it makes os/exec leave the bound on open files alone.
			err = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: v, Max: v})
		}
		if err != nil {
			return fmt.Errorf("bound of %s: %w", what, err)
		}
		return nil
	}
	if err := set("core files", unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	if c.Files > 0 {
		if err := set("open files", unix.RLIMIT_NOFILE, c.Files); err != nil {
			return err
		}
	}
	if c.Tasks > 0 {
		if err := set("tasks", unix.RLIMIT_NPROC, c.Tasks); err != nil {
			return err
		}
	}
	if c.Memory <= 0 {
		return nil
	}
	now, err := dataSize()
	if err != nil {
		return err
	}
	return set("memory", unix.RLIMIT_DATA, uint64(min(now, math.MaxInt64-c.Memory)+c.Memory))
}

// dataSize is what RLIMIT_DATA counts, rounded up. Counting from here keeps the
// bound meaningful under the race detector, whose shadow is data too.
func dataSize() (int64, error) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("own memory: %w", err)
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 6 {
		return 0, fmt.Errorf("own memory: %q is not a statm line", raw)
	}
	pages, err := strconv.ParseInt(fields[5], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("own memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// capabilities reads the calling thread's effective and permitted ones.
func capabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("capget: %w", err)
	}
	lo, hi := data[0].Effective|data[0].Permitted, data[1].Effective|data[1].Permitted
	return uint64(hi)<<32 | uint64(lo), nil
}

// DropCapabilities empties every capability set of the calling thread, the
// bounding and ambient sets included, and sets no-new-privileges. Only this
// thread changes: lock the goroutine to it and follow with [Self.Become].
func DropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	for c := uintptr(0); c < 64; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL {
			break // the kernel has no further ones
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return nil
}

// install puts the filter on all threads.
func (f Filter) install() error {
	program := f.program()
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return fmt.Errorf("seccomp filter: %w", errno)
	case r != 0:
		return fmt.Errorf("seccomp filter: thread %d could not be brought under it", r)
	}
	return nil
}
