package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/reins-browser/reins/internal/bench/chromium"
)

// measure is one row: the same work done raw and through Reins.
type measure struct {
	name string
	aim  string
	page string // opened in both before the rounds; "" for none
	raw  func(context.Context, *floor, *site) error
	mcp  func(context.Context, *client, *site) error
	prep func(context.Context, *client) error // finds what mcp acts on
}

var measures = []measure{
	{name: "navigate, 35 elements", aim: "≤ 1.15 × floor",
		raw: func(ctx context.Context, f *floor, s *site) error { return f.navigate(ctx, s.url("35")) },
		mcp: func(ctx context.Context, c *client, s *site) error { return c.navigate(ctx, s.url("35")) }},
	{name: "navigate, 10,000 elements", aim: "≤ 1.15 × floor",
		raw: func(ctx context.Context, f *floor, s *site) error { return f.navigate(ctx, s.url("10000")) },
		mcp: func(ctx context.Context, c *client, s *site) error { return c.navigate(ctx, s.url("10000")) }},
	snapshotMeasure("35", "≤ 1.3 × floor", 0),
	snapshotMeasure("950", "≤ 1.3 × floor", 0),
	snapshotMeasure("10000", "≤ 1.3 × floor, < 60 ms", 0),
	snapshotMeasure("10000", "≤ 1.3 × floor, < 60 ms", 1_000_000),
	snapshotMeasure("50000", "", 0),
	{name: "snapshot, 20 frames of 35", aim: "≤ 1.3 × floor", page: "frames",
		raw: func(ctx context.Context, f *floor, _ *site) error { return f.walkFrames(ctx) },
		mcp: func(ctx context.Context, c *client, _ *site) error { return c.snapshot(ctx) }},
	{name: "click, the page fetches", aim: "floor + 33 ms", page: "fetch",
		raw:  func(ctx context.Context, f *floor, _ *site) error { return f.fetch(ctx) },
		mcp:  func(ctx context.Context, c *client, _ *site) error { return c.act(ctx, "browser_click", nil) },
		prep: func(ctx context.Context, c *client) error { return c.find(ctx, `button "Fetch`) }},
	{name: "click, the page navigates", aim: "floor + 33 ms", page: "leave",
		raw:  func(ctx context.Context, f *floor, _ *site) error { return f.leave(ctx) },
		mcp:  func(ctx context.Context, c *client, _ *site) error { return c.leave(ctx, `button "Leave`) },
		prep: func(ctx context.Context, c *client) error { return c.find(ctx, `button "Leave`) }},
	{name: "click and see, DOM only", aim: "floor + 33 ms", page: "35",
		raw:  func(ctx context.Context, f *floor, _ *site) error { return f.click(ctx) },
		mcp:  func(ctx context.Context, c *client, _ *site) error { return c.act(ctx, "browser_click", nil) },
		prep: func(ctx context.Context, c *client) error { return c.find(ctx, `button "Count`) }},
	{name: "fill", aim: "floor + 33 ms", page: "35",
		raw: func(ctx context.Context, f *floor, _ *site) error { return f.fill(ctx, "hello reins") },
		mcp: func(ctx context.Context, c *client, _ *site) error {
			return c.act(ctx, "browser_fill", map[string]any{"value": "hello reins"})
		},
		prep: func(ctx context.Context, c *client) error { return c.find(ctx, `textbox "Name`) }},
	{name: "press", aim: "floor + 33 ms", page: "35",
		raw: func(ctx context.Context, f *floor, _ *site) error { return f.press(ctx) },
		mcp: func(ctx context.Context, c *client, _ *site) error {
			return c.act(ctx, "browser_press", map[string]any{"key": "a"})
		},
		prep: func(ctx context.Context, c *client) error { return c.find(ctx, `textbox "Name`) }},
	{name: "screenshot", aim: "≤ 1.1 × floor", page: "35",
		raw: func(ctx context.Context, f *floor, _ *site) error { return f.screenshot(ctx) },
		mcp: func(ctx context.Context, c *client, _ *site) error { return c.screenshot(ctx) }},
}

// snapshotMeasure reads a page, up to a number of bytes; 0 is the default.
func snapshotMeasure(page, aim string, most int) measure {
	name, arguments := "snapshot, "+page+" elements", map[string]any(nil)
	if most > 0 {
		name, arguments = name+", all of it", map[string]any{"max_bytes": most}
	}
	return measure{name: name, aim: aim, page: page,
		raw: func(ctx context.Context, f *floor, _ *site) error { return f.walk(ctx) },
		mcp: func(ctx context.Context, c *client, _ *site) error {
			_, err := c.call(ctx, "browser_snapshot", arguments)
			return err
		}}
}

func (m measure) run(ctx context.Context, rounds int, f *floor, c *client, s *site, t *table) error {
	if m.page != "" {
		if err := f.navigate(ctx, s.url(m.page)); err != nil {
			return err
		}
		if err := c.navigate(ctx, s.url(m.page)); err != nil {
			return err
		}
	}
	if m.prep != nil {
		if err := m.prep(ctx, c); err != nil {
			return err
		}
	}
	var raw, mcp []time.Duration
	var used [2]time.Duration
	for i := range rounds + 3 { // the first three warm both up
		if i == 3 {
			used = [2]time.Duration{chromium.CPU(f.browser.Pid()), chromium.CPU(c.cmd.Process.Pid)}
		}
		a, err := clock(func() error { return m.raw(ctx, f, s) })
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		b, err := clock(func() error { return m.mcp(ctx, c, s) })
		if err != nil {
			return fmt.Errorf("reins: %w", err)
		}
		if i >= 3 {
			raw, mcp = append(raw, a), append(mcp, b)
		}
	}
	row := t.add(m.name, m.aim, raw, mcp)
	row.rawCPU = (chromium.CPU(f.browser.Pid()) - used[0]) / time.Duration(rounds)
	row.mcpCPU = (chromium.CPU(c.cmd.Process.Pid) - used[1]) / time.Duration(rounds)
	return nil
}

func starts(ctx context.Context, o options, s *site, t *table) error {
	var raw, mcp []time.Duration
	for i := range o.starts + 1 {
		a, err := clock(func() error {
			f, err := startFloor(ctx, o)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.walk(ctx)
		})
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		var b time.Duration
		if err := func() error {
			begin := time.Now()
			c, err := startReins(ctx, o, s)
			if err != nil {
				return err
			}
			defer c.Close()
			err = c.snapshot(ctx)
			b = time.Since(begin)
			return err
		}(); err != nil {
			return fmt.Errorf("reins: %w", err)
		}
		if i > 0 {
			raw, mcp = append(raw, a), append(mcp, b)
		}
	}
	t.add("process start → first snapshot", "≤ 1.15 × floor", raw, mcp)
	return nil
}

func clock(f func() error) (time.Duration, error) {
	begin := time.Now()
	err := f()
	return time.Since(begin), err
}

type table struct{ rows []*tableRow }

type tableRow struct {
	name, aim      string
	raw, mcp       []time.Duration
	rawCPU, mcpCPU time.Duration // of all processes, a round; 0 when not measured
}

func (t *table) add(name, aim string, raw, mcp []time.Duration) *tableRow {
	slices.Sort(raw)
	slices.Sort(mcp)
	row := &tableRow{name: name, aim: aim, raw: raw, mcp: mcp}
	t.rows = append(t.rows, row)
	return row
}

func (t *table) print(w io.Writer) {
	fmt.Fprintln(w, "| work | floor | reins | p90 | ratio | difference | CPU floor | CPU reins | aim |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|---|")
	for _, r := range t.rows {
		f, m := at(r.raw, 50), at(r.mcp, 50)
		fmt.Fprintf(w, "| %s | %s | %s | %s | %.2f | %s | %s | %s | %s |\n", r.name, millis(f), millis(m),
			millis(at(r.mcp, 90)), float64(m)/float64(f), millis(m-f), spent(r.rawCPU), spent(r.mcpCPU), r.aim)
	}
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func spent(d time.Duration) string {
	if d == 0 {
		return "" // below what the kernel counts
	}
	return millis(d)
}

func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms > -10 && ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}
