package driver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// NAV-3, EGR-8: when the network door refuses what a page leads to, the action
// that set it off says so, and tabs that it opened are told with their address.
func TestRefusalsOfPagesAreTold(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>Ways</title><form id=f action="/refused"></form><a href="/refused">Link</a>
<button onclick="location.href='/refused'">Script</button><button onclick="f.submit()">Form</button>
<button onclick="window.open('/refused')">Window</button><button onclick="open('/refused', '_blank', 'noopener')">Alone</button>
<a href="/refused" target=_blank>Blank</a>
<button onclick="document.body.append(Object.assign(document.createElement('iframe'), {src: '/refused'}))">Frame</button>`)
	})
	mux.HandleFunc("/refused", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Reins-Egress", "forbidden-address")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<title>Refused</title>")
	})
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, way := range []string{`"Link"`, `"Script"`, `"Form"`, `"Window"`, `"Alone"`, `"Blank"`, `"Frame"`} {
			b.open(t, s.URL)
			r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), way)}).Result
			if notes := fmt.Sprint(r.Notes); !strings.Contains(notes, "not public") {
				t.Errorf("%s: the refusal is told as %q", way, notes)
			}
			for _, opened := range r.Changes.OpenedTabs {
				if opened.URL != s.URL+"/refused" {
					t.Errorf("%s: the tab is told with %q", way, opened.URL)
				}
				b.act(t, reins.CloseTab{Tab: opened.ID})
			}
		}
	})
}
