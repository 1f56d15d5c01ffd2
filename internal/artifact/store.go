// Package artifact keeps bytes under quota: screenshots, downloads, uploads.
//
// A [Store] belongs to one generation of a runtime and to one folder, which
// holds nothing else. What is stored is known to the store's memory only: the
// folder is removed with its generation, so there is no index on disk that
// could disagree. File names are keyed digests with a key that is random per
// store, so no byte that a caller or a page made enters a path (ART-2).
//
// # Order
//
// An artifact is filling, then listed, then doomed, then gone. Its quota is
// taken before the first byte is read and given back exactly once, when its
// files are gone from disk (ART-3, ART-5). Listed means: written, fsynced,
// named, and only then seen by [Store.List]; whatever fails before that leaves
// nothing listed. Doomed means: no list shows it and no read begins; reads that
// had begun fail at their next block. A file that the disk will not let go of
// stays doomed, charged, and is tried again by [Store.Delete], [Store.Purge]
// and, every minute, by the store itself. Expiry goes the same way (ART-6).
//
// # Reading
//
// Nothing is handed out that was not checked. [Store.Open] checks size and
// SHA-256 of the whole over the open descriptor before it returns; after that,
// and in [Store.ReadChunk], each block of 1 MiB is checked against its own
// digest at the moment it is read, so bytes that rot in between are corrupt
// too, never bytes (ART-4).
//
// # Shutdown
//
// [Store.Close] refuses new work, breaks off what runs, waits for it, and keeps
// the files: whoever owns the folder removes it.
//
// # Testing with it
//
// The store is real in tests: give it an empty folder of mode 0700. Time is the
// time package's, so expiry runs under testing/synctest.
package artifact

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// Options set up a store.
type Options struct {
	// Limits are complete; the artifact ones are used.
	Limits reins.Limits
	// Life is how long artifacts of a kind are kept; a kind without an entry
	// is kept until it is deleted.
	Life map[string]time.Duration
}

// Store keeps artifacts. Its methods may be called from any goroutine.
type Store struct {
	dir  *os.File
	key  [32]byte
	life map[string]time.Duration
	disk disk

	stop  chan struct{} // closed by Close: ends the sweeper
	swept chan struct{} // closed when the sweeper has ended
	wake  chan struct{} // tells the sweeper that the next due time changed

	mu      sync.Mutex // guards all below; never held during I/O
	closed  bool
	quota   ledger
	entries map[reins.ResourceKey]map[string]*entry
	due     dueHeap
}

// state is where an entry is in its life; it only grows.
type state int

const (
	filling state = iota // charged, bytes arriving
	listed               // complete, named, seen by all
	doomed               // seen by nobody, its files to be removed
	gone                 // removed and no longer charged
)

// entry is one artifact from its admission until its files are gone.
type entry struct {
	path   string // its file's name; while filling it is path + ".part"
	blocks [][sha256.Size]byte
	ended  chan struct{} // closed when it becomes doomed

	// Guarded by Store.mu; meta is fixed once the entry is listed.
	meta    reins.Artifact
	state   state
	charged int64         // bytes of quota it holds
	busy    chan struct{} // not nil while somebody works on its files; closed when they stop
	dueAt   time.Time     // when the sweeper is to remove it; zero is never
	index   int           // in the heap, -1 when not there
}

// Open makes a store over dir, an empty folder of mode 0700 owned by the
// running user; anything else is fenced. The store uses a descriptor of its
// own; the caller keeps dir.
func Open(dir *os.File, o Options) (*Store, error) {
	for kind, d := range o.Life {
		if d <= 0 {
			return nil, reins.Errorf(reins.CodeInvalidInput, "the life of kind %q is %s; leave it out to keep artifacts for good", kind, d)
		}
	}
	limits, err := o.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	own, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: own, life: maps.Clone(o.Life), disk: realDisk(),
		stop: make(chan struct{}), swept: make(chan struct{}), wake: make(chan struct{}, 1),
		quota: newLedger(limits), entries: map[reins.ResourceKey]map[string]*entry{},
	}
	rand.Read(s.key[:])
	go s.sweep()
	return s, nil
}

func openFolder(dir *os.File) (*os.File, error) {
	if dir == nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the artifact store needs an open folder")
	}
	refuse := func(what string) error {
		return reins.Errorf(reins.CodeFenced, "the artifact folder %q %s; a new generation's folder is empty, private (0700) and the running user's", dir.Name(), what).In(reins.PhaseArtifact)
	}
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, reins.AsError(refuse("cannot be opened")).Because(err)
	}
	own := os.NewFile(uintptr(fd), dir.Name())
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		switch names, rerr := own.Readdirnames(1); {
		case int(st.Uid) != os.Geteuid():
			err = refuse("belongs to another user")
		case st.Mode&0o777 != 0o700:
			err = refuse("does not have mode 0700")
		case len(names) > 0:
			err = refuse("is not empty")
		case rerr != nil && len(names) == 0 && !isEOF(rerr):
			err = rerr
		}
	}
	if err != nil {
		_ = own.Close()
		if e := (*reins.Error)(nil); errors.As(err, &e) {
			return nil, e
		}
		return nil, reins.AsError(refuse("cannot be read")).Because(err)
	}
	return own, nil
}

// Access says on whose behalf artifacts are touched: of one resource, and only
// those that match the other fields. Empty fields do not restrict, which is for
// the trusted parent (ART-4). For an agent LeaseID is its lease (LSE-8).
type Access struct {
	Key     reins.ResourceKey
	Owner   string
	LeaseID string
}

func (a Access) sees(e *entry) bool {
	return (a.Owner == "" || a.Owner == e.meta.Owner) && (a.LeaseID == "" || a.LeaseID == e.meta.LeaseID)
}

// List returns what the access sees, oldest first.
func (s *Store) List(a Access) []reins.Artifact {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var out []reins.Artifact
	for _, e := range s.entries[a.Key] {
		if a.sees(e) && e.visible(now) {
			out = append(out, e.meta)
		}
	}
	slices.SortFunc(out, func(x, y reins.Artifact) int {
		return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
	return out
}

func (e *entry) visible(now time.Time) bool {
	return e.state == listed && (e.meta.Expires.IsZero() || now.Before(e.meta.Expires))
}

// Stat describes one artifact, or is not_found: also for one that the access
// does not see.
func (s *Store) Stat(a Access, id string) (reins.Artifact, error) {
	e, err := s.find(a, id)
	if err != nil {
		return reins.Artifact{}, err
	}
	return e.meta, nil
}

// find returns a listed entry; its meta may then be read without the lock.
func (s *Store) find(a Access, id string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errStopped()
	}
	e := s.entries[a.Key][id]
	if e == nil || !a.sees(e) || !e.visible(time.Now()) {
		return nil, errNotFound(a.Key, id)
	}
	return e, nil
}

// Usage returns how many artifacts and bytes are charged to a resource,
// including those being stored or removed.
func (s *Store) Usage(key reins.ResourceKey) (count int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.quota.resources[key]
	return u.count, u.bytes
}

// Close refuses new work with runtime_stopped, breaks off reads and puts under
// way and waits for the puts until ctx ends. A source that never returns from
// its Read keeps Close waiting; it can then be called again. The files stay.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	var busy []chan struct{}
	for _, of := range s.entries {
		for _, e := range of {
			if e.state < doomed {
				s.doomLocked(e)
			}
			if e.busy != nil {
				busy = append(busy, e.busy)
			}
		}
	}
	s.mu.Unlock()
	if first {
		close(s.stop)
	}
	for _, c := range append(busy, s.swept) {
		select {
		case <-c:
		case <-ctx.Done():
			return reins.ContextError(ctx).In(reins.PhaseCleanUp)
		}
	}
	if err := s.dir.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return diskError("closing the artifact folder", err)
	}
	return nil
}

// name returns the file name for an artifact (ART-2).
func (s *Store) name(key reins.ResourceKey, id string) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{key.Project, key.ID, id} {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	return hex.EncodeToString(mac.Sum(nil))
}
