package driver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reins-browser/reins/internal/outline"
)

// How the walker gets at a document that is embedded by another one.
const (
	reachUnknown = iota // it was not read yet
	reachWith           // with the main one that is read: same process, same origin
	reachAlone          // by an evaluation of its own
)

// walks is one reading of all documents of a tab, or of those below one. The
// first must answer; others that do not are left empty and counted.
type walks struct {
	b     *browser
	docs  []placed
	pages []outline.Page
	errs  []error
}

// walkAll runs the walker in every document: in those that the first one reaches
// with one evaluation, in the others at once.
func (b *browser) walkAll(ctx context.Context, docs []placed, n int, r *reading) ([]outline.Page, error) {
	w := &walks{b, docs, make([]outline.Page, len(docs)), make([]error, len(docs))}
	slow, cancel := context.WithTimeout(ctx, mainAnswers)
	defer cancel()
	rest, stop := context.WithCancel(slow)
	defer stop()
	var wg sync.WaitGroup
	var near []int
	for i := 1; i < len(docs); i++ {
		if docs[i].reach.Load() == reachWith && docs[i].session == docs[0].session {
			near = append(near, i)
			continue
		}
		wg.Go(func() { w.alone(rest, i) })
	}
	left := w.first(slow, n, near)
	for _, i := range left {
		wg.Go(func() { w.alone(rest, i) })
	}
	timer := time.AfterFunc(frameAnswers, stop)
	defer timer.Stop()
	if w.errs[0] != nil {
		stop()
	}
	wg.Wait()
	if err := w.errs[0]; err != nil {
		if slow.Err() != nil && ctx.Err() == nil {
			return nil, errBusy(docs[0].frame.tab)
		}
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w.sum(r)
	return w.pages, nil
}

// sum puts what the walks have in common into the reading.
func (w *walks) sum(r *reading) {
	for i, p := range w.pages {
		if w.errs[i] != nil && !errors.Is(w.errs[i], errReplaced) {
			r.silent++
		}
		r.busy = r.busy || p.Busy
		r.full = r.full || p.Full
		r.late = r.late || p.Late
	}
}

// first reads the first document, or what is below element n of it, and those at
// the indexes near with it. It returns the ones of them that are still to be read.
func (w *walks) first(ctx context.Context, n int, near []int) (left []int) {
	if len(near) == 0 {
		w.pages[0], w.errs[0] = w.b.walk(ctx, w.docs[0].document, n)
		return nil
	}
	wanted := make([]int, len(near))
	for i, at := range near {
		wanted[i] = w.docs[at].number
	}
	var got struct {
		Text   string `json:"text"`
		Frames []struct {
			Mark int    `json:"mark"`
			Text string `json:"text"`
		} `json:"frames"`
	}
	if w.errs[0] = w.docs[0].eval(ctx, "(n, wanted) => reins.walkWith(n, wanted)", &got, n, wanted); w.errs[0] != nil {
		return nil
	}
	texts := map[int]string{}
	for _, f := range got.Frames {
		texts[f.Mark] = f.Text
	}
	if w.pages[0], w.errs[0] = w.b.parsed(ctx, w.docs[0].document, n, got.Text); w.errs[0] != nil {
		return nil
	}
	for _, i := range near {
		d := w.docs[i]
		text, ok := texts[d.number]
		if !ok { // it has changed its origin
			d.reach.Store(reachAlone)
			left = append(left, i)
			continue
		}
		if p, err := outline.Parse(text, d.number); err == nil && p.Hosts == 0 {
			w.pages[i] = p
			continue
		}
		left = append(left, i) // it may have closed shadow roots
	}
	return left
}

// alone reads the document at index i by an evaluation of its own.
func (w *walks) alone(ctx context.Context, i int) {
	d, parent := w.docs[i], w.docs[w.docs[i].parent]
	var got struct {
		Text  string `json:"text"`
		Owner int    `json:"owner"`
	}
	if w.errs[i] = d.eval(ctx, "mark => reins.walkAs(mark)", &got, d.number); w.errs[i] != nil {
		return
	}
	reach := int32(reachAlone)
	if got.Owner != 0 {
		reach = reachWith
		w.b.views.own(ownerKey{parent.document, d.frame}, got.Owner)
	}
	d.reach.Store(reach)
	w.pages[i], w.errs[i] = w.b.parsed(ctx, d.document, 0, got.Text)
}

// walk reads one document, or what is below element n of it.
func (b *browser) walk(ctx context.Context, d *document, n int) (outline.Page, error) {
	var text string
	if err := d.eval(ctx, "n => reins.walk(n)", &text, n); err != nil {
		return outline.Page{}, err
	}
	return b.parsed(ctx, d, n, text)
}

// parsed is what a walk of a document returned; where it may have closed shadow
// roots, those are handed to the walker, and it is walked again.
func (b *browser) parsed(ctx context.Context, d *document, n int, text string) (outline.Page, error) {
	for depth := 0; ; depth++ {
		if text == outline.Gone {
			return outline.Page{}, errGoneElement
		}
		p, err := outline.Parse(text, d.number)
		if err != nil {
			return outline.Page{}, err
		}
		if p.Hosts == 0 || depth == closedDepth || !b.openClosed(ctx, d) {
			return p, nil
		}
		if err := d.eval(ctx, "n => reins.walk(n)", &text, n); err != nil {
			return outline.Page{}, err
		}
	}
}
