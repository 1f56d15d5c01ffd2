package agents

import (
	"regexp"
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// places are tasks where the thing is elsewhere: in a frame, a component's own
// tree, another tab, another route.
func places() []Task {
	return []Task{
		{Name: "frame-same", Run: frame},
		{Name: "frame-cross", Run: frame},
		{Name: "frame-nested", Run: frame},
		{Name: "reload", Run: reload},
		{Name: "shadow-open", Run: shadow},
		{Name: "shadow-closed", Run: shadow},
		{Name: "popup", Run: popup},
		{Name: "newtab", Run: newTab},
		{Name: "spa", Run: spa},
		{Name: "map", Run: pictureMap},
		{Name: "tabs", Run: tabPanels},
		{Name: "accordion", Run: accordion},
		{Name: "download", Run: download},
	}
}

func frame(a *Agent) {
	a.Until(reading.Match{Role: "button", Name: "Pay now"}) // frames load on their own
	a.Put("Card number", a.Q(0))
	a.Push("Pay now")
}

func reload(a *Agent) {
	q := a.Quotes()
	for i := 0; i+1 < len(q); i += 2 {
		a.Until(reading.Match{Role: "iframe", Has: []string{q[i]}})
		a.Put("Bid", q[i+1])
		a.Push("Bid")
	}
}

func shadow(a *Agent) {
	a.Put("Nickname", a.Q(0))
	a.Put("Colour", a.Q(1))
	a.Push("Save")
}

var tabLine = regexp.MustCompile(`(?m)^- (t[0-9]+): "([^"]*)"`)

// tabNamed finds the ID of the open tab with that title.
func (a *Agent) tabNamed(title string) string {
	a.Tabs("list", "")
	for _, m := range tabLine.FindAllStringSubmatch(a.said, -1) {
		if m[2] == title {
			return m[1]
		}
	}
	a.Fail("no tab has the title %q: %s", title, a.said)
	return ""
}

func popup(a *Agent) {
	a.Push("Show the code in a window")
	a.Look()
	_, after, ok := strings.Cut(a.Root().Text(), "The code is ")
	if !ok {
		a.Fail("the new window is not the selected one, or does not show its code")
	}
	code, _, _ := strings.Cut(after, " ")
	a.Tabs("close", a.tabNamed("Code"))
	a.Look()
	a.Put("Code", code)
	a.Push("Submit")
}

func newTab(a *Agent) {
	first := a.tabNamed("Recipes")
	a.Follow(a.Q(0))
	a.Look()
	items := a.All(reading.Match{Role: "listitem"})
	if len(items) < 3 {
		a.Fail("the recipe lists %d ingredients", len(items))
		return
	}
	third := items[2].Text()
	a.Tabs("select", first)
	a.Look()
	a.Put("Answer", third)
	a.Push("Answer")
}

func spa(a *Agent) {
	stock := func(name string) int {
		a.Click(a.Until(reading.Match{Role: "link", Name: name})) // the list is fetched
		a.Look()
		_, after, _ := strings.Cut(a.Root().Text(), "In stock: ")
		return number(strings.Fields(after + " 0")[0])
	}
	first := stock(a.Q(0))
	a.Go("back")
	second := stock(a.Q(1))
	if first > second {
		a.Follow("All goods")
		a.Look()
		a.Follow(a.Q(0))
		a.Look()
	}
	a.Push("Buy")
}

func pictureMap(a *Agent) {
	a.Push(a.Q(0))
	a.Follow(a.Q(1))
}

func tabPanels(a *Agent) {
	a.Click(a.Named("tab", a.Q(0)))
	a.Look()
	a.Click(a.Named("radio", a.Q(1)))
	a.PressOn(a.Named("tab", a.Q(0)), "ArrowRight")
	a.Look()
	if !a.Named("tab", a.Q(2)).Has("selected") {
		a.Fail("the tab %q is not shown as selected", a.Q(2))
	}
	a.Click(a.Named("radio", a.Q(3)))
	a.Push("Save settings")
}

// accordion reads only what each click changed.
func accordion(a *Agent) {
	var words []string
	for _, topic := range a.Quotes() {
		a.ClickHow(a.Named("button", topic), Click{See: true})
		news := a.News()
		if !a.FindIn(news, reading.Match{Role: "button", Name: topic}).Has("expanded") {
			a.Fail("%q is not shown as expanded", topic)
		}
		_, after, _ := strings.Cut(news.Text(), "The key word is ")
		word, _, _ := strings.Cut(after, ".")
		words = append(words, word)
	}
	a.Put("Answer", strings.Join(words, " "))
	a.Push("Hand in")
}

var fileName = regexp.MustCompile(`"([^"]+\.csv)"`)

func download(a *Agent) {
	a.Follow(a.Q(0))
	m := fileName.FindStringSubmatch(a.Said())
	if m == nil {
		a.Fail("the answer names no file: %q", a.Said())
		return
	}
	a.Put("File name", m[1])
	a.Push("Answer")
}
