package main

import (
	"os"
	"strings"
	"testing"

	"github.com/reins-browser/reins/host"
)

func TestMain(m *testing.M) {
	host.Main()
	os.Exit(m.Run())
}

// The guide shows this program; it is run as a reader would run it, and the
// pieces that the guide quotes are its own.
func TestEmbed(t *testing.T) {
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestGuideQuotesTheProgram(t *testing.T) {
	guide, err := os.ReadFile("../../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	quotes := 0
	for i, block := range strings.Split(string(guide), "```go\n") {
		if i == 0 {
			continue
		}
		code, _, _ := strings.Cut(block, "```")
		quotes++
		if !strings.Contains(squeeze(string(program)), squeeze(code)) {
			t.Errorf("the program does not hold what the guide quotes:\n%s", code)
		}
	}
	if quotes < 4 {
		t.Errorf("the guide quotes %d pieces, want 4 or more", quotes)
	}
}

// squeeze leaves indentation out: the guide shows pieces at the margin.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
