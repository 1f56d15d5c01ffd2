package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// LSE-3: renewed at half of its life while the client is connected, and not after.
func TestLeaseIsRenewedWhileConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := newFakeLease(nil)
		c := connect(t, mcp.Options{Lease: give(lease)}, nil)
		time.Sleep(time.Hour)
		if n, _ := lease.counts(); n != 0 {
			t.Fatalf("renewed %d times before a call needed it", n)
		}
		lease.expires = time.Now().Add(lease.life)
		call(t, c, "browser_press", map[string]any{"key": "Enter"})
		time.Sleep(lease.life/2 + time.Millisecond)
		synctest.Wait()
		if n, _ := lease.counts(); n != 1 {
			t.Fatalf("renewed %d times at half of its life", n)
		}
		time.Sleep(24 * time.Hour) // a quiet client is not a dead one
		if !lease.Expires().After(time.Now()) {
			t.Fatal("the lease of a connected client expired")
		}
		c.leave()
		n, released := lease.counts()
		time.Sleep(time.Hour)
		if m, _ := lease.counts(); m != n || released != 1 {
			t.Errorf("after the client left: %d renewals, %d releases", m-n, released)
		}
	})
}

// LSE-3, CAP-5: also the shortest life there is does not pass before half of it.
func TestShortLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := newFakeLease(nil)
		lease.life = time.Second
		lease.expires = time.Now().Add(lease.life)
		c := connect(t, mcp.Options{Lease: give(lease)}, nil)
		call(t, c, "browser_press", map[string]any{"key": "Enter"})
		for range 20 {
			time.Sleep(lease.life/2 + time.Millisecond)
			synctest.Wait()
			if left := time.Until(lease.Expires()); left < lease.life/2 {
				t.Fatalf("%s are left of a life of %s", left, lease.life)
			}
		}
	})
}

// A provider's error is the calls' error, whatever came with it, and the next
// call asks again.
func TestLeaseThatDoesNotCome(t *testing.T) {
	tries := 0
	c := connect(t, mcp.Options{Lease: func(context.Context) (reins.Lease, error) {
		var none *fakeLease
		switch tries++; tries {
		case 1, 2:
			return none, reins.Errorf(reins.CodeUnauthorized, "not now")
		case 3:
			return nil, nil
		}
		return newFakeLease(nil), nil
	}}, nil)
	for _, want := range []string{"unauthorized: not now", "unauthorized: not now", "internal: "} {
		if res := call(t, c, "browser_press", map[string]any{"key": "Enter"}); !res.IsError || !strings.HasPrefix(textOf(t, res), want) {
			t.Errorf("%q, want %s…", textOf(t, res), want)
		}
	}
	if res := call(t, c, "browser_press", map[string]any{"key": "Enter"}); res.IsError {
		t.Error(textOf(t, res))
	}
}

// A renewal that failed is tried again, sooner and sooner, before the lease ends.
func TestRenewalIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := newFakeLease(nil)
		lease.refuse = reins.Errorf(reins.CodeTimeout, "the hook did not answer")
		c := connect(t, mcp.Options{Lease: give(lease)}, nil)
		call(t, c, "browser_press", map[string]any{"key": "Enter"})
		time.Sleep(lease.life - time.Second)
		n, _ := lease.counts()
		if n < 5 || n > 12 {
			t.Errorf("%d tries in a life of %s", n, lease.life)
		}
		lease.lose()
		synctest.Wait()
		time.Sleep(time.Hour)
		if m, _ := lease.counts(); m != n {
			t.Errorf("%d tries after the lease ended", m-n)
		}
	})
}

// MCP-8: after a lease ended the same client goes on, if the host lets it.
func TestEndedLeaseIsReplaced(t *testing.T) {
	var given []*fakeLease
	c := connect(t, mcp.Options{Lease: func(context.Context) (reins.Lease, error) {
		if len(given) == 2 {
			return nil, reins.Errorf(reins.CodeUnauthorized, "no more")
		}
		given = append(given, newFakeLease(nil))
		return given[len(given)-1], nil
	}}, nil)
	press := func() *sdk.CallToolResult { return call(t, c, "browser_press", map[string]any{"key": "Enter"}) }
	press()
	press()
	given[0].lose()
	press()
	if len(given) != 2 || len(given[0].actions()) != 2 || len(given[1].actions()) != 1 {
		t.Fatalf("%d leases", len(given))
	}
	given[1].lose()
	if res := press(); !res.IsError || !strings.HasPrefix(textOf(t, res), "unauthorized: no more") {
		t.Error(textOf(t, res))
	}
	tools, err := c.ListTools(context.Background(), nil)
	if err != nil || len(tools.Tools) != 6 {
		t.Errorf("the list after the end of authority: %v %v", tools, err)
	}
}

// MCP-8: the handshake does not wait for the lease; the first calls share it.
func TestCallsShareOneAcquisition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := newFakeLease(nil)
		var asked atomic.Int32
		c := connect(t, mcp.Options{Lease: func(ctx context.Context) (reins.Lease, error) {
			asked.Add(1)
			time.Sleep(time.Minute)
			return lease, ctx.Err()
		}}, nil)
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.CallTool(short, &sdk.CallToolParams{Name: "browser_press", Arguments: map[string]any{"key": "A"}})
		if err == nil {
			t.Error("a call outlived its caller")
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { call(t, c, "browser_press", map[string]any{"key": "Enter"}) })
		}
		all.Wait()
		if asked.Load() != 1 || len(lease.actions()) != 5 {
			t.Errorf("asked %d times; %d calls", asked.Load(), len(lease.actions()))
		}
	})
}

// MCP-6: a cancelled call ends now and the next one goes on.
func TestCancellationReachesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		lease := newFakeLease(func(ctx context.Context, c reins.Call) (*reins.Result, error) {
			if _, ok := c.Action.(reins.Navigate); !ok {
				return &reins.Result{}, nil
			}
			c.Progress(reins.Progress{Stage: "running"})
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, reins.ContextError(ctx)
		})
		c := connect(t, mcp.Options{Lease: give(lease)}, nil)
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			_, _ = c.CallTool(ctx, &sdk.CallToolParams{Name: "browser_navigate", Arguments: map[string]any{"url": "a.test"}})
		})
		synctest.Wait()
		cancel()
		running.Wait()
		if err := <-ended; err == nil {
			t.Error("the call's context did not end")
		}
		call(t, c, "browser_press", map[string]any{"key": "Enter"})
	})
}

// MCP-6: a client that leaves ends its calls; its lease is released after them.
func TestDepartureEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lease *fakeLease
		lease = newFakeLease(func(ctx context.Context, c reins.Call) (*reins.Result, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // quiesces
			if _, released := lease.counts(); released != 0 {
				t.Error("released while a call ran")
			}
			return nil, reins.ContextError(ctx)
		})
		c := connect(t, mcp.Options{Lease: give(lease)}, nil)
		go func() {
			_, _ = c.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_press", Arguments: map[string]any{"key": "A"}})
		}()
		synctest.Wait()
		c.vanish()
		if _, released := lease.counts(); released != 1 {
			t.Errorf("%d releases", released)
		}
	})
}

// Serve ends with its context too.
func TestServeEndsWithContext(t *testing.T) {
	lease := newFakeLease(func(ctx context.Context, c reins.Call) (*reins.Result, error) {
		<-ctx.Done()
		return nil, reins.ContextError(ctx)
	})
	server, err := mcp.NewServer(mcp.Options{Lease: give(lease)})
	if err != nil {
		t.Fatal(err)
	}
	near, far := sdk.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, far) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(context.Background(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, _ = c.CallTool(context.Background(), &sdk.CallToolParams{Name: "browser_press", Arguments: map[string]any{"key": "A"}})
	}()
	for len(lease.actions()) == 0 {
		if err := c.Ping(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// OPS-1: calls enter the lease as they were sent, however many at once and
// however long the lease takes to come.
func TestCallsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, admits := range []bool{true, false} {
			var mu sync.Mutex
			var began []string
			lease := newFakeLease(func(_ context.Context, c reins.Call) (*reins.Result, error) {
				mu.Lock()
				began = append(began, c.Action.(reins.Press).Key)
				mu.Unlock()
				if admits {
					c.Progress(reins.Progress{Stage: "queue"})
				}
				time.Sleep(time.Second)
				return &reins.Result{}, nil
			})
			c := connect(t, mcp.Options{Lease: func(context.Context) (reins.Lease, error) {
				time.Sleep(time.Minute)
				return lease, nil
			}}, nil)
			var all sync.WaitGroup
			var want []string
			for i := range 40 {
				key := fmt.Sprint(i)
				if i%7 == 3 { // answered before it has a turn
					all.Go(func() { call(t, c, "browser_press", nil) })
				} else {
					want = append(want, key)
					all.Go(func() { call(t, c, "browser_press", map[string]any{"key": key}) })
				}
				synctest.Wait() // sent
			}
			all.Wait()
			if !slices.Equal(began, want) {
				t.Errorf("admitted %v: began %v", admits, began)
			}
			c.leave()
		}
	})
}

// OPS-1: a call that is cancelled while it waits for its turn does not let the
// ones behind it overtake the ones before it.
func TestCancelledTurnKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var began []string
		release := make(chan struct{})
		lease := newFakeLease(func(_ context.Context, c reins.Call) (*reins.Result, error) {
			mu.Lock()
			began = append(began, c.Action.(reins.Press).Key)
			mu.Unlock()
			if c.Action.(reins.Press).Key == "1" {
				<-release // not admitted for long
			}
			return &reins.Result{}, nil
		})
		c := connect(t, mcp.Options{Lease: give(lease)}, nil)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for i, ctx := range []context.Context{context.Background(), ctx, context.Background()} {
			all.Go(func() {
				_, _ = c.CallTool(ctx, &sdk.CallToolParams{Name: "browser_press", Arguments: map[string]any{"key": fmt.Sprint(i + 1)}})
			})
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		if !slices.Equal(began, []string{"1"}) {
			t.Errorf("began %v while the first waits", began)
		}
		close(release)
		all.Wait()
		if !slices.Equal(began, []string{"1", "3"}) {
			t.Errorf("began %v", began)
		}
	})
}

// MCP-6, OPS-4: a waiting call tells what it waits for, to those who asked.
func TestProgress(t *testing.T) { synctest.Test(t, testProgress) }

func testProgress(t *testing.T) {
	lease := newFakeLease(func(_ context.Context, c reins.Call) (*reins.Result, error) {
		for _, p := range []reins.Progress{{Stage: "queue", Position: 2}, {Stage: "queue", Position: 1}, {Stage: "browser"}, {Stage: "running"}} {
			c.Progress(p)
		}
		return &reins.Result{}, nil
	})
	var mu sync.Mutex
	var got []*sdk.ProgressNotificationParams
	c := connect(t, mcp.Options{Lease: give(lease)}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, req.Params)
		},
	})
	call(t, c, "browser_press", map[string]any{"key": "Enter"})
	if len(got) != 0 {
		t.Errorf("%d notifications that nobody asked for", len(got))
	}
	params := &sdk.CallToolParams{Name: "browser_press", Arguments: map[string]any{"key": "Enter"}}
	params.SetProgressToken("p1")
	if _, err := c.CallTool(context.Background(), params); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(got) == 0 || got[len(got)-1].Message != "Running." {
		t.Fatalf("%d notifications", len(got))
	}
	for i, p := range got {
		if p.ProgressToken != "p1" || p.Progress != float64(i+1) || p.Message == "" {
			t.Errorf("%d: %+v", i, p)
		}
	}
}
