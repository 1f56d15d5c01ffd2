package agents

import (
	"regexp"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// apps are tasks in small applications: mail, a feed, a shop, a board.
func apps() []Task {
	return []Task{
		{Name: "mail-reply", Run: mailReply},
		{Name: "mail-forward", Run: mailForward},
		{Name: "mail-delete", Run: mailDelete},
		{Name: "mail-star", Run: mailStar},
		{Name: "social-like", Run: socialLike},
		{Name: "social-reply", Run: socialReply},
		{Name: "social-mute", Run: socialMute},
		{Name: "cart", Run: cart},
		{Name: "week", Run: week},
		{Name: "chat", Run: chat},
		{Name: "kanban", Run: kanban},
		{Name: "grid", Run: sheet},
		{Name: "rename", Run: rename},
		{Name: "radiokeys", Run: steer},
	}
}

func (a *Agent) mail() *reading.Node {
	return a.Find(reading.Match{Role: "listitem", Has: []string{a.Q(0)}})
}

func (a *Agent) openMail() {
	a.Click(a.FindIn(a.mail(), reading.Match{Role: "link"}))
	a.Look()
}

func mailReply(a *Agent) {
	a.openMail()
	a.Push("Reply")
	a.Look()
	a.Put("Text", a.Q(1))
	a.Push("Send")
}

func mailForward(a *Agent) {
	a.openMail()
	a.Push("Forward")
	a.Look()
	a.Put("To", a.Q(1))
	a.Push("Send")
}

func mailDelete(a *Agent) {
	a.openMail()
	a.Push("Delete")
}

func mailStar(a *Agent) { a.Click(a.button(a.mail(), "Star")) }

func (a *Agent) post() *reading.Node { return a.Named("article", "Post of "+a.Q(0)) }

func socialLike(a *Agent) {
	for _, n := range a.post().FindAll(reading.Match{Role: "button", Not: "pressed"}) {
		if regexp.MustCompile(`^Like \(\d+\)$`).MatchString(n.Name) {
			a.Click(n)
		}
	}
}

func socialReply(a *Agent) {
	a.Click(a.button(a.post(), "Reply"))
	a.Look()
	a.Fill(a.FindIn(a.post(), reading.Match{Role: "textbox"}), a.Q(1))
	a.Click(a.button(a.post(), "Post"))
}

func socialMute(a *Agent) {
	a.Click(a.button(a.post(), "More"))
	a.Look()
	a.Click(a.FindIn(a.post(), reading.Match{Role: "menuitem", Name: "Mute"}))
}

func cart(a *Agent) {
	a.Push("Add " + a.Q(1))
	a.Push("Add " + a.Q(2))
	a.Look()
	a.Put("Number of "+a.Q(1), a.Q(0))
	a.FillHow(a.Field("Voucher"), Fill{Value: a.Q(3)})
	a.ClickHow(a.Named("button", "Use voucher"), Click{See: true})
	if a.News().Find(reading.Match{Has: []string{"10 % off"}}) == nil {
		a.Fail("the voucher was not taken by the time the click returned")
	}
	a.Push("Pay")
}

func week(a *Agent) {
	a.Click(a.Named("cell|gridcell", a.Q(1)+" "+a.Q(2)))
	a.Look()
	box := a.Named("dialog", "New event")
	a.Fill(a.FindIn(box, reading.Match{Role: "textbox", Name: "Title"}), a.Q(0))
	a.Fill(a.FindIn(box, reading.Match{Role: "combobox", Name: "Length"}), a.Q(3))
	if a.Says("every week") {
		a.Fill(a.FindIn(box, reading.Match{Role: "checkbox"}), "true")
	}
	a.Click(a.button(box, "Create"))
}

var codeSaid = regexp.MustCompile(`Your code is ([A-Z0-9]+)\.`)

func chat(a *Agent) {
	a.FillHow(a.Field("Message"), Fill{Value: "My code please", Submit: true, See: true})
	m := codeSaid.FindStringSubmatch(a.News().Text())
	if m == nil {
		a.Fail("the answer was not there when the call returned: %q", a.News().Text())
		return
	}
	a.FillHow(a.Field("Message"), Fill{Value: m[1], Submit: true})
}

func kanban(a *Agent) {
	a.Repeat(4, func() bool {
		lane := a.Named("region", a.Q(1))
		card := a.Named("article", a.Q(0))
		for up := card.Parent; up != nil; up = up.Parent {
			if up == lane {
				return true
			}
		}
		a.Click(a.button(card, "Right"))
		a.Look()
		return false
	})
	a.Until(reading.Match{Has: []string{"All as asked"}})
}

func (a *Agent) edit(cell *reading.Node, value string, how func(*reading.Node)) {
	how(cell)
	a.Look()
	a.FillHow(a.Field("Cell value"), Fill{Value: value, Submit: true})
	a.Look()
}

func sheet(a *Agent) {
	debt := a.row(a.Q(0)).FindAll(reading.Match{Role: "gridcell"})
	if len(debt) != 3 {
		a.Fail("the row has %d cells", len(debt))
		return
	}
	a.edit(debt[2], a.Q(1), func(n *reading.Node) { a.PressOn(n, "Enter") })
	city := a.row(a.Q(2)).FindAll(reading.Match{Role: "gridcell"})
	if len(city) != 3 {
		a.Fail("the row has %d cells", len(city))
		return
	}
	a.edit(city[1], a.Q(3), func(n *reading.Node) { a.ClickHow(n, Click{Count: 2}) })
	a.Push("Save sheet")
}

func rename(a *Agent) {
	item := a.Find(reading.Match{Role: "listitem", Has: []string{a.Q(0)}})
	n := item
	if n.Ref == "" {
		n = a.FindIn(item, reading.Match{Ref: true})
	}
	a.ClickHow(n, Click{Count: 2})
	a.Look()
	a.FillHow(a.Field("New name"), Fill{Value: a.Q(1), Submit: true})
}

func steer(a *Agent) {
	pad := a.Named("application", "Game board")
	a.Click(pad)
	move := func(n int, more, less string) {
		for ; n > 0 && a.err == nil; n-- {
			a.Press(more)
		}
		for ; n < 0 && a.err == nil; n++ {
			a.Press(less)
		}
	}
	move(number(a.Q(0)), "ArrowRight", "ArrowLeft")
	move(number(a.Q(1)), "ArrowUp", "ArrowDown")
	a.Press("Enter")
}
