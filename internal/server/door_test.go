package server

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// B113, MCP-7: whatever is served, a web page that is not ours gets nothing of it.
func TestForeignPages_B113(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	port := s.url[strings.LastIndexByte(s.url, ':'):]
	b := s.browser()
	b.origin = ""
	for _, path := range []string{"/", "/join", "/r/p/a", "/assets/page.js", "/nothing", "/mcp", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics", "/people/config", "/v1/projects/p/resources", "/v1/leases/x/view", "/v1/keys"} {
		for what, h := range map[string][]string{
			"name":               {"Host", "evil.test" + port},
			"name with address":  {"Host", "127.0.0.1.evil.test"},
			"origin":             {"Origin", "http://evil.test"},
			"null origin":        {"Origin", "null"},
			"origin with a name": {"Origin", "http://localhost.evil.test"},
			"another port":       {"Origin", "http://127.0.0.1:1"},
			"upgrade":            {"Origin", "http://evil.test", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="},
		} {
			if r := b.send("GET", path, "", h...); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %d %.200s", path, what, r.StatusCode, r.body)
			}
		}
		if r := b.send("OPTIONS", path, "", "Origin", "http://evil.test", "Access-Control-Request-Method", "POST"); r.StatusCode < 400 || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: a preflight got %d %v", path, r.StatusCode, r.Header)
		}
		for _, host := range []string{"localhost" + port, "127.0.0.1" + port, "[::1]" + port} {
			if r := b.send("GET", path, "", "Host", host); r.StatusCode == http.StatusForbidden {
				t.Errorf("%s as %s: %d %s", path, host, r.StatusCode, r.body)
			}
		}
	}
	if r := b.send("GET", "/healthz", "", "Host", "browser-runtime"); !strings.Contains(r.body, "browser-runtime") || !strings.Contains(r.body, "--host") { // B114
		t.Errorf("%s", r.body)
	}
	if r := b.send("POST", "/mcp", "{}", "Host", "browser-runtime"); !strings.Contains(r.body, "--host") {
		t.Errorf("%s", r.body)
	}
}

// B114: names and origins that are given are answered to.
func TestGivenNames_B114(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", func(o *Options) {
		o.Hosts, o.Origins = []string{"browser-runtime", "tools.site.test"}, []string{"https://tools.site.test"}
	})
	b := s.browser()
	for _, path := range []string{"/", "/healthz", "/v1/keys", "/mcp"} {
		for _, h := range [][]string{{"Host", "browser-runtime:7777"}, {"Host", "tools.site.test", "Origin", "https://tools.site.test"}} {
			if r := b.send("GET", path, "", h...); r.StatusCode == http.StatusForbidden {
				t.Errorf("%s, %v: %d %s", path, h, r.StatusCode, r.body)
			}
		}
	}
}

// VIEW-3, VIEW-5: what people's pages may do, and who may show them.
func TestPagesArePolicedAndCached(t *testing.T) {
	plain := start(t, t.TempDir()+"/runtime", nil)
	framed := start(t, t.TempDir()+"/runtime", func(o *Options) { o.Ancestors = []string{"https://a.test", "http://b.test:8080"} })
	for path, media := range map[string]string{"/": "text/html", "/join": "text/html", "/r/p/a": "text/html", "/assets/page.js": "text/javascript"} {
		r := plain.browser().send("GET", path, "")
		h := r.Header
		policy := h.Get("Content-Security-Policy")
		if r.StatusCode != 200 || !strings.HasPrefix(h.Get("Content-Type"), media) || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			!strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %d %v", path, r.StatusCode, h)
		}
		if again := plain.browser().send("GET", path, "", "If-None-Match", h.Get("ETag")); again.StatusCode != http.StatusNotModified || again.body != "" {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
		r = framed.browser().send("GET", path, "")
		if !strings.Contains(r.Header.Get("Content-Security-Policy"), "frame-ancestors https://a.test http://b.test:8080") || r.Header.Get("X-Frame-Options") != "" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
	for _, path := range []string{"/assets/", "/assets/none.js", "/assets/../index.html", "/assets/%2e%2e/index.html", "/index.html", "/r/p"} {
		if r := plain.browser().send("GET", path, ""); r.code() != reins.CodeNotFound && r.StatusCode/100 != 3 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	for _, a := range []string{"*", "tools.test", "https://a.test/path", "https://a.test; script-src *", "javascript://x", "'self'"} {
		if _, err := contentPolicy([]string{a}); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%q: %v", a, err)
		}
	}
}

// API-6: only a trusted proxy is believed about who its client is, and what is behind
// what is not trusted counts for nothing.
func TestProxies(t *testing.T) {
	d := &Door{o: DoorOptions{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::1/128")}}}
	for _, c := range []struct{ from, forwarded, want string }{
		{"10.0.0.5:1", "203.0.113.9", "203.0.113.9"},
		{"10.0.0.5:1", "198.51.100.1, 203.0.113.9", "203.0.113.9"}, // the first is what the client claims
		{"10.0.0.5:1", "203.0.113.9, 10.0.0.7", "203.0.113.9"},
		{"10.0.0.5:1", "127.0.0.1, nonsense, 10.0.0.7", "10.0.0.7"},
		{"[fd00::1]:1", "[2001:db8::5]:99", "2001:db8::5"},
		{"203.0.113.9:1", "127.0.0.1", "203.0.113.9"},
		{"10.0.0.5:1", "", "10.0.0.5"},
		{"[::ffff:10.0.0.5]:1", "203.0.113.9", "203.0.113.9"},
	} {
		r := &http.Request{RemoteAddr: c.from, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		got, err := d.throughProxy(r)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := addressOf(got.RemoteAddr); a.String() != c.want || got.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("%+v: %s %v", c, got.RemoteAddr, got.Header)
		}
	}
	d.o.OnlyProxies = true
	for from, may := range map[string]bool{"10.0.0.5:1": true, "127.0.0.1:1": true, "[::1]:1": true, "203.0.113.9:1": false, "10.0.1.5:1": false, "@": false} {
		if _, err := d.throughProxy(&http.Request{RemoteAddr: from, Header: http.Header{}}); (err == nil) != may {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// API-5: metrics are this machine's and administrators'.
func TestMetricsFromElsewhere(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", func(o *Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	made, err := s.client("").CreateKey(t.Context(), api.KeyForm{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"": 401, made.Token: 401, s.admin(): 200} {
		if r := s.browser().send("GET", "/metrics", "", "X-Forwarded-For", "203.0.113.9", "Authorization", "Bearer "+key); r.StatusCode != want {
			t.Errorf("%d, want %d", r.StatusCode, want)
		}
	}
}

// API-1: the description of a server that keeps keys tells of them.
func TestDescription(t *testing.T) {
	s := start(t, t.TempDir()+"/runtime", nil)
	r := s.browser().send("GET", "/openapi.json", "")
	for _, path := range []string{`"/v1/keys"`, `"/v1/joins"`, `"/v1/audit"`, `"/v1/leases/{lease}/view"`} {
		if !strings.Contains(r.body, path) {
			t.Errorf("no %s", path)
		}
	}
	if r := s.browser().send("GET", "/docs", ""); r.StatusCode != 200 || !strings.Contains(r.body, "createKey") {
		t.Errorf("%d", r.StatusCode)
	}
}
