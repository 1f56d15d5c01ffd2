package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/outline"
)

const (
	snapshotBytes = 24_000 // budget of a snapshot that names none (SNAP-5)
	keptViews     = 48     // outlines that "changes" may compare with
	keptCursors   = 128
	keptBytes     = 96 << 20 // of all these outlines, about
)

// views is what the driver remembers of snapshots: for "changes" the last
// outline of each lease and tab, for cursors where they stopped. The zero
// value is empty and ready for use.
type views struct {
	mu      sync.Mutex
	last    map[viewKey]*view
	cursors map[string]*stop
	order   []string  // cursors, oldest first
	recent  []viewKey // views, least recently used first
	number  int       // of the newest cursor
	owners  map[ownerKey]int
	seen    map[*document]struct{} // main documents that were read
	shown   map[string]map[reins.Ref]title
}

type viewKey struct {
	lease string
	tab   reins.TabID
}

// view is one whole outline of a tab.
type view struct {
	nodes []outline.Node
	main  *document
	size  int
}

// stop is where a cut snapshot ended and what is needed to go on (SNAP-5).
type stop struct {
	asked  reins.Snapshot // part, depth and so on, as first asked for
	tab    *tab
	main   *document
	at     outline.Position
	anchor string // the nearest ref at or before the place
	since  int    // lines between the anchor and the place
	sum    uint64 // of all nodes
	lines  []outline.Line
}

// snapshot reads a tab as an outline (SNAP-1..8).
func (b *browser) snapshot(ctx context.Context, x *action, a reins.Snapshot) error {
	if a.Cursor != "" {
		return b.goOn(ctx, x, a)
	}
	if done, err := b.snapshotDialog(x, a); done || err != nil {
		return err
	}
	read, err := b.read(ctx, x.tab, a.Ref)
	var known *reins.Error
	if errors.As(err, &known) && known.Code == reins.CodeDialogOpen {
		if done, err := b.snapshotDialog(x, a); done || err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	b.show(x, a, read)
	return nil
}

// snapshotDialog describes an open dialog; the page behind it cannot be read.
func (b *browser) snapshotDialog(x *action, a reins.Snapshot) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := x.tab.dialog
	if d == nil {
		return false, nil
	}
	if a.Ref != "" && !isDialogRef(a.Ref) {
		return true, errDialog(x.tab, d)
	}
	lines := outline.Lines(dialogNodes(d))
	text, _ := outline.Cut(lines, outline.Position{}, budget(a))
	x.reply.Result.Snapshot = &reins.SnapshotResult{Text: text, Elements: outline.Elements(lines), Loading: x.tab.loading}
	x.note("a dialog is open in tab %s; the page behind it can be read once it is answered", x.tab.id)
	return true, nil
}

// dialogNodes are an open dialog as entries one can act on (SNAP-8).
func dialogNodes(d *dialog) []outline.Node {
	value := func(s string) string { return strings.ReplaceAll(bounded(s), "\n", "\u2028") }
	nodes := []outline.Node{{Role: "dialog", Name: value(d.message), States: " [" + d.kind + "]", Ref: string(refDialog), Acts: true}}
	if d.kind == "prompt" {
		text := d.fallback
		if d.typed != nil {
			text = *d.typed
		}
		nodes = append(nodes, outline.Node{Depth: 1, Role: "textbox", Ref: string(refDialogPrompt), Value: value(text), Acts: true})
	}
	nodes = append(nodes, outline.Node{Depth: 1, Role: "button", Name: "OK", Ref: string(refDialogAccept), Acts: true})
	if d.kind != "alert" {
		nodes = append(nodes, outline.Node{Depth: 1, Role: "button", Name: "Cancel", Ref: string(refDialogDismiss), Acts: true})
	}
	return nodes
}

// note adds a plain sentence to the result.
func (x *action) note(format string, args ...any) {
	x.reply.Result.Notes = append(x.reply.Result.Notes, fmt.Sprintf(format, args...))
}

func budget(a reins.Snapshot) int {
	if a.MaxBytes == 0 {
		return snapshotBytes
	}
	return a.MaxBytes
}

// show puts what was read into the reply: the part asked for, within the
// budget, or what has changed since this lease last looked.
func (b *browser) show(x *action, a reins.Snapshot, r *reading) {
	x.read = r.main
	key := viewKey{x.cmd.Lease, x.tab.id}
	x.hide(r.nodes)
	x.seen = r.nodes
	nodes, matches := outline.Select(r.nodes, outline.Options{Depth: a.Depth, Interactive: a.Interactive, Find: a.Find})
	result := &reins.SnapshotResult{Elements: elements(r.nodes), Loading: r.loading}
	x.reply.Result.Snapshot = result
	x.notes(r)
	if a.Find != "" && matches == 0 {
		x.note("nothing in the page matches %.100q", a.Find)
	}
	var diff []outline.Line
	if a.Changes && a.Ref == "" {
		if old := b.views.recall(key); old != nil && old.main == r.main {
			before, _ := outline.Select(old.nodes, outline.Options{Depth: a.Depth, Interactive: a.Interactive, Find: a.Find})
			diff = outline.Diff(before, nodes)
			result.Changes = outline.Size(diff) < outline.Size(outline.Lines(nodes))
		}
	}
	if a.Ref == "" && a.Find == "" && a.Depth == 0 { // who saw a part has not seen the rest change
		b.views.keep(key, &view{r.nodes, r.main, size(r.nodes)})
	}
	s := &stop{asked: a, tab: x.tab, main: r.main}
	if result.Changes {
		if len(diff) == 0 {
			x.note("nothing has changed since the last snapshot")
		}
		s.lines = diff
		b.cut(x, s, diff, nil, budget(a))
		return
	}
	b.cut(x, s, outline.Head(nodes, budget(a)), nodes, budget(a))
}

// cut fills the reply with as many lines as fit and remembers where it stopped.
// The lines are all there are, or those that may fit of all that nodes make.
func (b *browser) cut(x *action, s *stop, lines []outline.Line, nodes []outline.Node, limit int) {
	result := x.reply.Result.Snapshot
	text, at := outline.Cut(lines, s.at, limit)
	result.Text = text
	b.views.show(x.cmd.Lease, lines[min(s.at.Line, len(lines)):min(at.Line, len(lines))], x.seen)
	if at.Line >= max(len(lines), len(nodes)) {
		return
	}
	next := *s
	next.at = at
	if nodes != nil {
		result.Omitted, next.sum = elements(nodes[at.Line:]), outline.Sum(nodes)
	} else {
		result.Omitted = outline.Elements(lines[at.Line:])
	}
	for i := min(at.Line, len(lines)-1); i >= 0; i-- {
		if lines[i].Ref != "" {
			next.anchor, next.since = lines[i].Ref, at.Line-i
			break
		}
	}
	result.Cursor = b.views.stopAt(&next)
	if result.Omitted == 0 {
		x.note("more text did not fit; a snapshot with cursor %q goes on with it", result.Cursor)
		return
	}
	x.note("%d more elements did not fit; a snapshot with cursor %q goes on with them", result.Omitted, result.Cursor)
}

// goOn continues a cut snapshot exactly where it stopped. When the page has
// changed meanwhile it goes on behind the same element, and says so.
func (b *browser) goOn(ctx context.Context, x *action, a reins.Snapshot) error {
	s := b.views.stopped(a.Cursor)
	if s == nil {
		return reins.Errorf(reins.CodeInvalidInput, "cursor %.40q is not known any more; take a new snapshot", a.Cursor)
	}
	if !s.main.current() {
		return reins.Errorf(reins.CodeStaleRef, "the page that cursor %.40q goes on with is gone; take a new snapshot", a.Cursor)
	}
	limit := budget(a)
	if a.MaxBytes == 0 {
		limit = budget(s.asked)
	}
	b.mu.Lock()
	x.tab, x.fx.tab = s.tab, s.tab
	b.mu.Unlock()
	if s.lines != nil {
		x.reply.Result.Snapshot = &reins.SnapshotResult{Elements: outline.Elements(s.lines), Changes: true}
		b.cut(x, s, s.lines, nil, limit)
		return nil
	}
	r, err := b.read(ctx, s.tab, s.asked.Ref)
	if err != nil {
		return err
	}
	x.hide(r.nodes)
	x.seen = r.nodes
	nodes, _ := outline.Select(r.nodes, outline.Options{Depth: s.asked.Depth, Interactive: s.asked.Interactive, Find: s.asked.Find})
	lines := outline.Lines(nodes)
	x.reply.Result.Snapshot = &reins.SnapshotResult{Elements: elements(r.nodes), Loading: r.loading}
	x.notes(r)
	at := *s
	if outline.Sum(nodes) != s.sum {
		at.at = placeAgain(lines, s)
		x.note("the page has changed since the part before this one; this goes on where that one stopped, as far as it is still there")
	}
	b.cut(x, &at, lines, nodes, limit)
	return nil
}

// placeAgain finds the place of a stop in lines that have changed.
func placeAgain(lines []outline.Line, s *stop) outline.Position {
	line := min(s.at.Line, len(lines))
	if s.anchor != "" {
		if i := slices.IndexFunc(lines, func(l outline.Line) bool { return l.Ref == s.anchor }); i >= 0 {
			line = min(i+s.since, len(lines))
		}
	}
	return outline.Position{Line: line}
}

func elements(nodes []outline.Node) int {
	n := 0
	for i := range nodes {
		if nodes[i].Element() {
			n++
		}
	}
	return n
}

// size is what an outline holds, about.
func size(nodes []outline.Node) int {
	n := 0
	for i := range nodes {
		n += 64 + len(nodes[i].Name) + len(nodes[i].States) + len(nodes[i].Value)
	}
	return n
}

// keep remembers the last outline of a lease and tab, and forgets the view
// that was not used for longest when there are too many, or they are too large.
func (v *views) keep(key viewKey, now *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = map[viewKey]*view{}
	}
	v.last[key] = now
	v.recent = append(slices.DeleteFunc(v.recent, func(k viewKey) bool { return k == key }), key)
	all := 0
	for _, old := range v.last {
		all += old.size
	}
	for len(v.recent) > 1 && (len(v.recent) > keptViews || all > keptBytes) {
		all -= v.last[v.recent[0]].size
		delete(v.last, v.recent[0])
		v.recent = v.recent[1:]
	}
}

func (v *views) recall(key viewKey) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last[key]
}

func (v *views) stopAt(s *stop) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cursors == nil {
		v.cursors = map[string]*stop{}
	}
	v.number++
	name := "s" + strconv.Itoa(v.number)
	v.cursors[name] = s
	v.order = append(v.order, name)
	if len(v.order) > keptCursors {
		delete(v.cursors, v.order[0])
		v.order = v.order[1:]
	}
	return name
}

func (v *views) stopped(cursor string) *stop {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cursors[cursor]
}

// first reports whether this is the first reading of a main document.
func (v *views) first(d *document) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, seen := v.seen[d]; seen {
		return false
	}
	if v.seen == nil || len(v.seen) > 1024 {
		v.seen = map[*document]struct{}{}
	}
	v.seen[d] = struct{}{}
	return true
}
