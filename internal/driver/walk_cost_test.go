package driver

import (
	"context"
	"math"

	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/profiler"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// article is a page of about n elements as most of the web is made: text with
// links and marks, classes on everything, a form here and there.
func article(n int) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><title>article</title><style>.card{padding:2px}.card:hover{color:red}.tag::before{content:"#"}a{color:blue}</style><main>`)
	for i := range n / 14 {
		fmt.Fprintf(&b, `<section class="card" id="s%d"><h2 class="title">Heading %d</h2><p class="lead">Some <b>bold</b> and <a class="link" href="/item/%d">linked</a> text with a <span class="tag">tag</span>.</p>
<ul class="menu"><li><a href="#%d" class="x">First</a></li><li><a href="#y%d" class="x" aria-current="true">Second</a></li></ul><label class="l">Field <input name="f%d"></label><button class="btn" type="button"><i class="icon"></i><span>Save %d</span></button></section>`, i, i, i, i, i, i, i)
	}
	return b.String()
}

// BenchmarkWalk is the walk alone, by the page's own clock: what a page is held
// for. With REINS_PROFILE set it prints where the time goes.
func BenchmarkWalk(b *testing.B) {
	pages := map[string]string{}
	for _, n := range []int{35, 950, 10_000, 50_000} {
		pages[fmt.Sprint("rows-", n)] = rows(n)
		pages[fmt.Sprint("article-", n)] = article(n)
	}
	names := make([]string, 0, len(pages))
	for name := range pages {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			tb := benchPage(b, pages[name])
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			first := math.Inf(1) // of a document: nothing of the walker is compiled for speed yet
			for range 4 {
				first = min(first, walkOnce(ctx, b, tb))
				tb.act(b, reins.Navigate{URL: "reload", Wait: "load"})
			}
			d, err := tb.tabNow().document(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if os.Getenv("REINS_PROFILE") != "" {
				profile(ctx, b, d)
			}
			var times []float64
			for b.Loop() {
				times = append(times, walkOnce(ctx, b, tb))
			}
			sort.Float64s(times)
			b.ReportMetric(times[len(times)/2], "ms/walk")
			b.ReportMetric(times[0], "min-ms")
			b.ReportMetric(first, "first-ms")
		})
	}
}

// walkOnce is the time of one walk, in ms.
func walkOnce(ctx context.Context, b *testing.B, tb *testBrowser) float64 {
	d, err := tb.tabNow().document(ctx)
	if err != nil {
		b.Fatal(err)
	}
	var took float64
	if err := d.eval(ctx, "() => { const t = performance.now(); reins.walk(0, Infinity); return performance.now() - t; }", &took); err != nil {
		b.Fatal(err)
	}
	return took
}

// profile prints the functions of the walker that take most time.
func profile(ctx context.Context, b *testing.B, d *document) {
	if _, err := cdp.Call(ctx, d.session, profiler.Enable, proto.Empty{}); err != nil {
		b.Fatal(err)
	}
	if _, err := cdp.Call(ctx, d.session, profiler.SetSamplingInterval, profiler.SetSamplingIntervalParams{Interval: 200}); err != nil {
		b.Fatal(err)
	}
	if _, err := cdp.Call(ctx, d.session, profiler.Start, proto.Empty{}); err != nil {
		b.Fatal(err)
	}
	for range 20 {
		if err := d.eval(ctx, "() => { reins.walk(0, Infinity) }", nil); err != nil {
			b.Fatal(err)
		}
	}
	got, err := cdp.Call(ctx, d.session, profiler.Stop, proto.Empty{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := cdp.Call(ctx, d.session, profiler.Disable, proto.Empty{}); err != nil {
		b.Fatal(err)
	}
	hits, all := map[string]int64{}, int64(0)
	for _, n := range got.Profile.Nodes {
		hits[fmt.Sprintf("%s:%d", n.CallFrame.FunctionName, n.CallFrame.LineNumber)] += n.HitCount
		all += n.HitCount
	}
	names := make([]string, 0, len(hits))
	for name := range hits {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return hits[names[i]] > hits[names[j]] })
	for _, name := range names[:min(len(names), 24)] {
		b.Logf("%5.1f %% %s", 100*float64(hits[name])/float64(all), name)
	}
}
