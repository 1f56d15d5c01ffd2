package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/child"
)

// Role names the driver's entry among a program's child processes.
const Role = "driver"

// The descriptors that a driver is started with.
const (
	fileLink = "link"
	fileTo   = "to-browser"
	fileFrom = "from-browser"
)

// Main is the driver's entry; list it under [Role] for child.Main. It seals
// itself (DRV-5) before it reads a byte from the browser.
func Main(ctx context.Context, self *child.Self) error {
	var start startMessage
	if err := json.Unmarshal(self.Message, &start); err != nil {
		return fmt.Errorf("the start message: %w", err)
	}
	conn, doors, err := descriptors(self)
	if err != nil {
		return err
	}
	debug.SetTraceback("single") // the parent keeps few of the last words
	if start.Settings.Memory > 0 {
		// Garbage is collected before the kernel's bound is met.
		debug.SetMemoryLimit(start.Settings.Memory / 5 * 4)
	}
	err = child.Confine(child.Confinement{Memory: start.Settings.Memory, Files: 64, Filter: &child.Filter{}})
	if err != nil {
		return fmt.Errorf("sealing the driver: %w", err)
	}
	d := &server{box: newOutbox(), running: map[uint64]context.CancelFunc{}, early: map[uint64]bool{}}
	return d.run(ctx, conn, doors, start)
}

func descriptors(self *child.Self) (net.Conn, pipes, error) {
	var p pipes
	link, err := self.File(fileLink)
	if err != nil {
		return nil, p, err
	}
	conn, err := net.FileConn(link)
	link.Close()
	if err != nil {
		return nil, p, fmt.Errorf("the link: %w", err)
	}
	for name, to := range map[string]**os.File{fileTo: &p.toBrowser, fileFrom: &p.fromBrowser} {
		f, err := self.File(name)
		if err != nil {
			return nil, p, err
		}
		if *to, err = pollable(f); err != nil {
			return nil, p, fmt.Errorf("%s: %w", name, err)
		}
	}
	return conn, p, nil
}

// pollable makes a pipe end one whose Read or Write ends when it is closed.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	cerr := raw.Control(func(n uintptr) {
		if fd, err = syscall.Dup(int(n)); err == nil {
			syscall.CloseOnExec(fd)
			err = syscall.SetNonblock(fd, true)
		}
	})
	if err = errors.Join(cerr, err); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// server answers the link.
type server struct {
	box *outbox

	mu      sync.Mutex
	browser *browser                      // nil until connected
	running map[uint64]context.CancelFunc // orders under way
	early   map[uint64]bool               // cancelled before they arrived
}

// run serves the link until ctx, the link or the browser's connection ends.
func (d *server) run(ctx context.Context, conn net.Conn, doors pipes, start startMessage) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathDo, fatal(d.serveDo))
	mux.HandleFunc("POST "+pathCancel, fatal(d.serveCancel))
	mux.HandleFunc("GET "+pathEvents, fatal(d.serveEvents))
	listener := newSoleListener(conn)
	web := &http.Server{Handler: mux, Protocols: http2Only(), HTTP2: http2Config(),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				listener.Close() // the parent has gone
			}
		}}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	defer func() {
		web.Close()
		<-served
	}()
	b, err := connect(ctx, doors, start.Settings, start.Previous,
		func(e Event) { d.box.put(notice{Event: &e}) },
		func(h Handover) { d.tell(ctx, listener.closed, h) })
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.browser = b
	d.mu.Unlock()
	d.box.put(notice{Ready: true})
	defer b.close()
	select {
	case <-ctx.Done():
		return d.leave(b)
	case <-listener.closed:
		return errors.New("the link to the parent was closed")
	case <-d.box.full:
		return fmt.Errorf("%d notices wait for the parent, which is the bound", mostNotices)
	case <-b.conn.Done():
		return b.conn.Err()
	}
}

// tell returns when the parent has the handover: it is in the socket then,
// which outlives this process.
func (d *server) tell(ctx context.Context, gone <-chan struct{}, h Handover) {
	sent := make(chan struct{})
	d.box.put(notice{Handover: &h, sent: []chan struct{}{sent}})
	select {
	case <-sent:
	case <-gone:
	case <-ctx.Done():
	}
}

// leave detaches the browser session, so that nothing is left to take over.
func (d *server) leave(b *browser) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return b.conn.Root().Call(ctx, target.DetachFromTarget.Method,
		target.DetachFromTargetParams{SessionID: target.SessionID(b.session.ID())}, nil)
}

// fatal lets a panic end the driver, as it would anywhere else in it (DRV-5).
func fatal(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				fmt.Fprintf(os.Stderr, "panic: %v\n%s", v, debug.Stack())
				os.Exit(2)
			}
		}()
		h(w, r)
	}
}

func (d *server) serveDo(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, done := d.begin(r.Context(), o.ID)
	defer done()
	reply, err := d.perform(ctx, o)
	result := outcome{Reply: reply}
	if err != nil {
		result = outcome{Error: reins.AsError(err)}
	}
	d.mu.Lock()
	b := d.browser
	d.mu.Unlock()
	if b != nil {
		result.Numbers = b.numbers()
	}
	// A parent that is gone has no use for the outcome.
	_ = writeOutcome(w, result)
}

func (d *server) perform(ctx context.Context, o order) (*Reply, error) {
	action, err := reins.DecodeAction(o.Action)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	b := d.browser
	d.mu.Unlock()
	if b == nil {
		return nil, reins.Errorf(reins.CodeNotReady, "the driver is not connected yet").In(reins.PhaseConnect)
	}
	return b.do(ctx, Command{Action: action, Lease: o.Lease, Files: o.Files,
		Ask: o.Ask, Into: o.Into, Secret: o.Secret, Redact: o.Redact, Above: o.Above})
}

// begin registers an order under way, so that it can be cancelled.
func (d *server) begin(ctx context.Context, id uint64) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running[id] = cancel
	if d.early[id] {
		delete(d.early, id)
		cancel()
	}
	return ctx, func() {
		d.mu.Lock()
		delete(d.running, id)
		d.mu.Unlock()
		cancel()
	}
}

const mostEarly = 4096

func (d *server) serveCancel(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.URL.Query().Get("id"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cancel := d.running[id]; cancel != nil {
		cancel()
		return
	}
	if len(d.early) >= mostEarly { // of orders that had just ended
		clear(d.early)
	}
	d.early[id] = true
}

func (d *server) serveEvents(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w)
	encoder := json.NewEncoder(w)
	for {
		lines, err := d.box.take(r.Context())
		if err != nil {
			return
		}
		for _, line := range lines {
			if encoder.Encode(line) != nil {
				return
			}
		}
		if flush.Flush() != nil {
			return
		}
		for _, line := range lines {
			for _, sent := range line.sent {
				close(sent)
			}
		}
	}
}
