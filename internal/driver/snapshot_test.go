package driver

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reins-browser/reins"
)

var refPattern = regexp.MustCompile(`ref=f\d+e`)

// plainRefs leaves the numbers of documents out of refs.
func plainRefs(s string) string { return refPattern.ReplaceAllString(s, "ref=e") }

// TestReadingChangesNothing: the page cannot tell that it was read (SNAP-6).
func TestReadingChangesNothing(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><div style="height:3000px"><input id=i value=abc aria-label=i><div id=h></div>
<div style="content-visibility:auto">auto <button>x</button></div><details><summary>s</summary>d</details><select aria-label=s><option>a<option>b</select></div>
<output aria-label=result id=result></output><script>
const seen = [];
const note = s => seen.push(s);
i.focus(); i.setSelectionRange(1, 2); scrollTo(0, 40);
const r = h.attachShadow({mode: 'closed'}); r.innerHTML = '<button>closed</button>';
document.title = 'ready';
requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => {
  const html0 = document.documentElement.outerHTML, inner0 = r.innerHTML, scroll0 = scrollY;
  for (const root of [document, r]) new MutationObserver(l => note('mutation ' + l[0].type)).observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
  for (const e of ['focus', 'blur', 'focusin', 'focusout', 'scroll', 'select', 'selectionchange', 'resize', 'click', 'mousemove', 'toggle', 'input', 'change', 'beforeinput', 'contentvisibilityautostatechange', 'visibilitychange', 'pointerover'])
    addEventListener(e, () => note(e), true), document.addEventListener(e, () => note(e), true);
  const ownKeys = Object.getOwnPropertyNames(window).length;
  document.body.addEventListener('check', () => {
    const state = [seen.join(), document.activeElement.id, i.selectionStart + '-' + i.selectionEnd, scrollY === scroll0, document.documentElement.outerHTML === html0, r.innerHTML === inner0,
      Object.getOwnPropertyNames(window).length === ownKeys, 'reins' in window].join('|');
    document.title = state;
  });
})));
</script>`})
	b.open(t, s.URL)
	b.script(t, `new Promise(ok => { let n = 0; const look = () => document.title === 'ready' && ++n > 6 ? ok(1) : requestAnimationFrame(look); look(); })`)
	for range 3 {
		b.see(t)
		b.act(t, reins.Snapshot{Interactive: true, Find: "closed", Depth: 3})
	}
	b.script(t, `document.body.dispatchEvent(new Event('check')) && 1`)
	if got, want := b.script(t, "document.title"), "|i|1-2|true|true|true|true|false"; got != want {
		t.Errorf("the page saw %q, want %q", got, want)
	}
}

// TestClosedShadowRoots are read and acted in like any other (SNAP-1, SNAP-7).
func TestClosedShadowRoots(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><my-box>light</my-box><div id=plain></div><div id=withtext><b>unslotted</b></div><output id=result aria-label=result>-</output><script>
const say = s => result.textContent = s;
customElements.define('my-box', class extends HTMLElement { constructor() { super(); const r = this.attachShadow({mode: 'closed'});
  r.innerHTML = '<button>In box: <slot></slot></button><div></div>'; r.querySelector('button').onclick = () => say('box');
  const deep = r.querySelector('div').attachShadow({mode: 'closed'}); deep.innerHTML = '<label>Deep <input></label>'; deep.querySelector('input').oninput = e => say('deep ' + e.target.value); }});
const p = plain.attachShadow({mode: 'closed'}); p.innerHTML = '<button>Plain</button>'; p.firstChild.onclick = () => say('plain');
withtext.attachShadow({mode: 'closed'}).innerHTML = '<a href="#x">Over text</a>';
</script>`})
	b.open(t, s.URL)
	got := b.see(t)
	want := `- button "In box: light" [ref=e2]
- textbox "Deep" [ref=e3]
- button "Plain" [ref=e4]
- link "Over text" [ref=e5]:
  - /url: #x
- status "result": -
`
	if diff := cmp.Diff(regexp.MustCompile(`e\d+\]`).ReplaceAllString(want, "e]"), regexp.MustCompile(`f\d+e\d+\]`).ReplaceAllString(got, "e]")); diff != "" {
		t.Fatal(diff)
	}
	b.act(t, reins.Click{Ref: refTo(t, got, "In box")})
	if r := b.result(t); r != "box" {
		t.Errorf("result %q, want box", r)
	}
	b.act(t, reins.Fill{Ref: refTo(t, got, "Deep"), Value: reins.TextValue("down")})
	if r := b.result(t); r != "deep down" {
		t.Errorf("result %q, want deep down", r)
	}
	b.act(t, reins.Click{Ref: refTo(t, got, "Plain")})
	if r := b.result(t); r != "plain" {
		t.Errorf("result %q, want plain", r)
	}
}

// TestReadingFrames reads and acts through frames of the same and of other sites at
// any depth (SNAP-2, ACT-1).
func TestReadingFrames(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		var other string
		inner := `<!doctype html><title>pay</title><div style="height:700px">pad</div><label>Card <input></label><button onclick="parent.postMessage('paid '+document.querySelector('input').value,'*')">Pay</button>`
		mux := http.NewServeMux()
		page := func(path string, html func() string) {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, html())
			})
		}
		page("/inner", func() string { return inner })
		page("/middle", func() string {
			return `<!doctype html><title>mid</title><p>middle</p><iframe title=deep src="` + other + `/inner" style="border:7px solid;width:300px;height:120px;padding:3px"></iframe>
<script>addEventListener('message',e=>parent.postMessage('mid '+e.data,'*'))</script>`
		})
		page("/", func() string {
			return `<!doctype html><title>top</title><div style="height:900px">above</div><iframe title=middle src="/middle" style="width:400px;height:200px;margin-left:50px"></iframe>
<iframe title=side src="` + other + `/inner" style="width:250px;height:150px;transform:scale(.8)"></iframe><iframe title=blank></iframe><iframe hidden src="/inner"></iframe>
<output id=result aria-label=result>-</output><script>addEventListener('message',e=>result.textContent=e.data)</script>`
		})
		s := serve(t, mux)
		other = at(s, "frames.test", "")
		b.open(t, at(s, "top.test", "/"))
		got := b.see(t)
		want := `- text: above
- iframe "middle" [ref]:
  - paragraph: middle
  - iframe "deep" [ref]:
    - text: pad
    - textbox "Card" [ref]
    - button "Pay" [ref]
- iframe "side" [ref]:
  - text: pad
  - textbox "Card" [ref]
  - button "Pay" [ref]
- iframe "blank" [ref]
- status "result": -
`
		plain := regexp.MustCompile(`ref=f\d+e\d+`).ReplaceAllString(got, "ref")
		if diff := cmp.Diff(want, plain); diff != "" {
			t.Fatal(diff)
		}
		deep, side, _ := strings.Cut(got[strings.Index(got, `iframe "deep"`):], `iframe "side"`)
		b.act(t, reins.Fill{Ref: refTo(t, deep, "Card"), Value: reins.TextValue("4000")})
		b.act(t, reins.Click{Ref: refTo(t, deep, "Pay")})
		b.wantResult(t, "mid paid 4000")
		b.act(t, reins.Fill{Ref: refTo(t, side, "Card"), Value: reins.TextValue("77")})
		b.act(t, reins.Press{Ref: refTo(t, side, "Pay"), Key: "Enter"})
		b.wantResult(t, "paid 77")
		if c := b.act(t, reins.Click{Ref: refTo(t, side, "Card")}).Result.Changes; c.FocusRef != refTo(t, side, "Card") {
			t.Errorf("focus went to %v %s", c.Focus, c.FocusRef)
		}
		only := b.act(t, reins.Snapshot{Ref: refTo(t, got, `"middle"`)}).Result.Snapshot.Text
		if strings.Contains(only, "above") || strings.Contains(only, "side") || !strings.Contains(only, "middle") {
			t.Errorf("a snapshot of a frame's ref reads\n%s", only)
		}
	})
}

// wantResult waits, by events of the page, until the page's result reads so.
func (b *testBrowser) wantResult(tb testing.TB, want string) {
	tb.Helper()
	b.script(tb, `new Promise((ok, no) => { const r = document.getElementById('result'), done = () => r.textContent === `+fmt.Sprintf("%q", want)+`;
  if (done()) return ok(1); new MutationObserver(() => done() && ok(1)).observe(r, {childList: true, subtree: true, characterData: true});
  setTimeout(() => no(new Error('result reads ' + r.textContent)), 3000); })`)
}

// TestRefs: the same element keeps its ref; nothing else ever gets it (SNAP-4).
func TestRefs(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><div id=box><button>Keep</button><button id=gone>Replace</button></div><output id=result aria-label=result>-</output>
<script>box.onclick=e=>result.textContent=e.target.textContent</script>`})
	b.open(t, s.URL)
	first := b.see(t)
	keep, replace := refTo(t, first, "Keep"), refTo(t, first, "Replace")
	b.script(t, `(() => { const n = document.getElementById('gone'), c = n.cloneNode(true); n.replaceWith(c); document.getElementById('box').prepend(document.createElement('button')); return 1 })()`)
	if now := refTo(t, b.see(t), "Keep"); now != keep {
		t.Errorf("the ref of an element went from %s to %s", keep, now)
	}
	for name, a := range map[string]reins.Action{
		"click": reins.Click{Ref: replace}, "fill": reins.Fill{Ref: replace, Value: reins.TextValue("x")}, "press": reins.Press{Ref: replace, Key: "Enter"},
		"type": reins.Type{Ref: replace, Text: "x"}, "snapshot": reins.Snapshot{Ref: replace}, "screenshot": reins.Screenshot{Ref: replace},
	} {
		if _, err := b.try(a); reins.CodeOf(err) != reins.CodeStaleRef {
			t.Errorf("%s on a replaced element: %v, want stale_ref", name, err)
		}
	}
	b.act(t, reins.Navigate{URL: "reload"})
	if _, err := b.try(reins.Click{Ref: keep}); reins.CodeOf(err) != reins.CodeStaleRef {
		t.Errorf("click with a ref of the page before: %v, want stale_ref", err)
	}
	if r := b.result(t); r != "-" {
		t.Errorf("something was pressed: %q", r)
	}
}

// TestSize: the budget is hard, a cursor goes on exactly (SNAP-5).
func TestSize(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": rows(400)})
	b.open(t, s.URL)
	whole := b.see(t)
	var got strings.Builder
	cursor, pieces := "", 0
	for {
		r := b.act(t, reins.Snapshot{MaxBytes: 2000, Cursor: cursor}).Result.Snapshot
		if len(r.Text) > 2000 {
			t.Fatalf("%d bytes, want at most 2000", len(r.Text))
		}
		got.WriteString(r.Text)
		pieces++
		if cursor = r.Cursor; cursor == "" {
			if r.Omitted != 0 {
				t.Errorf("the last piece leaves out %d", r.Omitted)
			}
			break
		}
		if r.Omitted == 0 {
			t.Fatal("a cut piece says that nothing is left out")
		}
	}
	if got.String() != whole || pieces < 5 {
		t.Errorf("%d pieces make %d bytes, the whole has %d", pieces, got.Len(), len(whole))
	}
}

// TestCursorOnAChangedPage goes on behind the same element and says so.
func TestCursorOnAChangedPage(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": rows(400)})
	b.open(t, s.URL)
	whole := b.see(t)
	r := b.act(t, reins.Snapshot{MaxBytes: 2000}).Result.Snapshot
	b.script(t, `document.body.prepend(Object.assign(document.createElement('button'), {textContent: 'New'})) || 1`)
	next := b.act(t, reins.Snapshot{MaxBytes: 2000, Cursor: r.Cursor})
	if !strings.Contains(strings.Join(next.Result.Notes, " "), "changed") {
		t.Errorf("notes %q do not say that the page changed", next.Result.Notes)
	}
	if !strings.HasPrefix(strings.TrimPrefix(whole, r.Text), next.Result.Snapshot.Text) {
		t.Errorf("it goes on with %.200q", next.Result.Snapshot.Text)
	}
	b.act(t, reins.Navigate{URL: "reload"})
	_, err := b.try(reins.Snapshot{Cursor: r.Cursor})
	wantCode(t, err, reins.CodeStaleRef)
	_, err = b.try(reins.Snapshot{Cursor: "s999"})
	wantCode(t, err, reins.CodeInvalidInput)
}

// TestChanges: what differs from this lease's last look, or the whole when
// that is shorter (SNAP-5, ACT-7).
func TestChanges(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": rows(200) + `<button id=tick onclick="document.getElementById('result').textContent='ticked'">Tick</button><output id=result aria-label=result>-</output>`})
	b.open(t, s.URL)
	first := b.act(t, reins.Snapshot{Changes: true}).Result.Snapshot
	if first.Changes {
		t.Error("the first look is a difference")
	}
	r := b.act(t, reins.Click{Ref: refTo(t, first.Text, "Tick"), Waits: reins.Waits{Snapshot: true}}).Result.Snapshot
	want := "~ - button \"Tick\" [active] [ref=e]\n~ - status \"result\": ticked\n"
	if got := regexp.MustCompile(`f\d+e\d+`).ReplaceAllString(r.Text, "e"); !r.Changes || got != want {
		t.Errorf("changes %v\n%s", r.Changes, got)
	}
	again := b.act(t, reins.Snapshot{Changes: true})
	if !again.Result.Snapshot.Changes || again.Result.Snapshot.Text != "" || len(again.Result.Notes) == 0 {
		t.Errorf("an unchanged page reads %q, notes %q", again.Result.Snapshot.Text, again.Result.Notes)
	}
	// Who looked for something, or at the top only, has not seen what changed.
	b.pageScript(t, b.tabNow(), `document.getElementById("result").textContent = "later"`)
	b.act(t, reins.Snapshot{Changes: true, Find: "no such thing"})
	b.act(t, reins.Snapshot{Depth: 1})
	if last := b.act(t, reins.Snapshot{Changes: true}).Result.Snapshot; !last.Changes || !strings.Contains(last.Text, "later") {
		t.Errorf("after looks at parts: changes %v\n%s", last.Changes, last.Text)
	}
	b.act(t, reins.Navigate{URL: "reload"})
	if b.act(t, reins.Snapshot{Changes: true}).Result.Snapshot.Changes {
		t.Error("another document is told as a difference")
	}
}

// TestParts: depth, interactive, find and ref (SNAP-5).
func TestParts(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><main><h1>News</h1><ul><li><a href=/1>First</a><li><a href=/2>Second</a></ul></main><nav aria-label=Foot><button>Up</button></nav>`})
	b.open(t, s.URL)
	whole := b.see(t)
	for _, c := range []struct {
		name string
		a    reins.Snapshot
		want string
	}{
		{"depth", reins.Snapshot{Depth: 1}, "- main [inside=6] [ref]\n- navigation \"Foot\" [inside=1] [ref]\n"},
		{"interactive", reins.Snapshot{Interactive: true}, "- link \"First\" [ref]:\n  - /url: /1\n- link \"Second\" [ref]:\n  - /url: /2\n- button \"Up\" [ref]\n"},
		{"find", reins.Snapshot{Find: "SECOND"}, "- main [ref]:\n  - list:\n    - listitem:\n      - link \"Second\" [ref]:\n        - /url: /2\n"},
		{"ref", reins.Snapshot{Ref: refTo(t, whole, "Foot")}, "- navigation \"Foot\" [ref]:\n  - button \"Up\" [ref]\n"},
	} {
		r := b.act(t, c.a)
		if got := regexp.MustCompile(`ref=f\d+e\d+`).ReplaceAllString(r.Result.Snapshot.Text, "ref"); got != c.want {
			t.Errorf("%s: %s", c.name, cmp.Diff(c.want, got))
		}
	}
	if r := b.act(t, reins.Snapshot{Find: "nowhere"}); r.Result.Snapshot.Text != "" || len(r.Result.Notes) == 0 {
		t.Errorf("no match reads %q, notes %q", r.Result.Snapshot.Text, r.Result.Notes)
	}
}

// TestDialogNodes: an open dialog is in the snapshot, and plain actions answer
// it (SNAP-8, ACT-8).
func TestDialogNodes(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><button onclick="result.textContent=prompt('Name?','Ada')">Ask</button><output id=result aria-label=result>-</output>`})
	b.open(t, s.URL)
	ask := refTo(t, b.see(t), "Ask")
	r := b.act(t, reins.Click{Ref: ask})
	if d := r.Result.Changes.Dialog; d == nil || d.Message != "Name?" || d.Kind != "prompt" {
		t.Fatalf("the click reports dialog %+v", d)
	}
	want := "- dialog \"Name?\" [prompt] [ref=dialog]:\n  - textbox [ref=dialog-prompt]: Ada\n  - button \"OK\" [ref=dialog-accept]\n  - button \"Cancel\" [ref=dialog-dismiss]\n"
	if got := b.see(t); got != want {
		t.Error(cmp.Diff(want, got))
	}
	for _, a := range []reins.Action{reins.Click{Ref: ask}, reins.Fill{Ref: ask, Value: reins.TextValue("x")}, reins.Press{Ref: ask, Key: "a"}, reins.Screenshot{}} {
		_, err := b.try(a)
		wantCode(t, err, reins.CodeDialogOpen)
	}
	b.act(t, reins.Fill{Ref: refDialogPrompt, Value: reins.TextValue("Grace")})
	b.act(t, reins.Click{Ref: refDialogAccept})
	b.wantResult(t, "Grace")
}
