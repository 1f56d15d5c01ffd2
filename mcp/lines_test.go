package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// wire is a client that speaks lines, not the SDK.
type wire struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Scanner
	end chan struct{}
}

func dial(t *testing.T, o mcp.Options) *wire {
	t.Helper()
	server, err := mcp.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wire{t: t, in: inW, out: bufio.NewScanner(outR), end: make(chan struct{})}
	w.out.Buffer(nil, 32<<20)
	go func() {
		defer close(w.end)
		if err := server.Serve(context.Background(), mcp.NewLines(inR, outW)); err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = outW.Close()
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		for w.out.Scan() { // so that no write blocks
		}
		<-w.end
	})
	return w
}

func (w *wire) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

type reply struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (w *wire) receive() reply {
	w.t.Helper()
	if !w.out.Scan() {
		w.t.Fatalf("the server closed: %v", w.out.Err())
	}
	var r reply
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		w.t.Fatalf("not a message: %q", w.out.Text())
	}
	return r
}

func (w *wire) ask(line string) reply {
	w.t.Helper()
	w.send(line)
	return w.receive()
}

func (w *wire) initialize(version string) string {
	w.t.Helper()
	r := w.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{%s"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, version))
	if r.Error != nil {
		w.t.Fatalf("initialize with %s: %+v", version, r.Error)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var got struct{ ProtocolVersion, Instructions string }
	if err := json.Unmarshal(r.Result, &got); err != nil || got.Instructions == "" {
		w.t.Fatalf("%s: %v", r.Result, err)
	}
	return got.ProtocolVersion
}

// MCP-1, B111: every version gets an answer, and one that the server speaks.
func TestVersions(t *testing.T) {
	const newest = "2025-11-25"
	for asked, want := range map[string]string{
		`"protocolVersion":"2025-11-25",`: "2025-11-25",
		`"protocolVersion":"2025-06-18",`: "2025-06-18",
		`"protocolVersion":"2025-03-26",`: "2025-03-26",
		`"protocolVersion":"2024-11-05",`: "2024-11-05",
		`"protocolVersion":"2099-01-01",`: newest,
		`"protocolVersion":"",`:           newest,
		``:                                newest,
	} {
		w := dial(t, mcp.Options{Lease: give(newFakeLease(nil))})
		if got := w.initialize(asked); got != want {
			t.Errorf("asked for %s: %s, want %s", asked, got, want)
		}
	}
}

// MCP-1: the revision without a handshake.
func TestNewestVersionNeedsNoHandshake(t *testing.T) {
	w := dial(t, mcp.Options{Lease: give(newFakeLease(nil))})
	r := w.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if r.Error != nil || !strings.Contains(string(r.Result), "browser_press") {
		t.Errorf("%+v %s", r.Error, r.Result)
	}
}

// MCP-1: results make sense to a client of the oldest version, which knows no
// resource links.
func TestOldestVersionGetsNoLinks(t *testing.T) {
	lease := newFakeLease(func(context.Context, reins.Call) (*reins.Result, error) {
		return &reins.Result{Screenshot: &reins.ScreenshotResult{Image: []byte("x"), MediaType: "image/png", Artifact: reins.Artifact{ID: "art_1", Project: "p", Resource: "r"}}}, nil
	})
	for version, links := range map[string]bool{"2024-11-05": false, "2025-11-25": true} {
		w := dial(t, mcp.Options{Lease: give(lease)})
		w.initialize(`"protocolVersion":"` + version + `",`)
		r := w.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"browser_screenshot"}}`)
		if strings.Contains(string(r.Result), `"resource_link"`) != links || !strings.Contains(string(r.Result), "reins://p/r/artifacts/art_1") {
			t.Errorf("%s: %s", version, r.Result)
		}
	}
}

// One bad line does not end a session.
func TestBadLinesAreAnswered(t *testing.T) {
	w := dial(t, mcp.Options{Lease: give(newFakeLease(nil))})
	w.initialize(`"protocolVersion":"2025-11-25",`)
	for line, code := range map[string]int{
		`hello`: -32700, `{"jsonrpc":"2.0",`: -32700, `{}`: -32600, `7`: -32600, `[]`: -32600, `[7]`: -32600,
		strings.Repeat("x", 9<<20): -32600,
	} {
		if r := w.ask(line); r.ID != nil || r.Error == nil || r.Error.Code != code {
			t.Errorf("%.40s: %+v", line, r)
		}
	}
	w.send("")
	if r := w.ask(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"browser_eval"}}`); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("unknown tool: %+v", r)
	}
	if r := w.ask(`{"jsonrpc":"2.0","id":6,"method":"no/such"}`); r.Error == nil || r.Error.Code != -32601 {
		t.Errorf("unknown method: %+v", r)
	}
	w.send(`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`)
	if a, b := w.receive(), w.receive(); a.ID.(float64)+b.ID.(float64) != 15 || a.Error != nil || b.Error != nil {
		t.Errorf("batch: %+v %+v", a, b)
	}
}

// What a script sends before it closes its end is answered.
func TestLastCallsAreAnswered(t *testing.T) {
	w := dial(t, mcp.Options{Lease: give(newFakeLease(nil))})
	w.initialize(``)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"browser_press","arguments":{"key":"A"}}}`)
	_ = w.in.Close()
	ids := map[any]bool{w.receive().ID: true, w.receive().ID: true}
	if !ids[1.0] || !ids[2.0] {
		t.Errorf("answered %v", ids)
	}
	if w.out.Scan() {
		t.Errorf("and %q", w.out.Text())
	}
}

// MCP-8: a client that is gone is seen at once, whatever still runs.
func TestGoneClientEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := newFakeLease(func(ctx context.Context, _ reins.Call) (*reins.Result, error) {
			<-ctx.Done()
			return nil, reins.ContextError(ctx)
		})
		w := dial(t, mcp.Options{Lease: give(lease)})
		w.initialize(``)
		w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"browser_press","arguments":{"key":"A"}}}`)
		synctest.Wait()
		start := time.Now()
		_ = w.in.Close()
		for w.out.Scan() {
		}
		<-w.end
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if _, released := lease.counts(); released != 1 {
			t.Errorf("%d releases", released)
		}
	})
}

// Whatever comes in, each line that the server writes is one message, and
// reading ends with the input.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"))
	f.Add([]byte("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"browser_press\"}},{}]\nx"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		server, err := mcp.NewServer(mcp.Options{Lease: give(newFakeLease(nil))})
		if err != nil {
			t.Fatal(err)
		}
		outR, outW := io.Pipe()
		go func() {
			_ = server.Serve(context.Background(), mcp.NewLines(strings.NewReader(string(input)), outW))
			_ = outW.Close()
		}()
		out := bufio.NewScanner(outR)
		out.Buffer(nil, 32<<20)
		for out.Scan() {
			if !json.Valid(out.Bytes()) {
				t.Errorf("not JSON: %q", out.Text())
			}
		}
	})
}

var _ sdk.Transport = (*mcp.Lines)(nil)

// What the transport writes of a response is what the protocol's own encoder
// writes of it, whatever its ID and result.
func TestLinesEncode(t *testing.T) {
	for _, id := range []any{"a\"\n<é>", 7.0, -1.0} {
		made, err := jsonrpc.MakeID(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range []string{`{}`, `{"text":"a\nb\u2028 <x> é"}`, "{\n \"a\": 1}", ``, `null`} {
			msg := &jsonrpc.Response{ID: made, Result: json.RawMessage(result)}
			var out strings.Builder
			if err := mcp.NewLines(strings.NewReader(""), &out).Write(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
			want, err := jsonrpc.EncodeMessage(msg)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if json.Unmarshal([]byte(out.String()), &a) != nil || json.Unmarshal(want, &b) != nil {
				t.Fatalf("not JSON: %q, %q", out.String(), want)
			}
			if diff := cmp.Diff(b, a); diff != "" || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("ID %v, result %q: %q, the encoder wrote %q", id, result, out.String(), want)
			}
		}
	}
}
