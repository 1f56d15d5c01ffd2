package api

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// relay is a network between a client and a server that a test can break.
type relay struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	down  bool
	count int
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to, conns: map[net.Conn]struct{}{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.carry(c) })
		}
	})
	t.Cleanup(func() { l.Close(); r.cut(true); wg.Wait() })
	return r
}

func (r *relay) carry(c net.Conn) {
	defer c.Close()
	far, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer far.Close()
	r.mu.Lock()
	if r.down {
		r.mu.Unlock()
		return
	}
	r.count++
	r.conns[c], r.conns[far] = struct{}{}, struct{}{}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, far}, {far, c}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
		})
	}
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	delete(r.conns, far)
}

// cut breaks what is connected; down says whether it stays so.
func (r *relay) cut(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
	for c := range r.conns {
		c.Close()
	}
}

// subscribed makes a client's subscription over a relay.
func subscribed(t *testing.T, o reins.SubscribeOptions) (f *fake, h *Handler, r *relay, c *Client, l reins.Lease, s reins.Subscription) {
	t.Helper()
	f = newFake()
	f.bound = human()
	h, server := serve(t, f, Options{})
	r = newRelay(t, server.Listener.Addr().String())
	c = dial(t, "http://"+r.Addr().String(), "p")
	l, err := c.Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	if s, err = l.Subscribe(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return f, h, r, c, l, s
}

func (v *fakeView) has(t *testing.T, acks int) {
	t.Helper()
	until(t, "the acknowledgement", func() bool { return v.acked() == acks })
}

func nextFrame(t *testing.T, s reins.Subscription) *reins.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for {
		u, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if u.Frame != nil {
			return u.Frame
		}
	}
}

// TestSubscribe: a subscription from afar is like one that is near (API-1,
// FRM-1..5).
func TestSubscribe(t *testing.T) {
	f, _, _, _, l, s := subscribed(t, reins.SubscribeOptions{Window: 2})
	v := f.view(t, 0)
	if v.window != 2 {
		t.Errorf("window %d", v.window)
	}
	if _, err := l.Subscribe(t.Context(), reins.SubscribeOptions{}); reins.CodeOf(err) != reins.CodeBusy {
		t.Errorf("a second one: %v", err)
	}
	if second, err := l.Subscribe(t.Context(), reins.SubscribeOptions{Window: 2, Take: true}); err != nil {
		t.Error(err)
	} else if _, err := s.Next(t.Context()); reins.CodeOf(err) != reins.CodeBusy || s.Close() != nil {
		t.Errorf("one whose place was taken: %v", err)
	} else {
		s, v = second, f.view(t, 1)
	}
	for _, window := range []int{-1, 33} {
		_, err := l.Subscribe(t.Context(), reins.SubscribeOptions{Window: window})
		wantCode(t, err, reins.CodeInvalidInput)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Next(gone) // it ends the waiting only
	wantCode(t, err, reins.CodeCancelled)

	v.offer(reins.Update{State: &reins.ViewState{Selected: "t1"}, Err: reins.Errorf(reins.CodeFrameTooLarge, "too large").With("tab", "t1")})
	var u reins.Update
	for u.State == nil || u.Err == nil {
		got, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.State != nil {
			u.State = got.State
		}
		if got.Err != nil {
			u.Err = got.Err
		}
	}
	if u.State.Selected != "t1" || u.Err.Code != reins.CodeFrameTooLarge || u.Err.Details["tab"] != "t1" {
		t.Errorf("update %+v", u)
	}
	v.offer(picture(1, 100<<10))
	got := nextFrame(t, s)
	if want := picture(1, 100<<10).Frame; got.ID != want.ID || len(got.JPEG) != len(want.JPEG) || got.Tab != want.Tab || got.Viewport != want.Viewport || !got.Captured.Equal(want.Captured) {
		t.Errorf("frame %+v", got)
	}
	if !s.Ack(got.ID) || s.Ack(got.ID) || s.Ack(reins.FrameID{Sequence: 99}) {
		t.Error("acknowledgements are not told apart")
	}
	v.has(t, 1)

	// A caller that takes nothing keeps the newest of the window.
	for n := 2; n <= 9; n++ {
		v.offer(picture(n, 10))
	}
	first := reins.FrameID{}
	until(t, "the newest frame", func() bool {
		f := nextFrame(t, s)
		if first.Sequence == 0 {
			first = f.ID
		}
		return f.ID.Sequence == 9
	})
	if first.Sequence < 8 && s.Ack(first) {
		t.Error("a frame that the window does not hold was acknowledged")
	}
	if err := s.Close(); err != nil || s.Close() != nil {
		t.Error(err)
	}
	if _, err := s.Next(t.Context()); reins.CodeOf(err) != reins.CodeCancelled {
		t.Errorf("after Close: %v", err)
	}
	if s.Ack(picture(9, 0).Frame.ID) {
		t.Error("an acknowledgement after Close")
	}
	until(t, "the end of the subscription", func() bool { return v.closed.Err() != nil })
	if again, err := l.Subscribe(t.Context(), reins.SubscribeOptions{}); err != nil {
		t.Error(err)
	} else if f.view(t, 2).offer(picture(1, 10)); nextFrame(t, again).ID.Sequence != 1 {
		t.Error("another frame")
	}
}

// TestSubscribeAgain: a subscription survives its connection; what was before is
// late then.
func TestSubscribeAgain(t *testing.T) {
	f, _, r, _, _, s := subscribed(t, reins.SubscribeOptions{})
	f.view(t, 0).offer(picture(1, 10))
	old := nextFrame(t, s).ID
	for n := 1; n < 4; n++ {
		r.cut(n == 2)
		if n == 2 { // the server cannot be reached for a while
			until(t, "the end of the connection", func() bool { return f.view(t, 1).closed.Err() != nil })
			r.cut(false)
		}
		v := f.view(t, n)
		v.offer(picture(10*n, 10))
		got := nextFrame(t, s)
		if got.ID.Sequence != uint64(10*n) || s.Ack(old) || !s.Ack(got.ID) {
			t.Fatalf("after break %d: frame %v", n, got.ID)
		}
		v.has(t, 1)
		v.offer(picture(10*n+1, 10))
		old = nextFrame(t, s).ID
	}
}

// TestSubscribeEnds: a subscription ends with its lease, its client, when it is
// taken over, and when the server says so; each with its reason.
func TestSubscribeEnds(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*fake, *Client, reins.Lease, string)
		code reins.Code
		why  any
	}{
		"revoked":  {func(f *fake, _ *Client, _ reins.Lease, _ string) { f.lease().end("revoked") }, reins.CodeLeaseEnded, "revoked"},
		"released": {func(_ *fake, _ *Client, l reins.Lease, _ string) { _ = l.Release(context.Background()) }, reins.CodeLeaseEnded, "released"},
		"taken":    {func(_ *fake, _ *Client, l reins.Lease, url string) { look(t, url, l.Authority().LeaseID, "take=1") }, reins.CodeBusy, "taken"},
		"the browser ended": {func(f *fake, _ *Client, _ reins.Lease, _ string) {
			f.view(t, 0).close(reins.Errorf(reins.CodeBrowserEnded, "it died"))
		}, reins.CodeBrowserEnded, nil},
		"the client": {func(_ *fake, c *Client, _ reins.Lease, _ string) { _ = c.Close() }, reins.CodeRuntimeStopped, nil},
	} {
		t.Run(what, func(t *testing.T) {
			f, _, r, client, l, s := subscribed(t, reins.SubscribeOptions{})
			f.view(t, 0)
			c.end(f, client, l, "http://"+r.Addr().String())
			var err error
			for err == nil {
				_, err = s.Next(t.Context())
			}
			if e := reins.AsError(err); e.Code != c.code || e.Details["reason"] != c.why {
				t.Errorf("it ended with %v %v", err, e.Details)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if c.code == reins.CodeLeaseEnded {
				<-l.Done()
			}
		})
	}
}

// TestSubscribeNowhere: what is no Reins server, or refuses, is told so.
func TestSubscribeNowhere(t *testing.T) {
	f, h, r, _, l, s := subscribed(t, reins.SubscribeOptions{})
	_ = s.Close()
	f.mu.Lock()
	f.refuse = reins.Errorf(reins.CodeDenied, "only people's leases have a live view; %02000d", 7) // more than a kilobyte
	f.mu.Unlock()
	_, err := l.Subscribe(t.Context(), reins.SubscribeOptions{})
	wantCode(t, err, reins.CodeDenied)
	r.cut(true)
	_, err = l.Subscribe(t.Context(), reins.SubscribeOptions{})
	wantCode(t, err, reins.CodeTransportFailure)
	r.cut(false)
	h.Close()
	_, err = l.Subscribe(t.Context(), reins.SubscribeOptions{})
	wantCode(t, err, reins.CodeNotReady)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = l.Subscribe(ctx, reins.SubscribeOptions{})
	wantCode(t, err, reins.CodeTimeout)
	time.AfterFunc(0, func() { f.lease().end("revoked") })
	<-l.Done()
	_, err = l.Subscribe(t.Context(), reins.SubscribeOptions{})
	wantCode(t, err, reins.CodeLeaseEnded)
}
