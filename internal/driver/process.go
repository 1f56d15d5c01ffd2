package driver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/child"
)

// Process is one driver, seen from the parent. Its methods may be called from
// any goroutine.
type Process struct {
	child *child.Process
	wire  *wire

	mu       sync.Mutex
	orders   uint64                      // so far
	waiting  map[uint64]chan<- wireFrame // for the outcomes of orders under way; nil once the link broke
	handover Handover
	streamed int           // the newest tab that the event stream told of
	moved    chan struct{} // closed and replaced when it tells a handover
	asked    bool          // its end was asked for
	done     chan struct{}
}

// Start spawns a driver and returns when it is connected to the browser. It
// fails, leaving nothing behind, with startup_failed when the process did not
// come up, unsafe_host when this host cannot seal it, transport_failure when it could not take the browser over (the
// message ends with its last words), connection_timeout when ctx's deadline
// passed and cancelled when ctx was cancelled (DRV-4).
func Start(ctx context.Context, o Options) (*Process, error) {
	p, err := spawn(ctx, o)
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go p.follow(o, ready)
	select {
	case <-ready:
		return p, nil
	case <-p.done:
		return nil, p.lost()
	case <-ctx.Done():
		p.Kill()
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return nil, reins.Errorf(reins.CodeConnectionTimeout, "the driver did not connect to the browser in time").In(reins.PhaseConnect)
		}
		return nil, reins.ContextError(ctx).In(reins.PhaseConnect)
	}
}

// spawn starts the child with its end of a link, in namespaces of its own;
// a host that forbids those gets no driver (DRV-5).
func spawn(ctx context.Context, o Options) (*Process, error) {
	mine, its, err := socketPair()
	if err != nil {
		return nil, reins.Errorf(reins.CodeStartupFailed, "the driver did not start: %w", err).In(reins.PhaseStart)
	}
	defer mine.Close()
	defer its.Close()
	message, err := json.Marshal(startMessage{o.Settings, o.Previous})
	if err != nil {
		return nil, reins.AsError(err)
	}
	spec := child.Spec{
		Role: Role, Message: message,
		Files: map[string]*os.File{fileLink: its, fileTo: o.ToBrowser, fileFrom: o.FromBrowser},
	}
	spec.Isolate()
	process, err := child.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	conn, err := net.FileConn(mine)
	if err != nil {
		process.Kill()
		<-process.Done()
		return nil, reins.Errorf(reins.CodeStartupFailed, "the driver's link did not come up: %w", err).In(reins.PhaseStart)
	}
	return &Process{child: process, wire: newWire(conn), done: make(chan struct{}), moved: make(chan struct{}),
		handover: o.Previous, waiting: map[uint64]chan<- wireFrame{}}, nil
}

// follow reads the link, closes ready when the driver is connected, and cleans
// up when the process is gone. Notices and frames have a goroutine of their own
// each: whoever takes them may be waiting for an outcome.
func (p *Process) follow(o Options, ready chan struct{}) {
	defer close(p.done)
	box := newOutbox()
	frames := make(chan CastFrame, mostFrames)
	var told sync.WaitGroup
	ended, end := context.WithCancel(context.Background())
	told.Go(func() { p.hand(ended, box, o.Events, ready) })
	told.Go(func() { play(frames, o.Frames) })
	go func() { // what another process still holds of the link ends nothing
		<-p.child.Done()
		_ = p.wire.conn.SetReadDeadline(time.Now().Add(closeGrace))
	}()
	p.receive(box, frames)
	close(frames)
	p.child.Stop(context.Background(), closeGrace) // without its link it is of no use
	end()
	told.Wait()
	p.wire.conn.Close()
}

// receive hands out what comes until the link breaks.
func (p *Process) receive(box *outbox, frames chan<- CastFrame) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, outcome := range p.waiting {
			close(outcome)
		}
		p.waiting = nil
	}()
	for {
		f, err := p.wire.read()
		if err != nil {
			return
		}
		switch f.kind {
		case frameOutcome:
			p.mu.Lock()
			outcome := p.waiting[f.id]
			delete(p.waiting, f.id)
			p.mu.Unlock()
			if outcome == nil {
				return // for an order that nobody gave
			}
			outcome <- f
		case frameNotice:
			n, err := noticeOf(f)
			if err != nil || !box.put(n) {
				return
			}
		case frameCast:
			picture, err := castFrameOf(f)
			if err != nil {
				return
			}
			select {
			case frames <- picture:
			default:
				return // nobody sends so many
			}
		default:
			return
		}
	}
}

// hand hands notices on in their order, until ctx ends and none is left.
func (p *Process) hand(ctx context.Context, box *outbox, events func(Event), ready chan struct{}) {
	for {
		notices, err := box.take(ctx)
		if err != nil {
			return
		}
		for _, n := range notices {
			switch {
			case n.Handover != nil:
				p.took(*n.Handover)
			case n.Ready && ready != nil:
				close(ready)
				ready = nil
			case n.Event != nil && events != nil:
				events(*n.Event)
			}
		}
	}
}

// took notes a handover, and how far the stream has come with it.
func (p *Process) took(h Handover) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streamed = max(p.streamed, h.Numbers.Tab)
	h.Numbers = h.Numbers.Max(p.handover.Numbers)
	p.handover = h
	close(p.moved)
	p.moved = make(chan struct{})
}

// delivered waits until all events have been delivered that came before tab's
// number was given away.
func (p *Process) delivered(ctx context.Context, tab int) {
	for {
		p.mu.Lock()
		there, moved := p.streamed >= tab, p.moved
		p.mu.Unlock()
		if there {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		case <-p.done:
			return
		}
	}
}

// Do runs one command and returns when it has settled. When ctx ends the
// driver stops the side effect, and Do returns cancelled or timeout only once
// the browser is quiet or the driver is gone (QUI-1); a reply that loses
// against that is dropped (QUI-3). A driver that is lost meanwhile makes a
// command that only reads, or was never sent, transport_failure, and any other
// completion_unknown (OPS-6).
func (p *Process) Do(ctx context.Context, c Command) (*Reply, error) {
	if err := reins.ContextError(ctx); err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return nil, p.lost()
	default:
	}
	action, err := reins.EncodeAction(c.Action)
	if err != nil {
		return nil, err
	}
	result, err := p.order(ctx, order{Action: action, Lease: c.Lease, Files: c.Files,
		Ask: c.Ask, Into: c.Into, Secret: c.Secret, Redact: c.Redact, Above: c.Above, Credentials: c.Credentials, Watched: c.Watched})
	if err == nil && result.View != nil {
		err = errors.New("an action was answered with a view")
	}
	if err == nil && c.Above != (Numbers{}) {
		p.delivered(ctx, result.Numbers.Tab) // none of them has a name of before
	}
	if cancelled := reins.ContextError(ctx); cancelled != nil {
		return nil, cancelled.In(reins.PhaseAction)
	}
	switch {
	case err != nil:
		return nil, p.unknown(c.Action, err)
	case result.Error != nil:
		return nil, result.Error
	}
	return result.Reply, nil
}

// errNotSent is of an order that did not leave.
var errNotSent = errors.New("the order was not sent to the driver")

// order sends an order and waits for its outcome, or the driver's end. The end
// of ctx cancels it in the driver, which then settles it.
func (p *Process) order(ctx context.Context, o order) (outcome, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return outcome{}, err
	}
	settled := make(chan wireFrame, 1)
	p.mu.Lock()
	p.orders++
	id, open := p.orders, p.waiting != nil
	if open {
		p.waiting[id] = settled
	}
	p.mu.Unlock()
	if !open {
		return outcome{}, errNotSent
	}
	if err := p.wire.writeWhile(ctx, wireFrame{kind: frameOrder, id: id, parts: [][]byte{body}}); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, id)
		return outcome{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.wire.write(wireFrame{kind: frameCancel, id: id}) })
	defer stop()
	f, ok := <-settled
	if !ok {
		return outcome{}, net.ErrClosed
	}
	result, err := outcomeOf(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handover.Numbers = p.handover.Numbers.Max(result.Numbers)
	return result, err
}

// unknown sorts the loss of the driver under a command.
func (p *Process) unknown(a reins.Action, cause error) error {
	p.child.Kill() // a link that broke is not used again
	<-p.done
	if a.Verb().ReadOnly() || errors.Is(cause, errNotSent) {
		return p.lost().Because(cause)
	}
	return reins.Errorf(reins.CodeCompletionUnknown, "the driver was lost while it ran %s, which may or may not have happened; take a snapshot to see", a.Verb()).
		In(reins.PhaseAction).Because(cause)
}

// lost says that the driver has ended.
func (p *Process) lost() *reins.Error {
	var known *reins.Error
	if errors.As(p.Err(), &known) {
		return known
	}
	return reins.Errorf(reins.CodeConnectionClosed, "the driver's connection was closed").In(reins.PhaseConnect)
}

// Done is closed when the driver is reaped and its last event was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says, once Done is closed, why the driver ended: nil after Close or Kill,
// else transport_failure with the last lines that it wrote, bounded.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked {
		return nil
	}
	return reins.Errorf(reins.CodeTransportFailure, "the driver ended (%s); its last words: %q", p.child.Exit(), lastLines(p.child.Stderr())).In(reins.PhaseConnect)
}

// lastLines keeps what matters of a driver's error output, bounded: its end, or
// the beginning of a crash.
func lastLines(s string) string {
	s = strings.TrimSpace(s)
	const most = 1000
	for _, crash := range []string{"fatal error: ", "panic: "} {
		if at := strings.LastIndex(s, crash); at >= 0 {
			return strings.ToValidUTF8(s[at:min(len(s), at+most)], "")
		}
	}
	if len(s) > most {
		s = "…" + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}

// Handover is what a next driver has to take over, as far as this one told.
// It is final once Done is closed.
func (p *Process) Handover() Handover {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handover
}

// closeGrace is how long a driver has for each step of its end.
const closeGrace = 2 * time.Second

// Close lets the driver detach from the browser and waits until it is reaped;
// the end of ctx kills it. The browser and its tabs stay. Idempotent.
func (p *Process) Close(ctx context.Context) error {
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	p.child.Stop(ctx, closeGrace)
	<-p.done
	return nil
}

// Kill ends the driver at once and waits until it is reaped. The browser and
// its tabs stay. Idempotent.
func (p *Process) Kill() {
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	p.child.Kill()
	<-p.done
}
