package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/host"
)

func TestMain(m *testing.M) {
	host.Main()
	goleak.VerifyTestMain(m)
}

// noBrowser is a backend whose cells never come up: for all that needs none.
type noBrowser struct{ name reins.Backend }

func (b noBrowser) Name() reins.Backend                  { return b.name }
func (b noBrowser) Check(context.Context) []cell.Finding { return nil }
func (b noBrowser) Start(context.Context, cell.Spec) (cell.Cell, error) {
	return nil, reins.Errorf(reins.CodeStartupFailed, "there is no browser here")
}

func testFiles() fs.FS {
	return fstest.MapFS{
		"index.html": {Data: []byte("<title>index</title>")}, "resource.html": {Data: []byte("<title>resource</title>")},
		"join.html": {Data: []byte("<title>join</title>")}, "assets/page.js": {Data: []byte("export {}")},
	}
}

// logged is what a server wrote to its log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// site is one server on loopback.
type site struct {
	*Server
	t    *testing.T
	dir  string
	url  string
	http *httptest.Server
	log  *logged
	over sync.Once
}

// start serves a directory; change adjusts its options.
func start(t *testing.T, dir string, change func(*Options)) *site {
	t.Helper()
	s := &site{t: t, dir: dir, log: &logged{}}
	s.http = httptest.NewUnstartedServer(nil)
	s.url = "http://" + s.http.Listener.Addr().String()
	o := Options{
		Dir: dir, Backends: []cell.Backend{noBrowser{reins.BackendProcess}}, URL: s.url, Files: testFiles(),
		Version: "test", Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	server, err := Start(t.Context(), o)
	if err != nil {
		s.http.Listener.Close()
		t.Fatal(err)
	}
	s.Server = server
	s.http.Config.Handler = server.Handler()
	s.http.Start()
	t.Cleanup(s.stop)
	return s
}

func (s *site) stop() {
	s.over.Do(func() {
		s.CloseDoors()
		s.http.Close()
		if err := s.Stop(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
}

// admin is the key of a fresh server's administrator.
func (s *site) admin() string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, AdminKeyFile))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// client is one of the API under a key, the administrator's when it is empty.
func (s *site) client(key string) *api.Client {
	s.t.Helper()
	if key == "" {
		key = s.admin()
	}
	c, err := api.NewClient(api.ClientOptions{URL: s.url, Key: key, Transport: s.http.Client().Transport})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// register registers a resource at revision 1 of the session "one".
func register(t *testing.T, rt reins.Runtime, id string, change func(*reins.Registration)) reins.Registration {
	t.Helper()
	reg := reins.Registration{
		Key:        reins.ResourceKey{Project: "p", ID: id},
		Attachment: reins.Attachment{AuthorityID: "host", Revision: 1, Session: &reins.Session{Harness: "h", Native: "one"}},
	}
	if change != nil {
		change(&reg)
	}
	out, err := rt.Register(t.Context(), reg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// agent is the binding of the session that register attaches.
func agentOf(reg reins.Registration, source reins.Source) reins.Binding {
	return reins.Binding{
		Project: reg.Key.Project, Resource: reg.Key.ID, AuthorityID: reg.Attachment.AuthorityID, Revision: reg.Attachment.Revision,
		Session: reg.Attachment.Session, Actor: "bot", Role: reins.RoleAgent, Peer: "test", Source: source,
	}
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body string
}

// browser sends requests as a browser's page at an origin would.
type browser struct {
	t      *testing.T
	s      *site
	cookie []*http.Cookie
	page   string
	key    string // of a session in a frame
	origin string
}

func (s *site) browser() *browser { return &browser{t: s.t, s: s, origin: s.url} }

// send sends one request; body is JSON when it is not empty. More are header names and
// values; an empty value takes the header out.
func (b *browser) send(method, path, body string, more ...string) reply {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.s.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if b.origin != "" && method != http.MethodGet {
		r.Header.Set("Origin", b.origin)
	}
	if b.page != "" {
		r.Header.Set(pageHeader, b.page)
	}
	if b.key != "" {
		r.Header.Set(sessionHeader, b.key)
	}
	for _, c := range b.cookie {
		r.AddCookie(c)
	}
	for i := 0; i < len(more); i += 2 {
		switch {
		case more[i] == "Host":
			r.Host = more[i+1]
		case more[i+1] == "":
			r.Header.Del(more[i])
		default:
			r.Header.Set(more[i], more[i+1])
		}
	}
	res, err := b.s.http.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{res, string(text)}
}

// code is the error's code of an answer, "" of a success.
func (r reply) code() reins.Code {
	if r.StatusCode < 300 {
		return ""
	}
	var e reins.Error
	if json.Unmarshal([]byte(r.body), &e) != nil {
		return reins.Code("no error but " + r.body)
	}
	return e.Code
}

func (r reply) into(t *testing.T, v any) {
	t.Helper()
	if r.StatusCode >= 300 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
}

// invited is a browser that has come in by a link and opened a page.
func (s *site) invited(in api.JoinForm) *browser {
	s.t.Helper()
	join, err := s.client("").Join(s.t.Context(), in)
	if err != nil {
		s.t.Fatal(err)
	}
	b := s.browser()
	b.join(join)
	b.load()
	return b
}

func secretOf(t *testing.T, j api.Join) string {
	t.Helper()
	_, secret, ok := strings.Cut(j.URL, "/join#")
	if !ok {
		t.Fatalf("no secret in the fragment of %s", j.URL)
	}
	return secret
}

func (b *browser) join(j api.Join) {
	b.t.Helper()
	r := b.send("POST", "/people/join", `{"secret":"`+secretOf(b.t, j)+`"}`)
	if r.StatusCode != 200 {
		b.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	b.cookie = r.Cookies()
}

func (b *browser) load() {
	b.t.Helper()
	var out struct{ Page string }
	b.send("POST", "/people/page", "{}").into(b.t, &out)
	b.page = out.Page
}

func (b *browser) open(key reins.ResourceKey) string {
	b.t.Helper()
	var out struct{ Lease string }
	b.send("POST", "/people/open", `{"project":"`+key.Project+`","resource":"`+key.ID+`"}`).into(b.t, &out)
	return out.Lease
}

func expect(t *testing.T, err error, want reins.Code) {
	t.Helper()
	if got := reins.CodeOf(err); got != want {
		t.Errorf("%v, want %q", err, want)
	}
}
