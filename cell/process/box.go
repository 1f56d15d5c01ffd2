package process

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

// aLongTimeAgo as a deadline ends a blocked read at once.
var aLongTimeAgo = time.Unix(1, 0)

// box is one cell. What is above mu is set before Start returns it.
type box struct {
	spec    cell.Spec
	version version
	doors   cell.Doors
	online  bool
	browser int // process ID inside
	init    *child.Process
	group   *group  // nil when the watcher bounds memory
	inside  *inside // views into the cell

	done  chan struct{}
	ended context.Context // of the watcher
	end   context.CancelFunc
	watch sync.WaitGroup

	mu      sync.Mutex
	wanted  bool         // Close or Kill was called first
	cause   *reins.Error // why this side ended it
	zygotes []int        // their directories in the cell's /proc; watched
}

var _ cell.Cell = (*box)(nil)

func newBox(s cell.Spec, v version) *box {
	c := &box{spec: s, version: v, done: make(chan struct{}), group: newGroup(s.Limits)}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// begin starts what goes on while the cell lives; both goroutines end with it.
func (c *box) begin() error {
	var err error
	if c.inside, err = lookInside(c.init.PID()); err != nil {
		return reins.Errorf(reins.CodeUnsafeHost, "this host does not show the cell's processes to their owner (%w); mount /proc without hidepid", err)
	}
	c.watch.Go(func() { c.watchOver(c.ended) })
	go func() {
		<-c.init.Done()
		c.end()
		c.watch.Wait()
		c.release()
		close(c.done)
	}()
	return nil
}

// abort undoes a start that failed.
func (c *box) abort() {
	if c.init != nil {
		c.init.Kill()
		<-c.init.Done()
	}
	c.end()
	c.release()
}

// release closes what is outside the cell, once no process of it is left.
func (c *box) release() {
	if c.doors.ToBrowser != nil {
		c.doors.ToBrowser.Close()
	}
	if c.doors.FromBrowser != nil {
		c.doors.FromBrowser.Close()
	}
	if c.doors.Egress != nil {
		c.doors.Egress.Close()
	}
	if c.inside != nil {
		c.inside.close()
	}
	c.mu.Lock()
	closeAll(c.zygotes)
	c.zygotes = nil
	c.mu.Unlock()
	if c.group != nil {
		c.group.remove()
	}
}

// Doors implements [cell.Cell] (CELL-1).
func (c *box) Doors() cell.Doors { return c.doors }

// Done implements [cell.Cell].
func (c *box) Done() <-chan struct{} { return c.done }

// Facts implements [cell.Cell] (RDY-1, CELL-7).
func (c *box) Facts() map[string]string {
	l := c.spec.Limits
	facts := map[string]string{
		"engine":     fmt.Sprintf("%s %s", c.spec.Engine, c.version.text),
		"egress":     "sealed",
		"sandbox":    c.sandbox(),
		"view":       "frames",
		"downloads":  fmt.Sprintf("one folder; with the profile at most %d bytes, watched", l.CellDisk),
		"navigation": "managed policies in a read-only root",
		"network":    "online",
	}
	if c.spec.Engine == reins.EngineShell {
		facts["navigation"] = "interception with the egress rules behind it; this engine reads no managed policies"
	}
	if !c.online {
		facts["network"] = "pages see navigator.onLine false: this kernel has no veth"
	}
	whole := fmt.Sprintf("whole cell %d bytes, watched: the largest renderer is killed above it; CPU not bounded", l.CellMemory)
	if c.group != nil {
		whole = fmt.Sprintf("whole cell %d bytes and its tasks bounded by cgroup; CPU not bounded", l.CellMemory)
	}
	facts["limits"] = fmt.Sprintf("data %d bytes and %d open files a process, %d tasks, no core files, shared memory %d, temporary files %d bytes; %s",
		l.ProcessMemory, openFiles, l.CellTasks, l.SharedMemory, l.TempSpace, whole)
	return facts
}

// sandbox says which processes have which filters (CELL-4).
func (c *box) sandbox() string {
	celled := "Chromium's own, in namespaces without a route and under the cell's filter"
	switch {
	case c.spec.Engine == reins.EngineShell && c.spec.WebGL:
		return celled + "; network service and GPU process have no filter of their own in this engine with WebGL"
	case c.spec.Engine == reins.EngineShell:
		return celled + "; the network service has no filter of its own in this engine"
	case c.spec.WebGL:
		return celled + "; the GPU process has no filter of its own with WebGL"
	}
	return celled
}

// Close implements [cell.Cell] (CELL-6). A driver that holds copies of the
// DevTools pipe must have ended before.
func (c *box) Close(ctx context.Context) error {
	c.want()
	c.doors.ToBrowser.Close()
	grace := time.NewTimer(c.spec.Limits.CloseGrace)
	defer grace.Stop()
	select {
	case <-c.done:
		return nil
	case <-grace.C:
	case <-ctx.Done():
	}
	return c.Kill(ctx)
}

// Kill implements [cell.Cell]. It waits even when ctx has ended: the kernel
// needs milliseconds.
func (c *box) Kill(context.Context) error {
	c.want()
	c.init.Kill()
	<-c.done
	return nil
}

// want notes that the end is the caller's wish, unless something else was first.
func (c *box) want() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.init.Done():
	default:
		c.wanted = c.wanted || c.cause == nil
	}
}

// condemn ends the cell for a reason of this side's.
func (c *box) condemn(cause *reins.Error) {
	c.mu.Lock()
	if c.cause == nil && !c.wanted {
		c.cause = cause
	}
	c.mu.Unlock()
	c.init.Kill()
}

// Err implements [cell.Cell].
func (c *box) Err() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.wanted:
		return nil
	case c.cause != nil:
		return c.cause
	}
	return reins.Errorf(reins.CodeBrowserEnded, "%s ended on its own (%s); restart it; its last lines: %q", c.name(), c.init.Exit(), lastLines(c.init.Stderr())).
		In(reins.PhaseLifeCycle)
}

// name says whose browser it is, in an error. One that was started for nobody
// yet may be anybody's by then (CELL-11).
func (c *box) name() string {
	if c.spec.Key == (reins.ResourceKey{}) {
		return "the browser"
	}
	return "the browser of " + c.spec.Key.String()
}

// lastLines is the end of a browser's error output, bounded for a sentence.
// Pages can write there.
func lastLines(s string) string {
	const most = 1024
	var kept strings.Builder
	for line := range strings.Lines(s) {
		if !strings.Contains(line, ":ERROR:dbus/") { // there is no bus, and it says so often
			kept.WriteString(line)
		}
	}
	s = strings.TrimSpace(kept.String())
	if len(s) > most {
		s = s[len(s)-most:]
		if _, rest, ok := strings.Cut(s, "\n"); ok {
			s = rest
		}
	}
	return strings.ToValidUTF8(s, "")
}

// kill ends process pid of the cell if it is still the same as when described.
func (c *box) kill(p task) {
	dir, err := c.inside.open(p.pid)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	now, err := readTask(dir, p.pid)
	if err != nil || now.kind != p.kind || now.parent != p.parent {
		return
	}
	// A directory of /proc is a process descriptor; the number cannot have been
	// given to another process since.
	_ = unix.PidfdSendSignal(dir, unix.SIGKILL, nil, 0)
}
