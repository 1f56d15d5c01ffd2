package driver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reins-browser/reins"
)

// articles are pages and what reading them gives.
var articles = []struct{ name, html, want string }{
	{"landmarks", `<header><nav><a href=/>Home</a> <a href=/news>News</a></nav></header><main><h1>Title <em>one</em></h1><p>First <b>bold</b> <i>it</i> <a href="/more">more</a>.<br>Next line.</p>
<h2>List</h2><ul><li>A<ul><li>A1<li>A2</ul><li><p>B</p><p>B again</p></ul><ol start=3><li>three<li>four</ol></main><aside>Ads everywhere</aside><footer>Imprint</footer>`,
		`# Title *one*

First **bold** *it* [more](BASE/more).
Next line.

## List

- A
  - A1
  - A2
- B

  B again

3. three
4. four`},
	{"table", `<main><h1>Prices</h1><table><caption>Fruit</caption><thead><tr><th>Name<th>Price | net</tr></thead><tbody><tr><td>Apple<td>1 <b>EUR</b></tr><tr><td colspan=2>Out of stock</tr></table>` + filler + `</main>`,
		`# Prices

**Fruit**

| Name | Price \| net |
| --- | --- |
| Apple | 1 **EUR** |
| Out of stock |  |

` + filled},
	{"code", "<main><h1>Code</h1><p>Call <code>a`b</code> or <kbd>Esc</kbd>.</p><pre><code class=language-go>func main() {\n\tprintln(\"```\")\n}\n</code></pre><blockquote><p>Said</p><p>and done</p></blockquote><hr>" + filler + "</main>",
		"# Code\n\nCall ``a`b`` or `Esc`.\n\n````go\nfunc main() {\n\tprintln(\"```\")\n}\n````\n\n> Said\n>\n> and done\n\n---\n\n" + filled},
	{"no fake structure", `<main><h1>Safe</h1><p># not a heading</p><p>- no item</p><p>1. no item</p><p>a *b* _c_ snake_case [x](http://evil.test) &lt;script&gt; ` + "```" + ` C:\dir \* 2 * 3</p><p>&gt; no quote` + "\ue0001\ue000" + `</p>` + filler + `</main>`,
		"# Safe\n\n\\# not a heading\n\n\\- no item\n\n1\\. no item\n\na \\*b\\* \\_c\\_ snake_case [x\\](http://evil.test) \\<script> \\`\\`\\` C:\\dir \\\\\\* 2 * 3\n\n\\> no quote1\n\n" + filled},
	{"density", `<div class=menu><a href=/1>One</a> <a href=/2>Two</a> <a href=/3>Three</a></div><div id=wrap><div class=story><h1>Story</h1>` + filler + filler + filler + `</div><div class=related><a href=/x>Other story that is also long enough to count</a></div></div><div class=cookie-banner>We use cookies <button>OK</button></div>`,
		"# Story\n\n" + filled + "\n\n" + filled + "\n\n" + filled},
	{"hidden", `<main><h1>Shown</h1><p hidden>no</p><p style="display:none">no</p><p aria-hidden=true>no</p><p style="visibility:hidden">no<span style="visibility:visible">yes</span></p><details><summary>More</summary><p>closed</p></details>` + filler + `</main>`,
		"# Shown\n\nyes\n\n**More**\n\n" + filled},
	{"terms and pictures", `<main><h1>Terms</h1><dl><dt>One<dd>first<dt>Two<dt>Zwei<dd>second</dl><figure><img src=/p.png alt="A picture"><figcaption>Its caption</figcaption></figure><p>H<sub>2</sub>O, x<sup>2</sup>, <del>old</del>, <q>said</q>, <a href="javascript:void 0">script</a>, <a href="#here">here</a></p>` + filler + `</main>`,
		"# Terms\n\n- **One**: first\n- **Two**, **Zwei**: second\n\n![A picture](BASE/p.png)\n\n*Its caption*\n\nH2O, x^2, ~~old~~, “said”, script, here\n\n" + filled},
	{"heading outside", `<header><h1>Outside</h1></header><main><h2>Inside</h2>` + filler + `</main>`, "# Outside\n\n## Inside\n\n" + filled},
	{"shadow", `<main><h1>Shadow</h1><div id=open></div><div id=shut></div>` + filler + `</main><script>open_=document.getElementById('open').attachShadow({mode:'open'});open_.innerHTML='<p>From an open root</p>';document.getElementById('shut').attachShadow({mode:'closed'}).innerHTML='<p>From a closed root</p>'</script>`,
		"# Shadow\n\nFrom an open root\n\nFrom a closed root\n\n" + filled},
	{"frames", `<main><h1>Frames</h1><iframe srcdoc="<h2>Inner</h2><p>Text of the frame.</p>" width=400 height=300></iframe><iframe srcdoc="" width=300 height=100></iframe>` + filler + `</main>`,
		"# Frames\n\n## Inner\n\nText of the frame.\n\n" + filled},
	{"empty", ``, ""},
}

const (
	filled = "A paragraph of running text, long enough to be one, with a comma or two, and words, words, words, so that there is something to read here for whoever comes along."
	filler = "<p>" + filled + "</p>"
)

func TestRead(t *testing.T) { // MCP-3: main content as Markdown
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		pages := map[string]string{}
		for i, a := range articles {
			pages[fmt.Sprint("/", i)] = "<!doctype html><meta charset=utf-8><title>t</title>" + a.html
		}
		s := site(t, pages)
		for i, a := range articles {
			t.Run(a.name, func(t *testing.T) {
				b.open(t, fmt.Sprint(s.URL, "/", i))
				r := b.act(t, reins.Read{}).Result
				want := strings.ReplaceAll(a.want, "BASE", s.URL)
				if r.Reading.Markdown != want || r.Reading.Cursor != "" || r.Reading.Whole != len(want) {
					t.Errorf("got %d bytes\n%s\n\nwant %d bytes\n%s", r.Reading.Whole, r.Reading.Markdown, len(want), want)
				}
				if a.want == "" && len(r.Notes) == 0 {
					t.Error("nothing says that there is nothing")
				}
			})
		}
	})
}

// TestReadElement: an element is read wholly, without leaving out what would
// stand beside the content of a page.
func TestReadElement(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><nav aria-label=Sites><ul><li><a href=/a>A</a><li><a href=/b>B</a></ul></nav><main><h1>Main</h1>` + filler + `</main>`})
	b.open(t, s.URL)
	ref := refTo(t, b.see(t), "navigation")
	if got, want := b.act(t, reins.Read{Ref: ref}).Result.Reading.Markdown, fmt.Sprintf("- [A](%s/a)\n- [B](%[1]s/b)", s.URL); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.script(t, `document.querySelector('nav').remove()`)
	_, err := b.try(reins.Read{Ref: ref})
	wantCode(t, err, reins.CodeStaleRef)
}

// TestReadCursor: parts put behind each other are exactly the whole, each
// within its budget, whatever the page does meanwhile; only the lease that
// began may go on.
func TestReadCursor(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	var page strings.Builder
	for i := range 400 {
		fmt.Fprintf(&page, "<h2>Part %d</h2><p>Ünïcode 👨‍👩‍👧 text %d, %s</p>", i, i, strings.Repeat("wörd ", i%40))
	}
	fmt.Fprintf(&page, "<p>%s</p>", strings.Repeat("界", 3000))
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>t</title><main>"+page.String()+"</main>")
	})
	s := serve(t, mux)
	b.open(t, s.URL)
	whole := b.act(t, reins.Read{MaxBytes: 1_000_000}).Result.Reading
	if whole.Left != 0 || whole.Cursor != "" {
		t.Fatalf("%+v", whole)
	}
	got := ""
	first := b.act(t, reins.Read{MaxBytes: 1000}).Result.Reading
	for part, n := first, 0; ; n++ {
		if len(part.Markdown) > 1000 || part.Markdown == "" || !utf8.ValidString(part.Markdown) || part.Whole != whole.Whole {
			t.Fatalf("part %d has %d bytes of %d", n, len(part.Markdown), part.Whole)
		}
		got += part.Markdown
		if part.Left != whole.Whole-len(got) {
			t.Fatalf("%d left after %d of %d", part.Left, len(got), whole.Whole)
		}
		if part.Cursor == "" {
			break
		}
		if n == 3 {
			b.open(t, "about:blank")
		}
		part = b.act(t, reins.Read{Cursor: part.Cursor}).Result.Reading
	}
	if got != whole.Markdown {
		t.Error("the parts are not the whole")
	}
	_, err := b.do(t.Context(), Command{Action: reins.Read{Cursor: first.Cursor}, Lease: "other"})
	wantCode(t, err, reins.CodeInvalidInput)
	_, err = b.try(reins.Read{Cursor: first.Cursor}) // 32 newer ones came since
	wantCode(t, err, reins.CodeInvalidInput)
}
