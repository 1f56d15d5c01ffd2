package agents

import (
	"strconv"
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// controls are tasks about one kind of control each.
func controls() []Task {
	return []Task{
		{Name: "dates", Run: dates},
		{Name: "calendar", Run: calendar},
		{Name: "clock", Run: clock},
		{Name: "range", Run: ranges},
		{Name: "slider", Run: slider},
		{Name: "stepper", Run: stepper},
		{Name: "combobox", Run: combobox},
		{Name: "checkboxes", Run: checkboxes},
		{Name: "labels", Run: labels},
		{Name: "switches", Run: switches},
		{Name: "multiselect", Run: multiselect},
		{Name: "listbox", Run: listbox},
		{Name: "colour", Run: colour},
		{Name: "rating", Run: rating},
		{Name: "rich", Run: rich},
		{Name: "chips", Run: chips},
		{Name: "calculator", Run: calculator},
		{Name: "upload", Run: upload},
		{Name: "undo", Run: undo},
	}
}

func number(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s)) // a reader takes what is not a number for none
	return n
}

func dates(a *Agent) {
	for i, name := range []string{"Date", "Time", "Reminder", "Billing month", "Delivery week"} {
		a.Put(name, a.Q(i))
	}
	a.Push("Save")
}

var months = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}

// ordinal makes "June 2027" comparable.
func ordinal(month string) int {
	name, year, _ := strings.Cut(month, " ")
	for i, m := range months {
		if m == name {
			return number(year)*12 + i
		}
	}
	return 0
}

func calendar(a *Agent) {
	a.Push("Open calendar")
	a.Look()
	want := a.Q(1)
	a.Repeat(24, func() bool {
		shown := a.Find(reading.Match{Role: "grid"}).Name
		switch d := ordinal(want) - ordinal(shown); {
		case ordinal(shown) == 0:
			a.Fail("the grid does not say its month: %q", shown)
		case d > 0:
			a.Push("Next month")
		case d < 0:
			a.Push("Previous month")
		default:
			return true
		}
		a.Look()
		return false
	})
	a.Click(a.Named("gridcell", a.Q(0)))
	a.Push("Book")
}

func clock(a *Agent) {
	a.Push("Set the alarm")
	a.Look()
	for i, list := range []string{"Hour", "Minute"} {
		a.Click(a.FindIn(a.Named("listbox", list), reading.Match{Role: "option", Name: a.Q(i)}))
	}
	a.Push("Set")
	a.Push("Save alarm")
}

func ranges(a *Agent) {
	a.Put("Volume", a.Q(0))
	a.Put("Lowest price", a.Q(1))
	a.Put("Highest price", a.Q(2))
	a.Push("Save")
}

func slider(a *Agent) {
	want := number(a.Q(0))
	thumb := a.Named("slider", "Temperature")
	now := number(strings.TrimSuffix(thumb.Value, " degrees"))
	if now == 0 {
		a.Fail("the slider does not say its value: %q", thumb.Value)
	}
	for now < want && a.err == nil {
		a.PressOn(thumb, "ArrowRight")
		now++
	}
	for now > want && a.err == nil {
		a.PressOn(thumb, "ArrowLeft")
		now--
	}
	a.Push("Keep")
}

func stepper(a *Agent) {
	for i, kind := range []string{"Adults", "Children", "Dogs"} {
		n := a.Named("spinbutton", kind)
		for now := number(n.Value); now < number(a.Q(i)) && a.err == nil; now++ {
			if i == 2 {
				a.PressOn(n, "ArrowUp")
			} else {
				a.Push("More " + kind)
			}
		}
	}
	a.Push("Reserve")
}

func combobox(a *Agent) {
	a.suggestion("City", a.Q(0))
	a.Push("Go")
}

func checkboxes(a *Agent) {
	want := map[string]bool{}
	for _, q := range a.Quotes() {
		want[q] = true
	}
	for _, n := range a.All(reading.Match{Role: "checkbox"}) {
		if n.Has("checked") != want[n.Name] {
			a.Click(n)
		}
	}
	a.Push("Order")
}

func labels(a *Agent) {
	a.Put(a.Q(0), "true")
	a.Click(a.Named("checkbox", a.Q(1)))
	a.Put(a.Q(2), "true")
	a.Push("Continue")
}

func switches(a *Agent) {
	q := a.Quotes()
	for i := 0; i+1 < len(q); i += 2 {
		n := a.Named("switch", q[i])
		want := q[i+1] == "on"
		switch {
		case i%4 == 0: // as a value
			a.Fill(n, strconv.FormatBool(want))
		case n.Has("checked") != want: // by hand
			a.Click(n)
		}
	}
	a.Push("Save")
}

func multiselect(a *Agent) {
	q := a.Quotes()
	if len(q) < 3 {
		a.Fail("the task names too little")
		return
	}
	a.FillHow(a.Field("Groups"), Fill{Values: q[:len(q)-1]})
	a.Put("Leader", q[len(q)-1])
	a.Push("Save groups")
}

func listbox(a *Agent) {
	for _, q := range a.Quotes() {
		a.Click(a.Named("option", q))
	}
	a.Push("Apply")
}

func colour(a *Agent) {
	a.Put("Wall", a.Q(0))
	a.Click(a.Named("radio", a.Q(1)))
	a.Push("Mix")
}

func rating(a *Agent) {
	for _, n := range a.All(reading.Match{Role: "radio"}) {
		if strings.HasPrefix(n.Name, a.Q(0)+" ") {
			a.Click(n)
		}
	}
	a.Put("Words", a.Q(1))
	a.Push("Publish")
}

func rich(a *Agent) {
	note := a.Field("Note")
	a.Fill(note, a.Q(0))
	a.PressOn(note, "Control+A")
	a.Push("Bold")
	a.Push("Save note")
}

func chips(a *Agent) {
	q := a.Quotes()
	a.Push("Remove " + q[0])
	for _, fresh := range q[1:] {
		a.FillHow(a.Field("New label"), Fill{Value: fresh, Submit: true})
	}
	a.Push("Save labels")
}

func calculator(a *Agent) {
	enter := func(digits string) {
		for _, d := range digits {
			a.Push(string(d))
		}
	}
	enter(a.Q(0))
	a.Push("plus")
	enter(a.Q(1))
	a.Push("equals")
	a.Push("times")
	enter(a.Q(3))
	a.ClickHow(a.Named("button", "equals"), Click{See: true})
	a.Put("Result", a.FindIn(a.News(), reading.Match{Role: "status", Name: "Display"}).Value)
	a.Push("Hand in")
}

// stored finds the artifact that an answer names.
func stored(answer string) string {
	_, after, ok := strings.Cut(answer, "/artifacts/")
	if !ok {
		return ""
	}
	return strings.FieldsFunc(after+" ", func(r rune) bool { return strings.ContainsRune(" .\n\"", r) })[0]
}

func upload(a *Agent) {
	a.Follow("Get the sheet")
	id := stored(a.Said())
	if id == "" {
		a.Fail("the answer names no stored file: %q", a.Said())
		return
	}
	a.FillHow(a.Field("Sheet"), Fill{Files: []string{id}})
	a.Put("Remark", a.Q(0))
	a.Push("Hand in")
}

func undo(a *Agent) {
	draft := a.Field("Draft")
	for _, key := range []string{"Control+A", "Delete", "Control+Z", "Control+S"} {
		a.PressOn(draft, key)
	}
}
