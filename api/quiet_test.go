package api

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without a network, for tests in virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// TestViewerWithoutLife: a viewer that takes nothing for half a minute loses its
// connection, and so does one of which nothing is heard.
func TestViewerWithoutLife(t *testing.T) {
	for what, flood := range map[string]bool{"takes nothing": true, "answers no ping": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.bound, f.life = human(), time.Hour
				h, err := New(Options{Runtime: f, Authenticate: keys})
				if err != nil {
					t.Fatal(err)
				}
				in := pipes{make(chan net.Conn), make(chan struct{})}
				server := &http.Server{Handler: h}
				over := make(chan error)
				go func() { over <- server.Serve(in) }()
				knock := func() net.Conn {
					near, far := net.Pipe()
					in.conns <- far
					return near
				}
				client, err := NewClient(ClientOptions{URL: "http://localhost", Key: "p", Transport: &http.Transport{
					DialContext: func(context.Context, string, string) (net.Conn, error) { return knock(), nil }}})
				if err != nil {
					t.Fatal(err)
				}
				l, err := client.Acquire(t.Context(), theToken, human())
				if err != nil {
					t.Fatal(err)
				}
				c := knock()
				fmt.Fprintf(c, "GET /v1/leases/%s/view HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer p\r\n%s: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
					"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", l.Authority().LeaseID, capabilityHeader, theToken, viewProtocol)
				read := bufio.NewReader(c)
				res, err := http.ReadResponse(read, nil)
				if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
					t.Fatalf("%+v, %v", res, err)
				}
				v := f.view(t, 0)
				began := time.Now()
				if flood {
					v.offer(picture(1, 1<<20))
				} else {
					go func() { // it takes all
						for err == nil {
							_, err = read.Discard(1)
						}
					}()
				}
				<-v.closed.Done()
				if took, least := time.Since(began), patience; took < least || took > 2*patience {
					t.Errorf("it was dropped after %s", took)
				}
				c.Close()
				_ = client.Close()
				h.Close()
				_ = server.Close()
				<-over
				time.Sleep(time.Minute) // in virtual time: nothing is left that would go on
			})
		})
	}
}
