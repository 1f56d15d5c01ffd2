package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// between is a way to a handler that can be cut, switched and made to lose
// answers.
type between struct {
	*httptest.Server
	mu   sync.Mutex
	to   http.Handler
	lose func(*http.Request) bool // after the handler has run
}

func newBetween(t *testing.T, to http.Handler) *between {
	b := &between{to: to}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		to, lose := b.to, b.lose
		b.mu.Unlock()
		if lose != nil && lose(r) {
			to.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *between) set(to http.Handler, lose func(*http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to, b.lose = to, lose
}

func handler(t *testing.T, f *fake) *Handler {
	t.Helper()
	h, err := New(Options{Runtime: f, Authenticate: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// follows acquires a lease over a way that can be cut.
func follows(t *testing.T) (*fake, *Handler, *between, *Client, reins.Lease) {
	t.Helper()
	f := newFake()
	f.bound = human()
	h := handler(t, f)
	b := newBetween(t, h)
	t.Cleanup(h.Close) // before its server, which waits for its streams
	c := dial(t, b.URL, "p")
	l, err := c.Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	return f, h, b, c, l
}

// TestLeaseFollows is LSE-5 and LSE-6 from afar: what happens to a lease
// elsewhere is known here, also after the stream broke.
func TestLeaseFollows(t *testing.T) {
	f, _, b, _, l := follows(t)
	there := f.lease()
	moved := func(n uint64) {
		there.mu.Lock()
		there.authority.Incarnation = n
		there.mu.Unlock()
		f.events <- reins.Event{Key: human().Key(), Kind: "state"}
		until(t, "the change", func() bool { return l.Authority().Incarnation == n })
	}
	moved(1)
	old := l.Authority()
	if !l.IsCurrent(old) {
		t.Error("the authority is not current")
	}
	moved(2)
	if l.IsCurrent(old) {
		t.Error("the authority of an ended incarnation is current")
	}
	b.CloseClientConnections()
	moved(3)
	expiry := l.Expires()
	there.mu.Lock()
	there.expires = there.expires.Add(time.Hour)
	there.mu.Unlock()
	f.events <- reins.Event{Key: human().Key(), Kind: "state"}
	until(t, "the expiry", func() bool { return l.Expires().After(expiry.Add(time.Minute)) })
	if d := l.Expires().Sub(there.Expires()); d > 0 || d < -5*time.Second {
		t.Errorf("it expires %s after it does there", d)
	}
	there.end("revoked")
	select {
	case <-l.Done():
	case <-time.After(patient):
		t.Fatal("the end did not come")
	}
	_, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	if e := reins.AsError(err); e.Code != reins.CodeLeaseEnded || e.Details["reason"] != "revoked" {
		t.Errorf("it ended by %v %v", e, e.Details)
	}
}

// TestLeaseOfAnotherServer: a server that does not know the lease has ended it.
func TestLeaseOfAnotherServer(t *testing.T) {
	_, h, b, _, l := follows(t)
	b.set(handler(t, newFake()), nil)
	h.Close()
	select {
	case <-l.Done():
	case <-time.After(patient):
		t.Fatal("the end did not come")
	}
	_, err := l.Renew(t.Context())
	wantCode(t, err, reins.CodeLeaseEnded)
}

// TestLeaseExpiresAlone: when nothing is heard of the server, time decides.
func TestLeaseExpiresAlone(t *testing.T) {
	f := newFake()
	f.bound = human()
	h := handler(t, f)
	b := newBetween(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/v1/leases" {
			h.ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	f.life = 200 * time.Millisecond
	c := dial(t, b.URL, "p")
	l, err := c.Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the expiry", func() bool { return !l.IsCurrent(l.Authority()) })
	select {
	case <-l.Done():
	case <-time.After(patient):
		t.Fatal("the end did not come")
	}
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	if e := reins.AsError(err); e.Code != reins.CodeLeaseEnded || e.Details["reason"] != "expired" {
		t.Errorf("it ended by %v %v", e, e.Details)
	}
}

// TestEventsComeBack: events go on where the connection broke, none is lost or
// comes twice; what another server cannot know counts as missed.
func TestEventsComeBack(t *testing.T) {
	f := newFake()
	h := handler(t, f)
	b := newBetween(t, h)
	c := dial(t, b.URL, "p")
	events, err := c.Events(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	next := func() reins.Event {
		t.Helper()
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatal("the events ended")
			}
			return e
		case <-time.After(patient):
			t.Fatal("no event came")
		}
		return reins.Event{}
	}
	for i := range 60 {
		f.events <- reins.Event{Kind: "tab", Detail: fmt.Sprint(i)}
		if i%20 == 10 {
			b.CloseClientConnections()
		}
		if e := next(); e.Detail != fmt.Sprint(i) || e.Missed != 0 {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	other := newFake()
	b.set(handler(t, other), nil)
	h.Close()
	b.CloseClientConnections()
	other.events <- reins.Event{Kind: "state"} // before anybody follows
	until(t, "the other server's reader", func() bool { return len(other.events) == 0 })
	other.events <- reins.Event{Kind: "retired"}
	missed := 0
	for {
		e := next()
		missed += e.Missed
		if e.Kind == "retired" {
			break
		}
	}
	if missed == 0 {
		t.Error("what was lost with the first server is not counted")
	}
	close(other.events)
	for range events {
	}
}

// TestLostAnswers is OPS-6 for the wire: an effect that may have happened is
// never told as a plain failure, and what can be repeated is.
func TestLostAnswers(t *testing.T) {
	f, h, b, c, l := follows(t)
	var did atomic.Int64
	f.do = func(context.Context, *fakeLease, reins.Call) (*reins.Result, error) {
		did.Add(1)
		return &reins.Result{}, nil
	}
	r, err := c.Open(t.Context(), human().Key())
	if err != nil {
		t.Fatal(err)
	}
	var losing atomic.Int64
	b.set(h, func(r *http.Request) bool {
		return !strings.HasSuffix(r.URL.Path, "/events") && losing.Add(-1) >= 0
	})
	for name, x := range map[string]struct {
		lost int64
		ask  func() error
		code reins.Code
		did  int64
	}{
		"a click": {1, func() error { return do(l, reins.Call{Action: reins.Click{Ref: "f1e1"}}) }, reins.CodeCompletionUnknown, 1},
		"a click with progress": {1, func() error {
			return do(l, reins.Call{Action: reins.Click{Ref: "f1e1"}, Progress: func(reins.Progress) {}})
		}, reins.CodeCompletionUnknown, 1},
		"a click under a key":  {1, func() error { return do(l, reins.Call{Action: reins.Click{Ref: "f1e1"}, Key: "k"}) }, "", 2},
		"a snapshot":           {2, func() error { return do(l, reins.Call{Action: reins.Snapshot{}}) }, "", 3},
		"a snapshot, for ever": {attempts, func() error { return do(l, reins.Call{Action: reins.Snapshot{}}) }, reins.CodeTransportFailure, attempts},
		"a start":              {1, func() error { return r.Start(t.Context()) }, "", 0},
		"a termination":        {1, func() error { return r.Terminate(t.Context()) }, reins.CodeCompletionUnknown, 0},
		"a capability":         {1, func() error { _, err := c.Issue(t.Context(), human(), 0); return err }, reins.CodeCompletionUnknown, 0},
		"a list":               {1, func() error { _, err := c.List(t.Context(), "p"); return err }, "", 0},
		"a file": {1, func() error {
			_, err := c.Artifacts(human().Key()).Put(t.Context(), reins.Artifact{Kind: "upload"}, strings.NewReader("x"))
			return err
		}, reins.CodeCompletionUnknown, 0},
	} {
		did.Store(0)
		losing.Store(x.lost)
		err := x.ask()
		losing.Store(0)
		if reins.CodeOf(err) != x.code || did.Load() != x.did {
			t.Errorf("%s: %v after %d actions, want %q after %d", name, err, did.Load(), x.code, x.did)
		}
	}
	count := func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.made }
	made := count()
	losing.Store(1)
	if _, err := c.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p"}}); err != nil || count() != made+1 {
		t.Errorf("a lost registration: %v, %d made", err, count()-made)
	}
}

func do(l reins.Lease, c reins.Call) error {
	_, err := l.Do(context.Background(), c)
	return err
}

// TestNoServer: who does not answer, or not as Reins does, is told apart.
func TestNoServer(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"a page":          func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") },
		"a page of error": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502); io.WriteString(w, "<html>") },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"another error": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", typeJSON)
			w.WriteHeader(400)
			io.WriteString(w, `{"code":"made_up","message":"x"}`)
		},
		"nothing": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, h := range answers {
		s := httptest.NewServer(h)
		c := dial(t, s.URL, "p")
		_, err := c.List(t.Context(), "p")
		if reins.CodeOf(err) != reins.CodeTransportFailure {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Events(t.Context(), "p"); reins.CodeOf(err) != reins.CodeTransportFailure {
			t.Errorf("%s: events: %v", name, err)
		}
		_ = c.Close()
		s.Close()
		_, err = dial(t, s.URL, "p").Issue(t.Context(), human(), 0) // nothing was sent
		wantCode(t, err, reins.CodeTransportFailure)
	}
}

// TestCancelWaitsUntilQuiet is QUI-1 from afar: a cancelled call returns what
// the runtime says once the browser is quiet.
func TestCancelWaitsUntilQuiet(t *testing.T) {
	f, _, _, _, l := follows(t)
	for _, aloud := range []bool{false, true} {
		began, quiet := make(chan struct{}), make(chan struct{})
		f.do = func(ctx context.Context, _ *fakeLease, _ reins.Call) (*reins.Result, error) {
			close(began)
			<-ctx.Done()
			<-quiet
			return nil, reins.Errorf(reins.CodeCompletionUnknown, "the driver was lost")
		}
		call := reins.Call{Action: reins.Click{Ref: "f1e1"}}
		if aloud {
			call.Progress = func(reins.Progress) {}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := l.Do(ctx, call)
			done <- err
		}()
		<-began
		cancel()
		select {
		case err := <-done:
			t.Fatalf("it returned before the browser was quiet: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		close(quiet)
		wantCode(t, <-done, reins.CodeCompletionUnknown)
	}
}

// TestDownloadsAreChecked is ART-4 from afar: other bytes are corrupt, and an
// end before the whole is an error.
func TestDownloadsAreChecked(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 100_000)
	for name, x := range map[string]struct {
		send []byte
		code reins.Code
	}{
		"as stored": {data, ""},
		"changed":   {append([]byte("y"), data[1:]...), reins.CodeCorrupt},
		"cut":       {data[:1000], reins.CodeTransportFailure},
		"none":      {nil, reins.CodeTransportFailure},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			describeArtifact(w.Header(), about2("art_x", data))
			_, _ = w.Write(x.send)
		}))
		c := dial(t, s.URL, "p")
		_, r, err := c.Artifacts(human().Key()).Open(t.Context(), "art_x")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = io.ReadAll(r)
		if reins.CodeOf(err) != x.code {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
		_ = c.Close()
		s.Close()
	}
}

// TestClose: a closed client has released its leases, left nothing behind and
// says so.
func TestClose(t *testing.T) {
	f, _, _, c, l := follows(t)
	events, err := c.Events(context.Background(), "p")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-l.Done():
	default:
		t.Error("a lease of a closed client goes on")
	}
	if f.lease().released == 0 {
		t.Error("the lease was not released")
	}
	for range events {
	}
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
	wantCode(t, err, reins.CodeRuntimeStopped)
	_, err = c.List(t.Context(), "p")
	wantCode(t, err, reins.CodeRuntimeStopped)
	_, err = c.Events(t.Context(), "p")
	wantCode(t, err, reins.CodeRuntimeStopped)
	_, err = c.Acquire(t.Context(), theToken, human())
	wantCode(t, err, reins.CodeRuntimeStopped)
	_, _, err = c.Artifacts(human().Key()).Open(t.Context(), "art_x")
	wantCode(t, err, reins.CodeRuntimeStopped)
}
