package cdp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer plays the browser at the other end of a connection.
type peer struct {
	t   *testing.T
	in  *bufio.Reader
	out io.Writer
}

type sent struct {
	ID      int64           `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Session string          `json:"sessionId"`
}

func connect(t *testing.T, opts Options) (*Conn, *peer) {
	t.Helper()
	fromBrowser, toDriver := io.Pipe()
	fromDriver, toBrowser := io.Pipe()
	c := New(fromBrowser, toBrowser, opts)
	t.Cleanup(func() { c.Close(); toDriver.Close(); fromDriver.Close() })
	return c, &peer{t, bufio.NewReader(fromDriver), toDriver}
}

func (p *peer) read() sent {
	p.t.Helper()
	raw, err := p.in.ReadBytes(0)
	if err != nil {
		p.t.Fatalf("the browser's end: %v", err)
	}
	var s sent
	if err := json.Unmarshal(raw[:len(raw)-1], &s); err != nil {
		p.t.Fatalf("the driver sent %q: %v", raw, err)
	}
	return s
}

func (p *peer) write(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.out, format+"\x00", args...); err != nil {
		p.t.Fatalf("the browser's end: %v", err)
	}
}

func TestCallsAndErrors(t *testing.T) {
	c, p := connect(t, Options{})
	s := c.Session("S", nil)
	call := Send(s, page.Navigate, page.NavigateParams{URL: "https://example.com/"})
	got := p.read()
	if got.Method != "Page.navigate" || got.Session != "S" || string(got.Params) != `{"url":"https://example.com/"}` {
		t.Errorf("sent %+v", got)
	}
	p.write(`{"id":%d,"result":{"frameId":"F","loaderId":"L\ud83d"},"sessionId":"S"}`, got.ID)
	reply, err := call.Wait(t.Context())
	if err != nil || reply.FrameID != "F" || reply.LoaderID != "L\ufffd" {
		t.Errorf("got %+v, %v; a half surrogate pair becomes U+FFFD", reply, err)
	}

	call = Send(s, page.Navigate, page.NavigateParams{URL: "x"})
	p.write(`{"id":%d,"error":{"code":-32000,"message":"Cannot <b>navigate"},"sessionId":"S"}`, p.read().ID)
	_, err = call.Wait(t.Context())
	if fault, ok := IsProtocol(err); !ok || fault.Code != CodeServer || fault.Method != "Page.navigate" {
		t.Errorf("got %v, want a ProtocolError", err)
	}
}

// What the browser says before a reply is handled before the reply is
// returned, on whatever session.
func TestEventsBeforeReply(t *testing.T) {
	c, p := connect(t, Options{})
	var seen []string
	var child *Session
	record := func(e Event) {
		seen = append(seen, e.Session.ID()+" "+e.Method)
		if a, ok := Is(e, target.AttachedToTarget); ok {
			child = c.Session(string(a.SessionID), func(e Event) {
				seen = append(seen, e.Session.ID()+" "+e.Method)
			})
		}
	}
	b := c.Session("B", record)
	for range 50 {
		seen = nil
		call := b.Send("Target.setAutoAttach", nil)
		id := p.read().ID
		p.write(`{"method":"Target.attachedToTarget","params":{"sessionId":"P","targetInfo":{"targetId":"t","type":"page"},"waitingForDebugger":true},"sessionId":"B"}`)
		p.write(`{"method":"Page.frameNavigated","params":{},"sessionId":"P"}`)
		p.write(`{"method":"Page.frameNavigated","params":{},"sessionId":"unknown"}`)
		p.write(`{"id":%d,"result":{},"sessionId":"B"}`, id)
		if err := call.Wait(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(seen, ", "); got != "B Target.attachedToTarget, P Page.frameNavigated" {
			t.Fatalf("handled %q", got)
		}
		child.End()
	}
}

// Then's outcomes come in order with events, and when nothing can answer.
func TestThen(t *testing.T) {
	c, p := connect(t, Options{})
	var seen []string
	s := c.Session("S", func(e Event) { seen = append(seen, e.Method) })
	Then(s, page.Navigate, page.NavigateParams{}, func(r page.NavigateResult, err error) {
		seen = append(seen, fmt.Sprintf("%s %v", r.FrameID, err))
	})
	id := p.read().ID
	p.write(`{"method":"A","params":{},"sessionId":"S"}`)
	p.write(`{"id":%d,"result":{"frameId":"F"},"sessionId":"S"}`, id)
	p.write(`{"method":"B","params":{},"sessionId":"S"}`)
	call := s.Send("X", nil)
	p.write(`{"id":%d,"result":{},"sessionId":"S"}`, p.read().ID)
	if err := call.Wait(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ", "); got != "A, F <nil>, B" {
		t.Errorf("handled %q", got)
	}
	ended := make(chan error, 1)
	Then(s, page.Navigate, page.NavigateParams{}, func(_ page.NavigateResult, err error) { ended <- err })
	p.read()
	s.End()
	if err := <-ended; !errors.Is(err, ErrSessionEnded) {
		t.Errorf("got %v", err)
	}
}

// countWrites counts the writes that reach a pipe.
type countWrites struct {
	io.WriteCloser
	n int
}

func (w *countWrites) Write(b []byte) (int, error) { w.n++; return w.WriteCloser.Write(b) }

func TestSendAllIsOneWrite(t *testing.T) {
	fromBrowser, toDriver := io.Pipe()
	fromDriver, toBrowser := io.Pipe()
	w := &countWrites{WriteCloser: toBrowser}
	c := New(fromBrowser, w, Options{})
	defer c.Close()
	defer toDriver.Close()
	p := &peer{t, bufio.NewReader(fromDriver), toDriver}
	calls := c.Session("S", nil).SendAll(Request{"Input.a", nil}, Request{"Input.b", nil}, Request{"Input.c", nil})
	for _, want := range []string{"Input.a", "Input.b", "Input.c"} {
		got := p.read()
		if got.Method != want {
			t.Errorf("sent %s, want %s", got.Method, want)
		}
		p.write(`{"id":%d,"result":{},"sessionId":"S"}`, got.ID)
	}
	for _, call := range calls {
		if err := call.Wait(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if w.n != 1 {
		t.Errorf("%d writes, want 1", w.n)
	}
}

func TestEnds(t *testing.T) {
	c, p := connect(t, Options{})
	s, other := c.Session("S", nil), c.Session("T", nil)
	a, b := s.Send("X.a", nil), other.Send("X.b", nil)
	p.read()
	p.read()
	s.End()
	if err := a.Wait(t.Context(), nil); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("the ended session's call: %v", err)
	}
	if err := s.Call(t.Context(), "X.c", nil, nil); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("a call after the session's end: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller left")
	cancel(cause)
	if err := b.Wait(ctx, nil); !errors.Is(err, cause) {
		t.Errorf("a cancelled wait: %v", err)
	}
	c.Close()
	if err := b.Wait(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("the connection's end: %v", err)
	}
	late := c.Session("U", nil)
	select {
	case <-late.Done():
	default:
		t.Error("a session of an ended connection lives")
	}
	if err := late.Call(t.Context(), "X.d", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a call on an ended connection: %v", err)
	}
}

func TestBrowserGone(t *testing.T) {
	c, p := connect(t, Options{})
	call := c.Root().Send("Browser.getVersion", nil)
	p.read()
	p.out.(io.Closer).Close()
	if err := call.Wait(t.Context(), nil); !errors.Is(err, ErrClosed) || !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	<-c.Done()
}

// DRV-3: a message above the bound ends the session that sent it, and no other.
func TestOversize(t *testing.T) {
	c, p := connect(t, Options{Message: 100_000})
	small := c.Session("SMALL", nil)
	for _, size := range []int{100_001, 131_072, 5_000_000} {
		big := c.Session("BIG", nil)
		a, b := big.Send("X.a", nil), small.Send("X.b", nil)
		ida, idb := p.read().ID, p.read().ID
		p.write(`{"id":%d,"result":{"text":"%s\",\"sessionId\":\"SMALL\"}"},"sessionId":"BIG"}`, ida, strings.Repeat("x", size))
		p.write(`{"id":%d,"result":{},"sessionId":"SMALL"}`, idb)
		if err := a.Wait(t.Context(), nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d: got %v", size, err)
		}
		if err := b.Wait(t.Context(), nil); err != nil {
			t.Errorf("%d: the other session: %v", size, err)
		}
		<-big.Done()
	}
	// On the root session only the call fails.
	a := c.Root().Send("X.a", nil)
	p.write(`{"id":%d,"result":{"text":"%s"}}`, p.read().ID, strings.Repeat("x", 200_000))
	if err := a.Wait(t.Context(), nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("root: got %v", err)
	}
	// As large as the bound is taken.
	a = small.Send("X.a", nil)
	id := p.read().ID
	head := fmt.Sprintf(`{"id":%d,"result":{"text":"`, id)
	tail := `"},"sessionId":"SMALL"}`
	p.write("%s%s%s", head, strings.Repeat("x", 100_000-len(head)-len(tail)), tail)
	if err := a.Wait(t.Context(), nil); err != nil {
		t.Errorf("at the bound: %v", err)
	}
}

// DRV-3: unanswered calls and unwritten bytes are bounded.
func TestOverload(t *testing.T) {
	for name, opts := range map[string]Options{
		"calls": {InFlight: 10}, "bytes": {Backlog: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, opts)
			var err error
			for i := 0; err == nil && i < 100; i++ {
				call := c.Root().Send("X.a", map[string]string{"text": strings.Repeat("x", 100)})
				select {
				case <-call.Done():
					err = call.Wait(t.Context(), nil)
				default:
				}
			}
			if !errors.Is(err, ErrOverload) {
				t.Errorf("got %v", err)
			}
			<-c.Done()
		})
	}
}

func TestParametersThatDoNotEncode(t *testing.T) {
	c, p := connect(t, Options{})
	calls := c.Root().SendAll(Request{"X.a", nil}, Request{"X.b", func() {}}, Request{"X.c", nil})
	for _, call := range calls {
		if err := call.Wait(t.Context(), nil); err == nil {
			t.Error("no error")
		}
	}
	c.Root().Send("X.d", nil)
	if got := p.read(); got.Method != "X.d" {
		t.Errorf("%s was sent", got.Method)
	}
}

func TestIDsStayWithin32Bits(t *testing.T) {
	c, p := connect(t, Options{})
	c.Root().Send("X.a", nil) // stays unanswered
	first := p.read().ID
	c.mu.Lock()
	c.last = 1<<31 - 2
	c.mu.Unlock()
	for _, want := range []int64{1<<31 - 1, first + 1} {
		c.Root().Send("X.b", nil)
		if got := p.read().ID; got != want {
			t.Errorf("ID %d, want %d", got, want)
		}
	}
}

// DRV-2: a take-over survives whatever the process before left in the pipes.
func TestTakeOver(t *testing.T) {
	fromBrowser, toDriver := io.Pipe()
	fromDriver, toBrowser := io.Pipe()
	p := &peer{t, bufio.NewReader(fromDriver), toDriver}
	done := make(chan error, 1)
	var c *Conn
	var version *browser.GetVersionResult
	go func() {
		var err error
		c, version, err = TakeOver(t.Context(), fromBrowser, toBrowser, Options{}, 7)
		if err == nil {
			err = c.Release(t.Context(), Previous{Browsers: []string{"OLD"}, Pages: []string{"P1", "GONE"}})
		}
		done <- err
	}()
	if torn, err := p.in.ReadBytes(0); err != nil || string(torn) != "!\x00" {
		t.Fatalf("the first message is %q, %v; want one that cannot be executed", torn, err)
	}
	id := p.read().ID
	p.write(`e":"rest of a message that was half read"}}`)
	p.write(`{"id":%d,"result":{"product":"stolen"},"sessionId":"P1"}`, id)
	p.write(`{"error":{"code":-32700,"message":"JSON: invalid token"}}`)
	p.write(`{"method":"Page.frameNavigated","params":{},"sessionId":"P1"}`)
	p.write(`{"id":%d,"result":{"product":"Chrome/156"}}`, id)
	for _, want := range []string{
		"P1 Page.handleJavaScriptDialog", "P1 Runtime.terminateExecution", "P1 Runtime.evaluate",
		"GONE Page.handleJavaScriptDialog", "GONE Runtime.terminateExecution", "GONE Runtime.evaluate",
	} {
		got := p.read()
		if got.Session+" "+got.Method != want {
			t.Errorf("sent %s %s, want %s", got.Session, got.Method, want)
		}
		p.write(`{"id":%d,"error":{"code":-32001,"message":"Session with given id not found."}}`, got.ID)
	}
	got := p.read()
	if got.Method != "Target.detachFromTarget" || string(got.Params) != `{"sessionId":"OLD"}` || got.Session != "" {
		t.Errorf("sent %+v", got)
	}
	p.write(`{"id":%d,"error":{"code":-32602,"message":"No session with given id"}}`, got.ID)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer toDriver.Close()
	if version.Product != "Chrome/156" {
		t.Errorf("the version is %q: somebody else's reply was taken", version.Product)
	}
	if id < 7*idRange || id > 8*idRange {
		t.Errorf("ID %d is not from the driver's own range", id)
	}
}

// A page that answers nothing delays a take-over by the patience only.
func TestTakeOverOfStuckPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromBrowser, toDriver := io.Pipe()
		fromDriver, toBrowser := io.Pipe()
		p := &peer{t, bufio.NewReader(fromDriver), toDriver}
		done := make(chan *Conn, 1)
		start := time.Now()
		go func() {
			c, _, err := TakeOver(t.Context(), fromBrowser, toBrowser, Options{}, 1)
			if err == nil {
				err = c.Release(t.Context(), Previous{Browsers: []string{"OLD"}, Pages: []string{"P"}})
			}
			if err != nil {
				t.Error(err)
			}
			done <- c
		}()
		p.in.ReadBytes(0)
		p.write(`{"id":%d,"result":{}}`, p.read().ID)
		p.read()
		p.read()
		p.read()
		p.write(`{"id":%d,"result":{}}`, p.read().ID)
		c := <-done
		if took := time.Since(start); took != patience {
			t.Errorf("took %v, want %v", took, patience)
		}
		c.Close()
		toDriver.Close()
		fromDriver.Close()
	})
}

func TestTakeOverFails(t *testing.T) {
	fromBrowser, toDriver := io.Pipe()
	_, toBrowser := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := TakeOver(ctx, fromBrowser, toBrowser, Options{}, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := toDriver.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the pipe is still open: %v", err)
	}
}

// frameModel is the framing rule said plainly: what is between NULs, unless
// too long, and nothing after the last NUL.
func frameModel(stream []byte, limit int) (out []string) {
	parts := bytes.Split(stream, []byte{0})
	for _, part := range parts[:len(parts)-1] {
		if len(part) > limit {
			out = append(out, fmt.Sprintf("skipped %d", len(part)))
		} else {
			out = append(out, string(part))
		}
	}
	return out
}

// slow returns a few bytes at a time.
type slow struct {
	b    []byte
	step int
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:min(s.step, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\x00bb\x00\x00ccc"), 3, 2)
	f.Add([]byte(strings.Repeat("x", 700)+"\x00y\x00"), 100, 50)
	f.Add([]byte(strings.Repeat("x", 300)+"\x00"+strings.Repeat("y\x00", 400)), 400, 70)
	f.Fuzz(func(t *testing.T, stream []byte, limit, step int) {
		if limit < 1 || step < 1 {
			return
		}
		var got []string
		r := newFrames(&slow{bytes.Clone(stream), step}, limit)
		r.buf = make([]byte, 0, 16) // so that small inputs make it grow
		for {
			message, over, err := r.next()
			if err != nil {
				break
			}
			if over != nil {
				over.envelope()
				got = append(got, fmt.Sprintf("skipped %d", over.size))
			} else {
				got = append(got, string(message))
			}
		}
		if want := frameModel(stream, limit); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %.300q, want %.300q", got, want)
		}
	})
}

// FuzzEnvelope holds the envelope's scanner against the standard library: what
// that takes as an object is read the same; the other is refused or harmless.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"result":{"a":["]","\"}",{}]},"sessionId":"AB"}`,
		`{"method":"A.b","params":{"x":"\\"}}`, `{}`, `{"id":1}x`, `{"id":"1"}`, `{"error":{"code":-1,"message":"m"}}`, `[1]`, `{"id":1,}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseEnvelope(b)
		var keys map[string]json.RawMessage
		if err != nil || json.Unmarshal(b, &keys) != nil {
			return
		}
		var want struct {
			ID     *int64
			Result json.RawMessage
		}
		if !onlyExact(keys) || json.Unmarshal(b, &want) != nil {
			return
		}
		if want.ID != nil && bytes.Count(b, []byte(`"id"`)) == 1 && *want.ID != got.id {
			t.Errorf("%q: ID %d, want %d", b, got.id, *want.ID)
		}
		if bytes.Count(b, []byte(`"result"`)) == 1 && string(want.Result) != string(got.result) {
			t.Errorf("%q: result %q, want %q", b, got.result, want.Result)
		}
	})
}

// onlyExact tells whether no two keys differ in case only, which the standard
// library would merge.
func onlyExact(keys map[string]json.RawMessage) bool {
	for k := range keys {
		switch k {
		case "id", "method", "result", "sessionId", "params", "error":
		default:
			return false
		}
	}
	return true
}

func BenchmarkLargeReply(b *testing.B) {
	text := strings.Repeat(`- button \"Save\" [ref=f1e12]\n`, 130_000)
	message := []byte(`{"id":1,"result":{"result":{"type":"string","value":"` + text + `"}},"sessionId":"S"}`)
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		e, err := parseEnvelope(message)
		if err != nil {
			b.Fatal(err)
		}
		var v struct {
			Result struct{ Value string }
		}
		if err := decode(e.result, &v); err != nil {
			b.Fatal(err)
		}
	}
}
