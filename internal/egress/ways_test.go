package egress_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// documents are documents without a host of their own (B100), and ways are how a
// page moves on, or sends something, without being told to (B101).
var (
	documents = []string{"data", "blob", "srcdoc", "sandbox", "blank", "worker"}
	ways      = []string{"assign", "replace", "open", "noopener", "steer", "anchor", "anchor-blank", "form", "frame", "meta", "delayed", "ping"}
)

// B100, B101, EGR-3: whatever document calls out and whichever way a page goes,
// the door is asked, each time, and nothing arrives.
func TestWaysOut_B100_B101(t *testing.T) {
	canary := origin(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("CANARY %s %s", r.Host, r.URL) })
	done := make(chan string, 1)
	held := make(chan struct{})
	page := origin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/hold": // an image that keeps the load event waiting
			select {
			case <-held:
			case <-r.Context().Done():
			}
		case "/done":
			says, _ := io.ReadAll(r.Body)
			done <- string(says)
			close(held)
		case "/way":
			fmt.Fprintf(w, wayPage, r.URL.Query().Get("w"), "http://"+canary+"/way-")
		default:
			fmt.Fprintf(w, documentsPage, "http://"+canary+"/", strings.Join(ways, " "))
		}
	})
	p := start(t, egress.Options{Policy: reins.EgressPolicy{AllowPrivate: []string{page}}}, nil)
	browse(t, p, "http://"+page+"/")
	if got, want := <-done, fmt.Sprint(len(documents)); got != want {
		t.Errorf("%s documents called out, want %s", got, want)
	}
	refused := 0
	for _, d := range p.all() {
		switch {
		case !d.Allowed && d.Reason == egress.ReasonAddress && fmt.Sprintf("%s:%d", d.Host, d.Port) == canary:
			refused++
		case !d.Allowed:
			t.Errorf("refused for another reason: %+v", d)
		}
	}
	t.Logf("%d refusals", refused)
	if refused < len(documents)+len(ways) {
		t.Errorf("%d refusals were told, want one for each of %d documents and %d ways", refused, len(documents), len(ways))
	}
}

// documentsPage takes the canary and the ways, each of which it lets go in a
// frame of its own.
const documentsPage = `<!doctype html><title>documents</title><img src="/hold" alt=""><script>
const canary = %q, ways = %q.split(' ');
const code = n => '<script>fetch("' + canary + n + '",{mode:"no-cors"}).finally(()=>parent.postMessage("tried","*"))<\/script>';
const frame = set => { const f = document.createElement('iframe'); set(f); document.head.append(f); return f; };
const answers = [];
addEventListener('message', e => answers.push(e.data));
frame(f => f.src = 'data:text/html,' + encodeURIComponent(code('data')));
frame(f => f.src = URL.createObjectURL(new Blob([code('blob')], {type: 'text/html'})));
frame(f => f.srcdoc = code('srcdoc'));
frame(f => { f.sandbox = 'allow-scripts'; f.srcdoc = code('sandbox'); });
const blank = frame(f => f.src = 'about:blank');
blank.contentDocument.write(code('blank'));
blank.contentDocument.close();
new Worker(URL.createObjectURL(new Blob(['fetch("' + canary + 'worker",{mode:"no-cors"}).finally(()=>postMessage("tried"))']))).onmessage = e => answers.push(e.data);
for (const w of ways) frame(f => f.src = '/way?w=' + w);
const again = setInterval(() => {
  if (answers.length < 6) return;
  clearInterval(again);
  // The slowest of the ways takes half a second to begin.
  setTimeout(() => fetch('/done', {method: 'POST', body: '' + answers.length}), 2500);
}, 20);
</script>
`

// wayPage goes one way.
const wayPage = `<!doctype html><title>way</title><form id="f" method="get"></form><script>
const way = %q, to = %q + way;
const link = set => { const a = document.createElement('a'); a.href = to; set(a); document.body.append(a); a.click(); };
const go = {
  assign: () => { location.href = to; }, replace: () => location.replace(to),
  open: () => open(to), noopener: () => open(to, '_blank', 'noopener'),
  steer: () => { const w = open('about:blank'); setTimeout(() => { w.location = to; }, 200); },
  anchor: () => link(() => 0), 'anchor-blank': () => link(a => { a.target = '_blank'; }),
  ping: () => link(a => { a.href = '#here'; a.ping = to; }),
  form: () => { f.action = to; f.submit(); },
  frame: () => { const i = document.createElement('iframe'); i.src = to; document.body.append(i); },
  meta: () => { const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url=' + to; document.head.append(m); },
  delayed: () => setTimeout(() => { location.href = to; }, 500),
};
addEventListener('load', () => go[way]());
</script><body>
`
