package driver

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// TestAddresses holds the addresses of links in a snapshot against what the
// browser resolves them to (SNAP-1): most are taken as they stand in the page.
func TestAddresses(t *testing.T) {
	given := []string{
		"/x", "/x?y=1", "/x#z", "/a/../b", "/a/./b", "/./y", "/a//b", "//other.test/x", "/%2e%2e/x", "/%2E/x", "/%zz", "/sp ace", " /lead",
		"/é", "/a\\b", "\\back", "/x|y", "/x^y", "/q?a=\"b\"", "/q?a='b'", "/t/.hidden", "/t/...", "/{x}", "/`x`", "/a@b:c", "/x;y,z=1&2(3)!$*+~",
		"#top", "?q=1", "rel", "", "/", "/page", "/page#part", "/page?other", "http://a.test/x", "mailto:a@b.test", "/x?", "/x#", "/\tx",
	}
	var page strings.Builder
	page.WriteString("<!doctype html><title>addresses</title>")
	for i, g := range given {
		fmt.Fprintf(&page, `<p><a href="%s">link %d</a>`, html.EscapeString(g), i)
	}
	for name, base := range map[string]string{"": "", "with a base": "<base href=/elsewhere/>", "with another's base": "<base href=http://b.test/>"} {
		t.Run(name, func(t *testing.T) {
			b := newBrowser(t, reins.EngineShell)
			s := site(t, map[string]string{"/page": base + page.String()})
			b.open(t, s.URL+"/page")
			var want []string
			resolved := b.script(t, `JSON.stringify([...document.links].map((a) => {
				const origin = location.origin + '/', here = location.pathname + location.search + '#';
				let href = a.href;
				if (href.startsWith(origin)) { href = href.slice(origin.length - 1); if (href.startsWith(here)) href = href.slice(here.length - 1); }
				return href;
			}))`)
			if err := json.Unmarshal([]byte(resolved), &want); err != nil || len(want) != len(given) {
				t.Fatalf("%d links: %v", len(want), err)
			}
			var got []string
			for line := range strings.Lines(b.see(t)) {
				if url, ok := strings.CutPrefix(strings.TrimSpace(line), "- /url: "); ok {
					got = append(got, url)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d addresses for %d links", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%q: the snapshot says %q, the browser %q", given[i], got[i], want[i])
				}
			}
		})
	}
}

// TestLeafNames: what has only text in it is named as anything else is, by
// whatever comes first of label, content and title (SNAP-1).
func TestLeafNames(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>leaves</title>
<style>.icon::before { content: "\e001" } .mark::before { content: "new " } .none { display: none }</style>
<h2 aria-label="labelled">content 1</h2><h2 title="title 2">content 2</h2><h2 title="title 3"> </h2>
<h2 class=icon>content 4</h2><h2 class=mark>content 5</h2><h2>  content
  6 </h2><h2><i>content</i> 7</h2>
<label for=b>label 8</label><button id=b>content 8</button>
<span id=n class=none>name 9</span><a href=/x aria-labelledby=n>content 9</a>
<div role=button tabindex=0>content 10</div><a href=/y aria-label=" ">content 11</a>
<button aria-hidden=true>content 12</button><button style="visibility:hidden">content 13</button><button class=none>content 14</button>
<button style="display:contents">content 15</button>
<script>const h = document.createElement('h2'); h.attachShadow({ mode: 'open' }).innerHTML = 'shadow 16'; h.append('content 16'); document.body.append(h)</script>`})
	b.open(t, s.URL)
	text := b.see(t)
	for _, want := range []string{
		`heading "labelled" [level=2]`, `heading "content 2"`, `heading "title 3"`, `heading "content 4"`, `heading "new content 5"`,
		`heading "content 6"`, `heading "content 7"`, `button "label 8"`, `link "name 9"`, `button "content 10"`, `link "content 11"`, `heading "shadow 16"`,
		`button "content 15"`,
	} {
		if !strings.Contains(text, "- "+want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, no := range []string{"content 12", "content 13", "content 14", "content 16", "\ue001"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in it", no)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestPlacesToDragTo: where something can be dragged, what it may be let go on
// has a ref: what has a role, and boxes that are seen as such. Elsewhere none of
// them has (SNAP-3).
func TestPlacesToDragTo(t *testing.T) {
	const places = `<ul aria-label="Shelf"><li%s>Jug</li></ul><div role="group" aria-label="Box">Drop here</div>
<section aria-label="Bin"><h2>Bin</h2></section><div style="border:2px dashed"><span>Or here</span></div><div class="x">plain</div><p>Text</p>`
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/with": fmt.Sprintf(places, ` draggable="true"`), "/without": fmt.Sprintf(places, "")})
	b.open(t, s.URL+"/without")
	if got := b.see(t); strings.Count(got, "[ref=") != 1 { // landmarks have one, to read a part by
		t.Errorf("refs where nothing can be done:\n%s", got)
	}
	b.open(t, s.URL+"/with")
	got := b.see(t)
	for _, want := range []string{`list "Shelf" [ref=`, `group "Box" [ref=`, `region "Bin" [ref=`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, line := range strings.Split(got, "\n") {
		if has := strings.Contains(line, "[ref="); strings.Contains(line, "Or here") && !has || strings.Contains(line, "plain") && has || strings.Contains(line, "paragraph") && has {
			t.Errorf("the line %q, of\n%s", line, got)
		}
	}
}
