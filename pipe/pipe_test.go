package pipe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// PIPE-1, PIPE-3: the binding is the channel's, whatever the worker says; a
// token for another is of no use.
func TestChannelBinds(t *testing.T) {
	r := &runtime{bound: binding("worker 1")}
	_, w := connect(t, r, Options{})
	l, err := w.Acquire(t.Context(), theToken)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Authority().Binding; !got.Equal(r.bound) {
		t.Errorf("binding %+v", got)
	}
	res, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	if err != nil || res.Meta.LeaseID != r.last().authority.LeaseID {
		t.Fatalf("%+v, %v", res, err)
	}
	_, err = w.Acquire(t.Context(), "tok-other")
	wantCode(t, err, reins.CodeUnauthorized)
	same, err := w.client.Acquire(t.Context(), theToken, r.bound) // what agrees is as good as nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := same.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*reins.Binding){
		"project": func(b *reins.Binding) { b.Project = "q" }, "resource": func(b *reins.Binding) { b.Resource = "two" },
		"actor": func(b *reins.Binding) { b.Actor = "boss" }, "run": func(b *reins.Binding) { b.Run = "run-2" }, "scope": func(b *reins.Binding) { b.Scope = "" },
		"peer": func(b *reins.Binding) { b.Peer = "worker 2" }, "source": func(b *reins.Binding) { b.Source = reins.SourceLibrary },
		"role": func(b *reins.Binding) {
			*b = reins.Binding{Project: "p", Resource: "one", Actor: "a", Role: reins.RoleHuman, Peer: "x", Source: reins.SourcePipe}
		},
		"session": func(b *reins.Binding) { b.Session = &reins.Session{Harness: "h", Native: "8"} }, "revision": func(b *reins.Binding) { b.Revision = 4 },
	} {
		b := r.bound
		change(&b)
		if _, err := w.client.Acquire(t.Context(), theToken, b); reins.CodeOf(err) != reins.CodeUnauthorized {
			t.Errorf("another %s: %v", what, err)
		}
		// The host's word decides: a channel of another binding has no use for the token.
		if b.Source == reins.SourcePipe {
			_, other := connect(t, r, Options{Binding: b})
			if _, err := other.Acquire(t.Context(), theToken); reins.CodeOf(err) != reins.CodeUnauthorized {
				t.Errorf("a channel of another %s: %v", what, err)
			}
		}
	}
	// What is the host's is not the worker's, with any key.
	_, err = w.client.List(t.Context(), "p")
	wantCode(t, err, reins.CodeDenied)
	_, err = w.client.Issue(t.Context(), r.bound, 0)
	wantCode(t, err, reins.CodeDenied)
	wantCode(t, w.client.Revoke(t.Context(), "cap"), reins.CodeDenied)
	_, err = w.client.Artifacts(r.bound.Key()).List(t.Context())
	wantCode(t, err, reins.CodeDenied)
	bare, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/leases", nil) // what docs/pipe.md says
	if err != nil {
		t.Fatal(err)
	}
	bare.Header.Set("Reins-Capability", theToken)
	if a, err := w.transport.RoundTrip(bare); err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("no body: %+v, %v", a, err)
	} else {
		a.Body.Close()
	}
	q, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/projects/p/resources", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer admin")
	a, err := w.transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusForbidden {
		t.Errorf("with a key: %d", a.StatusCode)
	}
}

// PIPE-2: closing a channel, at either side or by the worker's death, ends its
// leases and what acts under them.
func TestChannelEnds(t *testing.T) {
	for what, end := range map[string]func(*Channel, *Worker){
		"the host closes":   func(c *Channel, _ *Worker) { _ = c.Close() },
		"the worker closes": func(_ *Channel, w *Worker) { _ = w.Close() },
		"the worker dies":   func(_ *Channel, w *Worker) { _ = w.conn.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			began, gone := make(chan struct{}), make(chan struct{})
			r := &runtime{bound: binding("w")}
			r.do = func(ctx context.Context, _ reins.Call) (*reins.Result, error) {
				close(began)
				<-ctx.Done()
				close(gone)
				return nil, reins.ContextError(ctx)
			}
			c, w := connect(t, r, Options{})
			l, err := w.Acquire(t.Context(), theToken)
			if err != nil {
				t.Fatal(err)
			}
			acted := make(chan error, 1)
			go func() {
				_, err := l.Do(context.Background(), reins.Call{Action: reins.Snapshot{}})
				acted <- err
			}()
			closed(t, began, "the action")
			end(c, w)
			closed(t, gone, "the action's end")
			if err := <-acted; err == nil {
				t.Error("the action ended well")
			}
			closed(t, c.Done(), "the channel's end")
			closed(t, w.Done(), "the worker's end")
			closed(t, l.Done(), "the end of the worker's lease")
			if !r.last().ended() {
				t.Error("the lease lives on")
			}
			if err := c.Err(); (what == "the host closes") != (err == nil) {
				t.Errorf("why: %v", err)
			}
			if _, err := w.Acquire(t.Context(), theToken); err == nil {
				t.Error("a lease after the end")
			}
		})
	}
}

// PIPE-2: a worker that stops reading loses its channel, and no other does.
func TestChannelStuck(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 32<<20) // more than sockets hold
	sum := sha256.Sum256(data)
	r := &runtime{bound: binding("w")}
	r.do = func(_ context.Context, c reins.Call) (*reins.Result, error) {
		if a, ok := c.Action.(reins.ReadArtifact); ok {
			return &reins.Result{Data: bytes.Clone(data[a.Offset : a.Offset+a.Length]), Artifacts: []reins.Artifact{{ID: "art", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}}}, nil
		}
		return &reins.Result{}, nil
	}
	good, other := connect(t, r, Options{})
	fine, err := other.Acquire(t.Context(), theToken)
	if err != nil {
		t.Fatal(err)
	}
	c, w := connect(t, r, Options{Patience: time.Second})
	l, err := w.Acquire(t.Context(), theToken)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/leases/"+l.Authority().LeaseID+"/artifacts/art", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Reins-Capability", theToken)
	a, err := w.transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	closed(t, c.Done(), "the end of the channel")
	if err := c.Err(); reins.CodeOf(err) != reins.CodeConnectionClosed || !strings.Contains(err.Error(), "took nothing") {
		t.Errorf("why: %v", err)
	}
	closed(t, l.Done(), "the end of the lease")
	if n, err := io.Copy(io.Discard, a.Body); err == nil && n == int64(len(data)) {
		t.Error("all of it came")
	}
	if _, err := fine.Do(t.Context(), reins.Call{Action: reins.Snapshot{}}); err != nil || good.Err() != nil {
		t.Errorf("another channel: %v, %v", err, good.Err())
	}
}

// PIPE-2: no more requests are served at a time than was set; the others wait,
// and are served.
func TestChannelBounds(t *testing.T) {
	r := &runtime{bound: binding("w")}
	var now, most atomic.Int32
	r.do = func(ctx context.Context, _ reins.Call) (*reins.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
		return &reins.Result{}, nil
	}
	c, w := connect(t, r, Options{Requests: 4})
	l, err := w.Acquire(t.Context(), theToken)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > 4 || c.Err() != nil {
		t.Errorf("%d at a time; %v", most.Load(), c.Err())
	}
	// A worker that leaves while all places are taken and more wait is seen to.
	r.do = func(ctx context.Context, _ reins.Call) (*reins.Result, error) {
		<-ctx.Done()
		return nil, reins.ContextError(ctx)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 20 {
		wg.Go(func() { _, _ = l.Do(ctx, reins.Call{Action: reins.Snapshot{}}) })
	}
	_ = w.conn.Close()
	closed(t, c.Done(), "the end of the channel")
	cancel()
	wg.Wait()
}

// Whatever comes over a channel that is no connection ends it.
func TestChannelLies(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kind := func(domain, kind int) func() []int {
		return func() []int {
			fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Close(fd) })
			return []int{fd}
		}
	}
	for what, c := range map[string]struct {
		data string
		fds  func() []int
	}{
		"nothing but a byte": {"c", nil},
		"a file":             {"c", func() []int { return []int{int(file.Fd())} }},
		"two files":          {"c", func() []int { return []int{int(file.Fd()), int(file.Fd())} }},
		"another socket":     {"c", kind(unix.AF_INET, unix.SOCK_STREAM)},
		"datagrams":          {"c", kind(unix.AF_UNIX, unix.SOCK_DGRAM)},
		"a listening socket": {"c", func() []int {
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			f, err := l.(*net.UnixListener).File()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return []int{int(f.Fd())}
		}},
		"another byte": {"x", func() []int {
			a, b, err := socketPair()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.Close(); b.Close() })
			return []int{int(a.Fd())}
		}},
		"HTTP": {"GET / HTTP/1.1\r\n\r\n", nil},
	} {
		r := &runtime{bound: binding("w")}
		channel, conn := half(t, r, Options{})
		var rights []byte
		if c.fds != nil {
			rights = unix.UnixRights(c.fds()...)
		}
		if _, _, err := conn.WriteMsgUnix([]byte(c.data), rights, nil); err != nil {
			t.Fatal(err)
		}
		closed(t, channel.Done(), "the end of the channel")
		if err := channel.Err(); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// LSE-3: a lease is renewed at half of its life while its channel lives.
func TestChannelRenews(t *testing.T) {
	r := &runtime{bound: binding("w"), life: 2 * time.Second}
	_, w := connect(t, r, Options{})
	l, err := w.Acquire(t.Context(), theToken)
	if err != nil {
		t.Fatal(err)
	}
	first := l.Expires()
	late := time.After(patient)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.Expires().Sub(first) < 2*time.Second { // the worker learns of it
		select {
		case <-tick.C:
		case <-l.Done():
			t.Fatal("the lease ended")
		case <-late:
			t.Fatal("it was not renewed")
		}
	}
}

// One session may hold several channels, each a resource's (PIPE-1).
func TestChannels(t *testing.T) {
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		b := binding("w")
		b.Resource = name
		r := &runtime{bound: b}
		_, w := connect(t, r, Options{})
		wg.Go(func() {
			l, err := w.Acquire(t.Context(), theToken)
			if err != nil {
				t.Error(err)
				return
			}
			for range 50 {
				if _, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}}); err != nil {
					t.Error(err)
				}
			}
			if got := l.Authority().Binding.Resource; got != name {
				t.Errorf("%s is %s", name, got)
			}
		})
	}
	wg.Wait()
}

// PIPE-1: a socket is its owner's alone, and one process of the right user's gets
// the channel.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	_, err = Listen(path, os.Getuid())
	wantCode(t, err, reins.CodeInvalidInput)
	_, err = Listen("relative", 0)
	wantCode(t, err, reins.CodeInvalidInput)
	_, err = Listen("/"+strings.Repeat("x", 107), 0)
	wantCode(t, err, reins.CodeInvalidInput)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	r := &runtime{bound: binding("w")}
	c, err := Serve(mine, Options{Runtime: r, Binding: r.bound})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := Dial(conn.(*net.UnixConn))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Acquire(t.Context(), theToken); err != nil {
		t.Error(err)
	}

	path = filepath.Join(t.TempDir(), "s")
	if l, err = Listen(path, os.Getuid()+1); err != nil { // another user's
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		accepted <- err
	}()
	stranger, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger was not turned away")
	}
	cancel()
	wantCode(t, <-accepted, reins.CodeCancelled)
	if err := l.Close(); err != nil || l.Close() != nil {
		t.Error(err)
	}
	_, err = l.Accept(t.Context())
	wantCode(t, err, reins.CodeConnectionClosed)
}

// PIPE-2: a channel carries the live view too.
func TestChannelView(t *testing.T) {
	r := &runtime{bound: reins.Binding{Project: "p", Resource: "one", Actor: "ada", Role: reins.RoleHuman, Peer: "w", Source: reins.SourcePipe}, acks: make(chan reins.FrameID, 1)}
	c, w := connect(t, r, Options{})
	l, err := w.Acquire(t.Context(), theToken)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := l.Subscribe(t.Context(), reins.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := sub.Next(t.Context())
	if err != nil || u.Frame == nil || string(u.Frame.JPEG) != "jpeg" || !sub.Ack(u.Frame.ID) {
		t.Fatalf("%+v, %v", u, err)
	}
	if id := <-r.acks; id != u.Frame.ID {
		t.Errorf("acknowledged %v", id)
	}
	_ = c.Close()
	for err == nil {
		_, err = sub.Next(t.Context())
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

// Options that cannot be served are refused.
func TestOptions(t *testing.T) {
	r := &runtime{bound: binding("w")}
	for what, spoil := range map[string]func(*Options){
		"no runtime": func(o *Options) { o.Runtime = nil }, "no binding": func(o *Options) { o.Binding = reins.Binding{} },
		"another source": func(o *Options) { o.Binding.Source = reins.SourceAPI }, "no actor": func(o *Options) { o.Binding.Actor = "" },
		"no requests": func(o *Options) { o.Requests = -1 }, "too many": func(o *Options) { o.Requests = 1025 }, "no patience": func(o *Options) { o.Patience = 1 },
	} {
		o := Options{Runtime: r, Binding: r.bound}
		spoil(&o)
		mine, theirs, err := Pair()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Serve(mine, o); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", what, err)
		}
		mine.Close()
		theirs.Close()
	}
	_, err := Serve(nil, Options{Runtime: r, Binding: r.bound})
	wantCode(t, err, reins.CodeInvalidInput)
	_, err = Dial(nil)
	wantCode(t, err, reins.CodeInvalidInput)
	_, err = Inherited(9999)
	wantCode(t, err, reins.CodeInvalidInput)
}
