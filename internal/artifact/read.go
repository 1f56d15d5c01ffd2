package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// MaxChunk is the most that [Store.ReadChunk] returns at once.
const MaxChunk = 1 << 20

// Open checks size and SHA-256 of the stored bytes and returns a reader of
// them; corrupt when they differ, not_found when the access does not see the
// artifact (ART-4).
func (s *Store) Open(ctx context.Context, a Access, id string) (reins.Artifact, *Reader, error) {
	r, err := s.open(a, id)
	if err != nil {
		return reins.Artifact{}, nil, err
	}
	if err := r.verify(ctx); err != nil {
		_ = r.Close()
		return reins.Artifact{}, nil, err
	}
	return r.entry.meta, r, nil
}

// ReadChunk returns up to length bytes from offset; 0 means, and at most are
// given, [MaxChunk] bytes. What it returns was checked against the digests
// taken when it was stored. At the end of the artifact the chunk is empty; an
// offset beyond it is invalid_input.
func (s *Store) ReadChunk(ctx context.Context, a Access, id string, offset, length int64) (reins.Artifact, []byte, error) {
	if err := reins.ContextError(ctx); err != nil {
		return reins.Artifact{}, nil, err.In(reins.PhaseArtifact)
	}
	r, err := s.open(a, id)
	if err != nil {
		return reins.Artifact{}, nil, err
	}
	defer r.Close()
	meta := r.entry.meta
	if offset < 0 || length < 0 || offset > meta.Size {
		return reins.Artifact{}, nil, reins.Errorf(reins.CodeInvalidInput, "artifact %s has %d bytes; offset %d with length %d is not in it", meta.ID, meta.Size, offset, length).In(reins.PhaseArtifact)
	}
	if length == 0 || length > MaxChunk {
		length = MaxChunk
	}
	out := make([]byte, min(length, meta.Size-offset))
	r.at = offset
	if _, err := io.ReadFull(r, out); err != nil {
		clear(out)
		return reins.Artifact{}, nil, err
	}
	return meta, out, nil
}

// open opens the file of an entry and checks all of it but its bytes.
func (s *Store) open(a Access, id string) (*Reader, error) {
	e, err := s.find(a, id)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(s.dir.Fd()), e.path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		select {
		case <-e.ended: // deleted since it was found
			return nil, s.endedError(e)
		default:
			return nil, errCorrupt(id, "its file cannot be opened").Because(err)
		}
	}
	r := &Reader{store: s, entry: e, file: os.NewFile(uintptr(fd), e.path), loaded: -1}
	if what := r.inspect(); what != "" {
		_ = r.Close()
		return nil, errCorrupt(id, what)
	}
	return r, nil
}

// Reader reads one artifact, checking each block before any byte of it is
// given out. It fails with not_found once the artifact was deleted, purged or
// has been swept after its expiry, and with runtime_stopped once the store was
// closed. Close it; it is for one goroutine at a time.
type Reader struct {
	store  *Store
	entry  *entry
	file   *os.File
	at     int64
	buf    []byte // the block that was checked last
	loaded int64  // its number, or -1
}

var _ io.ReadSeekCloser = (*Reader)(nil)

func (r *Reader) inspect() string {
	var st unix.Stat_t
	switch err := unix.Fstat(int(r.file.Fd()), &st); {
	case err != nil:
		return "its file cannot be looked at"
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 || int(st.Uid) != os.Geteuid():
		return "its file is another one"
	case st.Size != r.entry.meta.Size:
		return fmt.Sprintf("its file has %d bytes instead of %d", st.Size, r.entry.meta.Size)
	}
	return ""
}

// verify digests the whole file (ART-4).
func (r *Reader) verify(ctx context.Context) error {
	whole := sha256.New()
	buf := make([]byte, piece)
	for at := int64(0); at < r.entry.meta.Size; {
		if err := reins.ContextError(ctx); err != nil {
			return err.In(reins.PhaseArtifact)
		}
		n, err := r.file.ReadAt(buf[:min(piece, r.entry.meta.Size-at)], at)
		if n == 0 {
			return errCorrupt(r.entry.meta.ID, "its bytes cannot be read").Because(err)
		}
		whole.Write(buf[:n])
		at += int64(n)
	}
	if hex.EncodeToString(whole.Sum(nil)) != r.entry.meta.SHA256 {
		return errCorrupt(r.entry.meta.ID, "its digest differs")
	}
	return nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	select {
	case <-r.entry.ended:
		clear(r.buf)
		return 0, r.store.endedError(r.entry)
	default:
	}
	if r.at >= r.entry.meta.Size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	block := r.at / blockSize
	if block != r.loaded {
		if err := r.load(block); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf[r.at-block*blockSize:])
	r.at += int64(n)
	return n, nil
}

func (r *Reader) load(block int64) error {
	start := block * blockSize
	size := min(blockSize, r.entry.meta.Size-start)
	if r.buf == nil {
		r.buf = make([]byte, 0, min(blockSize, r.entry.meta.Size))
	}
	r.loaded, r.buf = -1, r.buf[:size]
	if _, err := r.file.ReadAt(r.buf, start); err != nil {
		clear(r.buf)
		return errCorrupt(r.entry.meta.ID, "its bytes cannot be read").Because(err)
	}
	if sha256.Sum256(r.buf) != r.entry.blocks[block] {
		clear(r.buf)
		return errCorrupt(r.entry.meta.ID, "its digest differs")
	}
	r.loaded = block
	return nil
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.entry.meta.Size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return r.at, reins.Errorf(reins.CodeInvalidInput, "a read of artifact %s cannot go on before its start", r.entry.meta.ID).In(reins.PhaseArtifact)
	}
	r.at = offset
	return offset, nil
}

// Close ends the read and clears what it held; idempotent.
func (r *Reader) Close() error {
	clear(r.buf[:cap(r.buf)])
	if err := r.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return diskError("closing the artifact's file", err)
	}
	return nil
}
