package egress_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

const shell = "/usr/lib/chromium/chromium-headless-shell"

// browse loads an address in a real Chromium behind the proxy and returns the
// document as it is after its load event.
func browse(t *testing.T, p *running, address string) string {
	t.Helper()
	if os.Getuid() == 0 {
		t.Fatal("Chromium's sandbox needs an ordinary user; run the tests with -exec scripts/as-user")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	home := t.TempDir()
	cmd := exec.CommandContext(ctx, shell, "--dump-dom", "--timeout=40000", "--user-data-dir="+filepath.Join(home, "profile"),
		"--proxy-server=http://"+p.addr, "--proxy-bypass-list=<-loopback>", "--disable-gpu", "--disable-software-rasterizer",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-pings", "--no-first-run", address)
	cmd.Env = []string{"HOME=" + home, "DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/null", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/dev/null"}
	cmd.WaitDelay = 5 * time.Second
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("Chromium: %v\n%s", err, &errors)
	}
	return string(out)
}

// A page's own ways to loopback, to the nearest network and to cloud metadata,
// in the spellings of B099 and by redirect (B098), none of which arrives; and
// what is permitted works, WebSocket too.
func TestBrowser(t *testing.T) {
	canary := origin(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("CANARY %s %s", r.Host, r.URL) })
	port := canary[strings.LastIndexByte(canary, ':')+1:]
	done := make(chan string, 1)
	held := make(chan struct{})
	page := origin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hold": // an image that keeps the load event waiting
			select {
			case <-held:
			case <-r.Context().Done():
			}
		case "/done":
			says, _ := io.ReadAll(r.Body)
			done <- string(says)
			close(held)
		case "/redirect":
			http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
		case "/socket":
			echo(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, browserPage, port)
		}
	})
	p := start(t, egress.Options{Policy: reins.EgressPolicy{AllowPrivate: []string{page}}}, nil)
	browse(t, p, "http://"+page+"/")
	if got, want := <-done, "24 sockets refused; own says hello"; got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
	refused := 0
	for _, d := range p.all() {
		if !d.Allowed {
			refused++
		} else if d.Host != "127.0.0.1" || fmt.Sprintf("127.0.0.1:%d", d.Port) != page {
			t.Errorf("allowed: %+v", d)
		}
	}
	if refused < 4*24 {
		t.Errorf("%d refusals were told, want one for each of 4 tries of 24", refused)
	}
}

// echo is a WebSocket that says hello and is gone.
func echo(w http.ResponseWriter, r *http.Request) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "+acceptKey(r)+"\r\n\r\n\x81\x05hello\x88\x00")
	io.Copy(io.Discard, c)
}

// EGR-8: what a person sees when a navigation is refused.
func TestBrowserShowsRefusal(t *testing.T) {
	p := start(t, egress.Options{}, nil)
	got := browse(t, p, "http://2852039166/latest/meta-data/") // 169.254.169.254
	for _, want := range []string{"<h1>169.254.169.254 was not reached</h1>", "cloud metadata", "<code>forbidden-address</code>"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the page:\n%s", want, got)
		}
	}
	if d := p.all(); len(d) == 0 || d[0].Host != "169.254.169.254" || d[0].Reason != egress.ReasonAddress {
		t.Errorf("decisions %+v", d)
	}
}

const browserPage = `<!doctype html><title>spellings</title><img src="/hold" alt=""><script>
const port = %q, hosts = ['127.0.0.1','localhost','localhost.','LOCALHOST','a.localhost','127.0.0.2','127.1','127.255.255.254',
'2130706433','0x7f000001','0x7f.1','017700000001','0177.0.0.1','0.0.0.0','0','[::1]','[::]','[::ffff:127.0.0.1]','[::ffff:7f00:1]',
'[::127.0.0.1]','[64:ff9b::7f00:1]','[2002:7f00:1::]','[fe80::1]','①②⑦.⓪.⓪.①'];
const image = u => new Promise(done => { const i = new Image(); i.onload = i.onerror = done; i.src = u; });
const socket = u => new Promise(done => { const s = new WebSocket(u); s.onmessage = e => done(e.data); s.onerror = () => done('refused'); });
(async () => {
  const to = hosts.map(h => h + ':' + port);
  await Promise.all(to.map((h, i) => fetch('http://' + h + '/fetch?' + i, {mode: 'no-cors'}).catch(() => 0)));
  await Promise.all(to.map((h, i) => image('http://' + h + '/image?' + i)));
  await Promise.all(to.map((h, i) => image('/redirect?u=' + encodeURIComponent('http://' + h + '/redirected?' + i))));
  const sockets = await Promise.all(to.map((h, i) => socket('ws://' + h + '/socket?' + i)));
  const says = sockets.filter(s => s === 'refused').length + ' sockets refused; own says ' + await socket('ws://' + location.host + '/socket');
  await fetch('/done', {method: 'POST', body: says});
})();
</script>
`

// acceptKey answers a WebSocket's key (RFC 6455, 4.2.2).
func acceptKey(r *http.Request) string {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
