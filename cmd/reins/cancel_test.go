package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// raw speaks the protocol line by line. It is for one goroutine.
type raw struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	next int
	kept map[int]json.RawMessage // answers that came before they were waited for
}

func startRaw(t *testing.T, arguments ...string) *raw {
	t.Helper()
	cmd := program(t, arguments...)
	cmd.Stderr = testWriter{t}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		nothingLeft(t, cmd)
	})
	r := &raw{t: t, in: in, out: bufio.NewScanner(out), kept: map[int]json.RawMessage{}}
	r.out.Buffer(nil, 16<<20)
	r.wait(r.send("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`))
	r.notify("notifications/initialized", `{}`)
	return r
}

func (r *raw) notify(method, params string) {
	r.t.Helper()
	if _, err := fmt.Fprintf(r.in, `{"jsonrpc":"2.0","method":%q,"params":%s}`+"\n", method, params); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) send(method, params string) (id int) {
	r.t.Helper()
	r.next++
	if _, err := fmt.Fprintf(r.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", r.next, method, params); err != nil {
		r.t.Fatal(err)
	}
	return r.next
}

func (r *raw) call(tool, arguments string) (id int) {
	r.t.Helper()
	return r.send("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

func (r *raw) cancel(id int) {
	r.t.Helper()
	r.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, id))
}

// wait returns the answer to a request.
func (r *raw) wait(id int) string {
	r.t.Helper()
	for r.kept[id] == nil {
		if !r.out.Scan() {
			r.t.Fatalf("the server said no more: %v", r.out.Err())
		}
		var m struct{ ID int }
		if err := json.Unmarshal(r.out.Bytes(), &m); err != nil {
			r.t.Fatalf("%v in %.200q", err, r.out.Bytes())
		}
		if m.ID != 0 {
			r.kept[m.ID] = json.RawMessage(strings.Clone(r.out.Text()))
		}
	}
	return string(r.kept[id])
}

// B118, MCP-6: a call that is taken back while it runs is stopped, one that waits
// never runs, one that is over stays as it was; each time the next call is answered
// at once, by the same session with the same tabs.
func TestTakingCallsBack(t *testing.T) {
	var ran atomic.Int64
	began, ended := make(chan struct{}, 8), make(chan struct{}, 8)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/slow":
			began <- struct{}{}
			<-req.Context().Done()
			ended <- struct{}{}
		case "/waits":
			ran.Add(1)
		}
		fmt.Fprint(w, `<title>Here</title><h1>Here</h1>`)
	}))
	defer site.Close()
	r := startRaw(t, "mcp", "--engine", "shell", "--allow", site.Listener.Addr().String())
	to := func(path string) int { return r.call("browser_navigate", fmt.Sprintf(`{"url":%q}`, site.URL+path)) }
	here := func(when string) {
		t.Helper()
		asked := time.Now()
		text := r.wait(r.call("browser_snapshot", `{}`))
		if took := time.Since(asked); took > 5*time.Second || !strings.Contains(text, `(t1)`) || strings.Contains(text, `"isError":true`) {
			t.Errorf("%s, the next call took %s: %s", when, took, text)
		}
	}
	r.wait(to("/"))
	slow := to("/slow")
	<-began
	queued := to("/waits")
	r.cancel(queued) // 2: while it waits
	r.cancel(slow)   // 1: while it runs
	<-ended          // the load is really stopped
	here("after two were taken back")
	if n := ran.Load(); n != 0 {
		t.Errorf("a call that was taken back while it waited ran %d times", n)
	}
	over := to("/over")
	if text := r.wait(over); !strings.Contains(text, "Loaded the page") {
		t.Errorf("an ordinary call: %s", text)
	}
	r.cancel(over) // 3: when it is over
	r.cancel(4711) // and one that never was
	here("after one that was over")
	if text := r.wait(to("/waits")); !strings.Contains(text, "Loaded the page") || ran.Load() != 1 {
		t.Errorf("the same call anew, which ran %d times: %s", ran.Load(), text)
	}
}

// B109, MCP-8: a client that is quiet, and answers no question of the server's, is
// not a dead one.
func TestQuietClientIsKept(t *testing.T) {
	r := startRaw(t, "mcp", "--engine", "shell")
	first := r.wait(r.call("browser_snapshot", `{}`))
	<-time.After(3 * time.Second) // nothing is read or written; virtual days are package mcp's to test
	if again := r.wait(r.call("browser_snapshot", `{}`)); !strings.Contains(again, "(t1)") || strings.Contains(again, "anew") || strings.Contains(again, `"isError":true`) {
		t.Errorf("before %s\nafter %s", first, again)
	}
}
