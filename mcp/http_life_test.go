package mcp_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// B109, LSE-3: a client that is quiet for minutes, listens to nothing and answers
// no pings keeps its session and its lease, which is renewed at half of its life;
// one that stays away is not renewed any more, and its session ends after its
// lease.
func TestHTTPQuietClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, mcp.HTTPOptions{Idle: 10 * time.Minute}, func(ctx context.Context, c reins.Call) (*reins.Result, error) {
			time.Sleep(30 * time.Second) // itself takes as long
			return &reins.Result{}, nil
		})
		p := s.peer("ann")
		p.initialize()
		lease := s.keys.of("token-ann")[0]
		for i := range 10 {
			if text, bad := p.press(i, "A"); bad {
				t.Fatal(text)
			}
			time.Sleep(time.Duration(i) * time.Minute)
		}
		if n := len(s.keys.of("token-ann")); n != 1 || !lease.Expires().After(time.Now()) {
			t.Fatalf("%d leases; the first until %s", n, lease.Expires())
		}
		time.Sleep(10*time.Minute + lease.life)
		synctest.Wait()
		n, _ := lease.counts()
		if lease.Expires().After(time.Now()) {
			t.Error("the lease of a client that is gone was renewed")
		}
		time.Sleep(time.Hour)
		if m, _ := lease.counts(); m != n {
			t.Error("renewed for nobody")
		}
		if a := p.post(pressing(90, "A")); a.status != http.StatusOK { // the fake does not end by itself
			t.Errorf("a session with a lease ended: %d", a.status)
		}
		lease.lose()
		time.Sleep(time.Hour)
		if a := p.post(pressing(91, "A")); a.status != http.StatusNotFound {
			t.Errorf("a session without client and lease: %d", a.status)
		}
	})
}

// hanging is a call that waits in the queue until its context ends.
func hanging(ended *atomic.Int32) func(context.Context, reins.Call) (*reins.Result, error) {
	return func(ctx context.Context, c reins.Call) (*reins.Result, error) {
		if c.Action.(reins.Press).Key != "Wait" {
			return &reins.Result{}, nil
		}
		c.Progress(reins.Progress{Stage: "queue", Position: 1})
		<-ctx.Done()
		ended.Add(1)
		return nil, reins.ContextError(ctx)
	}
}

// MCP-6, B118: a client whose connections are all lost frees its places in the
// queue after a moment; one that is still there by another connection keeps them.
func TestHTTPDepartureFreesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		s := serve(t, mcp.HTTPOptions{}, hanging(&ended))
		p := s.peer("ann")
		p.initialize()
		drop := func(id int) {
			ctx, cancel := context.WithCancel(t.Context())
			res, err := s.http.Do(p.request(ctx, "POST", pressing(id, "Wait")))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			cancel()
			res.Body.Close()
			synctest.Wait()
		}
		listening, cancel := context.WithCancel(t.Context())
		stream, err := s.http.Do(p.request(listening, "GET", ""))
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatal(stream, err)
		}
		drop(1)
		time.Sleep(time.Minute)
		if ended.Load() != 0 {
			t.Error("a call of a client that listens was taken back")
		}
		cancel()
		stream.Body.Close()
		time.Sleep(4 * time.Second)
		if ended.Load() != 0 {
			t.Error("a client that lost its connection had no time to come back")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("the place of a client that is gone was not freed")
		}
		if text, bad := p.press(3, "A"); bad { // it may still come back
			t.Error(text)
		}
	})
}

// MCP-6: the answer to a call whose connection was lost can be had by its client,
// and by nobody else, while the lease lives.
func TestHTTPResumption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := serve(t, mcp.HTTPOptions{}, func(ctx context.Context, c reins.Call) (*reins.Result, error) {
			select {
			case <-release:
				return &reins.Result{}, nil
			case <-ctx.Done():
				return nil, reins.ContextError(ctx)
			}
		})
		p := s.peer("ann")
		p.initialize()
		ctx, cancel := context.WithCancel(t.Context())
		res, err := s.http.Do(p.request(ctx, "POST", pressing(1, "A")))
		if err != nil {
			t.Fatal(err)
		}
		var last string
		for lines := bufio.NewScanner(res.Body); last == "" && lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				last = id
			}
		}
		cancel()
		res.Body.Close()
		time.Sleep(3 * time.Second)
		resumed := make(chan answer)
		go func() { resumed <- p.do(p.request(t.Context(), "GET", "", "Last-Event-ID", last)) }()
		time.Sleep(time.Minute) // it is there again
		close(release)
		a := <-resumed
		if text, bad := p.text(a); bad || a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, text)
		}
		if again := p.do(p.request(t.Context(), "GET", "", "Last-Event-ID", last)); string(again.result) != string(a.result) {
			t.Errorf("had again: %d %s", again.status, again.body)
		}
		s.keys.mu.Lock()
		s.keys.refuse = reins.Errorf(reins.CodeUnauthorized, "the capability or binding is not valid")
		s.keys.mu.Unlock()
		s.keys.of("token-ann")[0].lose()
		synctest.Wait()
		if late := p.do(p.request(t.Context(), "GET", "", "Last-Event-ID", last)); late.status != http.StatusUnauthorized {
			t.Errorf("after the lease ended: %d %s", late.status, late.body)
		}
		s.keys.mu.Lock()
		s.keys.refuse = nil
		s.keys.mu.Unlock()
		if anew := p.do(p.request(t.Context(), "GET", "", "Last-Event-ID", last)); anew.result != nil {
			t.Errorf("under another lease: %d %s", anew.status, anew.body)
		}
	})
}

// LSE-6: what is open when authority ends is over within 250 ms: streams that
// listen at once, and answers that say so, or that never end.
func TestHTTPStreamsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, mcp.HTTPOptions{}, func(ctx context.Context, c reins.Call) (*reins.Result, error) {
			c.Progress(reins.Progress{Stage: "running"})
			if c.Action.(reins.Press).Key == "Stuck" {
				<-ctx.Done()
				return nil, reins.ContextError(ctx)
			}
			time.Sleep(time.Hour) // ends with its lease, below
			return &reins.Result{}, nil
		})
		p := s.peer("ann")
		p.initialize()
		over := make(chan time.Duration, 2)
		var began time.Time
		for _, r := range []*http.Request{
			p.request(t.Context(), "GET", ""), p.request(t.Context(), "POST", pressing(1, "Stuck")),
		} {
			go func() {
				res, err := s.http.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				over <- time.Since(began)
			}()
		}
		time.Sleep(time.Minute)
		began = time.Now()
		s.keys.of("token-ann")[0].lose()
		for range 2 {
			if took := <-over; took > 250*time.Millisecond {
				t.Errorf("a stream was open for %s after its lease", took)
			}
		}
	})
}

// LSE-6: a client that does not read what it is sent does not keep the answer
// alive.
func TestHTTPSlowReaderIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, mcp.HTTPOptions{}, func(context.Context, reins.Call) (*reins.Result, error) {
			return &reins.Result{Snapshot: &reins.SnapshotResult{Text: strings.Repeat("page ", 1<<18)}}, nil
		})
		p := s.peer("ann")
		p.initialize()
		res, err := s.http.Do(p.request(t.Context(), "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_snapshot","arguments":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		time.Sleep(time.Minute) // blocked in the middle of it
		s.keys.of("token-ann")[0].lose()
		time.Sleep(250 * time.Millisecond)
		b, err := io.ReadAll(res.Body)
		if err == nil || len(b) > 1<<16 {
			t.Errorf("%d bytes came after the lease had ended: %v", len(b), err)
		}
	})
}

// B118: a call that is taken back ends now, one that waits never runs, one that is
// over is not touched; session and queue go on.
func TestHTTPCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		s := serve(t, mcp.HTTPOptions{}, hanging(&ended))
		p := s.peer("ann")
		p.initialize()
		over := make(chan answer, 1)
		go func() { over <- p.post(pressing(1, "Wait")) }()
		synctest.Wait()
		began := time.Now()
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
		if a := p.post(cancel); a.status != http.StatusAccepted {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := <-over; a.status != http.StatusOK || time.Since(began) > time.Second || ended.Load() != 1 {
			t.Errorf("after %s: %d %s", time.Since(began), a.status, a.body)
		}
		if a := p.post(cancel); a.status != http.StatusAccepted { // over already
			t.Errorf("%d %s", a.status, a.body)
		}
		if text, bad := p.press(2, "A"); bad || p.tools() != 6 {
			t.Error(text)
		}
	})
}

// MCP-6, LSE-4: a session that its client ends takes its calls with it; the last
// one releases the lease that they shared.
func TestHTTPDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		s := serve(t, mcp.HTTPOptions{}, hanging(&ended))
		one, two := s.peer("ann"), s.peer("ann")
		one.initialize()
		two.initialize()
		over := make(chan answer, 1)
		go func() { over <- one.post(pressing(1, "Wait")) }()
		synctest.Wait()
		began := time.Now()
		if a := one.do(one.request(t.Context(), "DELETE", "")); a.status != http.StatusNoContent || time.Since(began) > time.Second {
			t.Errorf("%d after %s", a.status, time.Since(began))
		}
		<-over
		lease := s.keys.of("token-ann")[0]
		if _, released := lease.counts(); released != 0 || ended.Load() != 1 {
			t.Errorf("%d releases while a session of the client lives; %d calls ended", released, ended.Load())
		}
		if a := one.post(pressing(2, "A")); a.status != http.StatusNotFound {
			t.Errorf("the ended session: %d", a.status)
		}
		if text, bad := two.press(1, "A"); bad {
			t.Error(text)
		}
		two.do(two.request(t.Context(), "DELETE", ""))
		if _, released := lease.counts(); released != 1 {
			t.Errorf("%d releases", released)
		}
		if n, _ := lease.counts(); n != 0 {
			t.Errorf("%d renewals", n)
		}
	})
}

// A handshake that comes to nothing does not use up the capability: it is not the
// client's leaving.
func TestHTTPBadHandshakeKeepsTheLease(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	p := s.peer("ann")
	for _, a := range []answer{
		p.post(hello, "Content-Type", "text/plain"), // B113: what a form could send
		p.post(hello, "Accept", "text/html"),
		p.post(strings.Replace(hello, `"capabilities":{}`, `"capabilities":7`, 1)),
	} {
		if a.status == http.StatusOK && a.result != nil {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	p.initialize()
	leases := s.keys.of("token-ann")
	if _, released := leases[0].counts(); released != 0 || len(leases) != 1 {
		t.Errorf("%d releases, %d leases", released, len(leases))
	}
}

// Sessions are bounded: a client's oldest idle one makes room for its next, never
// another's.
func TestHTTPSessionsAreBounded(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{Sessions: 20}, nil)
	ann := make([]*peer, 17)
	for i := range ann {
		ann[i] = s.peer("ann")
		ann[i].initialize()
	}
	if a := ann[0].post(pressing(1, "A")); a.status != http.StatusNotFound {
		t.Errorf("the oldest: %d", a.status)
	}
	if text, bad := ann[1].press(1, "A"); bad {
		t.Error(text)
	}
	busy := s.peer("ann") // in the place of one that only listens, if none is idle
	for range 17 {
		busy.initialize()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res, err := s.http.Do(busy.request(ctx, "GET", ""))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		defer res.Body.Close()
	}
	bob := s.peer("bob")
	for range 4 {
		bob.initialize()
	}
	if a := s.peer("bob").post(hello); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("beyond all: %d %s", a.status, a.body)
	}
	if text, bad := bob.press(1, "A"); bad || len(s.keys.of("token-ann")) != 1 {
		t.Error(text)
	}
}

// Close ends sessions, calls and streams, releases every lease, and lets nobody in
// any more.
func TestHTTPClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		s := serve(t, mcp.HTTPOptions{}, hanging(&ended))
		p, q := s.peer("ann"), s.peer("bob")
		p.initialize()
		q.initialize()
		go func() { p.post(pressing(1, "Wait")) }()
		go func() { q.do(q.request(context.Background(), "GET", "")) }()
		synctest.Wait()
		s.handler.Close()
		s.handler.Close()
		for _, token := range []string{"token-ann", "token-bob"} {
			if _, released := s.keys.of(token)[0].counts(); released != 1 {
				t.Errorf("%s: %d releases", token, released)
			}
		}
		if ended.Load() != 1 {
			t.Error("a call goes on")
		}
		if a := p.post(hello); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}
