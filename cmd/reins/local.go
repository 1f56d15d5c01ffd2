package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
	"github.com/reins-browser/reins/host"
)

// localOptions describe a private runtime with one browser.
type localOptions struct {
	dir      string // empty: the first free one of the user's own
	chromium string // the program for engine; empty: where distributions put it
	engine   reins.Engine
	allow    []string
	verbs    []reins.Verb
	logger   *slog.Logger
	say      func(format string, arguments ...any) // for a person
	watched  bool                                  // people may watch, on a page of loopback
}

// backend is what can hold a browser: of the one engine, or for a check of any.
func (o localOptions) backend(dir string, one reins.Engine) *process.Backend {
	p := process.Options{Directory: dir, Engine: one}
	if o.engine == reins.EngineShell {
		p.Shell = o.chromium
	} else {
		p.Chromium = o.chromium
	}
	return process.New(p)
}

func (o localOptions) spec() reins.BrowserSpec {
	return reins.BrowserSpec{Engine: o.engine, Verbs: o.verbs, Egress: reins.EgressPolicy{AllowPrivate: o.allow}}
}

// local is a private runtime for one client, whose owner it is: it issues the
// capabilities that its client's leases are acquired with. It starts when it is
// first needed; a start that failed is tried again when it is needed again, and so
// is one whose directory was lost, once that was told.
type local struct {
	options localOptions
	ctx     context.Context // of starts; ends with close
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	starting *startup
	failed   *reins.Error // why the last try to start did not succeed
	up       *running     // not nil once a start succeeded, until it is lost
	lost     *running     // whose clean-up the next start waits for
	page     *watchPage   // of people; made with the first start, nil without
}

// startup is one try to start, shared by all who wait; done guards the rest.
type startup struct {
	done chan struct{}
	lost *running // what has to be over first
	up   *running
	err  error
}

// running is what a start made.
type running struct {
	host     *host.Host
	resource reins.Resource
	binding  reins.Binding
	done     <-chan struct{} // closed when it cannot work any more
}

// gone is why a runtime cannot work any more, or nil.
func (r *running) gone() error {
	select {
	case <-r.done:
		return r.host.Err()
	default:
		return nil
	}
}

func newLocal(o localOptions) *local {
	l := &local{options: o}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// warm starts the runtime and its browser without waiting for them.
func (l *local) warm() {
	l.work.Go(func() {
		began := time.Now()
		up, err := l.ensure(l.ctx)
		if err == nil {
			err = up.resource.Start(l.ctx)
		}
		switch {
		case l.ctx.Err() != nil:
		case err != nil:
			l.options.say("no browser: %s", reins.AsError(err).Message)
		default:
			l.options.say("Chromium is up after %d ms", time.Since(began).Milliseconds())
		}
	})
}

// ensure returns the started runtime.
func (l *local) ensure(ctx context.Context) (*running, error) {
	l.mu.Lock()
	if l.up != nil || l.closed {
		defer l.mu.Unlock()
		if l.closed {
			return nil, reins.Errorf(reins.CodeRuntimeStopped, "the runtime is stopping")
		}
		if gone := l.up.gone(); gone != nil {
			l.up, l.lost = nil, l.up
			return nil, gone
		}
		return l.up, nil
	}
	if l.starting == nil {
		l.starting = &startup{done: make(chan struct{}), lost: l.lost}
		s := l.starting
		l.work.Go(func() {
			if s.err = s.lost.end(); s.err == nil {
				s.lost = nil
				s.up, s.err = l.start()
			}
			l.mu.Lock()
			l.up, l.starting, l.failed, l.lost = s.up, nil, reins.AsError(s.err), s.lost
			l.mu.Unlock()
			close(s.done)
		})
	}
	s := l.starting
	l.mu.Unlock()
	select {
	case <-s.done:
		return s.up, s.err
	case <-ctx.Done():
		return nil, reins.ContextError(ctx)
	}
}

func (l *local) start() (*running, error) {
	h, dir, err := l.startHost()
	if reins.CodeOf(err) == reins.CodeInvalidInput {
		return nil, reins.AsError(err).Recover(reins.RecoverFixHost) // no input of the client's
	}
	if err != nil {
		return nil, err
	}
	session := reins.Session{Harness: "mcp", Native: fmt.Sprintf("stdio-%d", os.Getppid())}
	made, err := h.Register(l.ctx, reins.Registration{
		Key:        reins.ResourceKey{Project: localProject},
		Attachment: reins.Attachment{AuthorityID: "mcp", Revision: 1, Session: &session},
		Spec:       l.options.spec(),
	})
	var resource reins.Resource
	if err == nil {
		resource, err = h.Open(l.ctx, made.Key)
	}
	if err != nil {
		return nil, errors.Join(err, stopHost(h))
	}
	l.options.say("private runtime in %q", dir)
	l.work.Go(func() { l.watch(dir) }) // beside the browser's start
	return &running{host: h, resource: resource, done: h.Done(), binding: reins.Binding{
		Project: made.Key.Project, Resource: made.Key.ID, AuthorityID: "mcp", Revision: 1, Session: &session,
		Actor: "mcp client", Role: reins.RoleAgent, Peer: "stdio", Source: reins.SourceMCP,
	}}, nil
}

// localProject is the project of a private runtime's one browser.
const localProject = "mcp"

// slots bounds how many clients of one user have a runtime at the same time.
const slots = 64

// startHost starts a host in the directory named, else in the first of the
// user's own that nobody holds: a second client never meets the first one's, and
// what a killed one left is cleared by the next.
func (l *local) startHost() (*host.Host, string, error) {
	if l.options.dir != "" {
		h, err := l.tryHost(l.options.dir)
		return h, l.options.dir, err
	}
	base, err := stateDir()
	if err != nil {
		return nil, "", err
	}
	for n := range slots {
		dir := filepath.Join(base, fmt.Sprintf("mcp-%d", n))
		h, err := l.tryHost(dir)
		switch reins.CodeOf(err) {
		case "":
			return h, dir, nil
		case reins.CodeLocked:
		case reins.CodeFenced:
			l.options.say("%s is left alone: %s", dir, reins.AsError(err).Message)
		default:
			return nil, "", err
		}
	}
	return nil, "", reins.Errorf(reins.CodeQuotaExceeded, "all %d runtime directories under %s are in use; name another with --dir", slots, base)
}

func (l *local) tryHost(dir string) (*host.Host, error) {
	h, err := host.New(host.Options{
		Dir:      dir,
		Backends: []cell.Backend{l.options.backend(filepath.Dir(dir), l.options.engine)},
		Logger:   l.options.logger,
		// The client at the other end of stdin started this process: whatever
		// its user may do, it may ask for.
		Hooks: reins.Hooks{Authorize: func(context.Context, reins.Binding) error { return nil }},
	})
	if err != nil {
		return nil, err
	}
	if err := h.Start(l.ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// stateDir is where the user's programs keep state, made when it is missing.
func stateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return "", reins.Errorf(reins.CodeInvalidInput, "this user has no home directory; name a directory with --dir")
		}
		base = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(base, "reins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", reins.Errorf(reins.CodeInvalidInput, "the directory %s cannot be made; name another with --dir: %w", dir, err)
	}
	return dir, nil
}

// lease issues a capability and acquires its lease.
func (l *local) lease(ctx context.Context) (reins.Lease, error) {
	up, err := l.ensure(ctx)
	if err != nil {
		return nil, err
	}
	c, err := up.host.Issue(ctx, up.binding, 0)
	if err != nil {
		return nil, err
	}
	return up.host.Acquire(ctx, c.Token, up.binding)
}

// readiness is the resource's, also before there is one.
func (l *local) readiness() reins.Readiness {
	l.mu.Lock()
	up, starting, failed := l.up, l.starting != nil, l.failed
	l.mu.Unlock()
	if up != nil {
		if failed = reins.AsError(up.gone()); failed == nil {
			return up.resource.Readiness()
		}
	}
	is := reins.Capable{State: "unknown"}
	switch {
	case starting:
		is.State = "checking"
	case failed != nil:
		is = reins.Capable{State: "failed", Cause: failed.Message, Remedy: failed.Recovery.Sentence()}
	}
	return reins.Readiness{Overall: is.State, Capabilities: map[string]reins.Capable{reins.CapableRuntime: is}, Facts: map[string]string{}}
}

// close stops the runtime; nothing of it is left when it returns without error.
func (l *local) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	// What is under way ends soon, and may have made a host until then.
	l.mu.Lock()
	s := l.starting
	l.mu.Unlock()
	if s != nil {
		<-s.done
	}
	l.mu.Lock()
	up, lost, page := l.up, l.lost, l.page
	l.mu.Unlock()
	page.close()
	err := errors.Join(lost.end(), up.end())
	l.work.Wait()
	return err
}

// end stops a runtime, if there is one; nothing of it is left then.
func (r *running) end() error {
	if r == nil {
		return nil
	}
	return stopHost(r.host)
}

// stopHost gives a host the time that its limits give it, and a little more.
func stopHost(h *host.Host) error {
	ctx, cancel := context.WithTimeout(context.Background(), h.Limits().CleanUp+5*time.Second)
	defer cancel()
	return h.Stop(ctx)
}
