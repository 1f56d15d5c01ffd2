package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

func TestMain(m *testing.M) {
	Main()
	if dir := os.Getenv(crashVariable); dir != "" {
		fmt.Fprintln(os.Stderr, embed(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// behaviour is what a fake does when it is asked to do something.
type behaviour string

const (
	fine       behaviour = "fine"
	failBefore behaviour = "fail before"    // without having taken effect
	failAfter  behaviour = "fail after"     // having taken effect
	hang       behaviour = "hang"           // until its context ends
	late       behaviour = "late"           // answers a while after its context ended
	stubborn   behaviour = "stubborn"       // only its death ends it
	panics     behaviour = "panics"         //
	dies       behaviour = "dies"           // takes its process along
	slow       behaviour = "slow"           // a second
	undying    behaviour = "does not end"   // the first try to end it fails
	unanswered behaviour = "answers nobody" // pages of this browser answer no probe
)

// world makes fakes and remembers what they saw. It stands in for cell,
// driver, egress door and directory.
type world struct {
	host *Host
	dir  string

	mu       sync.Mutex
	next     map[string]behaviour // what the next of a kind does: "cell", "link", "do", "close", "door", "room"
	cells    []*fakeCell
	links    []*fakeLink
	rooms    int // open
	acted    []string
	wrong    []string // violations seen on the way
	running  map[lane]int
	perTab   bool // lanes are tabs
	records  []reins.Record
	lost     chan struct{}
	closeErr error
	closing  chan struct{} // when set: closed by a forced close_tab, which ends what is stubborn
}

func (w *world) take(kind string) behaviour {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.next[kind]
	delete(w.next, kind)
	if b == "" {
		return fine
	}
	return b
}

func (w *world) set(kind string, b behaviour) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next[kind] = b
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// tb is the part of testing.TB that the kit needs, rapid's T has it too.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func allow(context.Context, reins.Binding) error { return nil }

// newWorld starts a host over fakes.
func newWorld(t tb, dir string, hooks reins.Hooks, limits reins.Limits) *world {
	t.Helper()
	w := &world{dir: dir, next: map[string]behaviour{}, running: map[lane]int{}}
	if hooks.Authorize == nil {
		hooks.Authorize = allow
	}
	if hooks.Audit == nil {
		hooks.Audit = func(r reins.Record) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.records = append(w.records, r)
		}
	}
	h, err := New(Options{Dir: dir, Hooks: hooks, Limits: limits, Backends: []cell.Backend{w}, RuntimeID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w.host = h
	h.parts = parts{
		ready: func() error { return nil },
		open:  w.open,
		drive: w.drive,
		door:  func(egress.Options) (door, error) { return &fakeDoor{closed: make(chan struct{})}, nil },
	}
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return w
}

// fakeGround

type fakeGround struct {
	w         *world
	artifacts *os.File
	lost      chan struct{}
}

func (w *world) open(context.Context, string) (ground, error) {
	dir, err := os.MkdirTemp(w.dir, "artifacts")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = make(chan struct{})
	return &fakeGround{w, f, w.lost}, nil
}

func (g *fakeGround) Generation() string  { return "gen_test" }
func (g *fakeGround) Artifacts() *os.File { return g.artifacts }
func (g *fakeGround) Lost() <-chan struct{} {
	return g.lost
}
func (g *fakeGround) Err() error { return reins.Errorf(reins.CodeFenced, "the directory is gone") }
func (g *fakeGround) RemoveWorkspace(context.Context, string, string) error {
	return nil
}

func (g *fakeGround) Close(context.Context) error {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if g.w.closeErr != nil {
		return g.w.closeErr
	}
	return g.artifacts.Close()
}

func (g *fakeGround) Room(context.Context, string, string) (room, error) {
	if g.w.take("room") == failBefore {
		return nil, reins.Errorf(reins.CodeBusy, "somebody has the workspace")
	}
	base, err := os.MkdirTemp(g.w.dir, "room")
	if err != nil {
		return nil, err
	}
	r := &fakeRoom{w: g.w, base: base}
	for name, f := range map[string]**os.File{"downloads": &r.downloads, "uploads": &r.uploads} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			return nil, err
		}
		if *f, err = os.Open(filepath.Join(base, name)); err != nil {
			return nil, err
		}
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.w.rooms++
	return r, nil
}

type fakeRoom struct {
	w                  *world
	base               string
	downloads, uploads *os.File
	closed             bool
}

func (r *fakeRoom) Profile() string     { return filepath.Join(r.base, "profile") }
func (r *fakeRoom) Downloads() *os.File { return r.downloads }
func (r *fakeRoom) Uploads() *os.File   { return r.uploads }
func (r *fakeRoom) Close(context.Context) error {
	if r.closed {
		return nil
	}
	if r.w.take("room close") == failBefore {
		return reins.Errorf(reins.CodeInternal, "the disk is tired")
	}
	r.closed = true
	r.downloads.Close()
	r.uploads.Close()
	r.w.mu.Lock()
	r.w.rooms--
	r.w.mu.Unlock()
	return os.RemoveAll(r.base)
}

type fakeDoor struct {
	once   sync.Once
	closed chan struct{}
}

func (d *fakeDoor) Serve(net.Listener) error { <-d.closed; return nil }
func (d *fakeDoor) Close()                   { d.once.Do(func() { close(d.closed) }) }

// fakeCell

type fakeCell struct {
	w    *world
	key  reins.ResourceKey
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
	c := &fakeCell{w: w, key: s.Key, done: make(chan struct{}), how: how}
	w.mu.Lock()
	w.cells = append(w.cells, c)
	w.mu.Unlock()
	if how == dies {
		c.end(reins.Errorf(reins.CodeBrowserEnded, "the browser exited with status 21"))
	}
	return c, nil
}

func (c *fakeCell) Doors() cell.Doors        { return cell.Doors{} }
func (c *fakeCell) Facts() map[string]string { return map[string]string{"sandbox": "on"} }
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
	mu   sync.Mutex
	done chan struct{}
	err  error
}

func (w *world) drive(ctx context.Context, o driver.Options) (link, error) {
	w.mu.Lock()
	c := w.cells[len(w.cells)-1]
	w.mu.Unlock()
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

func (l *fakeLink) Done() <-chan struct{}     { return l.done }
func (l *fakeLink) Handover() driver.Handover { return driver.Handover{Browser: "b"} }
func (l *fakeLink) Kill()                     { l.end(nil) }
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
	reply := &driver.Reply{Result: reins.Result{Tab: &reins.Tab{ID: tab}, Selected: "t1"}}
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
	l.w.watch(ctx, l.cell.key, c, 1)
	defer l.w.watch(ctx, l.cell.key, c, -1)
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
		w.violate("%v began after its lease had ended", c.Action)
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

// lane is where operations must not overlap: a resource, or a tab of one.
type lane struct {
	key reins.ResourceKey
	tab reins.TabID
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
			return true
		}
	}
	return ctx.Err() != nil
}

// shortcuts

var session = &reins.Session{Harness: "opencode", Native: "456"}

func attached(revision uint64) reins.Attachment {
	return reins.Attachment{AuthorityID: "boss", Revision: revision, Session: session}
}

func agentOf(key reins.ResourceKey, revision uint64) reins.Binding {
	return reins.Binding{
		Project: key.Project, Resource: key.ID, AuthorityID: "boss", Revision: revision, Session: session,
		Actor: "agent", Role: reins.RoleAgent, Peer: "pid 7", Source: reins.SourceMCP,
	}
}

func personOf(key reins.ResourceKey) reins.Binding {
	return reins.Binding{
		Project: key.Project, Resource: key.ID, Actor: "ada", Role: reins.RoleHuman,
		Peer: "10.1.1.1", Source: reins.SourceViewer,
	}
}

var key1 = reins.ResourceKey{Project: "p", ID: "one"}

// register makes key1 known, with a session at revision 1.
func (w *world) register(t tb, spec reins.BrowserSpec) *resource {
	t.Helper()
	if _, err := w.host.Register(context.Background(), reins.Registration{Key: key1, Attachment: attached(1), Spec: spec}); err != nil {
		t.Fatal(err)
	}
	r, err := w.host.Open(context.Background(), key1)
	if err != nil {
		t.Fatal(err)
	}
	return r.(*resource)
}

// lease issues and acquires.
func (w *world) lease(t tb, b reins.Binding) *lease {
	t.Helper()
	c, err := w.host.Issue(context.Background(), b, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.host.Acquire(context.Background(), c.Token, b)
	if err != nil {
		t.Fatal(err)
	}
	return l.(*lease)
}

func (w *world) stop(t tb) {
	t.Helper()
	if err := w.host.Stop(context.Background()); err != nil {
		t.Fatalf("stop: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) > 0 {
		t.Fatalf("violations: %v", w.wrong)
	}
	if w.rooms != 0 {
		t.Fatalf("%d rooms are left", w.rooms)
	}
	for _, c := range w.cells {
		if c.alive() {
			t.Fatal("a cell is left")
		}
	}
}

func code(t tb, err error, want reins.Code) *reins.Error {
	t.Helper()
	if reins.CodeOf(err) != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	return reins.AsError(err)
}

// anyCell is the newest cell, or a dead one.
func (w *world) anyCell() *fakeCell {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cells) == 0 {
		return &fakeCell{done: make(chan struct{})}
	}
	return w.cells[len(w.cells)-1]
}

// anyLink is the newest driver, or a dead one.
func (w *world) anyLink() *fakeLink {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.links) == 0 {
		return &fakeLink{done: make(chan struct{})}
	}
	return w.links[len(w.links)-1]
}
