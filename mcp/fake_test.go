package mcp_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLease answers calls with a function, and counts what the door does to it.
type fakeLease struct {
	do func(context.Context, reins.Call) (*reins.Result, error)

	mu       sync.Mutex
	life     time.Duration
	expires  time.Time
	renewals int
	releases int
	refuse   error // of renewals
	done     chan struct{}
	calls    []reins.Action
}

func newFakeLease(do func(context.Context, reins.Call) (*reins.Result, error)) *fakeLease {
	return &fakeLease{do: do, life: 5 * time.Minute, expires: time.Now().Add(5 * time.Minute), done: make(chan struct{})}
}

func (l *fakeLease) Authority() reins.Authority     { return reins.Authority{LeaseID: "lease_secret"} }
func (l *fakeLease) IsCurrent(reins.Authority) bool { return true }
func (l *fakeLease) Done() <-chan struct{}          { return l.done }
func (l *fakeLease) Expires() time.Time             { l.mu.Lock(); defer l.mu.Unlock(); return l.expires }
func (l *fakeLease) actions() []reins.Action        { l.mu.Lock(); defer l.mu.Unlock(); return l.calls }
func (l *fakeLease) counts() (renewals, releases int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewals, l.releases
}
func (l *fakeLease) lose() { close(l.done) }
func (l *fakeLease) Subscribe(context.Context, reins.SubscribeOptions) (reins.Subscription, error) {
	return nil, reins.Errorf(reins.CodeNotReady, "no view")
}

func (l *fakeLease) Do(ctx context.Context, c reins.Call) (*reins.Result, error) {
	l.mu.Lock()
	l.calls = append(l.calls, c.Action)
	l.mu.Unlock()
	if l.do == nil {
		return &reins.Result{}, nil
	}
	return l.do(ctx, c)
}

func (l *fakeLease) Renew(context.Context) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals++
	if l.refuse != nil {
		return l.expires, l.refuse
	}
	l.expires = time.Now().Add(l.life)
	return l.expires, nil
}

func (l *fakeLease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releases++
	return nil
}

// client is a connected client of a server that serves it.
type client struct {
	*sdk.ClientSession
	served chan struct{} // closed when Serve returned
	leave  func()        // closes the client's end and waits for Serve
	vanish func()        // as leave, but the client dies without a word
}

func give(l *fakeLease) func(context.Context) (reins.Lease, error) {
	return func(context.Context) (reins.Lease, error) { return l, nil }
}

// connect serves one in-memory client for the time of the test.
func connect(t *testing.T, o mcp.Options, c *sdk.ClientOptions) client {
	t.Helper()
	server, err := mcp.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	out := client{served: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(out.served)
		if err := server.Serve(ctx, &sdk.IOTransport{Reader: far, Writer: far}); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	out.ClientSession, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, c).Connect(ctx, &sdk.IOTransport{Reader: near, Writer: near}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	out.leave = func() {
		once.Do(func() { _ = out.Close(); <-out.served; cancel() })
	}
	out.vanish = func() {
		once.Do(func() { _ = near.Close(); <-out.served; _ = out.Close(); cancel() })
	}
	t.Cleanup(out.leave)
	return out
}

func call(t *testing.T, c client, tool string, arguments map[string]any) *sdk.CallToolResult {
	t.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	res, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

func textOf(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	if len(res.Content) == 0 {
		t.Fatal("the result has no content")
	}
	text, ok := res.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("the result begins with %T, not text", res.Content[0])
	}
	return text.Text
}
