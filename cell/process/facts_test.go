package process

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// RDY-1, CELL-4, CELL-7, CELL-13: what a cell enforces and what it does not is told
// as it is, for each engine, with WebGL, with and without a group, on and off line.
func TestFacts_RDY1_CELL7(t *testing.T) {
	limits, err := reins.Limits{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		engine         reins.Engine
		webGL, grouped bool
		online         bool
		say            map[string]string // a part of each fact
	}{
		"full": {reins.EngineFull, false, false, true, map[string]string{
			"engine": "full 156.0.1.2", "egress": "sealed", "navigation": "managed policies", "network": "online",
			"limits": "watched: the largest renderer is killed above it; CPU not bounded", "downloads": "at most 2147483648 bytes, watched", "view": "frames",
		}},
		"full with WebGL": {reins.EngineFull, true, false, true, map[string]string{"sandbox": "the GPU process has no filter of its own with WebGL"}},
		"shell": {reins.EngineShell, false, false, true, map[string]string{
			"sandbox": "the network service has no filter of its own in this engine", "navigation": "this engine reads no managed policies",
		}},
		"shell with WebGL":    {reins.EngineShell, true, false, true, map[string]string{"sandbox": "network service and GPU process have no filter"}},
		"in a group, offline": {reins.EngineFull, false, true, false, map[string]string{"limits": "bounded by cgroup; CPU not bounded", "network": "navigator.onLine false"}},
	} {
		b := newBox(cell.Spec{Engine: c.engine, WebGL: c.webGL, Limits: limits}, version{text: "156.0.1.2", major: 156})
		b.online, b.group = c.online, nil
		if c.grouped {
			b.group = &group{}
		}
		facts := b.Facts()
		for fact, part := range c.say {
			if !strings.Contains(facts[fact], part) {
				t.Errorf("%s: %s is %q, want %q in it", name, fact, facts[fact], part)
			}
		}
		for _, fact := range []string{"engine", "egress", "sandbox", "limits", "view", "downloads", "navigation", "network"} {
			if facts[fact] == "" {
				t.Errorf("%s: nothing is said of %s", name, fact)
			}
		}
		b.end()
	}
}
