package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reins-browser/reins/mcp"
)

// The guide names every tool with each of its arguments, and the list that it
// promises.
func TestGuideIsComplete(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(name, "browser_") && !strings.Contains(name, "`") {
			rows[name] = rest
		}
	}
	tools := listed(t, mcp.Options{Tools: []string{"full"}, People: true})
	for _, tool := range tools {
		row, ok := rows[tool.Name]
		if !ok {
			t.Errorf("the guide has no row for %s", tool.Name)
		}
		for name := range tool.InputSchema.(map[string]any)["properties"].(map[string]any) {
			if name != "tab" && !strings.Contains(row, "`"+name+"`") {
				t.Errorf("the row of %s does not name %s", tool.Name, name)
			}
		}
	}
	if len(rows) != len(tools) {
		t.Errorf("the guide has %d rows for %d tools", len(rows), len(tools))
	}
}
