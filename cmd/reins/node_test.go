package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/reins-browser/reins/internal/demo"
)

// MCP-1: the official TypeScript client, with its own checks of schemas and
// results, gets the main job done.
func TestTypeScriptClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", "client.mjs"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "test", "mcp-sdk", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	server := program(t, mcpFlags{engine: "full", logLevel: "warn"}.mcpArguments(site)...)
	// A client that does not start it as "reins" needs a program of that name.
	named := filepath.Join(dir, "reins")
	if err := os.Symlink(server.Path, named); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts")
	client := exec.CommandContext(ctx, "node", append([]string{"client.mjs", site.URL(), demo.Email, demo.Password, named}, server.Args[1:]...)...)
	for _, cmd := range []*exec.Cmd{install, client} {
		cmd.Dir, cmd.Env = dir, server.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	nothingLeft(t, server)
}
