package driver

import (
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// inputs are cases about values and keys (ACT-3, ACT-4).
var inputs = []aCase{
	{"B034 native lists", map[string]string{"/": logPart + `<label>Go by <select id=a><option>Foot<option>Bike<option>Boat</select></label><label>Show <select id=b><option value=m selected>Mine<option value="">All of it</select></label>
<label>Port <select id=c><optgroup label=West><option value=w>Quay</optgroup><optgroup label=East><option value=e>Quay<option value=x disabled>Shut</optgroup></select></label><label>Spices <select id=d multiple size=3><option>Salt<option>Dill<option>Mint</select></label>
<script>let n=0;addEventListener('change',e=>say(++n+e.target.id+[...e.target.selectedOptions].map(o=>o.text)+(e.target.value===''?'!':'')))</script>`}, func(s *scene) {
		s.set("Go by", textOf("Bike"))
		s.says("1aBike")
		s.set("Show", textOf("All of it"))
		s.says("2bAll of it!")
		s.set("Port", textOf("East Quay"))
		s.says("3cQuay")
		s.set("Spices", reins.Value{Options: []string{"Salt", "Mint"}})
		s.says("4dSalt,Mint")
		s.refused(reins.Fill{Ref: s.ref(`"Port"`), Value: textOf("Shut")}, reins.CodeNotActionable, "disabled", soon)
		s.says("4dSalt,Mint")
		s.press("Boat")
		s.says("5aBoat")
	}},
	{"B036 fields that hand on the focus", map[string]string{"/": logPart + `<label>Mail <input id=m value=old></label><label>Word <input id=w type=password></label><label>Part <input id=p maxlength=2></label><label>Number <input id=c></label><button>Check</button>
<script>m.oninput=()=>setTimeout(()=>w.focus());p.oninput=()=>{if(p.value.length>1)c.focus()};c.oninput=()=>{c.value=c.value.replace(/\D/g,'').slice(0,8).replace(/(\d{4})(?=\d)/,'$1 ')};document.querySelector('button').onclick=()=>say([m.value,w.value,p.value,c.value].join('/'))</script>`}, func(s *scene) {
		for _, c := range [][2]string{{"Mail", "bo@x.test"}, {"Word", "quiet-7"}, {"Part", "42"}, {"Number", "12345678"}} {
			s.set(c[0], textOf(c[1]))
		}
		s.press("Check")
		s.says("bo@x.test/quiet-7/42/1234 5678")
	}},
	{"B037 typed inputs", map[string]string{"/": logPart + `<label>Day <input type=date id=d min=2030-01-01></label><label>Hour <input type=time id=t></label><label>When <input type=datetime-local id=l></label><label>Month <input type=month id=m></label><label>Week <input type=week id=w></label>
<label>Loud <input type=range max=50 step=5 id=r></label><label>Count <input type=number step=.5 id=n></label><label>Ink <input type=color id=c></label><button>Check</button>
<script>const ev={};for(const k of ['input','change'])addEventListener(k,e=>{(ev[e.target.id]||=new Set).add(k)});document.querySelector('button').onclick=()=>say([...document.querySelectorAll('input')].map(i=>i.value+(ev[i.id]?.size??0)).join(' '))</script>`}, func(s *scene) {
		for _, c := range [][2]string{{"Day", "2032-02-29"}, {"Hour", "06:45"}, {"When", "2032-02-29T07:05"}, {"Month", "2032-11"}, {"Week", "2032-W09"}, {"Loud", "35"}, {"Count", "-2.5"}, {"Ink", "#12ab9f"}} {
			s.set(c[0], textOf(c[1]))
		}
		for _, c := range [][3]string{{"Day", "2033-02-29", "date"}, {"Day", "2029-01-01", "from"}, {"Hour", "25:00", "time"}, {"Week", "2032-W60", "week"}, {"Loud", "37", "steps of"}, {"Count", "x", "number"}, {"Ink", "red-ish", "colour"}, {"Month", "2032-13", "month"}} {
			s.refused(reins.Fill{Ref: s.ref(quoted(c[0])), Value: textOf(c[1])}, reins.CodeInvalidInput, c[2], soon)
		}
		s.press("Check")
		s.says("2032-02-292 06:452 2032-02-29T07:052 2032-112 2032-W092 352 -2.52 #12ab9f2")
	}},
	{"B038 a field owned by a store", map[string]string{"/": logPart + `<label>Key <input id=k></label><button id=b disabled>Save key</button><script>
const raw=Object.getOwnPropertyDescriptor(HTMLInputElement.prototype,'value');let store='',last='',ticks=0;Object.defineProperty(k,'value',{get(){return raw.get.call(this)},set(v){last=String(v);raw.set.call(this,v)}});
k.addEventListener('input',()=>{const v=raw.get.call(k);if(v===last)return;last=store=v;b.disabled=!store});setInterval(()=>{ticks++;document.title='t'+ticks;if(raw.get.call(k)!==store){raw.set.call(k,store);last=store}},100);b.onclick=()=>say('saved '+store)</script>`}, func(s *scene) {
		s.set("Key", textOf("7731"))
		s.script(s.T, `new Promise(d => { const n = +document.title.slice(1) || 0, look = () => +document.title.slice(1) > n + 4 ? d(1) : requestAnimationFrame(look); look() })`)
		s.press("Save key")
		s.says("saved 7731")
	}},
	{"B039 an editor with a model", map[string]string{"/": logPart + editorWithModel}, func(s *scene) {
		s.set("Post", textOf("Second try, one line"))
		s.press("Publish")
		s.says("published: Second try, one line")
	}},
	{"B041 chords", map[string]string{"/": logPart + `<textarea aria-label=Box>grey cat</textarea><label>Chat <textarea id=c></textarea></label><p id=h>none</p><script>
addEventListener('keydown',e=>{if(e.ctrlKey&&e.key===',')say('settings');if(e.ctrlKey&&e.shiftKey&&e.code==='KeyK'){e.preventDefault();say('command')}});c.addEventListener('keydown',e=>{if(e.key==='Enter'&&!e.shiftKey){e.preventDefault();say('sent '+JSON.stringify(c.value))}});
for(const t of ['keyup','mousemove'])addEventListener(t,e=>{h.textContent=['Control','Shift','Alt','Meta'].filter(m=>e.getModifierState(m)).join()||'none'})</script>`}, func(s *scene) {
		box, chat := s.ref(`textbox "Box"`), s.ref(`textbox "Chat"`)
		s.act(s.T, reins.Press{Ref: box, Key: "Control+A"})
		s.act(s.T, reins.Type{Text: "NEW"})
		if got := s.script(s.T, `document.querySelector('textarea').value`); got != "NEW" {
			s.Errorf("the box holds %q", got)
		}
		s.act(s.T, reins.Press{Key: "Control+,"})
		s.says("settings")
		s.act(s.T, reins.Press{Key: "Control+Shift+K"})
		s.says("command")
		s.act(s.T, reins.Type{Ref: chat, Text: "one"})
		s.act(s.T, reins.Press{Ref: chat, Key: "Shift+Enter"})
		s.act(s.T, reins.Type{Text: "two"})
		s.act(s.T, reins.Press{Ref: chat, Key: "Enter"})
		s.says(`sent "one\ntwo"`)
		if got := s.script(s.T, `document.getElementById('h').textContent + document.querySelector('textarea').value`); got != "noneNEW" {
			s.Errorf("held is, and the box holds, %q", got)
		}
	}},
	{"B042 scripts of the world", map[string]string{"/": logPart + `<div id=rows></div><label>Keys only <input id=k></label><script>
for(let i=0;i<6;i++)rows.innerHTML+='<label>Row '+i+' <input></label>';let t='';k.onkeydown=e=>{if([...e.key].length===1&&!e.ctrlKey)t+=e.key};k.oninput=()=>{k.value=t}</script>`}, func(s *scene) {
		want := []string{"Добрый день", "日本語の文", "한글 쓰기", "مرحبا 12", "naïve åß€ “x”", "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F3F4\U000E0067\U000E0062\U000E007F  two"}
		see := s.see(s.T)
		for i, text := range want {
			if i%2 == 0 {
				s.act(s.T, reins.Fill{Ref: refTo(s.T, see, quoted("Row "+string(rune('0'+i)))), Value: textOf(text)})
			} else {
				s.act(s.T, reins.Type{Ref: refTo(s.T, see, quoted("Row "+string(rune('0'+i)))), Text: text})
			}
		}
		if got := s.script(s.T, `[...document.querySelectorAll('#rows input')].map(i => i.value).join('|')`); got != strings.Join(want, "|") {
			s.Errorf("the rows hold %q", got)
		}
		s.act(s.T, reins.Type{Ref: refTo(s.T, see, `"Keys only"`), Text: "Ж9z"})
		if got := s.script(s.T, `document.getElementById('k').value`); got != "Ж9z" {
			s.Errorf("the box for keys holds %q", got)
		}
	}},
	{"B043 a file is wanted", map[string]string{"/": logPart + `<button onclick="h.click()">Photo</button><label>Plain <input type=file id=p></label><input type=file id=h style="display:none"><button onclick="say('other '+(++n))">Else</button><script>let n=0;addEventListener('change',e=>e.target.files&&say(e.target.id+' got '+e.target.files.length))</script>`}, func(s *scene) {
		began := time.Now()
		c := s.press("Photo").Result.Changes
		if c.FileChooser == nil || c.FileChooser.Ref == "" || time.Since(began) > soon {
			s.Fatalf("the wish for a file is told after %s as %+v", time.Since(began), c)
		}
		s.press("Else")
		s.says("other 1")
		path := s.chromium.downloads + "/photo.txt"
		writeFile(s.T, path)
		give := func(ref reins.Ref, want string) {
			s.T.Helper()
			if _, err := s.do(s.T.Context(), Command{Action: reins.Fill{Ref: ref, Value: reins.Value{Artifacts: []string{"a"}}}, Lease: "lease", Files: map[string]string{"a": path}}); err != nil {
				s.T.Fatal(err)
			}
			s.says(want)
		}
		give(c.FileChooser.Ref, "h got 1")
		give(s.ref(`"Plain"`), "p got 1")
		if c := s.act(s.T, reins.Click{Ref: s.ref(`"Plain`)}).Result.Changes; c.FileChooser == nil {
			s.Errorf("a press on the plain input tells %+v", c)
		}
		s.press("Else")
		s.says("other 2")
	}},
}

// editorWithModel is an editor that keeps its own text, takes real editing
// input only, and undoes any other change.
const editorWithModel = `<div id=e contenteditable role=textbox aria-label=Post style="white-space:pre-wrap;min-height:30px"></div><button onclick="say('published: '+model)">Publish</button><script>
let model='First try',busy=0;const seen=new MutationObserver(()=>{if(!busy&&e.textContent!==model)draw()});
function draw(at){busy=1;e.textContent=model;if(at!=null){const s=getSelection(),t=e.firstChild||e;s.collapse(t,Math.min(at,t.length||0))}queueMicrotask(()=>{seen.takeRecords();busy=0})}
function range(){const s=getSelection();if(!s.rangeCount||!e.contains(s.anchorNode))return[model.length,model.length];const r=s.getRangeAt(0),p=document.createRange();p.selectNodeContents(e);p.setEnd(r.startContainer,r.startOffset);const a=p.toString().length;return[a,a+r.toString().length]}
e.addEventListener('beforeinput',v=>{v.preventDefault();if(!v.isTrusted)return;let[a,b]=range(),add='';if(v.inputType.startsWith('insert'))add=v.data??v.dataTransfer?.getData('text/plain')??'\n';else if(a===b)a=Math.max(0,a-1);model=model.slice(0,a)+add+model.slice(b);draw(a+add.length)});
seen.observe(e,{childList:true,characterData:true,subtree:true});draw()</script>`

// TestInputCases walks through them.
func TestInputCases(t *testing.T) { walkThrough(t, inputs) }
