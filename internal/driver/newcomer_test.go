package driver

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// newcomers are pages on which who had only the tools was misled: an action that
// said it was done, and of which nothing was to be seen (ACT-3, ACT-6, ACT-7).
var newcomers = []aCase{
	{"a filter that waits for the end of typing", map[string]string{"/": logPart + `<input aria-label=Find><ul id=l><li>Ann<li>Bob</ul><script>
let t;document.querySelector('input').addEventListener('input',e=>{clearTimeout(t);t=setTimeout(()=>{for(const li of l.children)li.hidden=!li.textContent.includes(e.target.value)},300)})</script>`}, func(s *scene) {
		s.see(s.T)
		r := s.act(s.T, reins.Fill{Ref: s.ref(`"Find"`), Value: reins.TextValue("Ann"), Waits: reins.Waits{Snapshot: true}}).Result
		if r.Snapshot == nil || !strings.Contains(r.Snapshot.Text, `Bob`) || !strings.Contains(r.Snapshot.Text, "-   ") {
			s.Errorf("what the filter did is not told: %+v", r.Snapshot)
		}
	}},
	{"a field that sets timers of which nothing comes", map[string]string{"/": logPart + `<input aria-label=Note oninput="clearTimeout(self.t);t=setTimeout(()=>say('saved'),60000)">`}, func(s *scene) {
		for range 4 { // two waits in vain, then none
			s.set("Note", reins.TextValue("a"))
			s.set("Note", reins.TextValue("b"))
		}
		if n := s.script(s.T, `reins.waitedInVain(document.querySelector('input'))`); n != "2" {
			s.Errorf("waited %s times in vain, want 2", n)
		}
	}},
	{"a filter that listens to keys alone", map[string]string{"/": logPart + `<input aria-label=Find onkeyup="say(this.value)">`}, func(s *scene) {
		for _, text := range []string{"Ann", "Bob B.", "x", "Zoë"} {
			s.set("Find", reins.TextValue(text))
			if text != "Zoë" {
				s.says(text)
			}
		}
		s.set("Find", reins.TextValue("Zo\u00eb"))
		if got := s.script(s.T, `document.querySelector('input').value`); got != "Zo\u00eb" {
			s.Errorf("it holds %q", got)
		}
	}},
	{"a field of which only what is chosen counts", map[string]string{"/": logPart + `<style>#l{position:absolute;border:1px solid;background:#fff;min-width:90px}#l div{cursor:pointer}</style><input aria-label=Kind oninput="l.hidden=false"><div id=l hidden><div onclick="say('male')">Male</div><div onclick="say('female')">Female</div></div><p>Male and female</p>`}, func(s *scene) {
		r := s.set("Kind", reins.TextValue("female")).Result
		ref := refTo(s.T, s.see(s.T), `: Female`)
		if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, `"Female" [ref=`+string(ref)+`]`) {
			s.Errorf("the list is told as %q, want %s", notes, ref)
		}
		s.act(s.T, reins.Click{Ref: ref})
		s.says("female")
	}},
	{"no list is open", map[string]string{"/": `<input aria-label=Kind><p>Male</p>`}, func(s *scene) {
		if r := s.set("Kind", reins.TextValue("Male")).Result; len(r.Notes) != 0 {
			s.Errorf("notes %q", r.Notes)
		}
	}},
	{"what a press turned over", map[string]string{"/": `<label><input type=checkbox> Minor</label><button aria-expanded=false onclick="this.ariaExpanded='true'">Menu</button><button aria-pressed=true onclick="this.ariaPressed='false'">Bold</button>
<details><summary>More</summary>text</details><div role=tab tabindex=0 aria-selected=false onclick="this.ariaSelected='true'">Rows</div><button>Plain</button>`}, func(s *scene) {
		for name, want := range map[string]string{"Minor": "it is now checked", "Menu": "it is now expanded", "Bold": "it is now not pressed", "More": "it is now expanded", "Rows": "it is now selected", "Plain": ""} {
			if got := strings.Join(s.press(name).Result.Notes, "\n"); got != want {
				s.Errorf("pressing %s tells %q, want %q", name, got, want)
			}
		}
		r := s.act(s.T, reins.Press{Ref: s.ref(`"Minor"`), Key: "Space"}).Result
		if got := strings.Join(r.Notes, "\n"); got != "it is now not checked" {
			s.Errorf("Space tells %q", got)
		}
	}},
	{"access keys", map[string]string{"/": logPart + `<input aria-label=In><button accesskey=s onclick="say('saved')">Save [S]</button><button accesskey=2 onclick="say('second')">Two</button>`}, func(s *scene) {
		for _, c := range [][2]string{{"Alt+s", "saved"}, {"Alt+2", "second"}, {"Alt+Shift+s", "saved"}} {
			s.act(s.T, reins.Press{Ref: s.ref(`"In"`), Key: c[0]})
			s.says(c[1])
		}
		if got := s.script(s.T, `document.querySelector('input').value`); got != "" {
			s.Errorf("the field got %q", got)
		}
	}},
	{"a value that went with its page", map[string]string{"/": `<form action=next><input aria-label=Q name=q></form>`, "/next": `<p>found`}, func(s *scene) {
		r := s.act(s.T, reins.Fill{Ref: s.ref(`"Q"`), Value: reins.TextValue("tide"), Submit: true}).Result
		if r.Changes == nil || !r.Changes.Navigated || r.Changes.Value != "" {
			s.Errorf("it is told as %+v", r.Changes)
		}
	}},
}

func TestNewcomers(t *testing.T) { walkThrough(t, newcomers) }
