package main

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/server"
	"github.com/reins-browser/reins/viewer"
)

// watchPage is the door for people in front of a private runtime (MCP-8).
type watchPage struct {
	door *server.Door
	http *http.Server
	url  string
	word string // by which it is known; see server.Proof
	key  reins.Token
	done chan struct{} // closed when it serves no more

	mu   sync.Mutex
	over bool
	left []string // files to be taken away
}

// watch lets people watch the runtime in a directory. What keeps them from it keeps
// nobody else from anything.
func (l *local) watch(dir string) {
	if !l.options.watched {
		return
	}
	l.mu.Lock()
	page := l.page
	l.mu.Unlock()
	var err error
	if page == nil {
		if page, err = l.openPage(); err == nil && !l.take(page) {
			page.close()
			return
		}
	}
	if err == nil {
		err = page.announce(dir)
	}
	if err != nil {
		l.options.say("nobody can watch: %s", reins.AsError(err).Message)
		return
	}
	l.options.say("watch it with `reins view`")
}

// take keeps the page until close; false when that has been.
func (l *local) take(p *watchPage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.page = p
	return true
}

func (l *local) openPage() (*watchPage, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, listenError("the page at", "127.0.0.1:0", err)
	}
	keys := server.NewKeyring()
	p := &watchPage{url: "http://" + listener.Addr().String(), key: keys.Fresh(), word: rand.Text(), done: make(chan struct{})}
	p.door, err = server.NewDoor(server.DoorOptions{
		Runtime: localRuntime{l}, Keys: keys, Files: viewer.Files(), URL: p.url, Secret: p.word, Version: version, Logger: l.options.logger,
		Projects: func(context.Context) ([]string, error) { return []string{localProject}, nil },
	})
	if err != nil {
		_ = listener.Close() // nothing was served
		return nil, err
	}
	p.http = newHTTP(p.door, l.options.logger)
	go func() { // ends with close
		defer close(p.done)
		_ = p.http.Serve(listener)
	}()
	return p, nil
}

// announce writes into the directory where the page is and by which key.
func (p *watchPage) announce(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil // nobody is to look for it
	}
	key := filepath.Join(dir, server.AdminKeyFile)
	if err := server.WritePrivate(key, []byte(string(p.key)+"\n")); err != nil {
		return err
	}
	i := instance{URL: p.url, KeyFile: key, Secret: p.word, PID: os.Getpid(), Started: time.Now().UTC()}
	if _, err := i.write(dir); err != nil {
		return err
	}
	p.left = append(p.left, key, filepath.Join(dir, instanceFile))
	return nil
}

// close ends what people have open, and takes the files away.
func (p *watchPage) close() {
	if p == nil {
		return
	}
	p.door.Close()
	_ = p.http.Close() // connections; what was said on them is said
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, f := range p.left {
		_ = os.Remove(f) // the next start writes them anew
	}
}

// localRuntime is the runtime that a local has now, for people's door.
type localRuntime struct{ l *local }

var _ reins.Runtime = localRuntime{}

// now is the running host; people do not start one.
func (r localRuntime) now() (reins.Runtime, error) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.up == nil || r.l.closed {
		return nil, reins.Errorf(reins.CodeRuntimeStopped, "the runtime is not up; the agent's next call starts it")
	}
	return r.l.up.host, nil
}

// Register implements [reins.Runtime]: the one browser is its client's.
func (r localRuntime) Register(context.Context, reins.Registration) (reins.Registration, error) {
	return reins.Registration{}, reins.Errorf(reins.CodeDenied, "this runtime is private to its client; use `reins serve` for more browsers")
}

// Open implements [reins.Runtime].
func (r localRuntime) Open(ctx context.Context, key reins.ResourceKey) (reins.Resource, error) {
	h, err := r.now()
	if err != nil {
		return nil, err
	}
	return h.Open(ctx, key)
}

// List implements [reins.Runtime].
func (r localRuntime) List(ctx context.Context, project string) ([]reins.ResourceInfo, error) {
	h, err := r.now()
	if err != nil {
		return nil, err
	}
	return h.List(ctx, project)
}

// Issue implements [reins.Runtime].
func (r localRuntime) Issue(ctx context.Context, b reins.Binding, life time.Duration) (reins.Capability, error) {
	h, err := r.now()
	if err != nil {
		return reins.Capability{}, err
	}
	return h.Issue(ctx, b, life)
}

// Revoke implements [reins.Runtime].
func (r localRuntime) Revoke(ctx context.Context, id string) error {
	h, err := r.now()
	if err != nil {
		return err
	}
	return h.Revoke(ctx, id)
}

// Acquire implements [reins.Runtime].
func (r localRuntime) Acquire(ctx context.Context, t reins.Token, b reins.Binding) (reins.Lease, error) {
	h, err := r.now()
	if err != nil {
		return nil, err
	}
	return h.Acquire(ctx, t, b)
}

// Artifacts implements [reins.Runtime].
func (r localRuntime) Artifacts(key reins.ResourceKey) reins.Artifacts {
	return artifactsOf{r, key}
}

// Events implements [reins.Runtime].
func (r localRuntime) Events(ctx context.Context, project string) (<-chan reins.Event, error) {
	h, err := r.now()
	if err != nil {
		return nil, err
	}
	return h.Events(ctx, project)
}

// artifactsOf are the artifacts of a resource of the runtime that there is now.
type artifactsOf struct {
	r   localRuntime
	key reins.ResourceKey
}

// List implements [reins.Artifacts].
func (a artifactsOf) List(ctx context.Context) ([]reins.Artifact, error) {
	h, err := a.r.now()
	if err != nil {
		return nil, err
	}
	return h.Artifacts(a.key).List(ctx)
}

// Open implements [reins.Artifacts].
func (a artifactsOf) Open(ctx context.Context, id string) (reins.Artifact, io.ReadCloser, error) {
	h, err := a.r.now()
	if err != nil {
		return reins.Artifact{}, nil, err
	}
	return h.Artifacts(a.key).Open(ctx, id)
}

// Put implements [reins.Artifacts].
func (a artifactsOf) Put(ctx context.Context, what reins.Artifact, from io.Reader) (reins.Artifact, error) {
	h, err := a.r.now()
	if err != nil {
		return reins.Artifact{}, err
	}
	return h.Artifacts(a.key).Put(ctx, what, from)
}

// Delete implements [reins.Artifacts].
func (a artifactsOf) Delete(ctx context.Context, id string) error {
	h, err := a.r.now()
	if err != nil {
		return err
	}
	return h.Artifacts(a.key).Delete(ctx, id)
}
