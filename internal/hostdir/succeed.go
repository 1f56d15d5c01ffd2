package hostdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// succeed takes over from whoever had the directory before, under the mutex,
// and leaves a durable record of a new generation.
func (d *Dir) succeed(ctx context.Context) error {
	size, err := d.lockSize()
	if err != nil {
		return err
	}
	switch {
	case size < 0:
		return d.startFresh(ctx)
	case size == 0:
		return d.adopt(ctx)
	}
	if d.lock, _, err = d.openLock(); err != nil {
		return err
	}
	old, err := readRecord(d.lock)
	if err != nil {
		return err
	}
	if old.Device != d.id.Device || old.Inode != d.id.Inode || old.Path != d.id.Path || old.UID != d.id.UID || old.Anchor != d.mutex.inode {
		return fenced("the record %q is of another directory, user or anchor; was the directory moved or copied? %s", d.lock.Name(), startOver)
	}
	return d.takeOver(ctx, old)
}

// takeOver removes the generation that a valid record names and nothing else,
// once no process uses its profiles (OWN-3).
func (d *Dir) takeOver(ctx context.Context, old record) error {
	if err := d.onlyGeneration(old.Generation); err != nil {
		return err
	}
	roots, err := d.legacyRoots()
	if err != nil {
		return err
	}
	if len(roots) > 0 && !old.Legacy {
		return fenced("%q is from an older program although %q is not; move it away, or %s", filepath.Join(d.Path(), roots[0]), d.lock.Name(), startOver)
	}
	gone, err := d.removeGeneration(ctx, old.Generation)
	if err != nil {
		return err
	}
	if gone && old.State == stateActive {
		d.note(fmt.Sprintf("process %d ended without stopping; what it left of %s was removed", old.PID, old.Generation))
	}
	if err := d.removeLegacy(ctx, roots); err != nil {
		return err
	}
	if d.record, err = d.newRecord(); err != nil {
		return err
	}
	return d.record.write(d.lock, d.machine)
}

// onlyGeneration checks that generations/ holds at most the named one.
func (d *Dir) onlyGeneration(name string) error {
	f, err := openFolder(d.root, generationsName, d.id)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	held, err := names(f)
	if err != nil {
		return err
	}
	for _, n := range held {
		if n != name {
			return fenced("%q holds %.80q, a generation that no record names; move it away after checking that no process uses it", f.Name(), n)
		}
	}
	return nil
}

// removeGeneration removes an old generation's tree, if there is one.
func (d *Dir) removeGeneration(ctx context.Context, name string) (bool, error) {
	f, err := openFolder(d.root, generationsName, d.id)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if held, err := names(f); err != nil || len(held) == 0 {
		return false, err
	}
	old, err := openFolder(f, name, d.id)
	if err != nil {
		return false, err
	}
	_ = old.Close()
	if err := d.machine.inspect(ctx, d.id.UID, filepath.Join(f.Name(), name, profilesName)); err != nil {
		return false, err
	}
	return true, removeTree(ctx, f, name)
}

// startFresh is the first start in a directory: no record yet. Empty folders of
// an older program that stopped cleanly are removed (OWN-5).
func (d *Dir) startFresh(ctx context.Context) error {
	if err := d.onlyGeneration(""); err != nil {
		return err
	}
	roots, err := d.legacyRoots()
	if err != nil {
		return err
	}
	for _, name := range roots {
		if err := d.mustBeEmpty(name); err != nil {
			return err
		}
	}
	if len(roots) > 0 {
		if err := d.machine.inspect(ctx, d.id.UID, filepath.Join(d.Path(), profilesName)); err != nil {
			return err
		}
		for _, name := range roots {
			if err := unix.Unlinkat(int(d.root.Fd()), name, unix.AT_REMOVEDIR); err != nil {
				return fencedBy(err, "the empty folder %q of an older program cannot be removed: %s", filepath.Join(d.Path(), name), reason(err))
			}
		}
		d.note("empty folders of an older program were removed")
	}
	return d.createLock()
}

// legacyRoots are the folders that an older program kept at the top level,
// checked to be private folders of ours.
func (d *Dir) legacyRoots() ([]string, error) {
	var out []string
	for _, name := range []string{profilesName, artifactsName} {
		f, err := openFolder(d.root, name, d.id)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_ = f.Close()
		out = append(out, name)
	}
	return out, nil
}

func (d *Dir) mustBeEmpty(name string) error {
	f, err := openFolder(d.root, name, d.id)
	if err != nil {
		return err
	}
	defer f.Close()
	if held, err := names(f); err != nil || len(held) > 0 {
		return fencedBy(err, "%q of an older program is not empty and nothing tells whether it still runs; stop it and remove that folder", f.Name())
	}
	return nil
}

// adopt takes over an empty runtime.lock, left by a predecessor that created it
// exclusively, once and only when nothing can still hold it (OWN-4).
func (d *Dir) adopt(ctx context.Context) error {
	if err := d.onlyGeneration(""); err != nil {
		return err
	}
	before, err := d.probeLegacyLock()
	if err != nil {
		return err
	}
	roots, err := d.legacyRoots()
	if err != nil {
		return err
	}
	if err := d.machine.inspect(ctx, d.id.UID, filepath.Join(d.Path(), profilesName)); err != nil {
		return err
	}
	if d.lock, _, err = d.openLock(); err != nil {
		return err
	}
	after, err := d.look(d.lock)
	if err != nil {
		return err
	}
	if after != before {
		return fenced("%q changed while it was looked at; %s", d.lock.Name(), startOver)
	}
	if d.record, err = d.newRecord(); err != nil {
		return err
	}
	// Said in the record until it is done, so that a start after a kill goes on.
	d.record.Legacy = len(roots) > 0
	if err := d.record.write(d.lock, d.machine); err != nil {
		return err
	}
	d.note("the directory of an older program, which ended before this machine started, was taken over")
	if len(roots) == 0 {
		return nil
	}
	if err := d.removeLegacy(ctx, roots); err != nil {
		return err
	}
	d.record.Legacy = false
	return d.record.write(d.lock, d.machine)
}

// legacyFacts are what must not change about an empty runtime.lock while it is
// judged.
type legacyFacts struct {
	ino, size            uint64
	uid, mode            uint32
	birth, change, write [2]int64 // seconds, nanoseconds
}

func (d *Dir) look(f *os.File) (legacyFacts, error) {
	st, err := checkFile(f, d.id)
	if err != nil {
		return legacyFacts{}, err
	}
	born, ok := d.machine.birth(f)
	if !ok {
		return legacyFacts{}, fenced("the file system does not tell when %q was made; %s", f.Name(), startOver)
	}
	return legacyFacts{
		ino: st.Ino, size: uint64(st.Size), uid: st.Uid, mode: st.Mode,
		birth:  [2]int64{born.Sec, int64(born.Nsec)},
		change: [2]int64{st.Ctim.Sec, st.Ctim.Nsec}, write: [2]int64{st.Mtim.Sec, st.Mtim.Nsec},
	}, nil
}

// probeLegacyLock tells that nobody has an empty runtime.lock open and that it
// is from before this boot.
func (d *Dir) probeLegacyLock() (legacyFacts, error) {
	f, _, err := d.openLock()
	if err != nil {
		return legacyFacts{}, err
	}
	defer f.Close()
	facts, err := d.look(f)
	if err != nil {
		return legacyFacts{}, err
	}
	if facts.size != 0 {
		return legacyFacts{}, fenced("%q changed while it was looked at; %s", f.Name(), startOver)
	}
	switch err := d.machine.lease(f); {
	case errors.Is(err, unix.EAGAIN):
		return legacyFacts{}, reins.Errorf(reins.CodeLocked, "an older program has %q open; stop it or use another runtime directory", f.Name()).Because(err)
	case err != nil:
		return legacyFacts{}, fencedBy(err, "the file system does not tell whether %q is in use: %s; %s", f.Name(), reason(err), startOver)
	}
	boot, err := d.machine.bootTime()
	if err != nil {
		return legacyFacts{}, fencedBy(err, "%s does not tell when this machine started; mount procfs there", d.machine.proc)
	}
	for _, t := range [][2]int64{facts.birth, facts.change, facts.write} {
		if t[0] >= boot {
			return legacyFacts{}, fenced("the empty %q was left by an older program since this machine started and does not say by whom; %s", f.Name(), startOver)
		}
	}
	return facts, nil
}

// removeLegacy removes what an older program kept, whatever it holds, after
// looking for processes that use it.
func (d *Dir) removeLegacy(ctx context.Context, roots []string) error {
	if len(roots) == 0 {
		return nil
	}
	if err := d.machine.inspect(ctx, d.id.UID, filepath.Join(d.Path(), profilesName)); err != nil {
		return err
	}
	for _, name := range roots {
		if err := removeTree(ctx, d.root, name); err != nil {
			return err
		}
	}
	d.note("the folders of an older program were removed")
	return nil
}
