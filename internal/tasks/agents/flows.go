package agents

import (
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// flows are tasks about how pages behave: what they load, cover, scale, ask and
// do by themselves.
func flows() []Task {
	return []Task{
		{Name: "scaled", Run: scaled},
		{Name: "glass", Run: glass},
		{Name: "editor", Run: editor},
		{Name: "post", Run: postForm},
		{Name: "later", Run: later},
		{Name: "history", Run: history},
		{Name: "written", Run: written},
		{Name: "pointer", Run: pointer},
		{Name: "shortcuts", Run: shortcuts},
		{Name: "keypad", Run: keypad},
		{Name: "wide", Run: wide},
		{Name: "busy", Run: busy},
		{Name: "blob", Run: blob},
		{Name: "permission", Run: permission},
		{Name: "alerts", Run: alerts},
		{Name: "taborder", Run: tabOrder},
		{Name: "popover", Run: popover},
		{Name: "twins", Run: twins},
		{Name: "jumpy", Run: jumpy},
		{Name: "painted", Run: painted},
		{Name: "pieces", Run: pieces},
		{Name: "bare", Run: bare},
		{Name: "unread", Run: unread},
	}
}

func scaled(a *Agent) {
	a.Push(a.Q(0))
	frame := a.Until(reading.Match{Role: "iframe", Has: []string{a.Q(1)}})
	a.Click(a.button(a.again(frame), a.Q(1)))
}

func glass(a *Agent) {
	a.Push("First")
	if !a.Refused("not_actionable") {
		a.Fail("a click through the veil was not refused: %q", a.Said())
	}
	a.Push("Take the veil away")
	a.Push("First")
	a.Push("Second")
}

func editor(a *Agent) {
	a.Put("Body", a.Q(0))
	a.Push("Publish")
}

func postForm(a *Agent) {
	a.Put("Name", a.Q(0))
	a.Push("Send order")
	a.Look()
	_, after, _ := strings.Cut(a.Root().Text(), "Your order number is ")
	number, _, _ := strings.Cut(after, ".")
	a.Put("Order number", number)
	a.Push("Check")
}

func later(a *Agent) {
	a.Push("Go on")
	a.Click(a.Until(reading.Match{Role: "button", Name: a.Q(1)}))
}

func history(a *Agent) {
	var signs strings.Builder
	for i := range 3 {
		_, after, _ := strings.Cut(a.Root().Text(), "The sign is ")
		sign, _, _ := strings.Cut(after, ".")
		signs.WriteString(sign)
		if i < 2 {
			a.Follow("Next station")
			a.Look()
		}
	}
	a.Go("back")
	a.Go("back")
	a.Put("Signs", signs.String())
	a.Push("Hand in")
}

func written(a *Agent) {
	a.Until(reading.Match{Role: "textbox", Name: "Word"})
	a.Put("Word", a.Q(0))
	a.Put("Thing", a.Q(1))
	a.Push("Open terms")
	a.Look()
	a.Push("Agree")
}

func pointer(a *Agent) {
	a.Click(a.saying(a.Q(0)))
	a.Push("Things")
	a.Look()
	a.Click(a.Named("option", a.Q(1)))
}

func shortcuts(a *Agent) {
	for _, key := range a.Quotes() {
		a.Press(key)
	}
}

func keypad(a *Agent) {
	for _, digit := range a.Q(0) {
		a.Push(string(digit))
		a.Look() // the digits changed places
	}
	a.Push("Enter PIN")
}

func wide(a *Agent) {
	a.Click(a.Named("checkbox", a.Q(1)+" "+a.Q(0)))
	a.Click(a.Named("checkbox", a.Q(3)+" "+a.Q(2)))
}

func busy(a *Agent) {
	a.Push("Compute")
	a.Look()
	_, after, _ := strings.Cut(a.Root().Text(), "The result is ")
	result, _, _ := strings.Cut(after, ".")
	a.Put("Result", result)
	a.Push("Hand in")
}

func blob(a *Agent) {
	a.Push("Export")
	m := fileName.FindStringSubmatch(a.Said())
	if m == nil {
		a.Fail("the answer names no file: %q", a.Said())
		return
	}
	a.Put("File name", m[1])
	a.Push("Answer")
}

func permission(a *Agent) {
	for i, name := range a.Quotes()[:3] {
		a.Push(name)
		a.Repeat(20, func() bool {
			a.Look()
			return strings.Count(a.Root().Text(), "refused") > i
		})
	}
	a.Push("Hand in")
}

func alerts(a *Agent) {
	a.answer(true) // the welcome
	a.Look()
	a.Push("Begin")
	a.answer(true)
	a.answer(a.Says("accept the second"))
	a.Look()
	a.Fill(a.FindIn(a.Find(reading.Match{Role: "dialog|alertdialog"}), reading.Match{Role: "textbox"}), a.Q(1))
	a.answer(true)
}

func tabOrder(a *Agent) {
	a.Press("Tab")
	a.typeKeys(a.Q(0))
	a.Press("Tab")
	a.typeKeys(a.Q(1))
	a.Press("Tab")
	a.Press("Space")
	a.Press("Tab")
	for range map[string]int{"East": 1, "South": 2, "West": 3}[a.Q(2)] {
		a.Press("ArrowDown")
	}
	a.Press("Tab")
	a.Press("Enter")
}

// typeKeys types into whatever has the focus.
func (a *Agent) typeKeys(text string) {
	if a.err != nil {
		return
	}
	answer, err := a.tools.Type(a.ctx, "", text)
	a.take("typing", answer, err)
}

func popover(a *Agent) {
	a.Push("Filters")
	a.Look()
	a.Put("Only new", "true")
	a.Put("Most", a.Q(3))
	a.Push("Apply filters")
	a.Push("Shipping")
	a.Look()
	a.Click(a.Named("radio", a.Q(5)))
	a.Push("Gift")
	a.Look()
	a.Put("Wrap it", "true")
	a.Push("Finish")
}

func twins(a *Agent) {
	plan := a.Named("region", a.Q(0))
	a.Click(a.button(plan, "Cancel"))
	a.Look()
	a.Click(a.button(a.Named("region", a.Q(0)), "Yes, cancel"))
}

func jumpy(a *Agent) {
	a.Put("Mail", a.Q(0))
	a.Put("Street", a.Q(1))
	if a.Refused("stale_ref") || a.Refused("tool_failed") || a.Refused("not_actionable") { // the page built the field anew
		a.Look()
		a.Put("Street", a.Q(1))
	}
	a.Put("Age", a.Q(2))
	a.Put("Remark", a.Q(3))
	a.Push("Send")
}

func painted(a *Agent) {
	at := strings.Index("ABCDEFGHIJKL", a.Q(0))
	a.ClickHow(a.Find(reading.Match{Role: "img|canvas"}), Click{At: &Point{X: at%4*100 + 50, Y: at/4*100 + 50}})
}

func pieces(a *Agent) {
	for n := range a.page.Root.All() {
		if !strings.Contains(n.Text(), "Note "+a.Q(0)) || strings.Count(n.Text(), "Note ") > 1 {
			continue
		}
		for piece := range n.All() {
			if piece.Ref != "" && piece.Text() == a.Q(1) {
				a.Click(piece)
				return
			}
		}
	}
	a.Fail("on the note %q nothing to press says %q", a.Q(0), a.Q(1))
}

func bare(a *Agent) {
	want, now := a.Q(0), ""
	line := a.Find(reading.Match{Role: "paragraph", Has: []string{"Earlier"}}).Text()
	for _, m := range months {
		if strings.Contains(line, m) {
			now = m
		}
	}
	by := ordinal(want+" 0") - ordinal(now+" 0")
	for ; by > 0; by-- {
		a.Click(a.saying("Later"))
	}
	for ; by < 0; by++ {
		a.Click(a.saying("Earlier"))
	}
	a.Push("Take this month")
}

func unread(a *Agent) {
	for _, name := range a.Quotes() {
		a.Push("Like " + name)
	}
}
