package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
	"github.com/reins-browser/reins/internal/outline"
)

const (
	mainAnswers  = 10 * time.Second      // a page that runs one script for longer is said to be busy
	frameAnswers = time.Second           // a frame, once the main document has answered
	framesArrive = 3 * time.Second / 2   // what a page is still loading, on its first reading
	loadSoon     = 50 * time.Millisecond // the load event of a page that loads nothing more
	closedDepth  = 5                     // closed shadow roots inside closed shadow roots
)

// reading is a tab, or a part of it, as it was read.
type reading struct {
	nodes   []outline.Node
	main    *document
	loading bool
	busy    bool // something in it says that it is being updated
	full    bool // it has more than a walk lists
	late    bool // a walk took too long
	silent  int  // frames that did not answer
	chooser bool // a file is asked for
}

// notes says what is worth knowing about a reading.
func (x *action) notes(r *reading) {
	switch {
	case r.silent == 1:
		x.note("one frame did not answer; what is in it is missing")
	case r.silent > 1:
		x.note("%d frames did not answer; what is in them is missing", r.silent)
	}
	if r.busy {
		x.note("a part of the page says that it is being updated (busy); what it shows may be old")
	}
	if r.full {
		x.note("the page has more than a snapshot lists; take one of a ref to see the rest")
	}
	if r.late {
		x.note("the page is too large to be read at once: what comes after the end is missing; take a snapshot of a ref to see a part of it")
	}
	if r.chooser {
		x.note("the page asks for a file; give it one with fill on the file control's ref")
	}
}

// read walks all documents of a tab in parallel and joins what they show, or
// what is below one element (SNAP-2, SNAP-7).
func (b *browser) read(ctx context.Context, t *tab, ref reins.Ref) (*reading, error) {
	for attempt := 0; ; attempt++ {
		r, err := b.readOnce(ctx, t, ref)
		if ref != "" || attempt == 3 || !errors.Is(err, errReplaced) {
			return r, err
		}
		// The page went on to another document in the middle of it.
		short, cancel := context.WithTimeout(ctx, mainAnswers)
		err = b.await(short, func() bool { return t.main.doc != nil || t.blockedLocked() != nil })
		cancel()
		if err != nil {
			return nil, err
		}
	}
}

// arrive gives what a page still loads a moment to be there, once for a
// document: its frames, and what its scripts fetch. A first look would else
// miss it.
func (b *browser) arrive(ctx context.Context, t *tab) {
	d := t.mainDocument()
	if d == nil || !b.views.first(d) {
		return
	}
	short, cancel := context.WithTimeout(ctx, framesArrive)
	defer cancel()
	// What does not come in time is missing from the reading; that is told by
	// the result's loading.
	gone := func() bool { return t.main.doc != d || t.blockedLocked() != nil }
	_ = b.await(short, func() bool {
		complete := t.main.url != blankPage || !t.loading // a tab just opened is still on its way
		t.main.eachLocked(func(f *frame) { complete = complete && f.doc != nil && f.phase >= phaseParsed })
		return complete || !t.loading || gone()
	})
	loaded, cancelLoaded := context.WithTimeout(short, loadSoon)
	defer cancelLoaded()
	_ = b.await(loaded, func() bool { return !t.loading || gone() })
	for {
		waited, err := b.awaitLoads(short, t)
		if err != nil || !waited || d.eval(short, "() => reins.after(0, 0)", nil) != nil {
			return
		}
	}
}

func (b *browser) readOnce(ctx context.Context, t *tab, ref reins.Ref) (*reading, error) {
	ctx, release := t.guard(ctx)
	defer release()
	b.arrive(ctx, t)
	docs, err := t.documents(ctx)
	if err != nil {
		return nil, err
	}
	top, n := 0, 0
	if ref != "" {
		d, number, err := b.element(ref)
		if err != nil {
			return nil, err
		}
		top, n = indexOf(docs, d), number
		if top < 0 {
			return nil, errStale(ref)
		}
		docs = below(docs, top)
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%w: it has no document yet", errReplaced)
	}
	r := &reading{main: t.mainDocument()}
	pages, err := b.walkAll(ctx, docs, n, r)
	if err != nil {
		if errors.Is(err, errGoneElement) {
			return nil, errStale(ref)
		}
		return nil, err
	}
	placing, cancel := context.WithTimeout(ctx, mainAnswers)
	defer cancel()
	r.nodes = b.join(placing, docs, pages)
	b.mu.Lock()
	r.loading = t.loading
	chooser := t.chooser
	b.mu.Unlock()
	if chooser != nil && ref == "" {
		r.chooser = true
		r.nodes = append(b.chooserNodes(ctx, chooser), r.nodes...)
	}
	return r, nil
}

func (t *tab) mainDocument() *document {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	return t.main.doc
}

func indexOf(docs []placed, d *document) int {
	for i := range docs {
		if docs[i].document == d {
			return i
		}
	}
	return -1
}

// below keeps the document at top and those inside it, with their indexes.
func below(docs []placed, top int) []placed {
	at := map[int]int{top: 0}
	out := []placed{{docs[top].document, -1}}
	for i := top + 1; i < len(docs); i++ {
		if p, ok := at[docs[i].parent]; ok {
			at[i] = len(out)
			out = append(out, placed{docs[i].document, p})
		}
	}
	return out
}

var errGoneElement = errors.New("the element is gone")

// openClosed asks the browser which of the walker's candidates have a closed
// shadow root, and hands those in. It reports whether there were any.
func (b *browser) openClosed(ctx context.Context, d *document) bool {
	list, err := d.evalHandle(ctx, "() => reins.hosts()")
	if err != nil {
		return false
	}
	defer cdp.Send(d.session, runtime.ReleaseObject, runtime.ReleaseObjectParams{ObjectID: list.id})
	got, err := cdp.Call(ctx, d.session, runtime.GetProperties, runtime.GetPropertiesParams{ObjectID: list.id, OwnProperties: new(true)})
	if err != nil {
		return false
	}
	var hosts []handle
	var asked []cdp.Reply[dom.DescribeNodeResult]
	for _, p := range got.Result {
		if p.Value != nil && p.Value.Subtype == runtime.RemoteObjectSubtypeNode {
			hosts = append(hosts, handle{p.Value.ObjectID})
			asked = append(asked, cdp.Send(d.session, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: p.Value.ObjectID}))
		}
	}
	found := false
	for i, a := range asked {
		about, err := a.Wait(ctx)
		if err != nil || about.Node == nil {
			continue
		}
		for _, root := range about.Node.ShadowRoots {
			if root.ShadowRootType != proto.ShadowRootTypeClosed {
				continue
			}
			if h, err := d.resolve(ctx, root.BackendNodeID); err == nil {
				found = d.eval(ctx, "(host, root) => reins.adopt(host, root)", nil, hosts[i], h) == nil || found
			}
		}
	}
	for _, h := range hosts {
		cdp.Send(d.session, runtime.ReleaseObject, runtime.ReleaseObjectParams{ObjectID: h.id})
	}
	return d.eval(ctx, "() => reins.settleHosts()", nil) == nil && found
}

// join puts every document's entries under the element of its frame.
func (b *browser) join(ctx context.Context, docs []placed, pages []outline.Page) []outline.Node {
	inside := make([]map[int]int, len(docs)) // of each document: frame element to index of the document in it
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := 1; i < len(docs); i++ {
		wg.Go(func() {
			parent := docs[i].parent
			n, err := b.ownerNumber(ctx, docs[parent].document, docs[i].frame)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if inside[parent] == nil {
				inside[parent] = map[int]int{}
			}
			inside[parent][n] = i
		})
	}
	wg.Wait()
	var whole func(i int) []outline.Node
	whole = func(i int) []outline.Node {
		return outline.Splice(pages[i].Nodes, func(n outline.Node) []outline.Node {
			if at, ok := inside[i][n.Number]; ok {
				return whole(at)
			}
			return nil
		})
	}
	return whole(0)
}

type ownerKey struct {
	doc   *document
	frame *frame
}

// ownerNumber is the number, in its parent's document, of the element that a
// frame is embedded by. It stays the same for the frame's life.
func (b *browser) ownerNumber(ctx context.Context, parent *document, f *frame) (int, error) {
	key := ownerKey{parent, f}
	b.views.mu.Lock()
	n, ok := b.views.owners[key]
	b.views.mu.Unlock()
	if ok {
		return n, nil
	}
	node, err := f.owner(ctx)
	if err != nil {
		return 0, err
	}
	el, err := parent.resolve(ctx, node)
	if err != nil {
		return 0, err
	}
	if err := parent.eval(ctx, "el => reins.numberOf(el)", &n, el); err != nil {
		return 0, err
	}
	cdp.Send(parent.session, runtime.ReleaseObject, runtime.ReleaseObjectParams{ObjectID: el.id})
	b.views.own(key, n)
	return n, nil
}

// own remembers the number of the element that a frame is embedded by.
func (v *views) own(key ownerKey, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.owners == nil || len(v.owners) > 4096 {
		v.owners = map[ownerKey]int{}
	}
	v.owners[key] = n
}

// chooserNodes are an open file chooser as entries one can act on (SNAP-8).
func (b *browser) chooserNodes(ctx context.Context, c *fileChooser) []outline.Node {
	nodes := []outline.Node{{Role: "dialog", Name: "File chooser", States: " [file]"}}
	control := outline.Node{Depth: 1, Role: "file", Acts: true}
	if ref, about, err := b.chooserControl(ctx, c); err == nil {
		control.Ref, control.Name = string(ref), about.Name
	}
	if c.multiple {
		control.States = " [multiple]"
	}
	return append(nodes, control)
}

// chooserControl finds the file control that a chooser is for.
func (b *browser) chooserControl(ctx context.Context, c *fileChooser) (reins.Ref, controlInfo, error) {
	var about controlInfo
	b.mu.Lock()
	var d *document
	if c.frame != nil {
		d = c.frame.doc
	}
	b.mu.Unlock()
	if d == nil || c.node == 0 {
		return "", about, errReplaced
	}
	el, err := d.resolve(ctx, c.node)
	if err != nil {
		return "", about, err
	}
	if err := d.eval(ctx, "el => reins.control(reins.numberOf(el))", &about, el); err != nil {
		return "", about, err
	}
	return elementRef(d.number, about.Number), about, nil
}
