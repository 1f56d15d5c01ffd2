package reading

import (
	"iter"
	"slices"
	"strings"
)

// All yields the nodes under n in the order of the text, without n itself.
func (n *Node) All() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { n.walk(yield) }
}

func (n *Node) walk(yield func(*Node) bool) bool {
	for _, k := range n.Kids {
		if !yield(k) || !k.walk(yield) {
			return false
		}
	}
	return true
}

// Match says which nodes are meant. Empty fields do not restrict.
type Match struct {
	Role string   // exactly; several separated by "|"
	Name string   // exactly, with white space evened out
	Has  []string // all of these are in the node's whole text
	Not  string   // a state that it must not have, such as "disabled"
	Is   string   // a state that it must have
	Ref  bool     // it must have a ref
}

// Fits reports whether n is one of those meant.
func (m Match) Fits(n *Node) bool {
	if m.Role != "" && !slices.Contains(strings.Split(m.Role, "|"), n.Role) {
		return false
	}
	if m.Name != "" && even(n.Name) != even(m.Name) {
		return false
	}
	if m.Ref && n.Ref == "" || m.Not != "" && n.Has(m.Not) || m.Is != "" && !n.Has(m.Is) {
		return false
	}
	if len(m.Has) == 0 {
		return true
	}
	text := n.Text()
	for _, h := range m.Has {
		if !strings.Contains(text, h) {
			return false
		}
	}
	return true
}

// Find returns the first node under n that fits, or nil.
func (n *Node) Find(m Match) *Node {
	for k := range n.All() {
		if m.Fits(k) {
			return k
		}
	}
	return nil
}

// FindAll returns every node under n that fits.
func (n *Node) FindAll(m Match) []*Node {
	var out []*Node
	for k := range n.All() {
		if m.Fits(k) {
			out = append(out, k)
		}
	}
	return out
}

// Has reports whether the node is in a state, such as "checked": the state is
// shown and not as false.
func (n *Node) Has(state string) bool {
	v, ok := n.States[state]
	return ok && v != "false"
}

// Text is everything the node says, in order, in single spaces: its name, its
// value, and what is nested under it. A name that only repeats what is nested
// counts once.
func (n *Node) Text() string {
	parts := make([]string, 0, len(n.Kids)+1)
	if n.Value != "" {
		parts = append(parts, n.Value)
	}
	for _, k := range n.Kids {
		if t := k.Text(); t != "" {
			parts = append(parts, t)
		}
	}
	inner, name := even(strings.Join(parts, " ")), even(n.Name)
	switch {
	case name == "" || strings.Contains(squeeze(inner), squeeze(name)):
		return inner
	case strings.Contains(squeeze(name), squeeze(inner)):
		return name
	}
	return name + " " + inner
}

// even makes every run of white space one space.
func even(s string) string { return strings.Join(strings.Fields(s), " ") }

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }
