package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

func (t *Tour) printf(format string, arguments ...any) {
	fmt.Fprintf(t.Out, format, arguments...)
}

func (t *Tour) paint(code, s string) string {
	if !t.Colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (t *Tour) bold(s string) string { return t.paint("1", s) }
func (t *Tour) dim(s string) string  { return t.paint("2", s) }

func (t *Tour) heading(title string) { t.printf("\n%s\n", t.bold(title)) }

// row prints one call: its number, tool, what it was about, how long it took, and
// what came of it.
func (t *Tour) row(a act, took time.Duration, gist string) {
	t.printf("  %s  %s %s %s  %s\n", t.dim(fmt.Sprintf("%2d", t.calls)), pad(a.tool, 13), pad(cut(a.title(), 42), 42),
		t.paint("36", fmt.Sprintf("%9s", milliseconds(took))), t.dim(cut(gist, 76)))
}

// Summary prints what the walk cost. The list is the size of the list of tools;
// own and browser are memory held, in bytes, 0 where it is not known.
func (t *Tour) Summary(list int, own, browser int64) {
	t.heading("In all")
	t.printf("  %d calls; the agent read %s, and %s once for the list of tools\n", t.calls, size(t.bytes), size(list))
	t.printf("  first page after %s, with Chromium's start\n", milliseconds(t.first))
	var medians []string
	for _, tool := range []string{"navigate", "snapshot", "click", "fill", "press", "screenshot"} {
		if all := t.took[tool]; len(all) > 0 {
			medians = append(medians, fmt.Sprintf("%s %s", tool, milliseconds(median(all))))
		}
	}
	t.printf("  medians: %s\n", strings.Join(medians, ", "))
	if own > 0 && browser > 0 {
		t.printf("  memory: browser %s, reins %s\n", size(int(browser)), size(int(own)))
	}
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func cut(s string, width int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
