package outline

import (
	"strconv"
	"strings"
)

// Options say which part of an outline is wanted. The zero value is all.
type Options struct {
	Depth       int    // levels; 0 is all
	Interactive bool   // only what can be acted on
	Find        string // the neighbourhood of matching text
}

// Select returns the part of nodes that o asks for, as an outline. The number
// of matches is for Find; 0 when it was not asked for.
func Select(nodes []Node, o Options) (out []Node, matches int) {
	out = nodes
	if o.Find != "" {
		out, matches = find(out, o.Find)
	}
	if o.Interactive {
		out = interactive(out)
	}
	if o.Depth > 0 {
		out = shallow(out, o.Depth)
	}
	return out, matches
}

// shallow drops what is deeper, and says on the parent how much that is.
func shallow(nodes []Node, depth int) []Node {
	out := make([]Node, 0, len(nodes))
	for i := 0; i < len(nodes); i++ {
		n := nodes[i]
		if n.Depth == depth-1 {
			inside, end := 0, i+1
			for ; end < len(nodes) && nodes[end].Depth >= depth; end++ {
				if nodes[end].Element() {
					inside++
				}
			}
			if inside > 0 {
				n.States += " [inside=" + strconv.Itoa(inside) + "]"
			}
			out = append(out, n)
			if i+1 < end && nodes[i+1].URL {
				out = append(out, nodes[i+1])
			}
			i = end - 1
			continue
		}
		if n.Depth < depth {
			out = append(out, n)
		}
	}
	return out
}

// interactive keeps what can be acted on, with the frames and dialogs it is in.
func interactive(nodes []Node) []Node {
	var out []Node
	var open []Node // kept ancestors
	for i, n := range nodes {
		for len(open) > 0 && open[len(open)-1].Depth >= n.Depth {
			open = open[:len(open)-1]
		}
		keep := n.Acts || n.Frame || n.Role == "dialog" || n.Role == "alertdialog"
		if n.URL {
			keep = i > 0 && len(open) > 0 && open[len(open)-1].Depth == n.Depth-1
		}
		if n.Text && len(open) > 0 && open[len(open)-1].Depth == n.Depth-1 {
			keep = open[len(open)-1].Role == "generic" || open[len(open)-1].Name == ""
		}
		if !keep {
			continue
		}
		at := n
		at.Depth = len(open)
		out = append(out, at)
		if n.Element() {
			open = append(open, n)
		}
	}
	return out
}

const (
	aroundMatch = 2  // siblings shown before and after a match
	insideMatch = 24 // entries shown inside of one
)

// unit holds roles whose contents belong together: what one can do with a line
// of a table stands in another cell than the words that one looks for.
var unit = map[string]bool{"row": true, "listitem": true, "article": true, "option": true, "treeitem": true, "group": true, "dialog": true, "alertdialog": true}

// find keeps entries that match, what is around and inside them, and the
// entries they are in. A match's row, list item or the like is kept whole when
// it is small; of a match that is large, and of what stands beside one, it says
// how much is left out.
func find(nodes []Node, text string) ([]Node, int) {
	want := strings.ToLower(strings.Join(strings.Fields(text), " "))
	keep := make([]bool, len(nodes))
	parents := Parents(nodes)
	matches := 0
	for i := range nodes {
		n := &nodes[i]
		if !contains(n.Name, want) && !contains(n.Value, want) {
			continue
		}
		matches++
		mark(nodes, parents, keep, i)
	}
	if matches == 0 {
		return nil, 0
	}
	out := make([]Node, 0, 64)
	for i, k := range keep {
		if k {
			n := nodes[i]
			if left := cutInside(nodes, keep, i); left > 0 {
				n.States += " [inside=" + strconv.Itoa(left) + "]"
			}
			out = append(out, n)
		}
	}
	return out, matches
}

// size is the number of entries inside of node i; it stops counting above most.
func size(nodes []Node, i, most int) int {
	n := 0
	for j := i + 1; j < len(nodes) && nodes[j].Depth > nodes[i].Depth && n <= most; j++ {
		n++
	}
	return n
}

// cutInside counts the elements behind the last entry that is kept inside of a
// node of which more than insideMatch entries could have been: what its reader
// would else take for its end.
func cutInside(nodes []Node, keep []bool, i int) int {
	if i+1 < len(nodes) && nodes[i+1].Depth > nodes[i].Depth && !nodes[i+1].URL && !keep[i+1] {
		return hidden(nodes, keep, i)
	}
	if i+insideMatch >= len(nodes) || !keep[i+1] || size(nodes, i, insideMatch) <= insideMatch {
		return 0
	}
	for j := i + 1; j <= i+insideMatch; j++ {
		if !keep[j] {
			return 0 // an ancestor of matches, not a match
		}
	}
	left := 0
	for j := i + insideMatch + 1; j < len(nodes) && nodes[j].Depth > nodes[i].Depth; j++ {
		if !keep[j] && nodes[j].Element() {
			left++
		}
	}
	return left
}

// hidden counts the entries inside of a node that stands beside a match; 0 when
// any of them is kept.
func hidden(nodes []Node, keep []bool, i int) int {
	n := 0
	for j := i + 1; j < len(nodes) && nodes[j].Depth > nodes[i].Depth; j++ {
		if keep[j] {
			return 0
		}
		if !nodes[j].URL {
			n++
		}
	}
	return n
}

func contains(s, want string) bool {
	return len(s) >= len(want)/4 && strings.Contains(strings.ToLower(s), want)
}

func mark(nodes []Node, parents []int, keep []bool, i int) {
	for p, whole := i, false; p >= 0; p = parents[p] {
		keep[p] = true
		if whole || !unit[nodes[p].Role] {
			continue
		}
		whole = true // the innermost one
		if n := size(nodes, p, insideMatch); n <= insideMatch {
			for j := p + 1; j <= p+n; j++ {
				keep[j] = true
			}
		}
	}
	for j := i + 1; j < len(nodes) && nodes[j].Depth > nodes[i].Depth && j <= i+insideMatch; j++ {
		keep[j] = true
	}
	depth := nodes[i].Depth
	seen := 0
	for j := i - 1; j >= 0 && nodes[j].Depth >= depth && seen < aroundMatch; j-- {
		if nodes[j].Depth == depth {
			keep[j], seen = true, seen+1
			if j+1 < i && nodes[j+1].URL {
				keep[j+1] = true
			}
		}
	}
	seen = 0
	for j := i + 1; j < len(nodes) && nodes[j].Depth >= depth && seen < aroundMatch; j++ {
		if nodes[j].Depth == depth {
			keep[j], seen = true, seen+1
			if j+1 < len(nodes) && nodes[j+1].URL {
				keep[j+1] = true
			}
		}
	}
}

// Parents returns the index of each node's parent, -1 for none.
func Parents(nodes []Node) []int {
	out := make([]int, len(nodes))
	var open []int
	for i := range nodes {
		for len(open) > 0 && nodes[open[len(open)-1]].Depth >= nodes[i].Depth {
			open = open[:len(open)-1]
		}
		out[i] = -1
		if len(open) > 0 {
			out[i] = open[len(open)-1]
		}
		open = append(open, i)
	}
	return out
}
