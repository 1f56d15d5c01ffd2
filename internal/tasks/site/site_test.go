package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func postJSON(h http.Handler, path string, body any) int {
	b, _ := json.Marshal(body)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(b)))
	return w.Code
}

type told struct {
	Run  string `json:"run"`
	Body any    `json:"body"`
}

// verdict finds the ways in which a page can judge.
var verdict = regexp.MustCompile(`\b(check|done)\(`)

// instruction finds where a page says what is to be done.
var instruction = regexp.MustCompile(`(^|[^A-Za-z])task\(`)

// outside finds addresses that are not the site's own.
var outside = regexp.MustCompile(`(src|href)="?(https?:)?//`)

func TestEveryPageSetsATaskAndJudges(t *testing.T) {
	s := New()
	entries, err := files.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".html")
		w := get(t, s, "/t/"+name+"?seed=1&run=x")
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(body, "<title>") || strings.Contains(body, "<title></title>") {
			t.Errorf("%s: status %d or no title", name, w.Code)
		}
		if outside.MatchString(body) {
			t.Errorf("%s asks somebody else for something", name)
		}
		if strings.Contains(name, ".") {
			continue // a part: its page judges
		}
		if n := len(instruction.FindAllString(body, -1)); n != 1 {
			t.Errorf("%s says %d times what is to be done", name, n)
		}
		if !verdict.MatchString(body) {
			t.Errorf("%s never judges", name)
		}
		if strings.Contains(body, "Math.random") || strings.Contains(body, "Date.now") {
			t.Errorf("%s depends on more than its seed", name)
		}
	}
	if n := len(Pages()); n < 60 {
		t.Errorf("only %d pages", n)
	}
}

func TestFragmentsServeSeveralTasks(t *testing.T) {
	s := New()
	for path, want := range map[string]int{
		"/t/mail-reply": 200, "/t/mail": 200, "/t/mail.reply": 404, "/t/popup.code": 200, "/t/nothing": 404, "/t/nothing-at": 404,
		"/t/..%2flib": 404, "/lib.js": 200, "/lib.css": 200, "/": 200, "/other": 404,
	} {
		if got := get(t, s, path).Code; got != want {
			t.Errorf("%s is answered with %d, want %d", path, got, want)
		}
	}
	if !Has("frame-cross") || Has("no-such") {
		t.Error("Has does not tell tasks that are there from others")
	}
}

func TestFirstVerdictCounts(t *testing.T) {
	s := New()
	ctx := t.Context()
	if s.Judged("r") {
		t.Error("judged before anything happened")
	}
	for _, body := range []any{"do it", "do something else"} {
		if code := postJSON(s, "/begin", told{"r", body}); code != http.StatusNoContent {
			t.Fatalf("status %d", code)
		}
	}
	if words, err := s.Instruction(ctx, "r"); err != nil || words != "do it" {
		t.Errorf("instruction %q, %v", words, err)
	}
	for _, ok := range []bool{false, true} {
		postJSON(s, "/score", told{"r", Outcome{OK: ok, Detail: "x"}})
	}
	if got, err := s.Outcome(ctx, "r"); err != nil || got.OK || got.Detail != "x" {
		t.Errorf("outcome %+v, %v", got, err)
	}
	postJSON(s, "/score", told{"", Outcome{OK: true}})
	if !s.Judged("r") || s.Judged("") {
		t.Error("the record is wrong")
	}
	s.Forget("r")
	if s.Judged("r") {
		t.Error("still judged after it was forgotten")
	}
	if code := postJSON(s, "/score", "not a report"); code != http.StatusBadRequest {
		t.Errorf("nonsense is answered with %d", code)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	s := New()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := s.Instruction(ctx, "r"); !errors.Is(err, cause) {
		t.Errorf("Instruction: %v", err)
	}
	if _, err := s.Outcome(ctx, "r"); !errors.Is(err, cause) {
		t.Errorf("Outcome: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		start := time.Now()
		var cities []string
		if err := json.Unmarshal(get(t, s, "/suggest?ms=150&q=bo").Body.Bytes(), &cities); err != nil || len(cities) != 2 {
			t.Errorf("suggestions %q, %v", cities, err)
		}
		if got := strings.TrimSpace(get(t, s, "/later?ms=99999&value=a%22b").Body.String()); got != `"a\"b"` {
			t.Errorf("later answers %s", got)
		}
		if took := time.Since(start); took != 5150*time.Millisecond {
			t.Errorf("the pauses took %s", took)
		}
		for q, want := range map[string]string{"my+code+please": "Your code is K7.", "hello": "Hello!", "x": "Sorry"} {
			if got := get(t, s, "/reply?code=K7&q="+q).Body.String(); !strings.Contains(got, want) {
				t.Errorf("reply to %q is %q", q, got)
			}
		}
	})
}

func TestDownloadHasNameAndText(t *testing.T) {
	w := get(t, New(), "/download/sales?seed=3")
	if got, want := w.Header().Get("Content-Disposition"), `attachment; filename="sales-`; !strings.HasPrefix(got, want) || !strings.Contains(got, FileName("sales", 3)) {
		t.Errorf("disposition %q", got)
	}
	if b, _ := io.ReadAll(w.Body); string(b) != FileText(3) {
		t.Errorf("text %q", b)
	}
}

func TestMiniWoBPagesReportToTheSite(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"html/core/core.js": "var core = {};", "html/miniwob/click.html": "<html><head><script src=../core/core.js></script></head><body></body></html>",
		"secret.html": "<head></head>",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := New()
	if err := s.MiniWoB(t.TempDir()); err == nil {
		t.Error("an empty folder is taken for a checkout")
	}
	if err := s.MiniWoB(dir); err != nil {
		t.Fatal(err)
	}
	w := get(t, s, MiniWoBPath("click", 7, "r"))
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, `core.js></script><script src="/miniwob.js"></script></head>`) {
		t.Errorf("status %d: %s", w.Code, body)
	}
	for path, want := range map[string]int{"/miniwob.js": 200, "/miniwob/core/core.js": 200, "/miniwob/miniwob/none.html": 404, "/miniwob/..%2fsecret.html": 404, "/miniwob/miniwob/..%2f..%2f..%2fsecret.html": 404} {
		if got := get(t, s, path).Code; got != want {
			t.Errorf("%s is answered with %d, want %d", path, got, want)
		}
	}
}

func TestFormsComeBackWithWhatTheyGave(t *testing.T) {
	s := New()
	for to, want := range map[string]string{"/t/post?seed=2": "/t/post?seed=2&took=Ada", "https://example.org/t/post": "", "/other": "", "//example.org/t/x": ""} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/take?to="+url.QueryEscape(to), strings.NewReader("name=Ada"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); got != want || (w.Code == http.StatusSeeOther) != (want != "") {
			t.Errorf("a form on its way to %q goes to %q (status %d), want %q", to, got, w.Code, want)
		}
	}
}
