// Package outline is the text form of a page (SNAP-1): pure data, no browser.
//
// A page's walker hands over one string per document ([Parse]); [Splice] puts
// documents under the elements of their frames; [Select] keeps what a caller
// asked for; [Lines] prints it, one line for an entry:
//
//   - navigation "Main" [ref=f1e2]:
//   - link "Docs" [ref=f1e3]:
//   - /url: /docs
//   - textbox "Email" [required] [ref=f1e4]: ada@example.com
//   - text: Three results
//
// [Cut] takes lines up to a budget of bytes and says where it stopped (SNAP-5);
// what follows from there, put behind it, is the same text as uncut. [Diff]
// says what became of an earlier outline.
//
// Everything in an outline comes from a page and is data, however it reads: a
// name is quoted, a line end cannot occur, so no page can forge an entry.
package outline

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Node is one entry. An outline is a list of them in document order; the
// children of a node are the deeper ones that follow it.
type Node struct {
	Depth  int
	Role   string
	Name   string
	States string // " [checked] [level=2]", as printed
	Value  string // a control's value, or text; line ends are U+2028
	Ref    string // "f1e2"; empty when it has none
	Number int    // of the element in its document; 0 when it has none
	Acts   bool   // it can be acted on
	Text   bool   // a piece of text, no element
	URL    bool   // the address of the link above
	Frame  bool   // a frame's element; its document belongs below
}

// Element reports whether the node stands for an element.
func (n Node) Element() bool { return !n.Text && !n.URL }

// Page is one document's part of an outline.
type Page struct {
	Nodes []Node
	Hosts int  // elements that may have a closed shadow root
	Ready bool // the document has finished loading
	Busy  bool // something in it says that it is being updated
	Full  bool // it has more than a walk lists
	Late  bool // the walk took too long and ended where it was
}

// Gone is what a walker returns when the element to begin at is gone.
const Gone = "gone"

var errForm = errors.New("the walker's answer does not have the expected form")

// Parse reads what the walker of document number doc returned: fields with
// U+007F between them, four of the document and seven of each entry.
func Parse(s string, doc int) (Page, error) {
	if strings.IndexByte(s, '\n') >= 0 { // a line of the outline is an entry
		return Page{}, errForm
	}
	r := fields{rest: s, more: true}
	head := [4]string{r.next(), r.next(), r.next(), r.next()}
	hosts, err := strconv.Atoi(head[0])
	if err != nil || r.short {
		return Page{}, errForm
	}
	p := Page{Hosts: hosts, Ready: head[1] == "complete", Busy: head[2] == "1", Full: head[3] == "1", Late: head[3] == "2"}
	if !r.more {
		return p, nil
	}
	p.Nodes = make([]Node, 0, (strings.Count(r.rest, fieldEnd)+1)/entryFields)
	prefix := "f" + strconv.Itoa(doc) + "e"
	for above := -1; r.more; above = p.Nodes[len(p.Nodes)-1].Depth {
		n, ok := r.node(prefix)
		if !ok || n.Depth > above+1 {
			return Page{}, errForm
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p, nil
}

const (
	fieldEnd    = "\x7f"
	entryFields = 7
)

// fields takes one field after the other.
type fields struct {
	rest  string
	more  bool
	short bool // one was asked for behind the last
}

func (r *fields) next() (field string) {
	if !r.more {
		r.short = true
	}
	field, r.rest, r.more = strings.Cut(r.rest, fieldEnd)
	return field
}

func (r *fields) node(prefix string) (Node, bool) {
	depth, err := strconv.Atoi(r.next())
	flags, role, number := r.next(), r.next(), r.next()
	n := Node{Depth: depth, Role: role, Name: r.next(), States: r.next(), Value: r.next()}
	var errN error
	n.Number, errN = strconv.Atoi(number)
	if err != nil || errN != nil || r.short || depth < 0 || n.Number < 0 {
		return Node{}, false
	}
	n.Acts = strings.IndexByte(flags, 'i') >= 0
	n.Text = strings.IndexByte(flags, 't') >= 0
	n.URL = strings.IndexByte(flags, 'u') >= 0
	n.Frame = strings.IndexByte(flags, 'f') >= 0
	if n.Number > 0 {
		n.Ref = prefix + number
	}
	return n, true
}

// Splice puts the outline of each embedded document under its frame's element:
// inside is asked for the entries of the frame whose element is n.
func Splice(nodes []Node, inside func(n Node) []Node) []Node {
	var out []Node
	for i, n := range nodes {
		if !n.Frame {
			if out != nil {
				out = append(out, n)
			}
			continue
		}
		if out == nil {
			out = append(make([]Node, 0, len(nodes)+64), nodes[:i]...)
		}
		out = append(out, n)
		for _, in := range inside(n) {
			in.Depth += n.Depth + 1
			out = append(out, in)
		}
	}
	if out == nil {
		return nodes
	}
	return out
}

// Line is one printed entry.
type Line struct {
	Text    string // without its line end
	Element bool
	Ref     string
	value   int // where in Text a value begins that may be cut; 0 when none
}

// Lines prints nodes.
func Lines(nodes []Node) []Line {
	size := 0
	for i := range nodes {
		n := &nodes[i]
		size += 2*n.Depth + 24 + len(n.Role) + len(n.Name) + len(n.States) + len(n.Value) + len(n.Ref)
	}
	var b strings.Builder
	b.Grow(size)
	type mark struct{ end, value int }
	marks := make([]mark, len(nodes))
	for i := range nodes {
		start := b.Len()
		value := writeNode(&b, &nodes[i], i+1 < len(nodes) && nodes[i+1].Depth > nodes[i].Depth)
		if value > 0 {
			value -= start
		}
		marks[i] = mark{b.Len(), value}
	}
	all, at := b.String(), 0
	out := make([]Line, len(nodes))
	for i, m := range marks {
		out[i] = Line{all[at:m.end], nodes[i].Element(), nodes[i].Ref, m.value}
		at = m.end
	}
	return out
}

// Head prints the first of nodes: all that limit bytes can hold with their line
// ends, and what is needed to see that no more fit. The lines are those that
// Lines makes of them.
func Head(nodes []Node, limit int) []Line {
	size, n := 0, 0
	for ; n < len(nodes) && size <= limit; n++ {
		at := &nodes[n]
		size += 2*at.Depth + 3 + len(at.Role) + len(at.Name) + len(at.States) + len(at.Value) // at least
	}
	n = min(n+1, len(nodes))
	if n == len(nodes) {
		return Lines(nodes)
	}
	return Lines(nodes[:n+1])[:n] // whether the last one holds others, the next one tells
}

const blanks = "                                                                "

func indent(b *strings.Builder, depth int) {
	for n := 2 * depth; n > 0; n -= len(blanks) {
		b.WriteString(blanks[:min(n, len(blanks))])
	}
}

// writeNode prints one entry and returns where its value begins, 0 for none.
func writeNode(b *strings.Builder, n *Node, parent bool) (value int) {
	indent(b, n.Depth)
	b.WriteString("- ")
	b.WriteString(n.Role)
	if n.Name != "" {
		b.WriteByte(' ')
		writeQuoted(b, n.Name)
	}
	b.WriteString(n.States)
	if n.Ref != "" {
		b.WriteString(" [ref=")
		b.WriteString(n.Ref)
		b.WriteByte(']')
	}
	switch {
	case n.Value != "":
		b.WriteString(": ")
		value = b.Len()
		if strings.ContainsRune(n.Value, lineEnd) || unclear(n.Value) {
			writeQuoted(b, n.Value)
		} else {
			b.WriteString(n.Value)
		}
	case parent:
		b.WriteByte(':')
	}
	return value
}

// unclear reports whether a value cannot be told from another unless it is in
// quotes: it begins with one, or has a space at an end.
func unclear(s string) bool {
	return s[0] == '"' || s[0] == ' ' || s[len(s)-1] == ' '
}

const lineEnd = '\u2028'

func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('"')
	if !strings.ContainsAny(s, "\"\\\u2028") {
		b.WriteString(s)
	} else {
		for _, r := range s {
			switch r {
			case '"', '\\':
				b.WriteByte('\\')
				b.WriteRune(r)
			case lineEnd:
				b.WriteString(`\n`)
			default:
				b.WriteRune(r)
			}
		}
	}
	b.WriteByte('"')
}

// Elements counts the lines that stand for elements.
func Elements(lines []Line) int {
	n := 0
	for i := range lines {
		if lines[i].Element {
			n++
		}
	}
	return n
}

// Size is the number of bytes of lines with their line ends.
func Size(lines []Line) int {
	n := 0
	for i := range lines {
		n += len(lines[i].Text) + 1
	}
	return n
}

// Position is a place in lines: Offset bytes into line Line.
type Position struct{ Line, Offset int }

// Cut joins lines from a position on, at most limit bytes with their line ends,
// and returns the position that it stopped at; Line is len(lines) at the end.
// It stops between lines. Only a line that is longer than limit by itself is
// cut inside its value, between characters, and goes on as a line of text.
func Cut(lines []Line, from Position, limit int) (string, Position) {
	var b strings.Builder
	for at := from; ; at = (Position{at.Line + 1, 0}) {
		if at.Line >= len(lines) {
			return b.String(), Position{len(lines), 0}
		}
		text := rest(lines[at.Line], at.Offset)
		if b.Len()+len(text)+1 <= limit {
			b.WriteString(text)
			b.WriteByte('\n')
			continue
		}
		if b.Len() > 0 || len(text)+1 <= limit {
			return b.String(), at
		}
		begin := lines[at.Line].value
		if at.Offset > 0 {
			begin = len(text) - (len(lines[at.Line].Text) - at.Offset)
		}
		end := border(text, min(limit-1, len(text)))
		if begin == 0 || end <= begin {
			// Nothing in it may be cut: names are bounded far below any budget.
			return b.String(), Position{at.Line + 1, 0}
		}
		b.WriteString(text[:end])
		b.WriteByte('\n')
		return b.String(), Position{at.Line, len(lines[at.Line].Text) - (len(text) - end)}
	}
}

// rest is a line from an offset on, as a line of its own.
func rest(l Line, offset int) string {
	if offset <= 0 || offset >= len(l.Text) {
		return l.Text
	}
	dash := strings.IndexByte(l.Text, '-')
	return l.Text[:max(dash, 0)] + "- text: " + l.Text[offset:]
}

// border is the last place at or before end where s may be cut: between two
// characters as people count them, as far as that is cheap to tell.
func border(s string, end int) int {
	if end >= len(s) {
		return len(s)
	}
	for back := 0; end > 0 && back < 64; back++ {
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		next, _ := utf8.DecodeRuneInString(s[end:])
		before, size := utf8.DecodeLastRuneInString(s[:end])
		if !joins(before, next) {
			return end
		}
		end -= size
	}
	return end
}

// joins tells runes that make one character together: combining marks,
// variation selectors, skin tones, joiners, flags and tags.
func joins(before, next rune) bool {
	switch {
	case next == '\u200d' || before == '\u200d':
		return true
	case next >= 0xfe00 && next <= 0xfe0f, next >= 0x1f3fb && next <= 0x1f3ff, next >= 0xe0020 && next <= 0xe007f:
		return true
	case next >= 0x300 && next <= 0x36f, next >= 0x20d0 && next <= 0x20ff, next >= 0x1ab0 && next <= 0x1aff:
		return true
	case before >= 0x1f1e6 && before <= 0x1f1ff && next >= 0x1f1e6 && next <= 0x1f1ff:
		return true
	}
	return false
}

// Title returns the role and name that a line shows, as they were before they
// were quoted.
func (l Line) Title() (role, name string) {
	s := strings.TrimLeft(l.Text, " ~+")
	for range 2 { // a mark of a difference, the entry's own
		s = strings.TrimLeft(strings.TrimPrefix(s, "- "), " ")
	}
	end := strings.IndexAny(s, " :")
	if end < 0 {
		return s, ""
	}
	role, s = s[:end], s[end:]
	if !strings.HasPrefix(s, ` "`) {
		return role, ""
	}
	s = s[2:]
	var b strings.Builder
	for i := 0; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == 'n' {
				b.WriteRune(lineEnd)
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return role, b.String()
}
