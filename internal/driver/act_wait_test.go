package driver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// waitSite has pages on which things happen 300 ms after a press of "Go".
func waitSite(tb testing.TB) string {
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>t</title><script>const later=f=>setTimeout(f,300)</script>`+body)
		})
	}
	page("/text", `<button onclick="later(()=>out.append('Order  done'))">Go</button><p id=out></p>`)
	page("/class", `<style>.off{display:none}</style><button onclick="later(()=>out.className='')">Go</button><p id=out class=off>Order done</p>`)
	page("/css", `<style>#out{visibility:hidden;transition:visibility 0s .3s}.on #out{visibility:visible}</style><button onclick="document.body.className='on'">Go</button><p id=out>Order done</p>`)
	page("/shadow", `<button onclick="later(()=>root.append('Order done'))">Go</button><div id=host></div><script>const root=host.attachShadow({mode:'open'})</script>`)
	page("/name", `<button onclick="later(()=>b.setAttribute('aria-label','Order done'))">Go</button><button id=b>x</button>`)
	page("/value", `<button onclick="later(()=>{i.value='Order done';i.dispatchEvent(new Event('input'))})">Go</button><input id=i>`)
	page("/frame", `<button onclick="later(()=>f.srcdoc='Order done')">Go</button><iframe id=f></iframe>`)
	page("/next", `<button onclick="later(()=>location='/text2')">Go</button>`)
	page("/text2", `<p>Order done`)
	page("/gone", `<button onclick="later(()=>out.remove())">Go</button><p id=out>Working</p><iframe srcdoc="<p id=x>Working</p><script>parent.document.querySelector('button').addEventListener('click',()=>setTimeout(()=>x.remove(),500))</script>"></iframe>`)
	page("/url", `<button onclick="later(()=>history.pushState(0,'','/url?step=2'))">Go</button>`)
	page("/states", `<button onclick="later(()=>{b.disabled=false;c.checked=true;c.dispatchEvent(new Event('change'));h.hidden=true;v.hidden=false})">Go</button>
<button id=b disabled>Off</button><input type=checkbox id=c aria-label=Box><p id=h tabindex=0>Here</p><div style="height:50px" tabindex=0 aria-label=Around><p id=v hidden>There</p></div>`)
	page("/idle", `<button onclick="setTimeout(()=>fetch('/slow').then(()=>fetch('/slow')).then(()=>out.append('loaded')),0)">Go</button><p id=out></p><img src="/slow.png">`)
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(300 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		fmt.Fprint(w, "ok")
	})
	mux.HandleFunc("/never", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	page("/hangs", `<script>fetch('/never')</script>`)
	return serve(tb, mux).URL
}

// TestWaitFor: it ends soon after what was waited for is there, by whatever way
// that came, and not before (MCP-3).
func TestWaitFor(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		url := waitSite(t)
		done := reins.WaitFor{Text: "order DONE"}
		for _, c := range []struct {
			path, ref string
			a         reins.WaitFor
		}{
			{"/text", "", done}, {"/class", "", done}, {"/css", "", done}, {"/shadow", "", done}, {"/name", "", done},
			{"/value", "", done}, {"/frame", "", done}, {"/next", "", done},
			{"/gone", "", reins.WaitFor{Gone: "Working"}},
			{"/url", "", reins.WaitFor{URL: "step=2"}},
			{"/states", `"Off"`, reins.WaitFor{State: "enabled"}},
			{"/states", `"Box"`, reins.WaitFor{State: "checked"}},
			{"/states", `Here`, reins.WaitFor{State: "hidden"}},
			{"/idle", "", reins.WaitFor{Idle: true}},
		} {
			b.open(t, url+c.path)
			see := b.see(t)
			if c.ref != "" {
				c.a.Ref = refTo(t, see, c.ref)
			}
			zero := reins.Duration(0)
			b.act(t, reins.Click{Ref: refTo(t, see, `"Go"`), Waits: reins.Waits{Settle: &zero}})
			began := time.Now()
			c.a.Snapshot = true
			r := b.act(t, c.a).Result
			if took := time.Since(began); took > 3*time.Second || took < 100*time.Millisecond {
				t.Errorf("%s %+v took %v", c.path, c.a, took)
			}
			if c.a.Text != "" && !strings.Contains(r.Snapshot.Text, "Order done") || c.a.Idle && !strings.Contains(r.Snapshot.Text, "loaded") {
				t.Errorf("%s: not there yet:\n%s", c.path, r.Snapshot.Text)
			}
			if c.a.Gone != "" && strings.Contains(b.see(t), "Working") {
				t.Errorf("%s: not gone", c.path)
			}
		}
	})
}

// TestWaitForTimeout: what does not come is a timeout that names it; nothing of
// the wait is left in the page.
func TestWaitForTimeout(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	url := waitSite(t)
	b.open(t, url+"/states")
	off := refTo(t, b.see(t), `"Off"`)
	short := reins.Duration(300 * time.Millisecond)
	for _, c := range []struct {
		a    reins.WaitFor
		says string
	}{
		{reins.WaitFor{Text: "Never shown"}, `text "Never shown" did not appear within 300ms`},
		{reins.WaitFor{Text: "button"}, "did not appear"}, // a role is no text
		{reins.WaitFor{Gone: "Here"}, `text "Here" did not go`},
		{reins.WaitFor{URL: "step=9"}, `to hold "step=9"`},
		{reins.WaitFor{Ref: off, State: "enabled"}, "did not become enabled"},
	} {
		c.a.Timeout = short
		began := time.Now()
		_, err := b.try(c.a)
		wantCode(t, err, reins.CodeTimeout)
		if err == nil || !strings.Contains(err.Error(), c.says) || time.Since(began) > 2*time.Second {
			t.Errorf("%+v: %v after %v", c.a, err, time.Since(began))
		}
	}
	b.script(t, "0")
	b.open(t, url+"/hangs")
	_, err := b.try(reins.WaitFor{Idle: true, Timeout: short})
	wantCode(t, err, reins.CodeTimeout)
	if err == nil || !strings.Contains(err.Error(), "open requests: 1") {
		t.Errorf("idle: %v", err)
	}
}

// TestWaitForInterrupted: a dialog ends the wait, and so does the caller.
func TestWaitForInterrupted(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><button onclick="setTimeout(()=>alert('Now'),300)">Go</button>`})
	b.open(t, s.URL)
	go_ := refTo(t, b.see(t), `"Go"`)
	b.act(t, reins.Click{Ref: go_})
	_, err := b.try(reins.WaitFor{Text: "Never"})
	wantCode(t, err, reins.CodeDialogOpen)
	b.act(t, reins.Click{Ref: "dialog-accept"})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = b.do(ctx, Command{Action: reins.WaitFor{Text: "Never"}})
	wantCode(t, err, reins.CodeTimeout)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v to stop", took)
	}
}
