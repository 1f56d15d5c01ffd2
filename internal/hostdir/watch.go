package hostdir

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Check tells whether the directory is still ours (OWN-7): its path leads to
// it, mutex folder, anchor, record and generation are the ones that were made,
// and the record names us. Nil, or fenced saying what was lost; runtime_stopped
// once Close began. It costs some ten system calls and no waiting.
func (d *Dir) Check() error {
	done := d.use()
	if done == nil {
		return d.stopped()
	}
	defer done()
	return d.checkInUse()
}

// checkInUse is Check for who keeps the descriptors open already.
func (d *Dir) checkInUse() error {
	if d.ending.Load() {
		return d.stopped() // its generation goes on purpose now
	}
	return d.checkOwned()
}

func (d *Dir) checkOwned() error {
	var there, here unix.Stat_t
	if unix.Lstat(d.Path(), &there) != nil || unix.Fstat(int(d.root.Fd()), &here) != nil ||
		there.Dev != here.Dev || there.Ino != here.Ino || int(here.Uid) != d.id.UID {
		return fenced("the runtime directory %q was moved, removed or replaced while in use; start again once it is in order", d.Path())
	}
	if err := d.mutex.check(d.root); err != nil {
		return err
	}
	if !leadsTo(d.root, lockName, d.lock) {
		return fenced("the record %q was replaced or removed while in use; %s", d.lock.Name(), startOver)
	}
	if r, err := readRecord(d.lock); err != nil {
		return err
	} else if r.Nonce != d.record.Nonce {
		return fenced("the record %q was overwritten by process %d while in use; %s", d.lock.Name(), r.PID, startOver)
	}
	if !leadsTo(d.root, generationsName, d.generations) || !leadsTo(d.generations, d.record.Generation, d.generation) {
		return fenced("the generation %q was moved or removed while in use; start again", d.generation.Name())
	}
	return nil
}

// watcher calls Check when the kernel tells of a change, and now and then.
type watcher struct {
	lost chan struct{}
	stop chan struct{}
	poke chan struct{}
	end  sync.Once
	done sync.WaitGroup
	file *os.File // inotify; nil when the host has no more of them

	mu  sync.Mutex
	err error
}

func startWatcher(d *Dir, every time.Duration) (*watcher, error) {
	w := &watcher{lost: make(chan struct{}), stop: make(chan struct{}), poke: make(chan struct{}, 1)}
	if err := d.checkOwned(); err != nil {
		return nil, err
	}
	w.file = notices(d.root, d.mutex.dir, d.generations)
	if w.file != nil {
		w.done.Go(w.pump)
	}
	w.done.Go(func() { w.run(d, every) })
	return w, nil
}

// notices asks the kernel to tell of changes in folders. Without them, since
// their number is bounded per user, the clock alone has to do.
func notices(folders ...*os.File) *os.File {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "inotify")
	const mask = unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_ONLYDIR
	for _, folder := range folders {
		if _, err := unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), mask); err != nil {
			_ = f.Close()
			return nil
		}
	}
	return f
}

// pump turns notices into pokes until the descriptor is closed.
func (w *watcher) pump() {
	buf := make([]byte, 4096)
	for {
		if _, err := w.file.Read(buf); err != nil {
			return
		}
		select {
		case w.poke <- struct{}{}:
		default:
		}
	}
}

func (w *watcher) run(d *Dir, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-w.poke:
		case <-tick.C:
		}
		if err := d.Check(); err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			close(w.lost)
			return
		}
	}
}

func (w *watcher) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close ends the watcher and waits for it.
func (w *watcher) close() {
	w.end.Do(func() {
		close(w.stop)
		if w.file != nil {
			_ = w.file.Close()
		}
	})
	w.done.Wait()
}
