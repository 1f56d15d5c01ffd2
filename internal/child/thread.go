package child

import (
	"runtime"
	"sync"
)

// forkThread is the one locked thread that forks. It lives while any child
// does: a parent-death signal is sent when the forking thread ends, not when
// the process does.
type forkThread struct {
	jobs chan func()
	done chan struct{}
}

// forking holds the thread of the moment and how many use it. It belongs to
// the process, as threads do.
var forking struct {
	sync.Mutex
	thread *forkThread
	users  int
}

// acquireThread returns the thread, starting it for the first user. Each call
// needs one release.
func acquireThread() *forkThread {
	forking.Lock()
	defer forking.Unlock()
	if forking.users == 0 {
		t := &forkThread{jobs: make(chan func()), done: make(chan struct{})}
		go t.run()
		forking.thread = t
	}
	forking.users++
	return forking.thread
}

// release ends the thread with its last user, and waits for it then.
func (t *forkThread) release() {
	forking.Lock()
	forking.users--
	last := forking.users == 0
	forking.Unlock()
	if last {
		close(t.jobs)
		<-t.done
	}
}

func (t *forkThread) run() {
	defer close(t.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for job := range t.jobs {
		job()
	}
}

// do runs job on the thread.
func (t *forkThread) do(job func()) {
	finished := make(chan struct{})
	t.jobs <- func() { defer close(finished); job() }
	<-finished
}
