package outline

import (
	"hash/maphash"
	"strconv"
	"strings"
)

// Marks before the lines of a difference.
const (
	markSame    = "  " // unchanged: says where what follows is
	markNew     = "+ "
	markGone    = "- "
	markChanged = "~ " // the entry as it reads now
)

// Diff says what became of old: entries that are new, gone or read differently,
// each under the unchanged entries that it is in. Entries with a ref are the
// same when their ref is; others when they and what is in them read the same,
// or when they stand in the same place with the same role.
func Diff(old, now []Node) []Line {
	d := &differ{old: tree(old), now: tree(now)}
	d.children(-1, -1)
	return d.out
}

// forest is an outline with what a comparison needs of each node.
type forest struct {
	nodes []Node
	end   []int    // index behind the last descendant
	sum   []uint64 // of the node and everything in it
	own   []uint64 // of the node alone
}

var seed = maphash.MakeSeed()

func tree(nodes []Node) forest {
	f := forest{nodes, make([]int, len(nodes)), make([]uint64, len(nodes)), make([]uint64, len(nodes))}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		var h maphash.Hash
		h.SetSeed(seed)
		for _, s := range [...]string{n.Role, n.Name, n.States, n.Value, n.Ref} {
			h.WriteString(s)
			h.WriteByte(0)
		}
		f.own[i] = h.Sum64()
		sum, j := f.own[i], i+1
		for j < len(nodes) && nodes[j].Depth > n.Depth {
			sum = sum*1099511628211 + f.sum[j]
			j = f.end[j]
		}
		f.sum[i], f.end[i] = sum, j
	}
	return f
}

// Sum is a number that two outlines have in common, as long as this process
// lives, only when they are equal.
func Sum(nodes []Node) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range nodes {
		n := &nodes[i]
		h.WriteByte(byte(n.Depth))
		h.WriteByte(byte(n.Depth >> 8))
		for _, s := range [...]string{n.Role, n.Name, n.States, n.Value, n.Ref} {
			h.WriteString(s)
			h.WriteByte(0)
		}
	}
	return h.Sum64()
}

// kids lists the children of node i, the roots for -1.
func (f forest) kids(i int) []int {
	var out []int
	j, end := i+1, len(f.nodes)
	if i >= 0 {
		end = f.end[i]
	}
	for ; j < end; j = f.end[j] {
		out = append(out, j)
	}
	return out
}

// key is what makes a node the same one in both outlines.
func (f forest) key(i int) string {
	if ref := f.nodes[i].Ref; ref != "" {
		return ref
	}
	return strconv.FormatUint(f.sum[i], 36) + "#"
}

type differ struct {
	old, now forest
	path     []int // ancestors in now that are not printed yet
	out      []Line
}

// children compares the children of two nodes that are the same.
func (d *differ) children(o, n int) {
	olds, news := d.old.kids(o), d.now.kids(n)
	i, j := 0, 0
	for _, pair := range align(d.old, d.now, olds, news) {
		d.gap(olds[i:pair[0]], news[j:pair[1]])
		d.same(olds[pair[0]], news[pair[1]])
		i, j = pair[0]+1, pair[1]+1
	}
	d.gap(olds[i:], news[j:])
}

// gap compares runs of nodes that have no equal on the other side.
func (d *differ) gap(olds, news []int) {
	for len(olds) > 0 && len(news) > 0 {
		o, n := &d.old.nodes[olds[0]], &d.now.nodes[news[0]]
		switch {
		case o.Ref == "" && n.Ref == "" && o.Role == n.Role:
			d.same(olds[0], news[0])
			olds, news = olds[1:], news[1:]
		case o.Ref != "" || len(olds) > len(news):
			d.gone(olds[0])
			olds = olds[1:]
		default:
			d.added(news[0])
			news = news[1:]
		}
	}
	for _, o := range olds {
		d.gone(o)
	}
	for _, n := range news {
		d.added(n)
	}
}

func (d *differ) same(o, n int) {
	if d.old.sum[o] == d.now.sum[n] {
		return
	}
	if d.old.own[o] != d.now.own[n] {
		d.print(markChanged, &d.now.nodes[n], d.now.end[n] > n+1)
		d.children(o, n)
		return
	}
	d.path = append(d.path, n)
	d.children(o, n)
	if len(d.path) > 0 {
		d.path = d.path[:len(d.path)-1]
	}
}

func (d *differ) added(n int) {
	for i := n; i < d.now.end[n]; i++ {
		d.print(markNew, &d.now.nodes[i], d.now.end[i] > i+1)
	}
}

// gone prints only the top of what went, and how much was in it.
func (d *differ) gone(o int) {
	n := d.old.nodes[o]
	inside := 0
	for i := o + 1; i < d.old.end[o]; i++ {
		if d.old.nodes[i].Element() {
			inside++
		}
	}
	if inside > 0 {
		n.States += " [inside=" + strconv.Itoa(inside) + "]"
	}
	d.print(markGone, &n, false)
}

func (d *differ) print(mark string, n *Node, parent bool) {
	for _, p := range d.path {
		d.line(markSame, &d.now.nodes[p], true)
	}
	d.path = d.path[:0]
	d.line(mark, n, parent)
}

func (d *differ) line(mark string, n *Node, parent bool) {
	var b strings.Builder
	b.WriteString(mark)
	value := writeNode(&b, n, parent)
	d.out = append(d.out, Line{b.String(), n.Element(), n.Ref, value})
}

// align pairs nodes of equal key, in order: the longest common subsequence,
// and for very long lists, where that is too dear, a good one.
func align(old, now forest, olds, news []int) [][2]int {
	a, b := keys(old, olds), keys(now, news)
	var out [][2]int
	lo := 0
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		out = append(out, [2]int{lo, lo})
		lo++
	}
	ha, hb := len(a), len(b)
	for ha > lo && hb > lo && a[ha-1] == b[hb-1] {
		ha--
		hb--
	}
	out = append(out, middle(a[lo:ha], b[lo:hb], lo)...)
	for i := range len(a) - ha {
		out = append(out, [2]int{ha + i, hb + i})
	}
	return out
}

func keys(f forest, at []int) []string {
	out := make([]string, len(at))
	for i, n := range at {
		out[i] = f.key(n)
	}
	return out
}

const dear = 1 << 20 // cells of the table that middle may fill

func middle(a, b []string, base int) [][2]int {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if len(a)*len(b) > dear {
		return greedy(a, b, base)
	}
	width := len(b) + 1
	best := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				best[i*width+j] = best[(i+1)*width+j+1] + 1
			} else {
				best[i*width+j] = max(best[(i+1)*width+j], best[i*width+j+1])
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			out = append(out, [2]int{base + i, base + j})
			i, j = i+1, j+1
		case best[(i+1)*width+j] >= best[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return out
}

// greedy takes each key of b that lies behind the last one taken in a.
func greedy(a, b []string, base int) [][2]int {
	at := make(map[string][]int, len(a))
	for i, k := range a {
		at[k] = append(at[k], i)
	}
	var out [][2]int
	last := -1
	for j, k := range b {
		places := at[k]
		for len(places) > 0 && places[0] <= last {
			places = places[1:]
		}
		at[k] = places
		if len(places) > 0 && places[0] < last+4096 {
			last = places[0]
			out = append(out, [2]int{base + last, base + j})
		}
	}
	return out
}
