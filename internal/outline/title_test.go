package outline

import "testing"

// The title of a line is that of its node, in outlines and in differences.
func TestTitle(t *testing.T) {
	old := []Node{{Role: "list", Ref: "f1e1"}, {Depth: 1, Role: "button", Name: "gone", Ref: "f1e2"}}
	now := []Node{
		{Role: "list", Ref: "f1e1"},
		{Depth: 1, Role: "button", Name: `a "b" \ c`, States: " [disabled]", Ref: "f1e3"},
		{Depth: 1, Role: "link", Name: "- ~ [ref=f1e9]: \u2028 é", Ref: "f1e4"},
		{Depth: 1, Role: "generic", Ref: "f1e5", Value: `"quoted" value`},
		{Depth: 1, Role: "textbox", States: ` [placeholder="x"]`, Ref: "f1e6"},
	}
	want := map[string][2]string{"f1e2": {"button", "gone"}}
	for _, n := range now {
		want[n.Ref] = [2]string{n.Role, n.Name}
	}
	for _, l := range append(Lines(now), Diff(old, now)...) {
		role, name := l.Title()
		if got := [2]string{role, name}; got != want[l.Ref] {
			t.Errorf("%q is %q, want %q", l.Text, got, want[l.Ref])
		}
	}
}
