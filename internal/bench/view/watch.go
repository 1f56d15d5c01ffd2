package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reins-browser/reins/internal/bench/chromium"
	"github.com/reins-browser/reins/internal/cdp"
)

// way is one way to watch a browser.
type way interface {
	name() string
	page(*site) string                  // what the viewer opens
	canvas() string                     // script that finds the picture there
	show(context.Context, string) error // has the browser under watch load a page
	sent() int64                        // bytes to viewers so far
	cpu() (own, browser time.Duration)  // so far: what serves the picture, and the browser under watch
	Close()
}

// viewer is a person's browser.
type viewer struct{ *chromium.Browser }

// openViewer opens a way's page and waits until a picture is there.
func openViewer(ctx context.Context, o options, s *site, w way) (*viewer, error) {
	b, err := chromium.Start(ctx, chromium.Options{Program: o.chromium, Arguments: []string{"--headless=new", "--window-size=1800,1100"}})
	if err != nil {
		return nil, err
	}
	v := &viewer{b}
	for _, r := range []cdp.Request{
		{Method: "Page.enable"},
		{Method: "Emulation.setDeviceMetricsOverride", Params: map[string]any{"width": 1800, "height": 1100, "deviceScaleFactor": 1, "mobile": false}},
		{Method: "Page.navigate", Params: map[string]any{"url": w.page(s)}},
	} {
		if err := v.Page.Call(ctx, r.Method, r.Params, nil); err != nil {
			v.Close()
			return nil, err
		}
	}
	for { // the page may lead on to another one
		there := false
		err := v.eval(ctx, fmt.Sprintf(`(() => { const c = %s; return !!c && c.width > 300 && !document.hidden })()`, w.canvas()), &there)
		if err == nil && there {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			v.Close()
			return nil, fmt.Errorf("no picture in %s's page: %w", w.name(), errors.Join(ctx.Err(), err))
		}
	}
	return v, nil
}

func (v *viewer) eval(ctx context.Context, script string, into any) error {
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	err := v.Page.Call(ctx, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &out)
	switch {
	case err != nil:
		return err
	case out.Exception != nil:
		return errors.New(out.Exception.Text + " " + out.Exception.Exception.Description)
	case into == nil:
		return nil
	}
	return json.Unmarshal(out.Result.Value, into)
}

// reading is what a viewer saw in a while.
type reading struct {
	Seen    []float64 `json:"seen"`    // delay of each new picture, ms
	Presses []float64 `json:"presses"` // from a press to its effect in the picture, ms
	Torn    int       `json:"torn"`    // looks at which the strip was not whole

	took         time.Duration
	bytes        int64
	own, browser time.Duration // CPU
	viewer       time.Duration
}

// watch reads the picture for a while, during which do may act.
func (v *viewer) watch(ctx context.Context, w way, long time.Duration, do func() error) (r reading, err error) {
	if err := v.eval(ctx, fmt.Sprintf(reader, w.canvas()), nil); err != nil {
		return r, err
	}
	began, bytes := time.Now(), w.sent()
	own, browser := w.cpu()
	self := chromium.CPU(v.Pid())
	if do != nil {
		if err := do(); err != nil {
			return r, err
		}
	}
	select {
	case <-time.After(long - time.Since(began)):
	case <-ctx.Done():
		return r, ctx.Err()
	}
	if err := v.eval(ctx, `(() => { const r = window.readings; cancelAnimationFrame(r.handle); return { seen: r.seen, presses: r.presses ?? [], torn: r.torn }; })()`, &r); err != nil {
		return r, err
	}
	r.took, r.bytes = time.Since(began), w.sent()-bytes
	ownNow, browserNow := w.cpu()
	r.own, r.browser, r.viewer = ownNow-own, browserNow-browser, chromium.CPU(v.Pid())-self
	return r, nil
}

// press presses on the picture's middle.
func (v *viewer) press(ctx context.Context, w way) error {
	var at struct{ X, Y float64 }
	where := fmt.Sprintf(`(() => { const r = %s.getBoundingClientRect(); return { X: r.x + r.width / 2, Y: r.y + r.height / 2 }; })()`, w.canvas())
	if err := v.eval(ctx, where, &at); err != nil {
		return err
	}
	event := func(kind string, buttons int) cdp.Request {
		return cdp.Request{Method: "Input.dispatchMouseEvent", Params: map[string]any{
			"type": kind, "x": at.X, "y": at.Y, "button": "left", "buttons": buttons, "clickCount": 1}}
	}
	calls := v.Page.SendAll(event("mousePressed", 1), event("mouseReleased", 0))
	return calls[1].Wait(ctx, nil)
}

func quantile(of []float64, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	of = slices.Sorted(slices.Values(of))
	return of[min(len(of)-1, int(q*float64(len(of))))]
}
