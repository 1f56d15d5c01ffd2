package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// tunnel answers a CONNECT: it dials first, so that the browser learns of a
// failure, and then carries bytes both ways without looking at them.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, x *exchange) {
	origin, ref := p.dial(r.Context(), x.route)
	if ref != nil {
		x.refuse(w, r, ref)
		return
	}
	defer origin.Close()
	if !x.decide(true, origin.addr, nil) {
		x.refuse(w, r, unheard())
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		x.refuse(w, r, refuse(ReasonInternal, "the connection cannot become a tunnel"))
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if err := sendBuffered(origin, buffered.Reader); err != nil {
		return
	}
	// A tunnel has no request whose end could end it.
	stop := context.AfterFunc(p.ctx, func() { conn.Close(); origin.Close() })
	defer stop()
	p.splice(conn, origin)
}

// sendBuffered passes on what the browser sent before it had an answer.
func sendBuffered(to io.Writer, from *bufio.Reader) error {
	early, err := from.Peek(from.Buffered())
	if err != nil {
		return err
	}
	_, err = to.Write(early)
	return err
}

// splice copies both ways. The end of one direction is passed on and the
// other goes on; a failure ends both. It returns when both have ended.
func (p *Proxy) splice(a, b net.Conn) {
	var up sync.WaitGroup
	up.Go(func() { p.copyHalf(b, a) })
	p.copyHalf(a, b)
	up.Wait()
}

func (p *Proxy) copyHalf(to, from net.Conn) {
	buf := p.buffers.Get()
	defer p.buffers.Put(buf)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && closeWrite(to) == nil:
		default:
			to.Close()
			from.Close()
		}
		return
	}
}
