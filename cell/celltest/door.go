package celltest

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// world is what lies behind a cell's egress door in these tests: a proxy that
// answers for every host itself and remembers who was asked for.
type world struct {
	mu    sync.Mutex
	asked []string // method and URL or authority
}

// serve puts a world behind l until the cell closes it.
func serve(t *testing.T, l net.Listener) *world {
	w := &world{}
	server := &http.Server{Handler: w}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return w
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+r.URL.String())
	w.mu.Unlock()
	if r.Method == http.MethodConnect {
		http.Error(rw, "no tunnels here", http.StatusForbidden)
		return
	}
	rw.Header().Set("Content-Type", "text/html")
	switch r.URL.Path {
	case "/form":
		fmt.Fprint(rw, `<title>form</title><form><input name=email type=email><input type=password><button>go</button></form>`)
	case "/favicon.ico":
		rw.WriteHeader(http.StatusNotFound)
	case "/redirect-file":
		http.Redirect(rw, r, "file:///etc/passwd", http.StatusFound)
	default:
		fmt.Fprintf(rw, `<title>%[1]s</title><p id=host>%[1]s</p>`, r.URL.Host)
	}
}
