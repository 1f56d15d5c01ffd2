package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// person is somebody with a pointer, fingers and a keyboard before a browser.
type person struct {
	*testBrowser
	testing.TB
}

func (p person) tab() reins.TabID { return p.tabNow().id }

func (p person) does(a reins.Action) *Reply {
	p.Helper()
	return p.testBrowser.act(p.TB, a)
}

func (p person) point(kind string, x, y float64, buttons int) {
	p.Helper()
	p.does(reins.Pointer{Tab: p.tab(), Kind: kind, X: x, Y: y, Buttons: buttons})
}

func (p person) press(x, y float64) {
	p.Helper()
	p.point("move", x, y, 0)
	p.point("down", x, y, 1)
	p.point("up", x, y, 0)
}

// drags moves with the button held, in steps as a hand does.
func (p person) drags(fromX, fromY, toX, toY float64) {
	p.Helper()
	p.point("move", fromX, fromY, 0)
	p.point("down", fromX, fromY, 1)
	for i := 1.0; i <= 8; i++ {
		p.point("move", fromX+(toX-fromX)*i/8, fromY+(toY-fromY)*i/8, 1)
	}
	p.point("up", toX, toY, 0)
}

func (p person) key(k reins.Key) {
	p.Helper()
	k.Tab, k.Kind = p.tab(), "down"
	p.does(k)
	k.Kind, k.Text, k.Repeat = "up", "", false
	p.does(k)
}

// types presses keys that each type one character, by code.
func (p person) types(text string, codes ...string) {
	p.Helper()
	for i, r := range []rune(text) {
		p.key(reins.Key{Key: string(r), Code: codes[i], Text: string(r)})
	}
}

// until waits until an expression of the page has a value.
func (p person) until(expression, want string) {
	p.Helper()
	got := ""
	late := time.Now().Add(20 * time.Second)
	for got = p.script(p.TB, expression); got != want && time.Now().Before(late); got = p.script(p.TB, expression) {
		p.script(p.TB, "new Promise(d => requestAnimationFrame(() => d(0)))")
	}
	if got != want {
		p.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// says waits for what the page's result says.
func (p person) says(want string) {
	p.Helper()
	p.until("document.getElementById('result').textContent", want)
}

// center is where an element is.
func (p person) center(css string) (x, y float64) {
	p.Helper()
	s := p.script(p.TB, fmt.Sprintf("(r => r.x + r.width / 2 + ' ' + (r.y + r.height / 2))(document.querySelector(%q).getBoundingClientRect())", css))
	if _, err := fmt.Sscan(s, &x, &y); err != nil {
		p.Fatal(err)
	}
	return x, y
}

// handsOn gives a test a person before a page, on both engines.
func handsOn(t *testing.T, html string, test func(person)) {
	s := site(t, map[string]string{"/": "<!doctype html><html lang=en><meta charset=utf-8><title>Raw</title>" + html,
		"/other": "<!doctype html><title>Other</title><p>Other"})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		p := person{newBrowser(t, engine), t}
		p.open(t, s.URL)
		test(p)
	})
}

// seenKeys notes the keys that a page sees.
const seenKeys = `<input id=i size=40><textarea id=a></textarea><script>
const seen = []; for (const type of ['keydown', 'keyup', 'keypress', 'compositionstart', 'compositionupdate', 'compositionend', 'beforeinput'])
addEventListener(type, e => { if (type.startsWith('key')) seen.push([type, e.key, e.code, e.keyCode, e.location, e.repeat, (e.ctrlKey ? 'C' : '') + (e.altKey ? 'A' : '') + (e.shiftKey ? 'S' : '') + (e.metaKey ? 'M' : '')].join(' ')); else seen.push([type, e.data, e.inputType || ''].join(' ')) ; document.body.dataset.seen = seen.join('|') }, true);
i.focus()</script>`

// INP-3, B085: what a key types is what its layout makes of it; pages know it by
// its character and its place.
func TestRawKeys(t *testing.T) {
	handsOn(t, seenKeys, func(p person) {
		for _, c := range []struct {
			layout, want string
			keys         []reins.Key
		}{
			{"German", "zyüß", []reins.Key{{Key: "z", Code: "KeyY", Text: "z"}, {Key: "y", Code: "KeyZ", Text: "y"}, {Key: "ü", Code: "BracketLeft", Text: "ü"}, {Key: "ß", Code: "Minus", Text: "ß"}}},
			{"AltGr", "@€", []reins.Key{{Key: "@", Code: "KeyQ", Text: "@", Modifiers: []string{"Control", "Alt"}}, {Key: "€", Code: "KeyE", Text: "€"}}},
			{"Option", "@", []reins.Key{{Key: "@", Code: "KeyL", Text: "@", Modifiers: []string{"Alt"}}}},
			{"French", "aq1é&", []reins.Key{{Key: "a", Code: "KeyQ", Text: "a"}, {Key: "q", Code: "KeyA", Text: "q"}, {Key: "1", Code: "Digit1", Text: "1", Modifiers: []string{"Shift"}}, {Key: "é", Code: "Digit2", Text: "é"}, {Key: "&", Code: "Digit1", Text: "&"}}},
			{"dead key", "ê", []reins.Key{{Key: "Dead", Code: "BracketLeft"}, {Key: "ê", Code: "KeyE", Text: "ê"}}},
			{"Greek", "αΩ", []reins.Key{{Key: "α", Code: "KeyA", Text: "α"}, {Key: "Ω", Code: "KeyV", Text: "Ω", Modifiers: []string{"Shift"}}}},
			{"Slovak", "*č", []reins.Key{{Key: "*", Code: "Digit8", Text: "*", Modifiers: []string{"Shift"}}, {Key: "č", Code: "Digit4", Text: "č"}}},
			{"number pad", "1+", []reins.Key{{Key: "1", Code: "Numpad1", Text: "1", Location: 3}, {Key: "+", Code: "NumpadAdd", Text: "+", Location: 3}}},
			{"more than a key carries", "👨‍🌾", []reins.Key{{Key: "👨‍🌾", Text: "👨‍🌾"}}},
			{"a key held down", "aaa", []reins.Key{{Key: "a", Code: "KeyA", Text: "a"}, {Key: "a", Code: "KeyA", Text: "a", Repeat: true}, {Key: "a", Code: "KeyA", Text: "a", Repeat: true}}},
			{"nothing typed", "", []reins.Key{{Key: "Shift", Code: "ShiftLeft", Location: 1}, {Key: "F5", Code: "F5"}, {Key: "Process", Code: "KeyA"}, {Key: "c", Code: "KeyC", Text: "c", Modifiers: []string{"Control"}}}},
		} {
			p.script(p.TB, "document.getElementById('i').value = ''")
			for _, k := range c.keys {
				p.key(k)
			}
			p.until("document.getElementById('i').value", c.want)
		}
		seen := p.script(p.TB, "document.body.dataset.seen")
		for _, want := range []string{
			"keydown z KeyY 90 0 false |", "keydown y KeyZ 89 0 false |", "keydown @ KeyQ 81 0 false |", "keydown @ KeyL 76 0 false A|keypress @ KeyL 64 0 false |",
			"keydown & Digit1 49 0 false |", "keydown α KeyA 65 0 false |", "keydown 1 Numpad1 97 3 false |", "keydown + NumpadAdd 107 3 false |",
			"keydown a KeyA 65 0 true |", "keydown Shift ShiftLeft 16 1 false S|keyup Shift ShiftLeft 16 1 false |", "keydown F5 F5 116 0 false |", "keydown Process KeyA 229 0 false |",
			"keydown Dead BracketLeft 219 0 false |", "keydown c KeyC 67 0 false C|keyup",
		} {
			if !strings.Contains(seen, want) {
				p.Errorf("the page saw %s\nwithout %s", seen, want)
			}
		}
	})
}

// INP-3, B041: shortcuts work on every layout, and editing keys edit.
func TestRawShortcuts(t *testing.T) {
	handsOn(t, seenKeys, func(p person) {
		value := "document.activeElement.value"
		p.types("abc", "KeyA", "KeyB", "KeyC")
		p.key(reins.Key{Key: "a", Code: "KeyQ", Modifiers: []string{"Control"}}) // French
		p.types("x", "KeyX")
		p.until(value, "x")
		p.types("yz", "KeyZ", "KeyY")
		p.key(reins.Key{Key: "α", Code: "KeyA", Modifiers: []string{"Control"}}) // Greek
		p.key(reins.Key{Key: "χ", Code: "KeyX", Modifiers: []string{"Control"}})
		p.until(value, "")
		p.key(reins.Key{Key: "v", Code: "KeyV", Modifiers: []string{"Control"}})
		p.until(value, "xyz")
		p.key(reins.Key{Key: "z", Code: "KeyZ", Modifiers: []string{"Control"}})
		p.until(value, "")
		p.key(reins.Key{Key: "Tab", Code: "Tab", Text: "\t"})
		p.types("one", "KeyO", "KeyN", "KeyE")
		p.key(reins.Key{Key: "Enter", Code: "Enter"})
		p.types("two", "KeyT", "KeyW", "KeyO")
		p.key(reins.Key{Key: "ArrowLeft", Code: "ArrowLeft"})
		p.key(reins.Key{Key: "Backspace", Code: "Backspace"})
		p.key(reins.Key{Key: "ArrowLeft", Code: "ArrowLeft", Modifiers: []string{"Shift"}})
		p.key(reins.Key{Key: "Delete", Code: "Delete"})
		p.until(value, "one\no")
		p.until("document.activeElement.id", "a")
	})
}

// INP-3: an input method composes, changes its mind and commits.
func TestRawComposition(t *testing.T) {
	handsOn(t, seenKeys, func(p person) {
		tab, value := p.tab(), "document.getElementById('i').value"
		p.types("a", "KeyA")
		for _, step := range []string{"に", "にほ", "にほん"} {
			p.key(reins.Key{Key: "Process", Code: "KeyN"})
			n := len([]rune(step))
			p.does(reins.InsertText{Tab: tab, Text: step, Compose: true, Start: n, End: n})
			p.until(value, "a"+step)
		}
		p.does(reins.InsertText{Tab: tab, Text: "日本", Compose: true, Start: 0, End: 2})
		p.does(reins.InsertText{Tab: tab, Text: "日本"})
		p.until(value, "a日本")
		p.does(reins.InsertText{Tab: tab, Text: "かな", Compose: true, Start: 2, End: 2})
		p.does(reins.InsertText{Tab: tab, Compose: true})
		p.until(value, "a日本")
		p.does(reins.InsertText{Tab: tab, Text: "測試 \U0001F9ED"})
		p.until(value, "a日本測試 \U0001F9ED")
		seen := p.script(p.TB, "document.body.dataset.seen")
		for _, want := range []string{"compositionstart", "compositionupdate にほん", "compositionend 日本", "keydown Process KeyN 229"} {
			if !strings.Contains(seen, want) {
				p.Errorf("the page saw %s\nwithout %s", seen, want)
			}
		}
		if n := strings.Count(seen, "compositionstart"); n != 2 {
			p.Errorf("%d compositions began, want 2: %s", n, seen)
		}
	})
}

// B093: drags by hand: a slider, a text selection, a native drag and drop, a drag
// that leaves the view and comes back.
func TestRawDrag(t *testing.T) {
	handsOn(t, `<style>body{margin:0}#bar{width:300px;height:24px;background:#ddd;position:relative;touch-action:none}#k{position:absolute;width:24px;height:24px;background:#36c}
.z{display:inline-block;width:120px;height:60px;border:1px solid;margin:8px;vertical-align:top}</style><div id=bar><div id=k></div></div>
<div class=z id=from><div id=item draggable=true style="background:#fc9">Parcel</div></div><div class=z id=to>To</div><p><span id=txt>Select exactly these four words please.</span></p><output id=result>-</output><script>
const say = t => { result.textContent = t }; let on = false;
k.onpointerdown = e => { on = true; k.setPointerCapture(e.pointerId) }; k.onpointerup = () => { on = false; say('level ' + bar.dataset.now) };
k.onpointermove = e => { if (!on) return; if (!(e.buttons & 1)) return say('FAIL move without button'); const v = Math.max(0, Math.min(100, Math.round((e.clientX - 12) / 2.76))); bar.dataset.now = v; k.style.left = v * 2.76 + 'px' };
item.ondragstart = e => e.dataTransfer.setData('text/plain', 'parcel'); to.ondragover = e => e.preventDefault();
to.ondrop = e => { e.preventDefault(); to.append(item); say('dropped ' + e.dataTransfer.getData('text/plain')) };
document.addEventListener('selectionchange', () => { const s = String(getSelection()); if (s) say('selected ' + s) });</script>`, func(p person) {
		for _, scale := range []float64{1, 2} {
			if scale != 1 {
				p.sized(1, 1280, 800, scale)
			}
			p.drags(12, 12, 150, 12)
			p.says("level 50")
			p.drags(150, 12, 900, -200) // out of the bar and of the view
			p.says("level 100")
			p.drags(288, 12, 12, 12)
			p.says("level 0")
			itemX, itemY := p.center("#item")
			toX, toY := p.center("#to")
			p.drags(itemX, itemY, toX, toY)
			p.says("dropped parcel")
			p.script(p.TB, "document.getElementById('from').append(document.getElementById('item'))")
			x, y := p.center("#txt")
			p.drags(1, y, x*2+20, y)
			p.says("selected Select exactly these four words please.")
			p.press(600, 600)
		}
	})
}

// sized sets the viewport and waits until the page has it.
func (p person) sized(revision uint64, width, height int, scale float64) {
	p.Helper()
	if _, err := p.view(p.Context(), viewOrder{Viewport: &reins.Viewport{Revision: revision, Width: width, Height: height, Scale: scale}}); err != nil {
		p.Fatal(err)
	}
	p.until("[innerWidth, innerHeight, devicePixelRatio].join()", fmt.Sprint(width, ",", height, ",", scale))
}

// B082: what is pressed is what is under the pointer, at every size and scale, and
// an event for a picture of before is refused (INP-1).
func TestRawPlaces(t *testing.T) {
	handsOn(t, `<style>html,body{margin:0;height:100%}#g{display:grid;grid-template-columns:repeat(24,minmax(0,1fr));grid-template-rows:repeat(14,minmax(0,1fr));height:100vh}#g button{font:9px monospace;padding:0}</style><div id=g></div><output id=result style="position:fixed;left:-99px">-</output><script>
for (let r = 0; r < 14; r++) for (let c = 0; c < 24; c++) { const b = document.createElement('button'); b.textContent = 'r' + r + 'c' + c; g.append(b) }
addEventListener('pointerdown', e => { result.textContent = e.target.textContent })</script>`, func(p person) {
		for i, size := range []struct {
			w, h  int
			scale float64
		}{{1280, 800, 1}, {390, 844, 3}, {1111, 613, 1.5}} {
			revision := uint64(i + 1)
			p.sized(revision, size.w, size.h, size.scale)
			for n := range 20 {
				row, column := n*7%14, n*11%24
				x, y := p.center(fmt.Sprintf("#g :nth-child(%d)", row*24+column+1))
				p.does(reins.Pointer{Tab: p.tab(), Kind: "down", X: x, Y: y, Viewport: revision})
				p.does(reins.Pointer{Tab: p.tab(), Kind: "up", X: x, Y: y, Viewport: revision})
				p.says(fmt.Sprintf("r%dc%d", row, column))
			}
			_, err := p.try(reins.Pointer{Tab: p.tab(), Kind: "down", X: 5, Y: 5, Viewport: revision + 7})
			wantCode(p.TB, err, reins.CodeInvalidState)
			_, err = p.try(reins.Touch{Tab: p.tab(), Kind: "start", Points: []reins.TouchPoint{{X: 5, Y: 5}}, Viewport: revision + 7})
			wantCode(p.TB, err, reins.CodeInvalidState)
			p.says("r7c17")
		}
	})
}

// INP-1: fingers: the page sees them come, move and go, one by one; a tap is a
// click, and a swipe scrolls.
func TestRawTouch(t *testing.T) {
	handsOn(t, `<style>body{margin:0;height:5000px}#b{position:absolute;left:100px;top:100px;width:60px;height:40px}#pad{position:absolute;left:0;top:200px;width:400px;height:200px;background:#eee;touch-action:none}</style><button id=b>B</button><div id=pad></div><output id=result>-</output><script>
const seen = []; for (const type of ['touchstart', 'touchmove', 'touchend', 'touchcancel']) addEventListener(type, e => {
  seen.push(type.slice(5) + ' ' + [...e.touches].map(t => Math.round(t.clientX) + ',' + Math.round(t.clientY)).join(' ')); document.body.dataset.seen = seen.join('|') }, { passive: true });
addEventListener('click', e => { result.textContent = 'click ' + e.target.id + ' ' + Math.round(e.clientX) + ',' + Math.round(e.clientY) + ' ' + e.pointerType })</script>`, func(p person) {
		touch := func(kind string, points ...reins.TouchPoint) {
			p.Helper()
			p.does(reins.Touch{Tab: p.tab(), Kind: kind, Points: points})
		}
		at := func(id int, x, y float64) reins.TouchPoint {
			return reins.TouchPoint{ID: id, X: x, Y: y, Radius: 5, Force: 0.5}
		}
		for i, scale := range []float64{1, 2} {
			p.sized(uint64(i+1), 800, 600, scale)
			p.script(p.TB, "(scrollTo(0, 0), document.getElementById('result').textContent = '-')")
			touch("start", at(0, 120, 110))
			touch("end")
			p.says("click b 120,110 touch")
			touch("start", at(0, 50, 250))
			touch("start", at(0, 50, 250), at(1, 150, 250))
			touch("move", at(0, 60, 260), at(1, 160, 260))
			p.until("document.body.dataset.seen.endsWith('move 60,260 160,260')", "true") // moves come with pictures, the last before the next
			touch("end", at(1, 160, 260))
			touch("move", at(1, 170, 270))
			touch("end")
			touch("start", at(3, 80, 280))
			touch("cancel")
			p.until("document.body.dataset.seen.endsWith('start 80,280|cancel ')", "true")
			seen := p.script(p.TB, "document.body.dataset.seen")
			for _, want := range []string{"start 120,110|end |", "start 50,250|start 50,250 150,250|move ", "60,260 160,260|end 160,260|move 170,270|end |start 80,280|cancel "} {
				if !strings.Contains(seen, want) {
					p.Errorf("at %g the page saw %s\nwithout %s", scale, seen, want)
				}
			}
			p.script(p.TB, "delete document.body.dataset.seen")
		}
		touch("start", at(0, 500, 500))
		for y := 480.0; y >= 200; y -= 20 {
			touch("move", at(0, 500, y))
		}
		touch("end")
		p.until("scrollY > 150 && scrollY < 1500", "true")
	})
}

// INP-1: a wheel turns as far as it says, at every scale.
func TestRawWheel(t *testing.T) {
	handsOn(t, `<body style="margin:0;height:9000px;width:3000px">`, func(p person) {
		for i, scale := range []float64{1, 2} {
			p.sized(uint64(i+1), 800, 600, scale)
			p.script(p.TB, "scrollTo(0, 0)")
			p.does(reins.Pointer{Tab: p.tab(), Kind: "wheel", X: 100, Y: 100, DY: 120})
			p.until("Math.round(scrollY)", "120")
			p.does(reins.Pointer{Tab: p.tab(), Kind: "wheel", X: 100, Y: 100, DX: 30, DY: -40})
			p.until("Math.round(scrollX) + ' ' + Math.round(scrollY)", "30 80")
		}
	})
}

// B084: nothing stays held: what a key's own event says of modifiers is what the
// page believes.
func TestRawHeld(t *testing.T) {
	handsOn(t, `<input id=i autofocus><output id=result>nothing held</output><script>
const down = new Set(); let btn = 0; const show = e => { for (const m of ['Control', 'Shift', 'Alt', 'Meta', 'AltGraph']) if (e.getModifierState && !e.getModifierState(m)) down.delete(m);
  result.textContent = (down.size || btn) ? 'held: ' + [...down].join('+') + (btn ? ' buttons ' + btn : '') : 'nothing held' };
addEventListener('keydown', e => { down.add(e.key); show(e) }, true); addEventListener('keyup', e => { down.delete(e.key); down.delete(e.key.toLowerCase()); show(e) }, true);
for (const t of ['pointerdown', 'pointerup', 'pointermove']) addEventListener(t, e => { btn = e.buttons; show(e) }, true); i.focus()</script>`, func(p person) {
		tab := p.tab()
		for name, code := range map[string]string{"Control": "ControlLeft", "Shift": "ShiftRight", "Alt": "AltLeft", "Meta": "MetaLeft"} {
			p.does(reins.Key{Tab: tab, Kind: "down", Key: name, Code: code, Location: 1, Modifiers: []string{name}})
			p.does(reins.Pointer{Tab: tab, Kind: "down", X: 300, Y: 300, Buttons: 1, Modifiers: []string{name}})
			p.says("held: " + name + " buttons 1")
			p.does(reins.Pointer{Tab: tab, Kind: "up", X: 300, Y: 300})
			p.does(reins.Key{Tab: tab, Kind: "up", Key: name, Code: code, Location: 1})
			p.says("nothing held")
		}
		x, y := p.center("#i")
		p.press(x, y)
		p.types("violet", "KeyV", "KeyI", "KeyO", "KeyL", "KeyE", "KeyT")
		p.until("document.getElementById('i').value", "violet")
		p.says("nothing held")
	})
}

// TAB-3: a tab that a person's press opens is shown, also when the page opens it
// a moment later; one that is to stay in the background is not.
func TestRawOpens(t *testing.T) {
	handsOn(t, `<a id=l href="/other" target=_blank style="display:block;width:200px;height:40px">link</a>
<button id=b onclick="setTimeout(() => window.open('/other'), 100)" style="display:block">later</button>`, func(p person) {
		first := p.tab()
		x, y := p.center("#l")
		p.does(reins.Pointer{Tab: first, Kind: "down", X: x, Y: y, Button: "middle", Buttons: 4})
		p.does(reins.Pointer{Tab: first, Kind: "up", X: x, Y: y, Button: "middle"})
		p.eventually(p.TB, "a tab in the background", func() bool { return len(p.tabs) == 2 && p.selected.id == first })
		for i, css := range []string{"#l", "#b"} {
			x, y := p.center(css)
			p.press(x, y)
			p.eventually(p.TB, css+" shows its tab", func() bool { return len(p.tabs) == 3+i && p.selected.id != first })
			p.does(reins.SelectTab{Tab: first})
		}
	})
}

// INP-4: a page that does not answer holds up nobody who types into it, and what
// it has not handled is bounded.
func TestRawToBusyPage(t *testing.T) {
	handsOn(t, `<input id=i autofocus><script>i.focus(); addEventListener('keydown', e => { if (e.key === 'F2') { const end = Date.now() + 3000; while (Date.now() < end); } })</script>`, func(p person) {
		tab := p.tab()
		p.does(reins.Key{Tab: tab, Kind: "down", Key: "F2", Code: "F2"})
		for range 20 {
			p.does(reins.Pointer{Tab: tab, Kind: "down", X: 300, Y: 300, Buttons: 1})
			p.does(reins.Pointer{Tab: tab, Kind: "up", X: 300, Y: 300})
		}
		p.browser.mu.Lock()
		waiting := len(p.tabNowLocked().raw)
		p.browser.mu.Unlock()
		if waiting > mostRaw+2 {
			p.Errorf("%d events wait", waiting)
		}
		x, y := p.center("#i")
		p.press(x, y)
		p.types("on", "KeyO", "KeyN")
		p.until("document.getElementById('i').value", "on")
	})
}

func (b *testBrowser) tabNowLocked() *tab { return b.selected }
