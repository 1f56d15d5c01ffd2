package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
)

// Options make a proxy. The zero value is the default policy with default
// limits over the host's own resolver and network.
type Options struct {
	Policy reins.EgressPolicy
	Limits reins.Limits
	// Refuse makes a proxy that refuses everything until [Proxy.Adopt]: for
	// a cell that nobody owns yet.
	Refuse bool
	// Audit is told of each request and tunnel once, from several goroutines;
	// it must return soon and not close the proxy, which waits for it. What it
	// panics at is refused (EGR-10).
	Audit func(Decision)

	Resolver Resolver                                                // nil: the host's, without its search list
	Dial     func(context.Context, netip.AddrPort) (net.Conn, error) // nil: TCP from this host
	Own      func() ([]netip.Addr, error)                            // nil: InterfaceAddresses
}

const (
	headTimeout  = 30 * time.Second // for one head; a drip of bytes holds a connection no longer
	poolIdle     = 30 * time.Second // a pooled connection to a host
	poolPerHost  = 6
	poolSize     = 64
	responseHead = 256 << 10
	copyBuffer   = 32 << 10
)

// Proxy is the network door of one resource.
type Proxy struct {
	limits   reins.Limits
	resolver Resolver
	dialOne  func(context.Context, netip.AddrPort) (net.Conn, error)
	own      ownAddresses
	owner    atomic.Pointer[owner] // never nil
	up, down quota
	began    time.Time
	buffers  buffers

	ctx       context.Context // of all that the proxy does; ended by Close
	cancel    context.CancelCauseFunc
	server    *http.Server
	transport *http.Transport
	forwarder *httputil.ReverseProxy
	running   sync.WaitGroup // Serve, connections and handlers

	mu      sync.Mutex // guards what follows
	closed  bool
	doors   map[*doorConn]struct{}
	origins map[*originConn]struct{}
}

// owner is for whom the proxy decides, and who is told.
type owner struct {
	rules *rules // nil: nobody's, all is refused
	audit func(Decision)
}

// New makes a proxy. It fails with invalid_input naming the entry of the
// policy or the limit that it cannot hold to.
func New(o Options) (*Proxy, error) {
	limits, err := o.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		limits: limits, resolver: o.Resolver, dialOne: o.Dial, began: time.Now(),
		doors: map[*doorConn]struct{}{}, origins: map[*originConn]struct{}{},
	}
	p.own.source = o.Own
	if p.resolver == nil {
		p.resolver = &net.Resolver{PreferGo: true}
	}
	if p.dialOne == nil {
		dialer := &net.Dialer{}
		p.dialOne = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to.String())
		}
	}
	if p.own.source == nil {
		p.own.source = InterfaceAddresses
	}
	rules, err := compile(o.Policy)
	if err != nil {
		return nil, err
	}
	if o.Refuse {
		rules = nil
	} else {
		p.up.begin(o.Policy.MaxBytesUp)
		p.down.begin(o.Policy.MaxBytesDown)
	}
	p.owner.Store(&owner{rules, o.Audit})
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.build()
	return p, nil
}

// build puts the HTTP machinery together.
func (p *Proxy) build() {
	silent := log.New(io.Discard, "", 0) // its lines hold text of pages
	p.transport = &http.Transport{
		DialContext:            p.dialRoute,
		DisableCompression:     true,
		MaxIdleConns:           poolSize,
		MaxIdleConnsPerHost:    poolPerHost,
		IdleConnTimeout:        poolIdle,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: responseHead,
	}
	p.forwarder = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      p.transport,
		FlushInterval:  -1,
		ErrorLog:       silent,
		BufferPool:     &p.buffers,
		ModifyResponse: modify,
		ErrorHandler:   p.forwardFailed,
	}
	p.server = &http.Server{
		Handler:                      http.HandlerFunc(p.handle),
		ReadHeaderTimeout:            headTimeout,
		IdleTimeout:                  p.limits.EgressIdle,
		MaxHeaderBytes:               p.limits.EgressHeader,
		BaseContext:                  func(net.Listener) context.Context { return p.ctx },
		ConnContext:                  connContext,
		ErrorLog:                     silent,
		DisableGeneralOptionsHandler: true,
	}
}

// Serve accepts on l until Close, which closes l too; then it returns nil.
// Any other end of l is transport_failure, and refuses everything from then.
func (p *Proxy) Serve(l net.Listener) error {
	if !p.begin() {
		l.Close()
		return nil
	}
	defer p.running.Done()
	err := p.server.Serve(door{l, p})
	if errors.Is(err, http.ErrServerClosed) || p.ctx.Err() != nil {
		return nil
	}
	return reins.Errorf(reins.CodeTransportFailure, "the cell's network door closed: %w", err).In(reins.PhaseEgress)
}

// Close ends all connections at once and returns when nothing of the proxy
// runs any more. Idempotent.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	var conns []net.Conn
	for d := range p.doors {
		conns = append(conns, d)
	}
	for o := range p.origins {
		conns = append(conns, o)
	}
	p.mu.Unlock()
	p.cancel(reins.Errorf(reins.CodeDestroyed, "the browser's network door was closed"))
	p.server.Close()
	for _, c := range conns { // outside the lock: closing takes it
		c.Close()
	}
	p.running.Wait()
	p.transport.CloseIdleConnections()
}

// Adopt gives a proxy made with Options.Refuse its owner. It fails with
// invalid_input for a policy that cannot be held to, and with conflict when
// the proxy has an owner.
func (p *Proxy) Adopt(policy reins.EgressPolicy, audit func(Decision)) error {
	rules, err := compile(policy)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner.Load().rules != nil {
		return reins.Errorf(reins.CodeConflict, "the network door has an owner already")
	}
	// What was refused so far does not count.
	p.up.begin(policy.MaxBytesUp)
	p.down.begin(policy.MaxBytesDown)
	p.owner.Store(&owner{rules, audit})
	return nil
}

// begin counts one more goroutine that Close waits for; false once closed.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.running.Add(1)
	}
	return !p.closed
}

// admit takes a connection in, or says why not.
func (p *Proxy) admit(conn net.Conn) (net.Conn, *refusal) {
	if p.up.spent() || p.down.spent() {
		return nil, refuse(ReasonBytes, "this browser's network bytes are used up")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, refuse(ReasonInternal, "this browser's network door is closed")
	case len(p.doors) >= p.limits.EgressConnections:
		return nil, refuse(ReasonTooMany, "more than %d connections are open", p.limits.EgressConnections)
	}
	d := p.newDoorConn(conn)
	p.doors[d] = struct{}{}
	p.running.Add(1)
	return &guard{Conn: d, limit: p.limits.EgressHeader}, nil
}

func (p *Proxy) dropDoor(d *doorConn) {
	p.mu.Lock()
	delete(p.doors, d)
	p.mu.Unlock()
	p.running.Done()
}

// track takes in a connection to a host, so that Close ends it.
func (p *Proxy) track(conn net.Conn, to target, addr netip.Addr) *originConn {
	o := &originConn{Conn: conn, to: to, addr: addr, since: time.Now(), proxy: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
	}
	p.origins[o] = struct{}{}
	return o
}

// turnAway answers a connection that was not admitted, without waiting for
// what it wants.
func (p *Proxy) turnAway(conn net.Conn, ref *refusal) {
	status := ref.reason.status()
	p.tell(Decision{Reason: ref.reason, Detail: ref.detail})
	conn.SetDeadline(time.Now().Add(time.Second))
	io.WriteString(conn, "HTTP/1.1 "+strconv.Itoa(status)+" "+http.StatusText(status)+
		"\r\n"+reasonHeader+": "+string(ref.reason)+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	closeWrite(conn)
	conn.Close()
}

// tell hands a decision to the owner and reports whether it was taken: what
// nobody can be told of does not pass (EGR-10).
func (p *Proxy) tell(d Decision) (told bool) {
	defer func() { told = recover() == nil }()
	d.Time = time.Now()
	if audit := p.owner.Load().audit; audit != nil {
		audit(d)
	}
	return true
}

// buffers is the pool of copy buffers.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of copyBuffer bytes.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, copyBuffer)
}

// Put takes a buffer back.
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
