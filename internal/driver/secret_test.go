package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/redact"
)

const hush = "hunter2-Ünï"

// enter asks where a secret would go and types it there, as the parent does.
func (b *testBrowser) enter(tb testing.TB, a reins.Action) (*Reply, *Place, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	asked, err := b.do(ctx, Command{Action: a, Lease: "lease", Ask: true})
	if err != nil {
		return nil, nil, err
	}
	r, err := b.do(ctx, Command{Action: a, Lease: "lease", Into: *asked.Place, Secret: hush, Redact: redact.Set{{Name: "pw", Value: hush}}})
	return r, asked.Place, err
}

// TestSecret: real keys in the one field, told by its name only (ACT-11).
func TestSecret(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{
			"/": `<!doctype html><title>t</title>` + logPart + `<form onsubmit="say('sent '+(p.value==='` + hush + `'));return false"><input id=p type=password aria-label=Password value=old></form>
<input aria-label=Plain id=q value="was "><div contenteditable role=textbox aria-label=Rich>old</div><input type=checkbox aria-label=Box><input aria-label=Short maxlength=3>
<input aria-label=Digits oninput="this.value=this.value.replace(/\D/g,'')"><input aria-label=Thief onkeydown="if(this.value.length>2)q.focus()">`,
		})
		b.open(t, s.URL)
		see := b.see(t)
		r, place, err := b.enter(t, reins.Fill{Ref: refTo(t, see, "Password"), Value: reins.SecretValue("pw"), Submit: true})
		if err != nil || place.Origin != s.URL || r.Result.Changes.Value != "[secret:pw]" || r.Result.Target.Name != "Password" {
			t.Fatalf("%v, %+v", err, place)
		}
		b.wantResult(t, "sent true")
		if r, _, err = b.enter(t, reins.Type{Ref: refTo(t, see, "Plain"), Secret: "pw", Waits: reins.Waits{Snapshot: true}}); err != nil {
			t.Fatal(err)
		}
		if got := b.script(t, "document.getElementById('q').value"); got != "was "+hush {
			t.Errorf("the field holds %q", got)
		}
		if strings.Contains(r.Result.Snapshot.Text, hush) || !strings.Contains(r.Result.Snapshot.Text, "was [secret:pw]") {
			t.Errorf("snapshot:\n%s", r.Result.Snapshot.Text)
		}
		// Without a ref it goes where the focus is, which is still that field.
		if _, place, err = b.enter(t, reins.Type{Secret: "pw"}); err != nil || place.Ref != refTo(t, see, "Plain") {
			t.Errorf("into the focus: %v, %+v", err, place)
		}
		if _, _, err = b.enter(t, reins.Fill{Ref: refTo(t, see, "Rich"), Value: reins.SecretValue("pw")}); err != nil {
			t.Error(err)
		}
		if got := b.script(t, "document.querySelector('[contenteditable]').textContent"); got != hush {
			t.Errorf("the editor holds %q", got)
		}
		for find, code := range map[string]reins.Code{"Box": reins.CodeInvalidInput, "Short": reins.CodeInvalidInput, "Digits": reins.CodeToolFailed, "Thief": reins.CodeNotActionable} {
			_, _, err := b.enter(t, reins.Fill{Ref: refTo(t, see, find), Value: reins.SecretValue("pw")})
			wantCode(t, err, code)
			if err != nil && (strings.Contains(err.Error(), "hunt") || strings.Contains(err.Error(), "2")) && !strings.Contains(err.Error(), "e2") && !strings.Contains(err.Error(), "f2") {
				t.Errorf("%s: the error tells of it: %v", find, err)
			}
			held := b.script(t, "document.querySelector('[aria-label="+find+"]').value")
			if find != "Box" && held != "" {
				t.Errorf("%s: the field still holds %q", find, held)
			}
		}
		if got := b.script(t, "document.getElementById('q').value"); strings.Contains(got, "unter2-Ünï"+hush+"h") {
			t.Errorf("the thief got %q", got)
		}
	})
}

// TestSecretStaysInItsFrame: it is asked of the frame's own origin, and no
// other document gets a key (ACT-11).
func TestSecretStaysInItsFrame(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		inner := `<!doctype html><input aria-label=Card id=c oninput="if(this.value.length>3)parent.postMessage('now','*')">`
		pages := map[string]string{"/inner": inner, "/sand": `<!doctype html><input aria-label=Sand>`}
		s := site(t, pages)
		outer := `<!doctype html><title>t</title><input aria-label=Outer id=o><iframe src="` + at(s, "pay.test", "/inner") + `"></iframe><iframe sandbox="allow-scripts" src="/sand"></iframe>
<script>onmessage=()=>o.focus()</script>`
		top := site(t, map[string]string{"/": outer, "/sand": pages["/sand"]})
		b.open(t, top.URL)
		see := b.see(t)
		_, place, err := b.enter(t, reins.Fill{Ref: refTo(t, see, "Card"), Value: reins.SecretValue("pw")})
		if place == nil || place.Origin != at(s, "pay.test", "") {
			t.Fatalf("asked of %+v: %v", place, err)
		}
		wantCode(t, err, reins.CodeNotActionable) // the outer page took the focus
		if got := b.script(t, "document.getElementById('o').value"); got != "" {
			t.Errorf("the outer page got %q", got)
		}
		ctx := t.Context()
		sand, err := b.do(ctx, Command{Action: reins.Type{Ref: refTo(t, see, "Sand"), Secret: "pw"}, Ask: true})
		if err != nil || sand.Place.Origin != "null" {
			t.Errorf("a sandboxed frame: %+v, %v", sand, err)
		}
		// An answer for another page is of no use.
		outerRef := refTo(t, see, "Outer")
		_, err = b.do(ctx, Command{Action: reins.Type{Ref: outerRef, Secret: "pw"}, Into: Place{Origin: "https://bank.test", Ref: outerRef}, Secret: hush})
		wantCode(t, err, reins.CodeStaleRef)
		_, err = b.do(ctx, Command{Action: reins.Type{Ref: outerRef, Secret: "pw"}})
		wantCode(t, err, reins.CodeInvalidInput)
	})
}

// TestRedactedBeforeCut: a secret at a border of what fits is not cut apart.
func TestRedactedBeforeCut(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><main><p>` + strings.Repeat("word ", 190) + strings.Repeat(hush, 400) + `</p></main>`})
	b.open(t, s.URL)
	set := redact.Set{{Name: "pw", Value: hush}}
	for size := 1000; size < 1012; size++ {
		for _, a := range []reins.Action{reins.Snapshot{MaxBytes: size}, reins.Read{MaxBytes: size}} {
			r, err := b.do(t.Context(), Command{Action: a, Lease: "lease", Redact: set})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if r.Result.Snapshot != nil {
				text = r.Result.Snapshot.Text
			} else {
				text = r.Result.Reading.Markdown
			}
			if strings.Contains(text, "hunt") || strings.Contains(text, "nï") {
				t.Errorf("%s of %d bytes shows a part: …%s", a.Verb(), size, text[max(0, len(text)-60):])
			}
		}
	}
}
