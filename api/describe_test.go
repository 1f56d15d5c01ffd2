package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// TestDescription is API-1: the description is OpenAPI 3.1, made of what is
// served: every reference leads somewhere, every operation it names is there and
// every verb has a schema.
func TestDescription(t *testing.T) {
	_, s := serve(t, newFake(), Options{Version: "1.2.3"})
	r, body := ask(t, "GET", s.URL+"/openapi.json", "", "")
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != typeJSON {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	var doc struct {
		OpenAPI string
		Info    struct{ Version string }
		Paths   map[string]map[string]struct {
			OperationID string
			Responses   map[string]any
			Security    []map[string]any
			Parameters  []struct{ Name, In string }
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.2.3" {
		t.Errorf("version %s of %s", doc.Info.Version, doc.OpenAPI)
	}
	for _, m := range regexp.MustCompile(`"\$ref":"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(body, -1) {
		if doc.Components.Schemas[m[1]] == nil {
			t.Errorf("%s leads nowhere", m[0])
		}
	}
	seen := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.OperationID == "" || seen[op.OperationID] || op.Responses["default"] == nil || len(op.Security) == 0 {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			seen[op.OperationID] = true
			filled := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "x")
			res, answer := ask(t, strings.ToUpper(method), s.URL+filled, "", "") // no key, so it is there and refused
			if res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
			}
			for _, p := range op.Parameters {
				if p.In == "path" && !strings.Contains(path, "{"+p.Name+"}") {
					t.Errorf("%s %s has no parameter %s", method, path, p.Name)
				}
			}
		}
	}
	for _, a := range reins.Actions() {
		if !strings.Contains(body, `"enum":["`+string(a.Verb())+`"]`) {
			t.Errorf("verb %s is not described", a.Verb())
		}
	}
	if strings.Contains(body, "Cause") {
		t.Error("causes are described")
	}
	page(t, s.URL, seen)
}

// page holds the readable page: it names every operation and asks for nothing
// from anywhere else.
func page(t *testing.T, url string, operations map[string]bool) {
	t.Helper()
	r, body := ask(t, "GET", url+"/docs", "", "")
	if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	for id := range operations {
		if !strings.Contains(body, `id="`+id+`"`) {
			t.Errorf("operation %s is not on the page", id)
		}
	}
	for _, info := range reins.Codes() {
		if !strings.Contains(body, string(info.Code)) {
			t.Errorf("code %s is not on the page", info.Code)
		}
	}
	if found := regexp.MustCompile(`(?i)<script|<link|<img|src=|url\(|@import|https?://`).FindString(body); found != "" {
		t.Errorf("the page asks for more by %q", found)
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(body, `id="`+m[1]+`"`) {
			t.Errorf("a link to %s leads nowhere", m[1])
		}
	}
}

// TestIDsInPaths: every ID that the vocabulary permits fits into an address, and
// comes back out of it.
func TestIDsInPaths(t *testing.T) {
	mux := http.NewServeMux()
	var got string
	mux.HandleFunc("GET /a/{id}/b", func(w http.ResponseWriter, r *http.Request) { got = unsegment(r.PathValue("id")) })
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, id := range []string{".", "..", "...", "a:b", ".a", "A_b-c.d", "é/ü?#%2e"} {
		res, err := http.Get(s.URL + "/a/" + segment(id) + "/b")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || got != id {
			t.Errorf("%q came back as %q, status %d", id, got, res.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
