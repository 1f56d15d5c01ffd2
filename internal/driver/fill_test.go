package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

func textOf(s string) reins.Value { return reins.TextValue(s) }

// fills are controls, what they are set to, and what the page then says
// (ACT-3).
var fills = []struct {
	name, html, find string
	value            reins.Value
	submit           bool
	want             string // of the page; "" is not looked at
	holds            string // reported as the value
	code             reins.Code
	says             string
}{
	{name: "replaces", html: `<input aria-label=F value=old oninput="say(this.value+event.isTrusted)">`, value: textOf("new"), want: "newtrue", holds: "new"},
	{name: "empties", html: `<input aria-label=F value=old oninput="say('['+this.value+']')">`, value: textOf(""), want: "[]"},
	{name: "scripts", html: `<input aria-label=F oninput="say(this.value)">`, value: textOf("Привет 日本語 مرحبا 👨‍👩‍👧"), want: "Привет 日本語 مرحبا 👨‍👩‍👧"},
	{name: "area", html: `<textarea aria-label=F oninput="say(JSON.stringify(this.value))">x</textarea>`, value: textOf("one\ntwo"), want: `"one\ntwo"`, holds: "one\ntwo"},
	{name: "email", html: `<input type=email aria-label=F oninput="say(this.value)">`, value: textOf("a@b.test"), want: "a@b.test"},
	{name: "password", html: `<input type=password aria-label=F oninput="say(this.value.length)">`, value: textOf("secret"), want: "6", holds: "••••••"},
	{name: "number", html: `<input type=number step=.5 aria-label=F oninput="say(this.value)">`, value: textOf("-2.5"), want: "-2.5"},
	{name: "bad number", html: `<input type=number aria-label=F max=9 oninput="say('FAIL')">`, value: textOf("12"), code: reins.CodeInvalidInput, says: `up to "9"`},
	{name: "no number", html: `<input type=number aria-label=F oninput="say('FAIL')">`, value: textOf("many"), code: reins.CodeInvalidInput, says: "a number"},
	{name: "no whole number", html: `<input type=number aria-label=F oninput="say('FAIL')">`, value: textOf("1.5"), code: reins.CodeInvalidInput, says: "a whole number"},
	{name: "too long", html: `<input maxlength=3 aria-label=F oninput="say('FAIL')">`, value: textOf("four"), code: reins.CodeInvalidInput, says: "at most 3"},
	{name: "controlled", html: `<input id=i aria-label=F><button disabled id=b>Save</button><script>let state='';i.addEventListener('input',e=>{state=e.target.value;queueMicrotask(()=>{i.value=state;b.disabled=!state;say('state '+state)})})</script>`, find: `"F"`, value: textOf("77"), want: "state 77"},
	{name: "shaped", html: `<input aria-label=F oninput="this.value=this.value.replace(/\D/g,'').replace(/(\d{4})(?=\d)/g,'$1 ');say(this.value)">`, value: textOf("40001234"), want: "4000 1234", holds: "4000 1234"},
	{name: "keys only", html: `<input aria-label=F onbeforeinput="if(event.data&&event.data.length>1)event.preventDefault()" oninput="say(this.value)">`, value: textOf("abc"), want: "abc"},
	{name: "refuses", html: `<input aria-label=F value=kept oninput="this.value='kept'">`, value: textOf("other"), code: reins.CodeToolFailed, says: `holds "kept"`},
	{name: "undone later", html: `<input aria-label=F oninput="setTimeout(()=>{this.value=''})">`, value: textOf("x"), code: reins.CodeToolFailed, says: "did not take"},
	{name: "focus thief", html: `<input aria-label=F oninput="say(this.value+'|'+o.value)"><input id=o aria-label=O><script>let n=0;document.querySelector('input').addEventListener('focus',()=>{if(n++<1)setTimeout(()=>o.focus())})</script>`, find: `"F"`, value: textOf("mine"), want: "mine|"},
	{name: "read-only", html: `<input readonly aria-label=F value=x>`, value: textOf("y"), code: reins.CodeNotActionable, says: "read-only"},
	{name: "submit", html: `<form onsubmit="say('sent '+f.value);return false"><input id=f aria-label=F></form>`, value: textOf("q"), submit: true, want: "sent q"},
	{name: "editor", html: `<div contenteditable role=textbox aria-label=F oninput="say(this.innerText)">old <b>text</b></div>`, value: textOf("new text"), want: "new text", holds: "new text"},
	{name: "editor of lines", html: `<div contenteditable role=textbox aria-label=F oninput="say(this.innerText.split(/\n+/).join('/'))">old</div>`, value: textOf("one\ntwo"), want: "one/two"},
	{name: "editor that undoes", html: `<div id=e contenteditable role=textbox aria-label=F>kept</div><script>new MutationObserver(()=>{if(e.textContent!=='kept')e.textContent='kept'}).observe(e,{subtree:true,childList:true,characterData:true})</script>`, value: textOf("x"), code: reins.CodeToolFailed, says: "kept"},
	{name: "select by label", html: `<select aria-label=F onchange="say(this.value)"><option value=1>One<option value=2>Two</select>`, find: "combobox", value: textOf("Two"), want: "2", holds: "Two"},
	{name: "select by value", html: `<select aria-label=F onchange="say(this.value)"><option value=1>One<option value=2>Two</select>`, find: "combobox", value: textOf("2"), want: "2"},
	{name: "select empty value", html: `<select aria-label=F onchange="say('['+this.value+']')"><option value=x>One<option value="">None</select>`, find: "combobox", value: textOf("None"), want: "[]"},
	{name: "select missing", html: `<select aria-label=F onchange="say('FAIL')"><option>One<option>Two</select>`, find: "combobox", value: textOf("Three"), code: reins.CodeInvalidInput, says: `"One", "Two"`},
	{name: "select none", html: `<select multiple aria-label=F onchange="say('now '+this.selectedOptions.length)"><option selected>a<option selected>b</select>`, find: "listbox", value: reins.Value{Options: []string{}}, want: "now 0"},
	{name: "select several", html: `<select multiple aria-label=F onchange="say([...this.selectedOptions].map(o=>o.value))"><option selected>a<option>b<option>c</select>`, find: "listbox", value: reins.Value{Options: []string{"b", "c"}}, want: "b,c"},
	{name: "check", html: `<input type=checkbox aria-label=F onchange="say(this.checked+''+event.isTrusted)">`, value: reins.CheckedValue(true), want: "truetrue", holds: "true"},
	{name: "check twice", html: `<input type=checkbox checked aria-label=F onchange="say('FAIL')">`, value: reins.CheckedValue(true), want: "-"},
	{name: "uncheck", html: `<input type=checkbox checked aria-label=F onchange="say(this.checked)">`, value: reins.CheckedValue(false), want: "false"},
	{name: "mixed", html: `<input type=checkbox aria-label=F id=c onchange="say(this.checked)"><script>c.indeterminate=true</script>`, value: reins.CheckedValue(true), want: "true"},
	{name: "switch", html: `<div role=switch tabindex=0 aria-checked=false aria-label=F style="width:40px;height:20px" onclick="requestAnimationFrame(()=>{this.setAttribute('aria-checked','true');say('on')})"></div>`, value: reins.CheckedValue(true), want: "on"},
	{name: "dead switch", html: `<div role=switch tabindex=0 aria-checked=false aria-label=F style="width:40px;height:20px"></div>`, value: reins.CheckedValue(true), code: reins.CodeToolFailed, says: "did not take"},
	{name: "radio", html: `<input type=radio name=r aria-label=F onchange="say('r')">`, value: reins.CheckedValue(true), want: "r"},
	{name: "radio off", html: `<input type=radio checked name=r aria-label=F>`, value: reins.CheckedValue(false), code: reins.CodeInvalidInput, says: "choosing another"},
	{name: "text for a check box", html: `<input type=checkbox aria-label=F>`, value: textOf("maybe"), code: reins.CodeInvalidInput, says: "true or false"},
	{name: "date", html: `<input type=date aria-label=F onchange="say(this.value)">`, value: textOf("2031-02-28"), want: "2031-02-28"},
	{name: "bad date", html: `<input type=date value=2030-01-01 aria-label=F onchange="say('FAIL')" oninput="say('FAIL')">`, value: textOf("2031-02-30"), code: reins.CodeInvalidInput, says: "such as 2031-02-28"},
	{name: "time", html: `<input type=time aria-label=F onchange="say(this.value)">`, value: textOf("23:45"), want: "23:45"},
	{name: "month", html: `<input type=month aria-label=F onchange="say(this.value)">`, value: textOf("2031-11"), want: "2031-11"},
	{name: "week", html: `<input type=week aria-label=F onchange="say(this.value)">`, value: textOf("2031-W09"), want: "2031-W09"},
	{name: "date and time", html: `<input type=datetime-local aria-label=F onchange="say(this.value)">`, value: textOf("2031-02-28T07:05"), want: "2031-02-28T07:05"},
	{name: "colour", html: `<input type=color aria-label=F onchange="say(this.value)">`, value: textOf("#1AF"), want: "#11aaff"},
	{name: "no colour", html: `<input type=color aria-label=F onchange="say('FAIL')">`, value: textOf("reddish"), code: reins.CodeInvalidInput, says: "#12ab9f"},
	{name: "range", html: `<input type=range max=50 aria-label=F onchange="say(this.value)">`, value: textOf("35"), want: "35"},
	{name: "beyond range", html: `<input type=range max=50 aria-label=F onchange="say('FAIL')">`, value: textOf("60"), code: reins.CodeInvalidInput, says: `up to "50"`},
	{name: "slider of divs", html: `<div role=slider tabindex=0 aria-label=F aria-valuenow=3 style="width:50px;height:9px" onkeydown="let v=+this.getAttribute('aria-valuenow')+(event.key=='ArrowRight'?1:event.key=='ArrowLeft'?-1:0);this.setAttribute('aria-valuenow',v);say(v)"></div>`, value: textOf("7"), want: "7"},
	{name: "combo of divs", html: `<div role=combobox tabindex=0 aria-label=F aria-controls=lb aria-expanded=false onclick="setTimeout(()=>lb.hidden=false,30)">Pick</div><div role=listbox id=lb hidden><div role=option onclick="say('one')">One</div><div role=option onclick="say('two');lb.hidden=true">Two</div></div>`, value: textOf("Two"), want: "two"},
	{name: "list of divs", html: `<div role=listbox aria-label=F tabindex=0><div role=option onclick="say('a')">A</div><div role=option onclick="say('b')">B</div></div>`, find: `listbox "F"`, value: textOf("B"), want: "b"},
	{name: "label", html: `<label style="cursor:pointer"><input type=checkbox style="display:none" onchange="say('by label')">F</label>`, value: reins.CheckedValue(true), want: "by label"},
	{name: "wrapped combo", html: `<div role=combobox aria-label=F><input oninput="say(this.value)"></div>`, value: textOf("x"), want: "x"},
	{name: "component", html: `<x-field tabindex=0 aria-label=F></x-field><script>document.querySelector('x-field').attachShadow({mode:'open'}).innerHTML='<input>';document.querySelector('x-field').shadowRoot.firstChild.oninput=e=>say(e.target.value)</script>`, value: textOf("x"), want: "x"},
	{name: "a whole region", html: `<main aria-label=F><input oninput="say('FAIL')"></main>`, value: textOf("x"), code: reins.CodeInvalidInput, says: "not a control"},
	{name: "option by group", html: `<select aria-label=F onchange="say(this.value)"><option>-<optgroup label=North><option value=n>Harbour</optgroup><optgroup label=South><option value=s>Harbour</optgroup></select>`, find: `combobox "F"`, value: textOf("South Harbour"), want: "s"},
	{name: "unclear option", html: `<select aria-label=F onchange="say('FAIL')"><option>-<optgroup label=North><option value=n>Harbour</optgroup><optgroup label=South><option value=s>Harbour</optgroup></select>`, find: `combobox "F"`, value: textOf("Harbour"), code: reins.CodeInvalidInput, says: `"North Harbour", "South Harbour"`},
	{name: "option listed twice", html: `<select aria-label=F onchange="say(this.value)"><option>-<optgroup label=Often><option value=no>Norway</optgroup><optgroup label=All><option value=no>Norway</optgroup></select>`, find: `combobox "F"`, value: textOf("Norway"), want: "no"},
	{name: "text for files", html: `<input type=file aria-label=F>`, value: textOf("/etc/passwd"), code: reins.CodeInvalidInput, says: "artifacts"},
	{name: "unknown artifact", html: `<input type=file aria-label=F>`, value: reins.Value{Artifacts: []string{"nope"}}, code: reins.CodeInvalidInput, says: "not available"},
	{name: "not a control", html: `<button>F</button>`, value: textOf("x"), code: reins.CodeInvalidInput, says: "not a control"},
	{name: "covered", html: `<input aria-label=F><div style="position:fixed;inset:0">Veil</div>`, value: textOf("x"), code: reins.CodeNotActionable, says: "Veil"},
}

func TestFill(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		pages := map[string]string{}
		for i, c := range fills {
			pages[fmt.Sprint("/", i)] = "<!doctype html><title>t</title>" + logPart + "<br>" + c.html
		}
		s := site(t, pages)
		for i, c := range fills {
			t.Run(c.name, func(t *testing.T) {
				b.open(t, fmt.Sprint(s.URL, "/", i))
				if c.find == "" {
					c.find = `"F"`
				}
				wait := reins.Duration(200 * time.Millisecond)
				a := reins.Fill{Ref: refTo(t, b.see(t), c.find), Value: c.value, Submit: c.submit}
				if c.code != "" {
					a.Actionable = &wait
				}
				r, err := b.try(a)
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
				if c.want != "" {
					b.wantResult(t, c.want)
				}
				if got := r.Result.Changes.Value; c.holds != "" && got != c.holds {
					t.Errorf("reported value %q, want %q", got, c.holds)
				}
			})
		}
	})
}

// TestFillFiles gives a file control files, shown or hidden behind a button
// (ACT-3).
func TestFillFiles(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	path := filepath.Join(t.TempDir(), "report.txt")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<input type=file id=f style="display:none"><button onclick="f.click()">Upload</button><script>f.onchange=async()=>say(f.files[0].name+' '+await f.files[0].text())</script>`})
	b.open(t, s.URL)
	c := b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Upload")}).Result.Changes
	if c.FileChooser == nil {
		t.Fatal("no file chooser")
	}
	ctx := t.Context()
	r, err := b.do(ctx, Command{Action: reins.Fill{Ref: c.FileChooser.Ref, Value: reins.Value{Artifacts: []string{"a1"}}}, Lease: "lease", Files: map[string]string{"a1": path}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Result.Changes.Value != "report.txt" {
		t.Errorf("value %q", r.Result.Changes.Value)
	}
	b.wantResult(t, "report.txt text")
	if now := b.see(t); strings.Contains(now, "File chooser") {
		t.Errorf("the chooser is still open in\n%s", now)
	}
}

// TestFillNamesWhatIsInside: who fills a cell that is being edited is told of the
// control in it; a header that a table can be sorted by has a ref (ACT-3, SNAP-3).
func TestFillNamesWhatIsInside(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><table><tr><th aria-sort="none">Age<th>Plain<tr><td tabindex="0"><input aria-label="Edit"><td tabindex="0">41</table>`})
	b.open(t, s.URL)
	seen := b.see(t)
	if !strings.Contains(seen, `columnheader "Age" [ref=`) || strings.Contains(seen, `columnheader "Plain" [ref=`) {
		t.Errorf("the headers:\n%s", seen)
	}
	_, err := b.try(reins.Fill{Ref: refTo(t, seen, "cell [ref="), Value: textOf("x")})
	inside := string(refTo(t, seen, `textbox "Edit"`))
	if reins.CodeOf(err) != reins.CodeInvalidInput || !strings.Contains(err.Error(), `textbox "Edit" (ref `+inside+`)`) {
		t.Errorf("filling the cell around a text box: %v", err)
	}
}
