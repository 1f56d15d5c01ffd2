package reading

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Node is one line of an outline and what is nested under it.
type Node struct {
	Role   string            // "button"; "text" for words without an element
	Name   string            // accessible name, without quotes
	Value  string            // what follows the colon: a value or plain words
	States map[string]string // "disabled": "", "level": "2"; never "ref"
	Ref    string            // empty when the element cannot be referred to
	Props  map[string]string // "url"
	Kids   []*Node
	Parent *Node
}

// Page is one answer of a tool.
type Page struct {
	Root   *Node    // holds the nodes of the outline; has no role
	Around string   // the answer without its outline
	Notes  []string // lines in the outline that are not nodes
	Gone   []*Node  // of a difference: what is not there any more; not under Root
	Bytes  int      // of the whole answer
}

// difference is how an answer begins the lines that only say what changed. Each
// then has a mark of two characters before it: new, gone, changed, or none for
// what only says where.
const difference = "Changes of the page since your last snapshot"

// Parse reads an answer. An answer without an outline has an empty Root. Of a
// difference, Root holds what is new, what changed, and what that is in.
func Parse(answer string) *Page {
	outline, around := unfence(answer)
	p := &Page{Root: &Node{}, Around: around, Bytes: len(answer)}
	marked := strings.Contains(around, difference)
	path := []level{{-1, p.Root}}
	for line := range strings.Lines(outline) {
		line = strings.TrimRight(line, "\r\n")
		gone := false
		if marked && len(line) >= 2 {
			gone = line[:2] == "- "
			line = line[2:]
		}
		rest := strings.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		body, ok := strings.CutPrefix(rest, "- ")
		if !ok {
			if rest != "" {
				p.Notes = append(p.Notes, rest)
			}
			continue
		}
		for len(path) > 1 && path[len(path)-1].depth >= depth {
			path = path[:len(path)-1]
		}
		up := path[len(path)-1].node
		if key, ok := strings.CutPrefix(body, "/"); ok {
			up.property(key)
			continue
		}
		n := parseNode(body)
		n.Parent = up
		if gone {
			p.Gone = append(p.Gone, n)
			continue
		}
		up.Kids = append(up.Kids, n)
		path = append(path, level{depth, n})
	}
	return p
}

type level struct {
	depth int
	node  *Node
}

func (n *Node) property(s string) {
	key, value, _ := strings.Cut(s, ":")
	if n.Props == nil {
		n.Props = map[string]string{}
	}
	n.Props[strings.TrimSpace(key)] = scalar(value)
}

// unfence returns the longest block between two lines of backquotes, and the
// rest. A page may contain lines of backquotes too, so a block ends only at a
// fence as long as the one that opened it.
func unfence(answer string) (outline, around string) {
	var out, rest, block strings.Builder
	fence := ""
	for line := range strings.Lines(answer) {
		mark := fenceOf(line)
		switch {
		case fence == "" && mark != "":
			fence = mark
			block.Reset()
		case fence != "" && mark == fence && strings.TrimSpace(line) == mark:
			fence = ""
			if block.Len() > out.Len() {
				out.Reset()
				out.WriteString(block.String())
			}
		case fence != "":
			block.WriteString(line)
		default:
			rest.WriteString(line)
		}
	}
	if fence != "" && block.Len() > out.Len() { // never closed
		return block.String(), rest.String()
	}
	return out.String(), rest.String()
}

func fenceOf(line string) string {
	n := 0
	for n < len(line) && line[n] == '`' {
		n++
	}
	if n < 3 {
		return ""
	}
	return line[:n]
}

// parseNode reads a line without its dash.
func parseNode(s string) *Node {
	n := &Node{States: map[string]string{}}
	end := strings.IndexAny(s, " :")
	if end < 0 {
		n.Role = s
		return n
	}
	n.Role, s = s[:end], s[end:]
	for {
		s = strings.TrimLeft(s, " ")
		switch {
		case s == "":
			return n
		case s[0] == ':':
			n.Value = scalar(s[1:])
			return n
		case s[0] == '"' && n.Name == "":
			n.Name, s = quoted(s)
		case s[0] == '[':
			s = n.state(s)
		default: // words where none belong: keep them, they are what was said
			n.Value = s
			return n
		}
	}
}

// state reads "[key=value]" at the beginning of s and returns what follows. A
// value in quotes may hold brackets.
func (n *Node) state(s string) string {
	end := strings.IndexAny(s, "=]")
	if end < 0 {
		n.States[s[1:]] = ""
		return ""
	}
	key, rest := s[1:end], s[end+1:]
	if s[end] == ']' {
		n.States[key] = ""
		return rest
	}
	var value string
	if strings.HasPrefix(rest, `"`) {
		value, rest = quoted(rest)
		_, rest, _ = strings.Cut(rest, "]")
	} else {
		value, rest, _ = strings.Cut(rest, "]")
	}
	if key == "ref" {
		n.Ref = value
	} else {
		n.States[key] = value
	}
	return rest
}

// quoted reads a text in double quotes at the beginning of s, with the escapes
// of JSON, and returns what follows it.
func quoted(s string) (text, rest string) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return unescape(s[:i+1]), s[i+1:]
		}
	}
	return strings.TrimPrefix(s, `"`), ""
}

func unescape(s string) string {
	if t, err := strconv.Unquote(s); err == nil && utf8.ValidString(t) {
		return t
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\/`, `/`, `\n`, "\n", `\t`, "\t").Replace(inner)
}

// scalar reads what follows a colon: plain words, or a text in quotes. White
// space at the end of plain words may belong to them.
func scalar(s string) string {
	s = strings.TrimPrefix(s, " ")
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return unescape(s)
	}
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	}
	return s
}
