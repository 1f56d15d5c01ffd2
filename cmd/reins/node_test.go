package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/demo"
)

// nodeDir is a directory of the tests' own with the files of one of test/ and what
// its lock file names.
func nodeDir(ctx context.Context, t *testing.T, name string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range append(files, "package.json", "package-lock.json", ".npmrc") {
		b, err := os.ReadFile(filepath.Join("..", "..", "test", name, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node(ctx, t, dir, "npm", "ci", "--ignore-scripts")
	return dir
}

// node runs a command there and returns what it printed.
func node(ctx context.Context, t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command[0], err, out)
	}
	return string(out)
}

// MCP-1: the official TypeScript client, with its own checks of schemas and
// results, gets the main job done over both transports.
func TestTypeScriptClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	dir := nodeDir(ctx, t, "mcp-sdk", "client.mjs")
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	t.Run("stdio", func(t *testing.T) {
		server := program(t, mcpFlags{engine: "full", logLevel: "warn"}.mcpArguments(site, true)...)
		// A client that does not start it as "reins" needs a program of that name.
		named := filepath.Join(dir, "reins")
		if err := os.Symlink(server.Path, named); err != nil {
			t.Fatal(err)
		}
		client := exec.CommandContext(ctx, "node", append([]string{"client.mjs", site.URL(), demo.Email, demo.Password, named}, server.Args[1:]...)...)
		client.Dir, client.Env = dir, server.Env
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", client, err, out)
		}
		nothingLeft(t, server)
	})
	t.Run("http", func(t *testing.T) {
		url, token := overHTTP(t, site, served{engine: reins.EngineFull})
		node(ctx, t, dir, "node", "client.mjs", site.URL(), demo.Email, demo.Password, url, string(token))
	})
}

// MCP-1: the official conformance suite, but for what it tests by a sample server's
// tools and prompts (see its baseline).
func TestConformance(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	dir := nodeDir(ctx, t, "mcp-conformance", "older.mjs", "baseline.yml")
	site, err := demo.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	url, _ := overHTTP(t, site, served{engine: reins.EngineShell, open: true})
	out := node(ctx, t, dir, "node", "--import", "./older.mjs", "node_modules/@modelcontextprotocol/conformance/dist/index.js",
		"server", "--url", url, "--suite", "all", "--expected-failures", "baseline.yml")
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "resources-list", "server-sse-multiple-streams", "dns-rebinding-protection"} {
		if !strings.Contains(out, "✓ "+scenario+":") {
			t.Errorf("%s is not among what passed:\n%s", scenario, out)
		}
	}
}
