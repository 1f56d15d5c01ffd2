package driver

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// outcomes are cases about what an action sets off (ACT-6 to ACT-9, TAB, NAV).
var outcomes = []aCase{
	{"B045 tabs that a press opens", map[string]string{"/": `<title>Parent</title><a href="child?link" target=_blank>By link</a> <a href="child?alone" target=_blank rel=noopener>Alone</a> <button onclick="go('script')">By script</button> <button onclick="go('one');go('two')">Two</button> <button onclick="setTimeout(()=>go('late'),700)">Later</button><script>const go=n=>open('child?'+n)</script>`,
		"/child": `<title>Child</title><h1>Child</h1>`}, func(s *scene) {
		home := s.tabNow().id
		for _, c := range []struct {
			name string
			tabs int
		}{{"By link", 1}, {"Alone", 1}, {"By script", 1}, {"Two", 2}} {
			r := s.press(c.name).Result
			if n := len(r.Changes.OpenedTabs); n != c.tabs || r.Selected != r.Changes.OpenedTabs[n-1].ID || !strings.Contains(r.Changes.OpenedTabs[0].URL, "/child?") {
				s.Fatalf("%s: opened %+v, selected %s", c.name, r.Changes.OpenedTabs, r.Selected)
			}
			if see := s.see(s.T); !strings.Contains(see, `heading "Child"`) {
				s.Errorf("%s: the next call reads\n%s", c.name, see)
			}
			for _, o := range r.Changes.OpenedTabs {
				s.act(s.T, reins.CloseTab{Tab: o.ID})
			}
			s.act(s.T, reins.SelectTab{Tab: home})
		}
		if r := s.press("Later").Result; len(r.Changes.OpenedTabs) != 0 || r.Selected != home {
			s.Errorf("later: %+v", r)
		}
		s.eventually(s.T, "the late tab", func() bool { return len(s.tabs) == 2 })
		r := s.listTabs(context.Background()).Result
		if r.Selected != home {
			s.Errorf("a tab of a timer was selected: %+v", r)
		}
		s.act(s.T, reins.CloseTab{Tab: r.Tabs[1].ID})
	}},
	{"B047 native dialogs", map[string]string{"/": logPart + `<button onclick="alert('Note');say('closed')">Tell</button><button onclick="say('confirm '+confirm('Drop it?'))">Ask</button><button onclick="say('prompt '+prompt('Who?','none'))">Name</button><button onclick="f.requestSubmit()">Send</button><form id=f onsubmit="return confirm('Send it?')"><input type=hidden name=x value=1></form>`}, func(s *scene) {
		home := s.tabNow().id
		for _, c := range []struct{ press, kind, text, answer, want string }{
			{"Tell", "alert", "Note", "dialog-accept", "closed"}, {"Ask", "confirm", "Drop it?", "dialog-dismiss", "confirm false"}, {"Name", "prompt", "Who?", "dialog-accept", "prompt Bo"}, {"Send", "confirm", "Send it?", "dialog-accept", "-"},
		} {
			began := time.Now()
			d := s.press(c.press).Result.Changes.Dialog
			if d == nil || d.Kind != c.kind || d.Message != c.text || time.Since(began) > soon {
				s.Fatalf("%s: after %s the dialog is %+v", c.press, time.Since(began), d)
			}
			other := s.act(s.T, reins.OpenTab{URL: s.site + "/"}).Result.Tab.ID // works meanwhile
			s.act(s.T, reins.CloseTab{Tab: other})
			s.act(s.T, reins.SelectTab{Tab: home})
			if c.kind == "prompt" {
				s.act(s.T, reins.Fill{Ref: "dialog-prompt", Value: textOf("Bo")})
			}
			s.act(s.T, reins.Click{Ref: reins.Ref(c.answer)})
			s.says(c.want)
		}
		if url := s.tabNow().info().URL; !strings.HasSuffix(url, "?x=1") {
			s.Errorf("the form led to %s", url)
		}
	}},
	{"B048 a dialog while parsing", map[string]string{"/": `<p>x`, "/asks": `<script>alert('Closed tonight')</script><h1>After it</h1><script>document.title='parsed'</script>`}, func(s *scene) {
		began := time.Now()
		r := s.visit("/asks").Result
		if d := r.Changes.Dialog; d == nil || d.Message != "Closed tonight" || time.Since(began) > soon {
			s.Fatalf("after %s: %+v", time.Since(began), r.Changes)
		}
		s.act(s.T, reins.Click{Ref: "dialog-accept"})
		if see := s.see(s.T); !strings.Contains(see, "After it") {
			s.Errorf("it reads\n%s", see)
		}
	}},
	{"B050 leaving with a question", map[string]string{"/": logPart + `<button onclick="dirty=1;say('dirty')">Edit</button><a href="other">Go</a><script>let dirty=0;addEventListener('beforeunload',e=>{if(dirty){e.preventDefault();e.returnValue='x'}})</script>`, "/other": `<title>Other</title>`}, func(s *scene) {
		for _, leave := range []reins.Action{reins.Navigate{URL: s.site + "/other"}, reins.CloseTab{}} {
			s.act(s.T, reins.OpenTab{URL: s.site + "/"})
			s.press("Edit")
			began := time.Now()
			r := s.act(s.T, leave).Result
			if !strings.Contains(fmt.Sprint(r.Notes), "asked whether to leave") || time.Since(began) > soon {
				s.Errorf("%s after %s with notes %q", leave.Verb(), time.Since(began), r.Notes)
			}
		}
		s.visit("/")
		s.press("Edit")
		d := s.press("Go").Result.Changes.Dialog // not our own way of leaving: it is asked
		if d == nil || d.Kind != "beforeunload" {
			s.Fatalf("the question is told as %+v", d)
		}
		s.act(s.T, reins.Click{Ref: "dialog-dismiss"})
		s.says("dirty")
		s.press("Go")
		if r := s.act(s.T, reins.Click{Ref: "dialog-accept"}).Result; !strings.HasSuffix(r.Tab.URL, "/other") {
			s.Errorf("after the answer: %+v", r.Tab)
		}
	}},
	{"B055 a view that changes late", map[string]string{"/": `<title>home</title><nav><a href="?v=list">List</a></nav><main id=m><h1>Home</h1></main><script>document.querySelector('a').onclick=e=>{e.preventDefault();history.pushState(0,'','?v=list');m.setAttribute('aria-busy','true');
setTimeout(()=>{m.innerHTML='<h1>All of them</h1>';m.removeAttribute('aria-busy');setTimeout(()=>document.title='list',100)},600)}</script>`}, func(s *scene) {
		r := s.press("List").Result
		if !strings.HasSuffix(r.Changes.URL, "?v=list") {
			s.Errorf("changes %+v", r.Changes)
		}
		r = s.act(s.T, reins.Snapshot{}).Result
		if !strings.Contains(r.Snapshot.Text, "All of them") && !strings.Contains(fmt.Sprint(r.Notes), "busy") {
			s.Errorf("notes %q, it reads\n%s", r.Notes, r.Snapshot.Text)
		}
	}},
	{"B056 a page that replaces itself", map[string]string{"/": `<p>x`, "/hop": `<h1 id=h>Hop</h1><script>const n=+(new URLSearchParams(location.search).get('n')||0);if(n<6)setTimeout(()=>location.replace('hop?n='+(n+1)),100);else{document.title='there';h.textContent='There'}</script>`}, func(s *scene) {
		s.visit("/hop")
		for range 12 {
			r, err := s.try(reins.Snapshot{})
			if err != nil {
				if !strings.Contains(err.Error(), "another page") {
					s.Fatalf("a snapshot fails with %v", err)
				}
				continue
			}
			if strings.Contains(r.Result.Snapshot.Text, "There") {
				break
			}
		}
		s.eventually(s.T, "the last of them", func() bool { return strings.HasSuffix(s.selected.url, "n=6") && s.selected.main.phase == phaseLoaded })
		if see := s.see(s.T); !strings.Contains(see, "There") {
			s.Errorf("it reads\n%s", see)
		}
	}},
	{"B060 permissions", map[string]string{"/": logPart + `<button onclick="at=performance.now();navigator.geolocation.getCurrentPosition(()=>say('given'),e=>tell('place '+e.code))">Where</button><button onclick="at=performance.now();Notification.requestPermission().then(p=>tell('notify '+p))">Notify</button><button onclick="at=performance.now();navigator.mediaDevices.getUserMedia({audio:true}).then(()=>say('given'),e=>tell('mic'))">Listen</button><button onclick="at=performance.now();navigator.clipboard.readText().then(()=>say('given'),e=>tell('clip'))">Paste</button>
<script>let at;const tell=w=>say(w+(performance.now()-at<2000?'':' late'))</script>`}, func(s *scene) {
		for _, c := range [][2]string{{"Where", "place 1"}, {"Notify", "notify denied"}, {"Listen", "mic"}, {"Paste", "clip"}} {
			s.press(c[0])
			s.act(s.T, reins.WaitFor{Text: c[1]})
			s.says(c[1])
		}
	}},
	{"B070 a page that never yields", map[string]string{"/": logPart + `<button onclick="setTimeout(()=>{for(;;);},50)">Spin</button>`, "/free": `<button>Free</button>`}, func(s *scene) {
		stuck := s.act(s.T, reins.OpenTab{URL: s.site + "/"}).Result.Tab.ID
		s.press("Spin")
		s.act(s.T, reins.OpenTab{URL: strings.Replace(s.site, "127.0.0.1", "free.test", 1) + "/free"})
		for _, a := range []reins.Action{reins.Snapshot{Tab: stuck}, reins.Screenshot{Tab: stuck}} {
			began := time.Now()
			_, err := s.try(a)
			wantCode(s.T, err, reins.CodeTimeout)
			if took := time.Since(began); took > 18*time.Second {
				s.Errorf("%s took %s", a.Verb(), took)
			}
			began = time.Now()
			s.press("Free")
			if took := time.Since(began); took > soon {
				s.Errorf("the other tab took %s", took)
			}
		}
		began := time.Now()
		s.act(s.T, reins.CloseTab{Tab: stuck})
		if took := time.Since(began); took > 5*time.Second {
			s.Errorf("closing took %s", took)
		}
	}},
	{"B090 a tab that is not in front", map[string]string{"/": logPart + `<h1 id=n style="font:90px monospace">0</h1><script>let i=0;setInterval(()=>{n.textContent=++i},150);document.addEventListener('visibilitychange',()=>say(document.visibilityState))</script>`}, func(s *scene) {
		behind := s.tabNow().id
		front := s.act(s.T, reins.OpenTab{}).Result.Tab.ID
		pictures := map[string]bool{}
		for range 20 {
			began := time.Now()
			r := s.act(s.T, reins.Screenshot{Tab: behind})
			pictures[string(r.Picture.Data)] = true
			if s.act(s.T, reins.Snapshot{Tab: behind}); r.Result.Selected != front || time.Since(began) > 3*soon {
				s.Errorf("after %s, selected is %s", time.Since(began), r.Result.Selected)
			}
		}
		if len(pictures) < 3 {
			s.Errorf("20 pictures of a page that counts show %d states", len(pictures))
		}
		s.act(s.T, reins.CloseTab{Tab: front})
		s.says("-")
	}},
	{"B116 a tall and grainy page", map[string]string{"/": `<style>body{margin:0;width:1200px}div{height:400px}</style><script>
const c=document.createElement('canvas');c.width=c.height=256;const x=c.getContext('2d'),d=x.createImageData(256,256);for(let i=0;i<d.data.length;i++)d.data[i]=i%4===3?255:150+Math.random()*90;x.putImageData(d,0,0);document.write('<body>');document.body.style.background='url('+c.toDataURL()+')';for(let i=1;i<=60;i++)document.write('<div>band '+i+'</div>')</script>`}, func(s *scene) {
		r := s.act(s.T, reins.Screenshot{FullPage: true, Image: true})
		p := r.Picture
		config, _, err := image.DecodeConfig(bytes.NewReader(p.Model))
		if err != nil || len(p.Model) > modelBytes || max(config.Width, config.Height) > modelSide || !p.Scaled || !strings.Contains(fmt.Sprint(r.Result.Notes), "scaled") {
			s.Errorf("the model gets %d bytes of %+v (%v), scaled %v, notes %q", len(p.Model), config, err, p.Scaled, r.Result.Notes)
		}
	}},
}

// TestOutcomeCases walks through them.
func TestOutcomeCases(t *testing.T) { walkThrough(t, outcomes) }

func writeFile(tb testing.TB, path string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// dripping serves pages that never finish.
func dripping(tb testing.TB) string {
	mux := http.NewServeMux()
	wait := func(r *http.Request, d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><title>endless</title>"+body)
		})
	}
	const button = `<h1>Here</h1><button onclick="this.textContent='pressed'">Press</button>`
	page("/img", button+`<img src="/hang" alt=slow>`)
	page("/style", `<link rel=stylesheet href="/hang">`+button)
	page("/sse", button+`<p id=p></p><script>new EventSource('/events').onmessage=e=>{p.textContent=e.data}</script>`)
	page("/poll", button+`<p id=p></p><script>let n=0;setInterval(()=>fetch('/pong').then(()=>{p.textContent=++n}),150)</script>`)
	mux.HandleFunc("/pong", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			wait(r, 300*time.Millisecond)
		}
	})
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><title>endless</title>"+button+"%2000s", " ")
		for r.Context().Err() == nil {
			fmt.Fprint(w, ".")
			w.(http.Flusher).Flush()
			wait(r, 500*time.Millisecond)
		}
	})
	mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) { wait(r, time.Hour) })
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	return serve(tb, mux).URL
}

// B053: a page that never finishes can be read and used in a few seconds; one
// that never answers ends at its limit, and can be cancelled (NAV-1, ACT-6).
func TestPagesWithoutEnd(t *testing.T) {
	url := dripping(t)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, path := range []string{"/img", "/sse", "/poll", "/drip"} {
			began := time.Now()
			r := b.open(t, url+path)
			b.see(t)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: it can be read after %s: %+v", path, took, r.Result.Navigation)
			}
			began = time.Now()
			b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Press"`)})
			if see := b.see(t); !strings.Contains(see, `button "pressed"`) || time.Since(began) > 8*time.Second {
				t.Errorf("%s: after %s it reads\n%s", path, time.Since(began), see)
			}
		}
		began := time.Now()
		_, err := b.try(reins.Navigate{URL: url + "/hang", Timeout: reins.Duration(time.Second)})
		wantCode(t, err, reins.CodeTimeout)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("its limit took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := b.do(ctx, Command{Action: reins.Navigate{URL: url + "/hang"}, Lease: "lease"})
			failed <- err
		}()
		b.eventually(t, "the navigation", func() bool { return b.selected.leaving > 0 })
		cancel()
		wantCode(t, <-failed, reins.CodeCancelled)
		_, err = b.try(reins.Navigate{URL: url + "/loop"})
		wantCode(t, err, reins.CodeNavigationFailed)
		b.open(t, url+"/poll")
	})
}
