// Package hostdir owns a runtime directory: exactly one live process at a
// time, a fresh private generation per start, and nothing of ended generations
// left.
//
// # Layout
//
//	runtime.mutex/<anchor>   an empty file; the kernel lock on it is the mutex (OWN-1)
//	runtime.lock             who owns the directory and which generation (OWN-2)
//	generations/<id>/        profiles, artifacts, doors of one start (OWN-3)
//	workspaces/<digest>/     persistent profiles, one kernel lock each (WSP-2)
//	state.db                 named here, kept by the served form
//
// All is opened relative to held descriptors and without following links. What
// is found must be exactly as it was made (owner, mode, link count, type,
// device), else the start is fenced and changes nothing (DIR-3); other names
// beside these are not touched.
//
// # Order of a start
//
// [Open] takes the mutex first, so whatever it reads afterwards cannot change
// under it. It then judges what the directory says: nothing yet, a record of an
// earlier owner, or what an older program left. Processes that may still use
// the old profiles are waited for (two seconds), the old generation is removed,
// the new one is written into the record, and only then made on disk. So at
// every instant the record names the only generation that can exist, and a
// start after a kill at any instant finds something it may remove.
//
// Locked means that somebody else lives here: wait, or stop it. Fenced means
// that this cannot be told: a person has to look. Both sentences name the file.
//
// # An older program
//
// What an earlier design left (an empty runtime.lock, profiles and artifacts at
// the top level) is adopted once, when the kernel shows that nobody holds it and
// it is from before this boot (OWN-4), or removed when it is empty (OWN-5). The
// way back to such a program: stop, check that no process uses a profile below
// the directory, remove the whole directory.
//
// # While it runs
//
// [Dir.Check] tells whether the directory is still ours. A watcher calls it when
// the kernel reports a change and once a second; [Dir.Lost] is closed when it
// fails (OWN-7).
//
// # Shutdown
//
// [Dir.Close] removes the current generation, marks the record relinquished and
// releases the mutex. A step that failed leaves the mutex held, and Close can be
// called again (LIFE-1, LIFE-2).
package hostdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
)

// The names in a runtime directory.
const (
	lockName        = "runtime.lock"
	mutexName       = "runtime.mutex"
	generationsName = "generations"
	workspacesName  = "workspaces"
	stateName       = "state.db"
	profilesName    = "profiles"
	artifactsName   = "artifacts"
	doorsName       = "doors"
)

// Options set up an owned directory.
type Options struct {
	// CheckEvery is how often ownership is checked besides the kernel's
	// notices; 0 means one second.
	CheckEvery time.Duration
	// WorkspaceBytes is how much a workspace may hold to be used (WSP-2); 0 is
	// without bound.
	WorkspaceBytes int64
}

// Dir is a runtime directory that this process owns. Its methods may be called
// from any goroutine.
type Dir struct {
	machine machine
	root    *os.File
	id      identity
	mutex   *anchor
	lock    *os.File // runtime.lock, kept open for the whole life
	record  record
	notes   []string

	workspaceBytes int64

	generations, generation    *os.File
	profiles, artifacts, doors *os.File
	watch                      *watcher

	turn   chan struct{} // holds one token: whoever has it closes
	ending atomic.Bool   // set once Close began its work

	// inUse is read-held by whoever uses the descriptors above, so that Close
	// closes none under them.
	inUse  sync.RWMutex
	closed bool // guarded by inUse

	// Only for the one who has the turn.
	erased, relinquished bool
}

// Open makes path, which it creates when missing, this process's own and starts
// a new generation in it. It fails with locked when another process owns it or
// still uses its profiles, with fenced when the directory is not exactly as it
// must be, and with unsafe_host on a file system that cannot be trusted; then
// nothing was changed beyond the permanent files of the mutex.
func Open(ctx context.Context, path string, o Options) (*Dir, error) {
	return open(ctx, path, o, realMachine())
}

func open(ctx context.Context, path string, o Options, m machine) (_ *Dir, err error) {
	if o.CheckEvery < 0 {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the time between checks of a runtime directory must not be negative; 0 means one second").In(reins.PhaseStart)
	}
	if o.CheckEvery == 0 {
		o.CheckEvery = time.Second
	}
	if err := reins.ContextError(ctx); err != nil {
		return nil, err.In(reins.PhaseStart)
	}
	d := &Dir{machine: m, turn: make(chan struct{}, 1), workspaceBytes: o.WorkspaceBytes}
	defer func() {
		if err != nil {
			_ = d.release() // what failed says more
			err = reins.AsError(err).In(reins.PhaseStart)
		}
	}()
	if d.root, err = openRoot(path, m); err != nil {
		return nil, err
	}
	if d.id, err = identify(d.root, m); err != nil {
		return nil, err
	}
	if err = d.takeMutex(); err != nil {
		return nil, err
	}
	if err = d.succeed(ctx); err != nil {
		return nil, err
	}
	// From here on the record names a generation of ours; failing means ending it.
	if err = d.makeGeneration(); err == nil {
		err = d.finishRemovals(ctx)
	}
	if err == nil {
		d.watch, err = startWatcher(d, o.CheckEvery)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return d, nil
}

// takeMutex takes the live mutex, or says who has it.
func (d *Dir) takeMutex() error {
	// The record is looked at before the anchor: whoever writes it made the
	// anchor first, so seeing a record without an anchor is never a race.
	had, err := d.lockSize()
	if err != nil {
		return err
	}
	d.mutex, err = acquire(d.root, d.id, d.machine, had <= 0)
	if e := reins.AsError(err); e != nil && e.Code == reins.CodeLocked {
		return d.nameHolder(e)
	}
	return err
}

// makeGeneration makes the folders of the generation that the record names.
func (d *Dir) makeGeneration() (err error) {
	if d.generations, err = ensureFolder(d.root, generationsName, d.id); err != nil {
		return err
	}
	if d.generation, err = makeFolder(d.generations, d.record.Generation, d.id); err != nil {
		return err
	}
	for name, f := range map[string]**os.File{profilesName: &d.profiles, artifactsName: &d.artifacts, doorsName: &d.doors} {
		if *f, err = makeFolder(d.generation, name, d.id); err != nil {
			return err
		}
	}
	for _, f := range []*os.File{d.generation, d.generations, d.root} {
		if err := d.machine.sync(f); err != nil {
			return fencedBy(err, "the new generation in %q cannot be made durable; check its disk", d.Path())
		}
	}
	return nil
}

// Path is the absolute path of the directory, links resolved.
func (d *Dir) Path() string { return d.root.Name() }

// Generation is the ID of this start: "gen_…".
func (d *Dir) Generation() string { return d.record.Generation }

// Root is the held descriptor of the directory. Like those of the folders below
// its Name is the absolute path, for programs that need one, and it stays open
// until Close: do not close it.
func (d *Dir) Root() *os.File { return d.root }

// Profiles is this generation's folder for the browsers' own directories; see
// [Dir.NewSlot].
func (d *Dir) Profiles() *os.File { return d.profiles }

// Artifacts is this generation's folder for the artifact store; it starts empty.
func (d *Dir) Artifacts() *os.File { return d.artifacts }

// Doors is this generation's folder for sockets; it starts empty.
func (d *Dir) Doors() *os.File { return d.doors }

// StatePath is where the served form keeps its durable truth (DIR-2).
func (d *Dir) StatePath() string { return filepath.Join(d.Path(), stateName) }

// Notes are plain sentences about what the start found and mended, for the log.
func (d *Dir) Notes() []string { return append([]string(nil), d.notes...) }

// Lost is closed when the directory is no longer ours; Err then says why
// (OWN-7).
func (d *Dir) Lost() <-chan struct{} { return d.watch.lost }

// Err is nil until Lost is closed, then fenced.
func (d *Dir) Err() error { return d.watch.reason() }

// Close removes the current generation and nothing else, durably marks the
// record relinquished, and releases the mutex. When a step fails the mutex
// stays held and Close may be called again; after success it is a no-op. An
// ended context is an error like any other. Processes that use the profiles
// must have ended before.
func (d *Dir) Close(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return reins.ContextError(ctx).In(reins.PhaseCleanUp)
	}
	if d.closed { // written under the turn only
		return nil
	}
	if d.watch != nil {
		d.watch.close()
	}
	d.ending.Store(true)
	if err := d.endGeneration(ctx); err != nil {
		return reins.AsError(err).In(reins.PhaseCleanUp)
	}
	if err := d.relinquish(); err != nil {
		return reins.AsError(err).In(reins.PhaseCleanUp)
	}
	if err := d.release(); err != nil {
		return reins.AsError(err).In(reins.PhaseCleanUp)
	}
	return nil
}

// use keeps the descriptors open until the returned function is called; it is
// nil once the directory was given up.
func (d *Dir) use() (done func()) {
	d.inUse.RLock()
	if d.closed {
		d.inUse.RUnlock()
		return nil
	}
	return d.inUse.RUnlock
}

func (d *Dir) stopped() *reins.Error {
	return reins.Errorf(reins.CodeRuntimeStopped, "the runtime directory %q is being or was given up", d.Path())
}

// endGeneration removes the current generation's tree, once.
func (d *Dir) endGeneration(ctx context.Context) error {
	if d.erased || d.generations == nil {
		return nil
	}
	if err := removeTree(ctx, d.generations, d.record.Generation); err != nil {
		return err
	}
	d.erased = true
	return nil
}

// relinquish marks the record, once, if it is still ours to write.
func (d *Dir) relinquish() error {
	if d.relinquished {
		return nil
	}
	switch now, err := readRecord(d.lock); {
	case err != nil:
		return err
	case now.Nonce != d.record.Nonce:
		// Another owner wrote here after ownership was lost: it is theirs.
		d.relinquished = true
		return nil
	}
	r := d.record
	r.State = stateRelinquished
	if err := r.write(d.lock, d.machine); err != nil {
		return err
	}
	d.relinquished = true
	return nil
}

// release gives up the mutex and all descriptors. The directory is closed
// whatever comes of it; a second time it does nothing.
func (d *Dir) release() error {
	d.inUse.Lock()
	defer d.inUse.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	err := d.mutex.release(d.machine)
	for _, f := range []*os.File{d.profiles, d.artifacts, d.doors, d.generation, d.generations, d.lock, d.root} {
		if f != nil {
			_ = f.Close() // only read from, or synced before: nothing is lost with it
		}
	}
	return err
}

func newGeneration() string { return capability.NewID(capability.KindGeneration) }

func (d *Dir) note(s string) { d.notes = append(d.notes, s) }
