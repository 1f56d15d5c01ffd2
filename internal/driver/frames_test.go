package driver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// outlineOf names the tab's documents by what the isolated world of each sees.
func outlineOf(tb testing.TB, tab *tab) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all, err := tab.documents(ctx)
	if err != nil {
		return err.Error()
	}
	depth := make([]int, len(all))
	var out []string
	for i, d := range all {
		if d.parent >= 0 {
			depth[i] = depth[d.parent] + 1
		}
		var title string
		if err := d.eval(ctx, "() => document.title + (typeof reins == 'object' ? '' : ' without a walker')", &title); err != nil {
			title = err.Error()
		}
		out = append(out, strings.Repeat(">", depth[i])+title)
	}
	return strings.Join(out, " ")
}

// framesSite serves pages of frames on three sites: 127.0.0.1, a.test, b.test.
func framesSite(t *testing.T) string {
	mux := http.NewServeMux()
	s := serve(t, mux)
	page := func(path, html string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, strings.NewReplacer("//A", at(s, "a.test", ""), "//B", at(s, "b.test", "")).Replace(html))
		})
	}
	page("/", `<title>Main</title><iframe src=/same name=one></iframe><iframe src=//A/cross name=two></iframe><iframe srcdoc="<title>Srcdoc</title>"></iframe><iframe name=empty></iframe>`)
	page("/same", `<title>Same</title><iframe src=/leaf></iframe>`)
	page("/cross", `<title>Cross</title><iframe src=//B/leaf></iframe><iframe src=/leaf></iframe>`)
	page("/leaf", `<title>Leaf</title>`)
	return s.URL
}

// SNAP-2: documents of all frames, whatever their process, in the order of the
// frame tree; and the same from a connection that finds them there.
func TestFrames(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		url := framesSite(t)
		b := newBrowser(t, engine)
		b.act(t, reins.Navigate{URL: url, Wait: "load"})
		tab := b.tabNow()
		const want = "Main >Same >>Leaf >Cross >>Leaf >>Leaf >Srcdoc >"
		wait := func(want string) {
			t.Helper()
			var got string
			defer func() {
				if got != want {
					t.Errorf("documents are %q, want %q", got, want)
				}
			}()
			deadline := time.After(5 * time.Second)
			for {
				if got = outlineOf(t, tab); got == want {
					return
				}
				select {
				case <-deadline:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		wait(want)
		// A frame that goes to another site keeps its place, and comes back.
		b.pageScript(t, tab, fmt.Sprintf(`document.querySelector("[name=one]").src = %q`, strings.Replace(url, "127.0.0.1", "b.test", 1)+"/leaf"))
		wait("Main >Leaf >Cross >>Leaf >>Leaf >Srcdoc >")
		b.pageScript(t, tab, `document.querySelector("[name=one]").src = "/same"`)
		wait(want)
		b.pageScript(t, tab, `document.querySelector("[name=two]").remove()`)
		wait("Main >Same >>Leaf >Srcdoc >")
		b.pageScript(t, tab, fmt.Sprintf(`(f => { f.name = "two"; f.src = %q; document.body.append(f) })(document.createElement("iframe"))`, strings.Replace(url, "127.0.0.1", "a.test", 1)+"/cross"))
		wait("Main >Same >>Leaf >Srcdoc > >Cross >>Leaf >>Leaf")
		// The whole tab goes to another site and comes back.
		b.open(t, strings.Replace(url, "127.0.0.1", "a.test", 1)+"/cross")
		wait("Cross >Leaf >Leaf")
		b.open(t, "back")
		// Kept whole by the browser, it comes back with the frames of other
		// processes first: their elements say where they belong.
		var back string
		waitFor(t, "all frames are back", func() bool {
			back = outlineOf(t, tab)
			return back == want || back == "Main >Cross >>Leaf >>Leaf >Same >>Leaf >Srcdoc >"
		})
		b.close()
		s := b.chromium.settings()
		s.Engine, s.Connection = engine, 2
		b2 := connectTo(t, b.chromium, s, b.told())
		tab = b2.tabNow()
		waitFor(t, "the next driver sees all frames", func() bool {
			return len(strings.Split(outlineOf(t, tab), " ")) == 8
		})
	})
}

// SNAP-4: a document that was replaced cannot be mistaken for the next one.
func TestDocumentsAreReplaced(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title>`, "/two": `<title>Two</title>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		tab := b.tabNow()
		seen := map[int]bool{}
		for i, way := range []string{"reload", s.URL + "/two", "back", "forward", s.URL, "back"} {
			d, err := tab.document(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if seen[d.number] {
				t.Errorf("%d: document %d again", i, d.number)
			}
			seen[d.number] = true
			failed := make(chan error, 1)
			go func() { failed <- d.eval(t.Context(), "() => new Promise(() => {})", nil) }()
			b.open(t, way)
			if err := <-failed; !errors.Is(err, errReplaced) {
				t.Errorf("%d: what waited on the document got %v", i, err)
			}
			if err := d.eval(t.Context(), "() => 1", nil); !errors.Is(err, errReplaced) {
				t.Errorf("%d: the old document evaluates with %v", i, err)
			}
			if d.current() {
				t.Errorf("%d: the old document is current", i)
			}
			_, _, err = b.element(elementRef(d.number, 1))
			wantCode(t, err, reins.CodeStaleRef)
		}
		// A change of address inside the document keeps it.
		d, _ := tab.document(t.Context())
		r := b.open(t, tab.info().URL+"#part")
		if !d.current() || !strings.HasSuffix(r.Result.Navigation.URL, "#part") || !r.Result.Navigation.Waited {
			t.Errorf("a fragment replaced the document: %+v", r.Result.Navigation)
		}
	})
}

// An evaluation reports what the page threw, and ends with its frame.
func TestEval(t *testing.T) {
	url := framesSite(t)
	b := newBrowser(t, reins.EngineShell)
	b.act(t, reins.Navigate{URL: url, Wait: "load"})
	tab := b.tabNow()
	d, err := tab.document(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = d.eval(t.Context(), `() => { throw new Error("no <b>way") }`, nil)
	wantCode(t, err, reins.CodeToolFailed)
	if !strings.Contains(err.Error(), `"Error: no <b>way`) {
		t.Errorf("the page's words are not quoted: %v", err)
	}
	h, err := d.evalHandle(t.Context(), "() => document.body")
	if err != nil {
		t.Fatal(err)
	}
	var tag string
	if err := d.eval(t.Context(), "(el, more) => el.tagName + more", &tag, h, "\xff!"); err != nil || tag != "BODY\ufffd!" {
		t.Errorf("got %q, %v", tag, err)
	}
	var two *frame
	b.eventually(t, "the frame of another site", func() bool {
		for _, f := range tab.frames {
			if f.name == "two" && f.doc != nil && f.session != tab.session {
				two = f
			}
		}
		return two != nil
	})
	node, err := two.owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h, err = d.resolve(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := d.eval(t.Context(), "el => el.name", &tag, h); err != nil || tag != "two" {
		t.Errorf("the frame's element is %q, %v", tag, err)
	}
	failed := make(chan error, 1)
	go func() { failed <- two.doc.eval(t.Context(), "() => new Promise(() => {})", nil) }()
	b.pageScript(t, tab, `document.querySelector("[name=two]").remove()`)
	if err := <-failed; !errors.Is(err, errReplaced) {
		t.Errorf("what waited on a frame that was removed got %v", err)
	}
}
