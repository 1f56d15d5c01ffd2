package api

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reins-browser/reins"
)

// TestErrors is API-4: each code travels in one shape with its status, and the
// client gives back what the runtime said.
func TestErrors(t *testing.T) {
	f := newFake()
	_, s := serve(t, f, Options{})
	c := dial(t, s.URL, "admin")
	for _, info := range reins.Codes() {
		want := reins.Errorf(info.Code, "it is about %q", "é\u2028<").With("revision", uint64(1<<63)).With("list", []any{"a", true}).In(reins.PhaseHook)
		want.Capability = "browser"
		f.fail = want
		r, body := ask(t, "GET", s.URL+"/v1/projects/p/resources", "admin", "")
		if r.StatusCode != info.Status || r.Header.Get("Content-Type") != typeJSON || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", info.Code, r.StatusCode, r.Header)
		}
		if again := r.StatusCode == 429 || r.StatusCode == 503; again != (r.Header.Get("Retry-After") != "") {
			t.Errorf("%s: Retry-After %q", info.Code, r.Header.Get("Retry-After"))
		}
		if !strings.Contains(body, `"code":"`+string(info.Code)+`"`) {
			t.Errorf("%s: %s", info.Code, body)
		}
		_, err := c.List(t.Context(), "p")
		got := reins.AsError(err)
		delete(got.Details, "log")
		if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(reins.Error{}, "Cause")); diff != "" {
			t.Errorf("%s: %s", info.Code, diff)
		}
	}
}

// TestRefusals: whatever a request is refused for, it is told in the one shape.
func TestRefusals(t *testing.T) {
	f := newFake()
	f.bound = human()
	_, s := serve(t, f, Options{})
	resources, lease := "/v1/projects/p/resources", ""
	if l, err := dial(t, s.URL, "").Acquire(t.Context(), theToken, human()); err != nil {
		t.Fatal(err)
	} else {
		lease = "/v1/leases/" + l.Authority().LeaseID + "/operations"
	}
	large := `{"resource":"` + strings.Repeat("x", 4<<20) + `"}`
	for name, c := range map[string]struct {
		method, path, key, body string
		headers                 []string
		code                    reins.Code
		says                    string
	}{
		"no such place":     {"GET", "/v1/nothing", "admin", "", nil, reins.CodeNotFound, "/docs"},
		"no such method":    {"PATCH", resources, "admin", "", nil, reins.CodeNotFound, "PATCH"},
		"no key":            {"GET", resources, "", "", nil, reins.CodeUnauthorized, "Authorization"},
		"unknown key":       {"GET", resources, "x", "", nil, reins.CodeUnauthorized, "Authorization"},
		"key of nobody":     {"GET", resources, "nobody", "", nil, reins.CodeUnauthorized, "Authorization"},
		"other project":     {"GET", resources, "q", "", nil, reins.CodeDenied, "another project"},
		"token is no key":   {"GET", resources, "", "", []string{capabilityHeader, theToken}, reins.CodeUnauthorized, "API key"},
		"no JSON":           {"POST", resources, "p", "{", nil, reins.CodeInvalidInput, "body"},
		"unknown field":     {"POST", resources, "p", `{"project":"q"}`, nil, reins.CodeInvalidInput, "project"},
		"two values":        {"POST", resources, "p", `{}{}`, nil, reins.CodeInvalidInput, "goes on"},
		"a form":            {"POST", resources, "p", `{}`, []string{"Content-Type", "text/plain"}, reins.CodeInvalidInput, "text/plain"},
		"another type":      {"POST", resources, "p", `{}`, []string{"Content-Type", "application/xml"}, reins.CodeInvalidInput, "application/json"},
		"4 MiB and more":    {"POST", resources, "p", large, nil, reins.CodeInvalidInput, "4194304 bytes"},
		"life":              {"POST", "/v1/projects/p/capabilities", "p", `{"life":"x"}`, nil, reins.CodeInvalidInput, "5m"},
		"binding elsewhere": {"POST", "/v1/projects/p/capabilities", "p", `{"binding":{"project":"q"}}`, nil, reins.CodeInvalidInput, "another project"},
		"foreign host":      {"GET", resources, "p", "", []string{"Host", "evil.test"}, reins.CodeDenied, "evil.test"},
		"foreign origin":    {"GET", resources, "p", "", []string{"Origin", "http://evil.test"}, reins.CodeDenied, "http://evil.test"},
		"long key":          {"POST", resources, "p", `{}`, []string{keyHeader, strings.Repeat("k", 129)}, reins.CodeInvalidInput, "128"},
		"unknown lease":     {"POST", "/v1/leases/lse_x/renew", "", "", []string{capabilityHeader, theToken}, reins.CodeUnauthorized, "capability or binding"},
		"no action":         {"POST", lease, "", `{}`, []string{capabilityHeader, theToken}, reins.CodeInvalidInput, "action is missing"},
		"unknown verb":      {"POST", lease, "", `{"action":{"verb":"eval"}}`, []string{capabilityHeader, theToken}, reins.CodeInvalidInput, "eval"},
		"bad action":        {"POST", lease, "", `{"action":{"verb":"click"}}`, []string{capabilityHeader, theToken}, reins.CodeInvalidInput, "ref is missing"},
		"bad call":          {"POST", lease, "", `{"action":{"verb":"snapshot"},"call":"a/b"}`, []string{capabilityHeader, theToken}, reins.CodeInvalidInput, "letters"},
		"other's lease":     {"POST", lease, "", `{"action":{"verb":"snapshot"}}`, []string{capabilityHeader, "guess"}, reins.CodeUnauthorized, "capability or binding"},
		"other's project":   {"POST", lease, "q", `{"action":{"verb":"snapshot"}}`, []string{capabilityHeader, theToken}, reins.CodeUnauthorized, "capability or binding"},
		"no call":           {"DELETE", lease + "/x", "", "", []string{capabilityHeader, theToken}, reins.CodeNotFound, "under way"},
	} {
		r, body := ask(t, c.method, s.URL+c.path, c.key, c.body, c.headers...)
		e := decodeError([]byte(body))
		if e == nil || e.Code != c.code || r.StatusCode != c.code.Info().Status || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %d %s", name, r.StatusCode, body)
		}
		if strings.Contains(body, theToken) || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v %s", name, r.Header, body)
		}
	}
	if f.made+f.issued > 0 {
		t.Error("what was refused was made")
	}
}

// TestEveryDoor is case B113 for this door: no path is served to a page of the
// web, and none answers a preflight.
func TestEveryDoor(t *testing.T) {
	h, s := serve(t, newFake(), Options{})
	paths := []string{"/docs", "/openapi.json", "/", "/v1/leases/x/events", "/v1/leases/x/artifacts/a"}
	for path := range h.spec.Paths {
		paths = append(paths, path)
	}
	for _, path := range paths {
		for _, header := range [][]string{{"Host", "evil.test"}, {"Origin", "null"}, {"Origin", "http://evil.test"}} {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
				r, _ := ask(t, method, s.URL+path, "admin", "", header...)
				if r.StatusCode != http.StatusForbidden || r.Header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s %s with %v: %d", method, path, header, r.StatusCode)
				}
			}
		}
	}
}

// TestInternalStaysInside: the cause of our own faults is in the log under an
// ID and not in the answer.
func TestInternalStaysInside(t *testing.T) {
	f := newFake()
	f.fail = errors.New("the disk at /secret/path")
	var log bytes.Buffer
	_, s := serve(t, f, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r, body := ask(t, "GET", s.URL+"/v1/projects/p/resources", "admin", "")
	e := decodeError([]byte(body))
	if r.StatusCode != 500 || e == nil || strings.Contains(body, "/secret/path") {
		t.Fatalf("%d %s", r.StatusCode, body)
	}
	id, _ := e.Details["log"].(string)
	if id == "" || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "/secret/path") {
		t.Errorf("logged %s under %q", log.String(), id)
	}
}

// TestProjectKeys is API-2: a project's key reaches its project only.
func TestProjectKeys(t *testing.T) {
	f := newFake()
	_, s := serve(t, f, Options{})
	p, q := dial(t, s.URL, "p"), dial(t, s.URL, "q")
	if _, err := p.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p"}}); err != nil {
		t.Error(err)
	}
	_, err := q.Register(t.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p"}})
	wantCode(t, err, reins.CodeDenied)
	c, err := p.Issue(t.Context(), human(), 0)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, q.Revoke(t.Context(), c.ID), reins.CodeNotFound)
	if len(f.revoked) != 0 {
		t.Fatal("another project's key revoked")
	}
	if err := p.Revoke(t.Context(), c.ID); err != nil {
		t.Error(err)
	}
	if err := dial(t, s.URL, "admin").Revoke(t.Context(), "cap_unknown"); err != nil {
		t.Error(err)
	}
	f.bound = human()
	_, err = q.Acquire(t.Context(), theToken, human())
	wantCode(t, err, reins.CodeUnauthorized)
}

// TestParticipants is MCP-2 for this door: without a key, source and peer are
// what the door observes, and a lease answers to who acquired it.
func TestParticipants(t *testing.T) {
	f := newFake()
	f.bound = human()
	peer := "127.0.0.1"
	var mu sync.Mutex
	_, s := serve(t, f, Options{Peer: func(*http.Request) string { mu.Lock(); defer mu.Unlock(); return peer }})
	move := func(to string) { mu.Lock(); defer mu.Unlock(); peer = to }
	c := dial(t, s.URL, "")
	lies := human()
	lies.Peer, lies.Source = "10.0.0.1", reins.SourceViewer
	l, err := c.Acquire(t.Context(), theToken, lies) // not looked at
	if err != nil || !l.Authority().Binding.Equal(human()) {
		t.Fatalf("%+v, %v", l, err)
	}
	act := func(key string) int {
		r, _ := ask(t, "POST", s.URL+"/v1/leases/"+l.Authority().LeaseID+"/operations", key, `{"action":{"verb":"snapshot"}}`, capabilityHeader, theToken)
		return r.StatusCode
	}
	if got := act(""); got != 200 {
		t.Errorf("its holder: %d", got)
	}
	move("10.9.9.9")
	if got := act(""); got != 401 { // the token was stolen
		t.Errorf("another peer: %d", got)
	}
	_, err = dial(t, s.URL, "").Acquire(t.Context(), theToken, human())
	wantCode(t, err, reins.CodeUnauthorized)
	if got := act("p"); got != 200 {
		t.Errorf("the project's host: %d", got)
	}
	if got := act("q"); got != 401 {
		t.Errorf("another project's host: %d", got)
	}
	if got := act("wrong"); got != 401 {
		t.Errorf("a wrong key beside the token: %d", got)
	}
	move("127.0.0.1")
	viewer := human()
	viewer.Source = reins.SourceViewer
	f.bound = viewer
	_, err = c.Acquire(t.Context(), theToken, viewer)
	wantCode(t, err, reins.CodeUnauthorized)
}

// TestIdempotencyKeys is API-4: under one key nothing is made twice.
func TestIdempotencyKeys(t *testing.T) {
	f := newFake()
	_, s := serve(t, f, Options{})
	post := func(path, body, key string, headers ...string) (int, string) {
		t.Helper()
		r, b := ask(t, "POST", s.URL+path, "p", body, append(headers, keyHeader, key)...)
		return r.StatusCode, b
	}
	resources, caps, arts := "/v1/projects/p/resources", "/v1/projects/p/capabilities", "/v1/projects/p/resources/one/artifacts"
	enter, leave := make(chan struct{}), make(chan struct{})
	f.register = func() { enter <- struct{}{}; <-leave }
	var wg sync.WaitGroup
	bodies := make([]string, 4)
	for i := range bodies {
		wg.Go(func() { _, bodies[i] = post(resources, `{"spec":{"locale":"de"}}`, "k") })
	}
	<-enter
	close(leave)
	wg.Wait()
	f.register = nil
	for _, b := range bodies {
		if b != bodies[0] || !strings.Contains(b, `"made"`) {
			t.Errorf("answers %v", bodies)
		}
	}
	if status, _ := post(resources, `{"spec":{"locale":"fr"}}`, "k"); status != 409 || f.made != 1 {
		t.Errorf("another request: %d, %d made", status, f.made)
	}
	if status, _ := post(resources, `{"spec":{"locale":"de"}}`, "k2"); status != 201 || f.made != 2 {
		t.Errorf("another key: %d, %d made", status, f.made)
	}
	f.fail = reins.Errorf(reins.CodeQuotaExceeded, "full")
	if status, _ := post(resources, `{}`, "k3"); status != 429 {
		t.Errorf("a failure: %d", status)
	}
	f.fail = nil
	if status, _ := post(resources, `{}`, "k3"); status != 201 {
		t.Errorf("after a failure: %d", status)
	}
	binding := `{"binding":{"project":"p","resource":"one","actor":"ada","role":"human","peer":"x","source":"api"},"life":"1m"}`
	status, first := post(caps, binding, "k")
	status2, second := post(caps, binding, "k") // a token is shown once (CAP-4)
	if status != 201 || status2 != 409 || f.issued != 1 || !strings.Contains(first, theToken) || strings.Contains(second, theToken) || !strings.Contains(second, "cap_1") {
		t.Errorf("capability: %d %s, then %d %s", status, first, status2, second)
	}
	bytes := []string{"Content-Type", typeBytes}
	for i, c := range []struct {
		kind, body string
		status     int
	}{{"a", "hello", 201}, {"a", "hello", 201}, {"a", "help", 409}, {"a", "hello!", 409}, {"b", "hello", 409}} {
		if status, b := post(arts+"?kind="+c.kind, c.body, "k", bytes...); status != c.status {
			t.Errorf("artifact %d: %d %s", i, status, b)
		}
	}
	if f.made != 5 { // two resources, a failure, one after it, and one artifact
		t.Errorf("%d were made", f.made)
	}
}

// TestKeysAreBounded: the oldest answers are forgotten first.
func TestKeysAreBounded(t *testing.T) {
	var table keyTable
	for i := range keysMax + 10 {
		id := keyID{key: fmt.Sprint(i)}
		k, first := table.begin(id, [32]byte{})
		if !first {
			t.Fatal("a new key is known")
		}
		if _, err := table.run(id, k, func() (any, error) { return i, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(table.made) != keysMax || len(table.order) != keysMax {
		t.Errorf("%d answers are kept", len(table.made))
	}
	var issued issuedTable
	for i := range issuedMax + 10 {
		issued.add(fmt.Sprint(i), "p")
	}
	if len(issued.projects) != issuedMax || issued.of("0") != "" || issued.of("10") != "p" {
		t.Errorf("%d capabilities are kept", len(issued.projects))
	}
	var leases leaseTable
	f := newFake()
	for i := range 3 * endedMax {
		l := &fakeLease{f: f, done: make(chan struct{})}
		if i != 7 {
			l.end("released")
		}
		leases.add(&held{id: fmt.Sprint(i), lease: l})
	}
	if n := len(leases.held); n > endedMax+1 || n != len(leases.old) || leases.find("7") == nil || leases.find("8") != nil {
		t.Errorf("%d leases are kept", n)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Authenticate: keys}, {Runtime: newFake()}, {Runtime: newFake(), Authenticate: keys, KeepAlive: 1},
		{Runtime: newFake(), Authenticate: keys, Hosts: []string{"a b"}},
	} {
		_, err := New(o)
		wantCode(t, err, reins.CodeInvalidInput)
	}
	for _, o := range []ClientOptions{{}, {URL: "ftp://x"}, {URL: "http://"}, {URL: "http://u:p@x"}, {URL: "http://x?y"}, {URL: "http://x", Key: "a\nb"}} {
		_, err := NewClient(o)
		wantCode(t, err, reins.CodeInvalidInput)
		if err != nil && strings.Contains(err.Error(), cmp.Or(o.Key, "u:p")) {
			t.Errorf("%v repeats a secret", err)
		}
	}
}

// FuzzRequest: whatever arrives, the answer has the one shape and is no fault
// of ours, and no token is in it.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/projects/p/resources", "", "")
	f.Add("POST", "/v1/projects/p/resources", `{"resource":"one","attachment":{"revision":1},"spec":{"locale":"de"}}`, "k")
	f.Add("POST", "/v1/projects/~../capabilities", `{"binding":{"project":".."},"life":"1m"}`, "")
	f.Add("POST", "/v1/leases", `{"binding":{"session":{}}}`, "")
	f.Add("POST", "/v1/leases/lse_a/operations", `{"action":{"verb":"fill","ref":"f1e1","value":["a"]},"key":"k","call":"c"}`, "")
	f.Add("DELETE", "/v1/capabilities/%2e%2e", "", "")
	f.Add("POST", "/v1/projects/p/resources/one/artifacts?kind=a;b", "\xff", "")
	fake := newFake()
	fake.bound = human()
	h, err := New(Options{Runtime: fake, Authenticate: keys})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(h.Close)
	f.Fuzz(func(t *testing.T, method, path, body, key string) {
		if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/events") {
			return // no request, or one without an end
		}
		r, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header = http.Header{"Authorization": {"Bearer admin"}, "Content-Type": {typeJSON}, capabilityHeader: {theToken}, keyHeader: {key}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code >= 400 && decodeError(w.Body.Bytes()) == nil {
			t.Fatalf("%s %q %q: %d %s", method, path, body, w.Code, w.Body)
		}
		if w.Code >= 400 && strings.Contains(w.Body.String(), theToken) && !strings.Contains(path+body, theToken) {
			t.Fatalf("a token is in %s", w.Body)
		}
	})
}
