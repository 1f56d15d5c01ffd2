package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/mcp"
)

// doors are the doors over HTTP of one host, and what is open at them.
type doors struct {
	t    *testing.T
	w    *world
	r    *resource
	api  string
	mcp  string
	ends map[string]*party
}

// party is one participant with its open streams.
type party struct {
	binding reins.Binding
	cap     reins.Capability
	lease   *lease // of the host, whoever acquired it
	taps    []*tap
}

// tap reads a stream to its end.
type tap struct {
	name string
	on   chan struct{} // closed when it may read on, for one that stopped half-way
	over chan struct{}
	read int64
	at   time.Time // of the end
}

// openDoors serves a host over fakes by HTTP API and MCP.
func openDoors(t *testing.T) *doors {
	t.Helper()
	w := newWorld(t, t.TempDir(), reins.Hooks{}, reins.Limits{})
	t.Cleanup(func() { w.stop(t) })
	d := &doors{t: t, w: w, r: w.register(t, reins.BrowserSpec{}), ends: map[string]*party{}}
	if err := d.r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := api.New(api.Options{Runtime: w.host, Authenticate: func(*http.Request) (api.Identity, error) { return api.Identity{Name: "a", Admin: true}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	m, err := mcp.NewHTTPHandler(mcp.HTTPOptions{
		Authenticate: func(*http.Request) (reins.Binding, error) { return agentOf(key1, 1), nil }, Acquire: w.host.Acquire,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		h     http.Handler
		url   *string
		close func()
	}{{a, &d.api, a.Close}, {m, &d.mcp, m.Close}} {
		server := httptest.NewServer(s.h)
		t.Cleanup(server.Close)
		t.Cleanup(s.close)
		*s.url = server.URL
	}
	machine := agentOf(key1, 1)
	machine.Source, machine.Actor = reins.SourceAPI, "machine"
	bob := personOf(key1)
	bob.Actor = "bob"
	for name, b := range map[string]reins.Binding{"agent over MCP": agentOf(key1, 1), "agent over the API": machine, "person": personOf(key1), "bystander": bob} {
		p := &party{binding: b}
		if p.cap, err = w.host.Issue(t.Context(), b, 0); err != nil {
			t.Fatal(err)
		}
		d.ends[name] = p
	}
	return d
}

// ask sends a request with the capability of a party.
func (d *doors) ask(p *party, method, url, body string, header ...string) *http.Response {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+string(p.cap.Token))
	r.Header.Set("Reins-Capability", string(p.cap.Token))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode/100 != 2 {
		b, _ := io.ReadAll(res.Body)
		d.t.Fatalf("%s %s: %d %s", method, url, res.StatusCode, b)
	}
	return res
}

// tap begins to read: some bytes at once, the rest when it may.
func (p *party) tap(t *testing.T, name string, r io.Reader, half bool) {
	t.Helper()
	tap := &tap{name: name, on: make(chan struct{}), over: make(chan struct{})}
	began := make(chan struct{})
	go func() {
		defer close(tap.over)
		n, err := r.Read(make([]byte, 1024))
		close(began)
		if half {
			<-tap.on
		}
		if err == nil {
			tap.read, _ = io.Copy(io.Discard, r)
		}
		tap.read += int64(n)
		tap.at = time.Now()
	}()
	select {
	case <-began:
	case <-time.After(30 * time.Second):
		t.Fatalf("nothing comes from %s", name)
	}
	p.taps = append(p.taps, tap)
}

// messages reads a WebSocket as a stream of bytes.
type messages struct{ *websocket.Conn }

func (m messages) Read(p []byte) (int, error) {
	_, b, err := m.Conn.Read(context.Background())
	return copy(p, b), err
}

// openAPI acquires a lease over the API and opens all that it may.
func (d *doors) openAPI(p *party, artifact string, view bool) {
	d.t.Helper()
	form, err := json.Marshal(api.AcquireForm{Binding: p.binding})
	if err != nil {
		d.t.Fatal(err)
	}
	var state api.LeaseState
	if err := json.NewDecoder(d.ask(p, "POST", d.api+"/v1/leases", string(form)).Body).Decode(&state); err != nil {
		d.t.Fatal(err)
	}
	p.find(d)
	url := d.api + "/v1/leases/" + state.Lease
	p.tap(d.t, "the lease's events", d.ask(p, "GET", url+"/events", "").Body, false)
	if artifact != "" {
		p.tap(d.t, "an artifact", d.ask(p, "GET", url+"/artifacts/"+artifact, "").Body, true)
	}
	if view {
		c, _, err := websocket.Dial(d.t.Context(), url+"/view", &websocket.DialOptions{
			HTTPHeader: http.Header{"Reins-Capability": {string(p.cap.Token)}, "Authorization": {"Bearer a"}}, Subprotocols: []string{"reins.view.v1"},
			HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		})
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { _ = c.CloseNow() })
		p.tap(d.t, "the live view", messages{c}, false)
	}
}

// openMCP begins a session and listens.
func (d *doors) openMCP(p *party) {
	d.t.Helper()
	res := d.ask(p, "POST", d.mcp, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	_, _ = io.Copy(io.Discard, res.Body)
	session := res.Header.Get("Mcp-Session-Id")
	d.ask(p, "POST", d.mcp, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	p.find(d)
	stream := d.ask(p, "GET", d.mcp, "", "Mcp-Session-Id", session, "Accept", "text/event-stream")
	p.taps = append(p.taps, &tap{name: "the MCP stream", on: make(chan struct{}), over: make(chan struct{})})
	go func(tap *tap) { // it may say nothing
		defer close(tap.over)
		tap.read, _ = io.Copy(io.Discard, stream.Body)
		tap.at = time.Now()
	}(p.taps[len(p.taps)-1])
}

// find takes the host's lease of a party.
func (p *party) find(d *doors) {
	d.t.Helper()
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	for _, g := range d.r.st.grants {
		if g.id == p.cap.ID && g.lease != nil {
			p.lease = g.lease
			return
		}
	}
	d.t.Fatal("there is no lease")
}

// TestStreamsEndWithAuthority is LSE-6 at the doors over HTTP: whatever ends the
// authority, what is open under it ends: MCP streams, events, half-read
// artifacts and the live view; and what others have goes on (ATT-4). How long it
// took is told with -v.
func TestStreamsEndWithAuthority(t *testing.T) {
	ctx := context.Background()
	for reason, end := range map[string]func(*doors, *party) error{
		"revoke":  func(d *doors, p *party) error { return d.w.host.Revoke(ctx, p.cap.ID) },
		"release": func(_ *doors, p *party) error { return p.lease.Release(ctx) },
		"expiry": func(d *doors, p *party) error { // of a life that is as long as the streams take to open
			d.r.update(func(*state) {
				p.lease.grant.expires = time.Now()
				p.lease.grant.timer.Reset(0)
			})
			return nil
		},
		"replace": func(d *doors, p *party) error {
			_, err := d.w.host.Acquire(ctx, p.cap.Token, p.binding)
			return err
		},
		"attach": func(d *doors, _ *party) error { return d.r.Attach(ctx, attached(2)) },
		"retire": func(d *doors, _ *party) error { return d.r.Retire(ctx) },
	} {
		t.Run(reason, func(t *testing.T) {
			d := openDoors(t)
			agent, machine, person, bystander := d.ends["agent over MCP"], d.ends["agent over the API"], d.ends["person"], d.ends["bystander"]
			art, err := d.w.host.Artifacts(key1).Put(ctx, reins.Artifact{Kind: "upload", Name: "a"}, bytes.NewReader(make([]byte, 24<<20))) // more than sockets hold
			if err != nil {
				t.Fatal(err)
			}
			d.openAPI(bystander, "", true)
			d.openAPI(machine, "", false)
			d.openAPI(person, art.ID, true)
			d.openMCP(agent)
			parties, lives := []*party{agent, machine, person}, []*party{bystander}
			switch reason {
			case "attach":
				parties, lives = []*party{agent, machine}, []*party{bystander, person} // ATT-4
			case "retire":
				parties, lives = append(parties, bystander), nil
			}
			d.endAll(parties, end, reason)
			for _, p := range lives {
				for _, tap := range p.taps {
					select {
					case <-tap.over:
						t.Errorf("%s of %s ended too", tap.name, p.binding.Actor)
					default:
					}
					close(tap.on)
				}
			}
		})
	}
}

// endAll ends the authority of parties, each by its own call where there is one,
// and waits for the ends of their streams.
func (d *doors) endAll(parties []*party, end func(*doors, *party) error, reason string) {
	var wg sync.WaitGroup
	for i, p := range parties {
		if i > 0 && (reason == "attach" || reason == "retire") {
			continue // the first one's call ends them all
		}
		wg.Go(func() {
			began := time.Now()
			failed := make(chan error, 1)
			go func() { failed <- end(d, p) }() // what has begun is waited for there, not here
			<-p.lease.Done()
			concerned := []*party{p}
			if reason == "attach" || reason == "retire" {
				concerned = parties
			}
			for _, p := range concerned {
				for _, tap := range p.taps {
					close(tap.on)
				}
			}
			for _, p := range concerned {
				for _, tap := range p.taps {
					select {
					case <-tap.over:
						d.t.Logf("%s: %s of %s ended after %s", reason, tap.name, p.binding.Actor, tap.at.Sub(began).Round(time.Millisecond/10))
						if tap.name == "an artifact" && tap.read >= 24<<20 {
							d.t.Errorf("%s: all of the artifact came", reason)
						}
					case <-time.After(30 * time.Second):
						d.t.Errorf("%s: %s of %s goes on", reason, tap.name, p.binding.Actor)
					}
				}
			}
			if err := <-failed; err != nil {
				d.t.Errorf("%s: %v", reason, err)
			}
		})
	}
	wg.Wait()
}
