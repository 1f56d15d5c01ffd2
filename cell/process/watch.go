package process

import (
	"context"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/reins-browser/reins"
)

const (
	memoryPause = 500 * time.Millisecond
	diskPause   = 2 * time.Second
	// walkShare keeps the walks of a large profile below a hundredth of a core.
	walkShare = 100
	// entriesMax is how many files are counted; more are too many by themselves.
	entriesMax = 1 << 19
)

// watchBounds enforces what the kernel does not (CELL-7). It reads, so it can
// be wrong for one pause.
func (c *box) watchBounds(ctx context.Context) {
	memory := time.NewTicker(memoryPause)
	defer memory.Stop()
	disk := time.NewTimer(diskPause)
	defer disk.Stop()
	for {
		select {
		case <-ctx.Done():
			return
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
		sum += diskUse(ctx, dir)
	}
	if sum > bound && ctx.Err() == nil {
		c.condemn(reins.Errorf(reins.CodeBrowserEnded, "%s filled its profile and downloads with %d bytes, above the bound of %d; restart it or raise cell_disk", c.name(), sum, bound).
			In(reins.PhaseLifeCycle))
	}
}

// diskUse adds up the blocks of everything below dir. It opens below dir only,
// so that what a hostile browser does to its tree meanwhile leads nowhere else.
func diskUse(ctx context.Context, dir string) int64 {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0
	}
	defer root.Close()
	var sum int64
	entries := 0
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if entries++; entries > entriesMax {
			sum = 1 << 62
		}
		if entries > entriesMax || ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil {
			return nil // removed meanwhile
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum
}
