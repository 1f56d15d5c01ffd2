package driver

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// TestReadingWhileItChanges: frames that navigate and documents that are
// replaced while they are read never fail a snapshot, and never mix two
// documents (SNAP-2, SNAP-4).
func TestReadingWhileItChanges(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	mux := http.NewServeMux()
	page := func(path, html string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, strings.ReplaceAll(html, "NUMBER", r.URL.Query().Get("n")))
		})
	}
	page("/frames", `<title>t</title><button>Outside</button><iframe title=one src="/in?n=0"></iframe><iframe title=two src="/in?n=0"></iframe><script>
let n = 0; setInterval(() => { n++; document.querySelectorAll('iframe')[n % 2].src = '/in?n=' + n }, 15)</script>`)
	page("/in", `<title>in</title><button>In NUMBER</button><p>text of NUMBER</p>`)
	page("/written", `<title>t</title><button>Round 0</button><script>
let n = 0; setInterval(() => { n++; document.open(); document.write('<title>t</title><button>Round ' + n + '</button><p>text ' + n + '</p>'); document.close() }, 10)</script>`)
	page("/body", `<title>t</title><body><button>Round 0</button><script>
let n = 0; setInterval(() => { n++; const b = document.createElement('body'); b.innerHTML = '<button>Round ' + n + '</button><p>text ' + n + '</p>'; document.body = b }, 1)</script>`)
	s := serve(t, mux)
	round := regexp.MustCompile(`button "(?:Round|In) (\d+)"[^\n]*\n *- paragraph: text (?:of )?(\d+)`)
	for path, want := range map[string]string{"/frames": `button "Outside"`, "/written": "", "/body": `button "Round`} {
		t.Run(path, func(t *testing.T) {
			b.open(t, s.URL+path)
			whole := 0
			for range 25 {
				r, err := b.try(reins.Snapshot{})
				if err != nil {
					t.Fatal(err)
				}
				text := r.Result.Snapshot.Text
				if !strings.Contains(text, want) {
					t.Errorf("there is no %s in\n%s", want, text)
				}
				for _, m := range round.FindAllStringSubmatch(text, -1) {
					whole++
					if m[1] != m[2] {
						t.Errorf("two documents in one:\n%s", text)
					}
				}
			}
			if whole == 0 {
				t.Error("nothing of what changes was ever read")
			}
		})
	}
}

// TestVirtualLists: a list that makes its rows while it is scrolled shows those
// that are there, and a row that another entry uses by now is not pressed by
// its old ref (SNAP-1, SNAP-4).
func TestVirtualLists(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<div id=v role=listbox aria-label=Towns tabindex=0 style="height:100px;overflow:auto"><div id=pad style="height:20000px;position:relative"></div></div><script>
const rows = Array.from({ length: 6 }, () => { const r = document.createElement('div'); r.setAttribute('role', 'option'); r.style.cssText = 'position:absolute;height:20px'; r.onclick = () => say(r.textContent); pad.append(r); return r; });
const draw = () => { const first = Math.floor(v.scrollTop / 20); rows.forEach((r, i) => { const n = first + i; r.textContent = 'Town ' + String.fromCharCode(65 + n % 26) + (n >= 26 ? n : ''); r.style.top = n * 20 + 'px'; }); };
v.onscroll = draw; draw();</script>`})
	b.open(t, s.URL)
	seen := b.see(t)
	if !strings.Contains(seen, `option "Town A"`) || strings.Contains(seen, "Town Z") {
		t.Fatalf("it reads\n%s", seen)
	}
	old := refTo(t, seen, `"Town A"`)
	b.act(t, reins.Scroll{Ref: refTo(t, seen, `listbox "Towns"`), To: "bottom"})
	now := b.see(t)
	if !strings.Contains(now, `option "Town L999"`) && !strings.Contains(now, "99") {
		t.Fatalf("after scrolling it reads\n%s", now)
	}
	_, err := b.try(reins.Click{Ref: old})
	if got := b.result(t); got != "-" && !strings.Contains(now, string(old)) {
		t.Errorf("a row of another entry was pressed: %q, %v", got, err)
	}
	rows := regexp.MustCompile(`option "(Town \w+)" \[ref=(\w+)\]`).FindAllStringSubmatch(b.see(t), -1)
	row := rows[len(rows)/2] // wholly in view: nothing has to be scrolled
	b.act(t, reins.Click{Ref: reins.Ref(row[2])})
	if got := b.result(t); got != row[1] {
		t.Errorf("the page says %q, want %q", got, row[1])
	}
}

// TestOnlyTextWasCut: a snapshot that leaves out nothing but text says so
// (SNAP-5).
func TestOnlyTextWasCut(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><button>Go</button>` + strings.Repeat("<div>"+strings.Repeat("some words ", 30)+"</div>", 40)})
	b.open(t, s.URL)
	r := b.act(t, reins.Snapshot{MaxBytes: 2000}).Result
	if notes := strings.Join(r.Notes, " "); r.Snapshot.Cursor == "" || !strings.Contains(notes, "more text did not fit") || strings.Contains(notes, "0 more") {
		t.Errorf("notes %q", notes)
	}
}
