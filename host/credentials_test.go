package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
)

const syntheticPin = "synthetic-pin-7"

// NAV-5: origins are taken as browsers write them; what cannot be one origin's
// credential is refused, without its password in the sentence.
func TestCredentialOrigins_NAV5(t *testing.T) {
	for origin, want := range map[string]string{
		"https://Wiki.example": "https://wiki.example", "https://wiki.example:443/": "https://wiki.example", "http://127.0.0.1:3000": "http://127.0.0.1:3000", "http://a.test:80": "http://a.test", "http://[::1]:81": "http://[::1]:81",
		"": "", "wiki.example": "", "ftp://a.test": "", "https://a.test/path": "", "https://ann@a.test": "", "https://*.test": "", "https://": "", "https://a.test?x": "",
	} {
		got, err := credentialOrigin(reins.Credential{Origin: origin, User: "ann", Password: syntheticPin})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", origin, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), syntheticPin) {
			t.Errorf("%v tells the password", err)
		}
	}
	for _, c := range []reins.Credential{{User: ""}, {User: "a:b"}, {User: "ann", Password: "x\ny"}, {User: "ann", Password: strings.Repeat("x", 2000)}, {User: "ann", Password: "\xff"}} {
		c.Origin = "https://a.test"
		if _, err := credentialOrigin(c); reins.CodeOf(err) != reins.CodeInvalidInput {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// NAV-5: a formatted credential does not hold its password.
func TestCredentialsAreNotWritten_NAV5(t *testing.T) {
	c := reins.Credential{Origin: "https://a.test", User: "ann", Password: syntheticPin}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", c, "list", []reins.Credential{c})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", c, "list", []reins.Credential{c})
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprintf("%v %+v %#v %s %v %+v %#v %s %s", c, c, c, c, &c, []reins.Credential{c}, c, text, log.String()); strings.Contains(all, syntheticPin) {
		t.Errorf("the password is in %s", all)
	}
}

// NAV-5: a site that asks for credentials is answered with those of the host's
// hook, which is asked once for a driver; they are in nothing that comes out of
// the runtime. A hook that says no stops the operation.
func TestRealCredentials_NAV5(t *testing.T) {
	guarded := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		user, pin, _ := r.BasicAuth()
		if user != "ann" || pin != syntheticPin {
			w.Header().Set("WWW-Authenticate", `Basic realm="office"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "<!doctype html><title>Office</title><p>%s</p><p>%s</p>", pin, r.Header.Get("Authorization"))
	}
	base, policy := site(t, map[string]http.HandlerFunc{"/": guarded})
	var out lockedBuffer
	var asked box[int]
	hooks := reins.Hooks{
		Authorize: allow,
		Audit: func(r reins.Record) {
			b, _ := json.Marshal(r)
			fmt.Fprintf(&out, "record %s\n", b)
		},
		Credentials: func(_ context.Context, key reins.ResourceKey) ([]reins.Credential, error) {
			asked.set(asked.get() + 1)
			if key != key1 {
				return nil, errors.New("no")
			}
			return []reins.Credential{{Origin: base, User: "ann", Password: syntheticPin}}, nil
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
	l := realLease(t, h, key1, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	for range 2 {
		res, err := l.Do(t.Context(), reins.Call{Action: reins.Navigate{URL: base + "/"}})
		if err != nil {
			t.Fatal(err)
		}
		if n := res.Navigation; n.Status != 200 || n.Title != "Office" {
			t.Errorf("the site answers %+v", n)
		}
		seen, err := l.Do(t.Context(), reins.Call{Action: reins.Snapshot{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*reins.Result{res, seen} {
			b, _ := json.Marshal(r)
			fmt.Fprintf(&out, "result %s\n", b)
		}
		if !strings.Contains(seen.Snapshot.Text, "[secret:") {
			t.Errorf("it reads %s", seen.Snapshot.Text)
		}
	}
	if n := asked.get(); n != 1 {
		t.Errorf("the hook was asked %d times", n)
	}
	other := realLease(t, h, reins.ResourceKey{Project: key1.Project, ID: "other"}, reins.BrowserSpec{Engine: reins.EngineShell, Egress: policy})
	if _, err := other.Do(t.Context(), reins.Call{Action: reins.Navigate{URL: base + "/"}}); reins.CodeOf(err) != reins.CodeDenied {
		t.Errorf("a hook that says no leads to %v", err)
	}
	if text := out.String(); strings.Contains(text, syntheticPin) || strings.Contains(text, "YW5uOnN5") {
		t.Errorf("the password came out:\n%s", text)
	}
}
