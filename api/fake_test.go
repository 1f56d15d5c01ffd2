package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a runtime that does what a test says. What no test says succeeds.
type fake struct {
	reins.Runtime // for what no test needs

	mu       sync.Mutex
	fail     error // of Register, List, Open, Issue and Revoke
	made     int   // resources
	issued   int
	revoked  []string
	bound    reins.Binding // what capabilities are for
	leases   []*fakeLease
	events   chan reins.Event
	stored   map[string][]byte
	register func() // runs while a resource is made
	do       func(context.Context, *fakeLease, reins.Call) (*reins.Result, error)
	halted   int
	life     time.Duration // of leases; 0 is a minute
	refuse   error         // of Subscribe
	views    []*fakeView
}

// theToken is the one capability token there is.
const theToken = "tok-5ecret"

func newFake() *fake {
	return &fake{events: make(chan reins.Event, 4096), stored: map[string][]byte{}}
}

func (f *fake) failing() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail
}

func (f *fake) Register(_ context.Context, reg reins.Registration) (reins.Registration, error) {
	if f.register != nil {
		f.register()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	reg.Key.ID = cmp.Or(reg.Key.ID, "made")
	return reg, f.fail
}

func (f *fake) List(context.Context, string) ([]reins.ResourceInfo, error) { return nil, f.failing() }
func (f *fake) Open(context.Context, reins.ResourceKey) (reins.Resource, error) {
	return fakeResource{f: f}, f.failing()
}

func (f *fake) Issue(_ context.Context, b reins.Binding, life time.Duration) (reins.Capability, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issued++
	return reins.Capability{ID: "cap_1", Token: theToken, Binding: b, Expires: time.Now().Add(life)}, f.fail
}

func (f *fake) Revoke(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, id)
	return f.fail
}

func (f *fake) Acquire(_ context.Context, t reins.Token, b reins.Binding) (reins.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t != theToken || !b.Equal(f.bound) {
		return nil, errUnauthorized()
	}
	l := &fakeLease{f: f, done: make(chan struct{}), expires: time.Now().Add(cmp.Or(f.life, time.Minute))}
	l.authority = reins.Authority{RuntimeID: "r", Generation: "g", CapabilityID: "cap_1", LeaseID: "lse_" + string(rune('a'+len(f.leases))), Binding: b}
	f.leases = append(f.leases, l)
	return l, nil
}

func (f *fake) lease() *fakeLease {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leases[len(f.leases)-1]
}

func (f *fake) Events(ctx context.Context, project string) (<-chan reins.Event, error) {
	if err := f.failing(); err != nil {
		return nil, err
	}
	out := make(chan reins.Event)
	go func() {
		defer close(out)
		for {
			select {
			case e, ok := <-f.events:
				if !ok {
					return
				}
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

type fakeResource struct {
	reins.Resource
	f *fake
}

func (r fakeResource) Readiness() reins.Readiness { return reins.Readiness{Overall: "ready"} }
func (r fakeResource) Start(context.Context) error {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.f.halted++
	return nil
}
func (r fakeResource) Terminate(ctx context.Context) error { return r.Start(ctx) }

type fakeLease struct {
	reins.Lease
	f *fake

	mu        sync.Mutex
	authority reins.Authority
	expires   time.Time
	done      chan struct{}
	ended     *reins.Error
	released  int
}

func (l *fakeLease) Authority() reins.Authority {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.authority
}

func (l *fakeLease) Expires() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires
}

func (l *fakeLease) Done() <-chan struct{} { return l.done }

func (l *fakeLease) end(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = reins.Errorf(reins.CodeLeaseEnded, "the lease was ended: %s", reason).With("reason", reason)
		close(l.done)
	}
}

func (l *fakeLease) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		return nil
	}
	return l.ended
}

func (l *fakeLease) Renew(context.Context) (time.Time, error) {
	if err := l.why(); err != nil {
		return time.Time{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expires = l.expires.Add(time.Hour)
	return l.expires, nil
}

func (l *fakeLease) Release(context.Context) error {
	l.mu.Lock()
	l.released++
	l.mu.Unlock()
	l.end("released")
	return nil
}

func (l *fakeLease) Do(ctx context.Context, c reins.Call) (*reins.Result, error) {
	if err := l.why(); err != nil {
		return nil, err
	}
	if l.f.do != nil {
		return l.f.do(ctx, l, c)
	}
	return &reins.Result{Meta: reins.Meta{LeaseID: l.authority.LeaseID}}, nil
}

// Subscribe gives one view at a time.
func (l *fakeLease) Subscribe(_ context.Context, o reins.SubscribeOptions) (reins.Subscription, error) {
	if err := l.why(); err != nil {
		return nil, err
	}
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if l.f.refuse != nil {
		return nil, l.f.refuse
	}
	for _, v := range l.f.views {
		if v.lease == l && v.closed.Err() == nil && o.Take {
			v.close(reins.Errorf(reins.CodeBusy, "another took its place").With("reason", "taken"))
		} else if v.lease == l && v.closed.Err() == nil {
			return nil, reins.Errorf(reins.CodeBusy, "the lease has a subscription")
		}
	}
	v := &fakeView{lease: l, window: cmp.Or(o.Window, 4), wake: make(chan struct{}, 1)}
	v.closed, v.close = context.WithCancelCause(context.Background())
	l.f.views = append(l.f.views, v)
	return v, nil
}

// view waits for the n-th subscription, from 0.
func (f *fake) view(t testing.TB, n int) *fakeView {
	t.Helper()
	var v *fakeView
	until(t, "the subscription", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.views) > n {
			v = f.views[n]
		}
		return v != nil
	})
	return v
}

// fakeView is a subscription whose producer is the test: it never waits for a
// viewer, and keeps the newest frames that fit the window.
type fakeView struct {
	lease  *fakeLease
	window int
	wake   chan struct{}
	closed context.Context // with why it ended
	close  context.CancelCauseFunc

	mu      sync.Mutex
	offered []reins.Update
	skipped int
	acks    []reins.FrameID
	open    map[reins.FrameID]bool
}

func (v *fakeView) offer(u reins.Update) {
	v.mu.Lock()
	if u.Frame != nil {
		if v.open == nil {
			v.open = map[reins.FrameID]bool{}
		}
		v.open[u.Frame.ID] = true
	}
	if v.offered = append(v.offered, u); len(v.offered) > v.window {
		v.offered = v.offered[1:]
		v.skipped++
	}
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

func (v *fakeView) Next(ctx context.Context) (reins.Update, error) {
	for {
		v.mu.Lock()
		if len(v.offered) > 0 && v.closed.Err() == nil {
			u := v.offered[0]
			v.offered = v.offered[1:]
			v.mu.Unlock()
			return u, nil
		}
		v.mu.Unlock()
		select {
		case <-v.wake:
		case <-v.closed.Done():
			return reins.Update{}, context.Cause(v.closed)
		case <-v.lease.done:
			return reins.Update{}, v.lease.why()
		case <-ctx.Done():
			return reins.Update{}, reins.ContextError(ctx)
		}
	}
}

func (v *fakeView) Ack(id reins.FrameID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.acks = append(v.acks, id)
	known := v.open[id]
	delete(v.open, id)
	return known
}

func (v *fakeView) acked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.acks)
}

func (v *fakeView) Close() error {
	v.close(reins.Errorf(reins.CodeInvalidState, "the subscription was closed"))
	return nil
}

// Artifacts keeps bytes under "art_" and their kind.
func (f *fake) Artifacts(reins.ResourceKey) reins.Artifacts { return fakeArtifacts{f: f} }

type fakeArtifacts struct {
	reins.Artifacts
	f *fake
}

func about2(id string, data []byte) reins.Artifact {
	sum := sha256.Sum256(data)
	return reins.Artifact{ID: id, Project: "p", Resource: "one", Kind: "upload", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Created: time.Unix(1, 0).UTC()}
}

func (a fakeArtifacts) Put(_ context.Context, m reins.Artifact, r io.Reader) (reins.Artifact, error) {
	b, err := io.ReadAll(r)
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	a.f.made++
	a.f.stored["art_"+m.Kind] = b
	return about2("art_"+m.Kind, b), err
}

func (a fakeArtifacts) Open(_ context.Context, id string) (reins.Artifact, io.ReadCloser, error) {
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	b, ok := a.f.stored[id]
	if !ok {
		return reins.Artifact{}, nil, reins.Errorf(reins.CodeNotFound, "no such artifact")
	}
	return about2(id, b), io.NopCloser(bytes.NewReader(b)), nil
}

// keys are the API keys of tests.
func keys(r *http.Request) (Identity, error) {
	switch key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); key {
	case "admin":
		return Identity{Name: "admin", Admin: true}, nil
	case "p":
		return Identity{Name: "p", Project: "p"}, nil
	case "q":
		return Identity{Name: "q", Project: "q"}, nil
	case "nobody":
		return Identity{}, nil
	}
	return Identity{}, io.EOF
}

// serve runs a handler over a fake on loopback.
func serve(t testing.TB, f *fake, o Options) (*Handler, *httptest.Server) {
	t.Helper()
	o.Runtime = f
	if o.Authenticate == nil {
		o.Authenticate = keys
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(h.Close)
	return h, s
}

func dial(t testing.TB, url, key string) *Client {
	t.Helper()
	c, err := NewClient(ClientOptions{URL: url, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends one request and returns status, header and body.
func ask(t testing.TB, method, url, key, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", typeJSON)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func human() reins.Binding {
	return reins.Binding{Project: "p", Resource: "one", Actor: "ada", Role: reins.RoleHuman, Peer: "127.0.0.1", Source: reins.SourceAPI}
}

const patient = 30 * time.Second

func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patient)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not come", what)
		}
	}
}

func wantCode(t testing.TB, err error, code reins.Code) {
	t.Helper()
	if reins.CodeOf(err) != code {
		t.Fatalf("error %v, want %q", err, code)
	}
}
