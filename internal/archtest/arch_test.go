package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/reins-browser/reins"

// floors maps a package (without the module) to its floor. Imports only go
// down; siblings on a floor do not import each other.
var floors = map[string]int{
	"":                    0,
	"internal/capability": 1,
	"internal/control":    1,
	"internal/frames":     1,
	"internal/cdp":        1,
	"internal/queue":      1,
	"internal/child":      1,
	"internal/outline":    1,
	"internal/disk":       1,
	"internal/redact":     1,
	"internal/webguard":   1,
	"internal/hold":       1,
	"internal/tooltable":  1,
	"cell":                2,
	"internal/driver":     2,
	"internal/egress":     2,
	"internal/artifact":   2,
	"internal/hostdir":    2,
	"internal/store":      2,
	"mcp":                 2,
	"toolset":             2,
	"api":                 2,
	"viewer":              2,
	"pipe":                3,
	"cell/process":        3,
	"host":                4,
	"internal/demo":       5,
	"internal/server":     5,
	"cmd/reins":           6,
	"internal/bench":      6,

	"internal/bench/chromium": 2,
	"internal/bench/view":     6,

	"internal/tasks/reading": 1,
	"internal/tasks/site":    1,
	"internal/tasks/agents":  2,
	"internal/tasks":         6,
}

// kits are for tests only: production code never imports them.
var kits = []string{"internal/archtest", "cell/celltest", "reinstest", "toolset/toolsettest"}

// pairs are imports between floors that are forbidden although they go down.
var pairs = [][2]string{
	{"cell/process", "internal/driver"},
	{"host", "mcp"},
	{"host", "api"},
	{"host", "pipe"},
	{"internal/demo", "host"},
}

type listed struct {
	ImportPath, Name, Doc, Dir string
	Imports, GoFiles           []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Dir,Imports,GoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func short(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		if strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "bench") {
			continue
		}
		if p.Doc == "" {
			t.Errorf("package %q has no comment", name)
		}
		if slices.Contains(kits, name) {
			continue
		}
		floor, ok := floors[name]
		if !ok {
			t.Errorf("package %q has no floor: give it one here and in ARCHITECTURE.md", name)
		}
		for _, i := range p.Imports {
			if i == "testing" {
				t.Errorf("package %q imports testing", name)
			}
			if i != module && !strings.HasPrefix(i, module+"/") {
				if name == "" && strings.Contains(strings.Split(i, "/")[0], ".") {
					t.Errorf("the vocabulary imports %q; it is standard library only", i)
				}
				continue
			}
			target := short(i)
			if slices.Contains(kits, target) {
				t.Errorf("package %q imports the test kit %q", name, target)
			} else if below, ok := floors[target]; ok && below >= floor {
				t.Errorf("package %q (floor %d) imports %q (floor %d)", name, floor, target, below)
			}
			if slices.Contains(pairs, [2]string{name, target}) {
				t.Errorf("package %q must not know %q", name, target)
			}
		}
	}
}

func TestArchitectureNamesEveryRoom(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range floors {
		if name != "" && !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not name `%s`", name)
		}
	}
}
