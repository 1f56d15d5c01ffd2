package driver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestHover: the pointer's events come, menus that open under it can be used,
// and what is disabled can be pointed at too (MCP-3).
func TestHover(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<style>#m{display:none}#w:hover #m{display:block}</style>
<div id=w><button>Menu</button><div id=m><button onclick="say('chosen')">Entry</button></div></div>
<button disabled onmouseenter="say('told')">Off</button>
<div tabindex=0 id=box style="width:100px;height:50px" onmousemove="say(event.offsetX+','+event.offsetY+','+event.altKey)">Box</div>
<iframe srcdoc="<button onmouseover=&quot;parent.document.getElementById('result').textContent='inner'&quot;>Inner</button>"></iframe>`})
		b.open(t, s.URL)
		r := b.act(t, reins.Hover{Ref: refTo(t, b.see(t), `"Menu"`), Waits: reins.Waits{Snapshot: true}})
		if r.Result.Target == nil || r.Result.Target.Name != "Menu" || !r.Result.Changes.Settled {
			t.Errorf("target %+v, changes %+v", r.Result.Target, r.Result.Changes)
		}
		b.act(t, reins.Click{Ref: refTo(t, r.Result.Snapshot.Text, `"Entry"`)})
		b.wantResult(t, "chosen")
		b.act(t, reins.Hover{Ref: refTo(t, b.see(t), `"Off"`)})
		b.wantResult(t, "told")
		b.act(t, reins.Hover{Ref: refTo(t, b.see(t), "Box"), Position: &reins.Point{X: 30, Y: 20}, Modifiers: []string{"Alt"}})
		b.wantResult(t, "30,20,true")
		b.act(t, reins.Hover{Ref: refTo(t, b.see(t), `"Inner"`)})
		b.wantResult(t, "inner")
	})
}

const dragPage = `<!doctype html><title>t</title>` + logPart + `<style>.z{width:160px;height:60px;border:1px solid}</style>
<div class=z id=card draggable=true>Parcel</div><div style="height:30px"></div>
<div class=z id=bin tabindex=0>Bin</div>
<div id=track style="width:300px;height:20px;background:#ddd;position:relative"><div id=knob role=slider tabindex=0 aria-label=Knob aria-valuenow=0 style="width:20px;height:20px;background:#08f;position:absolute;left:0"></div></div>
<ul id=list style="padding:0"><li class=z tabindex=0>One<li class=z tabindex=0>Two<li class=z tabindex=0>Three</ul>
<button onclick="say('clicked')">Plain</button>
<div style="height:2000px"></div><div class=z id=far tabindex=0>Far</div>
<script>
const log=[];
card.ondragstart=e=>{e.dataTransfer.setData('text/plain','p1');e.dataTransfer.effectAllowed='move';log.push('start')};
card.ondragend=e=>{log.push('end '+e.dataTransfer.dropEffect);say(log.join(' '));log.length=0};
for(const z of [bin,far]){z.ondragenter=e=>{e.preventDefault();log.push('enter')};z.ondragover=e=>{e.preventDefault();e.dataTransfer.dropEffect='move'};z.ondrop=e=>{e.preventDefault();log.push('drop '+e.dataTransfer.getData('text/plain')+' on '+z.id)}};
let held=null;
knob.onpointerdown=e=>{held=e.clientX-knob.offsetLeft;knob.setPointerCapture(e.pointerId)};
knob.onpointermove=e=>{if(held!==null)knob.style.left=Math.max(0,Math.min(280,e.clientX-held))+'px'};
knob.onpointerup=()=>{held=null;knob.setAttribute('aria-valuenow',knob.offsetLeft);say('knob '+knob.offsetLeft)};
let row=null;
list.onmousedown=e=>{row=e.target;e.preventDefault()};
document.onmousemove=e=>{if(!row)return;const o=document.elementFromPoint(e.clientX,e.clientY);if(o&&o!==row&&o.parentElement===list)list.insertBefore(row,o.getBoundingClientRect().y>row.getBoundingClientRect().y?o.nextSibling:o)};
document.onmouseup=()=>{if(row)say([...list.children].map(x=>x.textContent).join());row=null};
</script>`

// TestDrag: native drag and drop, sliders and lists that follow the pointer,
// and a place that is out of view when the drag begins (MCP-3, B093).
func TestDrag(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{"/": dragPage})
		for _, c := range []struct {
			from string
			a    reins.Drag // To holds what the place's line reads
			want string
		}{
			{"Parcel", reins.Drag{To: "Bin"}, "start enter drop p1 on bin end move"},
			{"Parcel", reins.Drag{To: "Far"}, "start enter drop p1 on far end move"},
			{"Knob", reins.Drag{By: &reins.Point{X: 120}}, "knob 120"},
			{"Knob", reins.Drag{By: &reins.Point{X: 4000, Y: 3}}, "knob 280"},
			{"One", reins.Drag{To: "Three"}, "Two,Three,One"},
			{"Parcel", reins.Drag{To: "Plain"}, "start enter end none"},
		} {
			b.open(t, s.URL)
			see := b.see(t)
			c.a.Ref = refTo(t, see, c.from)
			if c.a.To != "" {
				c.a.To = refTo(t, see, string(c.a.To))
			}
			b.act(t, c.a)
			b.wantResult(t, c.want)
			b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Plain"`)}) // no button stays down
			b.wantResult(t, "clicked")
		}
	})
}

// TestDragAcrossFrames drops what comes from one frame in another.
func TestDragAcrossFrames(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		var inner string
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/inner" {
				fmt.Fprint(w, `<!doctype html><div tabindex=0 id=z style="width:150px;height:80px;border:1px solid" ondragover="event.preventDefault()" ondrop="z.textContent='Took '+event.dataTransfer.getData('text')">Inside</div>`)
				return
			}
			fmt.Fprintf(w, `<!doctype html><title>t</title><div draggable=true style="width:100px;height:40px" ondragstart="event.dataTransfer.setData('text','it')">Parcel</div><iframe src="%s" width=300 height=200></iframe>`, inner)
		})
		s := serve(t, mux)
		inner = at(s, "other.test", "/inner")
		b.open(t, s.URL)
		see := b.see(t)
		b.act(t, reins.Drag{Ref: refTo(t, see, "Parcel"), To: refTo(t, see, "Inside")})
		if now := b.see(t); !strings.Contains(now, "Took it") {
			t.Errorf("not dropped in\n%s", now)
		}
	})
}

// TestDragRefusals: a place that is hidden or gone ends the drag without a drop.
func TestDragRefusals(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": dragPage})
	b.open(t, s.URL)
	see := b.see(t)
	bin, card := refTo(t, see, "Bin"), refTo(t, see, "Parcel")
	b.script(t, `document.getElementById('bin').style.display='none'`)
	_, err := b.try(reins.Drag{Ref: card, To: bin})
	wantCode(t, err, reins.CodeNotActionable)
	b.script(t, `document.getElementById('bin').remove()`)
	_, err = b.try(reins.Drag{Ref: card, To: bin})
	wantCode(t, err, reins.CodeStaleRef)
	b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Plain"`)})
	b.wantResult(t, "clicked")
}

// TestScroll: the page, a part of it, an element, and pages that take the wheel
// themselves; what that loads has come (MCP-3, ACT-6).
func TestScroll(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		mux := http.NewServeMux()
		mux.HandleFunc("/more", func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(100 * time.Millisecond)
			defer timer.Stop()
			<-timer.C
			fmt.Fprint(w, "Loaded later")
		})
		page := func(path, body string) {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<!doctype html><title>t</title>"+logPart+body)
			})
		}
		page("/", `<div style="height:3000px">Top</div><button id=low>Low</button><script>let n=0;onscroll=async()=>{if(scrollY+innerHeight>document.documentElement.scrollHeight-5&&!n++)document.body.append(await (await fetch('/more')).text())}</script>`)
		page("/app", `<style>body{margin:0;overflow:hidden;height:100vh}</style><main tabindex=0 aria-label=Pane style="height:90vh;overflow:auto"><div style="height:4000px;width:3000px">Content</div></main>`)
		page("/map", `<style>body{overflow:hidden;height:100vh}</style><div tabindex=0 aria-label=Map style="width:500px;height:300px" onwheel="say('wheel '+event.deltaY)">Map</div>`)
		s := serve(t, mux)

		b.open(t, s.URL+"/")
		low := refTo(t, b.see(t), `"Low"`)
		r := b.act(t, reins.Scroll{Y: 500}).Result
		if r.Scrolled == nil || r.Scrolled.Y != 500 || r.Scrolled.MaxY < 2000 {
			t.Errorf("scrolled %+v", r.Scrolled)
		}
		r = b.act(t, reins.Scroll{To: "bottom", Waits: reins.Waits{Snapshot: true}}).Result
		if r.Scrolled.Y != r.Scrolled.MaxY && r.Scrolled.Y+100 < r.Scrolled.MaxY {
			t.Errorf("scrolled %+v", r.Scrolled)
		}
		if !strings.Contains(r.Snapshot.Text, "Loaded later") {
			t.Errorf("what the scroll loaded has not come:\n%s", r.Snapshot.Text)
		}
		b.act(t, reins.Scroll{To: "top"})
		r = b.act(t, reins.Scroll{Ref: low}).Result
		if got := b.script(t, `document.getElementById('low').getBoundingClientRect().top < innerHeight`); got != "true" || r.Target.Name != "Low" {
			t.Errorf("in view: %s, target %+v", got, r.Target)
		}

		b.open(t, s.URL+"/app")
		if r = b.act(t, reins.Scroll{X: 40, Y: 300}).Result; r.Scrolled == nil || r.Scrolled.Y != 300 || r.Scrolled.X != 40 {
			t.Errorf("the pane: %+v", r.Scrolled)
		}
		b.open(t, s.URL+"/map")
		r = b.act(t, reins.Scroll{Ref: refTo(t, b.see(t), `Map`), Y: 120}).Result
		b.wantResult(t, "wheel 120")
		if r.Scrolled != nil || len(r.Notes) == 0 {
			t.Errorf("the map: %+v, notes %q", r.Scrolled, r.Notes)
		}
	})
}
