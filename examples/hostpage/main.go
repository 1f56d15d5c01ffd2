// Command hostpage is a page of one's own that shows people an agent's browser in a
// frame: it opens when the agent first uses its browser, can be closed, and opens
// again on the current picture.
//
//	reins serve --frame-ancestor http://127.0.0.1:8080
//	REINS_KEY=… go run ./examples/hostpage -server http://127.0.0.1:7777 -resource p/r
//
// The page asks its own server for a link each time it opens the frame; that server is
// the one who knows the person, and has the API key. What the frame may do then can be
// asked of it again: see --people-hook of `reins serve`.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

func main() {
	server := flag.String("server", "http://127.0.0.1:7777", "where reins serve is")
	resource := flag.String("resource", "", "the agent's browser: PROJECT/RESOURCE")
	listen := flag.String("listen", "127.0.0.1:8080", "where this page is served")
	flag.Parse()
	project, id, ok := strings.Cut(*resource, "/")
	if !ok {
		log.Fatal("hostpage: -resource takes PROJECT/RESOURCE")
	}
	client, err := api.NewClient(api.ClientOptions{URL: *server, Key: os.Getenv("REINS_KEY")})
	if err != nil {
		log.Fatal("hostpage: ", err)
	}
	defer client.Close()
	log.Printf("the page is at http://%s", *listen)
	log.Fatal(http.ListenAndServe(*listen, handler(client, *server, reins.ResourceKey{Project: project, ID: id})))
}

// reinsServer is what the page needs of a server.
type reinsServer interface {
	Join(context.Context, api.JoinForm) (api.Join, error)
	Events(ctx context.Context, project string) (<-chan reins.Event, error)
}

func handler(c reinsServer, server string, key reins.ResourceKey) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'; frame-src "+server)
		if err := page.Execute(w, map[string]string{"Server": server, "Resource": key.ID}); err != nil {
			log.Print(err) // the person left
		}
	})
	mux.HandleFunc("POST /link", func(w http.ResponseWriter, r *http.Request) {
		// Here a product finds out who asks; and that no other site's page does.
		if r.Header.Get("Sec-Fetch-Site") != "same-origin" {
			http.Error(w, "only for the page itself", http.StatusForbidden)
			return
		}
		link, err := c.Join(r.Context(), api.JoinForm{Actor: "Ada", Resource: &api.Place{Project: key.Project, ID: key.ID}, Framed: true})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]string{"url": link.URL}) // a person that left
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) { follow(w, r, c, key) })
	return mux
}

// follow tells the page when the agent's browser is in use.
func follow(w http.ResponseWriter, r *http.Request, c reinsServer, key reins.ResourceKey) {
	events, err := c.Events(r.Context(), key.Project)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	_ = flush() // the page sees that it is connected
	for e := range events {
		works := e.Kind == "state" && e.State == reins.StateRunning || e.Control != nil && e.Control.Agents > 0
		asks := e.Control != nil && len(e.Control.Requests) > 0
		if e.Key != key || !works && !asks {
			continue
		}
		if _, err := fmt.Fprintf(w, "event: open\ndata: {\"asks\": %t}\n\n", asks); err != nil || flush() != nil {
			return
		}
	}
}
