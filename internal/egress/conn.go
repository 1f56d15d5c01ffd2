package egress

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
)

var errBytes = errors.New("the bytes of this direction are used up")

// doorConn is one connection from the cell: counted, bounded in idleness and
// life, and known to its proxy until it is closed (EGR-7).
type doorConn struct {
	net.Conn
	proxy *Proxy
	last  atomic.Int64 // of traffic, nanoseconds since the proxy's beginning
	idle  *time.Timer
	life  *time.Timer
	once  sync.Once
}

func (p *Proxy) newDoorConn(conn net.Conn) *doorConn {
	d := &doorConn{Conn: conn, proxy: p}
	d.touch()
	d.life = time.AfterFunc(p.limits.EgressLife, func() { d.Close() })
	d.idle = time.AfterFunc(p.limits.EgressIdle, d.checkIdle)
	return d
}

func (d *doorConn) touch() { d.last.Store(int64(time.Since(d.proxy.began))) }

func (d *doorConn) checkIdle() {
	quiet := time.Since(d.proxy.began) - time.Duration(d.last.Load())
	if left := d.proxy.limits.EgressIdle - quiet; left > 0 {
		d.idle.Reset(left)
		return
	}
	d.Close()
}

// Read counts what the browser sends; what is above the bound is cut off.
func (d *doorConn) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if n == 0 {
		return 0, err
	}
	d.touch()
	allowed := d.proxy.up.take(n)
	if allowed < n {
		d.Close()
		err = errBytes
	}
	return allowed, err
}

// Write counts what the browser gets, and stops at the bound.
func (d *doorConn) Write(p []byte) (int, error) {
	allowed := d.proxy.down.take(len(p))
	n, err := d.Conn.Write(p[:allowed])
	d.touch()
	if err == nil && n < len(p) {
		d.Close()
		err = errBytes
	}
	return n, err
}

// CloseWrite ends one direction, where the connection can.
func (d *doorConn) CloseWrite() error { return closeWrite(d.Conn) }

func (d *doorConn) Close() error {
	err := net.ErrClosed
	d.once.Do(func() {
		d.life.Stop()
		d.idle.Stop()
		err = d.Conn.Close()
		d.proxy.dropDoor(d)
	})
	return err
}

// quota counts bytes of one direction; bound 0 is unlimited.
type quota struct{ bound, used atomic.Int64 }

// begin counts from zero against a bound.
func (q *quota) begin(bound int64) {
	q.bound.Store(bound)
	q.used.Store(0)
}

// take counts n bytes and returns how many of them are within the bound.
func (q *quota) take(n int) int {
	total, bound := q.used.Add(int64(n)), q.bound.Load()
	if bound == 0 || total <= bound {
		return n
	}
	return n - int(min(total-bound, int64(n)))
}

func (q *quota) spent() bool {
	bound := q.bound.Load()
	return bound > 0 && q.used.Load() >= bound
}

// originConn is one connection to a judged address.
type originConn struct {
	net.Conn
	to       target // as it was asked for
	addr     netip.Addr
	since    time.Time
	up, down atomic.Int64
	proxy    *Proxy
	once     sync.Once
}

// Read counts what the browser gets.
func (o *originConn) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	o.down.Add(int64(n))
	return n, err
}

// Write counts what the browser sends.
func (o *originConn) Write(p []byte) (int, error) {
	n, err := o.Conn.Write(p)
	o.up.Add(int64(n))
	return n, err
}

// Connections are those to hosts that are open now, oldest first.
func (p *Proxy) Connections() []reins.CellConnection {
	p.mu.Lock()
	out := make([]reins.CellConnection, 0, len(p.origins))
	for o := range p.origins {
		out = append(out, reins.CellConnection{
			Host: o.to.host(), Port: int(o.to.port), Since: o.since, Up: o.up.Load(), Down: o.down.Load(),
		})
	}
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b reins.CellConnection) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Host, b.Host))
	})
	return out
}

// CloseWrite ends one direction, where the connection can.
func (o *originConn) CloseWrite() error { return closeWrite(o.Conn) }

func (o *originConn) Close() error {
	err := net.ErrClosed
	o.once.Do(func() {
		err = o.Conn.Close()
		o.proxy.mu.Lock()
		delete(o.proxy.origins, o)
		o.proxy.mu.Unlock()
	})
	return err
}

// closeWrite half-closes, or closes what cannot be half-closed.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// door is the cell's listener with the bound of connections on it. A
// connection above it is told so and closed.
type door struct {
	net.Listener
	proxy *Proxy
}

func (d door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g, ref := d.proxy.admit(conn)
		if ref == nil {
			return g, nil
		}
		d.proxy.turnAway(conn, ref)
	}
}

type guardKey struct{}

// connContext lets a handler see the guard of its connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	g, _ := c.(*guard)
	return context.WithValue(ctx, guardKey{}, g)
}
