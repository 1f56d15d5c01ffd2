package driver

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// ACT-10, NAV-4: downloads land under GUIDs and are reported, on the action or
// as an event, under safe names.
func TestDownloads(t *testing.T) {
	eachEngine(t, testDownloads)
}

func testDownloads(t *testing.T, engine reins.Engine) {
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>Home</title><a id=file href=/file download>file</a><a id=blank href=/file target=_blank>file</a><a id=slow href=/slow download>slow</a>`)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="../../evil name.txt"`)
		fmt.Fprint(w, "content")
	})
	mux.HandleFunc("/doc.pdf", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		fmt.Fprint(w, "%PDF-1.4")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename=slow.bin`)
		w.Header().Set("Content-Type", "application/zip") // not looked into first
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := serve(t, mux)
	b := newBrowser(t, engine)
	b.open(t, s.URL+"/")
	check := func(how string, r *Reply) {
		t.Helper()
		if len(r.Downloads) != 1 || len(r.Result.Changes.Downloads) != 1 {
			t.Fatalf("%s: downloads %+v, %+v", how, r.Downloads, r.Result.Changes)
		}
		d := r.Downloads[0]
		content, err := os.ReadFile(filepath.Join(b.chromium.downloads, d.GUID))
		if err != nil || string(content) != "content" || d.Size != 7 {
			t.Errorf("%s: %+v holds %q, %v", how, d, content, err)
		}
		if strings.ContainsAny(d.Name, `/\`) || !strings.HasSuffix(d.Name, "evil name.txt") {
			t.Errorf("%s: the name is %q", how, d.Name)
		}
	}
	r := b.open(t, s.URL+"/file")
	check("navigate", r)
	if n := r.Result.Navigation; n.Download == nil || n.URL != s.URL+"/" || n.Download.State != "completed" {
		t.Errorf("navigation %+v", n)
	}
	tab := b.tabNow()
	for _, id := range []string{"file", "blank"} {
		tab := b.tabNow()
		x := &action{tab: tab, fx: b.begin(tab), reply: &Reply{}}
		b.pageScript(t, tab, fmt.Sprintf(`document.getElementById(%q).click()`, id))
		b.eventually(t, "the download", func() bool { return len(x.fx.downloads) == 1 && x.fx.downloads[0].state == downloadCompleted })
		x.fx.report(b.browser, x.reply)
		x.fx.end(b.browser)
		check(id, x.reply)
	}
	if strings.Contains(b.kinds(), "download") {
		t.Errorf("a reported download is an event too: %s", b.kinds())
	}
	r = b.open(t, s.URL+"/doc.pdf")
	if n := r.Result.Navigation; n.Download == nil || n.Download.Name != "doc.pdf" || n.Download.State != "completed" {
		t.Errorf("a PDF: %+v", n)
	}
	// One that ends after its action, and one that nobody acted for.
	b.act(t, reins.SelectTab{Tab: tab.id})
	fx := b.begin(tab)
	b.pageScript(t, tab, `document.getElementById("slow").click()`)
	b.eventually(t, "the download", func() bool { return len(fx.downloads) == 1 })
	fx.end(b.browser)
	b.pageScript(t, tab, `document.getElementById("file").click()`)
	waitFor(t, "the event of the unasked download", func() bool { return strings.Count(b.kinds(), "download") == 1 })
	r = b.act(t, reins.Navigate{URL: s.URL + "/slow", Timeout: reins.Duration(500 * time.Millisecond)})
	if n := r.Result.Navigation; n.Download == nil || n.Download.State != "in_progress" || n.Waited {
		t.Errorf("a slow download: %+v", n)
	}
	close(release)
	waitFor(t, "the events of the slow downloads", func() bool { return strings.Count(b.kinds(), "download") == 3 })
}

// ACT-10, ACT-6: a press waits for the small download that it began, however it
// was begun; the end of one that takes longer is told with the lease whose action
// began it.
func TestPressedDownload(t *testing.T) {
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<a href=/file?1>plain</a> <a href=/file?2 download>marked</a> <a href=/file?3 target=_blank>window</a> <a href=/slow>slow</a>
<a href=/late download>late</a> <a href=/late download onclick="event.preventDefault()">kept</a>`)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/zip") // not looked into first
		w.Header().Set("Content-Disposition", "attachment; filename=file.zip")
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		rest := time.NewTimer(400 * time.Millisecond)
		defer rest.Stop()
		<-rest.C
		fmt.Fprint(w, "rest")
	})
	mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		wait := time.NewTimer(300 * time.Millisecond)
		defer wait.Stop()
		<-wait.C
		w.Header().Set("Content-Type", "application/zip")
		fmt.Fprint(w, "late")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", "attachment; filename=slow.zip")
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := serve(t, mux)
	b := newBrowser(t, reins.EngineShell)
	b.open(t, s.URL+"/")
	home := b.tabNow().id
	for _, name := range []string{"plain", "marked", "window"} {
		b.act(t, reins.SelectTab{Tab: home})
		r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), name)})
		if len(r.Downloads) != 1 || r.Downloads[0].Size != 9 || len(r.Result.Changes.Downloads) != 1 || r.Result.Changes.Downloads[0].State != "completed" {
			t.Errorf("%s: downloads %+v, changes %+v", name, r.Downloads, r.Result.Changes)
		}
	}
	// Which downloads are told must not hang on whether the server is quick.
	b.act(t, reins.SelectTab{Tab: home})
	see := b.see(t)
	for _, act := range []reins.Action{reins.Click{Ref: refTo(t, see, "late")}, reins.Press{Ref: refTo(t, see, "late"), Key: "Enter"}} {
		if r := b.act(t, act); len(r.Downloads) != 1 || r.Downloads[0].Size != 4 {
			t.Errorf("late by %s: downloads %+v, changes %+v", act.Verb(), r.Downloads, r.Result.Changes)
		}
	}
	if c := b.act(t, reins.Click{Ref: refTo(t, see, "kept")}).Result.Changes; len(c.Downloads) != 0 || !c.Settled {
		t.Errorf("a link whose click the page keeps: %+v", c)
	}
	b.act(t, reins.SelectTab{Tab: home})
	settle := reins.Duration(400 * time.Millisecond)
	r := b.act(t, reins.Click{Ref: refTo(t, b.see(t), "slow"), Waits: reins.Waits{Settle: &settle}})
	if c := r.Result.Changes; len(c.Downloads) != 1 || c.Downloads[0].State != "in_progress" || !c.Settled {
		t.Errorf("slow: %+v", c)
	}
	close(release)
	waitFor(t, "the event of the slow download", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.events {
			if e.Kind == "download" {
				return e.Lease == "lease" && e.Saved != nil && e.Download != nil && e.Download.Name == "slow.zip" && e.Download.State == "completed"
			}
		}
		return false
	})
}

// ACT-10: a download above the bound is cancelled, and why is said.
func TestDownloadAboveBound(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=big.bin")
		w.Header().Set("Content-Type", "application/zip")
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "3000000")
		}
		w.Write(make([]byte, 3_000_000))
	}))
	c := launch(t, reins.EngineShell)
	settings := c.settings()
	settings.Download = 1_000_000
	b := connectTo(t, c, settings, Handover{})
	for _, path := range []string{"/known", "/unknown"} {
		r := b.open(t, s.URL+path)
		d := r.Result.Navigation.Download
		if d == nil || d.State != "cancelled" || !strings.Contains(d.Reason, "1000000 bytes") || len(r.Downloads) != 0 {
			t.Errorf("%s: %+v", path, d)
		}
	}
	waitFor(t, "nothing is left of them", func() bool {
		left, err := os.ReadDir(c.downloads)
		return err == nil && (len(left) == 0 || strings.Contains(b.kinds(), "discarded"))
	})
}

func TestSafeName(t *testing.T) {
	for _, test := range [][2]string{
		{"report.pdf", "report.pdf"}, {"../../etc/passwd", "passwd"}, {`C:\temp\x.exe`, "x.exe"}, {"", "download"}, {"..", "download"},
		{"a\x00b\u202egpj.exe", "abgpj.exe"}, {".hidden", "hidden"}, {"a:b?.txt", "a_b_.txt"}, {"\xff\xfe.txt", "_.txt"},
		{strings.Repeat("é", 200) + ".tar.gz", strings.Repeat("é", 58) + ".gz"},
	} {
		if got := safeName(test[0]); got != test[1] || len(got) > 120 {
			t.Errorf("safeName(%q) = %q (%d bytes), want %q", test[0], got, len(got), test[1])
		}
	}
}
