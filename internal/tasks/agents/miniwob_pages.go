package agents

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

func wobLogin(a *Agent) {
	dismiss := func() {
		a.Look()
		if n := a.Maybe(reading.Match{Role: "button", Name: "Cancel"}); n != nil {
			a.Click(n)
			a.Look()
		}
	}
	boxes := func() []*reading.Node { return a.All(reading.Match{Role: "textbox"}) }
	for i := range 2 {
		if all := boxes(); len(all) == 2 {
			a.Fill(all[i], a.Q(i))
			if a.Refused("not_actionable") || a.Refused("tool_failed") { // a layer came up at the focus
				dismiss()
				a.Fill(boxes()[i], a.Q(i))
			}
		}
		dismiss()
		if all := boxes(); len(all) == 2 && all[i].Value == "" {
			a.Fill(all[i], a.Q(i))
		}
	}
	a.Click(a.Find(reading.Match{Role: "button"}))
}

func wobCopy(a *Agent) { a.copyFrom(0) }

func wobCopyNth(a *Agent) { a.copyFrom(a.nth()) }

// copyFrom copies the text area at that place into the last box.
func (a *Agent) copyFrom(i int) {
	boxes := a.All(reading.Match{Role: "textbox"})
	if i+1 >= len(boxes) {
		a.Fail("only %d text boxes", len(boxes))
		return
	}
	a.Fill(boxes[len(boxes)-1], boxes[i].Value)
	a.submit()
}

func wobWord(a *Agent) {
	words := strings.Fields(strings.NewReplacer(".", "", ",", "").Replace(a.Find(reading.Match{Role: "paragraph"}).Text()))
	if a.nth() >= len(words) {
		a.Fail("the paragraph has only %d words", len(words))
		return
	}
	a.Fill(a.Find(reading.Match{Role: "textbox"}), words[a.nth()])
	a.submit()
}

func wobLast(a *Agent) {
	boxes := a.All(reading.Match{Role: "textbox"})
	if len(boxes) != 2 {
		a.Fail("%d text boxes", len(boxes))
		return
	}
	words := strings.Fields(boxes[0].Value)
	a.Fill(boxes[1], strings.TrimSuffix(words[len(words)-1], "."))
	a.submit()
}

func wobGenerate(a *Agent) {
	fits := func(n int) bool {
		switch {
		case a.Says("less than"):
			return n < number(a.between("less than ", ","))
		case a.Says("greater than"):
			return n > number(a.between("greater than ", ","))
		case a.Says("odd"):
			return n%2 == 1
		}
		return n%2 == 0
	}
	shown := regexp.MustCompile(`submit\. (\d+) `)
	a.Repeat(40, func() bool {
		a.Push("Generate")
		a.Look()
		m := shown.FindStringSubmatch(a.Root().Text() + " ")
		return m != nil && fits(number(m[1]))
	})
	a.submit()
}

func wobGuess(a *Agent) {
	low, high := 0, 9
	a.Repeat(5, func() bool {
		guess := (low + high) / 2
		a.Fill(a.Find(reading.Match{Role: "spinbutton"}), strconv.Itoa(guess))
		a.submit()
		a.Look()
		text := a.Root().Text()
		switch {
		case strings.Contains(text, "higher than "+strconv.Itoa(guess)):
			low = guess + 1
		case strings.Contains(text, "lower than "+strconv.Itoa(guess)):
			high = guess - 1
		default:
			return true
		}
		return false
	})
}

// wobTree opens folders in turn until the name is there.
func wobTree(a *Agent) {
	opened := map[string]bool{}
	a.Repeat(12, func() bool {
		var next *reading.Node
		for n := range a.page.Root.All() {
			switch {
			case n.Ref == "" || n.Name == "" && n.Value == "":
			case n.Text() == a.Q(0):
				a.Click(n)
				return true
			case next == nil && !opened[n.Ref]:
				next = n
			}
		}
		if next == nil {
			a.Fail("%q is nowhere", a.Q(0))
			return true
		}
		opened[next.Ref] = true
		a.Click(next)
		a.Look()
		return false
	})
}

func wobOddEven(a *Agent) {
	var odd *reading.Node
	at := 0
	for n := range a.page.Root.All() {
		switch v, err := strconv.Atoi(n.Text()); {
		case n.Role == "button" && n.Name == "Odd":
			odd, at = n, 99
		case err == nil && odd != nil && len(n.Kids) == 0 && at == 99:
			at = v
		case n.Role == "button" && n.Name == "Even":
			if at%2 == 0 {
				a.Click(n)
			} else {
				a.Click(odd)
			}
		}
	}
	a.submit()
}

// pairs reads a table of two columns.
func (a *Agent) pairs() map[string]string {
	out := map[string]string{}
	for _, row := range a.All(reading.Match{Role: "row"}) {
		if len(row.Kids) == 2 {
			out[row.Kids[0].Text()] = row.Kids[1].Text()
		}
	}
	return out
}

func wobTable(a *Agent) {
	a.Fill(a.Find(reading.Match{Role: "textbox"}), a.pairs()[a.between("value of ", " into")])
	a.submit()
}

func wobTableTwo(a *Agent) {
	pairs, last := a.pairs(), ""
	for n := range a.page.Root.All() {
		if text := strings.TrimSuffix(n.Text(), ":"); pairs[text] != "" && n.Text() != text {
			last = text
		}
		if n.Role == "textbox" {
			if name := strings.TrimSuffix(n.Name, ":"); pairs[name] != "" {
				last = name
			}
			a.Fill(n, pairs[last])
		}
	}
	a.submit()
}

func wobSearch(a *Agent) {
	a.Fill(a.Find(reading.Match{Role: "textbox"}), a.Q(0))
	a.Push("Search")
	a.Look()
	nth := a.nth()
	if page := nth/3 + 1; page > 1 {
		a.Follow(strconv.Itoa(page))
		a.Look()
	}
	var hits []*reading.Node
	for _, n := range a.All(reading.Match{Role: "link"}) {
		if !slices.Contains([]string{"<", ">", "1", "2", "3", "First", "Last"}, n.Name) {
			hits = append(hits, n)
		}
	}
	if nth%3 < len(hits) {
		a.Click(hits[nth%3])
	} else {
		a.Fail("only %d results", len(hits))
	}
}

var sums = regexp.MustCompile(`(x|\d+) ([-+x]) (x|\d+) = ?(\d*)`)

func wobAlgebra(a *Agent) {
	m := sums.FindStringSubmatch(a.Root().Text())
	if m == nil {
		a.Fail("no sum on the page: %q", a.Root().Text())
		return
	}
	l, r, total, x := number(m[1]), number(m[3]), number(m[4]), 0
	switch {
	case m[4] == "" && m[2] == "+":
		x = l + r
	case m[4] == "" && m[2] == "-":
		x = l - r
	case m[4] == "":
		x = l * r
	case m[2] == "+":
		x = total - l - r // one of them is x, read as 0
	case m[1] == "x":
		x = total + r
	default:
		x = l - total
	}
	a.Fill(a.Find(reading.Match{Role: "textbox"}), strconv.Itoa(x))
	a.submit()
}

func wobAutocomplete(a *Agent) {
	q := a.Quotes()
	box := a.Find(reading.Match{Role: "textbox|combobox|searchbox"})
	a.Type(box, q[0])
	items := reading.Match{Role: "menuitem|option|listitem", Ref: true}
	a.Until(items)
	for _, n := range a.All(items) {
		if t := n.Text(); strings.HasPrefix(t, q[0]) && (len(q) < 2 || strings.HasSuffix(t, q[1])) {
			a.Click(n)
			a.submit()
			return
		}
	}
	a.Fail("nothing suggested fits %q", q)
}

// slide moves a handle by arrow keys from where it is.
func (a *Agent) slide(handle *reading.Node, by int) {
	for ; by > 0 && a.err == nil; by-- {
		a.PressOn(handle, "ArrowRight")
	}
	for ; by < 0 && a.err == nil; by++ {
		a.PressOn(handle, "ArrowLeft")
	}
}

// handles are what can be focused and has no name: the handles of a widget
// library's sliders; values are the numbers shown by themselves.
func (a *Agent) sliders() (handles []*reading.Node, values []int) {
	for n := range a.page.Root.All() {
		if v, err := strconv.Atoi(n.Text()); err == nil && len(n.Kids) == 0 && n.Role != "textbox" {
			values = append(values, v)
		} else if n.Ref != "" && n.Text() == "" && (n.Role == "generic" || n.Role == "slider") {
			handles = append(handles, n)
		}
	}
	return handles, values
}

func wobSlider(a *Agent) {
	handles, values := a.sliders()
	if len(handles) == 0 || len(values) == 0 {
		a.Fail("%d handles and %d values", len(handles), len(values))
		return
	}
	a.slide(handles[len(handles)-1], number(a.between("Select ", " with the slider"))-values[0])
	a.submit()
}

func wobSliders(a *Agent) {
	handles, values := a.sliders()
	want := strings.Split(strings.Trim(a.between("combination ", " and submit"), "[]"), ",")
	if len(handles) < 3 || len(values) < 3 || len(want) != 3 {
		a.Fail("%d handles, %d values, %q", len(handles), len(values), want)
		return
	}
	for i := range 3 {
		a.slide(handles[i], number(want[i])-values[i])
	}
	a.submit()
}

func wobSpinner(a *Agent) {
	want := number(a.between("Select ", " with the spinner"))
	box := a.Find(reading.Match{Role: "spinbutton"})
	for i := number(box.Value); i < want && a.err == nil; i++ {
		a.PressOn(box, "ArrowUp")
	}
	for i := number(box.Value); i > want && a.err == nil; i-- {
		a.PressOn(box, "ArrowDown")
	}
	a.submit()
}

func wobFormSlider(a *Agent) {
	handles, values := a.sliders()
	boxes := a.All(reading.Match{Role: "checkbox"})
	if len(handles) == 0 || len(values) == 0 || a.nth() >= len(boxes) {
		a.Fail("%d handles, %d values, %d boxes", len(handles), len(values), len(boxes))
		return
	}
	a.slide(handles[0], number(a.between("Select ", " with the slider"))-values[0])
	a.Click(boxes[a.nth()])
	a.submit()
}

func wobForm(a *Agent) {
	a.Click(a.Find(reading.Match{Role: "generic", Ref: true, Has: []string{"▾"}})) // what a person sees of it
	a.Look()
	a.Click(a.Find(reading.Match{Role: "listitem", Ref: true, Has: []string{a.between("Choose ", " from the dropdown")}}))
	a.Push(a.Q(0))
}

var hours = regexp.MustCompile(`(?:(\d+)h)? ?(?:(\d+)m)?`)

func wobTicket(a *Agent) {
	best, bestValue := (*reading.Node)(nil), 0
	text := ""
	for n := range a.page.Root.All() {
		if n.Role != "button" {
			if t := n.Text(); hours.FindString(t) != "" && len(n.Kids) == 0 {
				text = t
			}
			continue
		}
		value := number(strings.TrimLeft(n.Name, "Bokfr $"))
		if a.Says("duration") {
			m := hours.FindStringSubmatch(text)
			value = number(m[1])*60 + number(m[2])
		}
		less := a.Says("cheapest") || a.Says("shortest")
		if best == nil || less && value < bestValue || !less && value > bestValue {
			best, bestValue = n, value
		}
	}
	if best == nil {
		a.Fail("no ticket")
		return
	}
	a.Click(best)
}

func wobMovies(a *Agent) {
	want := map[string]string{"Genre": a.between("Search for ", " movies"), "Director": a.between("directed by ", " from"), "Year": a.between("year ", ".")}
	last := ""
	for n := range a.page.Root.All() {
		for key := range want {
			if strings.Contains(n.Text(), key) && len(n.Kids) == 0 || strings.Contains(n.Name, key) {
				last = key
			}
		}
		if n.Role == "textbox" {
			a.Fill(n, want[last])
		}
	}
	all := a.All(reading.Match{Role: "button|generic", Ref: true})
	for _, n := range all {
		if n.Text() == "Search" || n.Text() == "Submit" {
			a.Click(n)
			return
		}
	}
	a.Fail("none of %d things to click says Search or Submit", len(all))
}

func wobPhone(a *Agent) {
	name := a.between("Find ", " in the contact")
	a.Repeat(6, func() bool {
		if a.Maybe(reading.Match{Role: "heading", Name: name}) != nil {
			return true
		}
		a.Follow(">")
		a.Look()
		return false
	})
	field := map[string]string{"phone number": "Phone", "email": "Email", "address": "Address"}[a.between("click on their ", ".")]
	behind := false
	for n := range a.page.Root.All() {
		if strings.HasPrefix(n.Text(), field+":") && len(n.Kids) == 0 {
			behind = true
		} else if behind && n.Ref != "" {
			a.Click(n)
			return
		}
	}
	a.Fail("%s cannot be clicked", field)
}
