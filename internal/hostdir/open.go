package hostdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// identity is what a runtime directory is known by: it is in the anchor's name
// and in the record (OWN-1, OWN-2).
type identity struct {
	UID    int
	Device uint64 // tells the file system
	Inode  uint64
	Path   string // digest of the absolute path
	dev    uint64 // the kernel's number for this boot
}

// openRoot opens the runtime directory, making it when it is missing, from the
// root down without following a link: the path is resolved first, so that a
// link on the way is a spelling and not a redirection.
func openRoot(path string, m machine) (*os.File, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	at, err := walk(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	name := filepath.Base(path)
	switch err := unix.Mkdirat(at, name, 0o700); {
	case err == nil:
		// The creation mask may have taken permissions away; the check wants them all.
		if err := unix.Fchmodat(at, name, 0o700, 0); err != nil {
			return nil, fencedBy(err, "the runtime directory %q cannot be made private: %s", path, reason(err))
		}
	case !errors.Is(err, unix.EEXIST):
		return nil, unmakeable(err, "the runtime directory %q cannot be made: %s; choose a place that you may write to", path, reason(err))
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil, fencedBy(err, "the runtime directory %q is closed to user %d, whom this process runs as; give each user a directory of its own", path, os.Geteuid())
	}
	if err != nil {
		return nil, fencedBy(err, "the runtime directory %q cannot be opened as a directory: %s; name the directory itself, not a link", path, reason(err))
	}
	f := os.NewFile(uintptr(fd), path)
	if err := checkRoot(f, m); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// maxPath bounds a runtime directory's path, which is in the path of everything
// below it and in errors.
const maxPath = 1024

// unmakeable is what comes of a place where no directory can be made: somebody
// named a wrong one, unless it is the disk that failed.
func unmakeable(err error, format string, args ...any) error {
	for _, errno := range []unix.Errno{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, errno) {
			return reins.Errorf(reins.CodeInvalidInput, format, args...).Because(err)
		}
	}
	return fencedBy(err, format, args...)
}

// resolve returns path absolute and without links before its last part, whose
// parents it makes when they are missing.
func resolve(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", reins.Errorf(reins.CodeInvalidInput, "the runtime directory %.200q is not a path", path)
	}
	if len(path) > maxPath {
		return "", reins.Errorf(reins.CodeInvalidInput, "the path of the runtime directory, %.100q…, has %d bytes; use at most %d", path, len(path), maxPath)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fencedBy(err, "the runtime directory cannot be found from here: %s; give an absolute path", reason(err))
	}
	if path == "/" {
		return "", reins.Errorf(reins.CodeInvalidInput, "the runtime directory cannot be the root of the file system; give it one of its own")
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", unmakeable(err, "the folder %q for the runtime directory cannot be made: %s; choose a place that you may write to", parent, reason(err))
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return "", fencedBy(err, "the way to the runtime directory %q cannot be followed: %s", path, reason(err))
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// walk opens an absolute path without links as an O_PATH descriptor. A folder on
// the way in which anybody may rename anything is refused: the paths that
// browsers are given could be made to lead elsewhere.
func walk(path string) (int, error) {
	const how = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open("/", how, 0)
	if err != nil {
		return -1, fencedBy(err, "the root of the file system cannot be opened: %s", reason(err))
	}
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		next, err := unix.Openat(at, name, how, 0)
		_ = unix.Close(at)
		if err != nil {
			return -1, fencedBy(err, "the way to the runtime directory, %q, cannot be followed: %s", path, reason(err))
		}
		at = next
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil || st.Mode&0o002 != 0 && st.Mode&unix.S_ISVTX == 0 {
			_ = unix.Close(at)
			return -1, fencedBy(err, "anybody may replace what is in the folder %q on the way to the runtime directory in %q; take write permission from others (chmod o-w) or choose another runtime directory", name, path)
		}
	}
	return at, nil
}

func checkRoot(f *os.File, m machine) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fencedBy(err, "the runtime directory %q cannot be looked at: %s", f.Name(), reason(err))
	}
	switch {
	case int(st.Uid) != os.Geteuid():
		return fenced("the runtime directory %q belongs to user %d and this process runs as %d; give each user a directory of its own", f.Name(), st.Uid, os.Geteuid())
	case st.Mode&0o1777 != 0o700:
		return fenced("the runtime directory %q has mode %#o; it must be 0700: chmod 700 it if nobody else had a hand in it", f.Name(), st.Mode&0o7777)
	}
	fs, err := m.fs(f)
	if err != nil {
		return fencedBy(err, "the file system of the runtime directory %q cannot be told: %s", f.Name(), reason(err))
	}
	if name, bad := untrusted[fs.kind]; bad {
		return reins.Errorf(reins.CodeUnsafeHost, "the runtime directory %q is on a %s file system, whose locks and owners cannot be relied on; put it on a local disk", f.Name(), name)
	}
	return nil
}

// untrusted are the file systems that are somebody else's: network ones, and
// those served by a process (DIR-1), by the number statfs gives.
var untrusted = map[int64]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x564c: "NCP",
	0x5346414f: "OpenAFS", 0x6b414653: "AFS", 0x73757245: "Coda", 0x00c36400: "Ceph",
	0x01021997: "9P", 0x65735546: "FUSE", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS",
	0x19830326: "BeeGFS", 0x20030528: "OrangeFS", 0xaad7aaea: "PanFS", 0x7461636f: "OCFS2",
	0x01161970: "GFS2", 0x786f4256: "VirtualBox shared", 0xbacbacbc: "VMware shared",
}

// identify tells what the directory is known by. The file system is told by the
// ID that it keeps on its disk where it has one, since device numbers are handed
// out anew at each boot.
func identify(f *os.File, m machine) (identity, error) {
	var st unix.Stat_t
	fs, err := m.fs(f)
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if err != nil {
		return identity{}, fencedBy(err, "the runtime directory %q cannot be looked at: %s", f.Name(), reason(err))
	}
	id := identity{UID: os.Geteuid(), Device: fs.id, Inode: st.Ino, dev: uint64(st.Dev)}
	if id.Device == 0 {
		id.Device = id.dev
	}
	sum := sha256.Sum256([]byte(f.Name()))
	id.Path = hex.EncodeToString(sum[:])
	return id, nil
}

// ensureFolder opens a folder of ours, making it when it is missing.
func ensureFolder(at *os.File, name string, id identity) (*os.File, error) {
	f, err := openFolder(at, name, id)
	if !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	return makeFolder(at, name, id)
}

// makeFolder makes a private folder that must not be there yet and opens it.
func makeFolder(at *os.File, name string, id identity) (*os.File, error) {
	path := filepath.Join(at.Name(), name)
	if err := unix.Mkdirat(int(at.Fd()), name, 0o700); err != nil {
		return nil, fencedBy(err, "the folder %q cannot be made: %s", path, reason(err))
	}
	// The creation mask may have taken permissions away; the check wants them all.
	if err := unix.Fchmodat(int(at.Fd()), name, 0o700, 0); err != nil {
		return nil, fencedBy(err, "the folder %q cannot be made private: %s", path, reason(err))
	}
	return openFolder(at, name, id)
}

// openFolder opens a folder that must be private, ours and on the same device.
func openFolder(at *os.File, name string, id identity) (*os.File, error) {
	path := filepath.Join(at.Name(), name)
	fd, err := unix.Openat(int(at.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fencedBy(err, "%q cannot be opened as a folder: %s; %s", path, reason(err), startOver)
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o1777 != 0o700 || int(st.Uid) != id.UID || uint64(st.Dev) != id.dev {
		_ = f.Close()
		return nil, fencedBy(err, "the folder %q is not a private folder (0700) of this user on the directory's own device; %s", path, startOver)
	}
	return f, nil
}

// checkFile checks a file of ours: regular, private, one link, same device.
func checkFile(f *os.File, id identity) (*unix.Stat_t, error) {
	st := new(unix.Stat_t)
	if err := unix.Fstat(int(f.Fd()), st); err != nil {
		return nil, fencedBy(err, "%q cannot be looked at: %s", f.Name(), reason(err))
	}
	if st.Mode != unix.S_IFREG|0o600 || int(st.Uid) != id.UID || st.Nlink != 1 || uint64(st.Dev) != id.dev {
		return nil, fenced("%q is not a private file (0600, one link) of this user on the directory's own device; %s", f.Name(), startOver)
	}
	return st, nil
}

// names lists what a folder holds, up to a bound that is never met honestly.
func names(f *os.File) ([]string, error) {
	const bound = 4096
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fencedBy(err, "the folder %q cannot be read: %s", f.Name(), reason(err))
	}
	out, err := f.Readdirnames(bound)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fencedBy(err, "the folder %q cannot be read: %s", f.Name(), reason(err))
	}
	if len(out) == bound {
		return nil, fenced("the folder %q holds more than belongs there; %s", f.Name(), startOver)
	}
	return out, nil
}

// reason is the kernel's word for a failure, without path or call.
func reason(err error) string {
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return errno.Error()
	}
	return "an unexpected failure"
}
