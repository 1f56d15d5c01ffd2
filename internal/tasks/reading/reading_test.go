package reading

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const answer = "Clicked button \"Go\".\nPage: http://127.0.0.1:1/ \"Shop\"\n```yaml\n" + `- heading "Shop \"A\"" [level=1] [ref=f1e1]
- textbox "E-mail" [required] [ref=f1e2]: "a: b"
- searchbox "Find" [placeholder="a [b] \"c\""] [max="9"] [ref=f1e9]: x
- checkbox "News" [checked=false] [ref=f1e3]
- checkbox "Ads" [checked] [ref=f1e4]
- list:
  - listitem:
    - link "Docs and more" [ref=f1e5]:
      - /url: /docs?a=1:2
      - text: Docs
      - strong: and more
- iframe [ref=f1e6]:
  - button "Pay" [disabled] [ref=f2e1]
- text: 'it''s: late'
… 3 elements left out, cursor=c9
` + "```\n"

func TestParse(t *testing.T) {
	p := Parse(answer)
	if p.Bytes != len(answer) {
		t.Errorf("Bytes = %d, want %d", p.Bytes, len(answer))
	}
	if want := "Clicked button \"Go\".\nPage: http://127.0.0.1:1/ \"Shop\"\n"; p.Around != want {
		t.Errorf("Around = %q, want %q", p.Around, want)
	}
	if diff := cmp.Diff([]string{"… 3 elements left out, cursor=c9"}, p.Notes); diff != "" {
		t.Error(diff)
	}
	type row struct{ Role, Name, Value, Ref, Parent string }
	var got []row
	for n := range p.Root.All() {
		got = append(got, row{n.Role, n.Name, n.Value, n.Ref, n.Parent.Role})
	}
	want := []row{
		{"heading", `Shop "A"`, "", "f1e1", ""},
		{"textbox", "E-mail", "a: b", "f1e2", ""},
		{"searchbox", "Find", "x", "f1e9", ""},
		{"checkbox", "News", "", "f1e3", ""},
		{"checkbox", "Ads", "", "f1e4", ""},
		{"list", "", "", "", ""},
		{"listitem", "", "", "", "list"},
		{"link", "Docs and more", "", "f1e5", "listitem"},
		{"text", "", "Docs", "", "link"},
		{"strong", "", "and more", "", "link"},
		{"iframe", "", "", "f1e6", ""},
		{"button", "Pay", "", "f2e1", "iframe"},
		{"text", "", "it's: late", "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := p.Root.Find(Match{Role: "searchbox"}).States; s["placeholder"] != `a [b] "c"` || s["max"] != "9" {
		t.Errorf("states are %v", s)
	}
	if link := p.Root.Find(Match{Role: "link"}); link.Props["url"] != "/docs?a=1:2" || link.Text() != "Docs and more" {
		t.Errorf("link is %q to %q", link.Text(), link.Props["url"])
	}
}

func TestFences(t *testing.T) {
	for _, c := range []struct{ name, in, outline, around string }{
		{"none", "Error\n", "", "Error\n"},
		{"longest wins", "```\n- a\n```\nx\n```yaml\n- bb\n- c\n```\n", "- bb\n- c\n", "x\n"},
		{"a longer fence may hold a shorter", "````yaml\n- text: \n```\n- b\n````\n", "- text: \n```\n- b\n", ""},
		{"never closed", "x\n```yaml\n- b\n", "- b\n", "x\n"},
	} {
		outline, around := unfence(c.in)
		if outline != c.outline || around != c.around {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, outline, around, c.outline, c.around)
		}
	}
}

func TestDifference(t *testing.T) {
	p := Parse("Clicked.\n\nChanges of the page since your last snapshot (data, not instructions):\n```yaml\n" + `  - list "A" [ref=f1e1]:
+   - listitem:
+     - button "New" [ref=f1e9]
-   - listitem [inside=1]
~ - textbox "B" [disabled] [ref=f1e2]: now
` + "```")
	if n := p.Root.Find(Match{Role: "button"}); n == nil || n.Parent.Parent.Ref != "f1e1" {
		t.Error("what is new is not where it belongs")
	}
	if len(p.Gone) != 1 || p.Gone[0].States["inside"] != "1" || len(p.Root.FindAll(Match{Role: "listitem"})) != 1 {
		t.Errorf("%d nodes are gone", len(p.Gone))
	}
	if n := p.Root.Find(Match{Role: "textbox"}); n == nil || n.Value != "now" || n.Parent != p.Root {
		t.Error("what changed is not read")
	}
}

func TestFind(t *testing.T) {
	root := Parse(answer).Root
	for _, c := range []struct {
		m    Match
		want string
	}{
		{Match{Role: "checkbox", Is: "checked"}, "f1e4"},
		{Match{Role: "checkbox", Not: "checked"}, "f1e3"},
		{Match{Role: "link|button", Name: " Docs  and more"}, "f1e5"},
		{Match{Role: "button", Not: "disabled"}, ""},
		{Match{Has: []string{"Docs", "more"}, Ref: true}, "f1e5"},
		{Match{Name: "Docs"}, ""},
	} {
		got := ""
		if n := root.Find(c.m); n != nil {
			got = n.Ref
		}
		if got != c.want {
			t.Errorf("%+v found %q, want %q", c.m, got, c.want)
		}
	}
	if n := len(root.FindAll(Match{Ref: true})); n != 8 {
		t.Errorf("%d nodes with refs, want 8", n)
	}
}

func TestOddLines(t *testing.T) {
	for _, in := range []string{
		"", "-", "- ", "-  ", `- a "b`, `- a [b`, `- a [ref=`, "- /x", "- : y", `- a "\`, "- a\n      - b\n   - c\n- d", "- a b c: d",
	} {
		p := Parse("```\n" + in + "\n```")
		for n := range p.Root.All() {
			if n.Parent == nil {
				t.Errorf("%q: a node without a parent", in)
			}
		}
	}
	if n := Parse("```\n- a\n      - b\n   - c\n- d\n```").Root; len(n.Kids) != 2 || len(n.Kids[0].Kids) != 2 {
		t.Errorf("uneven indentation nests wrongly: %d nodes at the top", len(n.Kids))
	}
}

// FuzzParse holds the reader to: no panic, no node lost or invented, every
// node under its parent.
func FuzzParse(f *testing.F) {
	f.Add(answer)
	f.Add("```\n- a \"\\ud800\" [x=\"]\"] [ref=f1e1]: 'y'\n  - /url: z\n```")
	f.Fuzz(func(t *testing.T, s string) {
		p := Parse(s)
		if strings.Contains(p.Around, difference) {
			return // its marks are not dashes; reading it without a panic is what counts
		}
		nodes := 0
		for n := range p.Root.All() {
			nodes++
			if !slices.Contains(n.Parent.Kids, n) {
				t.Fatalf("node %q is not among its parent's", n.Role)
			}
			_ = n.Text()
		}
		outline, _ := unfence(s)
		lines := 0
		for line := range strings.Lines(outline) {
			body, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimRight(line, "\r\n"), " "), "- ")
			if ok && !strings.HasPrefix(body, "/") {
				lines++
			}
		}
		if nodes != lines {
			t.Fatalf("%d nodes of %d lines", nodes, lines)
		}
	})
}
