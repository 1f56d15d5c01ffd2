package driver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins"
)

// NAV-5, B057: a site that asks for credentials is answered with those for its
// origin, and no other is: neither one that it redirects to, nor what documents of
// other origins ask of it. Nothing tells of them.
func TestCredentialsOfAnOrigin(t *testing.T) {
	pass := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:synthetic-pin"))
	var mu sync.Mutex
	leaked := map[string]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		mu.Lock()
		if got == pass && !strings.HasPrefix(r.Host, "127.0.0.1") {
			leaked[r.Host+r.URL.Path] = true
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if !strings.HasPrefix(r.Host, "127.0.0.1") {
			fmt.Fprintf(w, "<!doctype html><title>Open</title>%s<button onclick=\"fetch('http://127.0.0.1:%s/data').then(r=>r.text()).then(t=>say('read '+t),()=>say('refused'))\">Read</button><img src='http://127.0.0.1:%s/picture'>",
				logPart, strings.Split(r.Host, ":")[1], strings.Split(r.Host, ":")[1])
			return
		}
		if got != pass {
			w.Header().Set("WWW-Authenticate", `Basic realm="back office"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "<title>Refused</title>no")
			return
		}
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://other.test:"+strings.Split(r.Host, ":")[1]+"/landed", http.StatusFound)
		case "/hop":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/data":
			fmt.Fprint(w, "inner data")
		default:
			fmt.Fprintf(w, "<!doctype html><title>Office</title>%s<button onclick=\"fetch('/data').then(r=>r.text()).then(say)\">Fetch</button><a href=/away>Away</a><a href=/next target=_blank>Next</a><form method=post action=/sent><button>Send</button></form>", logPart)
		}
	})
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		if n := b.open(t, s.URL+"/").Result.Navigation; n.Status != 401 {
			t.Fatalf("without credentials it answers %+v", n)
		}
		own := []Credential{{Origin: s.URL, Authorization: pass}}
		if _, err := b.do(t.Context(), Command{Action: reins.ListTabs{}, Credentials: own}); err != nil {
			t.Fatal(err)
		}
		home := b.tabNow().id
		var told []any
		r := b.open(t, s.URL+"/")
		if n := r.Result.Navigation; n.Status != 200 || n.Title != "Office" {
			t.Fatalf("with credentials it answers %+v", n)
		}
		if n := b.open(t, s.URL+"/hop").Result.Navigation; n.Status != 200 || n.Title != "Office" {
			t.Errorf("a redirect of its own leads to %+v", n)
		}
		told = append(told, r)
		see := b.see(t)
		told = append(told, see, b.act(t, reins.Click{Ref: refTo(t, see, `"Fetch"`)}))
		b.wantResult(t, "inner data")
		r = b.act(t, reins.Click{Ref: refTo(t, see, `"Next"`)})
		if opened := r.Result.Changes.OpenedTabs; len(opened) != 1 || opened[0].Title != "Office" {
			t.Errorf("a new tab shows %+v", opened)
		}
		b.act(t, reins.SelectTab{Tab: home})
		if r = b.act(t, reins.Click{Ref: refTo(t, see, `"Send"`)}); r.Result.Tab.Title != "Office" {
			t.Errorf("a form leads to %+v", r.Result.Tab)
		}
		r = b.open(t, s.URL+"/away")
		if n := r.Result.Navigation; !strings.HasSuffix(n.URL, "/landed") || n.Title != "Open" {
			t.Errorf("the redirect led to %+v", n)
		}
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Read"`)})
		if got := b.result(t); strings.Contains(got, "inner") {
			t.Errorf("another site %s", got)
		}
		told = append(told, r, b.act(t, reins.Network{All: true}), b.act(t, reins.Console{All: true}))
		b.mu.Lock()
		told = append(told, b.events)
		b.mu.Unlock()
		text, err := json.Marshal(told)
		if err != nil || strings.Contains(string(text), "synthetic") || strings.Contains(string(text), pass[6:]) {
			t.Errorf("they are told in %s, %v", text, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(leaked) > 0 {
			t.Errorf("other sites got them: %v", leaked)
		}
	})
}
