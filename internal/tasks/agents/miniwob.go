package agents

import (
	"regexp"
	"slices"
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// MiniWoB lists tasks of MiniWoB++ that can be done by reading and the verbs of
// today. Left out are those about colours, shapes, drawing and dragging.
func MiniWoB() []Task {
	var out []Task
	add := func(run func(*Agent), names ...string) {
		for _, n := range names {
			out = append(out, Task{Name: "miniwob/" + n, Elsewhere: true, Run: func(a *Agent) { a.Look(); run(a) }})
		}
	}
	add(wobButton, "click-button", "click-dialog-2", "click-test", "click-test-2", "click-test-transfer", "unicode-test")
	add(wobSequence, "click-button-sequence")
	add(wobLink, "click-link")
	add(wobClose, "click-dialog")
	add(wobTab, "click-tab")
	add(wobTabs, "click-tab-2", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2-hard")
	add(wobSection, "click-collapsible", "click-collapsible-nodelay")
	add(wobSections, "click-collapsible-2", "click-collapsible-2-nodelay")
	add(wobBoxes, "click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer", "click-option")
	add(wobMenu, "click-menu")
	add(wobMenuTwo, "click-menu-2")
	add(wobScrollList, "click-scroll-list")
	add(wobChoose, "choose-list")
	add(wobDate, "choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
	add(wobEnterDate, "enter-date")
	add(wobEnterTime, "enter-time")
	add(wobText, "enter-text", "enter-text-dynamic")
	add(wobCase, "enter-text-2")
	add(wobPassword, "enter-password")
	add(wobFocus, "focus-text", "focus-text-2")
	add(wobLogin, "login-user", "login-user-popup")
	add(wobCopy, "copy-paste")
	add(wobCopyNth, "copy-paste-2")
	add(wobWord, "find-word")
	add(wobLast, "scroll-text")
	add(wobGenerate, "generate-number")
	add(wobGuess, "guess-number")
	add(wobTree, "navigate-tree")
	add(wobOddEven, "odd-or-even")
	add(wobTable, "read-table")
	add(wobTableTwo, "read-table-2")
	add(wobSearch, "search-engine")
	add(wobAlgebra, "simple-algebra", "simple-arithmetic")
	add(wobAutocomplete, "use-autocomplete", "use-autocomplete-nodelay")
	add(wobSlider, "use-slider")
	add(wobSliders, "use-slider-2")
	add(wobSpinner, "use-spinner")
	add(wobFormSlider, "form-sequence")
	add(wobForm, "form-sequence-3")
	add(wobTicket, "buy-ticket")
	add(wobMovies, "multi-layouts", "multi-orderings")
	add(wobPhone, "phone-book")
	add(wobMail, "email-inbox", "email-inbox-noscroll", "email-inbox-delete", "email-inbox-forward", "email-inbox-reply", "email-inbox-important")
	return out
}

// between is what stands between two pieces of the task.
func (a *Agent) between(before, after string) string {
	_, rest, ok := strings.Cut(a.task, before)
	inner, _, found := strings.Cut(rest, after)
	if !ok || !found {
		a.Fail("the task has nothing between %q and %q: %s", before, after, a.task)
	}
	return strings.TrimSpace(inner)
}

// saying is the node with a ref that says exactly this.
func (a *Agent) saying(text string) *reading.Node {
	for n := range a.page.Root.All() {
		if n.Ref != "" && n.Text() == text && n.Role != "text" {
			return n
		}
	}
	a.Fail("nothing that can be acted on says %q", text)
	return &reading.Node{}
}

func (a *Agent) submit() { a.Push("Submit") }

func wobButton(a *Agent) {
	if q := a.Quotes(); len(q) > 0 {
		if q[0] == "x" { // how the task calls the cross in the corner
			q[0] = "Close"
		}
		a.Push(q[0])
		return
	}
	name := regexp.MustCompile(`(?i)button (\w+)\.`).FindStringSubmatch(a.task)
	if name != nil {
		a.Push(name[1])
		return
	}
	a.Click(a.Find(reading.Match{Role: "button"}))
}

func wobSequence(a *Agent) { a.Push("ONE"); a.Push("TWO") }

func wobLink(a *Agent) { a.Click(a.saying(a.Q(0))) }

func wobClose(a *Agent) {
	a.Click(a.FindIn(a.Find(reading.Match{Role: "dialog"}), reading.Match{Role: "button"}))
}

func wobTab(a *Agent) { a.Click(a.Named("tab|link", a.between("Click on ", "."))) }

// wobTabs opens every tab until the link is there.
func wobTabs(a *Agent) {
	want := a.Q(0)
	for i := range a.All(reading.Match{Role: "tab"}) {
		for n := range a.page.Root.All() {
			if n.Ref != "" && n.Role != "tab" && n.Text() == want {
				a.Click(n)
				return
			}
		}
		if tabs := a.All(reading.Match{Role: "tab"}); i+1 < len(tabs) {
			a.Click(tabs[i+1])
			a.Look()
		}
	}
	// On some pages coming to the right tab is all: the page says.
}

func wobSection(a *Agent) {
	a.Click(a.Find(reading.Match{Role: "tab"}))
	a.Click(a.Until(reading.Match{Role: "button", Name: "Submit"})) // it unfolds slowly
}

func wobSections(a *Agent) {
	want := a.Q(0)
	for i := range a.All(reading.Match{Role: "tab"}) {
		tabs := a.All(reading.Match{Role: "tab"})
		if i >= len(tabs) {
			break
		}
		if !tabs[i].Has("expanded") {
			a.Click(tabs[i])
			a.Look()
		}
		for n := range a.page.Root.All() {
			if n.Ref != "" && n.Role != "tab" && n.Text() == want {
				a.Click(n)
				return
			}
		}
	}
	a.Fail("no section holds %q", want)
}

func wobBoxes(a *Agent) {
	text := a.between("Select ", " and click Submit")
	for want := range strings.SplitSeq(text, ", ") {
		if want != "nothing" {
			a.Click(a.Named("checkbox|radio", want))
		}
	}
	a.submit()
}

// wobMenu goes by keys: a click on what has a menu of its own counts as wrong.
func wobMenu(a *Agent) {
	_, path, _ := strings.Cut(a.task, "Select ")
	names := strings.Split(path, ">")
	menu := a.Find(reading.Match{Role: "menu"})
	a.PressOn(menu, "Home")
	for i, name := range names {
		list := a.itemsWith(names[i])
		for range slices.IndexFunc(list, func(n *reading.Node) bool { return n.Name == name }) {
			a.Press("ArrowDown")
		}
		if i == len(names)-1 {
			a.Press("Enter")
			return
		}
		a.Press("ArrowRight")
		a.Until(reading.Match{Role: "menuitem", Name: names[i+1]})
	}
}

// itemsWith lists the items of the menu that holds an item of that name.
func (a *Agent) itemsWith(name string) []*reading.Node {
	item := a.Named("menuitem", name)
	for up := item.Parent; up != nil; up = up.Parent {
		if up.Role != "menu" {
			continue
		}
		var out []*reading.Node
		for _, row := range up.Kids {
			if n := row.Find(reading.Match{Role: "menuitem"}); n != nil {
				out = append(out, n)
			}
		}
		return out
	}
	a.Fail("%q is in no menu", name)
	return nil
}

func wobMenuTwo(a *Agent) {
	if len(a.Quotes()) < 2 {
		a.Fail("the task shows an icon, which words do not say")
		return
	}
	a.Push("Menu")
	a.Look()
	if a.Maybe(reading.Match{Role: "menuitem", Name: a.Q(1)}) == nil {
		a.Click(a.Named("menuitem", "Playback"))
	}
	a.Click(a.Until(reading.Match{Role: "menuitem", Name: a.Q(1)})) // it opens after a while
}

func wobScrollList(a *Agent) {
	text := a.between("Select ", " from the scroll list")
	a.FillHow(a.Find(reading.Match{Role: "listbox"}), Fill{Values: strings.Split(text, ", ")})
	a.submit()
}

func wobChoose(a *Agent) {
	a.Fill(a.Find(reading.Match{Role: "combobox"}), a.between("Select ", " from the list"))
	a.submit()
}

// wobDate works the calendar of a widget library.
func wobDate(a *Agent) {
	date := strings.Split(a.between("Select ", " as the date"), "/")
	if len(date) != 3 {
		a.Fail("no date in the task")
		return
	}
	a.Click(a.Find(reading.Match{Role: "textbox"}))
	a.Look()
	want := months[(number(date[0])+11)%12] + " " + date[2]
	a.Repeat(14, func() bool {
		text := a.Root().Text()
		if strings.Contains(text, want) {
			return true
		}
		a.Click(a.saying("Prev"))
		a.Look()
		return false
	})
	a.Click(a.Named("link", strings.TrimLeft(date[1], "0")))
	a.submit()
}

func wobEnterDate(a *Agent) {
	date := strings.Split(a.between("Enter ", " as the date"), "/")
	if len(date) != 3 {
		a.Fail("no date in the task")
		return
	}
	a.Fill(a.Find(reading.Match{Role: "textbox"}), date[2]+"-"+date[0]+"-"+date[1])
	a.submit()
}

func wobEnterTime(a *Agent) {
	text := strings.ReplaceAll(a.between("Enter ", " as the time"), "\u202f", " ")
	clock, half, _ := strings.Cut(text, " ")
	hour, minute, _ := strings.Cut(clock, ":")
	h := number(hour) % 12
	if half == "PM" {
		h += 12
	}
	a.Fill(a.Find(reading.Match{Role: "textbox"}), string(rune('0'+h/10))+string(rune('0'+h%10))+":"+minute)
	a.submit()
}

func wobText(a *Agent) {
	a.Fill(a.Find(reading.Match{Role: "textbox"}), a.Q(0))
	a.submit()
}

func wobCase(a *Agent) {
	text := strings.ToLower(a.Q(0))
	if a.Says("all upper case") {
		text = strings.ToUpper(text)
	}
	a.Fill(a.Find(reading.Match{Role: "textbox"}), text)
	a.submit()
}

func wobPassword(a *Agent) {
	for _, n := range a.All(reading.Match{Role: "textbox"}) {
		a.Fill(n, a.Q(0))
	}
	a.submit()
}

// places in words, as tasks count them.
var ordinals = []string{"1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th"}

// nth is the place that the task names, from 0; 0 when it names none.
func (a *Agent) nth() int {
	return max(0, slices.IndexFunc(ordinals, a.Says))
}

func wobFocus(a *Agent) {
	if boxes := a.All(reading.Match{Role: "textbox"}); a.nth() < len(boxes) {
		a.Click(boxes[a.nth()])
	} else {
		a.Fail("only %d text boxes", len(boxes))
	}
}
