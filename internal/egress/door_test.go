package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins/internal/egress"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http prints what a host said unasked
	goleak.VerifyTestMain(m)
}

// network is the world outside: names with addresses, and addresses that
// lead to listeners of the test. It remembers what was asked and dialled.
type network struct {
	mu      sync.Mutex
	names   map[string][][]string // answers in turn; the last one stays
	lead    map[string]string     // "93.184.216.34:80" to a listener
	asked   []string
	dialled []netip.AddrPort
	failure map[string]error // of a look-up
}

func newNetwork() *network {
	return &network{names: map[string][][]string{}, lead: map[string]string{}, failure: map[string]error{}}
}

// name makes host answer each list in turn.
func (n *network) name(host string, answers ...[]string) *network {
	n.names[host] = answers
	return n
}

// to makes an address lead to a listener.
func (n *network) to(addr, listener string) *network {
	n.lead[addr] = listener
	return n
}

func (n *network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, ok := strings.CutSuffix(host, ".")
	if !ok {
		return nil, fmt.Errorf("%q is not absolute", host)
	}
	n.asked = append(n.asked, host)
	if err := n.failure[host]; err != nil {
		return nil, err
	}
	answers := n.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		n.names[host] = answers[1:]
	}
	var out []netip.Addr
	for _, a := range answers[0] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

func (n *network) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, to)
	addr, ok := n.lead[to.String()]
	n.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("network is unreachable")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

func (n *network) seen() (asked []string, dialled []netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.asked...), append([]netip.AddrPort(nil), n.dialled...)
}

// record keeps decisions.
type record struct {
	mu   sync.Mutex
	list []egress.Decision
	more chan struct{}
}

func (r *record) add(d egress.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, d)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *record) all() []egress.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]egress.Decision(nil), r.list...)
}

// last is the newest decision.
func (r *record) last(t *testing.T) egress.Decision {
	t.Helper()
	all := r.all()
	if len(all) == 0 {
		t.Fatal("no decision was told")
	}
	return all[len(all)-1]
}

// running is a proxy on a real listener.
type running struct {
	*egress.Proxy
	addr string
	*record
}

func start(t *testing.T, o egress.Options, n *network) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{addr: l.Addr().String(), record: &record{more: make(chan struct{}, 1)}}
	if o.Audit == nil {
		o.Audit = r.add
	}
	if n != nil {
		o.Resolver, o.Dial = n, n.dial
	}
	if r.Proxy, err = egress.New(o); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		r.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve after Close: %v", err)
		}
	})
	return r
}

// client is an ordinary HTTP client that uses the proxy for everything.
func (r *running) client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.addr}), DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// conn speaks to the proxy byte by byte.
type conn struct {
	net.Conn
	*bufio.Reader
	t *testing.T
}

func (c *conn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (r *running) dial(t *testing.T) *conn {
	t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return &conn{c, bufio.NewReader(c), t}
}

// ask sends raw bytes and reads one answer with its body.
func (c *conn) ask(raw string) (*http.Response, string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, raw); err != nil {
		c.t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no answer to %.60q: %v", raw, err)
	}
	if method == "CONNECT" && resp.StatusCode == 200 || resp.StatusCode == 101 {
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp, string(body)
}

func get(target string) string {
	u, _ := url.Parse(target)
	return "GET " + target + " HTTP/1.1\r\nHost: " + u.Host + "\r\n\r\n"
}

func connect(target string) string {
	return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"
}

// origin is a real HTTP server of the test.
func origin(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

const public = "93.184.216.34" // an address that is nobody's in particular here

func wantReason(t *testing.T, resp *http.Response, want egress.Reason) {
	t.Helper()
	if got := egress.Reason(resp.Header.Get("Reins-Egress")); got != want {
		t.Errorf("status %d, reason %q; want %q", resp.StatusCode, got, want)
	}
}
