package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
	"github.com/reins-browser/reins/host"
	"github.com/reins-browser/reins/mcp"
)

// watched is a browser that an agent drives through MCP while a person has a
// lease on it, in one process: what a program that embeds Reins puts together.
type watched struct {
	client *sdk.ClientSession
	person reins.Lease
	told   chan string // progress
}

func watch(t *testing.T, pages http.Handler) (w watched, base string) {
	t.Helper()
	site := httptest.NewServer(pages)
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	h, err := host.New(host.Options{
		Dir:      filepath.Join(t.TempDir(), "runtime"),
		Backends: []cell.Backend{process.New(process.Options{})},
		Hooks:    reins.Hooks{Authorize: func(context.Context, reins.Binding) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	key, session := reins.ResourceKey{Project: "p", ID: "one"}, &reins.Session{Harness: "test", Native: "1"}
	_, err = h.Register(t.Context(), reins.Registration{
		Key: key, Attachment: reins.Attachment{AuthorityID: "boss", Revision: 1, Session: session},
		Spec: reins.BrowserSpec{Engine: reins.EngineShell, Verbs: reins.AgentVerbs(), Egress: reins.EgressPolicy{AllowPrivate: []string{strings.TrimPrefix(site.URL, "http://")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lease := func(ctx context.Context, b reins.Binding) (reins.Lease, error) {
		b.Project, b.Resource, b.Peer = key.Project, key.ID, "test"
		c, err := h.Issue(ctx, b, 0)
		if err != nil {
			return nil, err
		}
		return h.Acquire(ctx, c.Token, b)
	}
	if w.person, err = lease(t.Context(), reins.Binding{Actor: "Ada", Role: reins.RoleHuman, Source: reins.SourceViewer}); err != nil {
		t.Fatal(err)
	}
	server, err := mcp.NewServer(mcp.Options{Tools: []string{"full"}, People: true, Lease: func(ctx context.Context) (reins.Lease, error) {
		return lease(ctx, reins.Binding{AuthorityID: "boss", Revision: 1, Session: session, Actor: "agent", Role: reins.RoleAgent, Source: reins.SourceMCP})
	}})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), &sdk.IOTransport{Reader: far, Writer: far}) }()
	w.told = make(chan string, 64)
	w.client, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			select {
			case w.told <- req.Params.Message:
			default:
			}
		},
	}).Connect(t.Context(), &sdk.IOTransport{Reader: near, Writer: near}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.client.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return w, site.URL
}

// call is a tool's text.
func (w watched) call(ctx context.Context, tool string, arguments map[string]any) (text string, failed bool, err error) {
	p := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	p.SetProgressToken(tool)
	res, err := w.client.CallTool(ctx, p)
	if err != nil {
		return "", false, err
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError, nil
}

// want is call for what has to succeed.
func (w watched) want(t *testing.T, tool string, arguments map[string]any) string {
	t.Helper()
	text, failed, err := w.call(t.Context(), tool, arguments)
	if err != nil || failed {
		t.Fatalf("%s: %v %s", tool, err, text)
	}
	return text
}

func (w watched) does(t *testing.T, a reins.Action) *reins.Result {
	t.Helper()
	res, err := w.person.Do(t.Context(), reins.Call{Action: a})
	if err != nil {
		t.Fatalf("%s: %v", a.Verb(), err)
	}
	return res
}

func refIn(t *testing.T, outline, name string) string {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(name) + `.*?\[ref=(f\d+e\d+)\]`).FindStringSubmatch(outline)
	if m == nil {
		t.Fatalf("no %q in\n%s", name, outline)
	}
	return m[1]
}

// TestHandOff is B127: at a code that is only painted the agent hands over in one
// call, a person signs in and gives back, and the agent goes on in the same page,
// tab and state. A person who never comes is said so.
func TestHandOff(t *testing.T) {
	const page = `<!doctype html><title>Second step</title><label>Note <input id=note></label>
<canvas id=picture width=220 height=70></canvas><label>Code <input id=k></label><button id=v>Verify</button><p id=out>not signed in</p>
<script>
const code = '481516'
const x = picture.getContext('2d')
x.font = '34px monospace'
x.fillText(code, 20, 45)
v.onclick = () => { out.textContent = k.value == code ? 'signed in, note: ' + note.value : 'wrong code' }
</script>`
	w, base := watch(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(rw, page)
	}))
	outline := w.want(t, "browser_navigate", map[string]any{"url": base})
	w.want(t, "browser_fill", map[string]any{"ref": refIn(t, outline, "Note"), "value": "kept"})
	if strings.Contains(outline, "481516") {
		t.Fatal("the code is not only in the picture")
	}
	var wg sync.WaitGroup
	var answer string
	var failed bool
	var err error
	wg.Go(func() {
		answer, failed, err = w.call(t.Context(), "browser_request_human", map[string]any{"reason": "Type the code of the picture."})
	})
	if m := <-w.told; m != "Waiting for a person." { // MCP-6
		for m = range w.told {
			if m == "Waiting for a person." {
				break
			}
		}
	}
	asked := w.does(t, reins.GetControl{}).Control.Requests
	if len(asked) != 1 || asked[0].Actor != "agent" || asked[0].Reason != "Type the code of the picture." {
		t.Fatalf("people see %+v", asked)
	}
	w.does(t, reins.RequestControl{})
	text, refused, _ := w.call(t.Context(), "browser_snapshot", nil)
	if !refused || !strings.HasPrefix(text, "human_controlled: ") || !strings.Contains(text, `"Ada"`) {
		t.Errorf("a call meanwhile: %s", text)
	}
	mine := w.does(t, reins.Snapshot{}).Snapshot.Text
	w.does(t, reins.Fill{Ref: reins.Ref(refIn(t, mine, "Code")), Value: reins.TextValue("481516")})
	w.does(t, reins.Click{Ref: reins.Ref(refIn(t, mine, "Verify"))})
	w.does(t, reins.AnswerHuman{Request: asked[0].ID, Note: "you are in"})
	wg.Wait()
	if want := `A person is done; look at the page before you go on. They say: "you are in"`; err != nil || failed || answer != want {
		t.Fatalf("the call came to %q, %v", answer, err)
	}
	text, refused, _ = w.call(t.Context(), "browser_click", map[string]any{"ref": refIn(t, outline, "Verify")})
	if !refused || !strings.HasPrefix(text, "observe_again: ") {
		t.Errorf("a ref from before: %s", text)
	}
	if now := w.want(t, "browser_snapshot", nil); !strings.Contains(now, "signed in, note: kept") {
		t.Errorf("afterwards:\n%s", now)
	}
	w.want(t, "browser_click", map[string]any{"ref": refIn(t, outline, "Verify")})
	began := time.Now()
	if text := w.want(t, "browser_request_human", map[string]any{"reason": "Once more.", "timeout_ms": 1000}); text != "Nobody came in time." || time.Since(began) < time.Second {
		t.Errorf("after %s: %s", time.Since(began), text)
	}
	if c := w.does(t, reins.GetControl{}).Control; c.State != reins.ControlAgent || len(c.Requests) != 0 {
		t.Errorf("left: %+v", c)
	}
}

// TestTakenBackCalls is B118: a call that its client takes back ends and really
// stops; one that waits never runs, one that is over stays as it is; what was cut
// off is not tried again, and session, tabs and queue are as before.
func TestTakenBackCalls(t *testing.T) {
	var mu sync.Mutex
	hits := map[string]int{}
	begun, gone := make(chan struct{}, 8), make(chan struct{}, 8)
	w, base := watch(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hits[r.URL.Path]++
		mu.Unlock()
		if r.URL.Path == "/hang" {
			begun <- struct{}{}
			<-r.Context().Done()
			gone <- struct{}{}
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, `<!doctype html><title>%s</title><button onclick="location = '/hang'">Go</button>`, r.URL.Path)
	}))
	hit := func(path string) int { mu.Lock(); defer mu.Unlock(); return hits[path] }
	w.want(t, "browser_navigate", map[string]any{"url": base + "/one"})
	tabs := w.want(t, "browser_list_tabs", nil)

	slow, takeBack := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() {
		_, _, err := w.call(slow, "browser_navigate", map[string]any{"url": base + "/hang"})
		ended <- err
	}()
	<-begun
	waits, leave := context.WithCancel(t.Context())
	go func() {
		_, _, err := w.call(waits, "browser_navigate", map[string]any{"url": base + "/never"})
		ended <- err
	}()
	for m := range w.told {
		if strings.HasPrefix(m, "Waiting for one operation") {
			break
		}
	}
	leave()
	takeBack()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a call that was taken back was answered")
		}
	}
	if got := w.want(t, "browser_list_tabs", nil); got != tabs {
		t.Errorf("the tabs were\n%s\nand are\n%s", tabs, got)
	}
	stopped := func() {
		t.Helper()
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			t.Error("the load goes on")
		}
	}
	stopped()
	if hit("/never") != 0 {
		t.Error("a call that waited ran although it was taken back")
	}
	over, cancel := context.WithCancel(t.Context())
	if _, failed, err := w.call(over, "browser_navigate", map[string]any{"url": base + "/two"}); failed || err != nil {
		t.Fatal(err)
	}
	cancel() // it is over
	outline := w.want(t, "browser_snapshot", nil)
	if !strings.Contains(outline, "/two") {
		t.Errorf("it is not on the second page:\n%s", outline)
	}
	half, cut := context.WithCancel(t.Context())
	button := refIn(t, outline, "Go")
	go func() {
		_, _, err := w.call(half, "browser_click", map[string]any{"ref": button})
		ended <- err
	}()
	<-begun
	cut()
	<-ended
	stopped()
	if w.want(t, "browser_list_tabs", nil); hit("/hang") != 2 {
		t.Errorf("a click that was cut off was tried %d times", hit("/hang")-1)
	}
}
