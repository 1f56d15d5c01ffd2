package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// soon is when a refusal that needs no waiting must be there.
const soon = 4 * time.Second

// presses are cases about the pointer (ACT-1, ACT-2).
var presses = []aCase{
	{"B011 a late cover in a component", map[string]string{"/": logPart + `<h1>Paper</h1><button onclick="say('opened')">Continue</button><div id=host></div><script>
setTimeout(() => { const r = host.attachShadow({mode: 'open'}); r.innerHTML = '<div style="position:fixed;inset:0;z-index:99;background:#0008"><p>We use cookies <button>Agree</button> <button>Refuse</button>';
for (const b of r.querySelectorAll('button')) b.onclick = () => { say(b.textContent + 'd'); r.innerHTML = ''; } }, 600)</script>`}, func(s *scene) {
		ref := s.ref(`"Continue"`)
		s.script(s.T, `new Promise(d => { const look = () => document.elementFromPoint(9, 9)?.id === 'host' ? d(1) : requestAnimationFrame(look); look() })`)
		if see := s.see(s.T); !strings.Contains(see, `button "Agree"`) || !strings.Contains(see, `button "Refuse"`) {
			s.Errorf("the cover's buttons are not in\n%s", see)
		}
		s.refused(reins.Click{Ref: ref}, reins.CodeNotActionable, "cookies", soon)
		s.says("-")
		s.press("Agree")
		s.says("Agreed")
		s.act(s.T, reins.Click{Ref: ref})
		s.says("opened")
	}},
	{"B024 a veil over the page", map[string]string{"/": logPart + `<button onclick="say('kept')">Keep</button><div id=cover style="position:fixed;inset:0;background:#0004" onclick="if(event.target===cover)say('FAIL')">
<button style="position:absolute;right:9px;top:9px" onclick="event.stopPropagation();cover.remove();say('gone')">Dismiss</button></div>`}, func(s *scene) {
		s.refused(reins.Click{Ref: s.ref(`"Keep"`)}, reins.CodeNotActionable, "cover", soon)
		s.says("-")
		s.press("Dismiss")
		s.says("gone")
		s.press("Keep")
		s.says("kept")
	}},
	{"B026 covered by its own", map[string]string{"/": logPart + `<style>label{position:relative;display:inline-block;padding:4px 30px}label i{position:absolute;inset:0;background:#eef8}.s{position:relative}.s::before{content:"";position:absolute;inset:-2px}</style>
<label><input type=radio name=r value=a onchange="say('chose a')"><i></i>First way</label><label><input type=radio name=r value=b onchange="say('chose b')"><i></i>Second way</label><button class=s onclick="say('deep')"><b><i>Inner</i> word</b></button>`}, func(s *scene) {
		for _, c := range [][2]string{{"First way", "chose a"}, {"Second way", "chose b"}, {"Inner word", "deep"}} {
			s.press(c[0])
			s.says(c[1])
		}
	}},
	{"B027 restyled boxes", map[string]string{"/": logPart + `<style>.c{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%)}.o{position:absolute;opacity:0}label{border:1px solid;padding:3px;margin:4px}</style>
<input class=c type=checkbox id=n><label for=n>Letters</label><input class=o type=radio name=q id=x><label for=x>Slow</label><input class=o type=radio name=q id=y><label for=y>Dear</label><label><input class=c type=checkbox id=z>Terms</label>
<script>let n=0;addEventListener('change',e=>say(++n+' '+e.target.id+e.target.checked))</script>`}, func(s *scene) {
		for i, c := range [][2]string{{"Letters", "1 ntrue"}, {"Dear", "2 ytrue"}, {"Terms", "3 ztrue"}} {
			s.set(c[0], reins.CheckedValue(true))
			s.says(c[1])
			if got := strings.Count(s.see(s.T), "[checked]"); got != i+1 {
				s.Errorf("%d boxes are shown as checked after %s, want %d", got, c[0], i+1)
			}
		}
		s.press("Terms")
		s.says("4 zfalse")
	}},
	{"B028 out of view", map[string]string{"/": logPart + `<div style="width:250px;overflow:auto;white-space:nowrap"><span style="display:inline-block;width:1500px">w</span><button data-n=right>Right</button></div><div style="height:3000px"></div><button data-n=low>Low</button>
<div style="height:700px"></div><div style="height:90px;overflow:auto"><div style="height:600px"></div><button data-n=inner>Inner</button><div style="height:300px"></div></div><script>addEventListener('click',e=>e.target.dataset.n&&say(e.target.dataset.n))</script>`}, func(s *scene) {
		for _, c := range [][2]string{{"Right", "right"}, {"Low", "low"}, {"Inner", "inner"}} {
			s.press(c[0])
			s.says(c[1])
		}
	}},
	{"B029 sticky head and foot", map[string]string{"/": logPart + `<style>#b{height:160px;overflow:auto;width:300px}#b>*{position:relative}.h,.f{position:sticky!important;background:#9c9;height:40px;z-index:2}.h{top:0}.f{bottom:0}p{height:34px;margin:0}</style>
<div id=b><div class=h onclick="say('FAIL')">Head</div><div id=r></div><div class=f onclick="say('FAIL')">Foot</div></div><script>for(let i=1;i<=40;i++){const p=document.createElement('p');p.innerHTML='<button>Row '+i+'</button>';p.firstChild.onclick=()=>say('row '+i);r.append(p)}b.scrollTop=550</script>`}, func(s *scene) {
		for _, n := range []int{2, 19, 39, 40, 1} {
			s.press(fmt.Sprint("Row ", n))
			s.says(fmt.Sprint("row ", n))
		}
	}},
	{"B030 pulses for ever", map[string]string{"/": logPart + `<style>@keyframes p{50%{transform:scale(1.15) translateX(8px)}}button{animation:p .5s infinite;padding:12px}</style><button onclick="say('sent')">Send word</button>`}, func(s *scene) {
		began := time.Now()
		_, err := s.try(reins.Click{Ref: s.ref(`"Send word"`)})
		if err == nil {
			s.says("sent")
		} else if !strings.Contains(err.Error(), "moving") {
			s.Errorf("it is refused with %v", err)
		}
		if took := time.Since(began); took > 8*time.Second {
			s.Errorf("it took %s", took)
		}
	}},
	{"B032 not to be pressed", map[string]string{"/": logPart + `<button disabled>A</button><fieldset disabled><button>B</button></fieldset><button aria-disabled=true>C</button><button style="pointer-events:none">D</button><div id=w><button id=e>E</button></div><button id=f>F</button>
<label>Fixed <input readonly value=x oninput="say('FAIL')"></label><button disabled id=s>Soon</button><script>const a=[];for(const b of document.querySelectorAll('button'))b.addEventListener('click',()=>{a.push(b.textContent);say('fired '+a)});setTimeout(()=>s.disabled=false,800)</script>`}, func(s *scene) {
		see := s.see(s.T)
		brief := reins.Duration(300 * time.Millisecond)
		w := reins.Waits{Actionable: &brief}
		s.act(s.T, reins.Click{Ref: refTo(s.T, see, `"Soon"`)})
		s.says("fired Soon")
		s.script(s.T, `w.inert = true, f.style.display = 'none', 1`)
		for _, c := range [][2]string{{"A", "disabled"}, {"B", "disabled"}, {"C", "disabled"}, {"D", "pointer"}, {"E", "inert"}, {"F", "not shown"}} {
			s.refused(reins.Click{Ref: refTo(s.T, see, quoted(c[0])), Waits: w}, reins.CodeNotActionable, c[1], soon)
		}
		s.refused(reins.Fill{Ref: refTo(s.T, see, `"Fixed"`), Value: textOf("y"), Waits: w}, reins.CodeNotActionable, "read-only", soon)
		s.says("fired Soon")
	}},
	{"B033 what is not there", map[string]string{"/": logPart + `<button onclick="say('FAIL')">One</button><script>addEventListener('keydown',()=>say('FAIL key'))</script>`}, func(s *scene) {
		first := s.tabNow().id
		ref := s.ref(`"One"`)
		other := s.act(s.T, reins.OpenTab{URL: s.site + "/"}).Result.Tab.ID
		for _, c := range []struct {
			tab  reins.TabID
			ref  reins.Ref
			code reins.Code
		}{{"", "e99999", reins.CodeInvalidInput}, {"", "f1e99999", reins.CodeStaleRef}, {other, ref, reins.CodeStaleRef}} {
			s.refused(reins.Click{Tab: c.tab, Ref: c.ref}, c.code, "snapshot", soon)
			s.refused(reins.Fill{Tab: c.tab, Ref: c.ref, Value: textOf("x")}, c.code, "snapshot", soon)
			s.refused(reins.Press{Tab: c.tab, Ref: c.ref, Key: "a"}, c.code, "snapshot", soon)
		}
		s.says("-")
		s.act(s.T, reins.CloseTab{Tab: other})
		s.act(s.T, reins.SelectTab{Tab: first})
		s.says("-")
	}},
	{"a list clipped by its widget", map[string]string{"/": logPart + `<style>.w select{position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0 0 0 0);border:0}</style><span class=w style="position:relative"><select aria-label=Town onchange="say(this.value)"><option>Ulm<option>Bern</select><span style="display:inline-block;width:90px;border:1px solid" aria-hidden=true>Ulm</span></span>`}, func(s *scene) {
		s.refused(reins.Click{Ref: s.ref(`combobox "Town"`)}, reins.CodeNotActionable, "fill it", soon)
		began := time.Now()
		s.set("Town", textOf("Bern"))
		s.says("Bern")
		if took := time.Since(began); took > soon {
			s.Errorf("it took %s", took)
		}
	}},
}

// TestPressCases walks through them.
func TestPressCases(t *testing.T) { walkThrough(t, presses) }
