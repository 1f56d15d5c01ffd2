package driver

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// INP-1, B086: what a person copies and pastes keeps every character, comes with
// the events of the page, and leaves nothing behind.
func TestClipboard(t *testing.T) {
	const sample = "測試 тест हिन्दी \U0001F9ED\U0001F468\u200d\U0001F33E\nsecond line “quoted” éè\ttab"
	handsOn(t, `<textarea id=src readonly></textarea><textarea id=dst></textarea><input id=pw type=password value="hidden one"><p id=text>some text to select</p><input id=own><output id=result>-</output><script>
src.value = `+"`"+strings.ReplaceAll(sample, "\t", "\\t")+"`"+`; const seen = []; addEventListener('forget', () => { seen.length = 0 }); for (const type of ['copy', 'cut', 'paste', 'keydown', 'keyup', 'beforeinput', 'beforecopy']) addEventListener(type, e => {
  seen.push([type, e.inputType || e.key || (e.isTrusted ? 'trusted' : 'made')].join(' ')); document.body.dataset.seen = seen.join('|') }, true);
own.oncopy = e => { e.clipboardData.setData('text/plain', own.value === 'long' ? 'x'.repeat(1100000) : 'what the page makes of it'); e.preventDefault() };
own.onpaste = e => { const t = e.clipboardData.getData('text/plain'); result.textContent = 'got ' + (t.length > 99 ? t.length : t); e.preventDefault() }</script>`, func(p person) {
		tab := p.tab()
		clip := func(kind, text string) *Reply {
			p.Helper()
			p.script(p.TB, "dispatchEvent(new Event('forget'))")
			return p.does(reins.Clipboard{Tab: tab, Kind: kind, Text: text})
		}
		selected := func(id string) {
			p.Helper()
			p.script(p.TB, "(e => { getSelection().removeAllRanges(); e.focus(); e.select ? e.select() : getSelection().selectAllChildren(e) })(document.getElementById('"+id+"'))")
		}
		copies := func(id, want string) {
			p.Helper()
			selected(id)
			if got := clip("copy", "").Result.Clipboard; got != want {
				p.Errorf("copied %q from %s, want %q", got, id, want)
			}
		}
		copies("src", sample)
		if seen := p.script(p.TB, "document.body.dataset.seen"); !strings.Contains(seen, "keydown c|") || !strings.Contains(seen, "copy trusted") || !strings.HasSuffix(seen, "keyup c") || strings.Contains(seen, "paste") || strings.Count(seen, "|copy ") != 1 {
			p.Errorf("of a copy the page saw %s", seen)
		}
		p.script(p.TB, "document.getElementById('dst').focus()")
		r := clip("paste", sample)
		p.until("document.getElementById('dst').value", sample)
		if seen := p.script(p.TB, "document.body.dataset.seen"); !strings.Contains(seen, "paste trusted|beforeinput insertFromPaste") || strings.Contains(seen, "copy") {
			p.Errorf("of a paste the page saw %s, result %+v", seen, r.Result)
		}
		copies("text", "some text to select")
		copies("own", "what the page makes of it")
		clip("paste", "mine")
		p.says("got mine")
		copies("pw", "")
		selected("dst")
		if got := clip("cut", "").Result.Clipboard; got != sample {
			p.Errorf("cut %q", got)
		}
		p.until("document.getElementById('dst').value", "")
		p.key(reins.Key{Key: "v", Code: "KeyV", Modifiers: []string{"Control"}}) // there is nothing left to paste
		p.types("end", "KeyE", "KeyN", "KeyD")
		p.until("document.getElementById('dst').value", "end")
		p.script(p.TB, "(e => { e.focus(); e.value = 'long' })(document.getElementById('own'))")
		_, err := p.try(reins.Clipboard{Tab: tab, Kind: "copy"})
		wantCode(p.TB, err, reins.CodeQuotaExceeded)
		clip("paste", strings.Repeat("y", 1<<20))
		p.says("got 1048576")
	})
}

// INP-1: the clipboard works in frames of other sites.
func TestClipboardInFrames(t *testing.T) {
	s := site(t, map[string]string{
		"/":      `<!doctype html><title>Outer</title><iframe id=f width=400 height=200></iframe>`,
		"/inner": `<!doctype html><body style="margin:0"><input id=i style="width:200px;height:40px"><p id=t>inner text</p>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		p := person{b, t}
		b.open(t, s.URL)
		p.script(t, "document.getElementById('f').src = '"+at(s, "inner.test", "/inner")+"'")
		waitFor(t, "the frame is there", func() bool { return strings.Contains(b.see(t), "inner text") })
		x, y := p.center("#f")
		for range 20 { // a frame that has just come does not take the focus at once
			p.press(x-150, y-80)
			if p.script(t, "document.activeElement.id") == "f" {
				break
			}
		}
		p.does(reins.Clipboard{Tab: p.tab(), Kind: "paste", Text: "pasté"})
		got := ""
		waitFor(t, "what was pasted into the frame is copied out of it", func() bool { // keys wait a quarter of a second at most for a busy page
			p.key(reins.Key{Key: "a", Code: "KeyA", Modifiers: []string{"Control"}})
			got = p.does(reins.Clipboard{Tab: p.tab(), Kind: "copy"}).Result.Clipboard
			return got != ""
		})
		if got != "pasté" {
			t.Errorf("copied %q from the frame", got)
		}
	})
}
