package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins"
)

// onlooker is a viewer by hand.
type onlooker struct {
	t testing.TB
	*websocket.Conn
}

// news is one message as an onlooker sees it.
type news struct {
	State  *reins.ViewState
	Error  *reins.Error
	Answer *struct {
		ID     uint64
		Result *reins.Result
		Error  *reins.Error
	}
	End   *reins.Error
	frame *reins.Frame
}

// look opens a view by hand. The query may be empty.
func look(t testing.TB, url, lease, query string) *onlooker {
	t.Helper()
	o, res, err := tryLook(t, url, lease, query)
	if err != nil {
		t.Fatalf("the handshake: %v, %+v", err, res)
	}
	return o
}

func tryLook(t testing.TB, url, lease, query string, headers ...string) (*onlooker, *http.Response, error) {
	t.Helper()
	head := http.Header{"Authorization": {"Bearer p"}, capabilityHeader: {theToken}}
	host := ""
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			host = headers[i+1]
		}
		head.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	conn, res, err := websocket.Dial(t.Context(), url+"/v1/leases/"+lease+"/view?"+query, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: head, Host: host, Subprotocols: []string{viewProtocol, "reins.page.x"},
	})
	if err != nil {
		return nil, res, err
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(newsMax)
	return &onlooker{t, conn}, res, nil
}

// next reads one message; false when there are no more.
func (o *onlooker) next() (news, bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	kind, b, err := o.Read(ctx)
	if err != nil {
		return news{}, false
	}
	var n news
	if kind == websocket.MessageBinary {
		size := binary.BigEndian.Uint32(b)
		n.frame = &reins.Frame{}
		if err := json.Unmarshal(b[4:4+size], n.frame); err != nil {
			o.t.Fatal(err)
		}
		n.frame.JPEG = b[4+size:]
		return n, true
	}
	if err := json.Unmarshal(b, &n); err != nil {
		o.t.Fatalf("%s: %v", b, err)
	}
	return n, true
}

func (o *onlooker) want() news {
	o.t.Helper()
	n, ok := o.next()
	if !ok {
		o.t.Fatal("the view has ended")
	}
	return n
}

// end reads to the end and returns why there is one; nil when nothing was said.
func (o *onlooker) end() (why *reins.Error) {
	o.t.Helper()
	for {
		n, ok := o.next()
		if !ok {
			return why
		}
		if why != nil {
			o.t.Fatal("there is more after the end")
		}
		why = n.End
	}
}

func (o *onlooker) say(format string, args ...any) {
	o.t.Helper()
	if err := o.Write(o.t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		o.t.Fatal(err)
	}
}

func picture(n int, size int) reins.Update {
	return reins.Update{Frame: &reins.Frame{
		ID: reins.FrameID{Incarnation: 1, Stream: 2, Sequence: uint64(n)}, Tab: "t1", Viewport: 3, Width: 1280, Height: 800,
		Captured: time.Unix(int64(n), 0).UTC(), JPEG: bytes.Repeat([]byte{byte(n)}, size),
	}}
}

// watching serves a fake whose lease is acquired.
func watching(t testing.TB, o Options) (f *fake, h *Handler, url, lease string) {
	t.Helper()
	f = newFake()
	f.bound = human()
	h, s := serve(t, f, o)
	l, err := dial(t, s.URL, "p").Acquire(t.Context(), theToken, human())
	if err != nil {
		t.Fatal(err)
	}
	return f, h, s.URL, l.Authority().LeaseID
}

// TestView is FRM-1, FRM-2, FRM-6 and FRM-10 over HTTP: frames, state and errors
// come as they are, acknowledgements go, actions are done and answered.
func TestView(t *testing.T) {
	f, _, url, lease := watching(t, Options{})
	o := look(t, url, lease, "window=7")
	if got := o.Subprotocol(); got != viewProtocol {
		t.Errorf("subprotocol %q", got)
	}
	v := f.view(t, 0)
	if v.window != 7 {
		t.Errorf("window %d", v.window)
	}
	state := &reins.ViewState{Incarnation: 1, Life: reins.StateRunning, Selected: "t1", Viewport: reins.DefaultViewport()}
	frame := picture(1, 300<<10) // several pieces
	v.offer(reins.Update{State: state, Frame: frame.Frame, Err: reins.Errorf(reins.CodeFrameTooLarge, "too large").With("n", func() {})})
	if n := o.want(); n.State == nil || n.State.Selected != "t1" || n.State.Life != reins.StateRunning {
		t.Errorf("state %+v", n.State)
	}
	if n := o.want(); n.Error == nil || n.Error.Code != reins.CodeFrameTooLarge {
		t.Errorf("error %+v", n.Error)
	}
	n := o.want()
	if n.frame == nil || n.frame.ID != frame.Frame.ID || n.frame.Tab != "t1" || n.frame.Width != 1280 || !n.frame.Captured.Equal(frame.Frame.Captured) || !bytes.Equal(n.frame.JPEG, frame.Frame.JPEG) {
		t.Errorf("frame %+v", n)
	}
	o.say(`{"ack":{"incarnation":1,"stream":2,"sequence":1}}`)
	o.say(`{"ack":{"incarnation":9,"stream":9,"sequence":9}}`) // a lie harms nothing
	until(t, "the acknowledgement", func() bool { return v.acked() == 2 })
	if v.acks[0] != frame.Frame.ID {
		t.Errorf("acknowledged %v", v.acks)
	}
	o.say(`{"do":{"action":{"verb":"list_tabs"}}}`) // nobody asks for an answer
	o.say(`{"do":{"id":5,"action":{"verb":"list_tabs"}}}`)
	if n := o.want(); n.Answer == nil || n.Answer.ID != 5 || n.Answer.Result == nil || n.Answer.Result.Meta.LeaseID != lease || n.Answer.Error != nil {
		t.Errorf("answer %+v", n)
	}
	for what, code := range map[string]reins.Code{
		`{"verb":"nonsense"}`: reins.CodeInvalidInput, `{"verb":"click"}`: reins.CodeInvalidInput, `null`: reins.CodeInvalidInput, `7`: reins.CodeInvalidInput,
	} {
		o.say(`{"do":{"id":6,"action":%s}}`, what)
		if n := o.want(); n.Answer == nil || n.Answer.ID != 6 || n.Answer.Error == nil || n.Answer.Error.Code != code || n.Answer.Result != nil {
			t.Errorf("%s: answer %+v", what, n.Answer)
		}
	}
	f.lease().end("revoked")
	if why := o.end(); why == nil || why.Code != reins.CodeLeaseEnded || why.Details["reason"] != "revoked" {
		t.Errorf("the end: %v", why)
	}
	until(t, "the end of the subscription", func() bool { return v.closed.Err() != nil })
}

// TestViewRefusals: what is refused is refused before the connection is a
// WebSocket, in the one shape of errors; origins and hosts are checked for
// upgrades too.
func TestViewRefusals(t *testing.T) {
	f, _, url, lease := watching(t, Options{})
	path := url + "/v1/leases/" + lease + "/view"
	upgrade := []string{"Connection", "keep-alive, Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==",
		"Sec-WebSocket-Protocol", "reins.page.x, " + viewProtocol, capabilityHeader, theToken}
	with := func(more ...string) []string { return append(slices.Clone(upgrade), more...) }
	f.mu.Lock()
	f.refuse = reins.Errorf(reins.CodeDenied, "only people's leases have a live view")
	f.mu.Unlock()
	for _, c := range []struct {
		query   string
		headers []string
		code    reins.Code
	}{
		{"", with(), reins.CodeDenied}, // what the runtime says
		{"", []string{capabilityHeader, theToken}, reins.CodeInvalidInput},
		{"", with("Upgrade", "h2c"), reins.CodeInvalidInput},
		{"", with("Connection", "close"), reins.CodeInvalidInput},
		{"", with("Sec-WebSocket-Version", "8"), reins.CodeInvalidInput},
		{"", with("Sec-WebSocket-Protocol", "chat"), reins.CodeInvalidInput},
		{"?window=0", with(), reins.CodeInvalidInput}, {"?window=33", with(), reins.CodeInvalidInput}, {"?window=x", with(), reins.CodeInvalidInput},
		{"?take=yes", with(), reins.CodeInvalidInput},
		{"", with(capabilityHeader, "other"), reins.CodeUnauthorized},
		{"", with("Origin", "http://evil.test"), reins.CodeDenied},
		{"", with("Origin", "null"), reins.CodeDenied},
		{"", with("Host", "evil.test"), reins.CodeDenied},
		{"", with("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "websocket"), reins.CodeDenied},
	} {
		r, body := ask(t, "GET", path+c.query, "p", "", c.headers...)
		if e := decodeError([]byte(body)); e == nil || e.Code != c.code || r.StatusCode != c.code.Info().Status {
			t.Errorf("%s %v: %d %s, want %s", c.query, c.headers, r.StatusCode, body, c.code)
		}
	}
	if len(f.views) != 0 {
		t.Errorf("%d subscriptions", len(f.views))
	}
	f.mu.Lock()
	f.refuse = nil
	f.mu.Unlock()
	o, _, err := tryLook(t, url, lease, "", "Origin", url)
	if err != nil {
		t.Fatal(err)
	}
	if r, body := ask(t, "GET", path, "p", "", upgrade...); r.StatusCode != 409 || decodeError([]byte(body)).Code != reins.CodeBusy { // FRM-1: one a lease
		t.Errorf("a second view: %d %s", r.StatusCode, body)
	}
	_ = o.CloseNow()
	f.lease().end("expired")
	if r, body := ask(t, "GET", path, "p", "", upgrade...); decodeError([]byte(body)).Details["reason"] != "expired" {
		t.Errorf("an ended lease: %d %s", r.StatusCode, body)
	}
}

// TestViewTaken: a viewer that lost its connection comes back in its own place,
// and the connection of before is told.
func TestViewTaken(t *testing.T) {
	f, _, url, lease := watching(t, Options{})
	for n, old := 1, look(t, url, lease, ""); n < 4; n++ {
		o := look(t, url, lease, "take=1")
		if why := old.end(); why == nil || why.Code != reins.CodeBusy || why.Details["reason"] != "taken" {
			t.Fatalf("the end: %v", why)
		}
		f.view(t, n).offer(picture(n, 10))
		if got := o.want(); got.frame == nil || got.frame.ID.Sequence != uint64(n) {
			t.Fatalf("the new view: %+v", got)
		}
		if f.view(t, n-1).closed.Err() == nil {
			t.Error("the old subscription lives")
		}
		old = o
	}
	var wg sync.WaitGroup // many at once: one stays
	var mu sync.Mutex
	var all []*onlooker
	for range 8 {
		wg.Go(func() {
			o, _, err := tryLook(t, url, lease, "take=1")
			if err == nil {
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	until(t, "one to be left", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(slices.DeleteFunc(slices.Clone(f.views), func(v *fakeView) bool { return v.closed.Err() != nil })) == 1
	})
	if len(all) == 0 {
		t.Error("nobody sits there")
	}
}

// TestViewSlow is FRM-3: a viewer that takes its time holds nothing up, gets
// what its window keeps, and its acknowledgements are taken meanwhile.
func TestViewSlow(t *testing.T) {
	f, _, url, lease := watching(t, Options{})
	o := look(t, url, lease, "window=2")
	v := f.view(t, 0)
	const all, size = 400, 256 << 10 // far more than sockets hold
	for n := 1; n <= all; n++ {
		v.offer(picture(n, size))
		o.say(`{"ack":{"incarnation":1,"stream":2,"sequence":%d}}`, n)
	}
	until(t, "the acknowledgements", func() bool { return v.acked() == all })
	got, last := 0, uint64(0)
	for last < all {
		n := o.want()
		if n.frame == nil || n.frame.ID.Sequence <= last || len(n.frame.JPEG) != size {
			t.Fatalf("after %d: %+v", last, n)
		}
		last = n.frame.ID.Sequence
		got++
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if got+v.skipped != all || v.skipped < all/2 {
		t.Errorf("%d frames came and %d were skipped, of %d", got, v.skipped, all)
	}
}

// TestViewOrder is OPS-1: actions enter the lease as they were sent, although
// none waits for one before to end; those that wait do not hold
// acknowledgements up.
func TestViewOrder(t *testing.T) {
	f, _, url, lease := watching(t, Options{})
	open := make(chan struct{})
	var mu sync.Mutex
	var entered []string
	f.do = func(ctx context.Context, _ *fakeLease, c reins.Call) (*reins.Result, error) {
		mu.Lock()
		entered = append(entered, c.Action.(reins.Navigate).URL)
		n := len(entered)
		mu.Unlock()
		if n%3 != 0 { // else it fails before it is admitted
			c.Progress(reins.Progress{Stage: "queue", Position: n})
			c.Progress(reins.Progress{Stage: "running"})
			select {
			case <-open:
			case <-ctx.Done():
			}
			return &reins.Result{}, nil
		}
		return nil, reins.Errorf(reins.CodeQuotaExceeded, "no more")
	}
	o := look(t, url, lease, "")
	v := f.view(t, 0)
	var want []string
	const all = 200
	for n := range all {
		want = append(want, fmt.Sprint("u", n))
		o.say(`{"do":{"id":%d,"action":{"verb":"navigate","url":"u%d"}}}`, n+1, n)
	}
	o.say(`{"ack":{"incarnation":1,"stream":1,"sequence":1}}`)
	until(t, "the acknowledgement", func() bool { return v.acked() == 1 })
	until(t, "all actions", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(entered) == all
	})
	if !slices.Equal(entered, want) {
		t.Errorf("they entered as %v", entered)
	}
	close(open)
	seen := map[uint64]bool{}
	for range all {
		n := o.want()
		if n.Answer == nil || seen[n.Answer.ID] || (n.Answer.Error == nil) == (n.Answer.ID%3 == 0) {
			t.Fatalf("answer %+v", n.Answer)
		}
		seen[n.Answer.ID] = true
	}
}

// TestViewFlood: a viewer that sends without end is refused what is too much,
// and its actions end with its connection.
func TestViewFlood(t *testing.T) {
	f, h, url, lease := watching(t, Options{})
	ended := make(chan error, 2*actionsMax)
	f.do = func(ctx context.Context, _ *fakeLease, c reins.Call) (*reins.Result, error) {
		<-ctx.Done() // the first is never admitted
		ended <- context.Cause(ctx)
		return nil, reins.ContextError(ctx)
	}
	o := look(t, url, lease, "")
	v := f.view(t, 0)
	const over = 50
	for n := range actionsMax + over {
		o.say(`{"do":{"id":%d,"action":{"verb":"list_tabs"}}}`, n+1)
		o.say(`{"do":{"action":{"verb":"list_tabs"}}}`)
	}
	for range over {
		if n := o.want(); n.Answer == nil || n.Answer.Error == nil || n.Answer.Error.Code != reins.CodeQuotaExceeded {
			t.Fatalf("answer %+v", n.Answer)
		}
	}
	v.offer(picture(1, 10)) // it goes on
	for o.want().frame == nil {
	}
	_ = o.CloseNow() // it vanishes
	select {
	case cause := <-ended:
		if reins.CodeOf(cause) != reins.CodeCancelled {
			t.Errorf("an action was ended by %v", cause)
		}
	case <-time.After(patient):
		t.Fatal("an action goes on without its viewer")
	}
	until(t, "the end of the subscription", func() bool { return v.closed.Err() != nil })
	h.Close() // waits for all of it
}

// TestViewBadMessages: what no viewer sends ends the view with a sentence.
func TestViewBadMessages(t *testing.T) {
	_, _, url, lease := watching(t, Options{})
	for what, message := range map[string]string{
		"no JSON": "x", "nothing": "", "neither": "{}", "unknown": `{"hello":1}`, "a list": "[]", "two": `{"ack":{"incarnation":1,"stream":1,"sequence":1}}{}`,
		"both": `{"ack":{"incarnation":1,"stream":1,"sequence":1},"do":{"action":{"verb":"list_tabs"}}}`, "a bad id": `{"do":{"id":-1,"action":{"verb":"list_tabs"}}}`,
		"too large": `{"do":{"action":"` + strings.Repeat("x", requestMax) + `"}}`,
	} {
		o := look(t, url, lease, "take=1")
		o.say("%s", message)
		if why := o.end(); why == nil || why.Code != reins.CodeInvalidInput {
			t.Errorf("%s: the end: %v", what, why)
		}
	}
	o := look(t, url, lease, "take=1")
	if err := o.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if why := o.end(); why == nil || why.Code != reins.CodeInvalidInput {
		t.Errorf("binary: the end: %v", why)
	}
}

// TestViewEnds: a view ends with what it needs, and says why unless the server
// goes.
func TestViewEnds(t *testing.T) {
	key := make(chan struct{})
	f, h, url, lease := watching(t, Options{Authenticate: func(r *http.Request) (Identity, error) {
		who := Identity{Name: "p", Project: "p"}
		if r.Header.Get("Key") != "" {
			who.Ended = key
		}
		return who, nil
	}})
	o := look(t, url, lease, "")
	f.view(t, 0).close(reins.Errorf(reins.CodeBrowserEnded, "the browser died")) // LSE-5
	if why := o.end(); why == nil || why.Code != reins.CodeBrowserEnded {
		t.Errorf("a broken subscription: %v", why)
	}
	o, _, err := tryLook(t, url, lease, "take=1", "Key", "x")
	if err != nil {
		t.Fatal(err)
	}
	close(key)
	if why := o.end(); why == nil || why.Code != reins.CodeUnauthorized {
		t.Errorf("a revoked key: %v", why)
	}
	o = look(t, url, lease, "take=1")
	h.Close()
	if why := o.end(); why != nil {
		t.Errorf("a server that goes says %v", why)
	}
	r, _ := ask(t, "GET", url+"/v1/leases/"+lease+"/view", "p", "", capabilityHeader, theToken, "Connection", "Upgrade", "Upgrade", "websocket",
		"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol", viewProtocol)
	if r.StatusCode != 503 {
		t.Errorf("a closed handler: %d", r.StatusCode)
	}
}

// TestViewEndsInTime is LSE-6: a viewer that takes nothing loses its connection
// with the end of the lease, 250 ms later at most, whatever is being written.
func TestViewEndsInTime(t *testing.T) {
	f, h, url, lease := watching(t, Options{})
	o := look(t, url, lease, "")
	v := f.view(t, 0)
	until(t, "a writer that is stuck", func() bool {
		v.mu.Lock()
		skipped := v.skipped
		v.mu.Unlock()
		v.offer(picture(1, 2<<20))
		return skipped > 100
	})
	began := time.Now()
	f.lease().end("revoked")
	h.Close() // returns when all of it is over
	took := time.Since(began)
	t.Logf("from the end of the lease to the last byte: %s at most", took)
	if took > 5*time.Second { // 250 ms, and a loaded machine
		t.Errorf("the last byte came %s after the end of the lease", took)
	}
	if why := o.end(); why != nil && why.Code != reins.CodeLeaseEnded {
		t.Errorf("the end: %v", why)
	}
}

// FuzzViewRequest: whatever a viewer sends is one of two things or refused with
// a sentence.
func FuzzViewRequest(f *testing.F) {
	for _, s := range []string{`{"ack":{"incarnation":1,"stream":1,"sequence":1}}`, `{"do":{"id":1,"action":{"verb":"pointer","tab":"t1","kind":"move"}}}`, `{"do":null}`, `{}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := readRequest(b)
		if err != nil {
			if e := reins.AsError(err); e.Code != reins.CodeInvalidInput || e.Message == "" {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		if (q.Ack == nil) == (q.Do == nil) {
			t.Fatalf("%q: %+v", b, q)
		}
		if q.Do != nil {
			if _, err := reins.DecodeAction(q.Do.Action); err != nil && reins.CodeOf(err) != reins.CodeInvalidInput {
				t.Fatalf("%q: %v", b, err)
			}
		}
	})
}

// FuzzViewNews: whatever a server sends, the client takes no harm, and a frame
// travels unchanged.
func FuzzViewNews(f *testing.F) {
	head, err := frameHead(picture(1, 0).Frame)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(head, "jpeg"...))
	f.Add([]byte(`{"end":{"code":"busy","message":"m"}}`))
	f.Add([]byte(`{"state":{"tabs":[]},"error":{"code":"x"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, err := range []error{onlyErr(readNews(b)), onlyErr(readFrame(b))} {
			if err != nil && reins.CodeOf(err) != reins.CodeTransportFailure {
				t.Fatalf("%q: %v", b, err)
			}
		}
		frame, err := readFrame(b)
		if err != nil {
			return
		}
		head, err := frameHead(frame)
		if err != nil {
			var unsupported *json.MarshalerError // a year that has no JSON form
			if !errors.As(err, &unsupported) {
				t.Fatal(err)
			}
			return
		}
		back, err := readFrame(append(head, frame.JPEG...))
		if err != nil || back.ID != frame.ID || !bytes.Equal(back.JPEG, frame.JPEG) {
			t.Fatalf("%q came back as %+v, %v", b, back, err)
		}
	})
}

func onlyErr[T any](_ T, err error) error { return err }
