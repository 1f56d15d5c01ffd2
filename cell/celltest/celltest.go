// Package celltest is the suite that every cell backend passes: with real
// Chromium, real namespaces and real signals.
//
// A backend's test binary lists [Hold] among its children in TestMain and calls
// [Run] from a test. Everything is observed from outside: the doors, /proc, and
// the host's files. What only a program inside can see is proven by the
// backend's own tests.
//
// The flag -silence sets how long the silence at rest is watched; ten minutes
// is the rule's measure, the default is for every run.
package celltest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/child"
)

var silence = flag.Duration("silence", 15*time.Second, "how long a cell at rest is watched for requests (CELL-8)")

// Factory says what to test.
type Factory struct {
	New     func() cell.Backend
	Engines []reins.Engine
	// HoldRole is the role under which TestMain lists [Hold].
	HoldRole string
}

// Run runs the suite on each engine.
func Run(t *testing.T, f Factory) {
	for _, engine := range f.Engines {
		t.Run(string(engine), func(t *testing.T) {
			s := suite{Factory: f, engine: engine}
			heard := silent(t, s) // watched while the others work
			t.Run("group", func(t *testing.T) { s.run(t) })
			t.Run("Silence_CELL8_EGR9", heard)
		})
	}
}

type suite struct {
	Factory
	engine reins.Engine
}

// run runs the tests that can run side by side.
func (s suite) run(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, suite)
		only reins.Engine // empty: each
	}{
		{"Doors_CELL1_CELL3", testDoors, ""},
		{"Identity_CELL9", testIdentity, ""},
		{"Confined_CELL4", testConfined, ""},
		{"WebGL_CELL4", testWebGL, ""},
		{"CloseKeepsTheProfile_CELL6", testClose, ""},
		{"Kill_CELL5", testKill, ""},
		{"BrowserDies_CELL5", testBrowserDies, ""},
		{"InitDies_CELL5", testInitDies, ""},
		{"ZygoteDies_B069", testZygoteDies, ""},
		{"ParentDies_CELL5_OVW1", testParentDies, ""},
		{"RandomKills_CELL5", testRandomKills, ""},
		{"KeptProfile_B074", testKeptProfile, ""},
		{"SmallMemory_CELL7_B072", testSmallMemory, ""},
		{"Memory_CELL7", testMemory, ""},
		{"Disk_CELL7", testDisk, ""},
		{"Files_CELL3", testFiles, ""},
		{"StartRefused", testStartRefused, ""},
		{"StartCancelled", testStartCancelled, ""},
		// The shell reads no managed policies (CELL-13).
		{"Schemes_NAV2", testSchemes, reins.EngineFull},
		{"Navigation_NAV3", testNavigation, reins.EngineFull},
	} {
		if c.only != "" && c.only != s.engine {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, s)
		})
	}
}

// spec is an ordinary cell in directories of the test's own.
func (s suite) spec(t *testing.T) cell.Spec {
	limits, err := reins.Limits{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return cell.Spec{
		Key: reins.ResourceKey{Project: "test", ID: "cell"}, Incarnation: 1, Engine: s.engine,
		Locale: "en-US", TimeZone: "UTC", Width: 1280, Height: 800, Limits: limits,
		Profile: directory(t, "profile"), Downloads: directory(t, "downloads"), Uploads: directory(t, "uploads"),
	}
}

func directory(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts a cell that is gone when the test ends.
func (s suite) start(t *testing.T, spec cell.Spec) cell.Cell {
	t.Helper()
	c, err := s.New().Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Kill(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Hold is the entry of a process that starts the cell of its message, says so
// on "out", and holds it until it is killed.
func Hold(backend func() cell.Backend) child.Entry {
	return func(ctx context.Context, self *child.Self) error {
		var spec cell.Spec
		if err := json.Unmarshal(self.Message, &spec); err != nil {
			return err
		}
		out, err := self.File("out")
		if err != nil {
			return err
		}
		if err := dumpable(); err != nil {
			return err
		}
		fmt.Fprint(out, "s") // about to start
		c, err := backend().Start(ctx, spec)
		if err != nil {
			return err
		}
		fmt.Fprint(out, "r") // running
		<-c.Done()
		return c.Err()
	}
}

// holder starts a process that holds a cell of spec; each read of said returns
// one letter of what [Hold] writes.
func (s suite) holder(t *testing.T, spec cell.Spec) (p *child.Process, said io.Reader) {
	t.Helper()
	message, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p, err = child.Start(t.Context(), child.Spec{Role: s.HoldRole, Message: message, Files: map[string]*os.File{"out": w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); <-p.Done() })
	_ = r.SetReadDeadline(time.Now().Add(time.Minute))
	return p, r
}

func expect(t *testing.T, p *child.Process, said io.Reader, letter string) {
	t.Helper()
	b := make([]byte, 1)
	if _, err := io.ReadFull(said, b); err != nil || string(b) != letter {
		<-p.Done()
		t.Fatalf("holder said %q (%v), ended by %s: %s", b, err, p.Exit(), p.Stderr())
	}
}
