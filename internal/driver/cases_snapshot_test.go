package driver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reins-browser/reins"
)

// looks are cases about what a snapshot says (SNAP).
var looks = []aCase{
	{"B001 names deep inside of buttons", map[string]string{"/": logPart + `<style>.gone{display:none}</style><div onclick="say('hit '+event.target.closest('button').id)">
<button id=one><span><span><svg aria-hidden=true width=9 height=9><circle r=4 /></svg></span><span><em>New</em> entry</span></span></button>
<button id=two><i aria-hidden=true>★</i><span><span>Keep</span> <b>it</b></span></button><button id=three><svg role=img aria-label="Shut" width=9 height=9></svg></button>
<button id=four><span>12</span> <span>waiting</span><span class=gone> never</span></button></div>`}, func(s *scene) {
		for name, id := range map[string]string{"New entry": "one", "Keep it": "two", "Shut": "three", "12 waiting": "four"} {
			s.press(name)
			s.says("hit " + id)
		}
	}},
	{"B002 the ways of giving a name", map[string]string{"/": `<p><a href="#a"><strong>Manual</strong></a> <a href="#b"><img alt="Start page" width=8 height=8></a> <a href="#c" aria-label="Basket">b.png</a></p>
<button><em><span>Keep draft</span></em></button> <button title="Step back"></button><label>Town <input></label><label for=l>Land</label><input id=l><input placeholder="Look for">
<span id=x>Home</span><span id=y>code</span><input aria-labelledby="x y"><fieldset><legend>Width</legend><label><input type=radio name=w> Thin</label><label><input type=radio name=w checked> Wide</label></fieldset>
<input type=submit value="Post it"><input type=image alt="Off we go"><input type=reset><details><summary>Rest</summary>in</details><div role=heading aria-level=4>Fourth</div>
<table><caption>Costs</caption><tr><th>What<th>How much<tr><td>Rice<td>3</table><div role=switch aria-checked=true tabindex=0>Dark</div><div role=progressbar aria-label=Sent aria-valuenow=60>60</div>`}, func(s *scene) {
		see := s.see(s.T)
		for _, want := range []string{`link "Manual"`, `link "Start page"`, `link "Basket"`, `button "Keep draft"`, `button "Step back"`, `textbox "Town"`, `textbox "Land"`, `textbox "Look for"`,
			`textbox "Home code"`, `group "Width"`, `radio "Thin" [ref`, `radio "Wide" [checked]`, `button "Post it"`, `button "Off we go"`, `button "Reset"`, `button "Rest" [collapsed]`,
			`heading "Fourth" [level=4]`, `table "Costs"`, `columnheader "How much"`, `cell "Rice"`, `switch "Dark" [checked]`, `progressbar "Sent": 60`} {
			if !strings.Contains(see, "- "+want) {
				s.Errorf("there is no %s in\n%s", want, see)
			}
		}
	}},
	{"B003 files are no text boxes", map[string]string{"/": logPart + `<label for=f>Deed</label><input id=f type=file><label for=g>Scans</label><input id=g type=file multiple accept=".png">
<label>Face <input type=file style="position:absolute;opacity:0;width:1px"></label><label for=t>Remark</label><input id=t>`}, func(s *scene) {
		see := s.see(s.T)
		for _, want := range []string{`file "Deed"`, `file "Scans" [multiple] [accept=".png"]`, `file "Face"`, `textbox "Remark"`} {
			if !strings.Contains(see, "- "+want) {
				s.Errorf("there is no %s in\n%s", want, see)
			}
		}
		if !strings.Contains(see, "no file chosen") || strings.Count(see, "textbox") != 1 {
			s.Errorf("it reads\n%s", see)
		}
		s.refused(reins.Fill{Ref: s.ref(`"Deed"`), Value: reins.TextValue("/etc/passwd")}, reins.CodeInvalidInput, "file", soon)
	}},
	{"B005 frames inside of frames", map[string]string{"/": logPart + `<style>body{margin:31px}iframe{border:8px solid;margin:19px 0 0 43px;padding:11px;width:500px;height:320px}</style><p>above</p><iframe title=outer src=outer></iframe><script>addEventListener('message',e=>say(e.data))</script>`,
		"/outer": `<body style="margin:9px"><p>mid</p><iframe title=inner src=inner style="border:4px solid;margin-left:27px;width:300px;height:190px"></iframe><div style="height:300px">`,
		"/inner": `<body style="margin:15px"><div style="height:170px">skip</div><div style="width:240px"><script>for(let i=1;i<10;i++)document.write('<button style="width:70px;height:40px" onclick="top.postMessage(\'place '+i+'\',\'*\')">place '+i+'</button>')</script></div><div style="height:400px">`}, func(s *scene) {
		see := s.see(s.T)
		for _, i := range []int{1, 5, 9, 2, 8} {
			s.act(s.T, reins.Click{Ref: refTo(s.T, see, fmt.Sprintf(`"place %d"`, i))})
			s.wantResult(s.T, fmt.Sprint("place ", i))
		}
	}},
	{"B006 open shadow roots", map[string]string{"/": logPart + `<x-door>Help slot</x-door><script>
customElements.define('x-line', class extends HTMLElement { constructor() { super(); this.attachShadow({mode:'open'}).innerHTML = '<label>Member <input></label>'; } });
customElements.define('x-door', class extends HTMLElement { constructor() { super(); const r = this.attachShadow({mode:'open'}); r.innerHTML = '<x-line></x-line><slot></slot><button>Go in</button>';
  r.querySelector('button').onclick = () => say('in as ' + r.querySelector('x-line').shadowRoot.querySelector('input').value); } });</script>`}, func(s *scene) {
		s.set("Member", reins.TextValue("ada"))
		s.press("Go in")
		s.says("in as ada")
		if see := s.see(s.T); !strings.Contains(see, "Help slot") {
			s.Errorf("the slot's text is not in\n%s", see)
		}
	}},
	{"B008 boxes without a role", map[string]string{"/": logPart + `<style>.tile,li{cursor:pointer;border:1px solid;margin:5px;width:200px}</style><div class=tile data-id=north><h3>North house</h3><span>4 rooms</span></div>
<div class=tile data-id=south><h3>South house</h3><span>9 rooms</span></div><ul><li data-id=first>Line one</li><li data-id=second>Line two</li></ul><span tabindex=0 data-id=focus>Takes focus</span>
<div draggable=true data-id=drag>Can be dragged</div><script>for(const e of document.querySelectorAll('[data-id]'))e.addEventListener('click',()=>say('open '+e.dataset.id))</script>`}, func(s *scene) {
		see := s.see(s.T)
		wantOpen := func(id string) { // where something can be dragged, the result has a ref too
			s.T.Helper()
			if got := s.script(s.T, "document.getElementById('result').textContent"); got != "open "+id {
				s.Errorf("the page says %q, want %q", got, "open "+id)
			}
		}
		for id, text := range map[string]string{"first": "Line one", "second": "Line two", "focus": "Takes focus", "drag": "Can be dragged"} {
			s.act(s.T, reins.Click{Ref: refTo(s.T, see, text)})
			wantOpen(id)
		}
		for id, text := range map[string]string{"north": "North house", "south": "South house"} {
			s.act(s.T, reins.Click{Ref: boxAround(s.T, see, text)})
			wantOpen(id)
		}
	}},
	{"B009 disabled controls are listed", map[string]string{"/": logPart + `<label>Mail <input id=m></label><button id=k disabled onclick="say('kept '+m.value)">Keep mail</button><button aria-disabled=true>Put away</button>
<fieldset disabled><legend>Closed part</legend><label>Rate <input value=low></label></fieldset><script>m.oninput=()=>{k.disabled=!m.value.includes('@')}</script>`}, func(s *scene) {
		see := s.see(s.T)
		for _, want := range []string{`button "Keep mail" [disabled]`, `button "Put away" [disabled]`, `group "Closed part" [disabled]`, `textbox "Rate" [disabled]`} {
			if !strings.Contains(see, want) {
				s.Errorf("there is no %s in\n%s", want, see)
			}
		}
		s.set("Mail", reins.TextValue("a@b"))
		if see := s.see(s.T); strings.Contains(see, `"Keep mail" [disabled]`) {
			s.Errorf("it is still disabled in\n%s", see)
		}
		s.press("Keep mail")
		s.says("kept a@b")
	}},
	{"B012 a long ledger", map[string]string{"/": logPart + `<table><thead><tr><th>No<th>To<th>Sum<th>Do</thead><tbody id=b></tbody></table><script>let h='';for(let i=1;i<=6000;i++)h+='<tr><td>'+i+'<td>Paid to number '+i+' of the book<td>'+i%97+'.00<td><button onclick="say(\'looked at '+i+'\')">Look '+i+'</button>';b.innerHTML=h</script>`}, func(s *scene) {
		r := s.act(s.T, reins.Snapshot{}).Result
		if n := len(r.Snapshot.Text); n > snapshotBytes || r.Snapshot.Cursor == "" || !strings.Contains(strings.Join(r.Notes, " "), "did not fit") {
			s.Errorf("%d bytes, cursor %q, notes %q", n, r.Snapshot.Cursor, r.Notes)
		}
		found := s.act(s.T, reins.Snapshot{Find: "Look 4321"}).Result.Snapshot.Text
		if len(found) > 3000 {
			s.Errorf("what was looked for takes %d bytes", len(found))
		}
		s.act(s.T, reins.Click{Ref: refTo(s.T, found, `"Look 4321"`)})
		if text := s.script(s.T, "document.getElementById('result').textContent"); text != "looked at 4321" {
			s.Errorf("the page says %q", text)
		}
	}},
	{"B013 small actions, small replies", map[string]string{"/": logPart + `<button onclick="say(k=(self.k||0)+1)">Count</button><div id=l></div><script>let h='';for(let i=0;i<3000;i++)h+='<a href="#x'+i+'">Entry '+i+' that has quite a long caption</a> ';l.innerHTML=h</script>`}, func(s *scene) {
		ref := refTo(s.T, s.see(s.T), `"Count"`)
		for i := range 10 {
			r := s.act(s.T, reins.Click{Ref: ref, Waits: reins.Waits{Snapshot: true}}).Result
			reply, err := json.Marshal(r)
			if err != nil || len(reply) > 3000 || !r.Snapshot.Changes || !strings.Contains(r.Snapshot.Text, fmt.Sprintf(`status "result": "%d"`, i+1)) && !strings.Contains(r.Snapshot.Text, fmt.Sprintf(`status "result": %d`, i+1)) {
				s.Fatalf("%v, %d bytes: %.400s", err, len(reply), reply)
			}
		}
	}},
	{"B014 odd text", map[string]string{"/": logPart + `<div id=box></div><script>for(const [id,t] of Object.entries({high:'cut \ud83d here',low:'tail \ude00 end',family:'kin \u{1F468}\u200d\u{1F469}\u200d\u{1F467}',flag:'of \u{1F1F3}\u{1F1F4}',turn:'abc \u202egpj.exe',ends:'one\u2028two\u2029three',bell:'ctl \u0001\u0007\u001b[31m',marks:'e\u0301 n\u0303'})){const b=document.createElement('button');b.textContent=t;b.onclick=()=>say('hit '+id);box.append(b)}</script>`}, func(s *scene) {
		for size := 1000; size < 1100; size += 7 {
			r := s.act(s.T, reins.Snapshot{MaxBytes: size}).Result
			reply, err := json.Marshal(r)
			if err != nil || !utf8.Valid(reply) || !json.Valid(reply) || strings.ContainsAny(r.Snapshot.Text, "\a\x1b\x01") {
				s.Fatalf("%v in %q", err, reply)
			}
			if !strings.Contains(r.Snapshot.Text, "kin \U0001F468\u200d\U0001F469\u200d\U0001F467\"") || !strings.Contains(r.Snapshot.Text, "of \U0001F1F3\U0001F1F4\"") {
				s.Fatalf("a character is broken in\n%s", r.Snapshot.Text)
			}
		}
		s.act(s.T, reins.Click{Ref: s.ref("tail \uFFFD end")})
		s.says("hit low")
	}},
	{"B016 passwords are dots", map[string]string{"/": logPart + `<label>Word <input type=password value="open-made-up"></label><label>Code <input id=c type=password inputmode=numeric></label><label>Note <input type=text style="-webkit-text-security:disc" value="hidden-made-up"></label>
<label>Both <input type=password aria-label="Both" id=d></label><span id=by>For <input type=password value="label-made-up"></span><button aria-labelledby=by>x</button><script>c.value='12-made-up';d.value='34-made-up'</script>`}, func(s *scene) {
		for _, a := range []reins.Snapshot{{MaxBytes: 1_000_000}, {Interactive: true}, {Find: "Word"}, {Ref: s.ref(`"Code"`)}} {
			r := s.act(s.T, a)
			if reply, err := json.Marshal(r); err != nil || strings.Contains(string(reply), "made-up") {
				s.Errorf("%v: %s", err, reply)
			}
		}
		if see := s.see(s.T); !strings.Contains(see, `textbox "Word"`) || !strings.Contains(see, "••••") {
			s.Errorf("it reads\n%s", see)
		}
		_, err := s.try(reins.Fill{Ref: s.ref(`"Code"`), Value: reins.CheckedValue(true)})
		if err == nil || strings.Contains(err.Error(), "made-up") {
			s.Errorf("a wrong fill: %v", err)
		}
	}},
	{"B019 refs of a page before", map[string]string{"/": logPart + `<label>Miles <input oninput="say('typed')"></label><button onclick="say('pressed')">Add</button>`}, func(s *scene) {
		see := s.see(s.T)
		s.act(s.T, reins.Navigate{URL: "reload"})
		s.refused(reins.Fill{Ref: refTo(s.T, see, `"Miles"`), Value: reins.TextValue("7")}, reins.CodeStaleRef, "", soon)
		s.refused(reins.Click{Ref: refTo(s.T, see, `"Add"`)}, reins.CodeStaleRef, "", soon)
		s.says("-")
	}},
	{"B020 refs that go on", map[string]string{"/": logPart + `<label>Ask <input id=q></label><button onclick="say('asked '+q.value)">Find</button><button onclick="q.value='';say('empty')">Empty</button>`}, func(s *scene) {
		see := s.see(s.T)
		s.act(s.T, reins.Fill{Ref: refTo(s.T, see, `"Ask"`), Value: reins.TextValue("tea")})
		s.act(s.T, reins.Click{Ref: refTo(s.T, see, `"Find"`)})
		s.says("asked tea")
		s.act(s.T, reins.Click{Ref: refTo(s.T, see, `"Empty"`)})
		s.says("empty")
	}},
	{"B022 a painted board", map[string]string{"/": logPart + `<canvas id=c width=320 height=150 style="position:absolute;left:20px;top:60px"></canvas><script>const x=c.getContext('2d');x.fillStyle='#246';x.fillRect(20,40,120,60);x.fillRect(170,40,120,60);
c.onclick=e=>say(e.offsetX>=20&&e.offsetX<140?'left lamp':e.offsetX>=170&&e.offsetX<290?'right lamp':'missed')</script>`}, func(s *scene) {
		see := s.see(s.T)
		if !regexp.MustCompile(`- canvas \[box=20,60,320,150\] \[ref=`).MatchString(see) {
			s.Fatalf("it reads\n%s", see)
		}
		ref := refTo(s.T, see, "canvas")
		if shot := s.act(s.T, reins.Screenshot{Ref: ref}); shot.Picture == nil || shot.Picture.Width < 320 {
			s.Errorf("no picture: %+v", shot)
		}
		s.act(s.T, reins.Click{Ref: ref, Position: &reins.Point{X: 230, Y: 70}})
		s.says("right lamp")
	}},
}

// boxAround is the ref of the innermost entry with one around the line that
// holds text.
func boxAround(tb testing.TB, see, text string) reins.Ref {
	tb.Helper()
	at := strings.Index(see, text)
	if at < 0 {
		tb.Fatalf("no %q in\n%s", text, see)
	}
	all := regexp.MustCompile(`generic \[ref=(\w+)\]`).FindAllStringSubmatch(see[:at], -1)
	if len(all) == 0 {
		tb.Fatalf("no box around %q in\n%s", text, see)
	}
	return reins.Ref(all[len(all)-1][1])
}

func TestLooks(t *testing.T) { walkThrough(t, looks) }

// B004: what is inside of a frame of another site is in the snapshot, and can be
// filled and pressed (SNAP-2).
func TestPaymentFrame(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		inner := site(t, map[string]string{"/": `<!doctype html><title>pay</title><label>Account <input id=n></label><button onclick="parent.postMessage('sent '+n.value,'*')">Send</button>`})
		outer := site(t, map[string]string{"/": `<!doctype html><title>shop</title>` + logPart + `<h1>Till</h1><iframe title=till src="` + at(inner, "pay.test", "/") + `" style="margin:50px 0 0 30px;border:3px solid;width:440px;height:80px"></iframe><script>addEventListener('message',e=>say(e.data))</script>`})
		b.open(t, at(outer, "shop.test", "/"))
		see := b.see(t)
		b.act(t, reins.Fill{Ref: refTo(t, see, `"Account"`), Value: reins.TextValue("4000")})
		b.act(t, reins.Click{Ref: refTo(t, see, `"Send"`)})
		b.wantResult(t, "sent 4000")
	})
}
