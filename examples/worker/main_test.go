package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/reins-browser/reins/host"
)

// TestMain lets the test be the host, its cells and drivers, and the worker.
func TestMain(m *testing.M) {
	host.Main()
	if len(os.Args) == 3 && os.Args[1] == "work" {
		if err := work(context.Background(), os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The example is run as a reader would run it, with a worker in a process of its
// own (PIPE-1), and the pieces that the guide quotes are its own.
func TestWorker(t *testing.T) {
	var out output
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := "gate: navigate by pipe 1 in run morning\nworker: reader is on the page \"Morning news\"\n"
	if got := out.String(); got != want {
		t.Errorf("it printed:\n%swant:\n%s", got, want)
	}
}

// output is written by the host and by what copies from the worker.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

var _ io.Writer = (*output)(nil)

func TestGuideQuotesTheProgram(t *testing.T) {
	guide, err := os.ReadFile("../../docs/pipe.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	quotes := strings.Split(string(guide), "```go\n")[1:]
	for _, block := range quotes {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(squeeze(string(program)), squeeze(code)) {
			t.Errorf("the program does not hold what the guide quotes:\n%s", code)
		}
	}
	if len(quotes) < 2 {
		t.Errorf("the guide quotes %d pieces", len(quotes))
	}
}
