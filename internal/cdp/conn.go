package cdp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// Options bound a connection. The zero value is the default.
type Options struct {
	Message  int64 // one message from the browser, bytes; 64 MiB when 0
	InFlight int   // unanswered calls; 8,192 when 0
	Backlog  int64 // bytes not yet written; 64 MiB when 0
}

// Conn is one connection. Its methods may be called from any goroutine.
type Conn struct {
	r    io.ReadCloser
	w    io.WriteCloser
	opts Options
	root *Session
	wake chan struct{} // tells the writer that out is not empty

	mu       sync.Mutex
	sessions map[string]*Session
	pending  map[int64]*Pending
	last     int64  // ID of the newest call
	out      []byte // waits to be written
	err      error  // why the connection ended; nil while it lives
	done     chan struct{}

	work sync.WaitGroup // reader and writer
}

// New starts a connection that reads messages from r and writes them to w. It
// owns both and closes them at its end; closing must end a Read or Write that
// is under way.
func New(r io.ReadCloser, w io.WriteCloser, opts Options) *Conn {
	if opts.Message == 0 {
		opts.Message = 64 << 20
	}
	if opts.InFlight == 0 {
		opts.InFlight = 8192
	}
	if opts.Backlog == 0 {
		opts.Backlog = 64 << 20
	}
	c := &Conn{
		r: r, w: w, opts: opts,
		wake:     make(chan struct{}, 1),
		sessions: map[string]*Session{},
		pending:  map[int64]*Pending{},
		done:     make(chan struct{}),
	}
	c.root = c.Session("", nil)
	c.work.Go(c.read)
	c.work.Go(c.write)
	return c
}

// Root is the session without a name, which exists from the beginning.
func (c *Conn) Root() *Session { return c.root }

// Session registers a session that the browser announced, with the handler of
// its events (nil drops them). Called from the handler that got the
// announcement, it misses no event. A session of the same name is replaced.
func (c *Conn) Session(id string, handle func(Event)) *Session {
	s := &Session{conn: c, id: id, handle: handle, done: make(chan struct{})}
	c.mu.Lock()
	var failed calls
	if c.err != nil {
		s.err = c.err
		close(s.done)
	} else {
		if old := c.sessions[id]; old != nil {
			failed = c.endSessionLocked(old, ErrSessionEnded)
		}
		c.sessions[id] = s
	}
	c.mu.Unlock()
	failed.finish(ErrSessionEnded)
	return s
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says, once Done is closed, why the connection ended; it wraps ErrClosed.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and waits for its goroutines. It must not be
// called from a handler.
func (c *Conn) Close() error {
	c.end(errors.New("closed by its owner"))
	c.work.Wait()
	return nil
}

// end records why the connection ended, once, and fails what waits on it.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = fmt.Errorf("%w: %w", ErrClosed, cause)
	var failed calls
	for _, s := range c.sessions {
		failed = append(failed, c.endSessionLocked(s, c.err)...)
	}
	close(c.done)
	err := c.err
	c.mu.Unlock()
	failed.finish(err)
	c.r.Close()
	c.w.Close()
}

// endSessionLocked ends s and returns the calls that waited on it, which the
// caller fails once it has left the lock.
func (c *Conn) endSessionLocked(s *Session, cause error) (failed calls) {
	if s.err != nil {
		return nil
	}
	s.err = cause
	delete(c.sessions, s.id)
	close(s.done)
	for id, p := range c.pending {
		if p.session == s {
			delete(c.pending, id)
			failed = append(failed, p)
		}
	}
	return failed
}

// calls that were taken from the pending ones.
type calls []*Pending

func (cs calls) finish(cause error) {
	for _, p := range cs {
		p.finish(nil, cause)
	}
}

// Request is one call to send: a method and its parameters, nil for none.
type Request struct {
	Method string
	Params any
}

// send queues requests of s so that they leave together; each calls then, when
// not nil, as it finishes.
func (c *Conn) send(s *Session, requests []Request, then func(*Pending)) []*Pending {
	sent := make([]*Pending, len(requests))
	var out []byte
	ends := make([]int, 0, len(requests)) // of the parts in out, each before its ID
	for i, r := range requests {
		sent[i] = &Pending{session: s, method: r.Method, then: then, done: make(chan struct{})}
		body, err := encodeBody(s.id, r)
		if err != nil { // our own parameters do not encode: nothing is sent
			for j := range sent {
				if sent[j] == nil {
					sent[j] = &Pending{session: s, method: requests[j].Method, done: make(chan struct{})}
				}
				sent[j].finish(nil, err)
			}
			return sent
		}
		out = append(out, body...)
		ends = append(ends, len(out))
	}
	c.mu.Lock()
	err := s.err
	if err == nil && (len(c.pending)+len(sent) > c.opts.InFlight || int64(len(c.out)+len(out)) > c.opts.Backlog) {
		err = ErrOverload
	}
	if err == nil {
		start := 0
		for i, p := range sent {
			p.id = c.nextIDLocked()
			c.pending[p.id] = p
			c.out = appendMessage(c.out, p.id, out[start:ends[i]])
			start = ends[i]
		}
	}
	c.mu.Unlock()
	switch {
	case errors.Is(err, ErrOverload):
		for _, p := range sent {
			p.finish(nil, err)
		}
		c.end(err)
	case err != nil:
		for _, p := range sent {
			p.finish(nil, err)
		}
	default:
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return sent
}

// nextIDLocked returns an ID that no unanswered call has. The browser takes
// IDs of 32 bits only.
func (c *Conn) nextIDLocked() int64 {
	for {
		c.last++
		if c.last > math.MaxInt32 {
			c.last = 1
		}
		if c.pending[c.last] == nil {
			return c.last
		}
	}
}

// write sends what is queued, all of it at once, until the connection ends.
func (c *Conn) write() {
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.mu.Lock()
		out := c.out
		c.out = spare[:0]
		c.mu.Unlock()
		if len(out) == 0 {
			spare = out
			continue
		}
		if _, err := c.w.Write(out); err != nil {
			c.end(fmt.Errorf("writing to the browser: %w", err))
			return
		}
		spare = nil
		if cap(out) <= 1<<20 {
			spare = out
		}
	}
}

// read handles messages in their order until the pipe ends.
func (c *Conn) read() {
	f := newFrames(c.r, int(c.opts.Message))
	for {
		message, over, err := f.next()
		switch {
		case err != nil:
			c.end(fmt.Errorf("reading from the browser: %w", err))
			return
		case over != nil:
			c.drop(over)
		default:
			c.handle(message)
		}
	}
}

// handle acts on one message. What is not a message is passed over: after a
// take-over the first one can be the rest of one that was half read.
func (c *Conn) handle(message []byte) {
	e, err := parseEnvelope(message)
	if err != nil {
		return
	}
	if e.hasID {
		c.reply(e)
		return
	}
	if e.method == "" {
		return
	}
	c.mu.Lock()
	s := c.sessions[e.session]
	c.mu.Unlock()
	if s != nil && s.handle != nil {
		s.handle(Event{Session: s, Method: e.method, Params: e.params})
	}
}

// reply releases the call that e answers. A reply for a session other than the
// call's belongs to a driver before this one.
func (c *Conn) reply(e envelope) {
	c.mu.Lock()
	p := c.pending[e.id]
	if p == nil || p.session.id != e.session && !(e.session == "" && e.fault != nil) {
		c.mu.Unlock()
		return
	}
	delete(c.pending, e.id)
	c.mu.Unlock()
	if e.fault != nil {
		fault := &ProtocolError{Method: p.method}
		if err := decode(e.fault, fault); err != nil {
			fault.Message = "an error that cannot be read"
		}
		p.finish(nil, fault)
		return
	}
	p.finish(append([]byte(nil), e.result...), nil)
}

// drop ends the session that sent a message above the bound (DRV-3).
func (c *Conn) drop(over *oversize) {
	e := over.envelope()
	cause := fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooLarge, over.size, c.opts.Message)
	c.mu.Lock()
	var failed calls
	switch s := c.sessions[e.session]; {
	case s == c.root:
		if p := c.pending[e.id]; e.hasID && p != nil && p.session == s {
			delete(c.pending, e.id)
			failed = calls{p}
		}
	case s != nil:
		failed = c.endSessionLocked(s, cause)
	}
	c.mu.Unlock()
	failed.finish(cause)
}
