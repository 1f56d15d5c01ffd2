package host

import (
	"cmp"
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

	mu        sync.Mutex
	next      map[string]behaviour // what the next of a kind does: "cell", "link", "do", "close", "door", "room"
	each      map[string]behaviour // what all others of a kind do
	asked     map[string]int       // how often
	cells     []*fakeCell
	links     []*fakeLink
	doors     []*fakeDoor
	rooms     int // open
	acted     []string
	wrong     []string // violations seen on the way
	running   map[lane]int
	perTab    bool // lanes are tabs
	records   []reins.Record
	lost      chan struct{}
	closeErr  error
	slowClose time.Duration
	removed   []string      // workspaces
	closing   chan struct{} // when set: closed by a forced close_tab, which ends what is stubborn
}

func (w *world) take(kind string) behaviour {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[kind]++
	b := w.next[kind]
	delete(w.next, kind)
	return cmp.Or(b, w.each[kind], fine)
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
	return newWorldOf(t, Options{Dir: dir, Hooks: hooks, Limits: limits})
}

// newWorldOf does so with whatever o says besides.
func newWorldOf(t tb, o Options) *world {
	t.Helper()
	w := &world{dir: o.Dir, next: map[string]behaviour{}, asked: map[string]int{}, running: map[lane]int{}}
	if o.Hooks.Authorize == nil {
		o.Hooks.Authorize = allow
	}
	if o.Hooks.Audit == nil {
		o.Hooks.Audit = func(r reins.Record) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.records = append(w.records, r)
		}
	}
	o.Backends, o.RuntimeID = []cell.Backend{w}, "test"
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.host = h
	h.parts = parts{
		ready: func() error { return nil },
		open:  w.open,
		drive: w.drive,
		door: func(o egress.Options) (door, error) {
			d := &fakeDoor{w: w, refuse: o.Refuse, closed: make(chan struct{})}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.doors = append(w.doors, d)
			return d, nil
		},
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
func (g *fakeGround) RemoveWorkspace(_ context.Context, project, name string) error {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.w.removed = append(g.w.removed, project+"/"+name)
	return nil
}

func (g *fakeGround) Close(context.Context) error {
	g.w.mu.Lock()
	wait := g.w.slowClose
	g.w.slowClose = 0
	g.w.mu.Unlock()
	time.Sleep(wait)
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
	w      *world
	once   sync.Once
	closed chan struct{}

	mu     sync.Mutex
	refuse bool
	policy reins.EgressPolicy
}

func (d *fakeDoor) Adopt(policy reins.EgressPolicy, _ func(egress.Decision)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.refuse {
		d.w.violate("a door got a second owner")
	}
	d.refuse, d.policy = false, policy
	return nil
}

func (d *fakeDoor) Connections() []reins.CellConnection {
	return []reins.CellConnection{{Host: "example.com", Port: 443, Since: time.Now(), Up: 7, Down: 9}}
}

func (d *fakeDoor) Serve(net.Listener) error { <-d.closed; return nil }
func (d *fakeDoor) Close()                   { d.once.Do(func() { close(d.closed) }) }

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
	for _, d := range w.doors {
		select {
		case <-d.closed:
		default:
			t.Fatal("a door is open")
		}
	}
	for _, l := range w.links {
		select {
		case <-l.done:
		default:
			t.Fatal("a driver is left")
		}
	}
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
