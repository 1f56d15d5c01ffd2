package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

const (
	relayPatience = 15 * time.Second // for a server that starts anew
	relayPause    = 200 * time.Millisecond
	relayFailed   = -32000 // of JSON-RPC: the server's own range
)

// relay speaks for a server elsewhere with a client at stdin and stdout (MCP-8): what
// the one says, the other gets. A session that the server does not know any more,
// because it was started anew, is begun again as the client began it; what was not
// taken is sent again then, what was taken and is lost is told as that.
type relay struct {
	endpoint string
	http     *http.Client
	log      *slog.Logger
	local    sdk.Connection
	work     sync.WaitGroup

	mu      sync.Mutex // guards all below
	link    *relayLink // nil: none, or it was lost
	opening chan struct{}
	began   *jsonrpc.Request // the client's initialize
	ready   *jsonrpc.Request // its notification that it is initialized
	again   int              // sessions that were begun anew
}

// relayLink is one session with the server.
type relayLink struct {
	conn    sdk.Connection
	gone    chan struct{}            // closed when nothing more comes
	open    map[jsonrpc.ID]bool      // calls that wait for their answer; guarded by relay.mu
	private map[jsonrpc.ID]chan bool // calls of the relay's own; likewise
}

// statuses carries requests with the key, and tells whoever sends one (lostKey) when
// the server said that it does not know the session.
type statuses struct {
	key  string
	base http.RoundTripper
}

// lostKey is what a context holds an *atomic.Bool under.
type lostKey struct{}

// RoundTrip implements http.RoundTripper.
func (s *statuses) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.key)
	res, err := s.base.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "" {
		if lost, ok := r.Context().Value(lostKey{}).(*atomic.Bool); ok {
			lost.Store(true)
		}
	}
	return res, err
}

// relayMCP relays until the client is gone, or ctx ends.
func relayMCP(ctx context.Context, io stdio, at instance, log *slog.Logger) error {
	key, err := at.key()
	if err != nil {
		return err
	}
	base, err := transportFor(at.Certificate)
	if err != nil {
		return err
	}
	defer base.CloseIdleConnections()
	seen := &statuses{key: key, base: base}
	lines := mcp.NewLines(io.in, io.out)
	local, err := lines.Connect(ctx)
	if err != nil {
		return err
	}
	r := &relay{endpoint: strings.TrimSuffix(at.URL, "/") + "/mcp", http: &http.Client{Transport: seen}, log: log, local: local}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the relay
		select {
		case <-lines.Gone():
			// Answers to what was said last may still come.
			timer := time.NewTimer(lastCalls)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			cancel()
		case <-ctx.Done():
		}
	}()
	r.run(ctx)
	cancel()
	r.mu.Lock()
	link := r.link
	r.mu.Unlock()
	if link != nil {
		_ = link.conn.Close() // tells the server that the client left
	}
	_ = local.Close()
	r.work.Wait()
	return nil
}

// run takes what the client says until there is no more.
func (r *relay) run(ctx context.Context) {
	for {
		m, err := r.local.Read(ctx)
		if err != nil {
			return
		}
		if q, ok := m.(*jsonrpc.Request); ok {
			r.mu.Lock()
			switch q.Method {
			case "initialize":
				r.began, r.ready = q, nil
			case "notifications/initialized":
				r.ready = q
			}
			r.mu.Unlock()
		}
		// In the order in which the client sends: the next one when this one is on its
		// way, whenever its answer comes.
		sent := make(chan struct{})
		var once sync.Once
		out := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once.Do(func() { close(sent) }) }})
		r.work.Go(func() {
			defer once.Do(func() { close(sent) })
			r.send(out, m)
		})
		select {
		case <-sent:
		case <-ctx.Done():
			return
		}
	}
}

// send gets one message to the server, or tells the client why not.
func (r *relay) send(ctx context.Context, m jsonrpc.Message) {
	q, _ := m.(*jsonrpc.Request)
	call := q != nil && q.IsCall()
	until := time.Now().Add(relayPatience)
	for {
		var lost atomic.Bool
		ctx := context.WithValue(ctx, lostKey{}, &lost)
		link, err := r.session(ctx, q)
		if err == nil {
			if call {
				r.mu.Lock()
				link.open[q.ID] = true
				r.mu.Unlock()
			}
			if err = link.conn.Write(ctx, m); err == nil {
				return
			}
			if call && !r.settle(link, q.ID) {
				return // it was answered meanwhile
			}
		}
		if lost.Load() && link != nil {
			r.drop(link)
			r.work.Go(func() { _ = link.conn.Close() }) // the server knows nothing of it
		}
		if again := lost.Load() || notReached(err); again && ctx.Err() == nil && time.Now().Before(until) {
			select {
			case <-time.After(relayPause):
				continue
			case <-ctx.Done():
			}
		}
		if call && ctx.Err() == nil {
			r.answer(q.ID, fmt.Sprintf("the Reins server at %s did not take this: %s", strings.TrimSuffix(r.endpoint, "/mcp"), said(err)))
		}
		return
	}
}

// notReached reports whether a request has not come to a server: nothing happened.
func notReached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// said is what an error says, without the SDK's own words around it.
func said(err error) string {
	var theirs *jsonrpc.Error
	if errors.As(err, &theirs) {
		return theirs.Message
	}
	if strings.HasSuffix(err.Error(), http.StatusText(http.StatusUnauthorized)) {
		return "the agent's key is not valid; ask for another"
	}
	return err.Error()
}

// settle takes a call out of those that wait; false when it has been answered.
func (r *relay) settle(l *relayLink, id jsonrpc.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := l.open[id]
	delete(l.open, id)
	return was
}

// drop forgets a session.
func (r *relay) drop(l *relayLink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == l {
		r.link = nil
	}
}

// answer tells the client that a call failed.
func (r *relay) answer(id jsonrpc.ID, sentence string) {
	_ = r.local.Write(context.Background(), &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: relayFailed, Message: sentence}}) // to a client that may have left
}

// session is the session that there is, or a new one: begun by the client with q, or by
// the relay as the client once did.
func (r *relay) session(ctx context.Context, q *jsonrpc.Request) (*relayLink, error) {
	for {
		r.mu.Lock()
		if r.link != nil && (q == nil || q.Method != "initialize") {
			defer r.mu.Unlock()
			return r.link, nil
		}
		if wait := r.opening; wait != nil {
			r.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		mine := make(chan struct{})
		r.opening = mine
		began, ready := r.began, r.ready
		r.mu.Unlock()
		l, err := r.begin(ctx)
		if err == nil && began != nil && ready != nil && (q == nil || q.Method != "initialize") {
			err = r.replay(ctx, l, began, ready)
		}
		r.mu.Lock()
		r.opening = nil
		if err == nil {
			r.link = l
		}
		r.mu.Unlock()
		close(mine)
		if err != nil && l != nil {
			_ = l.conn.Close() // the reason is err
		}
		return l, err
	}
}

// begin connects; nothing is sent yet.
func (r *relay) begin(ctx context.Context) (*relayLink, error) {
	conn, err := (&sdk.StreamableClientTransport{Endpoint: r.endpoint, HTTPClient: r.http, DisableStandaloneSSE: true, MaxRetries: -1}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &relayLink{conn: conn, gone: make(chan struct{}), open: map[jsonrpc.ID]bool{}, private: map[jsonrpc.ID]chan bool{}}
	r.work.Go(func() { r.listen(ctx, l) })
	return l, nil
}

// replay begins a session anew as the client did.
func (r *relay) replay(ctx context.Context, l *relayLink, began, ready *jsonrpc.Request) error {
	r.mu.Lock()
	r.again++
	id, err := jsonrpc.MakeID(fmt.Sprintf("reins-again-%d", r.again))
	answered := make(chan bool, 1)
	l.private[id] = answered
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.conn.Write(ctx, &jsonrpc.Request{ID: id, Method: began.Method, Params: began.Params}); err != nil {
		return err
	}
	select {
	case ok := <-answered:
		if !ok {
			return reins.Errorf(reins.CodeTransportFailure, "the server took no new session")
		}
	case <-l.gone:
		return reins.Errorf(reins.CodeTransportFailure, "the server was lost once more")
	case <-ctx.Done():
		return ctx.Err()
	}
	r.log.Info("the session was begun anew")
	return l.conn.Write(ctx, ready)
}

// listen hands what the server says to the client, until the session is over. Calls
// that wait then are told so: what they were to do may have happened.
func (r *relay) listen(ctx context.Context, l *relayLink) {
	defer close(l.gone)
	for {
		m, err := l.conn.Read(ctx)
		if err != nil {
			r.drop(l)
			r.mu.Lock()
			var left []jsonrpc.ID
			for id := range l.open {
				left = append(left, id)
			}
			clear(l.open)
			r.mu.Unlock()
			for _, id := range left {
				r.answer(id, "the Reins server was lost while this was under way; it may have happened, take a snapshot before you repeat it")
			}
			return
		}
		if a, ok := m.(*jsonrpc.Response); ok {
			r.mu.Lock()
			private := l.private[a.ID]
			delete(l.private, a.ID)
			delete(l.open, a.ID)
			r.mu.Unlock()
			if private != nil {
				private <- a.Error == nil
				continue
			}
		}
		if r.local.Write(ctx, m) != nil {
			return // the client left
		}
	}
}

// elsewhere is the server to speak for. There is no flag for the key itself (CAP-4).
func (f *mcpFlags) elsewhere() instance {
	return instance{URL: f.server, KeyFile: f.keyFile, Certificate: f.certificate}
}

// speakFor is `reins mcp --server`.
func (f *mcpFlags) speakFor(ctx context.Context, io stdio, log *slog.Logger) error {
	if len(f.allow) > 0 || f.dir != "" || len(f.tools) > 0 || f.chromium != "" {
		return reins.Errorf(reins.CodeInvalidInput, "--allow, --dir, --tools and --chromium are the server's to decide; leave them out with --server")
	}
	if os.Getenv(keyVariable) == "" && f.keyFile == "" {
		return reins.Errorf(reins.CodeUnauthorized, "--server needs an agent's key; set %s, or name a file with --key-file", keyVariable)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	return relayMCP(ctx, io, f.elsewhere(), log)
}
