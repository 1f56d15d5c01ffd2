package egress_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/reins-browser/reins/internal/egress"
)

// bench runs a proxy whose every public address leads to one listener.
func bench(b *testing.B, at string) string {
	n := newNetwork().name("site.example.com", []string{public}).to(public+":80", at).to(public+":443", at)
	p, err := egress.New(egress.Options{Resolver: n, Dial: n.dial})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	b.Cleanup(func() { p.Close(); <-served })
	return l.Addr().String()
}

// BenchmarkTunnel is the throughput of one stream, direct and through a tunnel.
func BenchmarkTunnel(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for buf := make([]byte, 64<<10); ; {
					if _, err := c.Write(buf); err != nil {
						return
					}
				}
			}()
		}
	}()
	door := bench(b, l.Addr().String())
	for _, way := range []string{"direct", "tunnel"} {
		b.Run(way, func(b *testing.B) {
			to := l.Addr().String()
			if way == "tunnel" {
				to = door
			}
			c, err := net.Dial("tcp", to)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			if way == "tunnel" {
				io.WriteString(c, connect("site.example.com:443"))
				readHead(c)
			}
			buf := make([]byte, 64<<10)
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRequest is one small request after another on kept connections.
func BenchmarkRequest(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
	defer s.Close()
	door := bench(b, s.Listener.Addr().String())
	for _, way := range []string{"direct", "proxy"} {
		b.Run(way, func(b *testing.B) {
			target, tr := s.URL, &http.Transport{}
			if way == "proxy" {
				target, tr.Proxy = "http://site.example.com/", http.ProxyURL(&url.URL{Scheme: "http", Host: door})
			}
			defer tr.CloseIdleConnections()
			for b.Loop() {
				resp, err := (&http.Client{Transport: tr}).Get(target)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

// BenchmarkConnect is the making of one tunnel, verdict included.
func BenchmarkConnect(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	door := bench(b, l.Addr().String())
	for b.Loop() {
		c, err := net.Dial("tcp", door)
		if err != nil {
			b.Fatal(err)
		}
		io.WriteString(c, connect("site.example.com:443"))
		readHead(c)
		c.Close()
	}
}
