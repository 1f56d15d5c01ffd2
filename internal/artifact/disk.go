package artifact

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// disk is what the store asks of a file system beyond opening: the steps that
// a test must be able to break, before or after they took effect.
type disk struct {
	write  func(f *os.File, b []byte) (int, error)
	sync   func(f *os.File) error
	link   func(dir *os.File, from, to string) error
	unlink func(dir *os.File, name string) error
}

func realDisk() disk {
	return disk{
		write: (*os.File).Write,
		sync:  (*os.File).Sync,
		link: func(dir *os.File, from, to string) error {
			return unix.Linkat(int(dir.Fd()), from, int(dir.Fd()), to, 0)
		},
		unlink: func(dir *os.File, name string) error {
			return unix.Unlinkat(int(dir.Fd()), name, 0)
		},
	}
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// diskError says that the disk failed: a full one is the reader's to mend,
// anything else is ours.
func diskError(doing string, err error) *reins.Error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return reins.Errorf(reins.CodeQuotaExceeded, "%s failed because the disk of the runtime directory is full; free some of it", doing).
			In(reins.PhaseArtifact).Recover(reins.RecoverFixHost).Because(err)
	}
	return reins.Errorf(reins.CodeInternal, "%s failed; the log has the details", doing).In(reins.PhaseArtifact).Because(err)
}

// sourceError says that the source of an artifact's bytes failed. One of our
// own errors stays what it is.
func sourceError(after int64, err error) *reins.Error {
	if e := (*reins.Error)(nil); errors.As(err, &e) {
		return e
	}
	if e := reins.AsError(err); e.Code != reins.CodeInternal {
		return e.In(reins.PhaseArtifact)
	}
	return reins.Errorf(reins.CodeCancelled, "the source of the artifact broke off after %d bytes; nothing was stored, send it again", after).
		In(reins.PhaseArtifact).Because(err)
}

func errStopped() *reins.Error {
	return reins.Errorf(reins.CodeRuntimeStopped, "the artifact store is closed because its runtime stops").In(reins.PhaseArtifact)
}

func errNotFound(key reins.ResourceKey, id string) *reins.Error {
	return reins.Errorf(reins.CodeNotFound, "resource %s has no artifact %.64q", key, id).In(reins.PhaseArtifact)
}

func errCorrupt(id, what string) *reins.Error {
	return reins.Errorf(reins.CodeCorrupt, "artifact %s is not what was stored: %s; delete it", id, what).In(reins.PhaseArtifact)
}

// endedError says why an entry that somebody worked with is no longer there.
func (s *Store) endedError(e *entry) *reins.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errStopped()
	case e.meta.Created.IsZero():
		return reins.Errorf(reins.CodeRetired, "the artifacts of resource %s were purged while this one was stored", e.key()).In(reins.PhaseArtifact)
	}
	return errNotFound(e.key(), e.meta.ID)
}
