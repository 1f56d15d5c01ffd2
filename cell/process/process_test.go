package process

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/celltest"
	"github.com/reins-browser/reins/internal/child"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--version":
		fmt.Println("Probe 156.0.1.2")
		return
	case strings.HasPrefix(os.Args[0], binPath):
		beProbe()
	}
	child.Main(map[string]child.Entry{
		InitRole: InitMain,
		"root":   asRoot,
		"bare":   withoutNamespaces,
		"hold":   celltest.Hold(func() cell.Backend { return New(Options{}) }),
	})
	goleak.VerifyTestMain(m)
}

func TestCell(t *testing.T) {
	if os.Getuid() == 0 {
		t.Fatal("browsers are not started as root: run with -exec scripts/as-user")
	}
	backend := New(Options{})
	celltest.Run(t, celltest.Factory{
		New:      func() cell.Backend { return backend },
		Engines:  []reins.Engine{reins.EngineFull, reins.EngineShell},
		HoldRole: "hold",
	})
}
