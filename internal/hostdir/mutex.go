package hostdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// anchor is the held live mutex: an advisory kernel lock on an empty permanent
// file whose name binds it to one directory (OWN-1). The kernel releases it
// when the process ends, however it ends.
type anchor struct {
	dir   *os.File
	file  *os.File
	name  string
	inode uint64
}

func (id identity) anchorName() string {
	return fmt.Sprintf("anchor-%d-%x-%x-%s", id.UID, id.Device, id.Inode, id.Path)
}

// acquire takes the mutex, making its permanent files when they are missing and
// mayMake says that they may be: when something else already tells of an owner,
// a missing anchor means that somebody took it away. Contention is locked.
func acquire(root *os.File, id identity, m machine, mayMake bool) (_ *anchor, err error) {
	a := &anchor{name: id.anchorName()}
	defer func() {
		if err != nil {
			_ = a.closeFiles()
		}
	}()
	if a.dir, err = openMutexFolder(root, id, mayMake); err != nil {
		return nil, err
	}
	held, err := names(a.dir)
	if err != nil {
		return nil, err
	}
	for _, n := range held {
		if n != a.name {
			return nil, fenced("%q holds %.160q, which is not this directory's own anchor; was the directory moved or copied? %s", a.dir.Name(), n, startOver)
		}
	}
	if len(held) == 0 && !mayMake {
		return nil, fenced("the anchor in %q was taken away although %q tells of an owner; %s", a.dir.Name(), filepath.Join(root.Name(), lockName), startOver)
	}
	if a.file, err = openAnchor(a.dir, a.name); err != nil {
		return nil, err
	}
	st, err := checkFile(a.file, id)
	if err != nil {
		return nil, err
	}
	if st.Size != 0 {
		return nil, fenced("the anchor %q is not empty; %s", a.file.Name(), startOver)
	}
	a.inode = st.Ino
	if err = a.take(m); err != nil {
		return nil, err
	}
	// Durable before the record is: a record without an anchor is a sign of tampering.
	for _, f := range []*os.File{a.dir, root} {
		if err = m.sync(f); err != nil {
			return nil, fencedBy(err, "%q cannot be made durable: %s; check its disk", f.Name(), reason(err))
		}
	}
	// The lock is worth something only on the file that others find under the name.
	if err = a.check(root); err != nil {
		return nil, err
	}
	return a, nil
}

func openMutexFolder(root *os.File, id identity, mayMake bool) (*os.File, error) {
	f, err := openFolder(root, mutexName, id)
	if !errors.Is(err, unix.ENOENT) || !mayMake {
		return f, err
	}
	if f, err = makeFolder(root, mutexName, id); errors.Is(err, unix.EEXIST) {
		return openFolder(root, mutexName, id) // another start made it just now
	}
	return f, err
}

func openAnchor(dir *os.File, name string) (*os.File, error) {
	const how = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	path := filepath.Join(dir.Name(), name)
	fd, err := unix.Openat(int(dir.Fd()), name, how|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err == nil {
		err = unix.Fchmod(fd, 0o600) // whatever the creation mask took
	} else if errors.Is(err, unix.EEXIST) {
		fd, err = unix.Openat(int(dir.Fd()), name, how, 0)
	}
	if err != nil {
		return nil, fencedBy(err, "the anchor %q cannot be opened: %s; %s", path, reason(err), startOver)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (a *anchor) take(m machine) error {
	err := ignoringEINTR(func() error { return m.lock(a.file, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return reins.Errorf(reins.CodeLocked, "another process owns the runtime directory").Because(err)
	}
	if err != nil {
		return fencedBy(err, "the file system gives no kernel lock on %q: %s; put the runtime directory on a local disk", a.file.Name(), reason(err))
	}
	return nil
}

// check tells whether the names still lead to the locked file (OWN-7).
func (a *anchor) check(root *os.File) error {
	if !leadsTo(root, mutexName, a.dir) {
		return fenced("%q was replaced; %s", a.dir.Name(), startOver)
	}
	if !leadsTo(a.dir, a.name, a.file) {
		return fenced("the anchor %q was replaced or removed; %s", a.file.Name(), startOver)
	}
	return nil
}

// leadsTo reports whether name in dir is the file that is held.
func leadsTo(dir *os.File, name string, held *os.File) bool {
	var there, here unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstat(int(held.Fd()), &here) == nil &&
		there.Dev == here.Dev && there.Ino == here.Ino && there.Uid == here.Uid && there.Mode&unix.S_IFMT == here.Mode&unix.S_IFMT
}

// release unlocks. A release that the kernel did not confirm is fenced: nobody
// can tell whether the next start will find it held.
func (a *anchor) release(m machine) error {
	if a == nil {
		return nil
	}
	err := ignoringEINTR(func() error { return m.lock(a.file, unix.LOCK_UN) })
	if err = errors.Join(err, a.closeFiles()); err != nil {
		return fencedBy(err, "the lock on %q may still be held; end this process before starting again", a.file.Name())
	}
	return nil
}

func (a *anchor) closeFiles() error {
	var errs []error
	for _, f := range []*os.File{a.file, a.dir} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
