package process

import (
	"context"
	"fmt"
	"time"

	"github.com/reins-browser/reins"
)

const (
	// verifyTime is how long a process may take to confine itself after it was
	// forked, and how long a first renderer may take to appear.
	verifyTime  = 5 * time.Second
	verifyPause = 5 * time.Millisecond
)

// Verify implements [cell.Cell] (CELL-4). It reads every process of the cell
// from the kernel and takes a moment only when one has just been forked.
func (c *box) Verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, verifyTime, errUnverified)
	defer cancel()
	pause := time.NewTicker(verifyPause)
	defer pause.Stop()
	for {
		found := c.unconfined()
		if found == nil {
			return nil
		}
		select {
		case <-c.done:
			return reins.Errorf(reins.CodeBrowserEnded, "%s ended before its sandbox was verified; restart it", c.name()).In(reins.PhaseStart)
		case <-pause.C:
		case <-ctx.Done():
			if context.Cause(ctx) != errUnverified {
				return reins.ContextError(ctx).In(reins.PhaseStart)
			}
			err := reins.Errorf(reins.CodeUnsafeHost, "%s is not confined (%w) and was ended; run reins doctor for what this host lacks", c.name(), found).In(reins.PhaseStart)
			c.condemn(err)
			<-c.done
			return err
		}
	}
}

var errUnverified = fmt.Errorf("not confined in time")

// Processes implements [cell.Cell].
func (c *box) Processes() ([]reins.CellProcess, error) {
	tasks, err := c.inside.tasks()
	if err != nil {
		return nil, fmt.Errorf("the cell's processes cannot be read: %w", err)
	}
	out := make([]reins.CellProcess, 0, len(tasks))
	for _, t := range tasks {
		name := t.kind
		switch {
		case t.pid == 1:
			name = "init"
		case name == "":
			name = "browser"
		case t.service != "":
			name += " " + t.service
		}
		out = append(out, reins.CellProcess{PID: t.pid, Name: name, Memory: t.memory})
	}
	return out, nil
}

// unconfined returns what is wrong with the cell's processes, nil when nothing.
func (c *box) unconfined() error {
	tasks, err := c.inside.tasks()
	if err != nil {
		return fmt.Errorf("its processes cannot be read: %w", err)
	}
	outer, err := c.inside.network(1)
	if err != nil {
		return fmt.Errorf("its network cannot be read: %w", err)
	}
	renderers := 0
	for _, t := range tasks {
		if t.kind == "renderer" {
			renderers++
		}
		if err := t.confined(c.spec.Engine, c.spec.WebGL); err != nil {
			return err
		}
		if t.kind != "renderer" {
			continue
		}
		network, err := c.inside.network(t.pid)
		if err != nil {
			return fmt.Errorf("renderer %d: its network cannot be read: %w", t.pid, err)
		}
		if network == outer {
			return fmt.Errorf("renderer %d shares the cell's network", t.pid)
		}
	}
	if renderers == 0 {
		return fmt.Errorf("it has no renderer to look at")
	}
	c.keepZygotes(tasks)
	return nil
}

// confined checks one process. Every one is under the cell's filter, without
// capabilities in the cell; what handles a page's or a site's bytes is under
// one of Chromium's own as well. The shell has no sandbox for its network
// service, whatever it is told; there the cell's filter is all it has.
func (t task) confined(engine reins.Engine, webGL bool) error {
	what := fmt.Sprintf("process %d, a %q", t.pid, t.kind)
	if t.seccomp != 2 || !t.noNewPrivs {
		return fmt.Errorf("%s, has seccomp mode %d and no-new-privileges %t", what, t.seccomp, t.noNewPrivs)
	}
	own := 0 // filters of Chromium's that it needs
	switch {
	case t.kind == "renderer":
		own = 1
		if t.depth < 2 {
			return fmt.Errorf("%s, has no PID namespace of its own", what)
		}
	case t.service == "network.mojom.NetworkService" && engine == reins.EngineFull:
		own = 1
	case t.kind == "gpu-process" && !webGL:
		own = 1
	}
	if t.filters < 1+own {
		return fmt.Errorf("%s, is under %d system call filters, not %d", what, t.filters, 1+own)
	}
	// A zygote has capabilities in a namespace of its own, to make its
	// children's; everything in the cell's own has none.
	if t.caps != 0 && t.kind != "zygote" {
		return fmt.Errorf("%s, has capabilities %#x", what, t.caps)
	}
	return nil
}
