package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// log is the part of a page that says what happened to it.
const logPart = `<output id=result aria-label=result>-</output><script>const say = s => { document.getElementById('result').textContent = s; };</script>`

// patient waits as long as the default, where a refusal is wanted.
var patient = reins.Click{Waits: reins.Waits{Actionable: new(reins.Duration(5 * time.Second))}}

// clicks are pages, what to click, and what the page then says (ACT-1, ACT-2).
var clicks = []struct {
	name, html string
	find       string // part of the line with the ref
	a          reins.Click
	want       string
	code       reins.Code // of the error wanted instead
	says       string     // part of its message
}{
	{name: "button", html: `<button onclick="say('ok '+event.isTrusted+event.detail)">Go</button>`, find: "Go", want: "ok true1"},
	{name: "nested content", html: `<button onclick="say('ok')"><span style="position:absolute;inset:0"></span><i>Deep</i></button>`, find: "Deep", want: "ok"},
	{name: "hover first", html: `<button onmouseenter="this.o=1" onclick="say('hover '+this.o)">Go</button>`, find: "Go", want: "hover 1"},
	{name: "double", html: `<button ondblclick="say('double '+event.detail)">Go</button>`, find: "Go", a: reins.Click{Count: 2}, want: "double 2"},
	{name: "triple", html: `<button onclick="say('count '+event.detail)">Go</button>`, find: "Go", a: reins.Click{Count: 3}, want: "count 3"},
	{name: "right", html: `<button oncontextmenu="say('menu '+event.button);return false">Go</button>`, find: "Go", a: reins.Click{Button: "right"}, want: "menu 2"},
	{name: "middle", html: `<button onauxclick="say('aux '+event.button)">Go</button>`, find: "Go", a: reins.Click{Button: "middle"}, want: "aux 1"},
	{name: "modifiers", html: `<button onclick="say([event.ctrlKey,event.shiftKey,event.altKey,event.metaKey])">Go</button>`, find: "Go", a: reins.Click{Modifiers: []string{"Shift", "Alt"}}, want: "false,true,true,false"},
	{name: "position", html: `<div role=button tabindex=0 style="width:200px;height:100px" onclick="say(event.offsetX+' '+event.offsetY)">Pad</div>`, find: "Pad", a: reins.Click{Position: &reins.Point{X: 15, Y: 90}}, want: "15 90"},
	{name: "position outside", html: `<button onclick="say('FAIL')">Go</button>`, find: "Go", a: reins.Click{Position: &reins.Point{X: 500, Y: 5}}, code: reins.CodeInvalidInput, says: "outside of its box"},
	{name: "link", html: `<a href="#there" onclick="say('link')">There</a>`, find: "There", want: "link"},
	{name: "inline over two lines", html: `<div style="width:300px"><span style="display:inline-block;width:280px">x</span><a href="#a" onclick="say('broken')">a link that is broken over lines</a></div>`, find: "broken over", want: "broken"},
	{name: "summary", html: `<details ontoggle="say('open '+this.open)"><summary>More</summary>x</details>`, find: `button "More"`, want: "open true"},
	{name: "label", html: `<label class=l style="cursor:pointer"><input type=checkbox style="display:none" onchange="say('checked '+this.checked)">Pick</label>`, find: "Pick", want: "checked true"},
	{name: "clipped box", html: `<input type=checkbox id=c style="position:absolute;width:1px;height:1px;clip-path:inset(50%)" onchange="say('on '+this.checked)"><label for=c>Clipped</label>`, find: "Clipped", want: "on true"},
	{name: "svg", html: `<svg width=50 height=50><circle cx=25 cy=25 r=20 tabindex=0 aria-label=Dot role=button onclick="say('dot')"/></svg>`, find: "Dot", want: "dot"},
	{name: "image map", html: `<map name=m><area href="#n" shape=rect coords="10,10,30,30" alt=North onclick="say('north')"><area href="#s" shape=circle coords="70,20,9" alt=South onclick="say('south')"></map><img usemap="#m" width=100 height=40 alt=Map src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">`, find: "South", want: "south"},
	{name: "native option", html: `<select onchange="say('chose '+this.value)" aria-label=S><option>a<option>b</select>`, find: `"b"`, want: "chose b"},
	{name: "disabled option", html: `<select aria-label=S><option>a<option disabled>b</select>`, find: `"b"`, code: reins.CodeNotActionable, says: "disabled"},
	{name: "far below", html: `<div style="height:4000px"></div><button onclick="say('far')">Far</button>`, find: "Far", want: "far"},
	{name: "in a scroller", html: `<div style="height:100px;overflow:auto"><div style="height:1000px"></div><button onclick="say('in')">In</button><div style="height:1000px"></div></div>`, find: "In", want: "in"},
	{name: "under a sticky header", html: `<style>html{scroll-padding:0}</style><header style="position:sticky;top:0;height:120px;background:#fff" onclick="say('FAIL')">Head</header><div style="height:2000px"></div><button onclick="say('row')">Row</button><div style="height:2000px"></div><script>addEventListener('load',()=>scrollTo(0,2010))</script>`, find: "Row", want: "row"},
	{name: "comes to rest", html: `<style>@keyframes k{from{transform:translateX(0)}to{transform:translateX(300px)}}button{animation:k .4s linear forwards}</style><button onclick="say('rest')">Slide</button>`, find: "Slide", want: "rest"},
	{name: "pulses for ever", html: `<style>@keyframes k{50%{transform:scale(1.1)}}button{animation:k .5s infinite;padding:20px}</style><button onclick="say('pulse')">Pulse</button>`, find: "Pulse", want: "pulse"},
	{name: "enabled later", html: `<button disabled onclick="say('late')" id=b>Late</button><script>setTimeout(()=>{b.disabled=false},300)</script>`, find: "Late", want: "late"},
	{name: "uncovered later", html: `<button onclick="say('free')">Under</button><div id=v style="position:fixed;inset:0" onclick="say('FAIL')"></div><script>setTimeout(()=>v.remove(),300)</script>`, find: "Under", want: "free"},
	{name: "covered", html: `<button onclick="say('FAIL')">Save</button><div id=veil style="position:fixed;inset:0" onclick="say('FAIL')">Please wait</div>`, find: "Save", code: reins.CodeNotActionable, says: `veil" that reads "Please wait" (ref f`},
	{name: "disabled", html: `<button disabled>Off</button>`, find: "Off", code: reins.CodeNotActionable, says: "disabled"},
	{name: "disabled group", html: `<fieldset disabled><button>Off</button></fieldset>`, find: "Off", code: reins.CodeNotActionable, says: "disabled"},
	{name: "aria-disabled", html: `<div aria-disabled=true><button onclick="say('FAIL')">Off</button></div>`, find: "Off", code: reins.CodeNotActionable, says: "disabled"},
	{name: "no pointer", html: `<button style="pointer-events:none" onclick="say('FAIL')">Ghost</button>`, find: "Ghost", code: reins.CodeNotActionable, says: "pointer"},
	{name: "runs away", html: `<button id=b style="position:absolute" onclick="say('FAIL')">Run</button><script>let x=0;(function f(){x+=40;b.style.left=x%900+'px';requestAnimationFrame(f)})()</script>`, find: "Run", code: reins.CodeNotActionable, says: "moving"},
	{name: "gone while waited for", html: `<button id=b disabled onclick="say('FAIL')">Brief</button><script>setTimeout(()=>b.remove(),400)</script>`, find: "Brief", a: patient, code: reins.CodeStaleRef, says: "stale"},
	{name: "replaced while waited for", html: `<p id=p><button disabled onclick="say('FAIL')">Twin</button></p><script>setTimeout(()=>{p.innerHTML='<button onclick="say(1)">Twin</button>'},400)</script>`, find: "Twin", a: patient, code: reins.CodeStaleRef, says: "stale"},
	{name: "aria-disabled until later", html: `<button id=b aria-disabled=true onclick="say('woke')">Wake</button><script>setTimeout(()=>b.removeAttribute('aria-disabled'),300)</script>`, find: "Wake", want: "woke"},
	{name: "out of reach", html: `<div style="position:fixed;left:-500px;top:0"><button onclick="say('FAIL')">Far out</button></div>`, find: "Far out", code: reins.CodeNotActionable, says: "view"},
	{name: "under a sticky foot in a scroller", html: `<div style="height:150px;overflow:auto"><div style="height:400px"></div><button onclick="say('foot')">Low</button><div style="height:60px"></div><div style="position:sticky;bottom:0;height:60px;background:#ccc" onclick="say('FAIL')">Foot</div></div>`, find: "Low", want: "foot"},
	{name: "covered at the last moment", html: `<button onclick="say('FAIL')" onmouseenter="v.hidden=false">Trap</button><div id=v hidden style="position:fixed;inset:0" onmousedown="say('FAIL down')" onclick="say('FAIL')">Cover</div>`, find: "Trap", code: reins.CodeNotActionable, says: "covered"},
}

func TestClick(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		pages := map[string]string{}
		for i, c := range clicks {
			pages[fmt.Sprint("/", i)] = "<!doctype html><title>t</title>" + logPart + "<br>" + c.html
		}
		s := site(t, pages)
		for i, c := range clicks {
			t.Run(c.name, func(t *testing.T) {
				b.open(t, fmt.Sprint(s.URL, "/", i))
				a := c.a
				a.Ref = refTo(t, b.see(t), c.find)
				if c.code != "" && a.Actionable == nil {
					wait := reins.Duration(200 * time.Millisecond)
					a.Actionable = &wait
				}
				_, err := b.try(a)
				if c.code != "" {
					wantCode(t, err, c.code)
					if err != nil && !strings.Contains(err.Error(), c.says) {
						t.Errorf("%q does not say %q", err, c.says)
					}
					if got := b.result(t); strings.Contains(got, "FAIL") {
						t.Errorf("the page says %q", got)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				b.wantResult(t, c.want)
			})
		}
	})
}

// TestClickTells what it acted on and what it set off (ACT-7).
func TestClickTells(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>start</title><button id=a>Both</button><button id=b>Pop</button><input type=file id=f hidden aria-label=Up><button id=c>File</button>
<script>a.onclick=()=>{document.title='after';history.pushState(0,'','?x');console.error('e');null.x};b.onclick=()=>open('/pop');c.onclick=()=>f.click()</script>`, "/pop": `<title>pop</title>popped`})
	b.open(t, s.URL)
	see := b.see(t)
	r := b.act(t, reins.Click{Ref: refTo(t, see, "Both")}).Result
	c := r.Changes
	if c.URL != s.URL+"/?x" || c.Title != "after" || !c.Navigated || c.ConsoleErrors != 2 || !c.Settled || c.Focus == nil || c.Focus.Name != "Both" || c.FocusRef == "" {
		t.Errorf("changes %+v", c)
	}
	if r.Target == nil || *r.Target != (reins.Target{Role: "button", Name: "Both"}) {
		t.Errorf("target %+v", r.Target)
	}
	r = b.act(t, reins.Click{Ref: refTo(t, see, "File")}).Result
	if r.Changes.FileChooser == nil || r.Changes.FileChooser.Ref == "" {
		t.Fatalf("no file chooser with a ref in %+v", r.Changes)
	}
	if now := b.see(t); !strings.Contains(now, "- dialog \"File chooser\"") || !strings.Contains(now, string(r.Changes.FileChooser.Ref)) {
		t.Errorf("the chooser is not in\n%s", now)
	}
	r = b.act(t, reins.Click{Ref: refTo(t, see, "Pop")}).Result
	if len(r.Changes.OpenedTabs) != 1 || r.Selected != r.Changes.OpenedTabs[0].ID || r.Tab.ID == r.Selected {
		t.Errorf("opened %+v, selected %s", r.Changes.OpenedTabs, r.Selected)
	}
}

// TestClickClosesItsTab: the end of the tab is what the action led to.
func TestClickClosesItsTab(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><button onclick="window.open('/pop')">Pop</button>`, "/pop": `<!doctype html><title>pop</title><button onclick="window.close()">Close me</button>`})
	b.open(t, s.URL)
	b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Pop")})
	b.eventually(t, "the popup's page", func() bool {
		return strings.HasSuffix(b.selected.url, "/pop") && b.selected.main.phase >= phaseParsed && b.selected.main.doc != nil
	})
	r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Close me")}).Result
	b.eventually(t, "the tab's end", func() bool { return len(b.tabs) == 1 })
	if !r.Changes.Settled {
		t.Errorf("changes %+v", r.Changes)
	}
}
