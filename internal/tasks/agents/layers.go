package agents

import (
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// layers are tasks where something lies over the page, or comes and goes.
func layers() []Task {
	return []Task{
		{Name: "modal", Run: modal},
		{Name: "layer", Run: layer},
		{Name: "consent", Run: consent},
		{Name: "dialogs-confirm", Run: dialogConfirm},
		{Name: "dialogs-refuse", Run: dialogRefuse},
		{Name: "dialogs-prompt", Run: dialogPrompt},
		{Name: "dialogs-alert", Run: dialogAlert},
		{Name: "leave", Run: leave},
		{Name: "menu", Run: menu},
		{Name: "hover", Run: hover},
		{Name: "context", Run: contextMenu},
		{Name: "palette", Run: palette},
		{Name: "tooltip", Run: tooltip},
		{Name: "toast", Run: toast},
		{Name: "moving", Run: moving},
		{Name: "spinner", Run: spinner},
		{Name: "late", Run: late},
		{Name: "poll", Run: poll},
	}
}

func modal(a *Agent) {
	a.Push("Add a person")
	a.Look()
	box := a.Named("dialog", "New person")
	a.Fill(a.FindIn(box, reading.Match{Role: fields, Name: "Name"}), a.Q(0))
	a.Fill(a.FindIn(box, reading.Match{Role: fields, Name: "City"}), a.Q(1))
	a.Click(a.button(box, "Add"))
}

func layer(a *Agent) {
	a.Click(a.button(a.Find(reading.Match{Role: "listitem", Has: []string{a.Q(0)}}), "Close"))
	a.Look()
	box := a.Find(reading.Match{Role: "dialog"})
	_, after, _ := strings.Cut(box.Text(), "Type the word ")
	word, _, _ := strings.Cut(after, " ")
	a.Fill(a.FindIn(box, reading.Match{Role: "textbox"}), word)
	a.Click(a.button(box, "Close ticket"))
}

func consent(a *Agent) {
	a.Until(reading.Match{Role: "dialog", Name: "Cookies"})
	a.Push("Options")
	a.Look()
	for _, n := range a.All(reading.Match{Role: "checkbox", Is: "checked"}) {
		a.Click(n)
	}
	a.Push("Save choice")
	a.Push("Read more")
}

// answer presses a button of the dialog that is open.
func (a *Agent) answer(ok bool) {
	a.Look()
	box := a.Find(reading.Match{Role: "dialog|alertdialog"})
	buttons := box.FindAll(reading.Match{Role: "button", Ref: true})
	switch {
	case len(buttons) == 0:
		a.Fail("the dialog has no buttons: %q", box.Text())
	case ok:
		a.Click(buttons[0])
	default:
		a.Click(buttons[len(buttons)-1])
	}
}

func dialogConfirm(a *Agent) {
	a.Push("Delete " + a.Q(0))
	a.answer(true)
}

func dialogRefuse(a *Agent) {
	a.Push("Delete " + a.Q(0))
	a.answer(false)
}

func dialogPrompt(a *Agent) {
	a.Push("Rename " + a.Q(0))
	a.Look()
	a.Fill(a.FindIn(a.Find(reading.Match{Role: "dialog|alertdialog"}), reading.Match{Role: "textbox"}), a.Q(1))
	a.answer(true)
}

func dialogAlert(a *Agent) {
	a.Push("Info " + a.Q(1))
	a.answer(true)
	a.Look()
	if a.Maybe(reading.Match{Has: []string{"Shown."}}) == nil {
		a.Fail("the page did not go on after its message")
	}
	a.Push("Noted")
}

func leave(a *Agent) {
	a.Put("Draft", a.Q(0))
	a.Follow("Away")
	a.Look()
	if box := a.Maybe(reading.Match{Role: "dialog|alertdialog"}); box != nil {
		a.answer(true) // else the tools answered it, as they may
	}
}

func menu(a *Agent) {
	a.Push(a.Q(0))
	a.Look()
	a.Click(a.Named("menuitem", a.Q(1)))
	a.Look()
	a.Click(a.Named("menuitem", a.Q(2)))
}

func hover(a *Agent) {
	a.Follow(a.Q(1))
	a.Look()
	a.Follow(a.Q(0))
}

func contextMenu(a *Agent) {
	a.ClickHow(a.Named("button", a.Q(0)), Click{Button: "right"})
	a.Look()
	a.Click(a.Named("menuitem", a.Q(1)))
}

func palette(a *Agent) {
	a.Press("Control+K")
	a.Look()
	a.FillHow(a.Field("Command"), Fill{Value: a.Q(0)})
	a.Press("Enter")
}

func tooltip(a *Agent) {
	a.Push("About " + a.Q(0))
	a.Look()
	tip := a.Find(reading.Match{Role: "tooltip"}).Text()
	_, after, _ := strings.Cut(tip, "The fee is ")
	fee, _, _ := strings.Cut(after, " ")
	a.Put("Fee", fee)
	a.Push("Answer")
}

func toast(a *Agent) {
	a.Push("Delete " + a.Q(0))
	a.Look()
	a.Push("Delete " + a.Q(1))
	a.Look()
	a.Push("Undo")
}

func moving(a *Agent) {
	a.Push("Open the drawer")
	a.Look()
	a.Push("Take it")
	a.Push("Finish")
}

func spinner(a *Agent) {
	for _, part := range a.Quotes() {
		a.Push("Save " + part)
	}
	a.Until(reading.Match{Has: []string{"All as asked"}})
}

func late(a *Agent) {
	a.Push("Run the report")
	a.Until(reading.Match{Role: "textbox", Name: "Whole number"})
	_, after, _ := strings.Cut(a.Root().Text(), "Number: ")
	whole, _, _ := strings.Cut(after, ".")
	a.Put("Whole number", whole)
	a.Push("Check")
}

func poll(a *Agent) {
	a.Push("Stop the ticker")
	a.Push("Sign off")
}
