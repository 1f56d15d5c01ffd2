package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/demo"
)

// serveProcess is a `reins serve` of its own.
type serveProcess struct {
	instance
	t     *testing.T
	cmd   *exec.Cmd
	state string
	ended chan error // of the process
	log   *output
}

// output is what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// spawnServe starts a server over a state directory and does not wait for it.
func spawnServe(t *testing.T, state string, arguments ...string) *serveProcess {
	t.Helper()
	cmd := program(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	s := &serveProcess{t: t, cmd: cmd, state: state, ended: make(chan error, 1), log: &output{}}
	cmd.Stderr, cmd.Stdout = s.log, s.log
	if err := os.Remove(filepath.Join(s.dir(), instanceFile)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err) // of one that was killed
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that failed; else it has ended
	return s
}

func (s *serveProcess) dir() string { return filepath.Join(s.state, "reins", serveDirectory) }

// up waits until the server serves.
func (s *serveProcess) up() *serveProcess {
	s.t.Helper()
	for until := time.Now().Add(deadline); ; {
		if i, err := readInstance(s.dir()); err == nil && i.PID == s.cmd.Process.Pid {
			s.instance = i
			return s
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			s.t.Fatalf("the server ended: %v\n%s", err, s.log)
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(until) {
			s.t.Fatalf("the server does not come up\n%s", s.log)
		}
	}
}

func (s *serveProcess) api() *api.Client {
	s.t.Helper()
	c, err := s.client()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// end sends a signal and returns what the process ended with.
func (s *serveProcess) end(sig syscall.Signal) error {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		return err
	case <-time.After(deadline):
		s.t.Fatalf("it does not end\n%s", s.log)
		return nil
	}
}

// overMCP connects an agent by its key.
func (s *serveProcess) overMCP(key string) *sdk.ClientSession {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	defer cancel()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)},
	}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// person is somebody's browser, as far as the server sees it.
type person struct {
	t      *testing.T
	url    string
	cookie []*http.Cookie
	page   string
}

func (p *person) send(method, path, body string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Origin", p.url)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Reins-Page", p.page)
	for _, c := range p.cookie {
		r.AddCookie(c)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if c := res.Cookies(); len(c) > 0 {
		p.cookie = c
	}
	return res.StatusCode, string(text)
}

// joined is a person who came in by a link and opened a page.
func joined(t *testing.T, link string) *person {
	t.Helper()
	url, secret, _ := strings.Cut(link, "/join#")
	p := &person{t: t, url: url}
	if status, text := p.send("POST", "/people/join", `{"secret":"`+secret+`"}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	status, text := p.send("POST", "/people/page", "{}")
	var out struct{ Page string }
	if err := json.Unmarshal([]byte(text), &out); status != 200 || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	p.page = out.Page
	return p
}

// registration is of a browser that may reach a site.
func registration(id string, site *demo.Site) reins.Registration {
	r := reins.Registration{
		Key:        reins.ResourceKey{Project: "shop", ID: id},
		Attachment: reins.Attachment{AuthorityID: "host", Revision: 1, Session: &reins.Session{Harness: "h", Native: "1"}},
		Spec:       reins.BrowserSpec{Engine: reins.EngineShell},
	}
	if site != nil {
		r.Spec.Egress.AllowPrivate = site.Targets()
	}
	return r
}

func agentBinding(r reins.Registration) *reins.Binding {
	return &reins.Binding{
		Project: r.Key.Project, Resource: r.Key.ID, AuthorityID: r.Attachment.AuthorityID, Revision: r.Attachment.Revision,
		Session: r.Attachment.Session, Actor: "bot", Role: reins.RoleAgent,
	}
}

// The whole of the served form, for real: a server starts, a program registers a browser
// and makes an agent's key, the agent works over MCP, a person comes in by `reins view`
// and stops it, the key is revoked, and SIGTERM leaves nothing but what lasts
// (API-2, API-3, MCP-2, LIFE-3, LIFE-4, STO-2).
func TestServe(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	state := filepath.Join(t.TempDir(), "state")
	s := spawnServe(t, state).up()
	admin := s.api()
	reg := registration("till", site)
	if _, err := admin.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	key, err := admin.CreateKey(t.Context(), api.KeyForm{Binding: agentBinding(reg)})
	if err != nil {
		t.Fatal(err)
	}
	agent := s.overMCP(key.Token)
	if text, failed := ask(t, agent, "browser_navigate", map[string]any{"url": site.URL()}); failed {
		t.Fatal(text)
	}

	view := program(t, "view", "--actor", "Mira")
	view.Env = s.cmd.Env
	link, err := view.Output()
	if err != nil {
		t.Fatal(err)
	}
	p := joined(t, strings.TrimSpace(string(link)))
	status, text := p.send("POST", "/people/open", `{"project":"shop","resource":"till"}`)
	var opened struct{ Lease string }
	if err := json.Unmarshal([]byte(text), &opened); status != 200 || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	act := func(action string) string {
		status, text := p.send("POST", "/v1/leases/"+opened.Lease+"/operations", `{"action":`+action+`}`)
		if status != 200 {
			t.Fatalf("%s: %d %s", action, status, text)
		}
		return text
	}
	if text := act(`{"verb":"list_tabs"}`); !strings.Contains(text, site.URL()) {
		t.Errorf("the person sees another browser: %s", text)
	}
	act(`{"verb":"request_control"}`)
	if text, failed := ask(t, agent, "browser_snapshot", nil); !failed || !strings.Contains(text, string(reins.CodeHumanControlled)) {
		t.Errorf("the agent under a person's control: %s", text)
	}
	act(`{"verb":"release_control"}`)
	if text, failed := ask(t, agent, "browser_snapshot", nil); failed {
		t.Error(text)
	}
	if err := admin.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "browser_snapshot"}); err == nil {
		t.Error("a revoked key still acts")
	}
	all := descendants(s.cmd.Process.Pid)
	if len(all) < 5 {
		t.Errorf("only the processes %v: is this a browser?", all)
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	gone(t, all, soon())
	nothingLeft(t, s.cmd)
	for _, part := range []string{"pages ", "API ", "MCP ", "/docs", "admin.key", s.dir()} {
		if !strings.Contains(s.log.String(), part) {
			t.Errorf("it does not say %q: %s", part, s.log)
		}
	}
	if strings.Contains(s.log.String(), key.Token) || strings.Contains(s.log.String(), strings.TrimSpace(string(link))) {
		t.Error("a secret is in the log")
	}

	s = spawnServe(t, state).up()
	list, err := s.api().List(t.Context(), "shop")
	if err != nil || len(list) != 1 || !list[0].Attachment.Equal(reg.Attachment) {
		t.Errorf("%+v %v", list, err)
	}
	var actions []string
	trail, err := s.api().Audit(t.Context(), api.AuditQuery{Project: "shop", Resource: "till"})
	for _, e := range trail {
		actions = append(actions, fmt.Sprint(e.Record.Actor, " ", e.Record.Action, " ", e.Record.Outcome))
	}
	for _, want := range []string{"bot navigate attempted", "bot navigate completed", "Mira list_tabs completed", "Mira request_control completed", "bot snapshot completed"} {
		if !strings.Contains(strings.Join(actions, "\n"), want) {
			t.Errorf("no %q in the trail (%v):\n%s", want, err, strings.Join(actions, "\n"))
		}
	}
	if err := s.end(syscall.SIGINT); err != nil {
		t.Errorf("%v\n%s", err, s.log)
	}
}

// B078: a second server over the same directory says who is there, and the first is
// unharmed; leftovers of a killed one block nobody.
func TestServeTwice_B078(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	first := spawnServe(t, state).up()
	second := program(t, "serve", "--listen", "127.0.0.1:0")
	second.Env = first.cmd.Env
	text, err := second.CombinedOutput()
	if second.ProcessState.ExitCode() != exitCode(reins.CodeLocked) {
		t.Errorf("%v %s", err, text)
	}
	if _, err := first.api().Keys(t.Context(), ""); err != nil {
		t.Error(err)
	}
	_ = first.end(syscall.SIGKILL)
	for name, content := range map[string]string{instanceFile: "garbage", ".new-left": "x"} {
		if err := os.WriteFile(filepath.Join(first.dir(), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	third := spawnServe(t, state).up()
	if err := third.end(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, third.log)
	}
}

// LIFE-3: a second signal ends it at once, while the first one's drain waits for a call.
func TestServeSecondSignal(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	s := spawnServe(t, state, "--drain", "10m").up()
	admin := s.api()
	reg := registration("a", nil)
	reg.Spec.Verbs = reins.AgentVerbs()
	if _, err := admin.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	b := *agentBinding(reg)
	b.Peer, b.Source = "test", reins.SourceAPI
	c, err := admin.Issue(t.Context(), b, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := admin.Acquire(t.Context(), c.Token, b)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 16)
	done := make(chan error, 1)
	go func() {
		_, err := l.Do(context.Background(), reins.Call{
			Action: reins.RequestHuman{Reason: "wait for me", Timeout: reins.Duration(10 * time.Minute)},
			Progress: func(reins.Progress) {
				select {
				case asked <- struct{}{}:
				default:
				}
			},
		})
		done <- err
	}()
	<-asked
	all := descendants(s.cmd.Process.Pid)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(deadline); ; { // no new lease: it drains
		_, err := admin.Issue(t.Context(), b, 0)
		if reins.CodeOf(err) == reins.CodeNotReady {
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the call ended with the first signal: %v", err)
	default:
	}
	_ = s.end(syscall.SIGTERM)
	if got := s.cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("it ended with %d", got)
	}
	gone(t, all, soon())
	<-done
}

// API-6: TLS by files, HTTP/2, and a certificate that is exchanged while it runs.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, cert, key, 1)
	s := spawnServe(t, filepath.Join(dir, "state"), "--tls-cert", cert, "--tls-key", key).up()
	if !strings.HasPrefix(s.URL, "https://127.0.0.1:") {
		t.Fatal(s.URL)
	}
	if _, err := s.api().Keys(t.Context(), ""); err != nil { // it trusts the file that the server names
		t.Error(err)
	}
	serial := func() int64 {
		transport, err := transportFor(cert)
		if err != nil {
			t.Fatal(err)
		}
		defer transport.CloseIdleConnections()
		r, err := (&http.Client{Transport: transport}).Get(s.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.ProtoMajor != 2 {
			t.Errorf("%s %v", r.Proto, r.Header)
		}
		return r.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d", got)
	}
	certify(t, cert, key, 2)
	if got := serial(); got != 2 {
		t.Errorf("certificate %d after it was exchanged", got)
	}
	if r, err := http.Get("http" + strings.TrimPrefix(s.URL, "https") + "/healthz"); err == nil {
		if r.Body.Close(); r.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", r.StatusCode)
		}
	}
	link, err := s.api().Join(t.Context(), api.JoinForm{Actor: "m", Projects: []string{"*"}})
	if err != nil || !strings.HasPrefix(link.URL, s.URL+"/join#") {
		t.Errorf("%v %v", link, err)
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, s.log)
	}
}

// certify writes a certificate of this machine for loopback, and its key.
func certify(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{key: {Type: "PRIVATE KEY", Bytes: secret}, cert: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
}

// MCP-8: a client's private runtime is watched on a page of its own, which `reins view`
// finds; nothing of that is left when the client ends.
func TestWatchPrivateRuntime(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	cmd := program(t, mcpFlags{engine: "shell", logLevel: "warn"}.mcpArguments(site, true)...)
	said := &output{}
	cmd.Stderr = said
	c := connect(t, cmd)
	if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()}); failed {
		t.Fatal(text)
	}
	for until := time.Now().Add(deadline); !strings.Contains(said.String(), "watch it with `reins view`"); {
		if time.Now().After(until) {
			t.Fatalf("it does not say how to watch: %s", said)
		}
		<-time.After(5 * time.Millisecond)
	}
	view := program(t, "view", "--actor", "Mira")
	view.Env = cmd.Env
	link, err := view.Output()
	if err != nil {
		t.Fatal(err)
	}
	p := joined(t, strings.TrimSpace(string(link)))
	status, text := p.send("GET", "/v1/projects/mcp/resources", "")
	var list api.ResourceList
	if err := json.Unmarshal([]byte(text), &list); status != 200 || err != nil || len(list.Resources) != 1 {
		t.Fatalf("%d %s", status, text)
	}
	status, text = p.send("POST", "/people/open", `{"project":"mcp","resource":"`+list.Resources[0].Key.ID+`"}`)
	var opened struct{ Lease string }
	if err := json.Unmarshal([]byte(text), &opened); status != 200 || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	if status, text = p.send("POST", "/v1/leases/"+opened.Lease+"/operations", `{"action":{"verb":"list_tabs"}}`); status != 200 || !strings.Contains(text, site.URL()) {
		t.Errorf("%d %s", status, text)
	}
	if err := c.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, name := range []string{instanceFile, "admin.key"} {
		if left, err := filepath.Glob(filepath.Join(stateOf(cmd), "reins", "*", name)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	nothingLeft(t, cmd)
}

// MCP-8, B110: `reins mcp --server` speaks for a server that runs; when that was killed
// and has started anew, the client goes on without having to know.
func TestMCPForServer(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	state := filepath.Join(t.TempDir(), "state")
	s := spawnServe(t, state).up()
	reg := registration("till", site)
	if _, err := s.api().Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	key, err := s.api().CreateKey(t.Context(), api.KeyForm{Binding: agentBinding(reg)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "mcp", "--server", s.URL)
	cmd.Env = append(cmd.Env, keyVariable+"="+key.Token)
	c := connect(t, cmd)
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 6 {
		t.Fatalf("%v %v", tools, err)
	}
	if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()}); failed {
		t.Fatal(text)
	}
	_ = s.end(syscall.SIGKILL)
	again := spawnServe(t, state, "--listen", strings.TrimPrefix(s.URL, "http://"))
	if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()}); failed {
		t.Errorf("after the server was killed and started: %s", text)
	}
	again.up()
	if err := again.api().RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "browser_snapshot"}); err == nil || !strings.Contains(err.Error(), "not valid") {
		t.Errorf("a revoked key: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if err := again.end(syscall.SIGTERM); err != nil {
		t.Errorf("%v\n%s", err, again.log)
	}
}
