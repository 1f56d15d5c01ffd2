package agents

import "github.com/reins-browser/reins/internal/tasks/reading"

// wobMail opens the mail of a person and does what the task says. Icons without
// words are told by their place, as a reader of the outline would.
func wobMail(a *Agent) {
	sender := a.wordAfter("email by ")
	for _, n := range a.All(reading.Match{Role: "generic", Ref: true, Has: []string{sender}}) {
		if len(n.Kids) > 0 && n.Kids[0].Text() == sender {
			a.Click(n)
			a.Look()
			break
		}
	}
	const trash, star, send = 1, 2, 1 // the first icon is the one to go back
	switch {
	case a.Says("trash icon"):
		a.icon(trash)
	case a.Says("star icon"):
		a.icon(star)
	case a.Says("forward that email"):
		a.Click(a.saying("Forward"))
		a.Look()
		a.Fill(a.Find(reading.Match{Role: "textbox"}), a.between("forward that email to ", "."))
		a.icon(send)
	default:
		a.Click(a.saying("Reply"))
		a.Look()
		a.Fill(a.Find(reading.Match{Role: "textbox"}), a.Q(0))
		a.icon(send)
	}
}

// wordAfter is the word behind a piece of the task.
func (a *Agent) wordAfter(before string) string { return a.between(before, " ") }

// icon clicks the i-th thing on the page that can be clicked and says nothing.
func (a *Agent) icon(i int) {
	var icons []*reading.Node
	for _, n := range a.All(reading.Match{Role: "generic", Ref: true}) {
		if n.Text() == "" {
			icons = append(icons, n)
		}
	}
	if i >= len(icons) {
		a.Fail("only %d icons", len(icons))
		return
	}
	a.Click(icons[i])
}
