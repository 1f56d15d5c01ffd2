package hostdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

const (
	// maxDepth is how deep descriptors are nested; what lies deeper is first
	// moved up, so no depth of a hostile tree uses them up.
	maxDepth = 32
	// batch is how many names are read at once.
	batch = 512
	// patience is how often a folder that fills again is emptied again.
	patience = 8
)

// removeTree removes name in dir with everything below it: without following a
// link, without leaving the device, and whatever modes a browser gave to its
// folders. A name that is not there is a success. When something cannot be
// removed it goes on with the rest and then fails; calling it again goes on.
func removeTree(ctx context.Context, dir *os.File, name string) error {
	var st unix.Stat_t
	path := filepath.Join(dir.Name(), name)
	err := unix.Fstat(int(dir.Fd()), &st)
	if err == nil {
		r := &remover{ctx: ctx, dev: uint64(st.Dev), top: -1}
		err = r.remove(int(dir.Fd()), name, 0)
	}
	if e := (*reins.Error)(nil); errors.As(err, &e) {
		return e
	}
	if err != nil {
		return fencedBy(err, "%q cannot be removed completely: %s; remove it by hand", path, reason(err))
	}
	return nil
}

type remover struct {
	ctx context.Context // for the one call it lives in
	dev uint64
	top int // the tree's own descriptor, where deep folders are moved to
}

// remove removes one entry of the folder at.
func (r *remover) remove(at int, name string, depth int) error {
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, oerr := r.enter(at, name)
	switch {
	case errors.Is(oerr, unix.ENOENT):
		return nil
	case errors.Is(oerr, unix.ENOTDIR), errors.Is(oerr, unix.ELOOP):
		return err // no folder: the first failure is the one that counts
	case oerr != nil:
		return oerr
	}
	defer unix.Close(fd)
	if depth == 0 {
		r.top = fd
	}
	if depth > maxDepth {
		return unix.Renameat(at, name, r.top, capability.NewID("removed"))
	}
	for range patience {
		// Gone meanwhile is as good: somebody else removes it too.
		if err = r.empty(fd, depth); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		if err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return err
}

// empty removes what the folder holds, in as many passes as make progress.
func (r *remover) empty(fd, depth int) error {
	// A descriptor of its own, since reading moves it and closing ends it.
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(own), "")
	defer f.Close()
	for {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		removed, seen, failed := 0, 0, error(nil)
		for {
			if err := reins.ContextError(r.ctx); err != nil {
				return err
			}
			list, err := f.Readdirnames(batch)
			for _, name := range list {
				seen++
				if err := r.remove(fd, name, depth+1); err == nil {
					removed++
				} else if failed == nil {
					failed = err
				}
			}
			if errors.Is(err, io.EOF) || len(list) == 0 && err == nil {
				break
			}
			if err != nil {
				return err
			}
		}
		if seen == 0 || removed == 0 {
			return failed
		}
	}
}

// enter opens a folder of the tree, giving itself the permissions it needs.
func (r *remover) enter(at int, name string) (int, error) {
	path, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return -1, err
	}
	if uint64(st.Dev) != r.dev {
		return -1, unix.EXDEV
	}
	if st.Mode&0o700 != 0o700 {
		// By the descriptor, so that the name cannot be made to lead elsewhere.
		if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", path), 0o700); err != nil {
			return -1, err
		}
	}
	return unix.Openat(path, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}
