package driver

import (
	"strings"
	"unicode"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/outline"
)

const (
	shownRefs  = 20_000 // of one lease whose names are remembered
	comparedAt = 200    // bytes of names; both sides cut long ones
)

// title is an element as a lease was shown it.
type title struct{ role, name string }

// show remembers what the lines of a snapshot call their elements, so that a ref
// is not used for an element that has become another thing meanwhile: pages
// reuse the elements of a list for other entries (SNAP-4).
func (v *views) show(lease string, lines []outline.Line) {
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
			of[reins.Ref(lines[i].Ref)] = title{role, name}
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
	if !seen || before.name == "" || now.name == "" || before.role != now.role || sameName(before.name, now.name) {
		return "", false
	}
	if sameName(withoutDigits(before.name), withoutDigits(now.name)) {
		another := false
		for other, t := range v.shown[lease] {
			another = another || other != ref && t.role == now.role && sameName(t.name, now.name)
		}
		return before.name, another
	}
	return before.name, true
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
// lease saw it.
func (x *action) same(s *spot) error {
	ref := s.ref()
	if _, target := x.cmd.Action.Target(); target != ref || s.Option {
		return nil
	}
	name := s.Name
	if len(x.cmd.Redact) > 0 {
		name = x.cmd.Redact.Bounded(name)
	}
	was, moved := x.tab.b.views.moved(x.cmd.Lease, ref, title{s.Role, name})
	if !moved {
		return nil
	}
	return reins.Errorf(reins.CodeStaleRef, "%s %.100q (ref %s) was called %.100q in your snapshot; take a new one to see what is where now", s.Role, name, ref, was)
}
