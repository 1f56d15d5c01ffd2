package main

import (
	"errors"
	"testing"
)

// TestFloor keeps the raw side honest: each of its calls has its effect in a
// real Chromium.
func TestFloor(t *testing.T) {
	ctx := t.Context()
	s, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := startFloor(ctx, options{chromium: "/usr/lib/chromium/chromium"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.navigate(ctx, s.url("35")); err != nil {
		t.Fatal(err)
	}
	text := func(expression string) string {
		t.Helper()
		var out struct {
			Result struct {
				Value string `json:"value"`
			} `json:"result"`
		}
		if err := f.page.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &out); err != nil {
			t.Fatal(err)
		}
		return out.Result.Value
	}
	for _, do := range []func() error{
		func() error { return f.click(ctx) }, func() error { return f.click(ctx) },
		func() error { return f.fill(ctx, "x") }, func() error { return f.press(ctx) },
		func() error { return f.screenshot(ctx) }, func() error { return f.walk(ctx) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(`document.getElementById('out').textContent`); got != "2" {
		t.Errorf("two raw clicks counted as %q", got)
	}
	if got := text(`document.getElementById('name').value`); got != "xa" {
		t.Errorf("fill and press left %q", got)
	}
	if got := text(plainWalk); len(got) < 500 {
		t.Errorf("the walk says %q", got)
	}
	for _, c := range []struct {
		page, expression, want string
		do                     func() error
	}{
		{"fetch", `out.textContent`, "2", func() error { return errors.Join(f.fetch(ctx), f.fetch(ctx)) }},
		{"leave", `String(location.search.length>1)`, "true", func() error { return f.leave(ctx) }},
		{"frames", `String(frames.length)`, "20", func() error { return f.walkFrames(ctx) }},
	} {
		if err := f.navigate(ctx, s.url(c.page)); err != nil {
			t.Fatal(err)
		}
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.page, err)
		}
		if got := text(c.expression); got != c.want {
			t.Errorf("%s left %q, want %q", c.page, got, c.want)
		}
	}
}
