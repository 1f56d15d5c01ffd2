package pipe

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// Options make a channel. Runtime and Binding are required.
type Options struct {
	// Runtime is what the worker reaches a part of.
	Runtime reins.Runtime
	// Binding is the complete binding of whoever is at the other end. Its source
	// is [reins.SourcePipe]; its peer names the channel.
	Binding reins.Binding
	// Requests are served at a time; 64 [1..1,024].
	Requests int
	// Patience is how long a connection may take nothing before the channel
	// ends; 30 s [100 ms..10 min].
	Patience time.Duration
	// Logger receives failures of our own; nil is nothing.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	o.Requests, o.Patience = cmp.Or(o.Requests, 64), cmp.Or(o.Patience, 30*time.Second)
	switch {
	case o.Runtime == nil:
		return o, reins.Errorf(reins.CodeInvalidInput, "Options.Runtime is missing; give the runtime to serve")
	case o.Binding.Source != reins.SourcePipe:
		return o, reins.Errorf(reins.CodeInvalidInput, "Options.Binding is of source %q; over a pipe it is \"pipe\"", string(o.Binding.Source))
	case o.Requests < 1 || o.Requests > 1024:
		return o, reins.Errorf(reins.CodeInvalidInput, "Options.Requests is %d; use 1 to 1024", o.Requests)
	case o.Patience < 100*time.Millisecond || o.Patience > 10*time.Minute:
		return o, reins.Errorf(reins.CodeInvalidInput, "Options.Patience is %s; use 100ms to 10m", o.Patience)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, o.Binding.Validate()
}

const (
	headerTime  = 30 * time.Second // that the head of a request may take
	headerBytes = 64 << 10
	idleTime    = time.Second
	lookTime    = time.Second
	releaseTime = 30 * time.Second // that the end of a channel waits for its leases
)

// The message that brings a connection along.
const knocking = 'c'

// Channel is the host's end of one worker's connection. Close it.
type Channel struct {
	o      Options
	conn   *net.UnixConn
	ctx    context.Context // ends when the channel is to
	fail   context.CancelCauseFunc
	done   chan struct{}
	slots  chan struct{} // one for each connection that is served
	served chan net.Conn // on their way to the server

	mu     sync.Mutex // guards all below
	over   bool
	leases map[reins.Lease]struct{} // live
	work   sync.WaitGroup           // requests and renewals
}

// The causes of a channel's end: its host wanted it, its worker did.
var (
	errClosed = reins.Errorf(reins.CodeConnectionClosed, "the channel was closed").In(reins.PhaseConnect)
	errLeft   = reins.Errorf(reins.CodeConnectionClosed, "the worker left").In(reins.PhaseConnect)
)

// Serve serves a worker over the host's end of its channel, which becomes the
// channel's. It returns at once.
func Serve(conn *net.UnixConn, o Options) (*Channel, error) {
	o, err := o.withDefaults()
	if err == nil && conn == nil {
		err = reins.Errorf(reins.CodeInvalidInput, "the channel needs a connection; make a Pair")
	}
	if err != nil {
		return nil, err
	}
	c := &Channel{
		o: o, conn: conn, done: make(chan struct{}), leases: map[reins.Lease]struct{}{},
		slots: make(chan struct{}, o.Requests), served: make(chan net.Conn),
	}
	handler, err := api.New(api.Options{Runtime: bound{o.Runtime, c}, Binding: &o.Binding, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	c.ctx, c.fail = context.WithCancelCause(context.Background())
	server := &http.Server{
		Handler: c.counted(handler), ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes,
		IdleTimeout: idleTime, // a connection that waits for its next request holds a place
		ErrorLog:    slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	go c.run(server, handler)
	return c, nil
}

// Done is closed when the channel has ended: nothing of it acts any more and its
// leases are released.
func (c *Channel) Done() <-chan struct{} { return c.done }

// Err is why the channel ends; nil while it does not, and when Close was why.
func (c *Channel) Err() error {
	if c.ctx.Err() == nil || context.Cause(c.ctx) == error(errClosed) {
		return nil
	}
	return reins.AsError(context.Cause(c.ctx))
}

// Close ends the channel and waits for it. Idempotent.
func (c *Channel) Close() error {
	c.fail(errClosed)
	<-c.done
	return nil
}

// run serves until the channel is to end, and ends it.
func (c *Channel) run(server *http.Server, handler *api.Handler) {
	defer close(c.done)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(incoming{c}) }) // ends with the channel
	wg.Go(c.receive)
	<-c.ctx.Done()
	_ = c.conn.Close()
	handler.Close()
	_ = server.Close() // the connections with it
	wg.Wait()
	c.release()
	c.work.Wait()
}

// counted serves requests until the channel is over, which waits for them.
func (c *Channel) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		if c.over {
			c.mu.Unlock()
			return
		}
		c.work.Add(1)
		c.mu.Unlock()
		defer c.work.Done()
		next.ServeHTTP(w, r)
	})
}

// receive takes connections from the worker, as many as there is room for.
func (c *Channel) receive() {
	for c.room() {
		next, err := c.one()
		if err != nil {
			c.fail(reins.AsError(err))
			return
		}
		select {
		case c.served <- next:
		case <-c.ctx.Done():
			_ = next.Close()
		}
	}
}

// room waits for a slot; false when the channel ends. Meanwhile nothing is read,
// so it looks whether the worker is there.
func (c *Channel) room() bool {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for {
		select {
		case c.slots <- struct{}{}:
			return true
		case <-look.C:
			if c.deserted() {
				c.fail(errLeft)
			}
		case <-c.ctx.Done():
			return false
		}
	}
}

// deserted reports whether the worker's end is closed.
func (c *Channel) deserted() (gone bool) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n == 1
	})
	return gone || err != nil
}

// one takes one connection.
func (c *Channel) one() (net.Conn, error) {
	buf, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := c.conn.ReadMsgUnix(buf, rights)
	if n == 0 || err != nil {
		if err == nil || errors.Is(err, io.EOF) {
			err = errors.New("the end of the channel")
		}
		return nil, errLeft.Because(err)
	}
	odd := reins.Errorf(reins.CodeInvalidInput, "the worker sent what is no connection; use pipe.Dial").In(reins.PhaseConnect)
	f, err := passed(rights[:size])
	if err != nil {
		return nil, odd.Because(err)
	}
	defer f.Close()
	if buf[0] != knocking {
		return nil, odd
	}
	u, err := connOf(f)
	if err != nil {
		return nil, odd.Because(err)
	}
	return &stream{UnixConn: u, c: c}, nil
}

// passed is the one descriptor in a control message. What else there is, is
// closed: here, or by the kernel for want of room.
func passed(b []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	if len(files) == 1 {
		return files[0], nil
	}
	for _, f := range files {
		_ = f.Close()
	}
	return nil, errors.New("there is not one descriptor")
}

// incoming is the listener of the worker's connections.
type incoming struct{ c *Channel }

// Accept implements net.Listener.
func (i incoming) Accept() (net.Conn, error) {
	select {
	case s := <-i.c.served:
		return s, nil
	case <-i.c.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (i incoming) Close() error { return nil }

// Addr implements net.Listener.
func (i incoming) Addr() net.Addr { return i.c.conn.LocalAddr() }

// stream is one connection of a worker.
type stream struct {
	*net.UnixConn
	c    *Channel
	once sync.Once
}

// Write implements net.Conn. A worker that takes nothing loses its channel
// (PIPE-2).
func (s *stream) Write(p []byte) (int, error) {
	t := time.AfterFunc(s.c.o.Patience, func() {
		s.c.fail(reins.Errorf(reins.CodeConnectionClosed, "the worker took nothing for %s", s.c.o.Patience).In(reins.PhaseConnect))
	})
	defer t.Stop()
	return s.UnixConn.Write(p)
}

// Close implements net.Conn.
func (s *stream) Close() error {
	defer s.once.Do(func() { <-s.c.slots })
	return s.UnixConn.Close()
}

// bound is the runtime as a channel's worker reaches it: every capability is
// held against the channel's binding (PIPE-3).
type bound struct {
	reins.Runtime
	c *Channel
}

// Acquire implements [reins.Runtime].
func (b bound) Acquire(ctx context.Context, t reins.Token, _ reins.Binding) (reins.Lease, error) {
	l, err := b.Runtime.Acquire(ctx, t, b.c.o.Binding)
	if err != nil {
		return nil, err
	}
	if !b.c.hold(l) {
		_ = l.Release(context.WithoutCancel(ctx)) // else it expires
		return nil, errClosed
	}
	return l, nil
}

// hold makes a lease the channel's, unless it is over.
func (c *Channel) hold(l reins.Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.leases[l] = struct{}{}
	c.work.Go(func() { c.renew(l) })
	return true
}

// renew extends a lease at half of what remains of its life, until it or the
// channel ends (LSE-3).
func (c *Channel) renew(l reins.Lease) {
	for {
		t := time.NewTimer(max(time.Until(l.Expires())/2, 100*time.Millisecond))
		select {
		case <-t.C:
		case <-l.Done():
			t.Stop()
			c.mu.Lock()
			delete(c.leases, l)
			c.mu.Unlock()
			return
		case <-c.ctx.Done():
			t.Stop()
			return
		}
		if _, err := l.Renew(c.ctx); err != nil && c.ctx.Err() == nil {
			c.o.Logger.Warn("a lease of a pipe was not renewed", "peer", c.o.Binding.Peer, "error", err)
		}
	}
}

// release ends the channel's leases.
func (c *Channel) release() {
	c.mu.Lock()
	c.over = true
	leases := c.leases
	c.leases = nil
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	var wg sync.WaitGroup
	for l := range leases {
		wg.Go(func() {
			if err := l.Release(ctx); err != nil {
				c.o.Logger.Warn("a lease of a pipe was not released", "peer", c.o.Binding.Peer, "error", err)
			}
		})
	}
	wg.Wait()
}
