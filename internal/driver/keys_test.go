package driver

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

func TestParseChord(t *testing.T) {
	for _, c := range []struct{ in, held, key, code, text string }{
		{"Enter", "", "Enter", "Enter", "\r"}, {"enter", "", "Enter", "Enter", "\r"}, {"Esc", "", "Escape", "Escape", ""},
		{"Control+A", "Control", "a", "KeyA", ""}, {"ctrl+a", "Control", "a", "KeyA", ""}, {"Control+Shift+k", "Control Shift", "K", "KeyK", ""},
		{"Shift+Tab", "Shift", "Tab", "Tab", ""}, {"F5", "", "F5", "F5", ""}, {"F24", "", "F24", "F24", ""}, {"é", "", "é", "", "é"},
		{"A", "", "A", "KeyA", "A"}, {"Shift+1", "Shift", "!", "Digit1", "!"}, {"+", "", "+", "Equal", "+"}, {"Control++", "Control", "+", "Equal", ""},
		{" ", "", " ", "Space", " "}, {"Space", "", " ", "Space", " "}, {"KeyA", "", "a", "KeyA", "a"}, {"Digit7", "", "7", "Digit7", "7"},
		{"ArrowLeft", "", "ArrowLeft", "ArrowLeft", ""}, {"Ж", "", "Ж", "", "Ж"}, {"Control+Comma", "Control", ",", "Comma", ""}, {"Shift", "", "Shift", "ShiftLeft", ""},
	} {
		got, err := parseChord(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if held := strings.Join(got.held, " "); held != c.held || got.key.key != c.key || got.code != c.code || got.text != c.text {
			t.Errorf("%q is %+v held %q", c.in, got.key, held)
		}
	}
	for in, nearest := range map[string]string{"Entr": "Enter", "Controll+A": "Control", "PageDwn": "PageDown", "Foo+": "F1", "": ""} {
		_, err := parseChord(in)
		wantCode(t, err, reins.CodeInvalidInput)
		if e := reins.AsError(err); e != nil && nearest != "" && nearest != "F1" && e.Details["nearest"] != nearest {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzParseChord(f *testing.F) {
	for _, s := range []string{"Enter", "Control+A", "Shift++", "é", "👨‍👩‍👧", "++", "Control+Shift+", "+a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseChord(s)
		if err != nil {
			wantCode(t, err, reins.CodeInvalidInput)
			return
		}
		if len(chordEvents(c)) != 2*len(c.held)+2 {
			t.Errorf("%q makes %d events", s, len(chordEvents(c)))
		}
	})
}

// TestKeys: what a page sees of press and type (ACT-4).
func TestKeys(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + logPart + `<input aria-label=In value="abc def" id=i><textarea aria-label=Area></textarea><div contenteditable role=textbox aria-label=Rich></div>
<script>let keys=[];for(const t of ['keydown','keyup'])addEventListener(t,e=>{keys.push((t=='keydown'?'+':'-')+(e.ctrlKey?'C':'')+(e.shiftKey?'S':'')+(e.altKey?'A':'')+e.key+'/'+e.code+'/'+e.keyCode);say(keys.join(' ')+' ['+(document.activeElement.value??document.activeElement.textContent)+']')});
addEventListener('input',()=>say(keys.join(' ')+' ['+(document.activeElement.value??document.activeElement.textContent)+']'))</script>`})
		press := func(ref, key string) func(string) reins.Action {
			return func(see string) reins.Action { return reins.Press{Ref: refTo(t, see, ref), Key: key} }
		}
		typed := func(ref, text string) func(string) reins.Action {
			return func(see string) reins.Action { return reins.Type{Ref: refTo(t, see, ref), Text: text} }
		}
		for _, c := range []struct {
			name string
			acts []func(string) reins.Action
			want string
		}{
			{"letter", []func(string) reins.Action{press(`"Area"`, "a")}, "+a/KeyA/65 -a/KeyA/65 [a]"},
			{"upper case", []func(string) reins.Action{press(`"Area"`, "Q")}, "+SQ/KeyQ/81 -Q/KeyQ/81 [Q]"},
			{"chord", []func(string) reins.Action{press(`"In"`, "Control+A"), press(`"In"`, "Backspace")}, "+CControl/ControlLeft/17 +Ca/KeyA/65 -Ca/KeyA/65 -Control/ControlLeft/17 +Backspace/Backspace/8 -Backspace/Backspace/8 []"},
			{"no stray character", []func(string) reins.Action{press(`"Area"`, "Control+k")}, "+CControl/ControlLeft/17 +Ck/KeyK/75 -Ck/KeyK/75 -Control/ControlLeft/17 []"},
			{"line", []func(string) reins.Action{press(`"Area"`, "Shift+Enter")}, "+SShift/ShiftLeft/16 +SEnter/Enter/13 -SEnter/Enter/13 -Shift/ShiftLeft/16 [ ]"},
			{"other layout", []func(string) reins.Action{press(`"Area"`, "é")}, "+é//0 -é//0 [é]"},
			{"typed", []func(string) reins.Action{typed(`"Area"`, "Hi 9")}, "+SH/KeyH/72 -H/KeyH/72 +i/KeyI/73 -i/KeyI/73 + /Space/32 - /Space/32 +9/Digit9/57 -9/Digit9/57 [Hi 9]"},
			{"typed at the end", []func(string) reins.Action{typed(`"In"`, "!")}, "+S!/Digit1/49 -!/Digit1/49 [abc def!]"},
			{"emoji", []func(string) reins.Action{typed(`"Area"`, "👨‍👩‍👧")}, " [👨‍👩‍👧]"},
			{"editor", []func(string) reins.Action{typed(`"Rich"`, "ok")}, "+o/KeyO/79 -o/KeyO/79 +k/KeyK/75 -k/KeyK/75 [ok]"},
			{"function key", []func(string) reins.Action{press(`"Area"`, "F7")}, "+F7/F7/118 -F7/F7/118 []"},
		} {
			t.Run(c.name, func(t *testing.T) {
				b.open(t, s.URL)
				see := b.see(t)
				for _, a := range c.acts {
					b.act(t, a(see))
				}
				if got := strings.TrimSpace(b.result(t)); got != strings.TrimSpace(c.want) {
					t.Errorf("the page saw %q, want %q", got, c.want)
				}
			})
		}
		t.Run("on the focus", func(t *testing.T) {
			b.open(t, s.URL)
			see := b.see(t)
			b.act(t, reins.Press{Ref: refTo(t, see, `"In"`), Key: "End"})
			r := b.act(t, reins.Press{Key: "Tab"}).Result
			if r.Changes.Focus == nil || r.Changes.Focus.Name != "Area" || r.Changes.FocusRef != refTo(t, see, `"Area"`) {
				t.Errorf("focus %+v", r.Changes)
			}
			if r.Target == nil || r.Target.Name != "In" {
				t.Errorf("target %+v", r.Target)
			}
		})
	})
}
