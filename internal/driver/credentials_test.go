package driver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

func TestWithoutUser(t *testing.T) {
	for in, want := range map[string]string{
		"http://ann:pin@a.test/x":    "http://a.test/x",
		"http://ann@a.test:80?q=a@b": "http://a.test:80?q=a@b",
		"http://a@b@c.test#u@v":      "http://c.test#u@v",
		"https://a.test/@ann":        "https://a.test/@ann",
		"about:blank":                "about:blank",
		"mailto:ann@a.test":          "mailto:ann@a.test",
	} {
		if got := withoutUser(in); got != want {
			t.Errorf("%s is told as %s, want %s", in, got, want)
		}
	}
}

// NAV-5: who navigates is told what credentials a site asks for, and nobody is
// told those of an address.
func TestCredentialsInAddresses(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if _, pin, _ := r.BasicAuth(); pin != "synthetic-pin" {
			w.Header().Set("WWW-Authenticate", `Basic realm="back office"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, "<title>Office</title><a href=#x>Link</a>")
	})
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		address := strings.Replace(s.URL, "//", "//ann:synthetic-pin@", 1)
		r := b.open(t, s.URL)
		if notes := fmt.Sprint(r.Result.Notes); r.Result.Navigation.Status != 401 || !strings.Contains(notes, "asks for credentials") || !strings.Contains(notes, "back office") {
			t.Errorf("it is told as %+v, %s", r.Result.Navigation, notes)
		}
		var told []any
		note := func(r *Reply, err error) { told = append(told, r, fmt.Sprint(err)) }
		note(b.try(reins.Navigate{URL: address + "/again"}))
		note(b.try(reins.Click{Ref: refTo(t, b.see(t), "Link")}))
		note(b.try(reins.Snapshot{}))
		note(b.try(reins.Network{}))
		note(b.try(reins.ListTabs{}))
		note(b.try(reins.Navigate{URL: strings.Replace(closedPort(t), "//", "//ann:synthetic-pin@", 1)}))
		b.mu.Lock()
		told = append(told, b.events)
		b.mu.Unlock()
		text, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "synthetic-pin") {
			t.Errorf("credentials are told in %s", text)
		}
	})
}
