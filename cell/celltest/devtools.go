package celltest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/reins-browser/reins/cell"
)

// patience bounds every wait for a browser; the machine may be busy.
const patience = 40 * time.Second

// browser speaks just enough DevTools protocol over a cell's doors. It is for
// one goroutine.
type browser struct {
	t   *testing.T
	in  *bufio.Reader
	out *os.File
	id  int
	// seen are the names of events so far, with their parameters.
	seen []message
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	Session string `json:"sessionId,omitempty"`
}

func speak(t *testing.T, c cell.Cell) *browser {
	t.Helper()
	d := c.Doors()
	if err := d.FromBrowser.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, in: bufio.NewReader(d.FromBrowser), out: d.ToBrowser}
}

// try calls a method and returns the error that the browser answers with.
func (b *browser) try(session, method string, params, result any) error {
	b.t.Helper()
	b.send(session, method, params)
	for {
		m := b.next(method)
		if m.ID != b.id {
			continue
		}
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			return json.Unmarshal(m.Result, result)
		}
		return nil
	}
}

// send calls a method without waiting for the answer.
func (b *browser) send(session, method string, params any) {
	b.t.Helper()
	b.id++
	p, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	data, err := json.Marshal(message{ID: b.id, Method: method, Params: p, Session: session})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.out.Write(append(data, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// next reads one message; events are kept.
func (b *browser) next(why string) message {
	b.t.Helper()
	raw, err := b.in.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("%s: the browser does not answer: %v", why, err)
	}
	var m message
	if err := json.Unmarshal(raw[:len(raw)-1], &m); err != nil {
		b.t.Fatalf("%s: %v in %.200q", why, err, raw)
	}
	if m.Method != "" {
		b.seen = append(b.seen, m)
	}
	return m
}

func (b *browser) call(session, method string, params, result any) {
	b.t.Helper()
	if err := b.try(session, method, params, result); err != nil {
		b.t.Fatal(err)
	}
}

// event waits for an event, seen already or to come.
func (b *browser) event(method string) message {
	b.t.Helper()
	for _, m := range b.seen {
		if m.Method == method {
			return m
		}
	}
	for {
		if m := b.next(method); m.Method == method {
			return m
		}
	}
}

// page is one tab with a session.
type page struct {
	*browser
	session string
}

func (b *browser) open(url string) page {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := page{b, attached.SessionID}
	if url != "about:blank" {
		if text := p.navigate(url); text != "" {
			b.t.Fatalf("open %s: %s", url, text)
		}
	}
	return p
}

// navigate goes to url and returns the browser's error text, empty when it got
// there; the document is complete then.
func (p page) navigate(url string) string {
	p.t.Helper()
	var r struct{ ErrorText string }
	p.call(p.session, "Page.navigate", map[string]any{"url": url}, &r)
	if r.ErrorText == "" {
		p.eval(`document.readyState == "complete" || new Promise(done => addEventListener("load", done))`)
	}
	return r.ErrorText
}

// eval runs an expression, waits for it, and returns its value as JSON.
func (p page) eval(expression string) string {
	p.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	p.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return string(r.Result.Value)
}
