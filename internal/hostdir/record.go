package hostdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// record is the content of runtime.lock: metadata about the owner, and by being
// there a fence against programs that create the file exclusively (OWN-2). It
// is not the mutex.
type record struct {
	Schema     int    `json:"schema"`
	Device     uint64 `json:"device"`
	Inode      uint64 `json:"inode"`
	Path       string `json:"path"`
	UID        int    `json:"uid"`
	Anchor     uint64 `json:"anchor"` // inode of the locked file
	BootID     string `json:"boot"`
	PID        int    `json:"pid"`
	Ticks      uint64 `json:"ticks"`
	Generation string `json:"generation"`
	Nonce      string `json:"nonce"`
	State      string `json:"state"`
	// Legacy says that folders of an older program are still to be removed.
	Legacy bool `json:"legacy,omitempty"`
}

const (
	schemaVersion     = 1
	stateActive       = "active"
	stateRelinquished = "relinquished"
	// recordSize is the size of runtime.lock: always the same and within one
	// page, so that overwriting it is one write that a kill cannot cut.
	recordSize = 2048
)

// encode writes the record as JSON, filled up with blanks.
func (r record) encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil || len(b) >= recordSize {
		return nil, fencedBy(err, "the record of the owner has %d bytes; at most %d fit", len(b), recordSize)
	}
	b = append(b, bytes.Repeat([]byte{' '}, recordSize-1-len(b))...)
	return append(b, '\n'), nil
}

// write overwrites the record durably through the retained descriptor.
func (r record) write(f *os.File, m machine) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = m.sync(f)
	}
	if err != nil {
		return fencedBy(err, "the record %q cannot be written: %s; check its disk", f.Name(), reason(err))
	}
	return nil
}

// readRecord reads and judges the form of a record.
func readRecord(f *os.File) (record, error) {
	b := make([]byte, recordSize+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return record{}, fencedBy(err, "the record %q cannot be read: %s", f.Name(), reason(err))
	}
	r, what := parseRecord(b[:n])
	if what != "" {
		return record{}, fenced("the record %q %s; %s", f.Name(), what, startOver)
	}
	return r, nil
}

// parseRecord returns the record in b, or what is wrong with it.
func parseRecord(b []byte) (r record, what string) {
	if len(b) > recordSize {
		return r, "is larger than a record"
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, "is not a record of an owner"
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, "holds more than a record"
	}
	switch {
	case r.Schema != schemaVersion:
		return r, "was written by another version of this program"
	case r.State != stateActive && r.State != stateRelinquished:
		return r, "has an unknown state"
	case !capability.IsID(capability.KindGeneration, r.Generation):
		return r, "names no generation"
	case len(r.Nonce) != 26 || r.BootID == "" || len(r.BootID) > 64 || r.PID <= 0 || len(r.Path) != 64:
		return r, "is incomplete"
	}
	return r, ""
}

// newRecord describes this process as the owner of a new generation.
func (d *Dir) newRecord() (record, error) {
	r := record{
		Schema: schemaVersion, Device: d.id.Device, Inode: d.id.Inode, Path: d.id.Path, UID: d.id.UID,
		Anchor: d.mutex.inode, PID: os.Getpid(), Generation: newGeneration(), State: stateActive,
		Nonce: strings.TrimPrefix(newGeneration(), string(capability.KindGeneration)+"_"),
	}
	var err, terr error
	r.BootID, err = d.machine.bootID()
	r.Ticks, terr = d.machine.startTicks()
	if err = errors.Join(err, terr); err != nil || r.BootID == "" {
		return r, fencedBy(err, "%s does not tell the boot and the start of this process; mount procfs there", d.machine.proc)
	}
	return r, nil
}

// lockSize is the size of runtime.lock by its name, or -1 when there is none.
func (d *Dir) lockSize() (int64, error) {
	var st unix.Stat_t
	path := filepath.Join(d.Path(), lockName)
	switch err := unix.Fstatat(int(d.root.Fd()), lockName, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return -1, nil
	case err != nil:
		return 0, fencedBy(err, "%q cannot be looked at: %s", path, reason(err))
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return 0, fenced("%q is no plain file; %s", path, startOver)
	}
	return st.Size, nil
}

// openLock opens runtime.lock and checks all of it but its content.
func (d *Dir) openLock() (*os.File, *unix.Stat_t, error) {
	path := filepath.Join(d.Path(), lockName)
	fd, err := unix.Openat(int(d.root.Fd()), lockName, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fencedBy(err, "the record %q cannot be opened: %s; %s", path, reason(err), startOver)
	}
	f := os.NewFile(uintptr(fd), path)
	st, err := checkFile(f, d.id)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// createLock makes runtime.lock where there is none, complete from its first
// instant: written and durable under another name, then named. When it fails it
// removes the file that it made and no other (OWN-6).
func (d *Dir) createLock() (err error) {
	const fresh = lockName + ".new"
	if d.record, err = d.newRecord(); err != nil {
		return err
	}
	path, root := filepath.Join(d.Path(), lockName), int(d.root.Fd())
	// A kill may have left one; the mutex says that nobody is making it now.
	if err := unix.Unlinkat(root, fresh, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fencedBy(err, "%q cannot be removed: %s", filepath.Join(d.Path(), fresh), reason(err))
	}
	fd, err := unix.Openat(root, fresh, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fencedBy(err, "the record %q cannot be made: %s", path, reason(err))
	}
	f, named := os.NewFile(uintptr(fd), path), fresh
	defer func() {
		if err != nil {
			if leadsTo(d.root, named, f) {
				_ = unix.Unlinkat(root, named, 0)
			}
			_ = f.Close()
		}
	}()
	if err = unix.Fchmod(fd, 0o600); err != nil {
		return fencedBy(err, "the record %q cannot be made private: %s", path, reason(err))
	}
	if err = d.record.write(f, d.machine); err != nil {
		return err
	}
	if err = d.machine.rename(d.root, fresh, lockName); errors.Is(err, unix.EEXIST) {
		return reins.Errorf(reins.CodeLocked, "another program just made %q; stop it or use another runtime directory", path)
	} else if err != nil {
		return fencedBy(err, "the record %q cannot be named: %s", path, reason(err))
	}
	named = lockName
	if err = d.machine.sync(d.root); err != nil {
		return fencedBy(err, "the record %q cannot be made durable: %s; check its disk", path, reason(err))
	}
	d.lock = f
	return nil
}

// nameHolder adds to a locked error who the record says holds the directory. It
// is read without the mutex and only shown.
func (d *Dir) nameHolder(e *reins.Error) error {
	path := d.Path()
	plain := reins.Errorf(reins.CodeLocked, "another process owns the runtime directory %q; stop it or use another directory", path).Because(e.Cause)
	f, _, err := d.openLock()
	if err != nil {
		return plain
	}
	defer f.Close()
	r, err := readRecord(f)
	if err != nil || r.State != stateActive {
		return plain
	}
	return reins.Errorf(reins.CodeLocked, "process %d owns the runtime directory %q; stop it or use another directory", r.PID, path).
		Because(e.Cause).With("pid", r.PID)
}
