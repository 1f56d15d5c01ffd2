package outline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const walked = "0\tcomplete\t0\t0\n" +
	"0\t\theading\t0\tTitle\t [level=1]\t\n" +
	"0\t\tnavigation\t1\tMain\t\t\n" +
	"1\ti\tlink\t2\tDocs \"now\"\t\t\n" +
	"2\tu\t/url\t0\t\t\t/docs\n" +
	"0\tf\tiframe\t3\t\t\t\n" +
	"0\ti\ttextbox\t4\tNote\t [required]\tone\u2028two\n" +
	"0\tt\ttext\t0\t\t\tplain text"

func text(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// onWire makes of fields between tabs, an entry a line, what a walker returns.
func onWire(s string) string { return strings.NewReplacer("\t", fieldEnd, "\n", fieldEnd).Replace(s) }

func nodes(tb testing.TB, s string, doc int) []Node {
	tb.Helper()
	p, err := Parse(onWire(s), doc)
	if err != nil {
		tb.Fatal(err)
	}
	return p.Nodes
}

// TestLines covers the form of an outline (SNAP-1) and frames in it (SNAP-2).
func TestLines(t *testing.T) {
	inner := nodes(t, "0\tloading\t0\t0\n0\ti\tbutton\t1\tPay\t\t", 7)
	all := Splice(nodes(t, walked, 3), func(n Node) []Node {
		if n.Ref != "f3e3" {
			t.Errorf("asked for the inside of %q", n.Ref)
		}
		return inner
	})
	want := `- heading "Title" [level=1]
- navigation "Main" [ref=f3e1]:
  - link "Docs \"now\"" [ref=f3e2]:
    - /url: /docs
- iframe [ref=f3e3]:
  - button "Pay" [ref=f7e1]
- textbox "Note" [required] [ref=f3e4]: "one\ntwo"
- text: plain text
`
	if diff := cmp.Diff(want, text(Lines(all))); diff != "" {
		t.Error(diff)
	}
	if got := Elements(Lines(all)); got != 6 {
		t.Errorf("%d elements, want 6", got)
	}
}

func TestParseRefusesOtherForms(t *testing.T) {
	for _, s := range []string{
		"", "gone", "1\tx", "x\tcomplete\t0\t0", "0\tcomplete\t0\t0\n1\t\ta\t0\t\t\t", "0\tcomplete\t0\t0\nnonsense",
		"0\tcomplete\t0\t0\n0\t\ta\t0\t\t\t\textra", "0\tcomplete\t0\t0\n-1\t\ta\t0\t\t\t", "0\tcomplete\t0\t0\n0\t\ta\t0\t\t\t\n2\t\tb\t0\t\t\t",
	} {
		if _, err := Parse(onWire(s), 1); err == nil {
			t.Errorf("%q was read", s)
		}
	}
	// A line end in a field would be one of the outline.
	forged := onWire(walked) + "\n- button \"Pay\" [ref=f1e9]"
	if _, err := Parse(forged, 1); err == nil {
		t.Errorf("%q was read", forged)
	}
}

func TestSelect(t *testing.T) {
	all := nodes(t, `0	complete	0	0
0		main	1			
1		heading	0	News	 [level=1]	
1		list	0			
2		listitem	0			
3	i	link	2	First story		
4	u	/url	0			/1
2		listitem	0			
3	i	link	3	Second story		
1	i	generic	4			
2	t	text	0			Click me`, 1)
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"depth", Options{Depth: 2}, "- main [ref=f1e1]:\n  - heading \"News\" [level=1]\n  - list [inside=4]\n  - generic [ref=f1e4]\n"},
		{"interactive", Options{Interactive: true}, "- link \"First story\" [ref=f1e2]:\n  - /url: /1\n- link \"Second story\" [ref=f1e3]\n- generic [ref=f1e4]:\n  - text: Click me\n"},
		{"find", Options{Find: "second"}, "- main [ref=f1e1]:\n  - list:\n    - listitem:\n      - link \"Second story\" [ref=f1e3]\n"},
	} {
		got, _ := Select(all, c.o)
		if diff := cmp.Diff(c.want, text(Lines(got))); diff != "" {
			t.Errorf("%s (SNAP-5): %s", c.name, diff)
		}
	}
	if got, n := Select(all, Options{Find: "nowhere"}); len(got) != 0 || n != 0 {
		t.Errorf("found %d in %v", n, got)
	}
}

// TestFindKeepsRowsWhole: what one can do with a row is shown beside the words
// that were looked for, and what a large match leaves out is counted (SNAP-5).
func TestFindKeepsRowsWhole(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("0\tcomplete\t0\t0\n0\t\ttable\t1\t\t\t")
	for i := range 40 {
		fmt.Fprintf(&rows, "\n1\t\trow\t0\t\t\t\n2\t\tcell\t0\tNumber %d.\t\t\n2\t\tcell\t0\t\t\t\n3\ti\tbutton\t%d\tOpen\t\t", i, i+2)
	}
	rows.WriteString("\n0\t\tlist\t0\tLong\t\t")
	for i := range 30 {
		fmt.Fprintf(&rows, "\n1\ti\tbutton\t%d\tTake %d\t\t", i+50, i)
	}
	all := nodes(t, rows.String(), 1)
	got, matches := Select(all, Options{Find: "number 17."})
	want := "- table [ref=f1e1]:\n  - row:\n    - cell \"Number 17.\"\n    - cell:\n      - button \"Open\" [ref=f1e19]\n"
	if diff := cmp.Diff(want, text(Lines(got))); matches != 1 || diff != "" {
		t.Errorf("%d matches: %s", matches, diff)
	}
	got, _ = Select(all, Options{Find: "long"})
	lines := strings.Split(text(Lines(got)), "\n")
	if len(lines) < 3 || !slices.Contains(lines, `- list "Long" [inside=6]:`) || lines[len(lines)-2] != `  - button "Take 23" [ref=f1e73]` {
		t.Errorf("a long match reads\n%s", text(Lines(got)))
	}
}

// TestFindSaysWhatItLeavesOut: what stands beside a match, and is shown without
// what is in it, does not look empty (SNAP-5).
func TestFindSaysWhatItLeavesOut(t *testing.T) {
	all := nodes(t, `0	complete	0	0
0		main	1			
1		paragraph	0			High water
1		list	0			
2		listitem	0			06:10
2		listitem	0			12:25
1	i	link	2	More		
2	u	/url	0			/more`, 1)
	got, _ := Select(all, Options{Find: "high"})
	want := "- main [ref=f1e1]:\n  - paragraph: High water\n  - list [inside=2]\n  - link \"More\" [ref=f1e2]:\n    - /url: /more\n"
	if diff := cmp.Diff(want, text(Lines(got))); diff != "" {
		t.Error(diff)
	}
}

func TestDiff(t *testing.T) {
	old := nodes(t, `0	complete	0	0
0		main	1			
1	i	button	2	Save	 [disabled]	
1		list	0			
2		listitem	0			one
2		listitem	0			two
1		status	0	result		waiting
0	i	link	3	Gone		`, 1)
	now := nodes(t, `0	complete	0	0
0		main	1			
1	i	button	2	Save		
1		list	0			
2		listitem	0			zero
2		listitem	0			one
2		listitem	0			two
1		status	0	result		done`, 1)
	want := `  - main [ref=f1e1]:
~   - button "Save" [ref=f1e2]
    - list:
+     - listitem: zero
~   - status "result": done
- - link "Gone" [ref=f1e3]
`
	if diff := cmp.Diff(want, text(Diff(old, now))); diff != "" {
		t.Error(diff)
	}
	if d := Diff(now, now); len(d) != 0 {
		t.Errorf("an outline differs from itself: %s", text(d))
	}
}

// genNodes draws a small outline.
func genNodes(t *rapid.T) []Node {
	n := rapid.IntRange(0, 30).Draw(t, "nodes")
	var out []Node
	depth := 0
	for i := range n {
		depth = rapid.IntRange(0, min(depth+1, 6)).Draw(t, "depth")
		if i == 0 {
			depth = 0
		}
		node := Node{Depth: depth, Role: rapid.SampledFrom([]string{"button", "text", "list"}).Draw(t, "role"), Value: rapid.StringN(0, 40, -1).Draw(t, "value")}
		node.Value = strings.NewReplacer("\n", " ", "\t", " ").Replace(node.Value)
		node.Text = node.Role == "text"
		if rapid.Bool().Draw(t, "ref") {
			node.Ref = "f1e" + string(rune('1'+i%9)) + string(rune('a'+i/9))
		}
		out = append(out, node)
	}
	return out
}

// TestCutContinuesExactly: cut at any budget, the pieces make the whole
// (SNAP-5).
func TestCutContinuesExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := Lines(genNodes(t))
		limit := rapid.IntRange(400, 1200).Draw(t, "limit")
		var got strings.Builder
		for at := (Position{}); at.Line < len(lines); {
			piece, next := Cut(lines, at, limit)
			if len(piece) > limit {
				t.Fatalf("%d bytes, want at most %d", len(piece), limit)
			}
			if next == at {
				t.Fatal("no progress")
			}
			got.WriteString(piece)
			at = next
		}
		if got.String() != text(lines) {
			t.Fatalf("pieces make\n%q\nwant\n%q", got.String(), text(lines))
		}
	})
}

// TestDiffIsEmptyOnlyForEqual: a difference is told exactly when there is one.
func TestDiffIsEmptyOnlyForEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genNodes(t), genNodes(t)
		same := text(Lines(a)) == text(Lines(b))
		if empty := len(Diff(a, b)) == 0; empty != same {
			t.Fatalf("difference empty: %v, outlines equal: %v", empty, same)
		}
	})
}

// TestLongValue: only a value that is longer than the budget is cut inside,
// never inside of a character.
func TestLongValue(t *testing.T) {
	family := "👨‍👩‍👧"
	lines := Lines([]Node{{Role: "text", Text: true, Value: strings.Repeat(family, 200)}, {Role: "button", Name: "After"}})
	var all strings.Builder
	for at := (Position{}); at.Line < len(lines); {
		piece, next := Cut(lines, at, 1000)
		if len(piece) > 1000 || !utf8.ValidString(piece) {
			t.Fatalf("a piece of %d bytes, valid: %v", len(piece), utf8.ValidString(piece))
		}
		for line := range strings.Lines(piece) {
			value, isText := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "- text: ")
			if isText && strings.Trim(value, family) != "" || strings.HasPrefix(value, "\u200d") {
				t.Fatalf("cut inside of a character: %q", value)
			}
			all.WriteString(value)
		}
		at = next
	}
	if want := strings.Repeat(family, 200) + `- button "After"`; all.String() != want {
		t.Errorf("pieces make %d bytes, want %d", all.Len(), len(want))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(onWire(walked), 1000)
	f.Add(onWire("0\tcomplete\t0\t0\n0\tt\ttext\t0\t\t\t"+strings.Repeat("é\u200d", 900)), 1000)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		p, err := Parse(s, 1)
		if err != nil || limit < 300 || limit > 1<<20 {
			return
		}
		lines := Lines(p.Nodes)
		for _, l := range lines {
			if strings.ContainsAny(l.Text, "\n") {
				t.Fatalf("a line holds a line end: %q", l.Text)
			}
		}
		steps := 0
		for at := (Position{}); at.Line < len(lines); steps++ {
			piece, next := Cut(lines, at, limit)
			if len(piece) > limit || next.Line < at.Line || next == at {
				t.Fatalf("cut of %d bytes at %v to %v with %d", len(piece), at, next, limit)
			}
			at = next
		}
		Select(p.Nodes, Options{Depth: 2, Interactive: true, Find: "e"})
		Diff(p.Nodes, p.Nodes[:len(p.Nodes)/2])
	})
}

// TestHead: the first lines are enough for what fits, and Sum tells outlines
// apart that print differently (SNAP-5).
func TestHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringN(0, 60, 200)
		var all []Node
		for depth := 0; rapid.IntRange(0, 30).Draw(t, "more") > 0; {
			depth = rapid.IntRange(0, depth+1).Draw(t, "depth")
			n := Node{Depth: depth, Role: "button", Name: word.Draw(t, "name"), Value: word.Draw(t, "value")}
			if rapid.Bool().Draw(t, "named") {
				n.Ref = fmt.Sprintf("f1e%d", len(all))
			}
			all = append(all, n)
		}
		limit := rapid.IntRange(1, 3000).Draw(t, "limit")
		lines := Lines(all)
		want, at := Cut(lines, Position{}, limit)
		head := Head(all, limit)
		got, stopped := Cut(head, Position{}, limit)
		if got != want || stopped != at {
			t.Fatalf("%d of %d lines give %q to %v, all give %q to %v", len(head), len(lines), got, stopped, want, at)
		}
		if !slices.Equal(head, lines[:len(head)]) {
			t.Fatal("the lines are others")
		}
		if len(all) > 0 {
			other := slices.Clone(all)
			other[len(other)-1].Value += "x"
			if Sum(all) == Sum(other) || Sum(all) != Sum(slices.Clone(all)) {
				t.Fatal("the sums do not tell them apart")
			}
		}
	})
}
