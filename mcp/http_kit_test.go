package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// keys is a host whose clients bear tokens: each token has one binding and one
// lease, made anew when it ended.
type keys struct {
	do func(context.Context, reins.Call) (*reins.Result, error)

	mu     sync.Mutex
	leases map[reins.Token][]*fakeLease
	refuse error // of acquisitions
}

func bindingOf(actor string) reins.Binding {
	return reins.Binding{
		Project: "p", Resource: "r", AuthorityID: "a", Revision: 1, Session: &reins.Session{Harness: "h", Native: "1"},
		Actor: actor, Role: reins.RoleAgent, Peer: "key-" + actor, Source: reins.SourceMCP,
	}
}

// authenticate knows whoever names itself in X-Peer, as a proxy before the door
// would.
func authenticate(r *http.Request) (reins.Binding, error) {
	switch name := r.Header.Get("X-Peer"); name {
	case "":
		return reins.Binding{}, fmt.Errorf("nobody")
	case "panics":
		panic("a hook")
	case "late":
		<-r.Context().Done()
		return bindingOf(name), nil
	case "api":
		b := bindingOf(name)
		b.Source = reins.SourceAPI
		return b, nil
	case "partial":
		return reins.Binding{Project: "p", Source: reins.SourceMCP}, nil
	default:
		return bindingOf(name), nil
	}
}

// acquire is Runtime.Acquire for tokens of the form "token-" and the actor.
func (k *keys) acquire(_ context.Context, t reins.Token, b reins.Binding) (reins.Lease, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuse != nil {
		return nil, k.refuse
	}
	if string(t) != "token-"+b.Actor && string(t) != "other-"+b.Actor {
		return nil, reins.Errorf(reins.CodeUnauthorized, "the capability or binding is not valid")
	}
	l := newFakeLease(k.do)
	k.leases[t] = append(k.leases[t], l)
	return l, nil
}

// of returns the leases that a token was given.
func (k *keys) of(t string) []*fakeLease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leases[reins.Token(t)]
}

// site is a handler that is served over pipes, where time can be virtual.
type site struct {
	t       *testing.T
	keys    *keys
	handler *mcp.HTTPHandler
	http    *http.Client
}

func serve(t *testing.T, o mcp.HTTPOptions, do func(context.Context, reins.Call) (*reins.Result, error)) *site {
	t.Helper()
	k := &keys{do: do, leases: map[reins.Token][]*fakeLease{}}
	o.Authenticate = authenticate
	if o.Acquire == nil {
		o.Acquire = k.acquire
	}
	h, err := mcp.NewHTTPHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	pipes := newPipes()
	server := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(pipes) }()
	transport := &http.Transport{DialContext: pipes.dial}
	t.Cleanup(func() {
		h.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return &site{t, k, h, &http.Client{Transport: transport}}
}

// pipes is a listener within the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// peer is one client that speaks HTTP by hand.
type peer struct {
	site    *site
	name    string
	token   string
	session string
	version string
}

func (s *site) peer(name string) *peer { return &peer{site: s, name: name, token: "token-" + name} }

// request makes a request as the peer would, with headers in pairs.
func (p *peer) request(ctx context.Context, method, body string, headers ...string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", strings.NewReader(body))
	if err != nil {
		p.site.t.Error(err)
		return nil
	}
	r.Header.Set("X-Peer", p.name)
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	if p.version != "" {
		r.Header.Set("Mcp-Protocol-Version", p.version)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// answer is what came back, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
	result json.RawMessage // of the JSON-RPC answer, wherever it stood
	err    *struct {
		Code    int
		Message string
		Data    struct{ Code string }
	}
	event string // the ID of the last event
}

func (p *peer) do(r *http.Request) answer {
	p.site.t.Helper()
	res, err := p.site.http.Do(r)
	if err != nil {
		p.site.t.Errorf("%s: %v", r.Method, err)
		return answer{}
	}
	defer res.Body.Close()
	return p.read(res, res.Body)
}

func (p *peer) read(res *http.Response, body io.Reader) answer {
	a := answer{status: res.StatusCode, header: res.Header}
	b, err := io.ReadAll(body)
	if err != nil {
		p.site.t.Errorf("reading the answer: %v", err)
	}
	a.body = string(b)
	take := func(data []byte) {
		var m struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(data, &m) == nil && (m.Result != nil || m.Error != nil) {
			a.result = m.Result
			_ = json.Unmarshal(m.Error, &a.err)
		}
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		take(b)
		return a
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); name {
		case "id":
			a.event = value
		case "data":
			take([]byte(value))
		}
	}
	return a
}

func (p *peer) post(body string, headers ...string) answer {
	p.site.t.Helper()
	return p.do(p.request(context.Background(), http.MethodPost, body, headers...))
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// initialize begins a session and takes it as the peer's.
func (p *peer) initialize() answer {
	p.site.t.Helper()
	p.session, p.version = "", ""
	a := p.post(hello)
	p.session = a.header.Get("Mcp-Session-Id")
	if a.status != http.StatusOK || p.session == "" {
		p.site.t.Errorf("initialize: %d %s", a.status, a.body)
		return a
	}
	p.version = "2025-11-25"
	if done := p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); done.status != http.StatusAccepted {
		p.site.t.Errorf("initialized: %d %s", done.status, done.body)
	}
	return a
}

func pressing(id int, key string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"browser_press","arguments":{"key":%q}}}`, id, key)
}

// press calls a tool and returns the text of its result.
func (p *peer) press(id int, key string) (text string, isError bool) {
	p.site.t.Helper()
	return p.text(p.post(pressing(id, key)))
}

func (p *peer) text(a answer) (text string, isError bool) {
	p.site.t.Helper()
	var res struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(a.result, &res); err != nil || len(res.Content) == 0 {
		p.site.t.Errorf("no result of a tool: %d %s", a.status, a.body)
		return "", true
	}
	return res.Content[0].Text, res.IsError
}

// tools counts those that are listed.
func (p *peer) tools() int {
	p.site.t.Helper()
	var list struct{ Tools []struct{ Name string } }
	a := p.post(`{"jsonrpc":"2.0","id":7000,"method":"tools/list"}`)
	if err := json.Unmarshal(a.result, &list); err != nil {
		p.site.t.Errorf("tools/list: %d %s", a.status, a.body)
	}
	return len(list.Tools)
}
