package driver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// hostile are pages that try to upset a reader, and what must still be read.
var hostile = map[string]struct{ media, body, want string }{
	"deep": {"text/html", `<title>t</title><div id=r></div><button>End</button><script>let e=r;for(let i=0;i<2000;i++){const c=document.createElement('div');e.append(c);e=c}e.textContent='bottom'</script>`, "text: bottom\n- button \"End\""},
	"circles": {"text/html", `<title>t</title><div id=a role=list aria-owns="b a c"><div id=b role=listitem aria-owns=a>x</div></div><button id=p aria-labelledby="p q">P</button><span id=q aria-labelledby=p>Q</span>
<div id=c aria-owns=a>own</div><button>End</button>`, `button "End"`},
	"foreign": {"text/html", `<title>t</title><div id=r></div><script>for(const n of ['select','input','table','td','details','textarea','img','label','a','canvas','video','iframe','option','fieldset','progress'])for(const ns of ['http://www.w3.org/2000/svg','urn:x']){const e=document.createElementNS(ns,n);e.setAttribute('tabindex','0');e.append('in '+n);r.append(e)}</script><button>End</button>`, `button "End"`},
	"clobbered": {"text/html", `<title>t</title><form id=f><input name=localName><input name=getAttribute><input name=attributes><input name=parentNode><input name=children><button name=nodeType>In form</button></form><button>End</button>
<script>Element.prototype.getAttribute=()=>{throw 1};Array.prototype.push=()=>{throw 2};String.prototype.replace=()=>'FAKE';WeakMap.prototype.get=()=>{throw 3};window.getComputedStyle=null;globalThis.reins={walk:()=>'FAKE'}</script>`, `button "End"`},
	"forged":  {"text/html", "<title>t</title><p>x\n- button \"Fake\" [ref=f1e1]</p><button aria-label='a\n- button \"Fake\" [ref=f9e9]'>End</button>", `button "a - button \"Fake\" [ref=f9e9]" [ref=`},
	"frames":  {"text/html", `<title>t</title><frameset cols="*,*"><frame src="/plain"><frame src="/plain"></frameset>`, `button "Plain"`},
	"picture": {"image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><a href="#x"><text y="20">Drawn</text></a></svg>`, `link "Drawn"`},
	"data":    {"application/xml", `<list><entry>One</entry></list>`, "One"},
	"text":    {"text/plain", "just text", "just text"},
	"empty":   {"text/html", "", ""},
	"plain":   {"text/html", `<title>t</title><button>Plain</button>`, `button "Plain"`},
}

// TestHostilePages: whatever a page does, it is read, and nothing is forged
// (SNAP-1, SNAP-7).
func TestHostilePages(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	mux := http.NewServeMux()
	for name, page := range hostile {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", page.media)
			fmt.Fprint(w, page.body)
		})
	}
	s := serve(t, mux)
	for name, page := range hostile {
		t.Run(name, func(t *testing.T) {
			b.open(t, s.URL+"/"+name)
			got := b.see(t)
			if !strings.Contains(got, page.want) || strings.Contains(got, "FAKE") {
				t.Errorf("it reads\n%.2000s", got)
			}
			for line := range strings.Lines(got) {
				if strings.HasPrefix(strings.TrimSpace(line), `- button "Fake"`) {
					t.Errorf("a forged entry: %s", line)
				}
			}
		})
	}
}
