package mcp_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// Whatever a client of its own posts, the door answers with no fault of its own,
// acts under nobody else's lease, and goes on serving.
func FuzzHTTPPost(f *testing.F) {
	f.Add([]byte(hello), "", "")
	f.Add([]byte(pressing(1, "A")), "session", "2025-11-25")
	f.Add([]byte(`[`+pressing(1, "A")+`,{"jsonrpc":"2.0","id":2,"method":"ping"}]`), "session", "2025-03-26")
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`), "", "2026-07-28")
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), "session", "")
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":5}`), "session", "2099-01-01")
	k := &keys{leases: map[reins.Token][]*fakeLease{}}
	h, err := mcp.NewHTTPHandler(mcp.HTTPOptions{Authenticate: authenticate, Acquire: k.acquire})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(h.Close)
	send := func(ctx context.Context, name string, body []byte, session, version string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader(body))
		for header, value := range map[string]string{
			"X-Peer": name, "Authorization": "Bearer token-" + name, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": version,
		} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	begin := func(name string) string {
		w := send(context.Background(), name, []byte(hello), "", "")
		id := w.Header().Get("Mcp-Session-Id")
		if id == "" {
			f.Fatalf("no session for %s: %d %s", name, w.Code, w.Body)
		}
		send(context.Background(), name, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), id, "")
		return id
	}
	ann, bob := begin("ann"), begin("bob")
	f.Fuzz(func(t *testing.T, body []byte, session, version string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // for what listens
		defer cancel()
		if session == "session" {
			session = ann
		}
		if w := send(ctx, "ann", body, session, version); w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := send(ctx, "ann", body, bob, version); w.Code < 400 {
			t.Errorf("in another's session: %d %s", w.Code, w.Body)
		}
		if w := send(t.Context(), "bob", []byte(`{"jsonrpc":"2.0","id":"still","method":"ping"}`), bob, ""); w.Code != http.StatusOK {
			t.Errorf("the next: %d %s", w.Code, w.Body)
		}
		if n := len(k.of("token-bob")[0].actions()); n != 0 {
			t.Errorf("%d calls under another's lease", n)
		}
	})
}
