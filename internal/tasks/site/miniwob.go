package site

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// MiniWoB also serves the pages of a checkout of MiniWoB++, as /miniwob/…, with
// a script of our own behind theirs that reports to this site. dir is the
// folder that holds core and miniwob, or the top of the checkout. Call it
// before the site is served.
func (s *Site) MiniWoB(dir string) error {
	for _, under := range []string{"", "html", filepath.Join("miniwob", "html")} {
		root := filepath.Join(dir, under)
		if _, err := os.Stat(filepath.Join(root, "core", "core.js")); err == nil {
			s.mux.Handle("GET /miniwob/", http.StripPrefix("/miniwob", miniwob(root)))
			s.mux.HandleFunc("GET /miniwob.js", asset("miniwob.js", "text/javascript; charset=utf-8"))
			return nil
		}
	}
	return fmt.Errorf("%s is not a checkout of MiniWoB++: it has no core/core.js", dir)
}

// MiniWoBPath is the address of one of its tasks.
func MiniWoBPath(task string, seed uint64, runID string) string {
	return fmt.Sprintf("/miniwob/miniwob/%s.html?seed=%d&run=%s", task, seed, runID)
}

// miniwob serves files below root; pages get our script before their head ends.
func miniwob(root string) http.Handler {
	plain := http.FileServerFS(os.DirFS(root))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".html") {
			plain.ServeHTTP(w, r)
			return
		}
		page, err := os.DirFS(root).Open(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer page.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(page); err != nil {
			http.Error(w, "the page cannot be read", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(bytes.Replace(b.Bytes(), []byte("</head>"), []byte(`<script src="/miniwob.js"></script></head>`), 1))
	})
}
