package webguard_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/webguard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a guarded server on loopback; its handler answers with the number
// of bytes of the body.
func serve(t *testing.T, o webguard.Options) string {
	t.Helper()
	g, err := webguard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(w http.ResponseWriter, _ *http.Request, e *reins.Error) {
		w.WriteHeader(e.Code.Info().Status)
		fmt.Fprint(w, e.Message)
	}
	s := httptest.NewServer(g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			refuse(w, r, webguard.BodyError(err))
			return
		}
		fmt.Fprint(w, len(b))
	}), refuse))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// raw sends a request as it stands and returns status, header and body.
func raw(t *testing.T, addr, request string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}

func request(method string, headers ...string) string {
	return method + " /x HTTP/1.1\r\n" + strings.Join(headers, "\r\n") + "\r\nConnection: close\r\n\r\n"
}

// TestWebPage is case B113: a page of the web that talks to a local server.
func TestWebPage(t *testing.T) {
	addr := serve(t, webguard.Options{Origins: []string{"http://localhost:3000"}})
	_, port, _ := net.SplitHostPort(addr)
	own := "Host: 127.0.0.1:" + port
	for _, c := range []struct {
		request string
		status  int
	}{
		{request("GET", "Host: localhost:"+port), 200},
		{request("GET", own), 200},
		{request("GET", "Host: [::1]:"+port), 200},
		{request("GET", "Host: LOCALHOST.:"+port), 200},
		{request("GET", "Host: localhost"), 200},
		{request("GET", "Host: evil.test:"+port), 403},
		{request("GET", "Host: 127.0.0.1.evil.test"), 403},
		{request("GET", "Host: localhost.evil.test:"+port), 403},
		{request("GET", "Host: x.localhost"), 403},
		{request("GET", "Host: 192.0.2.7:"+port), 403},
		{request("GET", "Host: 2130706433"), 403},
		{request("GET", "Host: 0x7f.1"), 403},
		{request("GET", "Host: 0.0.0.0:"+port), 403},
		{request("GET", "Host: [::ffff:127.0.0.1]:"+port), 200},
		{request("GET", "Host: "), 403},
		{request("GET", own, "Origin: http://127.0.0.1:"+port), 200},
		{request("GET", own, "Origin: http://evil.test"), 403},
		{request("GET", own, "Origin: null"), 403},
		{request("GET", own, "Origin: "), 403},
		{request("GET", own, "Origin: http://localhost.evil.test"), 403},
		{request("GET", own, "Origin: http://localhost:"+port), 403}, // another name is another origin
		{request("GET", own, "Origin: http://127.0.0.1:1"), 403},
		{request("GET", own, "Origin: http://127.0.0.1"), 403},
		{request("GET", own, "Origin: http://x@127.0.0.1:"+port), 403},
		{request("GET", own, "Origin: file://127.0.0.1:"+port), 403},
		{request("GET", own, "Origin: http://127.0.0.1:"+port, "Origin: http://127.0.0.1:"+port), 403},
		{request("GET", own, "Origin: http://localhost:3000"), 200},
		{request("OPTIONS", own, "Origin: http://evil.test", "Access-Control-Request-Method: POST"), 403},
		{request("GET", own, "Origin: http://evil.test", "Upgrade: websocket", "Sec-WebSocket-Key: x"), 403},
		{request("GET", own, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"), 403},
		{request("GET", own, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 200},
		{request("GET", own, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"), 403},
		{request("POST", own, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 403},
		{request("GET", own, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"), 200},
		{request("POST", own), 200},
		{request("POST", own, "Content-Length: 2", "Content-Type: application/json") + "{}", 200},
		{request("POST", own, "Content-Length: 2", "Content-Type: text/plain") + "{}", 400},
		{request("POST", own, "Content-Length: 2", "Content-Type: Text/Plain; charset=x") + "{}", 400},
		{request("POST", own, "Content-Type: application/x-www-form-urlencoded"), 400},
		{request("PUT", own, "Content-Length: 2", "Content-Type: multipart/form-data; boundary=x") + "{}", 400},
		{request("POST", own, "Content-Length: 2") + "{}", 400},
		{request("POST", own, "Content-Length: 2", "Content-Type: ;;") + "{}", 400},
	} {
		r, body := raw(t, addr, c.request)
		if r.StatusCode != c.status {
			t.Errorf("%q: %d %s, want %d", c.request, r.StatusCode, body, c.status)
		}
		for name := range r.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%q: answered with %s", c.request, name)
			}
		}
	}
}

// TestReachedByName is case B114: a setting adds names, and a refusal names
// what was refused and that setting.
func TestReachedByName(t *testing.T) {
	names := webguard.Options{Hosts: []string{"browser-runtime", "Tools.Site.Test", "only.test:8080"}, HostSetting: "--host"}
	for _, c := range []struct {
		options webguard.Options
		headers []string
		status  int
	}{
		{names, []string{"Host: browser-runtime:7777"}, 200},
		{names, []string{"Host: tools.site.test", "Origin: https://tools.site.test"}, 200}, // behind a proxy that ends TLS
		{names, []string{"Host: tools.site.test", "Origin: https://tools.site.test:444"}, 403},
		{names, []string{"Host: only.test:8080"}, 200},
		{names, []string{"Host: only.test"}, 403},
		{names, []string{"Host: sub.browser-runtime"}, 403},
		{webguard.Options{}, []string{"Host: browser-runtime:7777"}, 403},
		{webguard.Options{AnyHost: true}, []string{"Host: browser-runtime:7777"}, 200},
		{webguard.Options{AnyHost: true}, []string{"Host: browser-runtime", "Origin: http://evil.test"}, 403},
	} {
		if r, body := raw(t, serve(t, c.options), request("GET", c.headers...)); r.StatusCode != c.status {
			t.Errorf("%v: %d %s, want %d", c.headers, r.StatusCode, body, c.status)
		}
	}
	_, body := raw(t, serve(t, names), request("GET", "Host: other.test"))
	if !strings.Contains(body, `"other.test"`) || !strings.Contains(body, "--host") {
		t.Errorf("the refusal says %q", body)
	}
	_, body = raw(t, serve(t, webguard.Options{OriginSetting: "--origin"}), request("GET", "Host: localhost", "Origin: http://a.test"))
	if !strings.Contains(body, "http://a.test") || !strings.Contains(body, "--origin") {
		t.Errorf("the refusal says %q", body)
	}
}

// TestOwnAddress: an address cannot be rebound, so the one the connection
// arrived at is a name of the server, and no other is.
func TestOwnAddress(t *testing.T) {
	g, err := webguard.New(webguard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan error, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- g.Check(r) }))
	s.Listener.Close()
	if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.Listener = elsewhere{s.Listener}
	s.Start()
	defer s.Close()
	for host, ok := range map[string]bool{"192.0.2.9:8080": true, "192.0.2.9": true, "192.0.2.10:8080": false} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request("GET", "Host: "+host))
		if err := <-seen; (err == nil) != ok {
			t.Errorf("host %s: %v", host, err)
		}
		c.Close()
	}
}

// elsewhere accepts connections that arrived at 192.0.2.9.
type elsewhere struct{ net.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return arrived{c}, nil
}

type arrived struct{ net.Conn }

func (arrived) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 8080}
}

// TestTLS: over TLS an origin of plain HTTP is another one.
func TestTLS(t *testing.T) {
	g, err := webguard.New(webguard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "https://localhost/", nil)
	r.Host, r.TLS = "localhost", &tls.ConnectionState{}
	for origin, ok := range map[string]bool{"https://localhost": true, "http://localhost": false} {
		r.Header.Set("Origin", origin)
		if err := g.Check(r); (err == nil) != ok {
			t.Errorf("origin %s: %v", origin, err)
		}
	}
}

// TestBodies is MCP-7: above the bound a body is refused, whether or not its
// length is told, and streams are left to their handler.
func TestBodies(t *testing.T) {
	own, kind := "Host: localhost", "Content-Type: application/json"
	told := func(n int) string {
		return request("POST", own, kind, fmt.Sprintf("Content-Length: %d", n)) + strings.Repeat("x", n)
	}
	chunked := func(n int) string {
		return request("POST", own, kind, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n))
	}
	small := serve(t, webguard.Options{MaxBody: 10, Streams: func(r *http.Request) bool { return r.Method == "PUT" }})
	for _, c := range []struct {
		addr, request string
		status        int
	}{
		{small, told(10), 200}, {small, told(11), 400}, {small, chunked(10), 200}, {small, chunked(11), 400},
		{small, "PUT" + strings.TrimPrefix(told(11), "POST"), 200},
		{small, "PUT" + strings.TrimPrefix(chunked(11), "POST"), 200},
	} {
		r, body := raw(t, c.addr, c.request)
		if r.StatusCode != c.status {
			t.Errorf("%.80q: %d %s, want %d", c.request, r.StatusCode, body, c.status)
		}
		if c.status == 400 && !strings.Contains(body, "more than 10 bytes") {
			t.Errorf("%.80q: says %q", c.request, body)
		}
	}
	g, err := webguard.New(webguard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "http://localhost/", nil)
	r.Header.Set("Content-Type", "application/json")
	for n, ok := range map[int64]bool{4 << 20: true, 4<<20 + 1: false} {
		r.ContentLength = n
		if err := g.Check(r); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if e := webguard.BodyError(io.ErrUnexpectedEOF); e.Code != reins.CodeInvalidInput || !errors.Is(e, io.ErrUnexpectedEOF) {
		t.Errorf("a torn body: %v", e)
	}
}

// TestLargeBodyIsAnswered: who sends too much gets to read so, although clients
// write all of a body before they read.
func TestLargeBodyIsAnswered(t *testing.T) {
	addr := serve(t, webguard.Options{MaxBody: 1000})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, told := range []bool{true, false} {
		for range 10 {
			body := io.Reader(strings.NewReader(strings.Repeat("x", 8<<20)))
			if !told {
				body = io.MultiReader(body)
			}
			r, err := http.NewRequest("POST", "http://"+addr, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			res, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatalf("length told %v: %v", told, err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 400 || !strings.Contains(string(b), "1000 bytes") {
				t.Fatalf("length told %v: %d %s %v", told, res.StatusCode, b, err)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []webguard.Options{
		{Hosts: []string{""}}, {Hosts: []string{"a b"}}, {Hosts: []string{"https://x"}}, {Hosts: []string{"x:"}},
		{Hosts: []string{"x:80a"}}, {Hosts: []string{"*"}}, {Origins: []string{"x"}}, {Origins: []string{"https://x/"}},
		{Origins: []string{"null"}}, {Origins: []string{"*"}}, {MaxBody: -1},
	} {
		if _, err := webguard.New(o); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("New(%+v): %v", o, err)
		}
	}
}

// TestCheckListen is MCP-7 and case B114: no listening off loopback without
// authentication.
func TestCheckListen(t *testing.T) {
	for address, loopback := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "localhost:80": true, "127.9.9.9:1": true,
		"0.0.0.0:80": false, ":80": false, "[::]:80": false, "192.168.1.5:80": false, "example.com:80": false,
		"localhost.evil.test:80": false, "": false,
	} {
		if err := webguard.CheckListen(address, false); (err == nil) != loopback {
			t.Errorf("%q without authentication: %v", address, err)
		}
		if err := webguard.CheckListen(address, true); err != nil {
			t.Errorf("%q with authentication: %v", address, err)
		}
	}
}

// FuzzCheck: whatever a client claims, the guard answers, and only a name of
// this server passes.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"localhost", "127.0.0.1:8", "evil.test", "[::1]", "[::1%25lo]:80", "\x00", "a:b:c", "null", "http://localhost"} {
		f.Add(s, "http://"+s, "application/json")
	}
	g, err := webguard.New(webguard.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host, origin, kind string) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Host, r.Header = host, http.Header{"Origin": {origin}, "Content-Type": {kind}}
		if err := g.Check(r); err != nil {
			if c := reins.CodeOf(err); c != reins.CodeDenied && c != reins.CodeInvalidInput {
				t.Fatalf("code %s", c)
			}
			return
		}
		name := strings.ToLower(host)
		if !strings.HasPrefix(name, "localhost") && !strings.HasPrefix(name, "127.") && !strings.Contains(name, ":") {
			t.Fatalf("host %q passed", host)
		}
	})
}
