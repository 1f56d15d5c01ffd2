package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// listen opens a stream by hand.
func listen(t *testing.T, url, key string, headers ...string) (*sseReader, *http.Response) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); res.Body.Close() })
	return newSSEReader(res.Body, errorMax), res
}

func (s *sseReader) want(t *testing.T, name string) sseEvent {
	t.Helper()
	e, err := s.next(func() {})
	if err != nil || e.name != name {
		t.Fatalf("event %+v, %v; want %s", e, err, name)
	}
	return e
}

// TestEventsGoOn: a stream goes on where it broke, and what is not known any
// more is counted.
func TestEventsGoOn(t *testing.T) {
	f := newFake()
	h, s := serve(t, f, Options{})
	url := s.URL + "/v1/projects/p/events"
	send := func(from, to int) {
		for i := from; i < to; i++ {
			f.events <- reins.Event{Kind: "tab", Detail: fmt.Sprint(i)}
		}
		until(t, "the feed", func() bool { return len(f.events) == 0 })
	}
	detail := func(e sseEvent) string {
		var ev reins.Event
		if err := e.decode(&ev); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ev.Detail, " ", ev.Missed)
	}
	first, res := listen(t, url, "p")
	start := first.want(t, eventOpen)
	send(0, 3)
	if got := detail(first.want(t, eventChange)); got != "0 0" {
		t.Errorf("first event %s", got)
	}
	at := first.want(t, eventChange)
	res.Body.Close()
	send(3, 5)
	again, _ := listen(t, url, "p", eventHeader, at.id)
	again.want(t, eventOpen)
	for _, want := range []string{"2 0", "3 0", "4 0"} {
		if got := detail(again.want(t, eventChange)); got != want {
			t.Errorf("it went on with %s, want %s", got, want)
		}
	}
	send(5, 5+feedLength)
	until(t, "the last event", func() bool {
		f := h.streams.feeds["p"]
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.next == 5+feedLength
	})
	late, _ := listen(t, url, "p", eventHeader, start.id)
	late.want(t, eventOpen)
	if got := detail(late.want(t, eventChange)); got != "5 5" {
		t.Errorf("too late: %s", got)
	}
	for _, id := range []string{"other-3", "x", h.streams.feeds["p"].id(1 << 40), "-"} {
		lost, _ := listen(t, url, "p", eventHeader, id)
		if e := lost.want(t, eventOpen); !strings.Contains(string(e.data), "true") {
			t.Errorf("%q: %s", id, e.data)
		}
	}
	close(f.events) // the runtime has stopped
	for {
		e, err := late.next(func() {})
		if err != nil {
			t.Fatal(err)
		}
		if e.name == eventEnd {
			wantCode(t, e.decode(nil), reins.CodeRuntimeStopped)
			return
		}
	}
}

// TestStreamsShowLife: an idle stream says that it lives, and ends with the
// handler, without a word.
func TestStreamsShowLife(t *testing.T) {
	f := newFake()
	f.bound = human()
	h, s := serve(t, f, Options{KeepAlive: 100 * time.Millisecond})
	l, err := dial(t, s.URL, "p").Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/projects/p/events", "/v1/leases/" + l.Authority().LeaseID + "/events"} {
		in, res := listen(t, s.URL+path, "p", capabilityHeader, theToken)
		if _, err := in.next(func() {}); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(res.Body)
		for range 2 {
			if line, err := lines.ReadString('\n'); err != nil || line != ": keep-alive\n" {
				t.Fatalf("%s: %q, %v", path, line, err)
			}
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			if rest, err := io.ReadAll(lines); strings.Contains(string(rest), "event:") {
				t.Errorf("%s: last words %q, %v", path, rest, err)
			}
		}()
	}
	h.Close()
	r, body := ask(t, "GET", s.URL+"/v1/projects/p/events", "p", "")
	if e := decodeError([]byte(body)); r.StatusCode != 503 || e == nil || e.Code != reins.CodeNotReady {
		t.Errorf("a closed handler: %d %s", r.StatusCode, body)
	}
}

// TestRevokedKeyEndsStreams: what a key has opened ends when it is no longer
// good.
func TestRevokedKeyEndsStreams(t *testing.T) {
	gone := make(chan struct{})
	_, s := serve(t, newFake(), Options{Authenticate: func(*http.Request) (Identity, error) { return Identity{Project: "p", Ended: gone}, nil }})
	in, _ := listen(t, s.URL+"/v1/projects/p/events", "x")
	in.want(t, eventOpen)
	close(gone)
	wantCode(t, in.want(t, eventEnd).decode(nil), reins.CodeUnauthorized)
	if _, err := in.next(func() {}); err == nil {
		t.Error("there is more after the end")
	}
}

// TestArtifactEndsWithLease is LSE-6 and LSE-8: a read that a client is slow to
// take ends with the lease, 250 ms later at most, short of its length, and each
// chunk was checked.
func TestArtifactEndsWithLease(t *testing.T) {
	f := newFake()
	f.bound = human()
	data := bytes.Repeat([]byte("x"), 64<<20) // more than sockets hold
	var reads atomic.Int64
	f.do = func(_ context.Context, l *fakeLease, c reins.Call) (*reins.Result, error) {
		a := c.Action.(reins.ReadArtifact)
		reads.Add(1)
		if a.Artifact != "art_x" {
			return nil, reins.Errorf(reins.CodeNotFound, "no such artifact")
		}
		return &reins.Result{Artifacts: []reins.Artifact{about2("art_x", data)}, Data: bytes.Clone(data[a.Offset:min(int64(len(data)), a.Offset+a.Length)])}, nil
	}
	h, err := New(Options{Runtime: f, Authenticate: keys})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan time.Time, 4)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if strings.HasSuffix(r.URL.Path, "art_x") {
			over <- time.Now()
		}
	}))
	defer s.Close()
	defer h.Close()
	client := dial(t, s.URL, "p")
	defer client.Close()
	l, err := client.Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/leases/" + l.Authority().LeaseID + "/artifacts/"
	r, body := ask(t, "GET", s.URL+path+"none", "p", "", capabilityHeader, theToken)
	if r.StatusCode != 404 || decodeError([]byte(body)) == nil {
		t.Errorf("an unknown artifact: %d %s", r.StatusCode, body)
	}
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %sart_x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer p\r\n%s: %s\r\n\r\n", path, capabilityHeader, theToken)
	in := bufio.NewReaderSize(c, 1<<10)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.ContentLength != int64(len(data)) || res.Header.Get("Content-Disposition") != "attachment" ||
		res.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Fatalf("%d %v (ART-8)", res.StatusCode, res.Header)
	}
	if sum, err := readDigest(res.Header.Get(digestHeader)); err != nil || sum != about2("", data).SHA256 {
		t.Errorf("digest %s, %v", sum, err)
	}
	if _, err := io.CopyN(io.Discard, res.Body, 3<<20); err != nil {
		t.Fatal(err)
	}
	seen, since := int64(0), time.Now()
	until(t, "a full socket", func() bool {
		if n := reads.Load(); n != seen {
			seen, since = n, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
	began := time.Now()
	f.lease().end("revoked") // while the client takes nothing
	select {
	case at := <-over:
		t.Logf("from the end of the lease to the last byte: %s at most", at.Sub(began))
		if took := at.Sub(began); took > 5*time.Second { // 250 ms, and a loaded machine
			t.Errorf("the last byte came %s after the end of the lease", took)
		}
	case <-time.After(patient - 5*time.Second):
		t.Error("the stream goes on after the end of the lease")
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil || n+3<<20 >= int64(len(data)) {
		t.Fatalf("%d bytes more, %v", n, err)
	}
	if reads.Load() < 4 {
		t.Errorf("%d reads under the lease", reads.Load())
	}
}

// TestConnectionEndsAction is case B118: an action ends with its connection, or
// with its call.
func TestConnectionEndsAction(t *testing.T) {
	f := newFake()
	f.bound = human()
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	f.do = func(ctx context.Context, _ *fakeLease, c reins.Call) (*reins.Result, error) {
		if c.Progress != nil {
			c.Progress(reins.Progress{Stage: "queue", Position: 1})
		}
		began <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, reins.ContextError(ctx)
	}
	_, s := serve(t, f, Options{})
	l, err := dial(t, s.URL, "p").Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	url := s.URL + "/v1/leases/" + l.Authority().LeaseID + "/operations"
	round := 0
	for _, accept := range []string{typeJSON, typeSSE} {
		for _, cut := range []bool{true, false} {
			round++
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(fmt.Sprintf(`{"action":{"verb":"snapshot"},"call":"c%d"}`, round)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Content-Type": {typeJSON}, capabilityHeader: {theToken}, "Authorization": {"Bearer p"}, "Accept": {accept}}
			done := make(chan string, 1)
			go func() {
				res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
				if err != nil {
					done <- err.Error()
					return
				}
				defer res.Body.Close()
				b, _ := io.ReadAll(res.Body)
				done <- string(b)
			}()
			select {
			case <-began:
			case body := <-done:
				t.Fatalf("the call was answered with %s", body)
			}
			if cut {
				cancel()
			} else if res, body := ask(t, "DELETE", fmt.Sprint(url, "/c", round), "p", "", capabilityHeader, theToken); res.StatusCode != 204 {
				t.Fatalf("cancelling: %d %s", res.StatusCode, body)
			}
			select {
			case cause := <-ended:
				if !errors.Is(cause, context.Canceled) && reins.CodeOf(cause) != reins.CodeCancelled {
					t.Errorf("%s: ended by %v", accept, cause)
				}
			case <-time.After(patient):
				t.Fatalf("%s: the action goes on without its connection", accept)
			}
			if body := <-done; !cut && !strings.Contains(body, `"cancelled"`) {
				t.Errorf("%s: the cancelled call was answered with %s", accept, body)
			}
		}
	}
}

// FuzzSSE: whatever a server sends, the reader stays within its bound and ends.
func FuzzSSE(f *testing.F) {
	f.Add([]byte("id: a-1\nevent: state\ndata: {}\n\n: x\n\ndata: a\ndata: b\r\n\n"))
	f.Add(bytes.Repeat([]byte("data: xxxxxxxx\n"), 100))
	f.Add([]byte("event: end\ndata: {\"code\":\"busy\",\"message\":\"x\",\"details\":{\"n\":1e999}}\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newSSEReader(bytes.NewReader(b), 1000)
		for {
			e, err := in.next(func() {})
			if err != nil {
				return
			}
			if len(e.data) > 1000 {
				t.Fatalf("an event of %d bytes", len(e.data))
			}
			var s LeaseState
			if err := e.decode(&s); err != nil && reins.AsError(err).Message == "" {
				t.Fatal("an error without a sentence")
			}
		}
	})
}

// FuzzError: whatever a server answers with, what is not an error of the closed
// set is none, and one that is travels unchanged.
func FuzzError(f *testing.F) {
	f.Add([]byte(`{"code":"busy","message":"m","retryable":true,"recovery":"wait","details":{"a":[1,-1,1.5,"x",null]}}`))
	f.Add([]byte(`{"code":"nonsense","message":"m"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := decodeError(b)
		if e == nil {
			return
		}
		w := httptest.NewRecorder()
		(&Handler{}).refuse(w, httptest.NewRequest("GET", "/", nil), &reins.Error{Code: reins.CodeBusy, Message: e.Message, Details: e.Details})
		if back := decodeError(w.Body.Bytes()); back == nil || len(back.Details) != len(e.Details) {
			t.Fatalf("%s became %s", b, w.Body)
		}
	})
}
