package egress_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// EGR-2: plain HTTP in absolute form reaches the host by its judged address,
// and the host sees nothing of the proxy (EGR-8).
func TestForward(t *testing.T) {
	seen := make(chan *http.Request, 1)
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		seen <- r
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		io.WriteString(w, "hello")
	})
	n := newNetwork().name("site.example.com", []string{public}).to(public+":80", at)
	p := start(t, egress.Options{}, n)
	c := p.dial(t)
	resp, body := c.ask("GET http://Site.Example.com/a%2Fb|c/?x=1;2&%zz HTTP/1.1\r\nHost: site.example.com\r\n" +
		"Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Page: 2\r\n\r\n")
	if resp.StatusCode != 200 || body != "hello" || len(resp.Header["Set-Cookie"]) != 2 {
		t.Fatalf("answer %d %q %v", resp.StatusCode, body, resp.Header)
	}
	r := <-seen
	if r.RequestURI != "/a%2Fb|c/?x=1;2&%zz" || r.Host != "site.example.com" {
		t.Errorf("host got %q for %q", r.RequestURI, r.Host)
	}
	want := http.Header{"X-Page": {"2"}}
	if fmt.Sprint(r.Header) != fmt.Sprint(want) {
		t.Errorf("host got fields %v, want %v", r.Header, want)
	}
	for _, name := range []string{"Via", "Server", "X-Forwarded-For", "Reins-Egress"} {
		if v, ok := resp.Header[name]; ok {
			t.Errorf("the answer has %s: %q", name, v)
		}
	}
	d := p.last(t)
	if !d.Allowed || d.Reason != egress.ReasonAllowed || d.Host != "site.example.com" || d.Port != 80 || d.Address.String() != public {
		t.Errorf("decision %+v", d)
	}
	// The connection is kept, on both sides.
	if resp, _ := c.ask(get("http://site.example.com/2")); resp.StatusCode != 200 {
		t.Errorf("second request: %d", resp.StatusCode)
	}
	<-seen
	if _, dialled := n.seen(); len(dialled) != 1 {
		t.Errorf("dialled %v, want one", dialled)
	}
	if len(p.all()) != 2 {
		t.Errorf("%d decisions, want one for each request", len(p.all()))
	}
}

// A field that the host left out is not added on the way (EGR-8).
func TestForwardAddsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 4096))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nX-Own: 1\r\n\r\n<html>hello</p>")
	}()
	p := start(t, egress.Options{}, newNetwork().to(public+":80", l.Addr().String()))
	resp, _ := p.dial(t).ask(get("http://" + public + "/"))
	if len(resp.Header) != 2 { // X-Own and Content-Length
		t.Errorf("the answer has fields %v", resp.Header)
	}
}

// A host can neither speak for the proxy nor make a request a tunnel (EGR-8).
func TestHostCannotPretend(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			t.Errorf("asked to change to %q", r.Header.Get("Upgrade"))
		}
		w.Header().Set("Reins-Egress", "denied-host")
		if r.URL.Path == "/switch" {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\nraw")
		}
	})
	p := start(t, egress.Options{}, newNetwork().to(public+":80", at))
	resp, _ := p.dial(t).ask(get("http://" + public + "/"))
	if v, ok := resp.Header["Reins-Egress"]; ok || resp.StatusCode != 200 {
		t.Errorf("answer %d with Reins-Egress %q", resp.StatusCode, v)
	}
	for _, fields := range []string{"", "Connection: Upgrade\r\nUpgrade: h2c\r\n"} {
		resp, _ = p.dial(t).ask("GET http://" + public + "/switch HTTP/1.1\r\nHost: " + public + "\r\n" + fields + "\r\n")
		wantReason(t, resp, egress.ReasonBroken)
	}
}

// EGR-7: bodies stream both ways, with trailers, and 100-continue works.
func TestStreaming(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "X-Sum")
		buf := make([]byte, 1024)
		for {
			n, err := r.Body.Read(buf)
			w.Write(bytes.ToUpper(buf[:n]))
			w.(http.Flusher).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("X-Sum", r.Trailer.Get("X-Check"))
	})
	p := start(t, egress.Options{}, newNetwork().to(public+":80", at))
	c := p.dial(t)
	head := "POST http://" + public + "/ HTTP/1.1\r\nHost: " + public + "\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nTrailer: X-Check\r\nExpect: 100-continue\r\n\r\n"
	io.WriteString(c.Conn, head)
	line, _ := c.ReadString('\n')
	if !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("first line %q, want 100", line)
	}
	c.ReadString('\n')
	io.WriteString(c.Conn, "3\r\nabc\r\n")
	resp, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "ABC" {
		t.Fatalf("before the request's end: %q, %v; %d %v, %v", got, err, resp.StatusCode, resp.Header, p.all())
	}
	io.WriteString(c.Conn, "2\r\nde\r\n0\r\nX-Check: 42\r\n\r\n")
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "DE" || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("rest %q, trailer %v, %v", rest, resp.Trailer, err)
	}
	// After a chunked body no other head is read from the connection (EGR-8).
	if _, err := c.Reader.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

// EGR-2: an upgrade to WebSocket passes through the same verdict.
func TestWebSocketUpgrade(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-Websocket-Key") == "" {
			http.Error(w, "no upgrade", 400)
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
		io.Copy(c, rw)
	})
	p := start(t, egress.Options{}, newNetwork().name("ws.example.com", []string{public}).to(public+":80", at))
	c := p.dial(t)
	ask := "GET http://ws.example.com/chat HTTP/1.1\r\nHost: ws.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n"
	resp, _ := c.ask(ask)
	if resp.StatusCode != 101 || resp.Header.Get("Sec-Websocket-Accept") != "x" {
		t.Fatalf("answer %d %v", resp.StatusCode, resp.Header)
	}
	io.WriteString(c.Conn, "\x00frame\xff")
	got := make([]byte, 7)
	if _, err := io.ReadFull(c.Reader, got); err != nil || string(got) != "\x00frame\xff" {
		t.Errorf("echo %q, %v", got, err)
	}
	refused, _ := p.dial(t).ask(strings.ReplaceAll(ask, "ws.example.com", "127.0.0.1"))
	wantReason(t, refused, egress.ReasonAddress)
	// Not taken: the next head would not be checked, so the connection ends.
	c = p.dial(t)
	resp, _ = c.ask(strings.Replace(ask, "Sec-WebSocket-Key: eA==\r\n", "", 1))
	if _, err := c.Reader.ReadByte(); resp.StatusCode != 400 || err != io.EOF {
		t.Errorf("answer %d and then %v", resp.StatusCode, err)
	}
}

// EGR-2: https goes through a tunnel, and half of it may end before the other.
func TestConnect(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "over TLS") }))
	defer secure.Close()
	n := newNetwork().name("secure.example.com", []string{public}).to(public+":443", secure.Listener.Addr().String())
	p := start(t, egress.Options{}, n)
	client := p.client(t)
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	resp, err := client.Get("https://secure.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "over TLS" {
		t.Errorf("body %q", body)
	}
	if d := p.last(t); d.Method != "CONNECT" || !d.Allowed || d.Port != 443 || d.Address.String() != public {
		t.Errorf("decision %+v", d)
	}
}

// The end of one direction of a tunnel does not end the other; bytes sent
// before the answer are not lost.
func TestConnectHalfClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c) // until the client ends its half
		fmt.Fprintf(c, "got %q", all)
	}()
	p := start(t, egress.Options{}, newNetwork().to(public+":443", l.Addr().String()))
	c := p.dial(t)
	resp, _ := c.ask(connect(public+":443") + "early ")
	if resp.StatusCode != 200 || len(resp.Header) != 0 {
		t.Fatalf("answer %d %v", resp.StatusCode, resp.Header)
	}
	io.WriteString(c.Conn, "late")
	c.Conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c.Reader); err != nil || string(got) != `got "early late"` {
		t.Errorf("answer %q, %v", got, err)
	}
}

// EGR-5 over real sockets: an exact private target opens itself only.
func TestPrivateTarget(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "inside") })
	other := origin(t, func(http.ResponseWriter, *http.Request) { t.Error("the other listener was reached") })
	port := at[strings.LastIndexByte(at, ':'):]
	for _, allow := range []string{at, "localhost" + port} {
		p := start(t, egress.Options{Policy: reins.EgressPolicy{AllowPrivate: []string{allow}}}, nil)
		for _, host := range []string{at, "localhost" + port, "LOCALHOST" + port, "app.localhost" + port} {
			if resp, body := p.dial(t).ask(get("http://" + host + "/")); body != "inside" {
				t.Errorf("allowing %s: %s gave %d %q", allow, host, resp.StatusCode, body)
			}
		}
		for _, host := range []string{other, "127.0.0.2" + port, "0.0.0.0" + port, "[::ffff:127.0.0.2]" + port} {
			resp, _ := p.dial(t).ask(get("http://" + host + "/"))
			wantReason(t, resp, egress.ReasonAddress)
		}
		resp, _ := p.dial(t).ask(get("http://localhost" + other[strings.LastIndexByte(other, ':'):] + "/"))
		wantReason(t, resp, egress.ReasonName)
	}
}

// EGR-8: a document gets a page that names reason and host, escaped; anything
// else a plain status; each one record.
func TestRefusalForms(t *testing.T) {
	p := start(t, egress.Options{}, newNetwork())
	for _, tt := range []struct {
		name, fields string
		page         bool
	}{
		{"navigation over http", "Accept: text/html,application/xhtml+xml\r\n", true},
		{"frame", "Accept: */*\r\nSec-Fetch-Dest: iframe\r\n", true},
		{"fetch", "Accept: text/html\r\nSec-Fetch-Dest: empty\r\n", false},
		{"image", "Accept: image/*\r\n", false},
	} {
		resp, body := p.dial(t).ask("GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n" + tt.fields + "\r\n")
		wantReason(t, resp, egress.ReasonAddress)
		isPage := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
		if resp.StatusCode != 403 || isPage != tt.page || !strings.Contains(body, "10.0.0.1") || !strings.Contains(body, "RFC 1918") {
			t.Errorf("%s: %d %q %q", tt.name, resp.StatusCode, resp.Header.Get("Content-Type"), body)
		}
		if tt.page && (!strings.Contains(body, "forbidden-address") || len(body) > 2048) {
			t.Errorf("%s: page of %d bytes: %s", tt.name, len(body), body)
		}
	}
	if len(p.all()) != 4 {
		t.Errorf("%d records, want 4", len(p.all()))
	}
	_, body := p.dial(t).ask("GET http://a'b&c/ HTTP/1.1\r\nHost: a'b&c\r\nAccept: text/html\r\n\r\n")
	if strings.Contains(body, "b&c") || !strings.Contains(body, "b&amp;c") {
		t.Errorf("the page does not escape: %s", body)
	}
}

// Failures of the way, not of the policy, say so in plain words (EGR-8, EGR-10).
func TestFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "SSH-2.0-x\r\n")
			c.Close()
		}
	}()
	n := newNetwork().name("none.example.com", []string{}).
		name("refused.example.com", []string{public}).to(public+":80", nobody).
		name("unreachable.example.com", []string{"93.184.216.35"}).
		name("ssh.example.com", []string{"93.184.216.36"}).to("93.184.216.36:80", silent.Addr().String())
	n.failure["servfail.example.com"] = &net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}
	n.failure["slow.example.com"] = &net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true}
	p := start(t, egress.Options{}, n)
	for host, want := range map[string]egress.Reason{
		"unknown.example.com":     egress.ReasonDNS,
		"none.example.com":        egress.ReasonDNS,
		"servfail.example.com":    egress.ReasonDNS,
		"slow.example.com":        egress.ReasonTimeout,
		"refused.example.com":     egress.ReasonRefused,
		"unreachable.example.com": egress.ReasonNoRoute,
		"ssh.example.com":         egress.ReasonBroken,
	} {
		resp, body := p.dial(t).ask(get("http://" + host + "/"))
		wantReason(t, resp, want)
		if resp.StatusCode != 502 || !strings.Contains(body, host) {
			t.Errorf("%s: %d %q", host, resp.StatusCode, body)
		}
		if want == egress.ReasonBroken {
			continue // a tunnel carries anything
		}
		resp, _ = p.dial(t).ask(connect(strings.Replace(host, "refused.", "Refused.", 1) + ":80"))
		wantReason(t, resp, want)
		if d := p.last(t); d.Err() == nil || d.Err().Code != reins.CodeNavigationFailed {
			t.Errorf("%s: error %v", host, d.Err())
		}
	}
}

// EGR-1: before a cell has an owner nothing passes; afterwards its rules hold.
func TestAdopt(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "public") })
	n := newNetwork().name("site.example.com", []string{public}).to(public+":80", at)
	p := start(t, egress.Options{Refuse: true}, n)
	c := p.dial(t)
	for _, raw := range []string{get("http://site.example.com/"), get("http://127.0.0.1/")} {
		resp, _ := c.ask(raw)
		wantReason(t, resp, egress.ReasonNoOwner)
	}
	if asked, _ := n.seen(); len(asked) != 0 {
		t.Errorf("asked for %v", asked)
	}
	mine := &record{more: make(chan struct{}, 1)}
	if err := p.Adopt(reins.EgressPolicy{AllowHosts: []string{"?"}}, mine.add); reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Errorf("bad policy: %v", err)
	}
	if err := p.Adopt(reins.EgressPolicy{DenyHosts: []string{"bad.example.com"}}, mine.add); err != nil {
		t.Fatal(err)
	}
	if _, body := c.ask(get("http://site.example.com/")); body != "public" {
		t.Errorf("adopted: %q", body)
	}
	resp, _ := c.ask(get("http://bad.example.com/"))
	wantReason(t, resp, egress.ReasonDenied)
	if len(p.all()) != 2 || len(mine.all()) != 2 {
		t.Errorf("%d and %d decisions, want 2 and 2", len(p.all()), len(mine.all()))
	}
	up := start(t, egress.Options{Refuse: true}, n)
	if err := up.Adopt(reins.EgressPolicy{MaxBytesUp: 50, MaxBytesDown: 1 << 20}, nil); err != nil {
		t.Fatal(err)
	}
	c = up.dial(t)
	io.WriteString(c.Conn, get("http://site.example.com/"+strings.Repeat("x", 50)))
	if _, err := c.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the bytes of the adopted policy are no bound: %v", err)
	}
	if err := p.Adopt(reins.EgressPolicy{}, nil); reins.CodeOf(err) != reins.CodeConflict {
		t.Errorf("second owner: %v", err)
	}
}

// Close ends tunnels, kept connections and half-sent heads at once (EGR-7).
func TestCloseEndsAll(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan struct{})
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(io.Discard, c)
		close(ended)
	}()
	p := start(t, egress.Options{}, newNetwork().to(public+":443", l.Addr().String()))
	tunnel, kept, half := p.dial(t), p.dial(t), p.dial(t)
	tunnel.ask(connect(public + ":443"))
	kept.ask(get("http://10.0.0.1/"))
	io.WriteString(half.Conn, "GET http://")
	begun := time.Now()
	p.Close()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	<-ended
	for i, c := range []*conn{tunnel, kept, half} {
		if _, err := c.ReadByte(); err == nil {
			t.Errorf("connection %d still speaks", i)
		}
	}
	p.Close()
}
