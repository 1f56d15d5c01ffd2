package driver

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// TestSeenAs: what has nothing to read in it is told by what can be seen of it,
// and marks of cells that no text says are states (SNAP-1, SNAP-3).
func TestSeenAs(t *testing.T) {
	const sprite = `<svg width=10 height=10 viewBox="0 0 10 10">`
	sameOutlines(t, []outlined{
		{"marks in a grid", `<div role=grid><div role=row><div role=gridcell aria-checked=true>` + sprite + `<path class="grid-tick" fill="#2dc214" d="M0 0h9v9z"/></svg></div>
<div role=gridcell aria-checked=false>` + sprite + `<path class="grid-cross" fill="#ce1515" d="M0 0h9v9z"/></svg></div><div role=gridcell></div></div></div>`,
			`- grid [ref=e1]:
  - row:
    - gridcell [checked] [looks="grid tick, green"] [ref=e2]
    - gridcell [checked=false] [looks="grid cross, red"] [ref=e3]
    - gridcell [ref=e4]
`},
		{"marks in a table", `<table><tr><th>Host<th>Up<th>Load<tr><td>a<td><i class="fa fa-check"></i><td>1<tr><td>b<td><i class="fas fa-fw fa-times-circle"></i><td>2<tr><td>c<td style="background:#ff0000"><td>3<tr><td>d<td style="background:#eef"><td>4</table>`,
			`- table [ref=e1]:
  - row:
    - columnheader "Host"
    - columnheader "Up"
    - columnheader "Load"
  - row:
    - cell "a"
    - cell [looks="check"]
    - cell "1"
  - row:
    - cell "b"
    - cell [looks="times circle"]
    - cell "2"
  - row:
    - cell "c"
    - cell [looks="red"]
    - cell "3"
  - row:
    - cell "d"
    - cell "4"
`},
		{"buttons without a name", `<style>.bin{background-image:url(/img/trash-can.3f9a21.svg);width:20px;height:20px}</style>
<button><svg class="MuiSvgIcon-root css-1x2y" data-testid="DeleteIcon" width=10 height=10></svg></button>
<button><svg width=10 height=10><use href="/sprite.svg#icon-edit"></use></svg></button>
<button class=bin></button><button><img src="/gfx/larger.gif" alt="" width=9 height=9></button><button><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" width=9 height=9></button>
<button aria-label="Save"><i class="bi bi-save"></i></button><button title="Undo"><i class="bi bi-undo"></i></button>`,
			`- button [looks="deleteicon"] [ref=e1]
- button [looks="icon edit"] [ref=e2]
- button [looks="trash can"] [ref=e3]
- button [looks="larger"] [ref=e4]
- button [ref=e5]
- button "Save" [ref=e7]
- button "Undo" [ref=e8]
`},
		{"what can be dragged by its looks", `<style>.g{cursor:grab}.m{cursor:move}.p{cursor:pointer}</style><ul><li class=m>inject</li><li class=m>debug</li></ul><div class=g>Map <span class=p>Pin</span> <b>bold</b></div>`,
			`- list:
  - listitem [ref=e1]: inject
  - listitem [ref=e2]: debug
- generic [ref=e3]:
  - text: Map
  - generic [ref=e4]: Pin
  - text: bold
`},
		{"controls named by their column alone", `<table><thead><tr><th></th><th colspan=2>Full name<th>Mail</thead><tr><td><input type=checkbox><td><input><td><select><option>a</select><td><input aria-label=Named><tr><td>1<td>Ann<td>B.<td>x</table>`,
			`- table [ref=e1]:
  - row:
    - columnheader "Full name"
    - columnheader "Mail"
  - row:
    - cell:
      - checkbox [ref=e2]
    - cell:
      - textbox [column="Full name"] [ref=e3]
    - cell:
      - combobox [column="Full name"] [ref=e4]:
        - option "a" [selected] [ref=e5]
    - cell:
      - textbox "Named" [ref=e6]
  - row:
    - cell "1"
    - cell "Ann"
    - cell "B."
    - cell "x"
`},
		{"places to press", `<style>.x{cursor:pointer;display:inline-block;width:12px;height:12px}</style><span class=x><img src="/smaller.gif" alt="" width=9 height=9></span><span class=x style="background:rgb(0,160,60)"></span>`,
			`- generic [looks="smaller"] [ref=e1]
- generic [looks="green"] [ref=e2]
`},
	})
}

// TestCounters: numbers that a style sheet counts are a part of the text (SNAP-1).
func TestCounters(t *testing.T) {
	sameOutlines(t, []outlined{
		{"headings", `<style>body{counter-reset:ch}h2{counter-increment:ch;counter-reset:sec}h2::before{content:"Chapter " counter(ch, upper-roman) ": "}h3::before{counter-increment:sec;content:counter(ch) "." counter(sec) " "}.none{display:none}</style>
<h2>Tides</h2><h3>Spring</h3><h3>Neap</h3><h2 class=none>not</h2><h2>Piers</h2><h3>Old</h3>`,
			`- heading "Chapter I: Tides" [level=2]
- heading "1.1 Spring" [level=3]
- heading "1.2 Neap" [level=3]
- heading "Chapter II: Piers" [level=2]
- heading "2.1 Old" [level=3]
`},
		{"nested", `<style>ol{counter-reset:i;list-style:none}li::before{counter-increment:i;content:counters(i,".") ") "}p::after{content:" (" counter(z, lower-alpha) counter(i) ")"}p{counter-set:z 28}</style>
<ol><li>a<ol><li>b</li><li>c</li></ol></li><li>d</li></ol><p>end</p>`,
			`- list:
  - listitem:
    - text: 1) a
    - list:
      - listitem: 1.1) b
      - listitem: 1.2) c
  - listitem: 2) d
- paragraph: end (ab2)
`},
	})
}

// TestSeenAsBounded: a page of pictures is looked at for a while, not for ever.
func TestSeenAsBounded(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	b.open(t, site(t, map[string]string{"/": `<!doctype html><title>t</title><script>document.write('<button><i class="fa fa-x"></i></button>'.repeat(4000))</script>`}).URL)
	if n := strings.Count(b.act(t, reins.Snapshot{MaxBytes: 1_000_000}).Result.Snapshot.Text, `[looks="x"]`); n != 3000 {
		t.Errorf("%d of 4000 are told by their looks, want 3000", n)
	}
}
