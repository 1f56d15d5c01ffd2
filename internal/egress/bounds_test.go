package egress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// pipes is a listener in memory, so that time can be virtual.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (l *pipes) dial() net.Conn {
	in, out := net.Pipe()
	l.conns <- out
	return in
}

// bubble runs f with a proxy over pipes; echo answers what it dials.
func bubble(t *testing.T, o egress.Options, f func(t *testing.T, l *pipes, r *record)) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{more: make(chan struct{}, 1)}
		o.Audit = r.add
		o.Own = func() ([]netip.Addr, error) { return nil, nil }
		if o.Dial == nil {
			o.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
				in, out := net.Pipe()
				go func() { defer out.Close(); io.Copy(out, out) }()
				return in, nil
			}
		}
		p, err := egress.New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		served := make(chan error, 1)
		go func() { served <- p.Serve(l) }()
		f(t, l, r)
		p.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// tunnelTo opens a tunnel and returns it.
func tunnelTo(t *testing.T, l *pipes, target string) net.Conn {
	t.Helper()
	c := l.dial()
	go io.WriteString(c, connect(target))
	if got := readHead(c); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatalf("answer %q", got)
	}
	return c
}

// readHead reads to the empty line, byte by byte.
func readHead(c net.Conn) string {
	var head []byte
	for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if _, err := c.Read(b); err != nil {
			break
		}
		head = append(head, b[0])
	}
	return string(head)
}

// EGR-7: a connection without traffic ends after the bound of idleness, and
// traffic in either direction keeps it.
func TestIdle(t *testing.T) {
	bubble(t, egress.Options{}, func(t *testing.T, l *pipes, _ *record) {
		c := tunnelTo(t, l, public+":443")
		b := make([]byte, 1)
		for range 3 {
			time.Sleep(4 * time.Minute)
			c.Write(b)
			if _, err := io.ReadFull(c, b); err != nil {
				t.Fatalf("with traffic: %v", err)
			}
		}
		begun := time.Now()
		c.Read(b)
		if took := time.Since(begun); took != 5*time.Minute {
			t.Errorf("ended after %v, want 5m", took)
		}
	})
	sink := func(context.Context, netip.AddrPort) (net.Conn, error) {
		in, out := net.Pipe()
		go io.Copy(io.Discard, out)
		return in, nil
	}
	bubble(t, egress.Options{Dial: sink}, func(t *testing.T, l *pipes, _ *record) {
		c := tunnelTo(t, l, public+":443")
		for range 3 {
			time.Sleep(4 * time.Minute)
			if _, err := c.Write(make([]byte, 1)); err != nil {
				t.Fatalf("with traffic one way: %v", err)
			}
		}
	})
}

// EGR-7: a connection ends at the bound of its life, busy or not.
func TestLife(t *testing.T) {
	o := egress.Options{Limits: reins.Limits{EgressLife: time.Hour}}
	bubble(t, o, func(t *testing.T, l *pipes, _ *record) {
		begun := time.Now()
		c := tunnelTo(t, l, public+":443")
		var busy sync.WaitGroup
		defer busy.Wait()
		busy.Go(func() {
			for b := make([]byte, 1); ; time.Sleep(time.Minute) {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		})
		io.Copy(io.Discard, c)
		if took := time.Since(begun); took != time.Hour {
			t.Errorf("ended after %v, want 1h", took)
		}
	})
}

// A head that comes in drips holds its connection for a while and no longer,
// and a silent connection no longer than the bound of idleness (EGR-7, B105).
func TestSlowHead(t *testing.T) {
	bubble(t, egress.Options{}, func(t *testing.T, l *pipes, _ *record) {
		c := l.dial()
		begun := time.Now()
		for {
			if _, err := io.WriteString(c, "x"); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took > 31*time.Second {
			t.Errorf("a drip was read for %v", took)
		}
	})
}

// EGR-7: look-up and connection together take no longer than the bound.
func TestDialBound(t *testing.T) {
	n := newNetwork()
	o := egress.Options{Resolver: slow{n, 6 * time.Second}, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	n.name("slow.example.com", []string{public, "2606:2800::1"})
	bubble(t, o, func(t *testing.T, l *pipes, r *record) {
		for _, raw := range []string{connect("slow.example.com:443"), get("http://slow.example.com/")} {
			c := l.dial()
			begun := time.Now()
			go io.WriteString(c, raw)
			if head := readHead(c); !strings.Contains(head, "Reins-Egress: timeout") || time.Since(begun) != 10*time.Second {
				t.Errorf("after %v: %q", time.Since(begun), head)
			}
			c.Close()
		}
	})
}

// slow answers like its network, later.
type slow struct {
	*network
	after time.Duration
}

func (s slow) LookupNetIP(ctx context.Context, family, host string) ([]netip.Addr, error) {
	select {
	case <-time.After(s.after):
		return s.network.LookupNetIP(ctx, family, host)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Several judged addresses are tried in turn, families alternating, the next
// one when one fails or after 250 ms; the first to answer is used and the
// others are closed.
func TestSeveralAddresses(t *testing.T) {
	type try struct {
		addr string
		at   time.Duration
	}
	for _, tt := range []struct {
		name    string
		answer  []string
		dead    map[string]bool // refuses at once
		slow    map[string]time.Duration
		tries   []try
		connect string
	}{
		{"first", []string{public, "2606:2800::1"}, nil, nil, []try{{public, 0}}, public},
		{"IPv6 only", []string{"2606:2800::1"}, nil, nil, []try{{"2606:2800::1", 0}}, "2606:2800::1"},
		{"next after a failure", []string{"2606:2800::1", "2606:2800::2", public}, map[string]bool{"2606:2800::1": true}, nil,
			[]try{{"2606:2800::1", 0}, {public, 0}}, public},
		{"next after a while", []string{"2606:2800::1", public}, nil, map[string]time.Duration{"2606:2800::1": time.Hour},
			[]try{{"2606:2800::1", 0}, {public, 250 * time.Millisecond}}, public},
		{"the slow one wins", []string{public, "93.184.216.35"}, map[string]bool{"93.184.216.35": true}, map[string]time.Duration{public: time.Second},
			[]try{{public, 0}, {"93.184.216.35", 250 * time.Millisecond}}, public},
		{"late winner is closed", []string{public, "93.184.216.35"}, nil, map[string]time.Duration{public: 300 * time.Millisecond, "93.184.216.35": 100 * time.Millisecond},
			[]try{{public, 0}, {"93.184.216.35", 250 * time.Millisecond}}, public},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var tries []try
			var open atomic.Int32
			var begun time.Time
			o := egress.Options{Resolver: newNetwork().name("x.example.com", tt.answer)}
			o.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				addr := to.Addr().String()
				mu.Lock()
				tries = append(tries, try{addr, time.Since(begun)})
				mu.Unlock()
				if tt.dead[addr] {
					return nil, errors.New("refused")
				}
				// Some connect although they were told to stop: closed then.
				time.Sleep(min(tt.slow[addr], 20*time.Second))
				in, out := net.Pipe()
				open.Add(1)
				go func() { io.Copy(io.Discard, out); open.Add(-1) }()
				return in, nil
			}
			bubble(t, o, func(t *testing.T, l *pipes, r *record) {
				begun = time.Now()
				c := tunnelTo(t, l, "x.example.com:443")
				synctest.Wait()
				if fmt.Sprint(tries) != fmt.Sprint(tt.tries) {
					t.Errorf("tries %v, want %v", tries, tt.tries)
				}
				if open.Load() != 1 {
					t.Errorf("%d connections are open", open.Load())
				}
				if d := r.last(t); d.Address.String() != tt.connect {
					t.Errorf("connected to %v", d.Address)
				}
				c.Close()
				synctest.Wait()
				if open.Load() != 0 {
					t.Errorf("%d connections are left", open.Load())
				}
			})
		})
	}
}

// EGR-7: the bound of connections. One above it is told so; when one ends
// another is taken in.
func TestConnectionBound(t *testing.T) {
	bubble(t, egress.Options{Limits: reins.Limits{EgressConnections: 3}}, func(t *testing.T, l *pipes, r *record) {
		var open []net.Conn
		for range 3 {
			open = append(open, tunnelTo(t, l, public+":443"))
		}
		c := l.dial()
		if head := readHead(c); !strings.HasPrefix(head, "HTTP/1.1 503") || !strings.Contains(head, "Reins-Egress: too-many\r\n") {
			t.Errorf("above the bound: %q", head)
		}
		if d := r.last(t); d.Allowed || d.Reason != egress.ReasonTooMany || d.Err().Code != reins.CodeQuotaExceeded {
			t.Errorf("decision %+v", d)
		}
		open[0].Close()
		synctest.Wait()
		tunnelTo(t, l, public+":443")
	})
}

// EGR-7: bytes per direction, over all connections together, exactly.
func TestByteBound(t *testing.T) {
	o := egress.Options{Policy: reins.EgressPolicy{MaxBytesDown: 1000}}
	bubble(t, o, func(t *testing.T, l *pipes, r *record) {
		const answer = "HTTP/1.1 200 Connection established\r\n\r\n"
		left := 1000
		for range 2 {
			c := tunnelTo(t, l, public+":443")
			left -= len(answer)
			c.Write(make([]byte, 300))
			if n, err := io.ReadFull(c, make([]byte, 300)); err != nil {
				t.Fatalf("below the bound: %d, %v", n, err)
			}
			left -= 300
			c.Close()
		}
		c := tunnelTo(t, l, public+":443")
		left -= len(answer)
		go c.Write(make([]byte, 2000))
		if n, _ := io.Copy(io.Discard, c); n != int64(left) {
			t.Errorf("got %d bytes, want the last %d", n, left)
		}
		if head := readHead(l.dial()); !strings.Contains(head, "Reins-Egress: byte-limit\r\n") {
			t.Errorf("after the bound: %q", head)
		}
		if d := r.last(t); d.Reason != egress.ReasonBytes {
			t.Errorf("decision %+v", d)
		}
	})
	var got atomic.Int64
	o = egress.Options{Policy: reins.EgressPolicy{MaxBytesUp: 500}, Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
		in, out := net.Pipe()
		go func() { n, _ := io.Copy(io.Discard, out); got.Add(n) }()
		return in, nil
	}}
	bubble(t, o, func(t *testing.T, l *pipes, _ *record) {
		head := connect(public + ":443")
		c := tunnelTo(t, l, public+":443")
		for range 10 {
			if _, err := c.Write(make([]byte, 100)); err != nil {
				break
			}
		}
		synctest.Wait()
		if want := int64(500 - len(head)); got.Load() != want {
			t.Errorf("%d bytes arrived, want %d", got.Load(), want)
		}
	})
}

// When the cell goes away its request ends at the host too, although the host
// is silent (EGR-7).
func TestClientGoesAway(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(ended)
	})
	p := start(t, egress.Options{}, newNetwork().to(public+":80", at))
	c := p.dial(t)
	io.WriteString(c.Conn, get("http://"+public+"/"))
	<-arrived
	c.Conn.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the host still waits")
	}
}

// What a host says unasked on a kept connection is nobody's answer.
func TestHostSpeaksUnasked(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan struct{}, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4096))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			io.Copy(io.Discard, c)
			c.Close()
			ended <- struct{}{}
		}
	}()
	p := start(t, egress.Options{}, newNetwork().to(public+":80", l.Addr().String()))
	c := p.dial(t)
	for range 2 {
		if resp, body := c.ask(get("http://" + public + "/")); body != "ok" {
			t.Errorf("answer %d %q", resp.StatusCode, body)
		}
		<-ended
	}
}
