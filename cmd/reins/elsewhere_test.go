package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/reins-browser/reins/internal/demo"
	"github.com/reins-browser/reins/internal/server"
)

// LIFE-4, B071: a server and its browser write below the runtime directory and
// nowhere else, whatever becomes of them: not into the home directory, not among
// temporary files, no core, no crash report.
func TestWritesNowhereElse(t *testing.T) {
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	for _, engine := range []string{"full", "shell"} {
		for _, end := range []string{"in order", "killed"} {
			t.Run(engine+" "+end, func(t *testing.T) {
				home, temporary, dir := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "runtime")
				cmd := program(t, append(mcpFlags{engine: engine, logLevel: "error"}.mcpArguments(site, true), "--dir", dir)...)
				cmd.Env = append(cmd.Env, "HOME="+home, "TMPDIR="+temporary, "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
				cmd.Dir = home
				c := connect(t, cmd)
				for _, tool := range []string{"browser_snapshot", "browser_screenshot"} {
					if text, failed := ask(t, c, tool, nil); failed {
						t.Fatal(text)
					}
				}
				// A crash leaves a core or a report, if anything does.
				if err := syscall.Kill(processOf(t, cmd.Process.Pid, "--type=renderer"), syscall.SIGSEGV); err != nil {
					t.Fatal(err)
				}
				_, _ = ask(t, c, "browser_snapshot", nil)
				if text, failed := ask(t, c, "browser_navigate", map[string]any{"url": site.URL()}); failed {
					t.Error(text)
				}
				all := descendants(cmd.Process.Pid)
				if end == "killed" {
					if err := cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
					gone(t, all, soon())
				}
				_ = c.Close()
				gone(t, all, soon())
				for _, at := range []string{home, temporary} {
					_ = filepath.WalkDir(at, func(path string, _ fs.DirEntry, err error) error {
						if path != at {
							t.Errorf("%s was made (%v)", path, err)
						}
						return nil
					})
				}
				list, err := os.ReadDir(dir)
				var names []string
				for _, e := range list {
					// A killed one leaves where its page was, and a key that opens nothing
					// any more; the next start writes both anew.
					if end != "killed" || e.Name() != server.AdminKeyFile && e.Name() != instanceFile {
						names = append(names, e.Name())
					}
				}
				if got := strings.Join(names, " "); err != nil || got != "generations runtime.lock runtime.mutex" {
					t.Errorf("the runtime directory holds %s, %v", got, err)
				}
				left, err := filepath.Glob(filepath.Join(dir, "generations", "*"))
				if err != nil || len(left) != map[string]int{"in order": 0, "killed": 1}[end] {
					t.Errorf("generations %v, %v", left, err) // what a killed one left goes with the next start
				}
			})
		}
	}
}
