package process

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/disk"
)

const (
	// livePause is how long pages may fail to start before it is told why.
	livePause   = 100 * time.Millisecond
	memoryPause = 500 * time.Millisecond
	diskPause   = 2 * time.Second
	// walkShare keeps the walks of a large profile below a hundredth of a core.
	walkShare = 100
)

// watchOver enforces what the kernel does not (CELL-7), and ends a browser that
// cannot start pages any more. It reads, so it can be wrong for one pause.
func (c *box) watchOver(ctx context.Context) {
	barren := false
	live := time.NewTicker(livePause)
	defer live.Stop()
	memory := time.NewTicker(memoryPause)
	defer memory.Stop()
	disk := time.NewTimer(diskPause)
	defer disk.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-live.C:
			// Twice, since they also end just before all else does.
			was := barren
			if barren = c.barren(); barren && was {
				c.condemn(reins.Errorf(reins.CodeBrowserEnded, "%s lost the process that it starts pages from, which it never has again; restart it", c.name()).
					In(reins.PhaseLifeCycle))
			}
		case <-memory.C:
			if c.group == nil {
				c.boundMemory()
			}
		case <-disk.C:
			begin := time.Now()
			c.boundDisk(ctx)
			disk.Reset(max(diskPause, walkShare*time.Since(begin)))
		}
	}
}

// keepZygotes remembers the processes that Chromium forks all others from. It
// starts them once: without one, each page crashes at once and for ever.
func (c *box) keepZygotes(tasks []task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.zygotes) > 0 {
		return
	}
	for _, t := range tasks {
		if t.kind == "zygote" {
			if dir, err := c.inside.open(t.pid); err == nil {
				c.zygotes = append(c.zygotes, dir)
			}
		}
	}
}

// barren reports whether a zygote that was seen is gone, of a browser that nobody
// is ending. A directory of /proc is a process descriptor, so another process of
// the same number is not it.
func (c *box) barren() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, dir := range c.zygotes {
		status, err := readAt(dir, "status")
		if err != nil || parseStatus(status).zombie {
			return !c.wanted
		}
	}
	return false
}

func (c *box) boundMemory() {
	tasks, err := c.inside.tasks()
	if err != nil {
		return // the cell is ending
	}
	total := c.inside.volatile()
	for _, t := range tasks {
		total += t.memory
	}
	bound := c.spec.Limits.CellMemory
	if total <= bound {
		return
	}
	v, ok := victim(tasks, total)
	if !ok {
		c.condemn(reins.Errorf(reins.CodeBrowserEnded, "%s took %d bytes of memory, above its bound of %d, and no page holds them; restart it or raise cell_memory", c.name(), total, bound).
			In(reins.PhaseLifeCycle))
		return
	}
	c.kill(v)
}

// victim picks the process whose end helps most at the least cost: the largest
// renderer, whose page can be reloaded; the largest other process that Chromium
// starts again, when renderers are not what fills the cell; none when it is the
// browser process itself, or files in memory.
func victim(tasks []task, total int64) (task, bool) {
	var renderer, other task
	for _, t := range tasks {
		switch t.kind {
		case "", "zygote":
		case "renderer":
			if t.memory > renderer.memory {
				renderer = t
			}
		default:
			if t.memory > other.memory {
				other = t
			}
		}
	}
	switch {
	case renderer.pid != 0 && renderer.memory >= total/10:
		return renderer, true
	case other.pid != 0 && other.memory >= total/10:
		return other, true
	}
	return task{}, false
}

func (c *box) boundDisk(ctx context.Context) {
	bound := c.spec.Limits.CellDisk
	var sum int64
	for _, dir := range []string{c.spec.Profile, c.spec.Downloads} {
		sum += disk.Usage(ctx, dir)
	}
	if sum > bound && ctx.Err() == nil {
		c.condemn(reins.Errorf(reins.CodeBrowserEnded, "%s filled its profile and downloads with %d bytes, above the bound of %d; restart it, or raise cell_disk, and workspace_bytes, when its workspace keeps what fills it", c.name(), sum, bound).
			In(reins.PhaseLifeCycle))
	}
}
