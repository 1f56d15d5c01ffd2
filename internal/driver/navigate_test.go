package driver

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// NAV-1, NAV-4: what the server answers is what navigate says.
func TestNavigateAnswers(t *testing.T) {
	mux := http.NewServeMux()
	html := func(path string, status int, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	html("/{$}", 200, "<title>Home</title>")
	html("/missing", 404, "<title>Missing</title>")
	html("/broken", 500, "<title>Broken</title>")
	html("/bare", 404, "")
	html("/untitled", 200, "<p>text")
	html("/script", 200, `<title>Script</title><script>location.replace("/")</script>`)
	html("/meta", 200, `<title>Meta</title><meta http-equiv=refresh content="0;url=/">`)
	mux.Handle("/redirect", http.RedirectHandler("/missing", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/secret", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="inner"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, "<title>Sign in</title>")
	})
	for path, reason := range map[string]string{"/unresolved": "dns", "/crowded": "too-many"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Reins-Egress", reason)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<title>Refused</title>")
		})
	}
	mux.HandleFunc("/refused", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Reins-Egress", "private address")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<title>Refused</title>")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	s := serve(t, mux)
	secure := httptest.NewUnstartedServer(mux)
	secure.TLS = &tls.Config{}
	secure.Config.ErrorLog = quietLog()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	nobody := closedPort(t)
	tests := []struct {
		url    string
		status int
		title  string
		end    string // of the final address
		code   reins.Code
		words  string
	}{
		{url: "/", status: 200, title: "Home", end: "/"},
		{url: "/missing", status: 404, title: "Missing", end: "/missing"},
		{url: "/broken", status: 500, title: "Broken", end: "/broken"},
		{url: "/untitled", status: 200, end: "/untitled"},
		{url: "/redirect", status: 404, title: "Missing", end: "/missing"},
		{url: "/bare", status: 404, end: "/bare"},
		{url: "/empty", status: 204, end: ""},
		{url: "/secret", status: 401, title: "Sign in", end: "/secret"},
		{url: "about:blank", end: "about:blank"},
		{url: "/loop", code: reins.CodeNavigationFailed, words: "redirects for ever"},
		{url: "/unresolved", code: reins.CodeNavigationFailed, words: "no such host"},
		{url: "/crowded", code: reins.CodeQuotaExceeded, words: "too many connections"},
		{url: "/refused", code: reins.CodeEgressDenied, words: `"private address"`},
		{url: "/cut", code: reins.CodeNavigationFailed, words: "without an answer"},
		{url: nobody, code: reins.CodeNavigationFailed, words: "nothing listens"},
		{url: "http://nowhere.invalid/", code: reins.CodeNavigationFailed, words: "cannot be resolved"},
		{url: secure.URL, code: reins.CodeNavigationFailed, words: "TLS: its certificate"},
		{url: strings.Replace(s.URL, "http:", "https:", 1), code: reins.CodeNavigationFailed, words: "TLS"},
		{url: "http://127.0.0.1:22/", code: reins.CodeNavigationFailed, words: "do not connect to that port"},
		{url: "javascript:1", code: reins.CodeNavigationBlocked, words: "javascript"},
		{url: "file:///etc/passwd", code: reins.CodeNavigationBlocked, words: "file"},
		{url: "http://", code: reins.CodeInvalidInput, words: "with a host"},
	}
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, test := range tests {
			url := test.url
			if strings.HasPrefix(url, "/") {
				url = s.URL + url
			}
			began := time.Now()
			r, err := b.try(reins.Navigate{URL: url})
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s took %v", test.url, took)
			}
			if test.code != "" {
				wantCode(t, err, test.code)
				if err == nil || !strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), "ERR_") {
					t.Errorf("%s: %v, want words %q and no bare code", test.url, err, test.words)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", test.url, err)
				continue
			}
			n := r.Result.Navigation
			if n.Status != test.status || n.Title != test.title || !strings.HasSuffix(n.URL, test.end) || !n.Waited {
				t.Errorf("%s: %+v, want status %d, title %q", test.url, n, test.status, test.title)
			}
			if test.status == 204 && len(r.Result.Notes) == 0 {
				t.Errorf("%s: nothing is said about the page that stays", test.url)
			}
		}
		// Where the page itself goes on at once, the navigation ends there or on
		// the way, and the page can be used.
		for _, path := range []string{"/script", "/meta"} {
			b.open(t, s.URL+path)
			b.eventually(t, path+" went on", func() bool { return b.selected.url == s.URL+"/" && b.selected.main.phase == phaseLoaded })
		}
	})
}

// closedPort is the address of a server that is not there.
func closedPort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	l.Close()
	return "http://" + l.Addr().String()
}

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// NAV-1: the wait conditions, history, and pages that never finish.
func TestNavigateWaits(t *testing.T) {
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, body)
		})
	}
	page("/{$}", "<title>Home</title>")
	page("/img", `<title>Image</title><img src=/hang>`)
	page("/parse", `<title>Script</title><script src=/hang></script>`)
	mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Slow</title><p>first part")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := serve(t, mux)
	short := reins.Duration(1500 * time.Millisecond)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, test := range []struct {
			path, wait      string
			waited, loading bool
		}{
			{"/", "load", true, false},
			{"/img", "", true, true},
			{"/img", "load", false, true},
			{"/parse", "commit", true, true},
			{"/parse", "", false, true},
			{"/slow", "commit", true, true},
			{"/slow", "domcontentloaded", false, true},
		} {
			a := reins.Navigate{URL: s.URL + test.path, Wait: test.wait}
			if !test.waited {
				a.Timeout = short
			}
			r := b.act(t, a)
			n := r.Result.Navigation
			if n.Waited != test.waited || n.Loading != test.loading || n.Status != 200 {
				t.Errorf("%s until %s: %+v", test.path, test.wait, n)
			}
			if test.wait != "commit" && n.Title == "" {
				t.Errorf("%s: no title", test.path)
			}
		}
		_, err := b.try(reins.Navigate{URL: s.URL + "/hang", Timeout: short})
		wantCode(t, err, reins.CodeTimeout)
		b.open(t, s.URL+"/")
		for _, test := range []struct{ way, title string }{{"back", "Slow"}, {"forward", "Home"}, {"reload", "Home"}} {
			r := b.act(t, reins.Navigate{URL: test.way, Wait: "commit"})
			if n := r.Result.Navigation; n.Title != test.title && n.URL != s.URL+"/slow" {
				t.Errorf("%s: %+v", test.way, n)
			}
		}
		_, err = b.try(reins.Navigate{URL: "forward"})
		wantCode(t, err, reins.CodeInvalidState)
	})
}

// NAV-4: going back to pages that could not be loaded names them, and the page
// there can be acted on at once.
func TestBackToFailures(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Home</title>")
	}))
	nobody := closedPort(t)
	b := newBrowser(t, reins.EngineShell)
	b.open(t, s.URL+"/")
	for _, path := range []string{"/one", "/two"} {
		_, err := b.try(reins.Navigate{URL: nobody + path})
		wantCode(t, err, reins.CodeNavigationFailed)
	}
	b.open(t, "about:blank")
	for _, path := range []string{"/two", "/one"} {
		_, err := b.try(reins.Navigate{URL: "back"})
		wantCode(t, err, reins.CodeNavigationFailed)
		if err != nil && !strings.Contains(err.Error(), nobody+path) {
			t.Errorf("%v, want %s", err, nobody+path)
		}
		b.act(t, reins.PressKey{Key: "Tab"})
	}
	if r := b.open(t, "back"); r.Result.Navigation.Title != "Home" {
		t.Errorf("back: %+v", r.Result.Navigation)
	}
}

// NAV-1: a page that has nothing left to load is not told as still loading.
func TestStaticPageIsLoaded(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Home</title>"+strings.Repeat("<p>text", 2000))
	}))
	b := newBrowser(t, reins.EngineShell)
	loading := 0
	for i := range 10 {
		r := b.open(t, fmt.Sprintf("%s/%d", s.URL, i)).Result
		if r.Navigation.Loading != r.Tab.Loading {
			t.Errorf("navigation %+v of %+v", r.Navigation, r.Tab)
		}
		if r.Navigation.Loading {
			loading++
		}
	}
	if loading > 5 { // the machine may be slow now and then
		t.Errorf("%d of 10 static pages were still loading", loading)
	}
}

// NAV-5: an endless question for credentials blocks neither the document nor
// what it loads.
func TestCredentials(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="inner"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `<title>Home</title><img src=/secret>`)
	})
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		r := b.act(t, reins.Navigate{URL: s.URL, Wait: "load", Timeout: reins.Duration(3 * time.Second)})
		if !r.Result.Navigation.Waited {
			t.Errorf("an image that asks for credentials holds up the page: %+v", r.Result.Navigation)
		}
		got := b.pageScript(t, b.tabNow(), `Promise.race([fetch("/secret").then(r => String(r.status)), new Promise(d => setTimeout(() => d("hangs"), 3000))])`)
		if got != "401" {
			t.Errorf("fetch: %s", got)
		}
	})
}
