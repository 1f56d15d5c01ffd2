package disk

import (
	"context"
	"os"
	"testing"
)

// CELL-7, WSP-2: what is below counts, what a link leads to does not.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/a/b/c", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr", dir+"/a/out"); err != nil {
		t.Fatal(err)
	}
	if got := Usage(t.Context(), dir); got < 1<<20 || got > 2<<20 {
		t.Errorf("%d bytes", got)
	}
	if got := Usage(t.Context(), dir+"/missing"); got != 0 {
		t.Errorf("a missing directory holds %d bytes", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Usage(ended, dir); got != 0 {
		t.Errorf("%d bytes after the end", got)
	}
}
