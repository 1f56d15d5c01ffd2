package server

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/reins-browser/reins"
)

// contentPolicy is what people's pages may load, and who may show them in a frame
// (VIEW-3, VIEW-5).
func contentPolicy(ancestors []string) (string, error) {
	frames := "'none'"
	if len(ancestors) > 0 {
		for _, a := range ancestors {
			u, err := url.Parse(a)
			if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.ContainsAny(a, " ;,'\"*") {
				return "", reins.Errorf(reins.CodeInvalidInput, "--frame-ancestor %.100q is not an origin such as \"https://tools.site.test\"", a)
			}
		}
		frames = strings.Join(ancestors, " ")
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob: data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors " + frames, nil
}

func (d *Door) fileRoutes() {
	for pattern, file := range map[string]string{
		"GET /{$}": "index.html", "GET /join": "join.html", "GET /r/{project}/{resource}": "resource.html",
	} {
		d.mux.Handle(pattern, d.guarded(func(w http.ResponseWriter, r *http.Request) { d.file(w, r, file) }))
	}
	d.mux.Handle("GET /assets/", d.guarded(func(w http.ResponseWriter, r *http.Request) {
		d.file(w, r, strings.TrimPrefix(r.URL.Path, "/"))
	}))
	d.mux.Handle("/", d.guarded(func(w http.ResponseWriter, r *http.Request) {
		d.refuse(w, r, reins.Errorf(reins.CodeNotFound, "there is nothing at this address for %.20q; /docs lists what the API has", r.Method))
	}))
}

// file serves one file of people's pages. They come with the program: asked for again
// each time, and not sent when nothing changed.
func (d *Door) file(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	h.Set("Content-Security-Policy", d.policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-cache")
	if len(d.o.Ancestors) == 0 {
		h.Set("X-Frame-Options", "DENY")
	}
	f, err := d.pageFile(name)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	h.Set("ETag", f.tag)
	h.Set("Content-Type", f.media)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.body) // a client that left
}

// pageFile is one file with its name for caches.
type pageFile struct {
	body       []byte
	tag, media string
}

func (d *Door) pageFile(name string) (pageFile, *reins.Error) {
	if d.o.Files == nil || !fs.ValidPath(name) {
		return pageFile{}, errNoFile()
	}
	body, err := fs.ReadFile(d.o.Files, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			return pageFile{}, errNoFile()
		}
		return pageFile{}, errNoFile().Because(err) // a directory
	}
	return pageFile{body: body, tag: tagOf(body), media: mediaOf(name)}, nil
}

func errNoFile() *reins.Error {
	return reins.Errorf(reins.CodeNotFound, "there is no such page or file")
}
