package driver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// settleSite serves pages whose buttons set things off, and what they fetch.
func settleSite(tb testing.TB) string {
	mux := http.NewServeMux()
	html := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><title>t</title>"+logPart+body)
		})
	}
	slow := func(path string, wait time.Duration) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
				fmt.Fprint(w, "<!doctype html><title>slow</title>done")
			case <-r.Context().Done():
			}
		})
	}
	slow("/slow", 300*time.Millisecond)
	slow("/poll", 20*time.Millisecond)
	slow("/never", time.Hour)
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/nothing", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	html("/", `<button onclick="fetch('/slow').then(r=>r.text()).then(say)">Fetch</button>
<button onclick="fetch('/slow').then(()=>fetch('/slow?2')).then(r=>r.text()).then(t=>{requestAnimationFrame(()=>say('chained '+t))})">Chain</button>
<button onclick="say('dom')">Dom</button><button onclick="new EventSource('/stream').onmessage=()=>say('streams')">Stream</button>
<button onclick="fetch('/stream').then(()=>say('open'))">Body</button><button onclick="fetch('/never')">Never</button><a href="/slow">Leave</a>
<a href="/nothing">Nothing</a><button onclick="document.body.setAttribute('aria-busy','true');setTimeout(()=>{document.body.removeAttribute('aria-busy');say('rested')},300)">Busy</button>
<form action="/slow"><button>Submit</button></form>`)
	html("/polling", `<button onclick="say('polled on')">Act</button><script>let n=0;setInterval(()=>fetch('/poll?'+n++).then(()=>{document.title='polls '+n}),30)</script>`)
	return serve(tb, mux).URL
}

// TestSettling: the call returns when what the input set off is there, and is
// not held by pages that poll or stream (ACT-6).
func TestSettling(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	url := settleSite(t)
	for _, c := range []struct {
		button, want string
		least        time.Duration
		settled      bool          // and so not held until the bound
		settle       time.Duration // bound; the default when 0
	}{
		{"Fetch", "done", 300 * time.Millisecond, true, 0},
		{"Chain", "chained", 600 * time.Millisecond, true, 0},
		{"Dom", "dom", 0, true, 0},
		{"Stream", "", 0, true, 0},
		{"Body", "open", 0, true, 0},
		{"Never", "-", 400 * time.Millisecond, false, 400 * time.Millisecond},
		{"Nothing", "-", 0, true, 0},
		{"Busy", "rested", 300 * time.Millisecond, true, 0},
	} {
		t.Run(c.button, func(t *testing.T) {
			b.open(t, url)
			a := reins.Click{Ref: refTo(t, b.see(t), c.button)}
			if c.settle > 0 {
				d := reins.Duration(c.settle)
				a.Settle = &d
			}
			began := time.Now()
			got := b.act(t, a).Result.Changes
			took := time.Since(began)
			if took < c.least || got.Settled != c.settled {
				t.Errorf("took %v, settled %v, pending %d", took, got.Settled, got.Pending)
			}
			if r := b.result(t); !strings.Contains(r, c.want) {
				t.Errorf("the page says %q, want %q", r, c.want)
			}
			if !c.settled && got.Pending != 1 {
				t.Errorf("pending %d, want 1", got.Pending)
			}
		})
	}
}

// TestSettlingNavigation: a navigation has committed and parsed (ACT-6).
func TestSettlingNavigation(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	url := settleSite(t)
	for _, button := range []string{"Leave", "Submit"} {
		b.open(t, url)
		r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), button), Waits: reins.Waits{Snapshot: true}}).Result
		if !r.Changes.Navigated || !strings.HasPrefix(r.Changes.URL, url+"/slow") || r.Changes.Title != "slow" || !r.Changes.Settled {
			t.Errorf("%s: changes %+v", button, r.Changes)
		}
		if r.Snapshot == nil || !strings.Contains(r.Snapshot.Text, "done") || r.Snapshot.Changes {
			t.Errorf("%s: snapshot %+v", button, r.Snapshot)
		}
	}
}

// TestFirstLook waits for what a page fetches as it loads (SNAP-2), and not for
// what it does for ever.
func TestFirstLook(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	mux := http.NewServeMux()
	mux.HandleFunc("/rows", func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(200 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		fmt.Fprint(w, "row one")
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>t</title><p id=p>loading</p><script>new EventSource('/stream');fetch('/stream');fetch('/rows').then(r=>r.text()).then(t=>fetch('/rows')).then(r=>r.text()).then(t=>{p.textContent=t})</script>`)
	})
	b.open(t, serve(t, mux).URL)
	began := time.Now()
	if got := b.see(t); !strings.Contains(got, "row one") {
		t.Errorf("after %v it reads\n%s", time.Since(began), got)
	}
}

// TestSettlingDownload: a link that turns out to be a file is reported with it
// (ACT-7, NAV-4).
func TestSettlingDownload(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	mux := http.NewServeMux()
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="receipt.txt"`)
		fmt.Fprint(w, "paid")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>t</title><a href="/file">Receipt</a>`)
	})
	b.open(t, serve(t, mux).URL)
	ref := refTo(t, b.see(t), "Receipt")
	for range 5 {
		c := b.act(t, reins.Click{Ref: ref}).Result.Changes
		if len(c.Downloads) != 1 || c.Downloads[0].Name != "receipt.txt" || c.Navigated {
			t.Errorf("changes %+v", c)
		}
	}
}

// TestPollingHoldsNothing (ACT-6).
func TestPollingHoldsNothing(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	b.open(t, settleSite(t)+"/polling")
	ref := refTo(t, b.see(t), "Act")
	b.act(t, reins.Click{Ref: ref}) // from here on it is listened to
	b.script(t, `new Promise(ok => { const n0 = +document.title.split(' ')[1] || 0, look = () => +document.title.split(' ')[1] > n0 + 4 ? ok(1) : requestAnimationFrame(look); look(); })`)
	for range 5 {
		if c := b.act(t, reins.Click{Ref: ref}).Result.Changes; !c.Settled {
			t.Errorf("changes %+v", c)
		}
	}
}

// TestScrolledPages: what a page fetches as its end comes into view is waited
// for, each time it does, though it asks for the same thing each time (ACT-6).
func TestScrolledPages(t *testing.T) {
	mux := http.NewServeMux()
	const rounds = 6
	page := func(path, script string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>t</title><button onclick="more()" style="position:fixed;top:0">Load</button><div style="height:3000px"></div><ul id=list></ul><p id=end>End</p><script>
const more = () => fetch('/more').then(r => r.text()).then(() => { const i = document.createElement('li'); i.style.height = '2000px'; i.textContent = 'entry'; list.append(i) });
`+script+`</script>`)
		})
	}
	page("/seen", `const o = new IntersectionObserver(e => { if (e[0].isIntersecting) more().then(() => { o.disconnect(); o.observe(end) }) }); o.observe(end)`)
	page("/late", `let timer = 0; onscroll = () => { clearTimeout(timer); timer = setTimeout(more, 100) }`)
	mux.HandleFunc("/more", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(80 * time.Millisecond):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "more")
	})
	url := serve(t, mux).URL
	eachEngine(t, func(t *testing.T, e reins.Engine) {
		b := newBrowser(t, e)
		b.open(t, url+"/seen")
		for n := 1; n <= rounds; n++ {
			b.act(t, reins.Press{Key: "End"})
			if got := strings.Count(b.see(t), "listitem"); got != n {
				t.Fatalf("after %d scrolls there are %d entries, want as many", n, got)
			}
		}
		// What a page asks for some time after it was scrolled is not asked for
		// by itself either: a later click that asks for it waits for it.
		b.open(t, url+"/late")
		for n := range habitAfter + 1 {
			b.act(t, reins.Press{Key: "End"})
			b.script(t, fmt.Sprintf(`new Promise(ok => { const look = () => document.querySelectorAll('li').length > %d ? ok(1) : requestAnimationFrame(look); look(); })`, n))
		}
		entries := strings.Count(b.see(t), "listitem")
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Load")})
		if got := strings.Count(b.see(t), "listitem"); got <= entries {
			t.Errorf("the click did not wait for what it asked for: %d entries, %d before", got, entries)
		}
	})
}

// TestOldView: a page that changes its address first and its contents later is
// told apart (ACT-7).
func TestOldView(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><main id=m>Home</main><button onclick="history.pushState(0,'','?late');setTimeout(()=>m.textContent='Late',900)">Late</button>
<button onclick="history.pushState(0,'','?soon');m.textContent='Soon'">Soon</button>`})
	b.open(t, s.URL)
	see := b.see(t)
	for button, want := range map[string]bool{"Late": true, "Soon": false} {
		r := b.act(t, reins.Click{Ref: refTo(t, see, button)}).Result
		if told := strings.Contains(strings.Join(r.Notes, " "), "old view"); told != want || r.Changes.URL == "" {
			t.Errorf("%s: %+v, notes %q", button, r.Changes, r.Notes)
		}
	}
}

// TestBusyPage: a page that never yields does not hold an action for longer
// than its bounds (ACT-6).
func TestBusyPage(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><button onclick="for(const t=Date.now();Date.now()-t<2500;);">Spin</button><input aria-label=In onkeydown="for(const t=Date.now();Date.now()-t<2500;);">`})
	settle := reins.Duration(300 * time.Millisecond)
	for _, a := range []func(see string) reins.Action{
		func(see string) reins.Action {
			return reins.Click{Ref: refTo(t, see, "Spin"), Waits: reins.Waits{Settle: &settle, Snapshot: true}}
		},
		func(see string) reins.Action {
			return reins.Press{Ref: refTo(t, see, "In"), Key: "a", Waits: reins.Waits{Settle: &settle}}
		},
	} {
		b.open(t, s.URL)
		act := a(b.see(t))
		r := b.act(t, act).Result
		if r.Changes.Settled || len(r.Notes) == 0 {
			t.Errorf("%s: %+v, notes %q", act.Verb(), r.Changes, r.Notes)
		}
	}
}
