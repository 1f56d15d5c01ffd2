package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/reins-browser/reins"
)

// controlInfo is what a control is (js/control.js: control).
type controlInfo struct {
	Gone     bool   `json:"gone"`
	Number   int    `json:"number"`
	Kind     string `json:"kind"`
	Type     string `json:"type"`
	Multiple bool   `json:"multiple"`
	Max      int    `json:"max"`
	Tiny     bool   `json:"tiny"`
	Checked  string `json:"checked"`
	Now      string `json:"now"`
	Role     string `json:"role"`
	Name     string `json:"name"`

	Inside     int    `json:"inside"` // the only control in what is none
	InsideRole string `json:"insideRole"`
	InsideName string `json:"insideName"`
}

// filling is one fill under way.
type filling struct {
	keying
	a    reins.Fill
	doc  *document
	info controlInfo
	end  time.Time // of the wait for the element
}

// fill sets a control to a value by what it is (ACT-3).
func (b *browser) fill(ctx context.Context, x *action, a reins.Fill) error {
	d, n, err := b.element(a.Ref)
	if err != nil {
		return err
	}
	f := &filling{keying: keying{b: b, x: x, bound: max(or(a.Settle, waitSettle), time.Second)}, a: a, doc: d, end: time.Now().Add(or(a.Actionable, waitActionable))}
	err = x.tab.within(ctx, mainAnswers, func(ctx context.Context) error {
		return d.eval(ctx, "n => reins.control(n)", &f.info, n)
	})
	if err != nil {
		return err
	}
	if f.info.Gone {
		return errStale(a.Ref)
	}
	x.reply.Result.Target = &reins.Target{Role: f.info.Role, Name: f.info.Name}
	set, err := f.setter()
	if err != nil {
		return err
	}
	b.showPlace(ctx, x, d, n)
	f.settling = b.settle(x)
	if err := set(ctx); err != nil {
		f.settling.stop()
		return err
	}
	return f.finishFill(ctx)
}

// setter chooses how a control of this kind is set, and refuses values of a
// form that it cannot take.
func (f *filling) setter() (func(context.Context) error, error) {
	v := f.a.Value
	if f.info.Inside != 0 {
		return nil, f.refuse("it is not a control that holds a value; fill the one in it, %s %.100q (ref %s)", f.info.InsideRole, f.info.InsideName, elementRef(f.doc.number, f.info.Inside))
	}
	if v.Artifacts != nil && f.info.Kind != "file" {
		return nil, f.refuse("files go to a file control")
	}
	if v.Options != nil && len(v.Options) != 1 && f.info.Kind != "select" && f.info.Kind != "list" {
		return nil, f.refuse("it takes one value")
	}
	if v.Checked != nil && f.info.Kind != "check" && f.info.Kind != "option" && f.info.Kind != "ariaoption" {
		return nil, f.refuse("it takes text, not true or false")
	}
	switch f.info.Kind {
	case "text":
		return f.setText, nil
	case "rich":
		return f.setRich, nil
	case "picked":
		return f.setPicked, nil
	case "select":
		return f.setSelect, nil
	case "check", "option", "ariaoption":
		return f.setChecked, nil
	case "file":
		return f.setFiles, nil
	case "combo", "list":
		return f.setOptions, nil
	case "slider":
		return f.setSlider, nil
	}
	return nil, f.refuse("it is not a control that holds a value; click it, or fill another element")
}

// refuse is invalid_input that quotes what the control takes.
func (f *filling) refuse(format string, args ...any) *reins.Error {
	return reins.Errorf(reins.CodeInvalidInput, "%s %.100q (ref %s) cannot be filled with that: %s", f.info.Role, f.info.Name, f.a.Ref, fmt.Sprintf(format, args...))
}

// unset is the failure of a control that did not keep its value.
func (f *filling) unset(holds string) *reins.Error {
	return reins.Errorf(reins.CodeToolFailed, "%s %.100q (ref %s) did not take the value: it holds %.200q now; take a new snapshot", f.info.Role, f.info.Name, f.a.Ref, holds)
}

// text is the value as one text.
func (f *filling) text() string {
	switch v := f.a.Value; {
	case v.Text != nil:
		return *v.Text
	case len(v.Options) == 1:
		return v.Options[0]
	}
	return ""
}

// left is what remains of the wait for the element.
func (f *filling) left() time.Duration { return max(0, time.Until(f.end)) }

// reach waits until the control can be acted on.
func (f *filling) reach(ctx context.Context, o readyOptions) error {
	s, err := f.b.locateElement(ctx, f.x, f.doc, f.info.Number, f.left(), o)
	if err != nil {
		return err
	}
	f.spot = s
	if f.before == nil {
		f.before = s.before()
	}
	return nil
}

// finishFill waits for what the value set off, makes sure that the control
// still has it, and presses Enter when asked to.
func (f *filling) finishFill(ctx context.Context) error {
	w := f.a.Waits
	if f.busy {
		return f.x.unsettled(f.settling)
	}
	if f.a.Submit {
		if err := f.submit(ctx); err != nil {
			f.settling.stop()
			return err
		}
	}
	if err := f.settling.finish(ctx, f.x, or(w.Settle, waitSettle), f.before, f.doc); err != nil {
		return err
	}
	switch {
	case !f.doc.current():
		f.x.changes().Value = "" // it went with its page
	case !f.a.Submit && !f.ended:
		if err := f.verify(ctx); err != nil {
			return err
		}
		if err := f.offered(ctx); err != nil {
			return err
		}
	}
	return f.b.look(ctx, f.x, w)
}

// submit presses Enter in the control, once it has its value.
func (f *filling) submit(ctx context.Context) error {
	if err := f.verify(ctx); err != nil {
		return err
	}
	if f.ended {
		return nil
	}
	if f.spot == nil {
		if err := f.reach(ctx, readyOptions{Soft: true}); err != nil {
			return err
		}
	}
	if err := f.focus(ctx, "focusOn"); err != nil {
		return err
	}
	if err := f.send(ctx, stroke(named["Enter"], 0)); err != nil {
		return err
	}
	g, err := f.landed(ctx)
	if err == nil && g.Blocked != nil && !g.Seen {
		err = reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) has its value, but lost the focus before Enter came; press Enter on it", f.info.Role, f.info.Name, f.a.Ref).With("reason", "focus")
	}
	return err
}

// verify makes sure that the control has what it was set to. A control that
// left the page with its value cannot be asked.
func (f *filling) verify(ctx context.Context) error {
	switch f.info.Kind {
	case "text", "rich", "picked":
		h, ok, err := f.holding(ctx)
		if err != nil || !ok {
			return err
		}
		if !f.equal(h) {
			return f.unset(h.Shown)
		}
		if f.info.Kind == "text" && h.Around == "" && h.Value != f.text() {
			f.x.note("the page shows the value in its own form")
		}
		f.x.changes().Value = bounded(strings.ReplaceAll(h.Shown, "\u2028", "\n"))
	}
	return nil
}

// offered tells of a list that opened below a text field and offers what the
// field holds: where only what is chosen counts, the text alone does nothing.
func (f *filling) offered(ctx context.Context) error {
	if f.info.Kind != "text" {
		return nil
	}
	var o *struct {
		Number int    `json:"number"`
		Name   string `json:"name"`
	}
	err := f.doc.eval(ctx, "n => reins.offered(n)", &o, f.info.Number)
	if err != nil && (errors.Is(err, errReplaced) || interrupted(err)) {
		return nil
	}
	if err == nil && o != nil {
		f.x.note("a list is open below it that offers %q [ref=%s]; if the text alone does nothing, click that", o.Name, elementRef(f.doc.number, o.Number))
	}
	return err
}

// held is what a control holds (js/control.js: holding).
type held struct {
	Gone   bool   `json:"gone"`
	Value  string `json:"value"`
	Text   string `json:"text"`
	Shown  string `json:"shown"`
	Secret bool   `json:"secret"`
	Around string `json:"around"`
}

func (f *filling) holding(ctx context.Context) (held, bool, error) {
	var h held
	err := f.doc.eval(ctx, "n => reins.holding(n)", &h, f.info.Number)
	if err != nil && (errors.Is(err, errReplaced) || interrupted(err)) {
		f.ended = true
		return h, false, nil
	}
	return h, err == nil && !h.Gone, err
}

// equal reports whether a control holds the value, leaving aside what a page
// may add to shape it: "4000 1234" for "40001234".
func (f *filling) equal(h held) bool {
	want := f.text()
	if f.info.Kind == "rich" {
		return flat(h.Value) == flat(want) || flat(h.Text) == flat(want)
	}
	want = strings.ReplaceAll(want, "\r\n", "\n")
	if h.Value == want || strings.TrimSpace(want) == h.Value {
		return true
	}
	if f.info.Kind == "picked" {
		return true // pick has compared it by its kind
	}
	if f.info.Type != "textarea" && h.Value == strings.NewReplacer("\n", "", "\r", "").Replace(want) {
		return true
	}
	if h.Around != "" && shows(h.Around, want) {
		return true // an editor that takes its text out of a hidden field
	}
	return core(want) != "" && core(h.Value) == core(want)
}

// mostShown is how many lines of a long text an editor must show: those out of
// view are often not there.
const mostShown = 10

// shows reports whether what an editor shows holds the lines of text in their
// order, whatever is between them, such as their numbers.
func shows(around, text string) bool {
	rest, found, lines := flat(around), 0, 0
	for line := range strings.Lines(text) {
		if line = flat(line); line == "" {
			continue
		}
		lines++
		if _, after, ok := strings.Cut(rest, line); ok {
			rest, found = after, found+1
		}
	}
	return lines > 0 && found >= min(lines, mostShown)
}

// flat is text without regard to the kind and amount of white space.
func flat(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\u200b", "")), " ")
}

// core is the letters and digits of a value.
func core(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// setText replaces what a text field holds by real input.
func (f *filling) setText(ctx context.Context) error {
	text := f.text()
	if f.info.Max >= 0 && len([]rune(text)) > f.info.Max && utf16Len(text) > f.info.Max {
		return f.refuse("it takes at most %d characters", f.info.Max)
	}
	if f.info.Type == "number" {
		var r refusal
		if err := f.doc.eval(ctx, "(n, v) => reins.takesNumber(n, v)", &r, f.info.Number, text); err != nil {
			return err
		}
		if r.Refused {
			return f.refuse("it takes %s", r.Takes)
		}
		text = strings.TrimSpace(text)
	}
	if err := f.reach(ctx, readyOptions{Editable: true, Soft: true}); err != nil {
		return err
	}
	if f.info.Tiny {
		return f.insertWithKeys(ctx, text)
	}
	if err := f.insert(ctx, text); err != nil || f.ended {
		return err
	}
	h, ok, err := f.holding(ctx)
	if err != nil || !ok || f.equal(h) {
		return err
	}
	return f.retype(ctx, text)
}

// setRich replaces the text of an editor by real input.
func (f *filling) setRich(ctx context.Context) error {
	if err := f.reach(ctx, readyOptions{Editable: true, Soft: true}); err != nil {
		return err
	}
	if err := f.insert(ctx, f.text()); err != nil || f.ended {
		return err
	}
	if h, ok, err := f.holding(ctx); err != nil || !ok || f.equal(h) {
		return err
	}
	// Some editors empty themselves by their own keys only.
	return f.insertWithKeys(ctx, f.text())
}

// refusal is a value that a control does not take (js/control.js).
type refusal struct {
	Gone    bool   `json:"gone"`
	OK      bool   `json:"ok"`
	Refused bool   `json:"refused"`
	Takes   string `json:"takes"`
}

// setPicked sets a date, time, colour or range.
func (f *filling) setPicked(ctx context.Context) error {
	if err := f.reach(ctx, readyOptions{Editable: true, Soft: true}); err != nil {
		return err
	}
	var r refusal
	if err := f.doc.eval(ctx, "(n, v) => reins.pick(n, v)", &r, f.info.Number, f.text()); err != nil {
		if interrupted(err) {
			f.ended = true
			return nil
		}
		return err
	}
	switch {
	case r.Gone:
		return errStale(f.a.Ref)
	case r.Refused:
		return f.refuse("it takes %s", r.Takes)
	}
	return nil
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
