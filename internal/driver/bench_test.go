package driver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// rows is a page of about n elements: rows with text, a button and a link.
func rows(n int) string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>rows</title><style>.row{padding:2px}button:hover{color:red}</style>")
	for i := range n / 4 {
		fmt.Fprintf(&b, `<div class=row><span>Item %d</span> <button aria-label="Add %d">Add</button> <a href="/item/%d">Link %d</a></div>`, i, i, i, i)
	}
	return b.String()
}

// plainWalk reads role, name and visibility of every element, which is the
// least that any reading inside of a page does.
const plainWalk = `() => {
  const out = [];
  for (const e of document.querySelectorAll('*')) {
    const s = getComputedStyle(e), r = e.getBoundingClientRect();
    if (s.display === 'none' || s.visibility === 'hidden' || !r.width) continue;
    out.push((e.getAttribute('role') || e.localName) + ' ' + (e.getAttribute('aria-label') || e.textContent).trim().slice(0, 100));
  }
  return out.join('\n');
}`

func benchPage(b *testing.B, html string) *testBrowser {
	tb := newBrowser(b, reins.EngineShell)
	tb.open(b, site(b, map[string]string{"/": html}).URL)
	return tb
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tb := benchPage(b, rows(n))
			for b.Loop() {
				tb.act(b, reins.Snapshot{})
			}
		})
		b.Run(fmt.Sprint(n, "-plain-walk"), func(b *testing.B) {
			tb := benchPage(b, rows(n))
			d, err := tb.tabNow().document(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				var text string
				if err := d.eval(context.Background(), plainWalk, &text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const benchForm = `<!doctype html><title>form</title><label>Name <input></label><button onclick="n=(self.n||0)+1;this.textContent='Go '+n">Go</button>`

func BenchmarkClick(b *testing.B) {
	tb := benchPage(b, benchForm)
	ref := refTo(b, tb.see(b), "button")
	for b.Loop() {
		tb.act(b, reins.Click{Ref: ref})
	}
}

// BenchmarkClickFloor is the three events alone, in one write.
func BenchmarkClickFloor(b *testing.B) {
	tb := benchPage(b, benchForm)
	s := tb.tabNow().pageSession()
	events, _ := tb.tabNow().pointerEvents(200, 20, reins.Click{})
	for b.Loop() {
		for _, p := range s.SendAll(events...) {
			if err := p.Wait(context.Background(), nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkFill(b *testing.B) {
	tb := benchPage(b, benchForm)
	ref := refTo(b, tb.see(b), "textbox")
	for b.Loop() {
		tb.act(b, reins.Fill{Ref: ref, Value: reins.TextValue("Ada Lovelace")})
	}
}

func BenchmarkPress(b *testing.B) {
	tb := benchPage(b, benchForm)
	for b.Loop() {
		tb.act(b, reins.Press{Key: "ArrowDown"})
	}
}

// BenchmarkPressFloor is the two events alone, in one write.
func BenchmarkPressFloor(b *testing.B) {
	tb := benchPage(b, benchForm)
	s := tb.tabNow().pageSession()
	for b.Loop() {
		for _, p := range s.SendAll(
			cdp.Prepare(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "ArrowDown", Code: "ArrowDown", WindowsVirtualKeyCode: 40}),
			cdp.Prepare(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "ArrowDown", Code: "ArrowDown", WindowsVirtualKeyCode: 40}),
		) {
			if err := p.Wait(context.Background(), nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkScreenshot(b *testing.B) {
	tb := benchPage(b, rows(1000))
	for b.Loop() {
		tb.act(b, reins.Screenshot{})
	}
}

func BenchmarkScreenshotFloor(b *testing.B) {
	tb := benchPage(b, rows(1000))
	for _, fast := range []bool{false, true} {
		b.Run(fmt.Sprint("fast=", fast), func(b *testing.B) {
			n := 0
			for b.Loop() {
				got, err := cdp.Call(context.Background(), tb.tabNow().pageSession(), page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, OptimizeForSpeed: &fast})
				if err != nil {
					b.Fatal(err)
				}
				n = len(got.Data)
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}
