package agents

import (
	"fmt"
	"strings"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// forms are tasks of filling in and sending.
func forms() []Task {
	return []Task{
		{Name: "login", Run: login},
		{Name: "login2", Run: loginTwice},
		{Name: "retry", Run: retry},
		{Name: "register", Run: register},
		{Name: "contact", Run: contact},
		{Name: "flight", Run: flight},
		{Name: "wizard", Run: wizard},
		{Name: "validate", Run: validate},
		{Name: "mask", Run: mask},
		{Name: "controlled", Run: controlled},
		{Name: "cascade", Run: cascade},
		{Name: "otp", Run: otp},
		{Name: "copy", Run: copyText},
		{Name: "survey", Run: survey},
		{Name: "quiz", Run: quiz},
		{Name: "language", Run: language},
		{Name: "trusted", Run: trusted},
	}
}

func login(a *Agent) {
	a.Put("User name", a.Q(0))
	a.Put("Password", a.Q(1))
	if a.Says("stay signed in") {
		a.Put("Stay signed in", "true")
	}
	a.Push("Sign in")
}

func loginTwice(a *Agent) {
	a.Put("User", a.Q(0))
	a.Put("Password", a.Q(1))
	a.Push("Continue")
	a.Look()
	a.FillHow(a.Field("PIN"), Fill{Value: a.Q(2), Submit: true})
}

func retry(a *Agent) {
	a.Put("Name", a.Q(0))
	a.Put("Passcode", a.Q(1))
	a.ClickHow(a.Named("button", "Enter"), Click{See: true})
	alert := a.FindIn(a.News(), reading.Match{Role: "alert"}).Text()
	m := inQuotes.FindStringSubmatch(alert)
	if m == nil {
		a.Fail("the alert names nothing to add: %q", alert)
		return
	}
	a.Put("Passcode", a.Q(1)+m[1])
	a.Push("Enter")
}

func register(a *Agent) {
	a.Put("E-mail", a.Q(0))
	rules := a.Named("list", "Password rules").Text()
	var least int
	_, after, _ := strings.Cut(rules, "At least ")
	if _, err := fmt.Sscanf(after, "%d", &least); err != nil {
		a.Fail("the rules name no length: %q", rules)
		return
	}
	m := inQuotes.FindStringSubmatch(rules)
	if m == nil {
		a.Fail("the rules name no sign: %q", rules)
		return
	}
	password := "Pa7" + m[1] + strings.Repeat("x", least)
	a.Put("Password", password)
	a.Put("Password again", password)
	a.Put("I accept the terms", "true")
	a.Look()
	a.Click(a.Find(reading.Match{Role: "button", Name: "Create account", Not: "disabled"}))
}

func contact(a *Agent) {
	a.Put("Name", a.Q(0))
	a.Put("Phone", a.Q(1))
	a.Put("Topic", a.Q(2))
	a.Click(a.Named("radio", a.Q(3)))
	a.Put("Message", a.Q(4))
	a.Click(a.Named("checkbox", "Send me a copy"))
	a.Push("Send")
}

// suggestion fills a combo box and takes the option of that name.
func (a *Agent) suggestion(field, value string) {
	a.Put(field, value)
	a.Look()
	a.Click(a.Named("option", value))
}

func flight(a *Agent) {
	a.suggestion("From", a.Q(0))
	a.suggestion("To", a.Q(1))
	a.Put("Departure", a.Q(2))
	n := number(a.Q(3))
	for range n - 1 {
		a.Push("One passenger more")
	}
	a.Click(a.Named("radio", a.Q(4)))
	a.Push("Search flights")
	a.Look()
	best, price := "", 0
	for _, n := range a.FindIn(a.Named("region", "Flights found"), reading.Match{Role: "list"}).FindAll(reading.Match{Role: "listitem"}) {
		name, rest, _ := strings.Cut(n.Text(), ", ")
		if p := number(strings.Fields(rest + " 0")[0]); best == "" || p < price {
			best, price = name, p
		}
	}
	a.Push("Book " + best)
}

func wizard(a *Agent) {
	a.Click(a.Named("radio", a.Q(0)))
	a.Push("Next")
	a.Look()
	a.Put("Worth in euro", a.Q(1))
	a.Put("From", a.Q(2))
	a.Push("Next")
	a.Look()
	a.FillHow(a.Field("Full name"), Fill{Value: a.Q(3), Submit: true})
	a.Look()
	summary := a.Root().Text()
	for _, q := range a.Quotes() {
		if !strings.Contains(summary, q) {
			a.Fail("the summary does not hold %q", q)
		}
	}
	a.Push("Confirm")
}

func validate(a *Agent) {
	for _, name := range a.Quotes() {
		a.FillHow(a.Field("Name"), Fill{Value: name, See: true})
		if n := a.News().Find(reading.Match{Role: "button", Name: "Reserve", Not: "disabled"}); n != nil {
			a.Click(n)
			return
		}
	}
	a.Fail("no name is free")
}

func mask(a *Agent) {
	a.Put("Amount", a.Q(0))
	a.Put("Phone", a.Q(1))
	a.Put("Expiry", a.Q(2))
	a.Push("Transfer")
}

func controlled(a *Agent) {
	a.Put("Name", a.Q(0))
	a.Put("Article code", a.Q(1))
	a.Put("Quantity", a.Q(2))
	a.Look()
	a.Click(a.Find(reading.Match{Role: "button", Name: "Send order", Not: "disabled"}))
}

func cascade(a *Agent) {
	a.Put("Region", a.Q(2))
	a.Put("City", a.Q(1))
	a.Put("Branch", a.Q(0))
	a.Push("Show branch")
}

func otp(a *Agent) {
	for i, r := range a.Q(0) {
		a.Put(fmt.Sprintf("Digit %d", i+1), string(r))
	}
	a.Push("Confirm")
}

func copyText(a *Agent) {
	a.Put("Copy", a.Field("Source").Value)
	a.Push("Compare")
}

func survey(a *Agent) {
	q := a.Quotes()
	for i := 0; i+1 < len(q); i += 2 {
		group := a.Find(reading.Match{Role: "group", Name: "How often do you use: " + q[i] + "?"})
		a.Click(a.FindIn(group, reading.Match{Role: "radio", Name: q[i+1]}))
	}
	a.Push("Send answers")
}

func quiz(a *Agent) {
	type person struct{ name, city, thing string }
	var people []person
	for _, p := range a.Find(reading.Match{Role: "article"}).FindAll(reading.Match{Role: "paragraph|text"}) {
		name, rest, _ := strings.Cut(p.Text(), " lives in ")
		city, thing, ok := strings.Cut(rest, " and owns a ")
		if ok {
			people = append(people, person{name, city, strings.TrimSuffix(thing, ".")})
		}
	}
	for _, g := range a.All(reading.Match{Role: "group"}) {
		for _, p := range people {
			switch g.Name {
			case "Where does " + p.name + " live?":
				a.Click(a.FindIn(g, reading.Match{Role: "radio", Name: p.city}))
			case "Who owns a " + p.thing + "?":
				a.Click(a.FindIn(g, reading.Match{Role: "radio", Name: p.name}))
			case "What does the person from " + p.city + " own?":
				a.Click(a.FindIn(g, reading.Match{Role: "radio", Name: strings.ToUpper(p.thing[:1]) + p.thing[1:]}))
			}
		}
	}
	a.Push("Hand in")
}

func language(a *Agent) {
	a.Put("Language", a.Q(0))
	a.Look()
	a.Put(a.Q(2), a.Q(1))
	a.Push(a.Q(3))
}

func trusted(a *Agent) {
	a.Put("Phrase", a.Q(0))
	a.Push("Prove it")
}
