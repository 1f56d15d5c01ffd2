package driver

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// refTo is the ref of the only line of the newest snapshot that holds text.
func refTo(tb testing.TB, snapshot, text string) reins.Ref {
	tb.Helper()
	var found reins.Ref
	for line := range strings.Lines(snapshot) {
		if !strings.Contains(line, text) {
			continue
		}
		_, rest, ok := strings.Cut(line, "[ref=")
		if !ok {
			continue
		}
		if found != "" {
			tb.Fatalf("several lines hold %q in\n%s", text, snapshot)
		}
		ref, _, _ := strings.Cut(rest, "]")
		found = reins.Ref(ref)
	}
	if found == "" {
		tb.Fatalf("no line with a ref holds %q in\n%s", text, snapshot)
	}
	return found
}

// see is a whole snapshot of the selected tab.
func (b *testBrowser) see(tb testing.TB) string {
	tb.Helper()
	return b.act(tb, reins.Snapshot{MaxBytes: 1_000_000}).Result.Snapshot.Text
}

// result is what the element named "result" reads, by a snapshot.
func (b *testBrowser) result(tb testing.TB) string {
	tb.Helper()
	for line := range strings.Lines(b.see(tb)) {
		if _, text, ok := strings.Cut(line, `status "result": `); ok {
			return strings.TrimSpace(text)
		}
	}
	return ""
}
