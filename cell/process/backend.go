package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

// Options configure the backend; the zero value looks for the programs where
// distributions put them.
type Options struct {
	Chromium string // path of Chromium's program, not of a launcher script
	Shell    string // path of chromium-headless-shell's program (CELL-13)
	// Engine, when not empty, is the only one that cells will ask for: Check
	// leaves out the other, which saves each start a part of its time.
	Engine reins.Engine
	// Directory is where profiles will lie; Check looks at its file system.
	// Empty: that of temporary files.
	Directory string
}

// Backend starts cells as namespaces of this host. It holds nothing that would
// need closing.
type Backend struct {
	options Options
	mu      sync.Mutex
	// versions remembers what each program said, for the user agent.
	versions map[identity]version
}

var _ cell.Backend = (*Backend)(nil)

// New returns a backend; it does nothing yet.
func New(o Options) *Backend {
	return &Backend{options: o, versions: map[identity]version{}}
}

// Name is "process".
func (b *Backend) Name() reins.Backend { return reins.BackendProcess }

// Start implements [cell.Backend] (CELL-1 to CELL-9). The context bounds the
// start, not the cell.
func (b *Backend) Start(ctx context.Context, s cell.Spec) (cell.Cell, error) {
	c, err := b.start(ctx, s)
	if err != nil {
		return nil, err.In(reins.PhaseStart)
	}
	return c, nil
}

func (b *Backend) start(ctx context.Context, s cell.Spec) (*box, *reins.Error) {
	if err := notRoot(); err != nil {
		return nil, err
	}
	s, err := prepared(s)
	if err != nil {
		return nil, err
	}
	p, err := b.options.find(s.Engine)
	if err != nil {
		return nil, err
	}
	v, err := b.version(ctx, p)
	if err != nil {
		return nil, err
	}
	pl, err := planFor(s, p, v)
	if err != nil {
		return nil, err
	}
	c := newBox(s, v)
	if err := c.launch(ctx, pl); err != nil {
		c.abort()
		return nil, reins.AsError(err)
	}
	return c, nil
}

func notRoot() *reins.Error {
	if os.Geteuid() == 0 || os.Getuid() == 0 {
		return reins.Errorf(reins.CodeUnsafeHost, "a browser is never started as root (OVW-2); run this program as an ordinary user")
	}
	return nil
}

// prepared checks s and fills what has a default.
func prepared(s cell.Spec) (cell.Spec, *reins.Error) {
	if s.Desktop {
		return s, reins.Errorf(reins.CodeInvalidInput, "the process backend has no desktop in this version; ask for a browser without one")
	}
	if s.Engine == "" {
		s.Engine = reins.EngineFull
	}
	checked, err := reins.BrowserSpec{Engine: s.Engine, Locale: s.Locale, TimeZone: s.TimeZone}.WithDefaults()
	if err != nil {
		return s, reins.AsError(err)
	}
	s.Locale, s.TimeZone = checked.Locale, checked.TimeZone
	if s.Width <= 0 || s.Height <= 0 {
		s.Width, s.Height = 1280, 800
	}
	limits, err := s.Limits.WithDefaults()
	if err != nil {
		return s, reins.AsError(err)
	}
	s.Limits = limits
	for _, d := range []struct {
		name string
		path *string
		need bool
	}{{"profile", &s.Profile, true}, {"downloads", &s.Downloads, true}, {"uploads", &s.Uploads, false}} {
		if *d.path == "" && !d.need {
			continue
		}
		real, err := filepath.EvalSymlinks(*d.path)
		if err == nil && !filepath.IsAbs(real) {
			err = errors.New("not an absolute path")
		}
		if err != nil {
			return s, reins.Errorf(reins.CodeInvalidInput, "the cell's %s directory %q cannot be used (%w); give an existing absolute path", d.name, *d.path, err)
		}
		*d.path = real
	}
	return s, nil
}

func planFor(s cell.Spec, p program, v version) (plan, *reins.Error) {
	pl := plan{
		Browser: p.inside, BrowserDir: p.dir,
		Args: arguments(s, v), Env: environment(s), TimeZone: s.TimeZone,
		Profile: s.Profile, Downloads: s.Downloads, Uploads: s.Uploads,
		Data: s.Limits.ProcessMemory, Tasks: s.Limits.CellTasks,
		SharedMemory: s.Limits.SharedMemory, TempSpace: s.Limits.TempSpace,
	}
	raw, err := policies(s)
	if err != nil {
		return plan{}, reins.AsError(err)
	}
	if s.Engine == reins.EngineFull {
		pl.Policies = raw
	}
	return pl, nil
}

// launch starts init and waits until it has executed the browser. On failure
// the caller aborts.
func (c *box) launch(ctx context.Context, p plan) error {
	inside, err := c.makePipes()
	defer func() {
		for _, f := range inside {
			f.Close()
		}
	}()
	if err != nil {
		return reins.Errorf(reins.CodeStartupFailed, "the cell's descriptors cannot be made: %w", err)
	}
	control, theirs, err := controlPair()
	if err != nil {
		return reins.Errorf(reins.CodeStartupFailed, "the cell's control socket cannot be made: %w", err)
	}
	defer control.Close()
	inside[fileControl] = theirs
	message, err := json.Marshal(p)
	if err != nil {
		return reins.AsError(err)
	}
	spec := initSpec(message, inside)
	spec.Args = []string{"--user-data-dir=" + p.Profile} // who looks for users of a profile finds init (OWN-3)
	if c.group != nil {
		c.group.admit(&spec)
	}
	if c.init, err = child.Start(ctx, spec); err != nil {
		return err
	}
	theirs.Close()
	delete(inside, fileControl)
	return c.attend(ctx, control)
}

// initSpec is how every init is started: all six namespaces, this user mapped
// to itself, and three capabilities in there. Ambient, since the map is not to
// root and an ordinary exec would drop them.
func initSpec(message []byte, files map[string]*os.File) child.Spec {
	spec := child.Spec{Role: InitRole, Message: message, Files: files}
	spec.Isolate()
	spec.Attr.Cloneflags |= unix.CLONE_NEWNS
	spec.Attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	return spec
}

// attend reads init's reports: the listener, then the browser's start.
func (c *box) attend(ctx context.Context, control *net.UnixConn) error {
	stop := context.AfterFunc(ctx, func() { control.SetReadDeadline(aLongTimeAgo) })
	defer stop()
	r, fds, err := receive(control)
	if err == nil && r.Error == "" && (!r.Listening || len(fds) != 1) {
		err = fmt.Errorf("the first report carries %d descriptors and no listener", len(fds))
	}
	if err != nil || r.Error != "" {
		closeAll(fds)
		return c.refusal(ctx, r, err)
	}
	c.online = r.Online
	if c.doors.Egress, err = admit(fds[0]); err != nil {
		return c.refusal(ctx, r, err)
	}
	r, fds, err = receive(control)
	if err == nil && r.Error == "" && (r.Browser <= 1 || len(fds) != 0) {
		err = fmt.Errorf("the second report names process %d and carries %d descriptors", r.Browser, len(fds))
	}
	if err != nil || r.Error != "" {
		closeAll(fds)
		return c.refusal(ctx, r, err)
	}
	c.browser = r.Browser
	return c.begin()
}

// refusal words why the cell did not come up. What the host cannot hold is
// unsafe_host; anything else is startup_failed.
func (c *box) refusal(ctx context.Context, r report, err error) error {
	if ended := reins.ContextError(ctx); ended != nil {
		return ended
	}
	switch {
	case r.Error != "" && r.Host:
		return reins.Errorf(reins.CodeUnsafeHost, "the cell cannot be sealed on this host (%s); run reins doctor for what to change", r.Error)
	case r.Error != "":
		return reins.Errorf(reins.CodeStartupFailed, "the browser did not start: %s", r.Error)
	}
	c.init.Kill()
	<-c.init.Done()
	return reins.Errorf(reins.CodeStartupFailed, "the cell's init ended before the browser started (%s); its last lines: %q", c.init.Exit(), lastLines(c.init.Stderr())).Because(err)
}

// makePipes makes the DevTools pipe: the parent's ends, which it keeps, are
// non-blocking; the browser's are not, since it does not expect that.
func (c *box) makePipes() (map[string]*os.File, error) {
	inside := map[string]*os.File{}
	for _, p := range []struct {
		name string
		ours **os.File
		end  int // index of the parent's end
	}{{fileIn, &c.doors.ToBrowser, 1}, {fileOut, &c.doors.FromBrowser, 0}} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return inside, err
		}
		inside[p.name] = os.NewFile(uintptr(fds[1-p.end]), p.name)
		if err := unix.SetNonblock(fds[p.end], true); err != nil {
			unix.Close(fds[p.end])
			return inside, err
		}
		*p.ours = os.NewFile(uintptr(fds[p.end]), p.name)
	}
	return inside, nil
}

// controlPair makes the control socket; the second end is init's.
func controlPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), fileControl), os.NewFile(uintptr(fds[1]), fileControl)
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}
