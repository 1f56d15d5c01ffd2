package agents

import (
	"regexp"
	"slices"
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// lists are tasks of finding the right one of many.
func lists() []Task {
	return []Task{
		{Name: "filter", Run: filter},
		{Name: "sort", Run: sortTable},
		{Name: "pages-find", Run: pagesFind},
		{Name: "pages-size", Run: pagesSize},
		{Name: "endless", Run: endless},
		{Name: "virtual", Run: virtual},
		{Name: "find", Run: findBig},
		{Name: "cells", Run: cells},
		{Name: "boxes", Run: boxes},
		{Name: "ranking", Run: ranking},
		{Name: "files", Run: fileList},
		{Name: "tree", Run: tree},
		{Name: "search", Run: search},
		{Name: "sticky", Run: sticky},
		{Name: "nested", Run: nested},
		{Name: "long", Run: long},
		{Name: "rerender", Run: rerender},
		{Name: "seats", Run: seats},
		{Name: "drag", Run: drag},
		{Name: "lift", Run: lift},
	}
}

// row is the table row that says all of these.
func (a *Agent) row(has ...string) *reading.Node {
	return a.Find(reading.Match{Role: "row", Has: has})
}

// button is the button of that name in a node.
func (a *Agent) button(in *reading.Node, name string) *reading.Node {
	return a.FindIn(in, reading.Match{Role: "button", Name: name})
}

func filter(a *Agent) {
	a.Put("Search", a.Q(0))
	a.Put("Kind", a.Q(1))
	a.Look()
	a.Click(a.button(a.row(a.Q(0), a.Q(1)), "Order"))
}

func sortTable(a *Agent) {
	want := "ascending"
	if a.Says("highest") {
		want = "descending"
	}
	a.Repeat(3, func() bool {
		a.Push(a.Q(0))
		a.Look()
		return a.Find(reading.Match{Role: "columnheader", Has: []string{a.Q(0)}}).States["sort"] == want
	})
	a.Click(a.Named("button", "Invite"))
}

func pagesFind(a *Agent) {
	m := reading.Match{Role: "row", Has: []string{a.Q(0)}}
	a.Repeat(12, func() bool {
		if a.Maybe(m) != nil {
			return true
		}
		a.Push("Next")
		a.Look()
		return false
	})
	a.Click(a.button(a.Find(m), "Hand out"))
}

func pagesSize(a *Agent) {
	a.Put("Rows on a page", a.Q(0))
	a.Look()
	m := reading.Match{Role: "row", Has: []string{a.Q(1)}}
	a.Repeat(4, func() bool {
		if a.Maybe(m) != nil {
			return true
		}
		a.Push("Next")
		a.Look()
		return false
	})
	a.Click(a.button(a.Find(m), "Hand out"))
}

func endless(a *Agent) {
	m := reading.Match{Role: "article", Name: a.Q(0)}
	last := -1
	a.Repeat(30, func() bool {
		if n := len(a.All(reading.Match{Role: "article"})); n == last {
			a.Press("Home") // nothing came: go up and down again, as people do
		} else {
			last = n
		}
		a.Press("End")
		a.Look()
		return a.Maybe(m) != nil
	})
	a.Click(a.button(a.Find(m), "Save"))
}

func drag(a *Agent) {
	a.Drag(a.FindIn(a.Named("list", "Shelf"), reading.Match{Role: "listitem", Has: []string{a.Q(0)}}), a.Named("group", "Box"))
}

func virtual(a *Agent) {
	list := a.Named("listbox", "Entries")
	m := reading.Match{Role: "option", Name: "Entry " + a.Q(1)}
	a.Repeat(60, func() bool {
		if a.Maybe(m) != nil {
			return true
		}
		a.PressOn(list, "PageDown")
		a.Look()
		return false
	})
	a.Click(a.Find(m))
	if a.Refused("stale_ref") { // coming into view whole, it was built anew
		a.Look()
		a.Click(a.Find(m))
	}
}

// findBig reads only what is around the mark, on a page too big to read.
func findBig(a *Agent) {
	a.LookAt(Look{Find: a.Q(0)})
	a.Click(a.FindIn(a.row(a.Q(0)), reading.Match{Role: "button"}))
}

func cells(a *Agent) {
	table := a.Find(reading.Match{Role: "table"})
	at := -1
	for i, h := range a.FindIn(table, reading.Match{Role: "row"}).Kids {
		if h.Text() == a.Q(1) {
			at = i
		}
	}
	row := a.row(a.Q(0))
	if at < 0 || at >= len(row.Kids) {
		a.Fail("no column %q in %d cells", a.Q(1), len(row.Kids))
		return
	}
	a.Put("Train", row.Kids[at].Text())
	a.Push("Answer")
}

func boxes(a *Agent) {
	var names []string
	for _, n := range a.All(reading.Match{Role: "button"}) {
		names = append(names, n.Name)
	}
	step := 1
	if a.Says("left of") {
		step = -1
	}
	at := slices.Index(names, a.Q(0)) + step
	if len(names) != 9 || at < 0 || at > 8 {
		a.Fail("the boxes are %q", names)
		return
	}
	a.Push(names[at])
}

func ranking(a *Agent) {
	want := a.Quotes()
	for place, name := range want {
		a.Repeat(6, func() bool {
			items := a.All(reading.Match{Role: "listitem"})
			at := slices.IndexFunc(items, func(n *reading.Node) bool { return strings.HasPrefix(n.Text(), name) })
			if at < 0 || at == place {
				return at == place
			}
			a.Push("Move " + name + " up")
			a.Look()
			return false
		})
	}
	a.Push("Save ranking")
}

func fileList(a *Agent) {
	for i := range len(a.All(reading.Match{Role: "row", Has: []string{a.Q(0)}})) {
		rows := a.All(reading.Match{Role: "row", Has: []string{a.Q(0)}})
		if i >= len(rows) {
			a.Fail("the rows of kind %s are fewer than before", a.Q(0))
			return
		}
		a.Click(a.FindIn(rows[i], reading.Match{Role: "checkbox"}))
		a.Look() // the page builds its rows anew
	}
	a.Push("Delete selected")
}

func tree(a *Agent) {
	place, shelf, book := a.Q(2), a.Q(1), a.Q(0)
	at := a.Root()
	for _, name := range []string{place, shelf, book} {
		item := a.FindIn(at, reading.Match{Role: "treeitem", Name: name})
		a.Click(item)
		a.Look()
		if name != book {
			at = a.again(item)
		}
	}
}

// again is the node of the page as it is now that has the ref of an earlier one.
func (a *Agent) again(old *reading.Node) *reading.Node {
	for n := range a.page.Root.All() {
		if n.Ref == old.Ref && n.Ref != "" {
			return n
		}
	}
	a.Fail("%s %q is gone", old.Role, old.Name)
	return &reading.Node{}
}

func search(a *Agent) {
	a.FillHow(a.Field("Words"), Fill{Value: a.Q(0), Submit: true})
	a.Look()
	nth := number(a.Q(1))
	if page := (nth-1)/6 + 1; page > 1 {
		pages := a.Named("navigation", "Result pages")
		a.Click(a.FindIn(pages, reading.Match{Role: "link", Name: string(rune('0' + page))}))
		a.Look()
	}
	var hits []*reading.Node
	for _, item := range a.All(reading.Match{Role: "listitem"}) {
		hits = append(hits, a.FindIn(item, reading.Match{Role: "link"}))
	}
	if i := (nth - 1) % 6; i < len(hits) {
		a.Click(hits[i])
	} else {
		a.Fail("only %d results on the page", len(hits))
	}
}

func sticky(a *Agent) {
	a.Push("Approve " + a.Q(0))
	a.Push("Approve " + a.Q(1))
}

// nested looks for its item by name: the page is longer than one answer.
func nested(a *Agent) {
	a.LookAt(Look{Find: "Take " + a.Q(1)})
	a.Click(a.button(a.Named("list", a.Q(0)), "Take "+a.Q(1)))
}

var goOn = regexp.MustCompile(`cursor "([^"]+)"`)

// long reads on from where each answer stopped.
func long(a *Agent) {
	m := reading.Match{Has: []string{"The key word is "}}
	a.Repeat(10, func() bool {
		if a.Maybe(m) != nil {
			return true
		}
		next := goOn.FindStringSubmatch(a.said)
		if next == nil {
			a.Fail("the key word never came, and the answer does not say how to go on")
			return true
		}
		a.LookAt(Look{Cursor: next[1]})
		return false
	})
	_, after, _ := strings.Cut(a.Root().Text(), "The key word is ")
	word, _, _ := strings.Cut(after, ".")
	a.LookAt(Look{Interactive: true})
	a.Put("Key word", word)
	a.Push("Hand in")
}

func rerender(a *Agent) {
	for _, name := range a.Quotes() {
		a.Click(a.button(a.Find(reading.Match{Role: "listitem", Has: []string{name}}), "Serve"))
		a.Look()
	}
}

func seats(a *Agent) {
	row := a.Q(0)
	free := map[int]*reading.Node{}
	for i := 1; i <= 8; i++ {
		if n := a.Maybe(reading.Match{Role: "button", Name: "Seat " + row + string(rune('0'+i)), Not: "disabled"}); n != nil {
			free[i] = n
		}
	}
	for i := 1; i < 8; i++ {
		if free[i] != nil && free[i+1] != nil {
			a.Click(free[i])
			a.Click(free[i+1])
			a.Push("Confirm seats")
			return
		}
	}
	a.Fail("no two seats side by side are free in row %s", row)
}

// lift moves a thing by keys, where a hand would drag it.
func lift(a *Agent) {
	a.PressOn(a.Named("option", a.Q(0)), "Space")
	a.Look()
	a.Repeat(6, func() bool {
		all := a.All(reading.Match{Role: "option"})
		if len(all) > 0 && all[0].Name == a.Q(0) {
			return true
		}
		a.PressOn(a.Named("option", a.Q(0)), "ArrowUp")
		a.Look()
		return false
	})
	a.PressOn(a.Named("option", a.Q(0)), "Space")
	a.Push("Save order")
}
