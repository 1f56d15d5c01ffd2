package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// working shows on stderr that something takes its time (CLI-3): on a terminal a line
// that tells how long already and is gone at the end, elsewhere a plain line for each
// stage.
type working struct {
	to       io.Writer
	terminal bool
	began    time.Time

	mu    sync.Mutex
	stage string
	over  chan struct{}
	work  sync.WaitGroup
}

// tick is how often the line on a terminal is written.
const tick = 200 * time.Millisecond

// working begins to show what, such as "Starting shop/till". End it.
func (s stdio) working(what string) *working {
	f, ok := s.err.(*os.File)
	w := &working{to: s.err, terminal: ok && isTerminal(f), began: time.Now(), over: make(chan struct{})}
	w.tell(what)
	if !w.terminal {
		return w
	}
	w.work.Go(func() {
		t := time.NewTicker(tick)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				w.draw()
			case <-w.over:
				fmt.Fprint(w.to, "\r\x1b[K")
				return
			}
		}
	})
	return w
}

// tell says what it has come to. Telling the same again says nothing.
func (w *working) tell(stage string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stage == "" || stage == w.stage {
		return
	}
	w.stage = stage
	if !w.terminal {
		fmt.Fprintln(w.to, stage)
	}
}

func (w *working) draw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage != "" {
		fmt.Fprintf(w.to, "\r\x1b[K%s %d s", w.stage, int(time.Since(w.began).Seconds()))
	}
}

// end takes the line away and returns how long it took.
func (w *working) end() time.Duration {
	close(w.over)
	w.work.Wait()
	return time.Since(w.began).Round(time.Millisecond)
}
