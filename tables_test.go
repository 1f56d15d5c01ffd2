package reins_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// The tables in the guides are those of the code: each line of them is made
// here and looked for there, in order.
func TestTablesInGuides(t *testing.T) {
	var codes, limits []string
	for _, c := range reins.Codes() {
		again := "no"
		if c.Retryable {
			again = "yes"
		}
		codes = append(codes, fmt.Sprintf("| `%s` | %s | %d | %s | %s |", c.Code, c.When, c.Status, again, strings.TrimSuffix(c.Recovery.Sentence(), ".")))
	}
	for _, l := range reins.LimitTable() {
		limits = append(limits, fmt.Sprintf("| `%s` | %s | %s | %s to %s | %s |", l.Name, l.What, amount(l, l.Default), amount(l, l.Min), amount(l, l.Max), l.Rule))
	}
	for file, lines := range map[string][]string{"docs/errors.md": codes, "docs/limits.md": limits} {
		guide, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(lines, "\n") + "\n"; !strings.Contains(string(guide), "|\n"+want+"\n") {
			t.Errorf("%s does not hold this table, whole and alone:\n%s", file, want)
		}
	}
}

// amount is a limit's value as people write it.
func amount(l reins.LimitInfo, v int64) string {
	switch l.Unit {
	case "duration":
		return brief(time.Duration(v))
	case "bytes":
		for _, u := range []struct {
			size int64
			name string
		}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if v >= u.size && v%u.size == 0 {
				return fmt.Sprintf("%d %s", v/u.size, u.name)
			}
		}
		return fmt.Sprintf("%d B", v)
	}
	return fmt.Sprint(v)
}

func brief(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d >= u.size && d%u.size == 0 {
			return fmt.Sprintf("%d %s", d/u.size, u.name)
		}
	}
	return d.String()
}
