package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins"
)

func (h *Handler) viewRoutes() {
	rt := route{method: "GET", path: "/v1/leases/{lease}/view", id: "view", tag: "leases", participant: true, headers: tokenParameter,
		summary: "Watch the browser live",
		about: "A WebSocket of the subprotocol " + viewProtocol + ", for people's leases. Text messages of the server are ViewNews, binary ones frames; " +
			"the viewer sends ViewRequest: it acknowledges each frame that it has shown, and acts. Actions begin in the order in which they are sent. One view a lease: another is busy.",
		query: []parameter{{"window", "How many frames may be unacknowledged: 1 to 32, 4 by default."},
			{"take", "1 ends the lease's view that there is, for a viewer that lost its connection."}}}
	socket(h, rt, reflect.TypeFor[ViewRequest](), reflect.TypeFor[ViewNews](), h.view)
}

// errViewerLeft ends a view whose viewer is not there any more.
var errViewerLeft = reins.Errorf(reins.CodeCancelled, "the viewer left").In(reins.PhaseConnect)

// viewOptions reads the request of a view.
func viewOptions(r *http.Request) (o reins.SubscribeOptions, err error) {
	q := r.URL.Query()
	if given := q.Get("window"); given != "" {
		if o.Window, err = strconv.Atoi(given); err != nil || o.Window < 1 || o.Window > windowMax {
			return o, reins.Errorf(reins.CodeInvalidInput, "window %.40q is no number of frames; use 1 to %d", given, windowMax).In(reins.PhaseAdmission)
		}
	}
	switch given := q.Get("take"); given {
	case "", "0":
	case "1":
		o.Take = true
	default:
		return o, reins.Errorf(reins.CodeInvalidInput, "take %.40q is neither 0 nor 1", given).In(reins.PhaseAdmission)
	}
	return o, nil
}

// isUpgrade refuses what is no handshake of a WebSocket that speaks the protocol.
func isUpgrade(r *http.Request, protocol string) error {
	holds := func(header, want string) bool {
		for _, v := range r.Header.Values(header) {
			for part := range strings.SplitSeq(v, ",") {
				if strings.EqualFold(strings.TrimSpace(part), want) {
					return true
				}
			}
		}
		return false
	}
	if r.ProtoMajor != 1 || !holds("Connection", "upgrade") || !holds("Upgrade", "websocket") ||
		r.Header.Get("Sec-WebSocket-Version") != "13" || len(r.Header.Values("Sec-WebSocket-Key")) != 1 || !holds("Sec-WebSocket-Protocol", protocol) {
		return reins.Errorf(reins.CodeInvalidInput, "this address is a WebSocket; connect over HTTP/1.1 with the subprotocol %q", protocol).In(reins.PhaseAdmission)
	}
	return nil
}

// view serves one viewer (FRM-1). Everything that can be refused is refused
// before the connection becomes a WebSocket.
func (h *Handler) view(_ context.Context, c *call) error {
	l, err := c.held()
	if err != nil {
		return err
	}
	o, err := viewOptions(c.r)
	if err == nil {
		err = isUpgrade(c.r, viewProtocol)
	}
	if err != nil {
		return err
	}
	life, done, err := c.life(l.lease.Done())
	if err != nil {
		return err
	}
	defer done()
	ctx, leave := context.WithCancelCause(life)
	defer leave(nil)
	err = h.watch(c, &viewer{h: h, l: l, ctx: ctx, leave: leave}, o)
	if err != nil && l.over() {
		return l.reason()
	}
	return err
}

// watch opens the subscription, then the WebSocket, and serves it to its end.
func (h *Handler) watch(c *call, v *viewer, o reins.SubscribeOptions) (err error) {
	if v.sub, err = v.l.lease.Subscribe(v.ctx, o); err != nil {
		return err
	}
	defer v.sub.Close()
	// It lives a little longer than the view, for the last words.
	var hang context.CancelFunc
	v.wire, hang = context.WithCancel(context.WithoutCancel(v.ctx))
	defer hang()
	v.hang = hang
	v.silence = time.AfterFunc(h.o.KeepAlive+patience, func() { v.lost() })
	defer v.silence.Stop()
	v.conn, err = websocket.Accept(c.w, c.r, &websocket.AcceptOptions{
		Subprotocols:       []string{viewProtocol},
		InsecureSkipVerify: true, // Origin is the guard's
		OnPongReceived:     func(context.Context, []byte) { v.heard() },
	})
	if err != nil {
		return nil // it has answered
	}
	v.serve()
	return nil
}

// viewer is one connection of a live view. One goroutine reads, one takes what
// the subscription has, one for each action under way; whoever has something to
// say writes it, one message at a time. Nothing is kept for a slow viewer but
// what the subscription's window holds (FRM-3).
type viewer struct {
	h    *Handler
	l    *held
	sub  reins.Subscription
	conn *websocket.Conn

	ctx     context.Context // ends when the view is to
	leave   context.CancelCauseFunc
	wire    context.Context // ends when the connection is to
	hang    context.CancelFunc
	silence *time.Timer // ends a connection that shows no life

	out  sync.Mutex // held while a message is written
	acts actions
}

// heard notes that the viewer lives.
func (v *viewer) heard() { v.silence.Reset(v.h.o.KeepAlive + patience) }

// lost gives up a viewer that shows no life or takes nothing.
func (v *viewer) lost() {
	v.leave(errViewerLeft)
	v.hang()
}

// serve runs the view until it has ended and nothing of it goes on.
func (v *viewer) serve() {
	v.conn.SetReadLimit(-1) // the reader's own bound says more
	var wg sync.WaitGroup
	wg.Go(v.read)
	wg.Go(v.pump)
	wg.Go(v.ping)
	<-v.ctx.Done()
	cut := time.AfterFunc(lastWords, v.hang) // LSE-6
	_ = v.sub.Close()                        // it only ends what is not wanted any more
	v.last()
	cut.Stop()
	v.hang()
	_ = v.conn.CloseNow()
	wg.Wait()
	v.acts.wait()
}

// last says why there is no more, to a viewer that is there to hear it.
func (v *viewer) last() {
	code := websocket.StatusNormalClosure
	switch cause := context.Cause(v.ctx); {
	case errors.Is(cause, errViewerLeft):
		v.hang()
		return
	case v.h.stopping() && !v.l.over():
		code = websocket.StatusGoingAway // it comes back, perhaps to the next server
	default:
		why := reins.AsError(cause)
		if v.l.over() {
			why = v.l.reason()
		}
		if b, err := encodeNews(ViewNews{End: why}); err != nil || v.write(websocket.MessageText, b) != nil {
			return
		}
	}
	_ = v.conn.Close(code, "") // the reader ends with it
}

// pump sends what the subscription has, as fast as the viewer takes it.
func (v *viewer) pump() {
	for {
		u, err := v.sub.Next(v.ctx)
		if err != nil {
			v.leave(reins.AsError(err))
			return
		}
		if u.State != nil {
			err = v.say(ViewNews{State: u.State})
		}
		if err == nil && u.Err != nil {
			err = v.say(ViewNews{Error: u.Err})
		}
		if err == nil && u.Frame != nil {
			var head []byte
			if head, err = frameHead(u.Frame); err == nil {
				err = v.send(websocket.MessageBinary, head, u.Frame.JPEG)
			}
		}
		if err != nil {
			if v.ctx.Err() == nil { // else there are last words to come
				v.lost()
			}
			return
		}
	}
}

// ping shows an idle viewer life, and asks for a sign of its own.
func (v *viewer) ping() {
	tick := v.h.ticker()
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-v.ctx.Done():
			return
		}
		if v.out.TryLock() { // else it is being written to
			v.out.Unlock()
			_ = v.conn.Ping(v.wire) // the watchdog decides
		}
	}
}

func (v *viewer) say(n ViewNews) error {
	b, err := encodeNews(n)
	if err != nil {
		return err
	}
	return v.send(websocket.MessageText, b)
}

// send writes a message unless the view has ended.
func (v *viewer) send(kind websocket.MessageType, parts ...[]byte) error {
	v.out.Lock()
	defer v.out.Unlock()
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	return v.writeLocked(kind, parts)
}

// write is send for the last words.
func (v *viewer) write(kind websocket.MessageType, parts ...[]byte) error {
	v.out.Lock()
	defer v.out.Unlock()
	return v.writeLocked(kind, parts)
}

// writeLocked writes in pieces, so that a slow viewer counts as alive while it
// takes something. After half a message there can be no other.
func (v *viewer) writeLocked(kind websocket.MessageType, parts [][]byte) (err error) {
	stuck := time.AfterFunc(patience, v.lost)
	defer stuck.Stop()
	defer func() {
		if err != nil {
			v.hang()
		}
	}()
	out, err := v.conn.Writer(v.wire, kind)
	if err != nil {
		return err
	}
	for _, p := range parts {
		for len(p) > 0 {
			n := min(pieceSize, len(p))
			if _, err := out.Write(p[:n]); err != nil {
				return err
			}
			stuck.Reset(patience)
			v.heard()
			p = p[n:]
		}
	}
	return out.Close()
}
