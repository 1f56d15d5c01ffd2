package hostdir

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// machine is what this package asks of the kernel that a test must be able to
// answer itself: other processes, the boot, a file system's type, and the steps
// that have to fail on cue.
type machine struct {
	proc   string // where procfs is
	fs     func(f *os.File) (fsFacts, error)
	birth  func(f *os.File) (unix.StatxTimestamp, bool)
	sync   func(f *os.File) error
	lock   func(f *os.File, how int) error
	lease  func(f *os.File) error
	rename func(dir *os.File, from, to string) error
	wait   time.Duration // how long processes are waited for (OWN-3)
}

// fsFacts are a file system's type and the number that tells it from others.
type fsFacts struct {
	kind int64
	id   uint64
}

func realMachine() machine {
	return machine{
		proc: "/proc", fs: statfs, birth: birthTime, wait: 2 * time.Second,
		sync:   (*os.File).Sync,
		lock:   func(f *os.File, how int) error { return unix.Flock(int(f.Fd()), how) },
		lease:  probeLease,
		rename: renameNew,
	}
}

func statfs(f *os.File) (fsFacts, error) {
	var st unix.Statfs_t
	err := ignoringEINTR(func() error { return unix.Fstatfs(int(f.Fd()), &st) })
	return fsFacts{int64(st.Type) & 0xffffffff, uint64(uint32(st.Fsid.Val[0]))<<32 | uint64(uint32(st.Fsid.Val[1]))}, err
}

func birthTime(f *os.File) (unix.StatxTimestamp, bool) {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	return st.Btime, err == nil && st.Mask&unix.STATX_BTIME != 0
}

// renameNew names a file and never replaces what has the name already.
func renameNew(dir *os.File, from, to string) error {
	fd := int(dir.Fd())
	err := unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// A file system without it: two steps; a kill between them leaves two
	// links, which the next start fences.
	if err := unix.Linkat(fd, from, fd, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(fd, from, 0)
}

// probeLease asks the kernel whether f is the only open description of its
// file: only then does it grant a write lease (OWN-4). EAGAIN means it is not.
func probeLease(f *os.File) error {
	fd := f.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return err
	}
	got, err := unix.FcntlInt(fd, unix.F_GETLEASE, 0)
	_, uerr := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	if err == nil && got != unix.F_WRLCK {
		err = unix.EAGAIN // somebody opened it meanwhile and is breaking the lease
	}
	return errors.Join(err, uerr)
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// bootID names this boot.
func (m machine) bootID() (string, error) {
	b, err := os.ReadFile(filepath.Join(m.proc, "sys/kernel/random/boot_id"))
	return string(bytes.TrimSpace(b)), err
}

// bootTime is when this boot began, in seconds.
func (m machine) bootTime() (int64, error) {
	b, err := os.ReadFile(filepath.Join(m.proc, "stat"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			return strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
		}
	}
	return 0, errors.New("no btime line")
}

// startTicks is when this process began, in clock ticks since the boot.
func (m machine) startTicks() (uint64, error) {
	b, err := os.ReadFile(filepath.Join(m.proc, "self/stat"))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses and may hold anything.
	if i := bytes.LastIndexByte(b, ')'); i >= 0 {
		if fields := bytes.Fields(b[i+1:]); len(fields) > 19 {
			return strconv.ParseUint(string(fields[19]), 10, 64)
		}
	}
	return 0, errors.New("malformed stat")
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
