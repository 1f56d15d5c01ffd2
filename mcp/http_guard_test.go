package mcp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// MCP-7, B113, B114: what a web page could send is refused before anything else
// is looked at; names and origins that were given go on.
func TestHTTPGuard(t *testing.T) {
	plain := serve(t, mcp.HTTPOptions{}, nil)
	named := serve(t, mcp.HTTPOptions{
		Hosts: []string{"browser-runtime", "tools.site.test:8443"}, Origins: []string{"https://tools.site.test"},
	}, nil)
	open := serve(t, mcp.HTTPOptions{AnyHost: true}, nil)
	const yes, no = http.StatusOK, http.StatusForbidden
	for _, c := range []struct {
		site         *site
		host, origin string
		want         int
	}{
		{plain, "evil.test:80", "", no}, {plain, "127.0.0.1.evil.test", "", no}, {plain, "localhost.evil.test", "", no},
		{plain, "0.0.0.0", "", no}, {plain, "2130706433", "", no}, {plain, "127.1", "", no}, {plain, "browser-runtime", "", no},
		{plain, "10.0.0.1:80", "", no}, {plain, "[::2]:80", "", no},
		{plain, "localhost:80", "", yes}, {plain, "LOCALHOST", "", yes}, {plain, "127.0.0.1:80", "", yes}, {plain, "127.0.0.1", "", yes},
		{plain, "127.8.9.1:4000", "", yes}, {plain, "[::1]:80", "", yes}, {plain, "[::ffff:127.0.0.1]:80", "", yes},
		{plain, "localhost:80", "http://evil.test", no}, {plain, "localhost:80", "null", no},
		{plain, "localhost:80", "http://localhost.evil.test", no}, {plain, "127.0.0.1:80", "http://127.0.0.1:81", no},
		{plain, "127.0.0.1:80", "http://localhost:80", no}, {plain, "127.0.0.1:80", "http://127.0.0.1:80", yes},
		{plain, "127.0.0.1:80", "chrome-extension://abc", no}, {plain, "127.0.0.1:80", "http://127.0.0.1:80/", no},
		{named, "browser-runtime:80", "", yes}, {named, "Browser-Runtime", "", yes}, {named, "tools.site.test:8443", "", yes},
		{named, "tools.site.test", "", no}, {named, "localhost", "https://tools.site.test", yes}, {named, "localhost", "http://tools.site.test", no},
		{open, "evil.test", "", yes}, {open, "evil.test", "http://other.test", no},
	} {
		a := c.site.peer("ann").post(hello, "Host", c.host, "Origin", c.origin)
		if a.status != c.want || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("host %q origin %q: %d %s", c.host, c.origin, a.status, a.body)
		}
		refused := c.host
		if c.origin != "" {
			refused = c.origin
		}
		if c.want == no && (a.err == nil || !strings.Contains(a.err.Message, refused)) {
			t.Errorf("host %q origin %q: %s does not name what was refused", c.host, c.origin, a.body)
		}
	}
	// Without a known peer the answer is the same: the guard stands first.
	nobody := plain.peer("")
	for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
		a := nobody.do(nobody.request(t.Context(), method, "", "Origin", "http://evil.test", "Access-Control-Request-Method", "POST"))
		if a.status != no || a.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("%s: %d", method, a.status)
		}
	}
	if n := len(plain.keys.of("token-ann")); n != 1 {
		t.Errorf("%d leases", n)
	}
}

// MCP-7: bodies above 4 MiB are refused, those up to it are not.
func TestHTTPBodyBound(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	p := s.peer("ann")
	p.initialize()
	call := pressing(1, "A")
	fits := call + strings.Repeat(" ", 4<<20-len(call))
	if a := p.post(fits); a.status != http.StatusOK {
		t.Errorf("4 MiB: %d %s", a.status, a.body)
	}
	if a := p.post(fits + " "); a.status != http.StatusRequestEntityTooLarge || a.err == nil {
		t.Errorf("above: %d %s", a.status, a.body)
	}
	chunked := p.request(t.Context(), "POST", "")
	chunked.Body, chunked.ContentLength = readCloser{strings.NewReader(fits + " ")}, -1
	if a := p.do(chunked); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: %d %s", a.status, a.body)
	}
	if text, bad := p.press(2, "A"); bad {
		t.Error(text)
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// MCP-6, B110: an ID that a client chose is none, so that nobody is led into a
// session that another knows; and a place in another's stream is none in one's own.
func TestHTTPSessionsAreNotChosen(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	p := s.peer("ann")
	for _, id := range []string{"chosen", strings.Repeat("x", 10_000), "../x", "' or 1=1"} {
		a := p.do(p.request(t.Context(), "POST", hello, "Mcp-Session-Id", id))
		if a.status != http.StatusNotFound || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%.20q: %d %s", id, a.status, a.body)
		}
	}
	if n := len(s.keys.of("token-ann")); n != 0 {
		t.Errorf("%d leases", n)
	}
	p.initialize()
	call := p.post(pressing(1, "A"))
	thief := s.peer("bob")
	thief.initialize()
	for _, event := range []string{call.event, "x", strings.Repeat("9", 10_000), "_0", "0_0", "-1"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		res, err := s.http.Do(thief.request(ctx, "GET", "", "Last-Event-ID", event))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body) // a stream that has nothing to say stays open
		cancel()
		res.Body.Close()
		if event == "" || strings.Contains(string(b), "result") {
			t.Errorf("%.20q gave %d %s", event, res.StatusCode, b)
		}
	}
	if text, bad := p.press(2, "B"); bad {
		t.Error(text)
	}
}

// OPS-1: a batch of an old version has no order, so it may hold one call.
func TestHTTPBatch(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	p := s.peer("ann")
	a := p.post(strings.Replace(hello, "2025-11-25", "2025-03-26", 1))
	p.session = a.header.Get("Mcp-Session-Id")
	p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if a := p.post("[" + pressing(1, "A") + "," + pressing(2, "B") + "]"); a.status != http.StatusBadRequest || a.err == nil {
		t.Errorf("two calls: %d %s", a.status, a.body)
	}
	if a := p.post("[" + pressing(1, "A") + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`); a.status != http.StatusOK || !strings.Contains(a.body, "Pressed") && a.result == nil {
		t.Errorf("one call: %d %s", a.status, a.body)
	}
	if n := len(s.keys.of("token-ann")[0].actions()); n != 1 {
		t.Errorf("%d calls ran", n)
	}
}

// Options that cannot be served are refused when the handler is made.
func TestHTTPOptions(t *testing.T) {
	good := func() mcp.HTTPOptions {
		return mcp.HTTPOptions{Authenticate: authenticate, Acquire: (&keys{}).acquire}
	}
	for name, spoil := range map[string]func(*mcp.HTTPOptions){
		"no authenticator":  func(o *mcp.HTTPOptions) { o.Authenticate = nil }, // MCP-7: never without
		"no acquisition":    func(o *mcp.HTTPOptions) { o.Acquire = nil },
		"a lease":           func(o *mcp.HTTPOptions) { o.Lease = give(nil) },
		"a readiness":       func(o *mcp.HTTPOptions) { o.Readiness = func() reins.Readiness { return reins.Readiness{} } },
		"a short idle":      func(o *mcp.HTTPOptions) { o.Idle = 1 },
		"negative sessions": func(o *mcp.HTTPOptions) { o.Sessions = -1 },
		"unknown tools":     func(o *mcp.HTTPOptions) { o.Tools = []string{"x"} },
		"a wildcard":        func(o *mcp.HTTPOptions) { o.Hosts = []string{"*"} },
		"an address":        func(o *mcp.HTTPOptions) { o.Hosts = []string{"http://a.test"} },
		"a bare origin":     func(o *mcp.HTTPOptions) { o.Origins = []string{"a.test"} },
		"an origin's path":  func(o *mcp.HTTPOptions) { o.Origins = []string{"https://a.test/"} },
	} {
		o := good()
		spoil(&o)
		if _, err := mcp.NewHTTPHandler(o); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	h, err := mcp.NewHTTPHandler(good())
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
}
