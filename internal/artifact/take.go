package artifact

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// Take stores a file that something hostile left in a folder, such as a
// finished download of a cell, and removes it from there (ACT-10). The file is
// opened without following links and without blocking, and is taken only when
// it is a regular file with one link, owned by the running user, and does not
// change meanwhile; else tool_failed. Its size is reserved first. On failure
// the file stays. Dir is the held folder and name one name in it.
func (s *Store) Take(ctx context.Context, a reins.Artifact, dir *os.File, name string) (reins.Artifact, error) {
	f, before, err := openHostile(dir, name)
	if err != nil {
		return reins.Artifact{}, err
	}
	defer f.Close()
	changed := errHostile(name, "changed while it was taken; download it again")
	got, err := s.put(ctx, a, &steady{file: f, before: before, changed: changed}, before.Size)
	if err != nil {
		return reins.Artifact{}, err
	}
	_ = unix.Unlinkat(int(dir.Fd()), name, 0) // the cell's folder goes with the cell anyway
	return got, nil
}

func openHostile(dir *os.File, name string) (*os.File, *unix.Stat_t, error) {
	if !plainName(name) {
		return nil, nil, reins.Errorf(reins.CodeInvalidInput, "%.80q is not the name of a file in the folder", name).In(reins.PhaseArtifact)
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errHostile(name, "is not there or is no plain file").Because(err)
	}
	f := os.NewFile(uintptr(fd), name)
	st := new(unix.Stat_t)
	err = unix.Fstat(fd, st)
	what := ""
	switch {
	case err != nil:
		what = "cannot be looked at"
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		what = "is no plain file"
	case st.Nlink != 1:
		what = "has other names elsewhere"
	case int(st.Uid) != os.Geteuid():
		what = "belongs to another user"
	}
	if what != "" {
		_ = f.Close()
		return nil, nil, errHostile(name, what).Because(err)
	}
	return f, st, nil
}

// plainName reports whether s is one path component that the parent could have
// asked for: browsers save under GUIDs.
func plainName(s string) bool {
	if len(s) < 1 || len(s) > 255 || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c == '/' || c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// steady reads a file and fails at its end when the file is no longer what it
// was at the beginning.
type steady struct {
	file    *os.File
	before  *unix.Stat_t
	changed *reins.Error
}

// Read implements io.Reader.
func (r *steady) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if n > 0 || err == nil {
		return n, err
	}
	// The time of change, which no program can set back, tells any write.
	var now unix.Stat_t
	if serr := unix.Fstat(int(r.file.Fd()), &now); serr != nil || now.Size != r.before.Size || now.Ctim != r.before.Ctim {
		return 0, r.changed.Because(serr)
	}
	return 0, err
}

func errHostile(name, what string) *reins.Error {
	return reins.Errorf(reins.CodeToolFailed, "the file %.80q in the download folder %s", name, what).In(reins.PhaseArtifact)
}
