package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
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
	return newServer(conn).run(ctx, doors, start)
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
	wire *wire
	box  *outbox
	gone chan struct{} // closed when the parent has gone

	mu      sync.Mutex
	browser *browser                      // nil until connected
	running map[uint64]context.CancelFunc // orders under way
}

func newServer(conn net.Conn) *server {
	return &server{wire: newWire(conn), box: newOutbox(), gone: make(chan struct{}), running: map[uint64]context.CancelFunc{}}
}

// mostRunning is how many orders may be under way (DRV-3).
const mostRunning = 1000

// run serves the link until ctx, the link or the browser's connection ends.
func (d *server) run(ctx context.Context, doors pipes, start startMessage) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	broke := make(chan error, 1)
	go func() { broke <- d.serve(working) }()
	go d.sendNotices(working)
	film := newFilm()
	go film.play(working, d.show)
	b, err := connect(ctx, doors, start.Settings, start.Previous, mouth{
		emit: func(e Event) { d.box.put(notice{Event: &e}) },
		tell: func(h Handover) { d.tell(ctx, h) },
		film: film,
	})
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
	case err := <-broke:
		return fmt.Errorf("the link to the parent was closed: %w", err)
	case <-d.box.full:
		return fmt.Errorf("%d notices wait for the parent, which is the bound", mostNotices)
	case <-b.conn.Done():
		return b.conn.Err()
	case <-b.hung:
		return fmt.Errorf("the browser has not said its version within %s", answerTime)
	}
}

// serve takes orders until the link breaks. A panic in one ends the driver, as
// it would anywhere else in it (DRV-5).
func (d *server) serve(ctx context.Context) error {
	defer close(d.gone)
	for {
		f, err := d.wire.read()
		if err != nil {
			return err
		}
		switch f.kind {
		case frameCancel:
			d.mu.Lock()
			if cancel := d.running[f.id]; cancel != nil {
				cancel()
			}
			d.mu.Unlock()
		case frameOrder:
			if err := d.accept(ctx, f); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a frame of the unknown kind %q", f.kind)
		}
	}
}

// tell returns when the parent has the handover: it is in the socket then,
// which outlives this process.
func (d *server) tell(ctx context.Context, h Handover) {
	sent := make(chan struct{})
	d.box.put(notice{Handover: &h, sent: []chan struct{}{sent}})
	select {
	case <-sent:
	case <-d.gone:
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

// accept begins an order, so that it can be cancelled from now on, and sends
// its outcome when it has settled.
func (d *server) accept(ctx context.Context, f wireFrame) error {
	var o order
	if len(f.parts) != 1 {
		return fmt.Errorf("an order has %d parts, want 1", len(f.parts))
	}
	if err := json.Unmarshal(f.parts[0], &o); err != nil {
		return fmt.Errorf("an order: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.running) >= mostRunning || d.running[f.id] != nil {
		cancel()
		return fmt.Errorf("order %d is one too many: %d are under way", f.id, len(d.running))
	}
	d.running[f.id] = cancel
	go d.work(ctx, f.id, o)
	return nil
}

func (d *server) work(ctx context.Context, id uint64, o order) {
	result, err := d.perform(ctx, o)
	if err != nil {
		result = outcome{Error: reins.AsError(err)}
	}
	d.mu.Lock()
	d.running[id]()
	delete(d.running, id)
	b := d.browser
	d.mu.Unlock()
	if b != nil {
		result.Numbers = b.numbers()
	}
	f, err := result.frame(id)
	if err != nil {
		f, err = outcome{Error: reins.AsError(err), Numbers: result.Numbers}.frame(id)
	}
	if err == nil {
		_ = d.wire.write(f) // a parent that is gone has no use for it
	}
}

func (d *server) perform(ctx context.Context, o order) (outcome, error) {
	d.mu.Lock()
	b := d.browser
	d.mu.Unlock()
	if b == nil {
		return outcome{}, reins.Errorf(reins.CodeNotReady, "the driver is not connected yet").In(reins.PhaseConnect)
	}
	if o.View != nil {
		v, err := b.view(ctx, *o.View)
		return outcome{View: &v}, err
	}
	action, err := reins.DecodeAction(o.Action)
	if err != nil {
		return outcome{}, err
	}
	reply, err := b.do(ctx, Command{Action: action, Lease: o.Lease, Files: o.Files,
		Ask: o.Ask, Into: o.Into, Secret: o.Secret, Redact: o.Redact, Above: o.Above, Credentials: o.Credentials, Watched: o.Watched})
	return outcome{Reply: reply}, err
}

// show sends one frame of a screencast.
func (d *server) show(f CastFrame) error {
	w, err := f.wire()
	if err != nil {
		return err
	}
	return d.wire.write(w)
}

// sendNotices sends what is queued, as it comes.
func (d *server) sendNotices(ctx context.Context) {
	for {
		lines, err := d.box.take(ctx)
		if err != nil {
			return
		}
		for _, line := range lines {
			body, err := json.Marshal(line)
			if err != nil || d.wire.write(wireFrame{kind: frameNotice, parts: [][]byte{body}}) != nil {
				return
			}
			for _, sent := range line.sent {
				close(sent)
			}
		}
	}
}
