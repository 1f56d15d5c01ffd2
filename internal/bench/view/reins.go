package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"encoding/json"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/bench/chromium"
)

// served is the way of Reins: the real binary, a sealed browser in it, and the
// viewer page that it serves.
type served struct {
	dir    string
	cmd    *exec.Cmd
	client *api.Client
	addr   string
	relay  net.Listener
	lease  reins.Lease
	bytes  atomic.Int64 // that went to the viewer's browser
}

var key = reins.ResourceKey{Project: "bench", ID: "view"}

func startReins(ctx context.Context, o options, s *site) (_ *served, err error) {
	w := &served{}
	if w.dir, err = os.MkdirTemp("", "reins-bench-serve-"); err != nil {
		return nil, err
	}
	run := filepath.Join(w.dir, "run")
	w.cmd = exec.Command(o.reins, "serve", "--dir", run, "--listen", "127.0.0.1:0", "--log-level", "error")
	w.cmd.Stderr = os.Stderr
	if err := w.cmd.Start(); err != nil {
		os.RemoveAll(w.dir)
		return nil, err
	}
	if err := w.open(ctx, run, s); err != nil {
		w.Close()
		return nil, fmt.Errorf("reins serve: %w", err)
	}
	return w, nil
}

// open finds the server, starts the browser, and leads it to the page.
func (w *served) open(ctx context.Context, run string, s *site) error {
	var at struct {
		URL     string `json:"url"`
		KeyFile string `json:"key_file"`
	}
	for at.URL == "" { // its file appears when it listens
		if text, err := os.ReadFile(filepath.Join(run, "instance.json")); err == nil && json.Unmarshal(text, &at) == nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	secret, err := os.ReadFile(at.KeyFile)
	if err != nil {
		return err
	}
	u, err := url.Parse(at.URL)
	if err != nil {
		return err
	}
	w.addr = u.Host
	if w.client, err = api.NewClient(api.ClientOptions{URL: at.URL, Key: string(trimmed(secret))}); err != nil {
		return err
	}
	if _, err := w.client.Register(ctx, reins.Registration{Key: key, Spec: reins.BrowserSpec{Egress: reins.EgressPolicy{AllowPrivate: []string{s.addr}}}}); err != nil {
		return err
	}
	if w.lease, err = w.join(ctx, "guide"); err != nil {
		return err
	}
	if _, err := w.lease.Do(ctx, reins.Call{Action: reins.SetViewport{Width: 1280, Height: 800, Scale: 1}}); err != nil {
		return err
	}
	if w.relay, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	go w.carry()
	return nil
}

func trimmed(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// join makes a person's lease.
func (w *served) join(ctx context.Context, actor string) (reins.Lease, error) {
	b := reins.Binding{Project: key.Project, Resource: key.ID, Actor: actor, Role: reins.RoleHuman, Peer: actor, Source: reins.SourceLibrary}
	c, err := w.client.Issue(ctx, b, time.Hour)
	if err != nil {
		return nil, err
	}
	return w.client.Acquire(ctx, c.Token, b)
}

// carry counts what goes to the viewer's browser.
func (w *served) carry() {
	for {
		near, err := w.relay.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := net.Dial("tcp", w.addr)
			if err != nil {
				return
			}
			defer far.Close()
			go func() {
				io.Copy(far, near) //nolint:errcheck // ends with either side
				far.Close()
			}()
			io.Copy(counting{near, &w.bytes}, far) //nolint:errcheck // ends with either side
		}()
	}
}

func (w *served) name() string { return "Reins" }

func (w *served) page(*site) string {
	link, err := w.client.Join(context.Background(), api.JoinForm{Actor: "viewer", Resource: &api.Place{Project: key.Project, ID: key.ID}})
	if err != nil {
		return "about:blank"
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		return "about:blank"
	}
	u.Host = w.relay.Addr().String()
	return u.String()
}

func (w *served) canvas() string { return `document.querySelector('canvas#canvas')` }

func (w *served) show(ctx context.Context, url string) error {
	_, err := w.lease.Do(ctx, reins.Call{Action: reins.Navigate{URL: url}})
	return err
}

func (w *served) sent() int64 { return w.bytes.Load() }

func (w *served) cpu() (own, browser time.Duration) { return chromium.Split(w.cmd.Process.Pid) }

// many prints what 1, 8 and 32 viewers cost the process that serves them.
func (w *served) many(ctx context.Context, s *site, long time.Duration) error {
	if err := w.show(ctx, s.clock("frames")); err != nil {
		return err
	}
	fmt.Println("\n| viewers of the animation | CPU of the serving process, % | frames/s each | kB/s each |\n|--:|--:|--:|--:|")
	for _, n := range []int{1, 8, 32} {
		if err := w.crowd(ctx, n, long); err != nil {
			return fmt.Errorf("%d viewers: %w", n, err)
		}
	}
	return nil
}

func (w *served) crowd(ctx context.Context, n int, long time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	var frames, bytes atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range n {
		l, err := w.join(ctx, fmt.Sprintf("viewer %d of %d", i, n))
		if err != nil {
			return fmt.Errorf("viewer %d cannot come in: %w", i, err)
		}
		defer l.Release(context.Background()) //nolint:errcheck // the server ends soon
		sub, err := l.Subscribe(ctx, reins.SubscribeOptions{})
		if err != nil {
			return fmt.Errorf("viewer %d cannot watch: %w", i, err)
		}
		wg.Go(func() {
			defer sub.Close()
			for {
				u, err := sub.Next(ctx)
				if err != nil {
					return
				}
				if u.Frame != nil {
					frames.Add(1)
					bytes.Add(int64(len(u.Frame.JPEG)))
					sub.Ack(u.Frame.ID)
				}
			}
		})
	}
	pause := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := pause(2 * time.Second); err != nil { // until all have come
		return err
	}
	f, b, used, began := frames.Load(), bytes.Load(), chromium.OwnCPU(w.cmd.Process.Pid), time.Now()
	if err := pause(long); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	fmt.Printf("| %d | %.0f | %.1f | %.0f |\n", n, 100*(chromium.OwnCPU(w.cmd.Process.Pid)-used).Seconds()/took,
		float64(frames.Load()-f)/took/float64(n), float64(bytes.Load()-b)/1000/took/float64(n))
	return nil
}

func (w *served) Close() {
	if w.relay != nil {
		w.relay.Close()
	}
	if w.client != nil {
		w.client.Close()
	}
	w.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may be gone
	var exit *exec.ExitError
	if err := w.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "reins serve:", err)
	}
	os.RemoveAll(w.dir)
}
