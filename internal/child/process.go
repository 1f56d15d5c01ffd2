package child

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/reins-browser/reins"
)

// Process is a child seen from its parent. All methods may be called at any
// time from any goroutine.
type Process struct {
	role     string
	pid      int
	os       *os.Process
	thread   *forkThread
	lifeline *os.File
	stderr   *os.File
	tail     tail
	asked    sync.Once
	done     chan struct{}
	exit     Exit // set before done is closed
}

// Exit says how a child ended.
type Exit struct {
	Code   int            // of an ordinary exit; -1 when a signal ended it
	Signal syscall.Signal // 0 for an ordinary exit
}

// String is "exit status 1" or "signal: killed".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// drain is how long stderr may stay open after the child is reaped, when a
// process it started still holds it.
const drain = 100 * time.Millisecond

// PID is the child's process ID as this process sees it.
func (p *Process) PID() int { return p.pid }

// Done is closed when the child is reaped and its stderr read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the child ended; it is meaningful once Done is closed.
func (p *Process) Exit() Exit {
	select {
	case <-p.done:
		return p.exit
	default:
		return Exit{}
	}
}

// Stderr returns the last 16 KiB that the child wrote there.
func (p *Process) Stderr() string { return p.tail.String() }

// Wait waits for the child to be reaped; it ends early with the context's error.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, reins.ContextError(ctx)
	}
}

// Signal sends sig; to a child that has ended it does nothing. The number of
// an ended child is never signalled in its successor's stead.
func (p *Process) Signal(sig syscall.Signal) { _ = p.os.Signal(sig) }

// Kill sends SIGKILL; Done follows.
func (p *Process) Kill() { p.Signal(syscall.SIGKILL) }

// Ask ends the context of the child's entry, without waiting.
func (p *Process) Ask() { p.asked.Do(func() { p.lifeline.Close() }) }

// Stop ends the child and returns when it is reaped: it asks, sends SIGTERM
// after grace, SIGKILL after another. The end of ctx jumps to SIGKILL.
func (p *Process) Stop(ctx context.Context, grace time.Duration) Exit {
	p.Ask()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.waitFor(ctx, grace) {
			return p.exit
		}
		if ctx.Err() != nil {
			break
		}
		p.Signal(sig)
	}
	p.Kill()
	<-p.done
	return p.exit
}

func (p *Process) waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// watch reads stderr and reaps, each in a goroutine that ends with the child.
func (p *Process) watch() {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.tail.readFrom(p.stderr)
	}()
	go func() {
		state, err := p.os.Wait()
		p.exit = exitOf(state, err)
		_ = p.stderr.SetReadDeadline(time.Now().Add(drain))
		<-read
		p.stderr.Close()
		p.Ask()
		p.thread.release()
		close(p.done)
	}()
}

func exitOf(state *os.ProcessState, err error) Exit {
	if err != nil {
		return Exit{Code: -1} // somebody else reaped it: how it ended is unknown
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal()}
	}
	return Exit{Code: status.ExitStatus()}
}

func (p *Process) closeParentEnds() {
	for _, f := range []*os.File{p.stderr, p.lifeline} {
		if f != nil {
			f.Close()
		}
	}
}
