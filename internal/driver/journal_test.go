package driver

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// textsOf are the messages of a console log, as "level text".
func textsOf(l *reins.ConsoleLog) []string {
	var out []string
	for _, m := range l.Messages {
		out = append(out, m.Level+" "+m.Text)
	}
	return out
}

// TestConsole: what the page wrote, threw and was told by the browser, by
// level, once for each lease (MCP-3).
func TestConsole(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{
			"/{$}": `<!doctype html><title>t</title><button onclick="null.x">Throw</button><button onclick="for(let i=0;i<600;i++)console.error('e'+i)">Flood</button><script>
console.log('plain %s and %d%%', 'text', 7, {a: 1, b: 'x'}, [1, 2]);console.debug('quiet');console.warn('careful');
console.error('bad', new TypeError('wrong'));for(let i=0;i<3;i++)console.info('again');console.assert(1>2,'not so');
</script><script src="/missing.js"></script><iframe srcdoc="<script>console.log('from inside')</script>"></iframe>`,
			"/two": `<!doctype html><title>two</title><script>console.warn('second page')</script>`,
		})
		b.open(t, s.URL)
		b.act(t, reins.WaitFor{Idle: true})
		got := textsOf(b.act(t, reins.Console{Level: "debug"}).Result.Console)
		all := strings.Join(got, "\n")
		for _, want := range []string{
			"info plain text and 7% {a: 1, b: \"x\"} [1, 2]", "debug quiet", "warning careful", "error bad TypeError: wrong",
			"info again", "error not so", "error Failed to load resource", "info from inside",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
		if got := b.act(t, reins.Console{Level: "debug"}).Result.Console.Messages; len(got) != 0 {
			t.Errorf("told again: %v", got)
		}
		m := b.act(t, reins.Console{Level: "info", All: true}).Result.Console.Messages
		i := slices.IndexFunc(m, func(m reins.ConsoleMessage) bool { return m.Text == "again" })
		if i < 0 || m[i].Count != 3 || m[i].Line == 0 || !strings.HasPrefix(m[i].URL, s.URL) {
			t.Errorf("all: %+v", m)
		}
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Throw")})
		got = textsOf(b.act(t, reins.Console{}).Result.Console)
		if len(got) != 1 || !strings.HasPrefix(got[0], "error Uncaught TypeError: Cannot read") {
			t.Errorf("after a throw: %q", got)
		}
		// Another lease that looks for the first time sees this page's.
		other, err := b.do(t.Context(), Command{Action: reins.Console{Level: "error"}, Lease: "other"})
		if err != nil || len(other.Result.Console.Messages) < 4 {
			t.Errorf("another lease: %v, %v", other, err)
		}
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Flood")})
		b.open(t, s.URL+"/two")
		r := b.act(t, reins.Console{}).Result
		got = textsOf(r.Console)
		if n := len(got); n < 300 || got[n-1] != "warning second page" || got[n-2] != "error e599" || len(r.Notes) == 0 {
			t.Errorf("%d messages after a flood, notes %q", len(got), r.Notes)
		}
		if got = textsOf(b.act(t, reins.Console{All: true}).Result.Console); len(got) != 1 {
			t.Errorf("from the page's beginning: %q", got)
		}
	})
}

// TestNetwork: each request with what became of it, in plain words (MCP-3).
func TestNetwork(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>t</title><button onclick="fetch('/data?x=1',{method:'POST',body:'1'})">Post</button>
<script>fetch('/missing');fetch('/moved');fetch('http://127.0.0.1:9/closed').catch(()=>0);fetch('http://other.test:'+location.port+'/cors').catch(()=>0);new Image().src='data:image/gif;base64,R0lGODlhAQABAAAAACw='</script>`)
		})
		mux.HandleFunc("/missing", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 404) })
		mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/data", http.StatusFound) })
		mux.HandleFunc("/data", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 5000)) })
		mux.HandleFunc("/cors", func(w http.ResponseWriter, r *http.Request) {})
		s := serve(t, mux)
		b.open(t, s.URL+"/go")
		b.act(t, reins.WaitFor{Idle: true})
		find := func(l *reins.NetworkLog, part string) reins.Request {
			t.Helper()
			for _, r := range l.Requests {
				if strings.Contains(r.URL, part) {
					return r
				}
			}
			t.Errorf("no request for %s in %+v", part, l.Requests)
			return reins.Request{}
		}
		all := b.act(t, reins.Network{}).Result.Network
		if r := find(all, "/go"); r.Status != 200 || r.Type != "document" || r.Method != "GET" || r.Open || r.Size == 0 {
			t.Errorf("document: %+v", r)
		}
		if r := find(all, "/missing"); r.Status != 404 || r.Failure != "" {
			t.Errorf("missing: %+v", r)
		}
		if r := find(all, "/moved"); r.Status != 302 || r.Open {
			t.Errorf("moved: %+v", r)
		}
		if r := find(all, "/data"); r.Status != 200 || r.Size < 5000 || r.Duration < 0 {
			t.Errorf("data: %+v", r)
		}
		if r := find(all, "/closed"); r.Failure != "the server refused the connection; nothing listens there" && r.Failure != "browsers do not connect to that port" {
			t.Errorf("closed: %+v", r)
		}
		if r := find(all, "/cors"); !strings.Contains(r.Failure, "CORS") {
			t.Errorf("cors: %+v", r)
		}
		for _, r := range all.Requests {
			if strings.HasPrefix(r.URL, "data:") {
				t.Errorf("%+v is no request", r)
			}
		}
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), "Post")})
		next := b.act(t, reins.Network{}).Result.Network.Requests
		if len(next) != 1 || next[0].Method != "POST" || !strings.HasSuffix(next[0].URL, "/data?x=1") {
			t.Errorf("since the last look: %+v", next)
		}
		failed := b.act(t, reins.Network{Failed: true, All: true}).Result.Network.Requests
		matched := b.act(t, reins.Network{Match: "missing", All: true}).Result.Network.Requests
		if len(failed) != 3 || len(matched) != 1 {
			t.Errorf("failed %+v, matched %+v", failed, matched)
		}
	})
}

// TestLogsUnderDialog: both logs can be read while a dialog blocks the page.
func TestLogsUnderDialog(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<!doctype html><title>t</title><script>console.error('before');onload=()=>alert('stop')</script>`})
	_, _ = b.try(reins.Navigate{URL: s.URL, Wait: "load"})
	b.eventually(t, "the dialog", func() bool { return b.selected.dialog != nil })
	if got := textsOf(b.act(t, reins.Console{}).Result.Console); len(got) == 0 || got[0] != "error before" {
		t.Errorf("console %q", got)
	}
	if got := b.act(t, reins.Network{}).Result.Network; len(got.Requests) == 0 {
		t.Error("no requests")
	}
}

// TestPDF: both engines print, wholly, with backgrounds, in the orientation
// that was asked for (MCP-3).
func TestPDF(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		s := site(t, map[string]string{"/": `<!doctype html><title>t</title>` + strings.Repeat("<p>Paragraph of a long page.</p>", 500)})
		b.open(t, s.URL)
		p := b.act(t, reins.PDF{}).Paper
		if p == nil || !bytes.HasPrefix(p.Data, []byte("%PDF-")) || !bytes.Contains(p.Data[len(p.Data)-32:], []byte("%%EOF")) {
			t.Fatalf("not a whole PDF: %d bytes", len(p.Data))
		}
		if n := bytes.Count(p.Data, []byte("/Type /Page\n")); n < 5 {
			t.Errorf("%d pages", n)
		}
		wide := b.act(t, reins.PDF{Landscape: true}).Paper
		if !bytes.Contains(wide.Data, []byte("/MediaBox [0 0 792 612]")) || !bytes.Contains(p.Data, []byte("/MediaBox [0 0 612 792]")) {
			t.Error("the orientation is not what was asked for")
		}
	})
}
