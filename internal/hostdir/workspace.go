package hostdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// Workspace is a persistent profile of a project, held by one writer at a time
// through a kernel lock (WSP-2). It outlives generations.
type Workspace struct {
	// Profile is the absolute path of the browser's user data directory.
	Profile string
	// Notes are plain sentences about what was found and mended, for the log.
	Notes []string

	folder, lock *os.File
	machine      machine
	mu           sync.Mutex
	closed       bool
}

const (
	workspaceLock    = "lock"
	workspaceProfile = "profile"
)

// Workspace takes a named profile of a project for writing, making it when it
// is new. It is busy while another browser has it, locked while a process that
// does not hold it still runs on it, and clears what a dead browser left to
// keep others out (B062). One that holds more than its bound, without what a
// browser makes anew by itself, is quota_exceeded.
func (d *Dir) Workspace(ctx context.Context, project, name string) (_ *Workspace, err error) {
	done := d.use()
	if done == nil {
		return nil, d.stopped()
	}
	defer done()
	w, err := d.lockWorkspace(project, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
			err = reins.AsError(err)
		}
	}()
	if err := d.machine.inspect(ctx, d.id.UID, w.Profile); err != nil {
		return nil, err
	}
	profile, err := ensureFolder(w.folder, workspaceProfile, d.id)
	if err != nil {
		return nil, err
	}
	defer profile.Close()
	if err := w.clearSingletons(profile); err != nil {
		return nil, err
	}
	if err := w.fit(ctx, profile, d.workspaceBytes); err != nil {
		return nil, err
	}
	return w, nil
}

// RemoveWorkspace removes a named profile of a project; one that does not exist
// is a success. It is busy while a browser has it. A failed removal can be
// called again.
func (d *Dir) RemoveWorkspace(ctx context.Context, project, name string) error {
	done := d.use()
	if done == nil {
		return d.stopped()
	}
	defer done()
	if !d.hasWorkspace(project, name) {
		return nil
	}
	w, err := d.lockWorkspace(project, name)
	if err != nil {
		return err
	}
	if err = d.machine.inspect(ctx, d.id.UID, w.Profile); err == nil {
		err = d.dismantle(ctx, w)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return reins.AsError(err)
	}
	return nil
}

// removedKind is the prefix of a workspace's folder on its way out.
const removedKind = capability.Kind("removed")

// dismantle removes a locked workspace. The profile goes first, so that a
// failure leaves a workspace; then what is left moves out of the way before its
// lock file goes, so that nobody can come to hold a lock in it meanwhile.
func (d *Dir) dismantle(ctx context.Context, w *Workspace) error {
	if err := removeTree(ctx, w.folder, workspaceProfile); err != nil {
		return err
	}
	all, err := openFolder(d.root, workspacesName, d.id)
	if err != nil {
		return err
	}
	defer all.Close()
	aside := capability.NewID(removedKind)
	err = unix.Renameat(int(all.Fd()), filepath.Base(w.folder.Name()), int(all.Fd()), aside)
	if err == nil {
		err = d.machine.sync(all)
	}
	if err != nil {
		return fencedBy(err, "the workspace in %q cannot be moved out of the way: %s", w.folder.Name(), reason(err))
	}
	return removeTree(ctx, all, aside)
}

// finishRemovals removes what a kill left of workspaces that were on their way
// out. It is for a start, when nobody else removes any.
func (d *Dir) finishRemovals(ctx context.Context) error {
	all, err := openFolder(d.root, workspacesName, d.id)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer all.Close()
	list, err := all.Readdirnames(-1)
	if err != nil {
		return fencedBy(err, "the folder %q cannot be read: %s", all.Name(), reason(err))
	}
	for _, name := range list {
		if capability.IsID(removedKind, name) {
			if err := removeTree(ctx, all, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func workspaceDigest(project, name string) string {
	sum := sha256.Sum256([]byte(project + "\x00" + name))
	return hex.EncodeToString(sum[:])
}

func (d *Dir) hasWorkspace(project, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(d.root.Fd()), workspacesName+"/"+workspaceDigest(project, name), &st, unix.AT_SYMLINK_NOFOLLOW)
	return !errors.Is(err, unix.ENOENT)
}

// lockWorkspace opens and locks a workspace's folder.
func (d *Dir) lockWorkspace(project, name string) (*Workspace, error) {
	if err := (reins.ResourceKey{Project: project, ID: name}).Validate(); err != nil {
		return nil, err
	}
	if err := d.checkInUse(); err != nil {
		return nil, err
	}
	all, err := ensureShared(d.root, workspacesName, d.id)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	digest := workspaceDigest(project, name)
	for range 16 {
		w := &Workspace{Profile: filepath.Join(all.Name(), digest, workspaceProfile), machine: d.machine}
		if w.folder, err = ensureShared(all, digest, d.id); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return nil, err
		}
		err = w.take(project, name, d.id)
		// Another may have moved the folder away between opening and locking:
		// then neither lock nor failure says anything about the workspace.
		moved := !leadsTo(all, digest, w.folder)
		if err == nil && !moved {
			return w, nil
		}
		if cerr := w.Close(); !moved {
			return nil, reins.AsError(errors.Join(err, cerr))
		}
	}
	return nil, reins.Errorf(reins.CodeBusy, "workspace %q of project %q is being removed; try again", name, project)
}

// ensureShared is ensureFolder where several goroutines may make it at once.
func ensureShared(at *os.File, name string, id identity) (*os.File, error) {
	f, err := ensureFolder(at, name, id)
	if errors.Is(err, unix.EEXIST) {
		return openFolder(at, name, id)
	}
	return f, err
}

// take locks the workspace and says in the lock file whose it is.
func (w *Workspace) take(project, name string, id identity) error {
	path := filepath.Join(w.folder.Name(), workspaceLock)
	fd, err := unix.Openat(int(w.folder.Fd()), workspaceLock, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fencedBy(err, "the lock %q of a workspace cannot be opened: %s", path, reason(err))
	}
	w.lock = os.NewFile(uintptr(fd), path)
	if _, err := checkFile(w.lock, id); err != nil {
		return err
	}
	err = ignoringEINTR(func() error { return w.machine.lock(w.lock, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return reins.Errorf(reins.CodeBusy, "workspace %q of project %q is in use by another browser; stop that one or use another workspace", name, project).Because(err)
	}
	if err != nil {
		return fencedBy(err, "the file system gives no kernel lock on %q: %s", path, reason(err))
	}
	b, err := json.Marshal(map[string]string{"project": project, "workspace": name})
	if err == nil {
		_, err = w.lock.WriteAt(append(b, '\n'), 0)
	}
	if err != nil {
		return fencedBy(err, "the lock %q of a workspace cannot be written: %s; check its disk", path, reason(err))
	}
	return nil
}

// clearSingletons removes the links by which a browser keeps others out of its
// profile. Only the kernel lock and the processes say whether one lives: host
// names and numbers in the links do not.
func (w *Workspace) clearSingletons(profile *os.File) error {
	at := int(profile.Fd())
	buf := make([]byte, 128)
	if n, err := unix.Readlinkat(at, "SingletonLock", buf); err == nil {
		w.Notes = append(w.Notes, fmt.Sprintf("the lock of a dead browser (%q) on profile %q was taken over", buf[:n], w.Profile))
	}
	for _, name := range []string{"SingletonLock", "SingletonCookie", "SingletonSocket", "DevToolsActivePort"} {
		if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return fencedBy(err, "%q of a dead browser cannot be removed: %s; remove it by hand", filepath.Join(w.Profile, name), reason(err))
		}
	}
	return nil
}

// Close lets the next writer in. Its browser must have ended. Idempotent.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	var err error
	if w.lock != nil {
		err = errors.Join(ignoringEINTR(func() error { return w.machine.lock(w.lock, unix.LOCK_UN) }), w.lock.Close())
	}
	if w.folder != nil {
		err = errors.Join(err, w.folder.Close())
	}
	if err != nil {
		return fencedBy(err, "the lock on %q may still be held; end this process before using the workspace again", w.Profile)
	}
	return nil
}
