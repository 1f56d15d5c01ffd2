package demo

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the walk reads of snapshots: roles, names with quotes in them, refs, and
// what a difference marks.
func TestSeen(t *testing.T) {
	var s seen
	s.read("- form [ref=f1e1]:\n  - textbox \"E \\\"mail\\\"\" [ref=f1e2]: ada\n  - button \"Go\" [disabled] [ref=f1e3]\n- text: plain\n", true)
	for _, test := range []struct{ role, name, ref string }{
		{"textbox", `E "mail"`, "f1e2"}, {"button", "Go", "f1e3"}, {"", "Go", "f1e3"},
	} {
		if ref, err := s.find(test.role, test.name); err != nil || ref != test.ref {
			t.Errorf("%s %q: %q %v", test.role, test.name, ref, err)
		}
	}
	if _, err := s.find("link", "Go"); err == nil || !strings.Contains(err.Error(), `button "Go"`) {
		t.Errorf("what is missing, and what there is: %v", err)
	}
	if n := s.actionable(); n != 3 {
		t.Errorf("%d refs", n)
	}

	s.read("  - form [ref=f1e1]:\n-   - button \"Go\" [disabled] [ref=f1e3]\n+   - button \"Go on\" [ref=f1e4]\n~   - textbox \"E \\\"mail\\\"\" [ref=f1e2]: bob\n", false)
	if _, err := s.find("button", "Go"); err == nil {
		t.Error("a button that is gone is found")
	}
	if ref, _ := s.find("button", "Go on"); ref != "f1e4" {
		t.Errorf("a new button: %q", ref)
	}
	if line, ok := s.has("[ref=f1e2]"); !ok || !strings.HasSuffix(line, "bob") {
		t.Errorf("a changed value: %q", line)
	}

	s.read("- heading \"Next\"\n", true)
	if _, ok := s.has("Go on"); ok {
		t.Error("what was on the page before is still seen")
	}
}

// The shop as a browser meets it.
func TestSite(t *testing.T) {
	site, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor := &http.Client{Jar: jar}
	defer visitor.CloseIdleConnections()
	at := strings.TrimSuffix(site.URL(), "/")
	get := func(path string) string {
		return body(t, func() (*http.Response, error) { return visitor.Get(at + path) })
	}
	post := func(path string, form url.Values) string {
		return body(t, func() (*http.Response, error) { return visitor.PostForm(at+path, form) })
	}
	if page := get("/goods"); !strings.Contains(page, "<h1>Sign in</h1>") {
		t.Errorf("a stranger sees %s", page)
	}
	if page := post("/signin", url.Values{"email": {Email}, "password": {"x"}}); !strings.Contains(page, `role="alert"`) {
		t.Errorf("a wrong password: %s", page)
	}
	if page := post("/signin", url.Values{"email": {Email}, "password": {Password}}); !strings.Contains(page, "<h1>Goods</h1>") {
		t.Errorf("the right one: %s", page)
	}
	if list := get("/api/goods?by=price&up=1&filter=ROPE"); !strings.HasPrefix(list, `[{"name":"Heaving line"`) || strings.Count(list, "name") != 4 {
		t.Errorf("filtered and sorted: %s", list)
	}
	if list := get("/api/goods?by=stock&up=0&kind=Light"); !strings.HasPrefix(list, `[{"name":"Signal torch"`) || strings.Count(list, "name") != 3 {
		t.Errorf("by kind: %s", list)
	}
	if count := post("/api/order", url.Values{"name": {"Tar brush"}}); count != "{\"count\":1}\n" {
		t.Errorf("ordered: %s", count)
	}
	page := post("/order", url.Values{"ship": {"<b>Vega"}, "marks": {"Fragile", "Heavy"}})
	for _, part := range []string{"Order 1001", "&lt;b&gt;Vega", "Fragile, Heavy", "Tar brush"} {
		if !strings.Contains(page, part) {
			t.Errorf("the receipt lacks %s: %s", part, page)
		}
	}
	if site.Orders() != 1 {
		t.Errorf("%d orders", site.Orders())
	}
	if page := get("/order"); !strings.Contains(page, "Order (0)") || !strings.Contains(page, "Nothing yet.") {
		t.Errorf("the next order begins with the goods of the last one: %s", page)
	}
}

func body(t *testing.T, do func() (*http.Response, error)) string {
	t.Helper()
	res, err := do()
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
