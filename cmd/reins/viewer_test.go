package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// VIEW-1..5: the pages keep their types, behave in every state against a server that
// plays a script, and work against a real one with a real browser (see test/viewer).
func TestViewer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	dir := nodeDir(ctx, t, "viewer", "kit.mjs", "mock.mjs", "pages.mjs", "reins.mjs", "live.mjs", "tsconfig.json")
	files, err := filepath.Abs(filepath.Join("..", "..", "viewer", "files"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("types", func(t *testing.T) { // VIEW-4
		config := fmt.Sprintf(`{"extends": "./tsconfig.json", "include": [%q]}`, filepath.Join(files, "assets", "*.js"))
		if err := os.WriteFile(filepath.Join(dir, "check.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := node(ctx, t, dir, "node", "node_modules/typescript/bin/tsc", "-p", "check.json", "--listFiles"); !strings.Contains(out, "resource.js") {
			t.Errorf("only these were checked:\n%s", out)
		}
	})
	t.Run("pages", func(t *testing.T) {
		t.Log(node(ctx, t, dir, "node", "pages.mjs", files))
	})
	t.Run("live", func(t *testing.T) {
		server := program(t, "serve")
		state, err := os.MkdirTemp(dir, "state")
		if err != nil {
			t.Fatal(err)
		}
		t.Log(node(ctx, t, dir, "node", "live.mjs", server.Path, filepath.Join(state, "reins")))
	})
}
