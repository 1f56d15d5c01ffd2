package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"mime"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

const (
	blockSize = 1 << 20   // bytes under one digest
	piece     = 256 << 10 // bytes read, and reserved at a time when the size is unknown
)

// Put stores what r gives until its end and returns its description. Project,
// Resource, Kind, MediaType, Name, LeaseID and Owner of a are used; all else is
// made here. With maxBytes above 0 that much quota is reserved before the first
// byte is read, and a source with more is quota_exceeded; with 0 the size is
// unknown and quota is reserved piece by piece, each before it is read (ART-3).
// Unless it returns nil nothing is listed and nothing stays charged. The
// context is looked at between reads: a source that blocks must end by itself.
func (s *Store) Put(ctx context.Context, a reins.Artifact, r io.Reader, maxBytes int64) (reins.Artifact, error) {
	switch {
	case r == nil:
		return reins.Artifact{}, reins.Errorf(reins.CodeInvalidInput, "an artifact needs a source of its bytes").In(reins.PhaseArtifact)
	case maxBytes < 0:
		return reins.Artifact{}, reins.Errorf(reins.CodeInvalidInput, "the size of an artifact must not be negative; 0 means unknown").In(reins.PhaseArtifact)
	case maxBytes == 0:
		return s.put(ctx, a, r, unknown)
	}
	return s.put(ctx, a, r, maxBytes)
}

const unknown = int64(-1) // the size of a source that does not say

func (s *Store) put(ctx context.Context, a reins.Artifact, r io.Reader, size int64) (reins.Artifact, error) {
	if err := reins.ContextError(ctx); err != nil {
		return reins.Artifact{}, err.In(reins.PhaseArtifact)
	}
	a, err := described(a)
	if err != nil {
		return reins.Artifact{}, err
	}
	e, err := s.admit(a, max(size, 0))
	if err != nil {
		return reins.Artifact{}, err
	}
	if err := s.fill(ctx, e, r, size); err != nil {
		return reins.Artifact{}, s.giveUp(e, err)
	}
	return s.publish(e)
}

// described checks what a caller says of an artifact and makes it fit to keep.
func described(a reins.Artifact) (reins.Artifact, error) {
	out := reins.Artifact{
		Project: a.Project, Resource: a.Resource, Kind: a.Kind,
		MediaType: mediaType(a.MediaType), LeaseID: a.LeaseID, Owner: a.Owner, Name: SafeName(a.Name),
	}
	if err := (reins.ResourceKey{Project: a.Project, ID: a.Resource}).Validate(); err != nil {
		return out, err
	}
	if k := a.Kind; k == "" || len(k) > 32 || strings.Trim(k, "abcdefghijklmnopqrstuvwxyz") != "" {
		return out, reins.Errorf(reins.CodeInvalidInput, "kind %.40q of an artifact is not a word such as \"screenshot\", \"download\" or \"upload\"", k).In(reins.PhaseArtifact)
	}
	if len(a.Owner) > 256 || len(a.LeaseID) > 128 {
		return out, reins.Errorf(reins.CodeInvalidInput, "owner and lease of an artifact have at most 256 and 128 bytes").In(reins.PhaseArtifact)
	}
	return out, nil
}

// mediaType returns a well-formed media type: pages make them up.
func mediaType(s string) string {
	if t, params, err := mime.ParseMediaType(s); err == nil && len(s) <= 255 && strings.Contains(t, "/") {
		if out := mime.FormatMediaType(t, params); out != "" {
			return out
		}
	}
	return "application/octet-stream"
}

// admit charges a new entry to the quota, or refuses it (ART-3).
func (s *Store) admit(a reins.Artifact, bytes int64) (*entry, error) {
	key := reins.ResourceKey{Project: a.Project, ID: a.Resource}
	a.ID = capability.NewID(capability.KindArtifact)
	e := &entry{
		meta: a, path: s.name(key, a.ID), charged: bytes,
		ended: make(chan struct{}), busy: make(chan struct{}), index: -1,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errStopped()
	}
	if err := s.quota.take(key, usage{1, bytes}); err != nil {
		return nil, err
	}
	if s.entries[key] == nil {
		s.entries[key] = map[string]*entry{}
	}
	s.entries[key][a.ID] = e
	return e, nil
}

// fill writes the bytes, makes them durable and names them.
func (s *Store) fill(ctx context.Context, e *entry, r io.Reader, size int64) error {
	part := e.path + ".part"
	fd, err := unix.Openat(int(s.dir.Fd()), part, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return diskError("making the artifact's file", err)
	}
	f := os.NewFile(uintptr(fd), part)
	defer f.Close()                                // closed twice on success; only the first counts
	if err := unix.Fchmod(fd, 0o600); err != nil { // whatever the creation mask took
		return diskError("making the artifact's file private", err)
	}
	in := intake{store: s, entry: e, source: r, open: size == unknown, room: max(size, 0), whole: sha256.New(), block: sha256.New()}
	if err := in.copy(ctx, f); err != nil {
		return err
	}
	e.meta.Size = in.total
	e.meta.SHA256 = hex.EncodeToString(in.whole.Sum(nil))
	e.blocks = in.blocks
	if err := s.disk.sync(f); err != nil {
		return diskError("making the artifact's bytes durable", err)
	}
	if err := f.Close(); err != nil {
		return diskError("closing the artifact's file", err)
	}
	// A link, not a rename: it never replaces what has the name already.
	if err := s.disk.link(s.dir, part, e.path); err != nil {
		return diskError("naming the artifact's file", err)
	}
	if err := s.disk.unlink(s.dir, part); err != nil {
		return diskError("naming the artifact's file", err)
	}
	if err := s.disk.sync(s.dir); err != nil {
		return diskError("making the artifact's name durable", err)
	}
	return nil
}

// intake copies a source into a file, never taking a byte that is not reserved.
type intake struct {
	store  *Store
	entry  *entry
	source io.Reader
	open   bool  // more may be reserved as it goes
	room   int64 // reserved and not yet used
	total  int64
	whole  hash.Hash
	block  hash.Hash
	blocks [][sha256.Size]byte
	inside int // bytes in the current block
	idle   int // reads in a row that gave nothing
}

func (in *intake) copy(ctx context.Context, f *os.File) error {
	buf := make([]byte, piece)
	for {
		if err := reins.ContextError(ctx); err != nil {
			return err.In(reins.PhaseArtifact)
		}
		select {
		case <-in.entry.ended:
			return in.store.endedError(in.entry)
		default:
		}
		if in.room == 0 && in.open {
			in.room = in.store.reserve(in.entry, piece)
		}
		// Without room one byte is still asked for, to tell an end from more.
		n, err := in.source.Read(buf[:max(1, min(in.room, piece))])
		if n > 0 && in.room == 0 {
			return in.full()
		}
		if n > 0 {
			in.room -= int64(n)
			in.digest(buf[:n])
			if _, werr := in.store.disk.write(f, buf[:n]); werr != nil {
				return diskError("writing the artifact's bytes", werr)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			in.finish()
			return nil
		case err != nil:
			return sourceError(in.total, err)
		case n == 0:
			if in.idle++; in.idle == 100 {
				return sourceError(in.total, io.ErrNoProgress)
			}
		default:
			in.idle = 0
		}
	}
}

func (in *intake) digest(b []byte) {
	in.total += int64(len(b))
	in.whole.Write(b)
	for len(b) > 0 {
		n := min(len(b), blockSize-in.inside)
		in.block.Write(b[:n])
		b = b[n:]
		if in.inside += n; in.inside == blockSize {
			in.finish()
		}
	}
}

// finish ends the current block, if it holds anything.
func (in *intake) finish() {
	if in.inside > 0 {
		in.blocks = append(in.blocks, [sha256.Size]byte(in.block.Sum(nil)))
		in.block.Reset()
		in.inside = 0
	}
}

// full is the error for a source that has more than there is room for.
func (in *intake) full() error {
	if in.open {
		s := in.store
		s.mu.Lock()
		defer s.mu.Unlock()
		key := in.entry.key()
		if err := s.quota.take(key, usage{0, 1}); err != nil {
			return err
		}
		s.quota.give(key, usage{0, 1}) // somebody just made room; the refusal stands
	}
	return reins.Errorf(reins.CodeQuotaExceeded, "the artifact has more than the %d bytes that were reserved for it; say a larger size", in.total).
		In(reins.PhaseArtifact).Recover(reins.RecoverChangeInput)
}

// reserve charges up to want more bytes to an entry and returns how many.
func (s *Store) reserve(e *entry, want int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(want, s.quota.room(e.key()))
	if n <= 0 || e.state != filling || s.quota.take(e.key(), usage{0, n}) != nil {
		return 0
	}
	e.charged += n
	return n
}

// publish lists a filled entry, unless it was doomed meanwhile.
func (s *Store) publish(e *entry) (reins.Artifact, error) {
	s.mu.Lock()
	if e.state != filling {
		s.mu.Unlock()
		return reins.Artifact{}, s.giveUp(e, s.endedError(e))
	}
	defer s.mu.Unlock()
	s.quota.give(e.key(), usage{0, e.charged - e.meta.Size})
	e.charged = e.meta.Size
	e.meta.Created = time.Now().Round(0)
	if life := s.life[e.meta.Kind]; life > 0 {
		e.meta.Expires = e.meta.Created.Add(life)
		s.scheduleLocked(e, e.meta.Expires)
	}
	e.state = listed
	close(e.busy)
	e.busy = nil
	return e.meta, nil
}

// giveUp ends a put that failed with err and returns what the caller is told.
// Files that cannot be removed stay charged and are tried again later.
func (s *Store) giveUp(e *entry, err error) error {
	s.mu.Lock()
	if e.state < doomed {
		s.doomLocked(e)
	}
	s.mu.Unlock()
	if rerr := s.erase(e); rerr != nil {
		return reins.AsError(err).Because(errors.Join(err, rerr))
	}
	return err
}

func (e *entry) key() reins.ResourceKey {
	return reins.ResourceKey{Project: e.meta.Project, ID: e.meta.Resource}
}
