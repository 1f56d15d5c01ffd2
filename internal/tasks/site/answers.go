package site

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cities is what /suggest chooses from.
var cities = []string{
	"Aberdeen", "Accra", "Antwerp", "Bergen", "Bilbao", "Bologna", "Bordeaux", "Bremen", "Brno",
	"Cardiff", "Casablanca", "Cork", "Dakar", "Dresden", "Dublin", "Florence", "Gdansk", "Geneva",
	"Ghent", "Graz", "Hobart", "Innsbruck", "Kampala", "Krakow", "Leipzig", "Lima", "Lisbon",
	"Ljubljana", "Lyon", "Malaga", "Malmo", "Mombasa", "Nairobi", "Nantes", "Osaka", "Oslo",
	"Palermo", "Perth", "Porto", "Quito", "Riga", "Rotterdam", "Salzburg", "Sapporo", "Sofia",
	"Split", "Tallinn", "Tampere", "Tirana", "Toledo", "Turin", "Utrecht", "Valencia", "Vilnius",
	"Windhoek", "Zagreb", "Zaragoza",
}

// answers registers what pages ask for while they run.
func (s *Site) answers() {
	s.mux.HandleFunc("GET /suggest", suggest)
	s.mux.HandleFunc("GET /later", later)
	s.mux.HandleFunc("GET /download/{name}", download)
	s.mux.HandleFunc("GET /reply", reply)
	s.mux.HandleFunc("POST /take", take)
}

// pause waits as long as the request asks for, at most five seconds.
func pause(r *http.Request) {
	ms, _ := strconv.Atoi(r.FormValue("ms"))
	timer := time.NewTimer(time.Duration(min(max(ms, 0), 5000)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a client that left is not our fault
}

// suggest answers with the cities that begin with q.
func suggest(w http.ResponseWriter, r *http.Request) {
	pause(r)
	q := strings.ToLower(r.FormValue("q"))
	out := []string{}
	for _, c := range cities {
		if q != "" && strings.HasPrefix(strings.ToLower(c), q) {
			out = append(out, c)
		}
	}
	answer(w, out)
}

// later echoes its "value" after a pause.
func later(w http.ResponseWriter, r *http.Request) {
	pause(r)
	answer(w, r.FormValue("value"))
}

// download is a file to save, whose name only its header tells.
func download(w http.ResponseWriter, r *http.Request) {
	seed, _ := strconv.ParseUint(r.FormValue("seed"), 10, 32)
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", FileName(r.PathValue("name"), seed)))
	_, _ = io.WriteString(w, FileText(seed))
}

// FileName is the name under which a download of the site is saved.
func FileName(kind string, seed uint64) string {
	return fmt.Sprintf("%s-%04d.csv", kind, (seed*7919+1234)%10000)
}

// FileText is what a download of the site holds.
func FileText(seed uint64) string { return fmt.Sprintf("item,amount\nseed,%d\n", seed) }

// take receives a form, thinks, and sends its sender back to the page "to",
// with the name that was given.
func take(w http.ResponseWriter, r *http.Request) {
	pause(r)
	to, err := url.Parse(r.FormValue("to"))
	if err != nil || to.Host != "" || !strings.HasPrefix(to.Path, "/t/") {
		http.Error(w, "nowhere to go back to", http.StatusBadRequest)
		return
	}
	q := to.Query()
	q.Set("took", r.PostFormValue("name"))
	to.RawQuery = q.Encode()
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// reply answers a chat message, after a pause.
func reply(w http.ResponseWriter, r *http.Request) {
	pause(r)
	words := strings.Fields(strings.ToLower(r.FormValue("q")))
	switch {
	case slices.Contains(words, "code"):
		answer(w, "Of course. Your code is "+r.FormValue("code")+".")
	case slices.Contains(words, "hello"):
		answer(w, "Hello! Ask me for your code.")
	default:
		answer(w, "Sorry, I did not understand that.")
	}
}
