package site

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed pages lib.js lib.css miniwob.js
var files embed.FS

var frame = template.Must(template.New("frame").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/lib.css">
<script src="/lib.js"></script>
<body>
{{.Body}}
`))

// Outcome is a page's own verdict on a run.
type Outcome struct {
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what the page saw, for people
}

// Site serves the pages and remembers what they reported.
type Site struct {
	mux *http.ServeMux

	mu   sync.Mutex
	runs map[string]*run
}

// run is one attempt at one task; each channel is closed when its part of the
// record is there.
type run struct {
	told, judged chan struct{}
	instruction  string
	outcome      Outcome
}

// New returns a site without any runs.
func New() *Site {
	s := &Site{mux: http.NewServeMux(), runs: map[string]*run{}}
	s.mux.HandleFunc("GET /{$}", s.index)
	s.mux.HandleFunc("GET /t/{name}", s.page)
	s.mux.HandleFunc("GET /lib.js", asset("lib.js", "text/javascript; charset=utf-8"))
	s.mux.HandleFunc("GET /lib.css", asset("lib.css", "text/css; charset=utf-8"))
	s.mux.HandleFunc("POST /begin", s.begin)
	s.mux.HandleFunc("POST /score", s.score)
	s.answers()
	return s
}

// ServeHTTP serves a page or one of the things that pages ask for.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Pages lists the names of the fragments that can stand alone, sorted.
func Pages() []string {
	var names []string
	entries, _ := fs.ReadDir(files, "pages")
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".html"); !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Has reports whether a task of that name can be served.
func Has(task string) bool { _, err := fragment(task); return err == nil }

// Path is the address of a task on the site.
func Path(task string, seed uint64, runID string) string {
	return fmt.Sprintf("/t/%s?seed=%d&run=%s", task, seed, runID)
}

// fragment reads the file of a task or of a part of one.
func fragment(name string) ([]byte, error) {
	if name != path.Base(name) {
		return nil, fs.ErrNotExist
	}
	b, err := files.ReadFile("pages/" + name + ".html")
	if err == nil {
		return b, nil
	}
	short, _, _ := strings.Cut(name, "-")
	if strings.Contains(name, ".") || short == name {
		return nil, err
	}
	return files.ReadFile("pages/" + short + ".html")
}

func (s *Site) page(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	body, err := fragment(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	title := strings.ReplaceAll(name, "-", " ")
	if first, rest, ok := bytes.Cut(body, []byte("\n")); ok && bytes.HasPrefix(first, []byte("<!--")) {
		title = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(string(first), "<!--"), "-->"))
		body = rest
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = frame.Execute(w, struct {
		Title string
		Body  template.HTML
	}{title, template.HTML(body)}) // a client that left is not our fault
}

func (s *Site) index(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("<h1>Tasks</h1><ul>")
	for _, name := range Pages() {
		fmt.Fprintf(&b, `<li><a href="/t/%s?seed=1">%s</a>`, name, name)
	}
	b.WriteString("</ul>")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = frame.Execute(w, struct {
		Title string
		Body  template.HTML
	}{"Tasks", template.HTML(b.String())})
}

func asset(name, mediaType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := files.ReadFile(name)
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(b)
	}
}

// record returns the record of a run, making it when needed. The caller holds
// s.mu.
func (s *Site) record(id string) *run {
	r := s.runs[id]
	if r == nil {
		r = &run{told: make(chan struct{}), judged: make(chan struct{})}
		s.runs[id] = r
	}
	return r
}

// report reads a page's report; without a run there is nothing to keep.
func report[T any](w http.ResponseWriter, r *http.Request) (id string, body T, ok bool) {
	var in struct {
		Run  string `json:"run"`
		Body T      `json:"body"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in); err != nil {
		http.Error(w, "not a report", http.StatusBadRequest)
		return "", in.Body, false
	}
	w.WriteHeader(http.StatusNoContent)
	return in.Run, in.Body, in.Run != ""
}

func (s *Site) begin(w http.ResponseWriter, r *http.Request) {
	id, text, ok := report[string](w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec := s.record(id); rec.instruction == "" && text != "" {
		rec.instruction = text
		close(rec.told)
	}
}

func (s *Site) score(w http.ResponseWriter, r *http.Request) {
	id, verdict, ok := report[Outcome](w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.record(id)
	select {
	case <-rec.judged: // the first verdict counts
	default:
		rec.outcome = verdict
		close(rec.judged)
	}
}

// Instruction waits until the page of a run has said what is to be done.
func (s *Site) Instruction(ctx context.Context, runID string) (string, error) {
	s.mu.Lock()
	rec := s.record(runID)
	s.mu.Unlock()
	select {
	case <-rec.told:
		return rec.instruction, nil
	case <-ctx.Done():
		return "", fmt.Errorf("the page of run %s never said what is to be done: %w", runID, context.Cause(ctx))
	}
}

// Outcome waits for the page's verdict on a run.
func (s *Site) Outcome(ctx context.Context, runID string) (Outcome, error) {
	s.mu.Lock()
	rec := s.record(runID)
	s.mu.Unlock()
	select {
	case <-rec.judged:
		return rec.outcome, nil
	case <-ctx.Done():
		return Outcome{}, fmt.Errorf("the page of run %s gave no verdict: %w", runID, context.Cause(ctx))
	}
}

// Judged reports whether a run has a verdict already.
func (s *Site) Judged(runID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, ok := s.runs[runID]
	if !ok {
		return false
	}
	select {
	case <-rec.judged:
		return true
	default:
		return false
	}
}

// Forget drops the record of a run.
func (s *Site) Forget(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, runID)
}
