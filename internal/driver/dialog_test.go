package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// SNAP-8, ACT-8: a dialog is state of its tab; the plain actions answer it and
// all others say what it says.
func TestDialogs(t *testing.T) {
	s := site(t, map[string]string{
		"/":       `<title>Home</title>`,
		"/load":   `<title>Load</title><script>alert("on <b>load")</script><p>after`,
		"/second": `<title>Second</title>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL+"/")
		tab := b.tabNow()
		ask := func(expression string) {
			t.Helper()
			b.pageScript(t, tab, fmt.Sprintf(`setTimeout(() => { document.title = String(%s) }, 1); 0`, expression))
			b.eventually(t, "a dialog", func() bool { return tab.dialog != nil })
		}
		title := func(want string) {
			t.Helper()
			if got := b.pageScript(t, tab, "document.title"); got != want {
				t.Errorf("the page got %q, want %q", got, want)
			}
		}
		text := "größer"
		for _, test := range []struct {
			ask    string
			answer []reins.Action
			want   string
		}{
			{`alert("look")`, []reins.Action{reins.Click{Ref: "dialog-accept"}}, "undefined"},
			{`confirm("sure?")`, []reins.Action{reins.Click{Ref: "dialog-accept"}}, "true"},
			{`confirm("sure?")`, []reins.Action{reins.Click{Tab: "t1", Ref: "dialog-dismiss"}}, "false"},
			{`confirm("sure?")`, []reins.Action{reins.Press{Key: "Escape"}}, "false"},
			{`prompt("name?", "nobody")`, []reins.Action{reins.Click{Ref: "dialog-accept"}}, "nobody"},
			{`prompt("name?")`, []reins.Action{reins.Press{Key: "Enter"}}, ""},
			{`prompt("name?")`, []reins.Action{reins.Fill{Ref: "dialog-prompt", Value: reins.TextValue(text)}, reins.Click{Ref: "dialog-accept"}}, text},
			{`prompt("name?")`, []reins.Action{reins.Fill{Ref: "dialog-prompt", Value: reins.TextValue(text), Submit: true}}, text},
			{`prompt("name?")`, []reins.Action{reins.Fill{Ref: "dialog-prompt", Value: reins.TextValue(text)}, reins.Click{Ref: "dialog-dismiss"}}, "null"},
			{`[confirm("one"), confirm("two")]`, []reins.Action{reins.Click{Ref: "dialog-accept"}, reins.Click{Ref: "dialog-dismiss"}}, "true,false"},
		} {
			ask(test.ask)
			for _, a := range test.answer {
				b.act(t, a)
			}
			title(test.want)
		}
		b.open(t, s.URL+"/") // a page that asks again and again can be left
		ask(`confirm("really <b>?")`)
		for _, a := range []reins.Action{
			reins.Navigate{URL: s.URL}, reins.Screenshot{}, reins.Press{Key: "a"}, reins.Type{Text: "a"},
		} {
			_, err := b.try(a)
			wantCode(t, err, reins.CodeDialogOpen)
			if err == nil || !strings.Contains(err.Error(), `"really <b>?"`) {
				t.Errorf("%s: the dialog is not quoted: %v", a.Verb(), err)
			}
		}
		_, err := b.try(reins.Fill{Ref: "dialog-prompt", Value: reins.TextValue("x")})
		wantCode(t, err, reins.CodeInvalidInput)
		// Another tab works meanwhile.
		b.act(t, reins.OpenTab{URL: s.URL + "/second"})
		b.act(t, reins.SelectTab{Tab: "t1"})
		b.act(t, reins.Click{Ref: "dialog-dismiss"})
		_, err = b.try(reins.Click{Ref: "dialog-dismiss"})
		wantCode(t, err, reins.CodeStaleRef)
		if got := b.kinds(); strings.Count(got, "dialog_closed") != strings.Count(got, "dialog")/2 {
			t.Errorf("events %s", got)
		}
		// A dialog during load ends the wait, not the load.
		began := time.Now()
		r := b.open(t, s.URL+"/load")
		if r.Result.Changes.Dialog == nil || r.Result.Changes.Dialog.Message != "on <b>load" || r.Result.Navigation.Waited {
			t.Errorf("a dialog during load: %+v, %+v", r.Result.Navigation, r.Result.Changes)
		}
		if took := time.Since(began); took > 10*time.Second { // far less than navigate's limit
			t.Errorf("it took %v", took)
		}
		b.act(t, reins.Click{Ref: "dialog-accept"})
		b.eventually(t, "the rest of the page", func() bool { return tab.main.phase == phaseLoaded })
		// Closing a tab with a dialog.
		ask(`confirm("still?")`)
		b.act(t, reins.CloseTab{Tab: "t1"})
	})
}

// ACT-8: what asks whether to leave is told yes when we leave, and reported.
func TestBeforeUnload(t *testing.T) {
	s := site(t, map[string]string{
		"/":      `<title>Home</title>`,
		"/dirty": `<title>Dirty</title><script>onbeforeunload = e => { e.preventDefault(); return "x" }</script><a id=link href=/>leave</a>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL+"/")
		b.open(t, s.URL+"/")
		for _, leave := range []reins.Action{
			reins.Navigate{URL: s.URL + "/"}, reins.Navigate{URL: "back"}, reins.Navigate{URL: "reload"}, reins.CloseTab{},
		} {
			b.open(t, s.URL+"/dirty")
			b.pageScript(t, b.tabNow(), "0") // with a user's gesture, without which pages may not ask
			began := time.Now()
			r := b.act(t, leave)
			if !strings.Contains(strings.Join(r.Result.Notes, " "), "asked whether to leave") {
				t.Errorf("%v: nothing is said of the question: %q", leave, r.Result.Notes)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%v took %v", leave, took)
			}
		}
		// A page that leaves by itself asks whoever acts on it.
		b.open(t, s.URL+"/dirty")
		tab := b.tabNow()
		b.pageScript(t, tab, `setTimeout(() => document.getElementById("link").click(), 1); 0`)
		b.eventually(t, "the question", func() bool { return tab.dialog != nil && tab.dialog.kind == "beforeunload" })
		b.act(t, reins.Click{Ref: "dialog-dismiss"})
		if got := b.pageScript(t, tab, "location.pathname"); got != "/dirty" {
			t.Errorf("the page is at %s", got)
		}
		b.pageScript(t, tab, `setTimeout(() => document.getElementById("link").click(), 1); 0`)
		b.eventually(t, "the question again", func() bool { return tab.dialog != nil })
		b.act(t, reins.Click{Ref: "dialog-accept"})
		b.eventually(t, "the page to leave", func() bool { return tab.url == s.URL+"/" })
	})
}

// ACT-9: nothing that a page may ask a person for waits for one. (Pickers of
// screens and devices are refused by the cell's policies.)
func TestPermissions(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1))
		for name, ask := range map[string]string{
			"location":     `new Promise(d => navigator.geolocation.getCurrentPosition(() => d("given"), e => d("denied")))`,
			"notification": `Notification.requestPermission()`,
			"camera":       `navigator.mediaDevices.getUserMedia({video: true}).then(() => "given", e => "denied")`,
			"microphone":   `navigator.mediaDevices.getUserMedia({audio: true}).then(() => "given", e => "denied")`,
			"clipboard":    `navigator.clipboard.readText().then(() => "given", e => "denied")`,
			"midi":         `navigator.requestMIDIAccess({sysex: true}).then(() => "given", e => "denied")`,
			"fonts":        `(window.queryLocalFonts ? queryLocalFonts().then(f => f.length ? "given" : "denied", e => "denied") : "denied")`,
			"windows":      `(window.getScreenDetails ? getScreenDetails().then(() => "given", e => "denied") : "denied")`,
			"idle":         `(window.IdleDetector ? IdleDetector.requestPermission() : "denied")`,
			"print":        `(print(), "denied")`,
			"protocol":     `(location.href = "mailto:someone@example.com", "denied")`,
			"passkey":      `navigator.credentials.get({publicKey: {challenge: new Uint8Array(16), timeout: 500, userVerification: "discouraged"}}).then(() => "given", e => "denied")`,
			"bluetooth":    `(navigator.bluetooth ? navigator.bluetooth.requestDevice({acceptAllDevices: true}).then(() => "given", e => "denied") : "denied")`,
			"storage":      `(navigator.storage ? navigator.storage.persist().then(p => p ? "given" : "denied") : "denied")`,
		} {
			began := time.Now()
			got := b.pageScript(t, b.tabNow(), fmt.Sprintf(`Promise.race([%s, new Promise(d => setTimeout(() => d("waits"), 3000))])`, ask))
			if got != "denied" {
				t.Errorf("%s: %s", name, got)
			}
			if took := time.Since(began); took > 2500*time.Millisecond {
				t.Errorf("%s: took %v", name, took)
			}
		}
	})
}

// A file chooser is state of its tab, with the control it is for.
func TestFileChooser(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title><input id=one type=file><input id=many type=file multiple>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		tab := b.tabNow()
		for _, id := range []string{"one", "many"} {
			fx := b.begin(tab)
			b.pageScript(t, tab, fmt.Sprintf(`document.getElementById(%q).click()`, id))
			b.eventually(t, "the chooser", func() bool { return fx.chooser != nil })
			fx.end(b.browser)
			c := fx.chooser
			if c.multiple != (id == "many") || c.frame != tab.main {
				t.Errorf("%s: chooser %+v", id, c)
			}
			d, err := tab.document(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h, err := d.resolve(t.Context(), c.node)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := d.eval(t.Context(), "el => el.id", &got, h); err != nil || got != id {
				t.Errorf("the chooser is for %q, %v; want %q", got, err, id)
			}
		}
	})
}

// ACT-6: an answer to a dialog returns when what the page then does is there.
func TestAnswersSettle(t *testing.T) {
	s := site(t, map[string]string{
		"/": `<!doctype html><title>Ask</title><form action="/sent" onsubmit="return confirm('Send?')"><button>Send</button></form>
<button onclick="if (confirm('Fetch?')) fetch('/sent').then(r => r.text()).then(x => { document.title = 'Fetched'; })">Fetch</button>`,
		"/sent": `<!doctype html><title>Sent</title><h1>Sent</h1>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for button, title := range map[string]string{"Send": "Sent", "Fetch": "Fetched"} {
			b.open(t, s.URL)
			b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"`+button+`"`)})
			r := b.act(t, reins.Click{Ref: "dialog-accept"}).Result
			if r.Tab.Title != title || !r.Changes.Settled || r.Changes.Focus != nil {
				t.Errorf("%s: the answer came with %+v, %+v", button, r.Tab, r.Changes)
			}
		}
	})
}
