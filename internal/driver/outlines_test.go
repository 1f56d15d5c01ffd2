package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reins-browser/reins"
)

// outlined is a page and what a snapshot of it reads.
type outlined struct{ name, html, want string }

// outlines are pages and what a snapshot of them reads (SNAP-1, SNAP-3).
var outlines = []outlined{
	{"text and blocks", `<h1>One</h1><p>Some <b>bold</b> and <i>soft</i> text.</p><div>first<div>second</div>third</div><pre>a
 b</pre>x<br>y`, `- heading "One" [level=1]
- paragraph: Some bold and soft text.
- text: first
- text: second
- text: third
- text: a
- text: b
- text: x
- text: y
`},
	{"links", `<p>See <a href="/docs?x=1">the <b>docs</b></a> or <a href="https://other.test/a">there</a>.</p><a href="#top">up</a>`, `- paragraph:
  - text: See
  - link "the docs" [ref=e1]:
    - /url: /docs?x=1
  - text: or
  - link "there" [ref=e2]:
    - /url: https://other.test/a
  - text: .
- link "up" [ref=e3]:
  - /url: #top
`},
	{"left out", `<div hidden>a</div><div style="display:none">b</div><div style="visibility:hidden">c<b style="visibility:visible">seen</b></div>
<div aria-hidden=true><button>d</button></div><div inert><button>e</button></div><script>1</script><style>x{}</style><noscript>f</noscript>
<template><button>g</button></template><details><summary>More</summary>h<button>i</button></details><div style="content-visibility:hidden"><button>j</button></div>`, `- text: seen
- group [ref=e1]:
  - button "More" [collapsed] [ref=e2]
`},
	{"kept without a role", `<style>.p{cursor:pointer}</style><div class=p>Card <b>one</b></div><ul><li class=p>Row</ul><span tabindex=0>Focus me</span>
<div draggable=true>Drag me</div><div contenteditable>Write <b>here</b></div><div class=p><button>Only button</button></div><div onclick="1">Handler</div>`, `- generic [ref=e1]: Card one
- list [ref=e2]:
  - listitem [ref=e3]: Row
- generic [ref=e4]: Focus me
- generic [ref=e5]: Drag me
- generic [editable] [ref=e6]: Write here
- button "Only button" [ref=e8]
- generic [ref=e9]: Handler
`},
	{"states", `<button disabled>Off</button><fieldset disabled><legend>Group</legend><input aria-label=In></fieldset><button aria-expanded=true aria-haspopup=menu>Menu</button>
<input type=checkbox aria-label=C checked><div role=checkbox aria-checked=mixed tabindex=0>M</div><button aria-pressed=true>P</button><input aria-label=R required>
<input aria-label=RO readonly value=v><input aria-label=Bad aria-invalid=true><a href=/ aria-current=page>Here</a><h3>H</h3><div aria-busy=true role=region aria-label=Feed>loading</div>`, `- button "Off" [disabled] [ref=e1]
- group "Group" [disabled]:
  - textbox "In" [disabled] [ref=e2]
- button "Menu" [expanded] [haspopup="menu"] [ref=e3]
- checkbox "C" [checked] [ref=e4]
- checkbox "M" [checked=mixed] [ref=e5]
- button "P" [pressed] [ref=e6]
- textbox "R" [required] [ref=e7]
- textbox "RO" [readonly] [ref=e8]: v
- textbox "Bad" [invalid] [ref=e9]
- link "Here" [current="page"] [ref=e10]:
  - /url: /
- heading "H" [level=3]
- region "Feed" [busy] [ref=e11]: loading
`},
	{"values", `<input type=password aria-label=PW value=hunter2><input style="-webkit-text-security:disc" aria-label=Pin value=1234><textarea aria-label=T>one
two</textarea><input type=file aria-label=F multiple accept=".pdf"><input type=range aria-label=V min=0 max=9 value=3><progress aria-label=Up value=.5></progress>
<select aria-label=S><option>a<option selected>b<optgroup label=G><option disabled>c</optgroup></select><input type=date aria-label=D value=2031-02-28><input aria-label=E placeholder=hint>`, `- textbox "PW" [ref=e1]: •••••••
- textbox "Pin" [ref=e2]: ••••
- textbox "T" [multiline] [ref=e3]: "one\ntwo"
- file "F" [multiple] [accept=".pdf"] [ref=e4]: no file chosen
- slider "V" [min="0"] [max="9"] [ref=e5]: 3
- progressbar "Up": 0.5
- combobox "S" [ref=e6]:
  - option "a" [ref=e7]
  - option "b" [selected] [ref=e8]
  - group "G":
    - option "c" [disabled] [ref=e9]
- textbox "D" [type=date] [ref=e10]: 2031-02-28
- textbox "E" [placeholder="hint"] [ref=e11]
`},
	{"tables", `<table><caption>Prices</caption><tr><th>Item<th>Cost<tr><th scope=row>Tea<td>2 <a href=/buy>buy</a></table><table><tr><td>only <td>layout</table>`, `- table "Prices" [ref=e1]:
  - row:
    - columnheader "Item"
    - columnheader "Cost"
  - row:
    - rowheader "Tea"
    - cell:
      - text: "2"
      - link "buy" [ref=e2]:
        - /url: /buy
- text: only
- text: layout
`},
	{"pictures", `<img src=x alt=Logo><img src=x alt=""><svg width=9 height=9><title>Chart</title></svg><canvas width=40 height=20 style="position:absolute;left:5px;top:7px"></canvas>
<map name=m><area href=/1 coords="0,0,5,5" alt="North"></map><img usemap=#m alt="Map" width=20 height=20 src=x>`, `- img "Logo" [ref=e1]
- img "Chart" [ref=e2]
- canvas [box=5,7,40,20] [ref=e3]
- img "Map" [ref=e4]:
  - link "North" [ref=e5]:
    - /url: /1
`},
	{"labels", `<label>Name <input></label><label for=c>I agree to the <a href=/t>terms</a></label><input type=checkbox id=c>
<style>.box input{display:none}.box{cursor:pointer}</style><label class=box><input type=checkbox checked>Restyled</label>`, `- textbox "Name" [ref=e1]
- link "terms" [ref=e2]:
  - /url: /t
- checkbox "I agree to the terms" [ref=e3]
- checkbox "Restyled" [checked] [ref=e4]
`},
	{"labels of hidden controls", `<label>Typed <span style="display:none"><input></span> anyway</label><div aria-hidden=true><input type=checkbox id=z></div><label for=z>Styled</label>`, `- text: Typed anyway
- checkbox "Styled" [ref=e1]
`},
	{"other names than contents", `<a href=/ aria-label="Read about cats"><h2>Cats</h2><p>They purr.</p></a><button aria-label=Close>×</button><div role=img aria-label="4 stars">★★★★</div>`, `- link "Read about cats" [ref=e1]:
  - /url: /
  - heading "Cats" [level=2]
  - paragraph: They purr.
- button "Close" [ref=e2]
- img "4 stars" [ref=e3]
`},
	{"design mode", `old text<script>document.designMode='on'</script>`, `- generic [editable] [active] [ref=e1]: old text
`},
	{"shadow trees and slots", `<div id=h>light <b slot=t>Title</b></div><script>h.attachShadow({mode:'open'}).innerHTML='<h2><slot name=t></slot></h2><p>says <slot></slot></p>'</script>`, `- heading "Title" [level=2]
- paragraph: says light
`},
	{"owned elements", `<div role=list aria-owns=x><div role=listitem>first</div></div><p>between</p><div role=listitem id=x>second</div>`, `- list:
  - listitem: first
  - listitem: second
- paragraph: between
`},
	{"modal dialog", `<button>Behind</button><dialog id=d aria-label=Ask><p>Sure?</p><button>Yes</button></dialog><script>d.showModal()</script>`, `- dialog "Ask" [ref=e1]:
  - paragraph: Sure?
  - button "Yes" [active] [ref=e2]
`},
	{"generated text", `<style>.n::before{content:"No. "}.n::after{content:" (new)"}</style><p class=n>7</p><button class=n>Go</button>`, `- paragraph: No. 7 (new)
- button "No. Go (new)" [ref=e1]
`},
	{"text of what has no name", `<div role=group>in a group</div><div role=img>drawn</div><address>Main street</address><div role=group aria-label=G>named</div>`, `- text: in a group
- text: drawn
- text: Main street
- group "G": named
`},
	{"wrappers with a name", `<div role=document aria-label=Doc><p>inside</p><button>Go</button></div><table role=grid aria-label=T><tbody aria-label=Body><tr><td tabindex=0>cell</table>
<p>at <time aria-label="noon">12:00</time></p>`, `- document "Doc":
  - paragraph: inside
  - button "Go" [ref=e1]
- grid "T" [ref=e2]:
  - rowgroup "Body":
    - row:
      - gridcell "cell" [ref=e3]
- paragraph: at noon
`},
	{"labels with a label of their own", `<label aria-label="Spoken">Seen <input></label>`, `- text: Seen
- textbox "Spoken" [ref=e1]
`},
	{"drawings", `<svg width=90 height=90><g aria-label="Bars"><rect aria-label="May: 3" width=9 height=9></rect><rect width=9 height=9><title>June: 4</title></rect><rect width=1 height=1></rect></g>
<a href=/x><circle r=4></circle><title>To x</title></a></svg>`, `- group "Bars":
  - graphics-symbol "May: 3"
  - graphics-symbol "June: 4"
- link "To x" [ref=e1]:
  - /url: /x
`},
	{"what is open", `<button popovertarget=p>Menu</button><div id=p popover>in it</div><div role=switch aria-checked=mixed tabindex=0>S</div>`, `- button "Menu" [collapsed] [ref=e1]
- switch "S" [ref=e2]
`},
	{"the top layer", `<p>under</p><div popover=manual id=p><button>In a popover</button></div><dialog id=d>Plain dialog <button>Close</button></dialog><script>p.showPopover();d.show()</script>`, `- paragraph: under
- button "In a popover" [ref=e1]
- dialog [ref=e2]:
  - text: Plain dialog
  - button "Close" [active] [ref=e3]
`},
	{"media", `<video controls aria-label=Film></video><audio controls src=x></audio><audio src=x></audio><video aria-label=Quiet><track></video>`, `- video "Film" [paused] [ref=e1]
- audio [paused] [ref=e2]
- video "Quiet" [paused] [ref=e3]
`},
	{"details", `<details open><summary>Open <b>one</b></summary><p>shown</p><details><summary>Shut</summary>hidden</details></details><details>no summary</details>`, `- group [ref=e1]:
  - button "Open one" [expanded] [ref=e2]
  - paragraph: shown
  - group [ref=e3]:
    - button "Shut" [collapsed] [ref=e4]
- button "Details" [collapsed] [ref=e5]
`},
	{"inert and aria-hidden around what is not", `<div inert><button>a</button><dialog id=d aria-label=D><button>b</button></dialog></div><div aria-hidden=true><div aria-hidden=false>c</div></div><button inert>d</button><script>d.showModal()</script>`, `- dialog "D" [ref=e1]:
  - button "b" [active] [ref=e2]
`},
	{"odd text", `<p id=p></p><button title="say &quot;hi&quot;"></button><script>p.textContent='half \ud83d pair\u0007bell'</script>`, "- paragraph: half \uFFFD pair bell\n- button \"say \\\"hi\\\"\" [ref=e1]\n"},
}

func TestOutlines(t *testing.T) { sameOutlines(t, outlines) }

// sameOutlines reads pages on both engines and compares.
func sameOutlines(t *testing.T, outlines []outlined) {
	t.Helper()
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		pages := map[string]string{}
		for i, o := range outlines {
			pages[fmt.Sprint("/", i)] = "<!doctype html><title>t</title><body>" + o.html
		}
		s := site(t, pages)
		for i, o := range outlines {
			t.Run(o.name, func(t *testing.T) {
				b.open(t, fmt.Sprint(s.URL, "/", i))
				if diff := cmp.Diff(strings.ReplaceAll(o.want, `text: "2"`, "text: 2"), plainRefs(b.see(t))); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}
