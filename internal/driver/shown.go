package driver

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/outline"
)

const (
	shownRefs  = 20_000 // of one lease whose names are remembered
	comparedAt = 200    // bytes of names; both sides cut long ones
)

// title is an element as a lease was shown it. What has no name is told by the
// first text in it.
type title struct{ role, name, inside string }

// boxes are roles of things that people know by what stands in them.
var boxes = map[string]bool{"generic": true, "listitem": true, "row": true, "cell": true, "gridcell": true, "paragraph": true, "article": true, "group": true, "treeitem": true, "img": true}

// inside is the first text in a box without a name; "" for anything else, and
// for what can be typed into.
func inside(nodes []outline.Node, i int) string {
	box := &nodes[i]
	if box.Name != "" || !boxes[box.Role] || strings.Contains(box.States, " [editable]") {
		return ""
	}
	for j := i; j < len(nodes) && j < i+16 && (j == i || nodes[j].Depth > box.Depth); j++ {
		n := &nodes[j]
		if n.URL || j > i && n.Ref != "" && n.Name == "" && n.Value != "" && !n.Text && !boxes[n.Role] {
			continue // an address, or what a control without a name holds
		}
		if text := n.Name + n.Value; text != "" {
			return text[:min(len(text), comparedAt)]
		}
	}
	return ""
}

// insides are those of the boxes that lines show.
func insides(lines []outline.Line, nodes []outline.Node) map[string]string {
	wanted := map[string]bool{}
	for i := range lines {
		if lines[i].Ref != "" {
			if role, name := lines[i].Title(); name == "" && boxes[role] {
				wanted[lines[i].Ref] = true
			}
		}
	}
	out := map[string]string{}
	for i := 0; i < len(nodes) && len(wanted) > 0; i++ {
		if ref := nodes[i].Ref; ref != "" && wanted[ref] {
			out[ref] = inside(nodes, i)
			delete(wanted, ref)
		}
	}
	return out
}

// show remembers what the lines of a snapshot call their elements, so that a ref
// is not used for an element that has become another thing meanwhile: pages
// reuse the elements of a list for other entries (SNAP-4). The lines are some of
// those that nodes make.
func (v *views) show(lease string, lines []outline.Line, nodes []outline.Node) {
	texts := insides(lines, nodes)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown == nil || v.shown[lease] == nil && len(v.shown) >= keptViews {
		v.shown = map[string]map[reins.Ref]title{}
	}
	of := v.shown[lease]
	if of == nil || len(of) > shownRefs {
		of = map[reins.Ref]title{}
		v.shown[lease] = of
	}
	for i := range lines {
		if lines[i].Ref != "" {
			role, name := lines[i].Title()
			of[reins.Ref(lines[i].Ref)] = title{role, name, texts[lines[i].Ref]}
		}
	}
}

// forget lets a ref be whatever its element has become: the lease has acted on
// it, which may well change what it is called.
func (v *views) forget(lease string, ref reins.Ref) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.shown[lease], ref)
}

// moved reports what a ref's element was called when the lease saw it, if it is
// another thing now. A name that only counts on is none, unless that name was
// another element's.
func (v *views) moved(lease string, ref reins.Ref, now title) (was string, moved bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, seen := v.shown[lease][ref]
	was, is := before.called(), now.called()
	if !seen || was == "" || is == "" || before.role != now.role || sameName(was, is) {
		return "", false
	}
	if sameName(withoutDigits(was), withoutDigits(is)) {
		another := false
		document, _, _ := strings.Cut(string(ref), "e")
		for other, t := range v.shown[lease] {
			another = another || other != ref && t.role == now.role && sameName(t.called(), is) && strings.HasPrefix(string(other), document+"e")
		}
		return was, another
	}
	return was, true
}

func (t title) called() string {
	if t.name != "" {
		return t.name
	}
	return t.inside
}

// box reports whether a lease knows a ref only by the text inside of it.
func (v *views) box(lease string, ref reins.Ref) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.shown[lease][ref]
	return t.name == "" && t.inside != ""
}

func sameName(a, b string) bool {
	if len(a) >= comparedAt && len(b) >= comparedAt {
		return a[:comparedAt] == b[:comparedAt]
	}
	return a == b
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, s)
}

// same refuses to act on an element that has become another thing since the
// lease saw it. A box without a name is read again for that.
func (x *action) same(ctx context.Context, s *spot) error {
	ref := s.ref()
	if _, target := x.cmd.Action.Target(); target != ref || s.Option {
		return nil
	}
	now := title{s.Role, s.Name, ""}
	if len(x.cmd.Redact) > 0 {
		now.name = x.cmd.Redact.Bounded(now.name)
	}
	b := x.tab.b
	if now.name == "" && b.views.box(x.cmd.Lease, ref) {
		page, err := b.walk(ctx, s.doc, s.number)
		if errors.Is(err, errGoneElement) {
			return errStale(ref)
		}
		if err != nil {
			return err
		}
		if len(page.Nodes) > 0 && page.Nodes[0].Number == s.number {
			x.hide(page.Nodes)
			now.role, now.inside = page.Nodes[0].Role, inside(page.Nodes, 0)
		}
	}
	was, moved := b.views.moved(x.cmd.Lease, ref, now)
	if !moved {
		return nil
	}
	return reins.Errorf(reins.CodeStaleRef, "%s %.100q (ref %s) was called %.100q in your snapshot; take a new one to see what is where now", s.Role, now.called(), ref, was)
}
