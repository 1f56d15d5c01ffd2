package driver

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// B051: downloads by address and by press succeed with a safe name and leave the
// page usable; one without end is cut at the bound, and that is told (ACT-10,
// NAV-4).
func TestDownloadsOfEveryKind(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>Files</title>"+logPart+`<a href="/file?a">Report</a> <a href="/raw">Raw</a> <a id=b download="note.txt">Blob</a> <a href="data:text/plain,hi" download=d.txt>Data</a> <a href="/endless">Endless</a>
<button onclick="for(let i=0;i<10;i++){const l=document.createElement('a');l.href='/file?'+i;l.download='';document.body.append(l);l.click()}">Ten</button> <form action="/file" method=post><button>Post</button></form><button onclick="location='/file?s'">Script</button>
<script>b.href=URL.createObjectURL(new Blob(['note']));let n=0;setInterval(()=>say('alive '+(++n)),100)</script>`)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		w.Header().Set("Content-Disposition", `attachment; filename="../../total `+r.URL.RawQuery+`.csv"`)
		fmt.Fprint(w, "a,b\n1,2\n")
	})
	mux.HandleFunc("/raw", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write(make([]byte, 4096))
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=endless.bin")
		w.Header().Set("Content-Type", "application/zip")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		c := launch(t, engine)
		settings := c.settings()
		settings.Engine, settings.Download = engine, 4_000_000
		b := connectTo(t, c, settings, Handover{})
		b.open(t, s.URL+"/")
		for _, path := range []string{"/file?n", "/raw"} {
			if d := b.open(t, s.URL+path).Result.Navigation.Download; d == nil || d.State != "completed" {
				t.Errorf("%s: %+v", path, d)
			}
		}
		see := b.see(t)
		for name, want := range map[string]string{"Report": "total a.csv", "Raw": "raw", "Blob": "note.txt", "Data": "d.txt", "Post": "total .csv", "Script": "total s.csv"} {
			r := b.act(t, reins.Click{Ref: refTo(t, see, quoted(name))})
			if len(r.Downloads) != 1 || strings.ContainsAny(r.Downloads[0].Name, `/\`) || !strings.Contains(r.Downloads[0].Name, want) {
				t.Errorf("%s: %+v, %+v", name, r.Downloads, r.Result.Changes)
			}
		}
		b.open(t, s.URL+"/") // the browser itself lets no document begin more than ten at once
		see = b.see(t)
		b.act(t, reins.Click{Ref: refTo(t, see, `"Ten"`)})
		waitFor(t, "ten files", func() bool {
			all, err := filepath.Glob(filepath.Join(c.downloads, "*"))
			return err == nil && len(all) >= 18
		})
		began := time.Now()
		r := b.open(t, s.URL+"/endless")
		if d := r.Result.Navigation.Download; d == nil || d.State != "cancelled" || !strings.Contains(d.Reason, "4000000 bytes") || time.Since(began) > 20*time.Second {
			t.Errorf("endless: after %s %+v", time.Since(began), d)
		}
		settle := reins.Duration(time.Second)
		told := len(b.act(t, reins.Click{Ref: refTo(t, see, `"Endless"`), Waits: reins.Waits{Settle: &settle}}).Result.Changes.Downloads)
		waitFor(t, "its end is told", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, e := range b.events {
				if e.Kind == "download" && e.Download.Name == "endless.bin" && e.Lease == "lease" {
					return strings.Contains(e.Download.Reason, "4000000 bytes")
				}
			}
			return told == 1 // it may have been cut while the press settled
		})
		before := b.result(t)
		b.act(t, reins.WaitFor{Text: "alive"})
		if !strings.HasPrefix(before, "alive") || len(b.listTabs(t.Context()).Result.Tabs) != 1 {
			t.Errorf("the page says %q, tabs %s", before, b.ids())
		}
	})
}

// onePage is a PDF of one page.
const onePage = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>\nendobj\ntrailer\n<< /Size 4 /Root 1 0 R >>\n%%EOF\n"

// B059: a PDF is a file, wherever it is met: never an empty page passed off as
// the document (NAV-4, ACT-10).
func TestPDFsOfSites(t *testing.T) {
	mux := http.NewServeMux()
	for path, disposition := range map[string]string{"/doc.pdf": "", "/get.pdf": "attachment; filename=get.pdf"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
			if disposition != "" {
				w.Header().Set("Content-Disposition", disposition)
			}
			w.Write([]byte(onePage))
		})
	}
	mux.HandleFunc("/frame", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>Frame</title><h1>Contract</h1><iframe title=contract src=/doc.pdf width=500 height=300></iframe><button onclick="this.textContent='signed'">Sign</button>`)
	})
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for _, path := range []string{"/doc.pdf", "/get.pdf"} {
			r := b.open(t, s.URL+path)
			if d := r.Result.Navigation.Download; d == nil || d.Name != path[1:] || d.State != "completed" || len(r.Downloads) != 1 || r.Downloads[0].Size != int64(len(onePage)) {
				t.Errorf("%s: %+v, %+v", path, d, r.Downloads)
			}
		}
		b.open(t, s.URL+"/frame")
		var see string
		files := func() int {
			all, err := filepath.Glob(filepath.Join(b.chromium.downloads, "*"))
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		waitFor(t, "the frame's file, or what the full engine shows in its place", func() bool {
			see = b.see(t)
			return strings.Contains(see, `heading "doc.pdf"`) || files() == 3
		})
		if files() < 3 {
			r := b.act(t, reins.Click{Ref: refTo(t, see, `"Open"`)})
			if len(r.Downloads) != 1 || r.Downloads[0].Name != "doc.pdf" {
				t.Errorf("the frame's file is told as %+v", r.Result.Changes)
			}
		}
		b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Sign"`)})
		if see := b.see(t); !strings.Contains(see, `"signed"`) {
			t.Errorf("it reads\n%s", see)
		}
	})
}

// TestFramesInTallPictures: what a frame of another site shows is in a picture of
// the whole page, though it is out of view (ACT-5); the page stays as it is
// scrolled.
func TestFramesInTallPictures(t *testing.T) {
	mux := http.NewServeMux()
	s := serve(t, mux)
	mux.HandleFunc("/inner", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><body style="background:#f00"><h1>Inner</h1>`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Tall</title><body style="margin:0"><div style="height:3000px"></div><iframe title=Pay src="%s" style="width:500px;height:300px;border:0"></iframe><div style="height:2000px"></div>`, at(s, "other.test", "/inner"))
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		frame := refTo(t, b.see(t), `"Pay"`)
		b.script(t, "scrollTo(0, 700)")
		for _, c := range []struct {
			a    reins.Screenshot
			x, y int
		}{{reins.Screenshot{FullPage: true}, 300, 3200}, {reins.Screenshot{Ref: frame}, 300, 200}} {
			img, err := png.Decode(bytes.NewReader(b.act(t, c.a).Picture.Data))
			if err != nil {
				t.Fatal(err)
			}
			if got := color.RGBAModel.Convert(img.At(c.x, c.y)); got != (color.RGBA{255, 0, 0, 255}) {
				t.Errorf("%+v shows %v in the place of the frame, in a picture of %v", c.a, got, img.Bounds())
			}
			if c.a.FullPage {
				if got := b.script(t, "scrollY + ' ' + innerHeight"); got != "700 800" {
					t.Errorf("the page is left at %s", got)
				}
			}
		}
	})
}

// NAV-1, ACT-6: a press that leads to a page that has nothing left to load does
// not say that it is still loading.
func TestPressedPageIsLoaded(t *testing.T) {
	s := site(t, map[string]string{"/{$}": `<title>Home</title><a href="/next">Next</a>`, "/next": `<title>Next</title><a href="/">Home</a>` + strings.Repeat("<p>text", 500)})
	b := newBrowser(t, reins.EngineShell)
	loading := 0
	for range 8 {
		b.open(t, s.URL+"/")
		if r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), `"Next"`)}).Result; r.Tab.Loading {
			loading++
		}
	}
	if loading > 3 { // the machine may be slow now and then
		t.Errorf("%d of 8 pages were still loading", loading)
	}
}
