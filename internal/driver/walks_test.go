package driver

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reins-browser/reins"
)

// TestFramesAtOnce: documents that the main one reaches are read with it from the
// second time on, the others alone, and what is read stays the same; a frame that
// went to another document is not taken for what it was (SNAP-2, SNAP-4, SNAP-7).
func TestFramesAtOnce(t *testing.T) {
	pages := map[string]string{
		"/": `<!doctype html><title>t</title><iframe src=/a></iframe><div id=h></div><iframe srcdoc="<button>Written</button>"></iframe>
<iframe sandbox srcdoc="<button>Sealed</button>"></iframe><iframe src="//other.test:PORT/a"></iframe><iframe></iframe><script>
h.attachShadow({mode:'closed'}).innerHTML='<iframe src=/b></iframe>'</script>`,
		"/a": `<!doctype html><p>Outer</p><iframe src=/b></iframe>`,
		"/b": `<!doctype html><button>Inner</button><x-c></x-c><script>customElements.define('x-c',class extends HTMLElement{constructor(){super();this.attachShadow({mode:'closed'}).innerHTML='<button>Closed</button>'}})</script>`,
		"/c": `<!doctype html><button>Next</button>`,
	}
	b := newBrowser(t, reins.EngineShell)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(r.Host)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, strings.ReplaceAll(pages[r.URL.Path], "PORT", port))
	}))
	b.act(t, reins.Navigate{URL: s.URL, Wait: "load"})
	first := b.see(t)
	for text, n := range map[string]int{`"Inner"`: 3, `"Closed"`: 3, "Outer": 2, `"Written"`: 1, `"Sealed"`: 1} {
		if got := strings.Count(first, text); got != n {
			t.Errorf("%s is there %d times, want %d, in\n%s", text, got, n, first)
		}
	}
	reached := map[int32]int{}
	docs, err := b.tabNow().documents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs[1:] {
		reached[d.reach.Load()]++
	}
	if want := map[int32]int{reachWith: 6, reachAlone: 2}; !cmp.Equal(reached, want) { // of another site's two, the inner one is with the outer
		t.Errorf("documents are reached %v, want %v", reached, want)
	}
	if diff := cmp.Diff(first, b.see(t)); diff != "" {
		t.Error(diff)
	}
	b.pageScript(t, b.tabNow(), "new Promise(d => { const f = frames[0]; document.querySelector('iframe').onload = d; f.location = '/c' }).then(() => 0)")
	if now := b.see(t); !strings.Contains(now, `"Next"`) || strings.Contains(now, "Outer") && strings.Count(now, "Outer") != 1 {
		t.Errorf("after a frame went on:\n%s", now)
	}
	b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Next"`)})
}
