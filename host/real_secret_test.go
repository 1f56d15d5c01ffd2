package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
)

const secretValue = `S3cret & "quoted"/Xyz`

// tattle is a site that shows what it is told wherever a page can.
func tattle() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/": html(`<title>Login</title><form action=/in><input name=user aria-label=User><input name=pw type=password aria-label=Password><button>Enter</button></form>
<label>Token <input aria-label=Token id=k oninput="o.textContent='Typed '+this.value;k.setAttribute('aria-description',this.value)"></label><p id=o></p>`),
		"/in": func(w http.ResponseWriter, r *http.Request) {
			pw := r.URL.Query().Get("pw")
			js, _ := json.Marshal(pw)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!doctype html><title></title><main><h1></h1><p id=p></p><input aria-label=Echo id=e><button id=b>Say</button><button onclick="alert(s)">Alert</button>
<button onclick="location='/file?name='+encodeURIComponent(s)">Get</button><button onclick="window.open('/in?pw='+encodeURIComponent(s))">Open</button><div style="position:relative"><button>Under</button><div id=veil style="position:absolute;inset:0"></div></div></main>
<script>const s=%s;document.title='Hello '+s;document.querySelector('h1').textContent=s;p.textContent=btoa(unescape(encodeURIComponent(s)))+' '+encodeURIComponent(s)+' '+s.toUpperCase();
e.value=s;b.title=s;b.setAttribute('aria-label','Say '+s);veil.setAttribute('aria-label',s);console.error('log',s,{s});fetch('/api?q='+encodeURIComponent(s),{method:'POST',body:s});setTimeout(()=>{throw new Error(s)})</script>`, js)
		},
		"/api": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 500) },
		"/file": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+strings.NewReplacer("+", "%20", "%2F", "_").Replace(url.QueryEscape("for "+r.URL.Query().Get("name")+".txt")))
			fmt.Fprint(w, "content")
		},
	}
}

// TestRealSecret types a secret into a page that shows it everywhere, and looks
// for it in everything that comes out of the runtime (ACT-11).
func TestRealSecret(t *testing.T) {
	for _, engine := range []reins.Engine{reins.EngineShell, reins.EngineFull} {
		t.Run(string(engine), func(t *testing.T) { realSecret(t, engine) })
	}
}

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func realSecret(t *testing.T, engine reins.Engine) {
	base, policy := site(t, tattle())
	var out lockedBuffer // everything that comes out
	var asked box[[]string]
	hooks := reins.Hooks{
		Authorize: allow,
		Audit: func(r reins.Record) {
			b, _ := json.Marshal(r)
			fmt.Fprintf(&out, "record %s\n", b)
		},
		BeforeOperation: func(_ context.Context, op reins.Operation) error {
			if reins.Secret(op.Action) != "" { // in others it may be what the caller wrote
				b, _ := reins.EncodeAction(op.Action)
				fmt.Fprintf(&out, "gate %s\n", b)
			}
			return nil
		},
		Secret: func(_ context.Context, key reins.ResourceKey, origin, name string) (string, error) {
			asked.set(append(asked.get(), key.String()+" "+origin+" "+name))
			return secretValue, nil
		},
		SecretOrigin: func(_ context.Context, _ reins.ResourceKey, origin string) error {
			if origin != base {
				return errors.New("no")
			}
			return nil
		},
	}
	h, err := New(Options{Dir: filepath.Join(t.TempDir(), "runtime"), Hooks: hooks, Backends: []cell.Backend{process.New(process.Options{})},
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop(context.Background())
	events, err := h.Events(t.Context(), key1.Project)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for e := range events {
			fmt.Fprintf(&out, "event %+v\n", e)
		}
	}()
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: engine, Egress: policy})
	say := func(a reins.Action) *reins.Result {
		t.Helper()
		res, err := l.Do(t.Context(), reins.Call{Action: a})
		if err != nil {
			b, _ := json.Marshal(err)
			fmt.Fprintf(&out, "error of %s: %v %s\n", a.Verb(), err, b)
			return nil
		}
		b, _ := json.Marshal(res)
		fmt.Fprintf(&out, "result of %s: %s\n", a.Verb(), b)
		for _, text := range texts(res) {
			fmt.Fprintf(&out, "text of %s: %s\n", a.Verb(), text)
		}
		return res
	}
	must := func(a reins.Action) *reins.Result {
		t.Helper()
		res := say(a)
		if res == nil {
			t.Fatalf("%s failed:\n%s", a.Verb(), out.String())
		}
		return res
	}
	must(reins.Navigate{URL: base})
	see := must(reins.Snapshot{}).Snapshot.Text
	must(reins.Type{Ref: refOf(t, see, "Token"), Secret: "pw", Waits: reins.Waits{Snapshot: true}})
	must(reins.Fill{Ref: refOf(t, see, "Password"), Value: reins.SecretValue("pw"), Submit: true, Waits: reins.Waits{Snapshot: true}})
	must(reins.WaitFor{Idle: true})
	see = must(reins.Snapshot{}).Snapshot.Text
	if n := strings.Count(see, "[secret:pw]"); n < 6 {
		t.Errorf("the page does not show it in %d places:\n%s", n, see)
	}
	must(reins.Snapshot{Changes: true})
	must(reins.Snapshot{Find: "Hello"})
	must(reins.Read{})
	must(reins.Console{Level: "debug", All: true})
	must(reins.Network{All: true})
	must(reins.ListTabs{})
	must(reins.Hover{Ref: refOf(t, see, "Say")})
	must(reins.Scroll{Ref: refOf(t, see, "Say")})
	must(reins.Fill{Ref: refOf(t, see, "Echo"), Value: reins.TextValue("x"), Waits: reins.Waits{Snapshot: true}})
	short := reins.Duration(200 * time.Millisecond)
	say(reins.Click{Ref: refOf(t, see, "Under"), Waits: reins.Waits{Actionable: &short}}) // covered by what bears the secret's name
	say(reins.WaitFor{Text: secretValue + secretValue, Timeout: short})
	say(reins.Navigate{URL: "http://127.0.0.1:9/?" + url.QueryEscape(secretValue)})
	must(reins.Navigate{URL: base + "/in?pw=" + url.QueryEscape(secretValue)})
	see = must(reins.Snapshot{}).Snapshot.Text
	must(reins.Click{Ref: refOf(t, see, `"Get"`)})
	if opened := must(reins.Click{Ref: refOf(t, see, `"Open"`)}).Changes.OpenedTabs; len(opened) == 1 {
		must(reins.ListTabs{})
		must(reins.CloseTab{Tab: opened[0].ID})
	}
	must(reins.Screenshot{})
	must(reins.PDF{})
	see = must(reins.Snapshot{}).Snapshot.Text
	must(reins.Click{Ref: refOf(t, see, `"Alert"`)})
	must(reins.Snapshot{})
	say(reins.Click{Ref: refOf(t, see, `"Get"`)}) // dialog_open quotes it
	must(reins.Click{Ref: "dialog-accept"})
	within(t, 10*time.Second, "the download is stored", func() bool {
		for _, a := range must(reins.ListArtifacts{}).Artifacts {
			if a.Kind == "download" {
				return true
			}
		}
		return false
	})
	list, err := h.Artifacts(key1).List(t.Context())
	if err != nil || len(list) < 3 {
		t.Fatalf("%d artifacts: %v", len(list), err)
	}
	for _, a := range list {
		_, r, err := h.Artifacts(key1).Open(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r)
		r.Close()
		t.Logf("artifact %q", a.Name)
		fmt.Fprintf(&out, "artifact %+v: %s\n", a, data)
	}
	infos, _ := h.List(t.Context(), key1.Project)
	fmt.Fprintf(&out, "list %+v\n", infos)
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := out.String()
	quoted := strings.ReplaceAll(secretValue, `"`, `\"`)
	for _, bad := range []string{
		secretValue, strings.ToUpper(secretValue), quoted, url.QueryEscape(secretValue), url.PathEscape(secretValue),
		base64.RawStdEncoding.EncodeToString([]byte(secretValue)), "quoted", "QUOTED", "Xyz", "XYZ",
	} {
		for line := range strings.Lines(all) {
			if i := strings.Index(line, bad); i >= 0 {
				t.Errorf("%q comes out: %.60s … %s", bad, line, line[max(0, i-120):min(len(line), i+120)])
			}
		}
	}
	want := key1.String() + " " + base + " pw"
	if got := asked.get(); len(got) != 2 || got[0] != want || got[1] != want {
		t.Errorf("the hook was asked %q", got)
	}
	for _, part := range []string{"gate ", "record ", "event ", "error of click: dialog_open", "error of click: not_actionable", "error of wait_for: timeout", "[secret_pw].txt"} {
		if !strings.Contains(all, part) {
			t.Errorf("nothing of the kind %q came out, so nothing was proven about it", part)
		}
	}
}

// texts are the long texts of a result as they are, without the dress of JSON.
func texts(res *reins.Result) []string {
	var out []string
	if res.Snapshot != nil {
		out = append(out, res.Snapshot.Text)
	}
	if res.Reading != nil {
		out = append(out, res.Reading.Markdown)
	}
	return out
}

// TestRealSecretRefusals: no hook, a page that is not permitted, a no, a panic
// and a value that could not be kept out of texts: nothing is typed (ACT-11).
func TestRealSecretRefusals(t *testing.T) {
	base, policy := site(t, map[string]http.HandlerFunc{"/": html(`<title>Login</title><input aria-label=Password>`)})
	var answer box[func() (string, error)]
	var permit box[func(string) error]
	h := real(t, reins.Hooks{
		Secret: func(context.Context, reins.ResourceKey, string, string) (string, error) { return answer.get()() },
		SecretOrigin: func(_ context.Context, _ reins.ResourceKey, origin string) error {
			return permit.get()(origin)
		},
	})
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	do(t, l, reins.Navigate{URL: base})
	ref := refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, "Password")
	yes := func(string) error { return nil }
	for name, c := range map[string]struct {
		permit func(string) error
		answer func() (string, error)
	}{
		"not permitted":   {func(string) error { return errors.New("no") }, func() (string, error) { t.Error("it was asked for the value"); return "", nil }},
		"a no":            {yes, func() (string, error) { return "value", errors.New("no") }},
		"a panic":         {yes, func() (string, error) { panic("hook") }},
		"too short":       {yes, func() (string, error) { return "abc", nil }},
		"too long":        {yes, func() (string, error) { return strings.Repeat("a", 4097), nil }},
		"not valid UTF-8": {yes, func() (string, error) { return "abc\xff def", nil }},
	} {
		permit.set(c.permit)
		answer.set(c.answer)
		_, err := l.Do(t.Context(), reins.Call{Action: reins.Fill{Ref: ref, Value: reins.SecretValue("pw")}})
		if reins.CodeOf(err) != reins.CodeDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if see := do(t, l, reins.Snapshot{}).Snapshot.Text; strings.Contains(see, "Password\" [ref="+string(ref)+"]:") {
		t.Errorf("something was typed:\n%s", see)
	}
	permit.set(yes)
	answer.set(func() (string, error) { return "line\nend", nil })
	_, err := l.Do(t.Context(), reins.Call{Action: reins.Type{Ref: ref, Secret: "pw"}})
	code(t, err, reins.CodeInvalidInput)
	answer.set(func() (string, error) { return "good value", nil })
	do(t, l, reins.Type{Ref: ref, Secret: "pw"})
	if see := do(t, l, reins.Snapshot{}).Snapshot.Text; !strings.Contains(see, ": [secret:pw]") {
		t.Errorf("after a yes:\n%s", see)
	}
	bare := real(t, reins.Hooks{})
	l = realLease(t, bare, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	do(t, l, reins.Navigate{URL: base})
	ref = refOf(t, do(t, l, reins.Snapshot{}).Snapshot.Text, "Password")
	_, err = l.Do(t.Context(), reins.Call{Action: reins.Fill{Ref: ref, Value: reins.SecretValue("pw")}})
	code(t, err, reins.CodeDenied)
}
