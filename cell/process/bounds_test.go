package process

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// A bound that whoever started the program set too low is named, with how to raise
// it; one that suffices is not.
func TestBounds_CELL10(t *testing.T) {
	for _, low := range bounds {
		read := func(by uint64) func(int) (uint64, error) {
			return func(resource int) (uint64, error) {
				if resource == low.resource {
					return low.least - by, nil
				}
				return unix.RLIM_INFINITY, nil
			}
		}
		if f := checkBounds(read(0)); !f.OK || f.Remedy != "" {
			t.Errorf("%s: %+v", low.name, f)
		}
		if f := checkBounds(read(1)); f.OK || !strings.Contains(f.Detail, low.name) || !strings.Contains(f.Remedy, "ulimit "+low.flag) {
			t.Errorf("%s: %+v", low.name, f)
		}
	}
}

// The bounds are set on the browser process from outside just after it was
// executed; every process it starts has them.
func TestBoundsReachEveryProcess_CELL7(t *testing.T) {
	spec := probeSpec(t)
	spec.Engine = reins.EngineShell
	spec.Limits.CellTasks, spec.Limits.ProcessMemory = 800, 3<<30
	started, err := New(Options{}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	c := started.(*box)
	t.Cleanup(func() { _ = c.Kill(context.Background()) })
	deadline := time.After(30 * time.Second)
	for !hasRenderer(c) {
		select {
		case <-deadline:
			t.Fatal("no renderer")
		case <-time.After(5 * time.Millisecond):
		}
	}
	tasks, err := c.inside.tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tasks {
		dir, err := c.inside.open(p.pid)
		if err != nil {
			continue // it has ended
		}
		text, err := readAt(dir, "limits")
		unix.Close(dir)
		if err != nil {
			continue
		}
		got := strings.Join(strings.Fields(string(text)), " ")
		want := []string{"Max core file size 0 0", "Max processes 800 800", fmt.Sprintf(" %d files", openFiles)} // the soft bound of files is the process's own
		if p.pid != 1 {
			want = append(want, "Max data size 3221225472 3221225472")
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%d %s: no %q in %s", p.pid, p.kind, w, got)
			}
		}
	}
}

func hasRenderer(c *box) bool {
	tasks, _ := c.inside.tasks()
	for _, p := range tasks {
		if p.kind == "renderer" {
			return true
		}
	}
	return false
}
