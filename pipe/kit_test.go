package pipe

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	theToken = "tok-5ecret"
	patient  = 30 * time.Second
)

// runtime is one whose one capability is for one binding.
type runtime struct {
	reins.Runtime
	bound reins.Binding
	life  time.Duration

	mu      sync.Mutex
	leases  []*lease
	renewed int
	acks    chan reins.FrameID
	do      func(context.Context, reins.Call) (*reins.Result, error)
}

func (r *runtime) Acquire(_ context.Context, t reins.Token, b reins.Binding) (reins.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t != theToken || !b.Equal(r.bound) {
		return nil, reins.Errorf(reins.CodeUnauthorized, "the capability or binding is not valid")
	}
	l := &lease{r: r, done: make(chan struct{}), expires: time.Now().Add(cmp.Or(r.life, time.Minute))}
	l.authority = reins.Authority{CapabilityID: "cap", LeaseID: "lse" + string(rune('a'+len(r.leases))), Binding: b}
	r.leases = append(r.leases, l)
	return l, nil
}

func (r *runtime) last() *lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leases[len(r.leases)-1]
}

func (r *runtime) Events(ctx context.Context, _ string) (<-chan reins.Event, error) {
	out := make(chan reins.Event)
	context.AfterFunc(ctx, func() { close(out) })
	return out, nil
}

type lease struct {
	reins.Lease
	r         *runtime
	authority reins.Authority
	done      chan struct{}

	mu      sync.Mutex
	expires time.Time
	over    bool
}

func (l *lease) Authority() reins.Authority { return l.authority }
func (l *lease) Done() <-chan struct{}      { return l.done }
func (l *lease) Expires() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires
}
func (l *lease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		close(l.done)
	}
	return nil
}
func (l *lease) Renew(context.Context) (time.Time, error) {
	l.r.mu.Lock()
	l.r.renewed++
	l.r.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expires = time.Now().Add(cmp.Or(l.r.life, time.Minute))
	return l.expires, nil
}
func (l *lease) Do(ctx context.Context, c reins.Call) (*reins.Result, error) {
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over {
		return nil, reins.Errorf(reins.CodeLeaseEnded, "the lease was ended: released").With("reason", "released")
	}
	if l.r.do != nil {
		return l.r.do(ctx, c)
	}
	return &reins.Result{Meta: reins.Meta{LeaseID: l.authority.LeaseID}}, nil
}

func (l *lease) Subscribe(context.Context, reins.SubscribeOptions) (reins.Subscription, error) {
	return &view{acks: l.r.acks, closed: make(chan struct{})}, nil
}

// view shows one picture.
type view struct {
	acks   chan reins.FrameID
	closed chan struct{}
	once   sync.Once
	shown  atomic.Bool
}

func (v *view) Next(ctx context.Context) (reins.Update, error) {
	if v.shown.CompareAndSwap(false, true) {
		return reins.Update{Frame: &reins.Frame{ID: reins.FrameID{Incarnation: 1, Stream: 1, Sequence: 1}, Tab: "t1", JPEG: []byte("jpeg")}}, nil
	}
	select {
	case <-v.closed:
		return reins.Update{}, reins.Errorf(reins.CodeCancelled, "it was closed")
	case <-ctx.Done():
		return reins.Update{}, reins.ContextError(ctx)
	}
}
func (v *view) Ack(id reins.FrameID) bool { v.acks <- id; return true }
func (v *view) Close() error              { v.once.Do(func() { close(v.closed) }); return nil }

func (l *lease) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func binding(peer string) reins.Binding {
	return reins.Binding{
		Project: "p", Resource: "one", AuthorityID: "boss", Revision: 3, Session: &reins.Session{Harness: "h", Native: "7"},
		Actor: "agent", Role: reins.RoleAgent, Peer: peer, Source: reins.SourcePipe, Scope: "s", Run: "run-1",
	}
}

// connect makes both ends of a channel in this process.
func connect(t *testing.T, r *runtime, o Options) (*Channel, *Worker) {
	t.Helper()
	c, conn := half(t, r, o)
	w, err := Dial(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return c, w
}

// half makes the host's end of a channel and leaves the other.
func half(t *testing.T, r *runtime, o Options) (*Channel, *net.UnixConn) {
	t.Helper()
	mine, f, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := connOf(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	o.Runtime = r
	if o.Binding.Project == "" {
		o.Binding = r.bound
	}
	c, err := Serve(mine, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = theirs.Close() })
	return c, theirs
}

func closed(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patient):
		t.Fatalf("%s did not come", what)
	}
}

func wantCode(t *testing.T, err error, code reins.Code) {
	t.Helper()
	if reins.CodeOf(err) != code {
		t.Fatalf("error %v, want %q", err, code)
	}
}
