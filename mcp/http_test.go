package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// MCP-1: the SDK's own client, in the versions with sessions and without.
func TestHTTPWithTheSDKsClient(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2026-07-28", ""} {
		t.Run(version, func(t *testing.T) {
			s := serve(t, mcp.HTTPOptions{}, func(_ context.Context, c reins.Call) (*reins.Result, error) {
				c.Progress(reins.Progress{Stage: "running"})
				return &reins.Result{}, nil
			})
			told := make(chan string, 8)
			c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					told <- r.Params.Message
				},
			})
			session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
				Endpoint: "http://127.0.0.1/mcp", HTTPClient: &http.Client{Transport: bearing{s.http.Transport, "ann", "token-ann"}},
			}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != version && version != "" {
				t.Fatalf("version %s was agreed on, not %s", got, version)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 6 {
				t.Fatalf("tools: %v %v", tools, err)
			}
			params := &sdk.CallToolParams{Name: "browser_press", Arguments: map[string]any{"key": "Enter"}}
			params.SetProgressToken("p")
			res, err := session.CallTool(t.Context(), params)
			if err != nil || res.IsError {
				t.Fatalf("call: %+v %v", res, err)
			}
			if got := <-told; got != "Running." {
				t.Errorf("progress %q", got)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if n := len(s.keys.of("token-ann")); n != 1 {
				t.Errorf("%d leases", n)
			}
		})
	}
}

// bearing sends what a client bears along.
type bearing struct {
	http.RoundTripper
	peer, token string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Peer", b.peer)
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// MCP-2: who is not authenticated, or bears what does not match, is told one
// thing; other failures to get a lease have their own status.
func TestHTTPAuthentication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, mcp.HTTPOptions{}, nil)
		var first string
		for _, c := range []struct{ peer, token string }{
			{"", "token-ann"}, {"panics", "token-panics"}, {"late", "token-late"}, {"api", "token-api"}, {"partial", "x"},
			{"ann", ""}, {"ann", "token-bob"}, {"ann", "nonsense"}, {"bob", "token-ann"},
		} {
			p := s.peer(c.peer)
			p.token = c.token
			a := p.post(hello)
			if a.status != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") || a.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%q with %q: %d %s", c.peer, c.token, a.status, a.body)
			}
			if first == "" {
				first = a.body
			}
			if a.body != first || a.err == nil || a.err.Data.Code != string(reins.CodeUnauthorized) {
				t.Errorf("%q with %q: %s, others were told %s", c.peer, c.token, a.body, first)
			}
		}
		for err, want := range map[*reins.Error]int{
			reins.Errorf(reins.CodeDenied, "no"):             http.StatusForbidden,
			reins.Errorf(reins.CodeRuntimeStopped, "no"):     http.StatusServiceUnavailable,
			reins.Errorf(reins.CodeQuotaExceeded, "no"):      http.StatusTooManyRequests,
			reins.Errorf(reins.CodeRetired, "it is retired"): http.StatusGone,
		} {
			s.keys.refuse = err
			a := s.peer("ann").post(hello)
			if a.status != want || a.err == nil || a.err.Data.Code != string(err.Code) {
				t.Errorf("%s: %d %s", err.Code, a.status, a.body)
			}
			if retry := a.header.Get("Retry-After"); (retry != "") != (want == 429 || want == 503) {
				t.Errorf("%s: Retry-After %q", err.Code, retry)
			}
		}
		s.keys.refuse = nil
		s.peer("ann").initialize()
	})
}

// MCP-2, MCP-6, B110: a session exists for nobody but the bearer and binding
// that it began with, however it is asked for; and the owner is not disturbed.
func TestHTTPSessionCannotBeStolen(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	owner := s.peer("ann")
	owner.initialize()
	call := owner.post(pressing(1, "A"))
	thief := s.peer("bob")
	thief.initialize()
	for name, p := range map[string]*peer{
		"another client":                        {s, "bob", "token-bob", owner.session, owner.version},
		"another client with the owner's token": {s, "bob", "token-ann", owner.session, owner.version},
		"the owner's name with another token":   {s, "ann", "token-bob", owner.session, owner.version},
		"another token of the same binding":     {s, "ann", "other-ann", owner.session, owner.version},
		"the owner's name without a token":      {s, "ann", "", owner.session, owner.version},
	} {
		for _, r := range []*http.Request{
			p.request(t.Context(), "POST", pressing(2, "B")),
			p.request(t.Context(), "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`),
			p.request(t.Context(), "GET", ""),
			p.request(t.Context(), "GET", "", "Last-Event-ID", call.event),
			p.request(t.Context(), "DELETE", ""),
		} {
			if a := p.do(r); a.status != http.StatusNotFound || a.err == nil || strings.Contains(a.body, "press") {
				t.Errorf("%s: %s answered %d %s", name, r.Method, a.status, a.body)
			}
		}
	}
	nobody := &peer{s, "", "token-ann", owner.session, owner.version}
	if a := nobody.post(pressing(3, "C")); a.status != http.StatusUnauthorized {
		t.Errorf("nobody: %d %s", a.status, a.body)
	}
	if text, bad := owner.press(4, "D"); bad {
		t.Error(text)
	}
	leases := s.keys.of("token-ann")
	if len(leases) != 1 || len(leases[0].actions()) != 2 {
		t.Errorf("the owner has %d leases, the first did %d", len(leases), len(leases[0].actions()))
	}
	if n := len(s.keys.of("token-bob")[0].actions()); n != 0 {
		t.Errorf("the thief did %d", n)
	}
}

// B110: an ID that is not known is 404 at once, none is 400, and the client that
// initialises anew goes on under its lease.
func TestHTTPUnknownSession(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	p := s.peer("ann")
	p.initialize()
	before := p.session
	p.session = "of-a-server-that-was"
	for _, method := range []string{"POST", "GET", "DELETE"} {
		a := p.do(p.request(t.Context(), method, bodyFor(method)))
		if a.status != http.StatusNotFound || a.err == nil || a.err.Data.Code != string(reins.CodeNotFound) {
			t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	p.session = ""
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if a := p.do(p.request(t.Context(), method, bodyFor(method))); a.status != http.StatusBadRequest || a.err == nil {
			t.Errorf("without an ID, %s: %d %s", method, a.status, a.body)
		}
	}
	p.initialize()
	if text, bad := p.press(1, "A"); bad || p.session == before {
		t.Error(text)
	}
	if n := len(s.keys.of("token-ann")); n != 1 {
		t.Errorf("two sessions of a client have %d leases", n)
	}
}

func bodyFor(method string) string {
	if method == "POST" {
		return pressing(1, "A")
	}
	return ""
}

// B111: every version is answered by one that the server speaks, whatever the
// header says; later an unknown one is refused and none is the agreed one.
func TestHTTPVersions(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, nil)
	for _, asked := range []string{`"2025-11-25"`, `"2025-06-18"`, `"2025-03-26"`, `"2024-11-05"`, `"2099-01-01"`, `"2026-07-28"`, `""`, "none"} {
		for _, header := range []string{"", "2025-11-25", "2025-03-26", "2099-01-01", "1999-01-01"} {
			p := s.peer("ann")
			body := strings.Replace(hello, `"2025-11-25"`, asked, 1)
			if asked == "none" {
				body = strings.Replace(hello, `"protocolVersion":"2025-11-25",`, "", 1)
			}
			a := p.post(body, "Mcp-Protocol-Version", header)
			agreed := "2025-11-25"
			if bare := strings.Trim(asked, `"`); bare < agreed && bare > "2" {
				agreed = bare
			}
			if a.status != http.StatusOK || !strings.Contains(string(a.result), `"protocolVersion":"`+agreed+`"`) {
				t.Fatalf("asked for %s with header %q: %d %s", asked, header, a.status, a.body)
			}
			p.session = a.header.Get("Mcp-Session-Id")
			p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			for _, later := range []string{"1999-01-01", "2099-01-01", "2026-07-28"} {
				if a := p.post(pressing(1, "A"), "Mcp-Protocol-Version", later); a.status != http.StatusBadRequest || a.err == nil {
					t.Errorf("later %q: %d %s", later, a.status, a.body)
				}
			}
			if text, bad := p.press(2, "A"); bad { // no header
				t.Error(text)
			}
			want := http.StatusOK
			if agreed >= "2025-06-18" { // which has no batches
				want = http.StatusBadRequest
			}
			if a := p.post(`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`); a.status != want {
				t.Errorf("a batch in version %s: %d %s", agreed, a.status, a.body)
			}
			if a := p.do(p.request(t.Context(), "DELETE", "")); a.status != http.StatusNoContent {
				t.Errorf("DELETE: %d %s", a.status, a.body)
			}
		}
	}
}

// B121: tools do not vanish, whatever became of the lease; a call says what is
// gone, and goes on in the same session once the host gives a new one.
func TestHTTPToolsStay(t *testing.T) {
	s := serve(t, mcp.HTTPOptions{}, func(context.Context, reins.Call) (*reins.Result, error) {
		return nil, reins.Errorf(reins.CodeBrowserEnded, "the browser died")
	})
	p := s.peer("ann")
	p.initialize()
	if text, bad := p.press(1, "A"); !bad || !strings.HasPrefix(text, "browser_ended") || p.tools() != 6 {
		t.Errorf("a dead browser: %s", text)
	}
	s.keys.refuse = reins.Errorf(reins.CodeRuntimeStopped, "the runtime is stopping")
	s.keys.of("token-ann")[0].lose()
	if text, bad := p.press(2, "A"); !bad || !strings.HasPrefix(text, "runtime_stopped") || p.tools() != 6 {
		t.Errorf("a stopped runtime: %s", text)
	}
	s.keys.mu.Lock()
	s.keys.refuse, s.keys.do = nil, nil
	s.keys.mu.Unlock()
	if text, bad := p.press(3, "A"); bad || p.tools() != 6 {
		t.Errorf("after the restart: %s", text)
	}
}

// OPS-1: calls that came one after another, over connections of their own, run in
// that order, however long each takes to be admitted.
func TestHTTPCallsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan string, 64)
		s := serve(t, mcp.HTTPOptions{}, func(_ context.Context, c reins.Call) (*reins.Result, error) {
			began <- c.Action.(reins.Press).Key
			time.Sleep(time.Second)
			return &reins.Result{}, nil
		})
		p := s.peer("ann")
		p.initialize()
		over := make(chan struct{}, 64)
		var want string
		for i := range 26 {
			key := string(rune('a' + i))
			want += key
			go func() { p.press(i+1, key); over <- struct{}{} }()
			synctest.Wait() // sent
		}
		var got string
		for range 26 {
			<-over
			got += <-began
		}
		if got != want {
			t.Errorf("began %s", got)
		}
	})
}
