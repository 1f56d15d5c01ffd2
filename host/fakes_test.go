package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/driver"
)

// fakeCell

type fakeCell struct {
	w    *world
	spec cell.Spec
	pipe *os.File // only to know it by
	mu   sync.Mutex
	done chan struct{}
	err  error
	how  behaviour
}

func (w *world) Name() reins.Backend                  { return reins.BackendProcess }
func (w *world) Check(context.Context) []cell.Finding { return nil }

func (w *world) Start(ctx context.Context, s cell.Spec) (cell.Cell, error) {
	how := w.take("cell")
	switch how {
	case failBefore:
		return nil, reins.Errorf(reins.CodeStartupFailed, "no browser today")
	case hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case panics:
		panic("backend")
	case slow:
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c := &fakeCell{w: w, spec: s, pipe: new(os.File), done: make(chan struct{}), how: how}
	w.mu.Lock()
	w.cells = append(w.cells, c)
	w.mu.Unlock()
	if how == dies {
		c.end(reins.Errorf(reins.CodeBrowserEnded, "the browser exited with status 21"))
	}
	return c, nil
}

func (c *fakeCell) Doors() cell.Doors        { return cell.Doors{ToBrowser: c.pipe} }
func (c *fakeCell) Facts() map[string]string { return map[string]string{"sandbox": "on"} }
func (c *fakeCell) Processes() ([]reins.CellProcess, error) {
	if c.w.take("processes") == failBefore {
		return nil, os.ErrPermission
	}
	out := make([]reins.CellProcess, 1000)
	for i := range out {
		out[i] = reins.CellProcess{PID: i + 1, Name: "renderer", Memory: 1 << 20}
	}
	return out, nil
}
func (c *fakeCell) Verify(context.Context) error {
	if c.how == failAfter {
		c.end(nil)
		return reins.Errorf(reins.CodeUnsafeHost, "a renderer is not confined")
	}
	return nil
}

func (c *fakeCell) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
	default:
		c.err = err
		close(c.done)
	}
}

func (c *fakeCell) Close(ctx context.Context) error { return c.Kill(ctx) }
func (c *fakeCell) Kill(context.Context) error {
	if c.w.take("close") == undying {
		return reins.Errorf(reins.CodeTimeout, "init does not end")
	}
	c.end(nil)
	return nil
}
func (c *fakeCell) Done() <-chan struct{} { return c.done }
func (c *fakeCell) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *fakeCell) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// fakeLink

type fakeLink struct {
	w    *world
	cell *fakeCell
	opts driver.Options

	mu    sync.Mutex
	done  chan struct{}
	err   error
	above driver.Numbers // as a command told

	camera camera
}

func (w *world) drive(ctx context.Context, o driver.Options) (link, error) {
	c := w.behind(o.ToBrowser)
	switch w.take("link") {
	case failBefore:
		return nil, reins.Errorf(reins.CodeTransportFailure, "the driver did not come up")
	case hang:
		<-ctx.Done()
		return nil, reins.AsError(context.Cause(ctx))
	}
	if !c.alive() {
		return nil, reins.Errorf(reins.CodeConnectionClosed, "the pipe is closed")
	}
	l := &fakeLink{w: w, cell: c, opts: o, done: make(chan struct{})}
	w.mu.Lock()
	w.links = append(w.links, l)
	w.mu.Unlock()
	return l, nil
}

// behind is the cell that a pipe leads to.
func (w *world) behind(pipe *os.File) *fakeCell {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.cells {
		if c.pipe == pipe {
			return c
		}
	}
	return nil
}

func (l *fakeLink) Done() <-chan struct{} { return l.done }
func (l *fakeLink) Kill()                 { l.end(nil) }

// Handover names what the real one would: a tab and a document above those of
// before.
func (l *fakeLink) Handover() driver.Handover {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.opts.Previous.Numbers.Max(l.above)
	return driver.Handover{Browser: "b", Numbers: driver.Numbers{Tab: n.Tab + 1, Document: n.Document + 1}}
}

func (l *fakeLink) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *fakeLink) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
	default:
		l.err = err
		close(l.done)
	}
}

// Do acts as told. What it must see is checked here: the lease lives or the
// context has ended (LSE-6), and in serial order nothing else acts (OPS-1).
func (l *fakeLink) Do(ctx context.Context, c driver.Command) (*driver.Reply, error) {
	tab, _ := c.Action.Target()
	if tab == "" {
		tab = "t1"
	}
	if c.Above != (driver.Numbers{}) {
		l.mu.Lock()
		l.above = c.Above
		l.mu.Unlock()
	}
	reply := &driver.Reply{Result: reins.Result{Tab: &reins.Tab{ID: tab}, Selected: "t1"}}
	if up, ok := c.Action.(reins.Pointer); ok && c.Lease == "" {
		l.w.letGo(l.cell, up)
	}
	if c.Lease == "" || c.Action.Verb() == reins.VerbListTabs { // a probe of the ladder, or a list
		if l.w.take("probe") == unanswered {
			<-ctx.Done()
			return nil, reins.AsError(ctx.Err())
		}
		reply.Result.Tabs = []reins.Tab{{ID: "t1"}}
		return reply, nil
	}
	if shut, ok := c.Action.(reins.CloseTab); ok && shut.Force {
		if l.w.closing != nil {
			close(l.w.closing)
		}
		return reply, nil
	}
	key := l.w.keyOf(c.Lease)
	l.w.watch(ctx, key, c, 1)
	defer l.w.watch(ctx, key, c, -1)
	lost := reins.Errorf(reins.CodeCompletionUnknown, "the driver was lost while it acted")
	switch l.w.take("do") {
	case failBefore:
		return nil, reins.Errorf(reins.CodeNotActionable, "it is covered")
	case slow:
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, reins.AsError(ctx.Err())
		case <-l.done:
			return nil, lost
		}
	case hang:
		select {
		case <-ctx.Done():
			return nil, reins.AsError(ctx.Err())
		case <-l.done:
			return nil, lost
		}
	case late:
		select {
		case <-ctx.Done():
			select {
			case <-time.After(time.Second):
				return reply, nil
			case <-l.done:
				return nil, lost
			}
		case <-l.done:
			return nil, lost
		}
	case stubborn:
		select {
		case <-l.done:
			return nil, lost
		case <-l.w.closing:
			return nil, reins.Errorf(reins.CodeInvalidState, "the tab was closed")
		}
	case dies:
		l.end(reins.Errorf(reins.CodeTransportFailure, "the driver ran out of memory"))
		return nil, lost
	case failAfter:
		l.cell.end(reins.Errorf(reins.CodeBrowserEnded, "the browser crashed"))
		l.end(nil)
		return nil, reins.Errorf(reins.CodeConnectionClosed, "the pipe is closed")
	}
	if c.Action.Verb() == reins.VerbSnapshot {
		reply.Result.Snapshot = &reins.SnapshotResult{Text: "- button \"Go\" [ref=f1e1]"}
	}
	return reply, nil
}

// watch notes that a command begins or ends and looks at what holds then.
func (w *world) watch(ctx context.Context, key reins.ResourceKey, c driver.Command, n int) {
	if n > 0 && ctx.Err() == nil && !w.mayAct(key, c.Lease, ctx) {
		w.violate("%v began after its lease had ended, or under a person's control", c.Action)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := lane{key: key}
	if w.perTab {
		at.tab, _ = c.Action.Target()
	}
	if w.running[at] += n; n < 0 {
		return
	}
	if w.running[at] > 1 {
		w.wrong = append(w.wrong, fmt.Sprintf("%v began beside another operation", c.Action))
	}
	if nav, ok := c.Action.(reins.Navigate); ok {
		w.acted = append(w.acted, nav.URL)
	}
}

// letGo notes a release that the runtime makes: of nothing that somebody holds
// (INP-2).
func (w *world) letGo(c *fakeCell, up reins.Pointer) {
	w.host.mu.Lock()
	g := w.host.gen
	w.host.mu.Unlock()
	for _, r := range g.all() {
		r.mu.Lock()
		if inc := r.st.inc; inc != nil && inc.cell == c && heldLocked(&r.st, cmp.Or(up.Button, "left")) {
			defer w.violate("%v lets go of what somebody holds", up)
		}
		r.mu.Unlock()
	}
}

// lane is where operations must not overlap: a resource, or a tab of one.
type lane struct {
	key reins.ResourceKey
	tab reins.TabID
}

// keyOf is the resource that a lease's command under way is for.
func (w *world) keyOf(leaseID string) (key reins.ResourceKey) {
	w.host.mu.Lock()
	g := w.host.gen
	w.host.mu.Unlock()
	for _, r := range g.all() {
		r.mu.Lock()
		for op := range r.st.ops {
			if op.lease.id == leaseID {
				key = r.key
			}
		}
		r.mu.Unlock()
	}
	return key
}

// mayAct reads, under the lock that ends authority, whether a lease lives or
// its operation was told to stop.
func (w *world) mayAct(key reins.ResourceKey, leaseID string, ctx context.Context) bool {
	g, err := w.host.current()
	if err != nil {
		return ctx.Err() != nil
	}
	g.mu.Lock()
	r := g.resources[key]
	g.mu.Unlock()
	if r == nil {
		return ctx.Err() != nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, gr := range r.st.grants {
		if gr.lease != nil && gr.lease.id == leaseID {
			return gr.binding.Role != reins.RoleAgent || r.st.control.Snapshot("").State != reins.ControlHuman || ctx.Err() != nil // CTL-3
		}
	}
	return ctx.Err() != nil
}
