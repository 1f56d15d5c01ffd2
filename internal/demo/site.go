package demo

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

//go:embed site
var files embed.FS

// Email and Password are who may sign in to the shop.
const (
	Email    = "ada@harbour.example"
	Password = "lighthouse-7"
)

// Site is the running shop.
type Site struct {
	server   *http.Server
	port     int
	pages    *template.Template
	finished sync.WaitGroup

	mu     sync.Mutex
	orders int
	goods  []string // in the order that is being written
	sent   []string // goods of the last order sent
	lines  []line   // the rest of it
}

type line struct{ Name, Value string }

type good struct {
	Name  string  `json:"name"`
	Kind  string  `json:"kind"`
	Price float64 `json:"price"`
	Stock int     `json:"stock"`
}

var shelf = []good{
	{"Anchor lamp", "Light", 64.90, 12}, {"Bilge pump", "Deck", 118.00, 4}, {"Brass bell", "Deck", 89.50, 7},
	{"Coal shovel", "Galley", 21.40, 30}, {"Dock line, 10 m", "Rope", 38.20, 25}, {"Enamel mug", "Galley", 6.80, 140},
	{"Fender, large", "Deck", 47.00, 18}, {"Galley stove", "Galley", 412.00, 2}, {"Halyard, 20 m", "Rope", 72.60, 9},
	{"Heaving line", "Rope", 19.90, 40}, {"Mooring rope, 30 m", "Rope", 96.00, 11}, {"Riding light", "Light", 33.30, 16},
	{"Signal torch", "Light", 27.75, 22}, {"Tar brush", "Deck", 8.10, 60},
}

// Serve opens the shop on a free port of the loopback interface. Close it.
func Serve() (*Site, error) {
	pages, err := template.ParseFS(files, "site/*.html")
	if err != nil {
		return nil, reins.Errorf(reins.CodeInternal, "the demo's pages are broken: %w", err)
	}
	listen, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, reins.Errorf(reins.CodeInternal, "the demo's site cannot listen on 127.0.0.1: %w", err)
	}
	s := &Site{pages: pages, port: listen.Addr().(*net.TCPAddr).Port}
	s.server = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	s.finished.Go(func() { _ = s.server.Serve(listen) }) // ends with Close
	// "localhost" may mean ::1 first; a machine without IPv6 has only the other.
	if six, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(s.port))); err == nil {
		s.finished.Go(func() { _ = s.server.Serve(six) })
	}
	return s, nil
}

// Close ends the shop at once.
func (s *Site) Close() error {
	err := s.server.Close()
	s.finished.Wait()
	return err
}

// URL is the shop's front page.
func (s *Site) URL() string { return fmt.Sprintf("http://127.0.0.1:%d/", s.port) }

// Targets are what a browser must be allowed to reach: the shop. The frame in it
// is another site by its name, localhost, which the same rule opens.
func (s *Site) Targets() []string {
	return []string{fmt.Sprintf("127.0.0.1:%d", s.port)}
}

// Orders is how many orders were sent.
func (s *Site) Orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders
}

func (s *Site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "site/style.css")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { s.render(w, "signin", map[string]any{}) })
	mux.HandleFunc("POST /signin", s.signIn)
	mux.HandleFunc("GET /pilot", func(w http.ResponseWriter, _ *http.Request) { s.render(w, "pilot", nil) })
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /goods": s.showGoods, "GET /api/goods": s.listGoods, "POST /api/order": s.addGood,
		"GET /order": s.showOrder, "POST /order": s.sendOrder, "GET /done": s.showDone, "GET /receipt.csv": s.receipt,
	} {
		mux.HandleFunc(pattern, guard(handle))
	}
	return mux
}

const cookie = "harbour"

func (s *Site) signIn(w http.ResponseWriter, r *http.Request) {
	email := strings.TrimSpace(r.FormValue("email"))
	if email != Email || r.FormValue("password") != Password {
		s.render(w, "signin", map[string]any{"Wrong": true, "Email": email})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: "aboard", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/goods", http.StatusSeeOther)
}

// guard lets only those in who signed in.
func guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(cookie); err != nil || c.Value != "aboard" {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		next(w, r)
	}
}

func (s *Site) render(w http.ResponseWriter, page string, data any) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, page, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes()) // a visitor who left is no failure
}

func (s *Site) ordered() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{
		"Email": Email, "Goods": slices.Clone(s.goods), "Count": len(s.goods), "Sent": slices.Clone(s.sent), "Lines": s.lines,
		"Number": 1000 + s.orders, "Pilot": fmt.Sprintf("http://localhost:%d/pilot", s.port),
	}
}

func (s *Site) showGoods(w http.ResponseWriter, _ *http.Request) { s.render(w, "goods", s.ordered()) }
func (s *Site) showOrder(w http.ResponseWriter, _ *http.Request) { s.render(w, "order", s.ordered()) }
func (s *Site) showDone(w http.ResponseWriter, _ *http.Request)  { s.render(w, "done", s.ordered()) }

// latency is what a request to a server further away would take: an agent that
// does not wait for what its click set off reads the old table.
const latency = 80 * time.Millisecond

func (s *Site) listGoods(w http.ResponseWriter, r *http.Request) {
	if !pause(r.Context(), latency) {
		return
	}
	q := r.URL.Query()
	list := slices.DeleteFunc(slices.Clone(shelf), func(g good) bool {
		return q.Get("kind") != "" && g.Kind != q.Get("kind") ||
			!strings.Contains(strings.ToLower(g.Name+" "+g.Kind), strings.ToLower(q.Get("filter")))
	})
	slices.SortStableFunc(list, func(a, b good) int {
		order := map[string]int{
			"name": strings.Compare(a.Name, b.Name), "kind": strings.Compare(a.Kind, b.Kind),
			"price": cmp.Compare(a.Price, b.Price), "stock": cmp.Compare(a.Stock, b.Stock),
		}[q.Get("by")]
		if q.Get("up") != "1" {
			order = -order
		}
		return order
	})
	writeJSON(w, list)
}

func (s *Site) addGood(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.goods = append(s.goods, r.FormValue("name"))
	n := len(s.goods)
	s.mu.Unlock()
	writeJSON(w, map[string]int{"count": n})
}

// fields are what the order form asks, in its order, with their names for people.
var fields = []line{
	{"ship", "Ship"}, {"phone", "Telephone"}, {"crew", "Crew"}, {"day", "Day"}, {"hour", "Hour"}, {"season", "Season from"},
	{"pier", "Pier"}, {"marks", "Marks"}, {"flag", "Flag colour"}, {"haste", "Haste"}, {"port", "Home port"}, {"pay", "Pay by"},
	{"terms", "Quay rules known"}, {"night", "Delivery"}, {"notes", "Notes"}, {"card", "Greeting card"}, {"pilot", "Pilot"},
}

func (s *Site) sendOrder(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form is broken", http.StatusBadRequest)
		return
	}
	var lines []line
	for _, f := range fields {
		lines = append(lines, line{f.Value, strings.Join(r.PostForm[f.Name], ", ")})
	}
	s.mu.Lock()
	s.orders++
	s.lines, s.sent, s.goods = lines, s.goods, nil
	s.mu.Unlock()
	http.Redirect(w, r, "/done", http.StatusSeeOther)
}

func (s *Site) receipt(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="receipt.csv"`)
	fmt.Fprintf(w, "order,%d\n", 1000+s.orders)
	for _, l := range s.lines {
		fmt.Fprintf(w, "%q,%q\n", l.Name, l.Value)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a visitor who left is no failure
}

// pause waits; false means that the visitor left.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
