package hostdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// Slot is the place of one incarnation on disk: a fresh profile, and folders
// for what comes down and what is handed in (WSP-1). Paths are absolute; the
// folders are private and in this generation, so they end with it at the latest.
type Slot struct {
	Profile   string
	Downloads string
	Uploads   string

	dir     *Dir
	name    string
	folders []*os.File // downloads, uploads
	mu      sync.Mutex
	removed bool
}

// NewSlot makes a slot under a random name.
func (d *Dir) NewSlot() (_ *Slot, err error) {
	done := d.use()
	if done == nil {
		return nil, d.stopped()
	}
	defer done()
	if err := d.checkInUse(); err != nil {
		return nil, err
	}
	s := &Slot{dir: d, name: capability.NewID(capability.KindCell)}
	home, err := makeFolder(d.profiles, s.name, d.id)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	defer func() {
		if err != nil {
			s.closeFolders()
			err = reins.AsError(errors.Join(err, removeTree(context.Background(), d.profiles, s.name)))
		}
	}()
	profile, err := makeFolder(home, "profile", d.id)
	if err != nil {
		return nil, err
	}
	_ = profile.Close()
	for _, name := range []string{"downloads", "uploads"} {
		f, err := makeFolder(home, name, d.id)
		if err != nil {
			return nil, err
		}
		s.folders = append(s.folders, f)
	}
	base := filepath.Join(d.profiles.Name(), s.name)
	s.Profile, s.Downloads, s.Uploads = filepath.Join(base, "profile"), s.folders[0].Name(), s.folders[1].Name()
	return s, nil
}

// DownloadsFolder is the held descriptor of Downloads, which a browser writes
// to: take files from it as from a stranger. It is open until Remove.
func (s *Slot) DownloadsFolder() *os.File { return s.folders[0] }

// UploadsFolder is the held descriptor of Uploads. It is open until Remove.
func (s *Slot) UploadsFolder() *os.File { return s.folders[1] }

// Remove removes the slot with all it holds. Its browser must have ended. When
// it fails it can be called again; after success it is a no-op.
func (s *Slot) Remove(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil
	}
	// A directory that was given up took the slot with it.
	if done := s.dir.use(); done != nil {
		defer done()
		if err := removeTree(ctx, s.dir.profiles, s.name); err != nil {
			return reins.AsError(err).In(reins.PhaseCleanUp)
		}
	}
	s.closeFolders()
	s.removed = true
	return nil
}

func (s *Slot) closeFolders() {
	for _, f := range s.folders {
		_ = f.Close()
	}
}
