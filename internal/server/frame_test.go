package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

const host1 = "https://tools.site.test" // the origin of a page that frames ours

func framing(t *testing.T, ask func(context.Context, Visit) error) (*site, *browser) {
	s := start(t, filepath.Join(t.TempDir(), "run"), func(o *Options) { o.Ancestors, o.Ask = []string{host1}, ask })
	register(t, s.client(""), "r", nil)
	j, err := s.client("").Join(t.Context(), api.JoinForm{Actor: "Ada", Resource: &api.Place{Project: "p", ID: "r"}, Framed: true})
	if err != nil {
		t.Fatal(err)
	}
	page, secret, _ := strings.Cut(strings.TrimPrefix(j.URL, s.url), "#")
	if page != "/r/p/r?embed=1" {
		t.Errorf("the link leads to %s", page)
	}
	b := s.browser()
	if r := b.send("GET", page, "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"); r.StatusCode != 200 || !strings.Contains(r.Header.Get("Content-Security-Policy"), "frame-ancestors "+host1) || r.Header.Get("X-Frame-Options") != "" {
		t.Errorf("%s may not frame the page: %v", host1, r.Header)
	}
	var in struct{ Key string }
	r := b.send("POST", "/people/join", `{"secret":"`+secret+`"}`)
	r.into(t, &in)
	if in.Key == "" || len(r.Cookies()) != 0 {
		t.Fatalf("a frame of another site gets key %q and cookies %v", in.Key, r.Cookies())
	}
	if again := b.send("POST", "/people/join", `{"secret":"`+secret+`"}`); again.code() != reins.CodeUnauthorized {
		t.Errorf("the link opens twice: %d %s", again.StatusCode, again.body)
	}
	b.key = in.Key
	b.load()
	return s, b
}

// VIEW-5: in a frame of another site's page, no cookie is needed.
func TestFrame(t *testing.T) {
	s, b := framing(t, nil)
	lease := b.open(reins.ResourceKey{Project: "p", ID: "r"})
	do := func(b *browser) reply {
		return b.send("POST", "/v1/leases/"+lease+"/operations", `{"action":{"verb":"control"}}`)
	}
	if r := do(b); r.code() != "" {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for name, stranger := range map[string]*browser{
		"without its key":   {t: t, s: s, origin: s.url, page: b.page},
		"without its page":  {t: t, s: s, origin: s.url, key: b.key},
		"the key as cookie": {t: t, s: s, origin: s.url, page: b.page, cookie: []*http.Cookie{{Name: "reins_other", Value: b.key}}},
	} {
		if r := do(stranger); r.code() != reins.CodeUnauthorized {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	foreign := *b
	foreign.origin = "https://evil.test"
	if r := do(&foreign); r.code() != reins.CodeDenied {
		t.Errorf("the page around it acts: %d %s", r.StatusCode, r.body)
	}
	if r := b.send("DELETE", "/people/session", ""); r.code() != "" || len(r.Cookies()) != 0 {
		t.Errorf("leaving: %d %s %v", r.StatusCode, r.body, r.Cookies())
	}
	if r := do(b); r.code() != reins.CodeUnauthorized {
		t.Errorf("after leaving: %d %s", r.StatusCode, r.body)
	}
}

// A link for a frame needs a page that may show it, and one resource.
func TestFrameRefused(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "run"), nil)
	register(t, s.client(""), "r", nil)
	if r := s.browser().send("GET", "/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"); r.code() != reins.CodeDenied {
		t.Errorf("any page may frame it: %d %s", r.StatusCode, r.body)
	}
	_, err := s.client("").Join(t.Context(), api.JoinForm{Actor: "Ada", Resource: &api.Place{Project: "p", ID: "r"}, Framed: true})
	expect(t, err, reins.CodeDenied)
	s2 := start(t, filepath.Join(t.TempDir(), "run"), func(o *Options) { o.Ancestors = []string{host1} })
	_, err = s2.client("").Join(t.Context(), api.JoinForm{Actor: "Ada", Projects: []string{"p"}, Framed: true})
	expect(t, err, reins.CodeInvalidInput)
}

// VIEW-5: the host is asked when a page opens a resource, at every WebSocket, and at
// every control operation.
func TestHostIsAsked(t *testing.T) {
	var mu sync.Mutex
	var asked []Visit
	no := ""
	s, b := framing(t, func(_ context.Context, v Visit) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, v)
		if v.Event == no {
			return errHostSaysNo()
		}
		return nil
	})
	refuse := func(event string) {
		mu.Lock()
		defer mu.Unlock()
		no = event
	}
	refuse("page")
	if r := b.send("POST", "/people/open", `{"project":"p","resource":"r"}`); r.code() != reins.CodeDenied {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	refuse("")
	lease := b.open(reins.ResourceKey{Project: "p", ID: "r"})
	refuse("stream")
	if r := b.send("GET", "/v1/leases/"+lease+"/view", "", "Connection", "Upgrade", "Upgrade", "websocket", "Origin", s.url,
		"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol", "reins.view.v1"); r.code() != reins.CodeDenied {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	refuse("control")
	for verb, want := range map[string]reins.Code{"control": "", "request_control": reins.CodeDenied, "release_control": reins.CodeDenied} {
		if r := b.send("POST", "/v1/leases/"+lease+"/operations", `{"action":{"verb":"`+verb+`"}}`); r.code() != want {
			t.Errorf("%s: %d %s, want %q", verb, r.StatusCode, r.body, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, event := range []string{"page", "page", "stream", "control", "control"} {
		if len(asked) != 5 || asked[i].Event != event || asked[i].Actor != "Ada" || asked[i].Project != "p" || asked[i].Resource != "r" {
			t.Fatalf("asked %+v", asked)
		}
	}
	if !asked[0].Framed || asked[0].Origin != s.url {
		t.Errorf("asked %+v", asked[0])
	}
}

// The question goes to an address; whatever is no success is a no.
func TestAskAt(t *testing.T) {
	status := http.StatusNoContent
	var got Visit
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" || json.NewDecoder(r.Body).Decode(&got) != nil {
			status = http.StatusTeapot
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer h.Close()
	ask, err := AskAt(h.URL, "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(t.Context(), Visit{Event: "page", Actor: "Ada"}); err != nil || got.Actor != "Ada" {
		t.Errorf("%v, %+v", err, got)
	}
	for _, status = range []int{http.StatusFound, http.StatusForbidden, http.StatusInternalServerError} {
		expect(t, ask(t.Context(), Visit{}), reins.CodeDenied)
	}
	h.Close()
	expect(t, ask(t.Context(), Visit{}), reins.CodeDenied)
	for _, bad := range []string{"", "tools.site.test", "file:///hook", "https://user:word@tools.site.test"} {
		if _, err := AskAt(bad, ""); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
