// Command view measures the live view: how long a change in a page takes to the
// pixels of a viewer's canvas, how long an input takes to its effect there, how
// many pictures a second come, what they cost in bytes and processor time, and
// what many viewers cost. The same Chromium on Xvnc, watched with noVNC in the same
// viewer, is measured in the same run on the same machine; what counts are the
// ratios.
//
//	make bench-view
//	make bench-view ARGS="--seconds 20"
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

type options struct {
	reins    string
	chromium string
	novnc    string
	xvnc     string
	seconds  int
	only     string
}

func main() {
	self, _ := os.Executable()
	var o options
	flag.StringVar(&o.reins, "reins", filepath.Join(filepath.Dir(self), "reins"), "the binary to measure")
	flag.StringVar(&o.chromium, "chromium", "/usr/lib/chromium/chromium", "the viewer's browser, and the one on Xvnc")
	flag.StringVar(&o.novnc, "novnc", "", "folder of the npm package @novnc/novnc; without it Reins is measured alone")
	flag.StringVar(&o.xvnc, "xvnc", "", "path of Xvnc; looked up when empty")
	flag.IntVar(&o.seconds, "seconds", 10, "length of each look")
	flag.StringVar(&o.only, "only", "", "measure one way only: Reins or noVNC")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-view:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if os.Geteuid() == 0 {
		return fmt.Errorf("browsers never run as root; use make bench-view, which becomes an ordinary user")
	}
	s, err := serve()
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("page at 1280 × 800, looks of %d s; %s/%s, %d cores, %s\n\n", o.seconds, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	fmt.Println("| way | page | delay p50 ms | p95 | frames/s | kB/s | CPU of what serves, % | of the browser, % | of the viewer, % |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|--:|--:|")
	ways := []func() (way, error){}
	if o.only != "noVNC" {
		ways = append(ways, func() (way, error) { return startReins(ctx, o, s) })
	}
	if o.xvnc == "" {
		o.xvnc, _ = exec.LookPath("Xvnc")
	}
	if o.novnc != "" && o.xvnc != "" && o.only != "Reins" {
		ways = append(ways, func() (way, error) { return startVNC(ctx, o, s) })
	} else {
		defer fmt.Println("\nnoVNC was not measured: give --novnc, and install Xvnc (Debian: tigervnc-standalone-server)")
	}
	for _, start := range ways {
		if err := measure(ctx, o, s, start); err != nil {
			return err
		}
	}
	return nil
}

// looks are what is looked at.
var looks = []struct{ name, mode string }{
	{"changes four times a second", "change"},
	{"press", "press"},
	{"animation", "frames"},
	{"scrolling text", "scroll"},
	{"video", "video"},
	{"still", "still"},
}

func measure(ctx context.Context, o options, s *site, start func() (way, error)) error {
	w, err := start()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.show(ctx, s.clock("still")); err != nil {
		return err
	}
	if err := look(ctx, o, s, w); err != nil {
		return err
	}
	if m, ok := w.(*served); ok {
		return m.many(ctx, s, time.Duration(o.seconds)*time.Second)
	}
	return nil
}

// look watches each page in one viewer.
func look(ctx context.Context, o options, s *site, w way) error {
	v, err := openViewer(ctx, o, s, w)
	if err != nil {
		return err
	}
	defer v.Close()
	for _, l := range looks {
		if err := w.show(ctx, s.clock(l.mode)); err != nil {
			return err
		}
		// The first pictures of a page are not what is asked about.
		if _, err := v.watch(ctx, w, 3*time.Second, nil); err != nil {
			return err
		}
		var do func() error
		if l.mode == "press" {
			do = func() error { return presses(ctx, v, w, o.seconds*2) }
		}
		r, err := v.watch(ctx, w, time.Duration(o.seconds)*time.Second, do)
		if err != nil {
			return err
		}
		row(w, l.name, r)
	}
	return nil
}

// presses are some way apart, so that each has a picture of its own.
func presses(ctx context.Context, v *viewer, w way, n int) error {
	for range n {
		if err := v.press(ctx, w); err != nil {
			return err
		}
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func row(w way, name string, r reading) {
	delays, s := r.Seen, r.took.Seconds()
	if len(r.Presses) > 0 {
		delays = r.Presses
	}
	share := func(d time.Duration) float64 { return 100 * d.Seconds() / s }
	fmt.Printf("| %s | %s | %.0f | %.0f | %.1f | %.1f | %.0f | %.0f | %.0f |\n", w.name(), name,
		quantile(delays, 0.5), quantile(delays, 0.95), float64(len(r.Seen))/s, float64(r.bytes)/1000/s, share(r.own), share(r.browser), share(r.viewer))
}
