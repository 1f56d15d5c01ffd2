package api

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins"
)

// Subscribe implements [reins.Lease]. Its context ends the connecting only. A
// subscription whose connection breaks connects again, in the place of the one
// before, until the lease has ended, the server says that there is no view any
// more, or another connection took it over; frames of before are then late. What
// waits for a slow caller is the newest state and the newest frames of the
// window.
func (l *lease) Subscribe(ctx context.Context, o reins.SubscribeOptions) (reins.Subscription, error) {
	if err := l.live(); err != nil {
		return nil, err
	}
	if err := reins.ContextError(ctx); err != nil {
		return nil, err
	}
	if o.Window < 0 || o.Window > windowMax {
		return nil, reins.Errorf(reins.CodeInvalidInput, "window is %d; use 1 to %d, or 0 for the default", o.Window, windowMax)
	}
	s := &watch{l: l, window: o.Window, wake: make(chan struct{}, 1), acked: make(chan struct{}, 1), over: make(chan struct{})}
	s.ctx, s.stop = context.WithCancelCause(l.ctx)
	l.mu.Lock()
	take := o.Take || l.watched // the server may not know yet that one was closed
	l.mu.Unlock()
	n, err := s.dial(ctx, take)
	if err != nil {
		s.stop(nil)
		return nil, l.judged(err)
	}
	if err := l.c.begin(func() { s.run(n) }); err != nil {
		s.stop(nil)
		n.close()
		return nil, err
	}
	return s, nil
}

// watch is a [reins.Subscription] that is elsewhere.
type watch struct {
	l      *lease
	window int // as it was asked for; 0 is the server's default
	ctx    context.Context
	stop   context.CancelCauseFunc
	wake   chan struct{} // there is something for Next
	acked  chan struct{} // there are acknowledgements to send
	over   chan struct{} // closed when nothing of it goes on

	mu     sync.Mutex // guards all below
	state  *reins.ViewState
	frames []*reins.Frame // that nobody has seen; the oldest go first
	errs   []*reins.Error
	open   []reins.FrameID // that came and were not acknowledged
	acks   []reins.FrameID // to be sent
	ended  *reins.Error
}

var _ reins.Subscription = (*watch)(nil)

const (
	windowDefault = 4
	errsMax       = 32
	acksMax       = 4 * windowMax
	firstWait     = 20 * time.Millisecond // before connecting again
)

var errUnsubscribed = reins.Errorf(reins.CodeCancelled, "the live view was closed by its owner")

// Next implements [reins.Subscription].
func (s *watch) Next(ctx context.Context) (reins.Update, error) {
	for {
		if err := reins.ContextError(ctx); err != nil {
			return reins.Update{}, err
		}
		u, ok, err := s.take()
		if ok || err != nil {
			return u, err
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			s.finish(s.why())
		case <-ctx.Done():
		}
	}
}

// take returns what there is.
func (s *watch) take() (u reins.Update, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil && s.ctx.Err() != nil {
		s.ended = s.why()
	}
	if s.ended != nil {
		return u, false, s.ended
	}
	if u.State = s.state; u.State != nil {
		s.state = nil
	}
	if len(s.errs) > 0 {
		u.Err, s.errs = s.errs[0], s.errs[1:]
	}
	if len(s.frames) > 0 {
		u.Frame, s.frames = s.frames[0], s.frames[1:]
	}
	if len(s.errs)+len(s.frames) > 0 {
		rouse(s.wake)
	}
	return u, u.State != nil || u.Err != nil || u.Frame != nil, nil
}

// why is the reason for which the context ended.
func (s *watch) why() *reins.Error {
	if err := s.l.live(); err != nil {
		return reins.AsError(err)
	}
	if s.l.c.ctx.Err() != nil {
		return errClosed()
	}
	return reins.AsError(context.Cause(s.ctx))
}

func rouse(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Ack implements [reins.Subscription]. It judges by what came here; the server
// settles it.
func (s *watch) Ack(id reins.FrameID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.ctx.Err() != nil {
		return false
	}
	for i, open := range s.open {
		if open == id {
			s.open = slices.Delete(s.open, i, i+1)
			s.acks = newestOf(append(s.acks, id), acksMax) // a server that takes none needs none
			rouse(s.acked)
			return true
		}
	}
	return false
}

// Close implements [reins.Subscription].
func (s *watch) Close() error {
	s.finish(errUnsubscribed)
	s.l.mu.Lock()
	s.l.watched = true
	s.l.mu.Unlock()
	<-s.over
	return nil
}

// finish ends it for the first reason that is told.
func (s *watch) finish(why *reins.Error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = why
		s.state, s.frames, s.errs, s.open, s.acks = nil, nil, nil, nil, nil
	}
	s.mu.Unlock()
	s.stop(why)
}

// line is one connection of a subscription.
type line struct {
	conn    *websocket.Conn
	ctx     context.Context // ends with the subscription, or with silence
	hang    context.CancelFunc
	silence *time.Timer
}

func (n *line) heard() { n.silence.Reset(silence) }

func (n *line) close() {
	n.silence.Stop()
	n.hang()
	if n.conn != nil {
		_ = n.conn.CloseNow() // the server sees that it is gone
	}
}

// dial opens a connection, in the place of one before when take is set.
func (s *watch) dial(ctx context.Context, take bool) (_ *line, err error) {
	c := s.l.c
	ctx, cancel := c.within(ctx)
	defer cancel(nil)
	q := url.Values{}
	if s.window != 0 {
		q.Set("window", strconv.Itoa(s.window))
	}
	if take {
		q.Set("take", "1")
	}
	head := http.Header{capabilityHeader: {string(s.l.token)}}
	if c.key != "" {
		head.Set("Authorization", "Bearer "+c.key)
	}
	n := &line{}
	n.ctx, n.hang = context.WithCancel(s.ctx)
	n.silence = time.AfterFunc(silence, n.hang)
	k := &knock{c: c}
	n.conn, _, err = websocket.Dial(ctx, c.base+s.l.path("/view")+"?"+q.Encode(), &websocket.DialOptions{
		HTTPClient:     &http.Client{Transport: k, CheckRedirect: c.http.CheckRedirect},
		HTTPHeader:     head,
		Subprotocols:   []string{viewProtocol},
		OnPingReceived: func(context.Context, []byte) bool { n.heard(); return true },
	})
	switch {
	case k.refusal != nil:
		err = k.refusal
	case err != nil:
		err = c.lost(ctx, request{}, err, true)
	case n.conn.Subprotocol() != viewProtocol:
		err = reins.Errorf(reins.CodeTransportFailure, "the server at %s does not speak %s; check the address and its version", c.base, viewProtocol).In(reins.PhaseConnect)
	default:
		n.conn.SetReadLimit(newsMax)
		return n, nil
	}
	n.close()
	return nil, err
}

// knock is the transport of one handshake. It reads what a refusal says.
type knock struct {
	c       *Client
	refusal *reins.Error
}

// RoundTrip implements http.RoundTripper.
func (k *knock) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := k.c.sockets.RoundTrip(r)
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		k.refusal = k.c.refusal(res)
		res.Body = http.NoBody
	}
	return res, err
}

// run serves connections until the subscription has ended.
func (s *watch) run(n *line) {
	defer close(s.over)
	for wait := firstWait; ; wait = min(2*wait, 2*time.Second) {
		if n != nil {
			if why := s.serve(n, func() { wait = firstWait }); why != nil {
				s.finish(reins.AsError(s.l.judged(why)))
				return
			}
		}
		pause(s.ctx, wait/2+rand.N(wait))
		if s.ctx.Err() != nil {
			s.finish(s.why())
			return
		}
		var err error
		if n, err = s.dial(s.ctx, true); err != nil && !passing(err) && s.ctx.Err() == nil {
			s.finish(reins.AsError(s.l.judged(err)))
			return
		}
	}
}

// passing reports errors after which connecting again may help.
func passing(err error) bool {
	switch e := reins.AsError(err); e.Code {
	case reins.CodeTransportFailure:
		return true
	case reins.CodeNotReady:
		return e.Recovery == reins.RecoverReconnect // the server stops, another may come
	default:
		return false
	}
}

// serve reads one connection until it breaks, or until the server says why there
// is no more, which it returns.
func (s *watch) serve(n *line, heard func()) error {
	s.mu.Lock()
	s.frames, s.open, s.acks = nil, nil, nil // of the connection before
	s.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { s.sendAcks(n) })
	defer wg.Wait()
	defer n.close()
	for {
		kind, r, err := n.conn.Reader(n.ctx)
		if err != nil {
			return nil
		}
		b, err := io.ReadAll(heeded{r, n})
		if err != nil {
			return nil
		}
		n.heard()
		heard()
		if kind == websocket.MessageBinary {
			f, err := readFrame(b)
			if err != nil {
				return err
			}
			s.put(ViewNews{}, f)
			continue
		}
		news, err := readNews(b)
		if err != nil {
			return err
		}
		if news.End != nil {
			return news.End
		}
		s.put(news, nil)
	}
}

// heeded counts each piece of a large message as a sign of life.
type heeded struct {
	io.Reader
	n *line
}

// Read implements io.Reader.
func (h heeded) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.n.heard()
	}
	return n, err
}

// put takes in what came. What is too much for a slow caller goes, the oldest
// first.
func (s *watch) put(news ViewNews, f *reins.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	if news.State != nil {
		s.state = news.State
	}
	if news.Error != nil {
		s.errs = newestOf(append(s.errs, news.Error), errsMax)
	}
	if f != nil {
		window := cmp.Or(s.window, windowDefault)
		s.frames = newestOf(append(s.frames, f), window)
		s.open = newestOf(append(s.open, f.ID), window)
	}
	rouse(s.wake)
}

func newestOf[T any](list []T, most int) []T {
	if len(list) > most {
		return slices.Delete(list, 0, len(list)-most)
	}
	return list
}

// sendAcks sends acknowledgements until the connection ends.
func (s *watch) sendAcks(n *line) {
	for {
		select {
		case <-s.acked:
		case <-n.ctx.Done():
			return
		}
		s.mu.Lock()
		acks := s.acks
		s.acks = nil
		s.mu.Unlock()
		for _, id := range acks {
			b, err := json.Marshal(ViewRequest{Ack: &id})
			if err == nil {
				err = n.conn.Write(n.ctx, websocket.MessageText, b)
			}
			if err != nil {
				return
			}
		}
	}
}
