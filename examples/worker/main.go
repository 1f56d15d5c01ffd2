// Command worker is a host that owns a browser and a worker process that uses it.
// The worker is this program again, in a process of its own: it inherits a channel
// and gets a token, and that is all it knows. Which browser it has, as whom and in
// which run, is the host's decision.
//
//	go build -o bin/worker ./examples/worker && bin/worker
//
// Run it as an ordinary user: browsers never run as root.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
	"github.com/reins-browser/reins/host"
	"github.com/reins-browser/reins/pipe"
)

func main() {
	host.Main() // cells and drivers are this program again: before anything else
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	role := run
	if len(os.Args) == 3 && os.Args[1] == "work" {
		role = func(ctx context.Context, out io.Writer) error { return work(ctx, os.Args[2], out) }
	}
	if err := role(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run is the host.
func run(ctx context.Context, out io.Writer) (err error) {
	site, err := serveSite()
	if err != nil {
		return err
	}
	defer site.Close()
	dir, err := os.MkdirTemp("", "reins-worker-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	h, err := host.New(host.Options{
		Dir:      filepath.Join(dir, "runtime"),
		Backends: []cell.Backend{process.New(process.Options{Directory: dir})},
		Hooks: reins.Hooks{
			Authorize: func(_ context.Context, b reins.Binding) error {
				if b.Actor != "reader" {
					return fmt.Errorf("%s is not on the list", b.Actor)
				}
				return nil
			},
			// The run that the channel was made for reaches the gate (PIPE-1).
			BeforeOperation: func(_ context.Context, op reins.Operation) error {
				fmt.Fprintf(out, "gate: %s by %s in run %s\n", op.Verb, op.Authority.Binding.Peer, op.Authority.Binding.Run)
				return nil
			},
		},
	})
	if err != nil {
		return err
	}
	if err := h.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Stop(context.WithoutCancel(ctx))) }()

	key := reins.ResourceKey{Project: "news", ID: "browser"}
	session := &reins.Session{Harness: "example", Native: "1"}
	address := site.Addr().String()
	if _, err := h.Register(ctx, reins.Registration{
		Key:        key,
		Attachment: reins.Attachment{AuthorityID: "example", Revision: 1, Session: session},
		Spec:       reins.BrowserSpec{Egress: reins.EgressPolicy{AllowPrivate: []string{address}}},
	}); err != nil {
		return err
	}
	return employ(ctx, h, out, address, reins.Binding{
		Project: key.Project, Resource: key.ID, AuthorityID: "example", Revision: 1, Session: session,
		Actor: "reader", Role: reins.RoleAgent, Peer: "pipe 1", Source: reins.SourcePipe, Run: "morning",
	})
}

// employ starts a worker with a channel that is bound to a binding, and waits for
// it.
func employ(ctx context.Context, runtime reins.Runtime, out io.Writer, address string, b reins.Binding) error {
	mine, theirs, err := pipe.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	channel, err := pipe.Serve(mine, pipe.Options{Runtime: runtime, Binding: b})
	if err != nil {
		return err
	}
	defer channel.Close() // ends the worker's lease, whatever the worker does
	capability, err := runtime.Issue(ctx, b, 0)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker := exec.CommandContext(ctx, self, "work", "http://"+address)
	worker.ExtraFiles = []*os.File{theirs}                            // descriptor 3
	worker.Stdin = strings.NewReader(string(capability.Token) + "\n") // never an argument
	worker.Stdout, worker.Stderr = out, os.Stderr
	return worker.Run()
}

// work is the worker: a channel, a token, and what it is to do.
func work(ctx context.Context, url string, out io.Writer) error {
	token, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	conn, err := pipe.Inherited(3)
	if err != nil {
		return err
	}
	w, err := pipe.Dial(conn)
	if err != nil {
		return err
	}
	defer w.Close()
	lease, err := w.Acquire(ctx, reins.Token(strings.TrimSpace(string(token))))
	if err != nil {
		return err
	}
	page, err := lease.Do(ctx, reins.Call{Action: reins.Navigate{URL: url}})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "worker: %s is on the page %q\n", lease.Authority().Binding.Actor, page.Navigation.Title)
	return lease.Release(ctx)
}

// serveSite serves one page on loopback until it is closed.
func serveSite() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:errcheck // ends with the listener
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><html lang="en"><title>Morning news</title><h1>Nothing happened</h1>`)
	}))
	return l, nil
}
