package archtest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// TestPlatform is OVW-5: where Reins cannot run, its build fails with a sentence
// that says so, as the first thing that the compiler says.
func TestPlatform(t *testing.T) {
	const dir, name = "../child", "build.go"
	for _, c := range []struct {
		system, machine string
		fails           bool
	}{
		{"linux", "amd64", false}, {"linux", "arm64", false},
		{"linux", "386", true}, {"linux", "riscv64", true}, {"darwin", "arm64", true}, {"windows", "amd64", true},
	} {
		at := build.Default
		at.GOOS, at.GOARCH = c.system, c.machine
		in, err := at.MatchFile(dir, name)
		if err != nil || in != c.fails {
			t.Errorf("%s/%s: %s is built: %v, %v", c.system, c.machine, name, in, err)
		}
		files, err := at.ImportDir(dir, 0)
		if err != nil || c.fails && files.GoFiles[0] != name {
			t.Errorf("%s/%s begins with %v, %v", c.system, c.machine, files.GoFiles, err)
		}
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, dir+"/"+name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var says []string
	check := types.Config{Error: func(err error) { says = append(says, err.Error()) }}
	_, _ = check.Check("child", set, []*ast.File{f}, nil) // told above
	if len(says) != 1 || !strings.Contains(says[0], "Reins runs on Linux, on amd64 and arm64") {
		t.Errorf("the compiler says %q", says)
	}
}
