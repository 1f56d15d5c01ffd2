package driver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

const (
	takesEffect = time.Second // a page's own control shows its new state
	sliderKeys  = 400         // presses of arrow keys on a page's own slider
)

// choice is what came of choosing from a native list (js/control.js: choose).
type choice struct {
	Gone     bool     `json:"gone"`
	Refused  bool     `json:"refused"`
	Missing  string   `json:"missing"`
	Unclear  string   `json:"unclear"`
	Disabled string   `json:"disabled"`
	Takes    []string `json:"takes"`
	More     int      `json:"more"`
}

// setSelect chooses options of a native list by label, else by value.
func (f *filling) setSelect(ctx context.Context) error {
	wanted := f.a.Value.Options
	if f.a.Value.Text != nil {
		wanted = []string{*f.a.Value.Text}
	}
	if !f.info.Multiple && len(wanted) != 1 {
		return f.refuse("it takes one option")
	}
	if err := f.reach(ctx, readyOptions{Soft: true}); err != nil {
		return err
	}
	var c choice
	if err := f.doc.eval(ctx, "(n, v) => reins.choose(n, v)", &c, f.info.Number, wanted); err != nil {
		if interrupted(err) {
			f.ended = true
			return nil
		}
		return err
	}
	switch {
	case c.Gone:
		return errStale(f.a.Ref)
	case !c.Refused:
		return f.checkChosen(ctx, len(wanted))
	case c.Disabled != "":
		return reins.Errorf(reins.CodeNotActionable, "option %.80q of %s %.100q (ref %s) is disabled; choose another", c.Disabled, f.info.Role, f.info.Name, f.a.Ref).With("reason", "disabled")
	case c.Unclear != "":
		return f.refuse("it has several options %.80q; say which: it takes %s", c.Unclear, quoteAll(c.Takes, c.More))
	}
	return f.refuse("it has no option %.80q; it takes %s", c.Missing, quoteAll(c.Takes, c.More))
}

// checkChosen makes sure that the list kept what was chosen.
func (f *filling) checkChosen(ctx context.Context, wanted int) error {
	var now struct {
		Gone   bool     `json:"gone"`
		Labels []string `json:"labels"`
	}
	err := f.doc.eval(ctx, "n => reins.chosen(n)", &now, f.info.Number)
	if err != nil || now.Gone {
		f.ended = true // the page went on with the choice
		return nil
	}
	f.x.changes().Value = bounded(strings.Join(now.Labels, ", "))
	if f.info.Multiple && len(now.Labels) != wanted || !f.info.Multiple && len(now.Labels) != 1 {
		return f.unset(strings.Join(now.Labels, ", "))
	}
	return nil
}

func quoteAll(labels []string, more int) string {
	if len(labels) == 0 {
		return "nothing: it has no options that can be chosen"
	}
	var b strings.Builder
	for i, l := range labels {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(l))
	}
	if more > 0 {
		b.WriteString(" and " + strconv.Itoa(more) + " more")
	}
	return b.String()
}

// setChecked turns a check box, switch, radio or option on or off by pressing
// it, unless it is so already.
func (f *filling) setChecked(ctx context.Context) error {
	want, ok := truth(f.a.Value)
	if !ok {
		return f.refuse("it takes true or false")
	}
	if f.info.Kind != "check" {
		return f.setOption(ctx, want)
	}
	if f.info.Checked == want {
		f.x.changes().Value = want
		return nil
	}
	if want == "false" && (f.info.Type == "radio" || f.info.Role == "radio" || f.info.Role == "menuitemradio") {
		return f.refuse("a radio button is turned off by choosing another one of its group")
	}
	for range 2 { // a mixed one may need two presses
		if err := f.pressElement(ctx, f.info.Number); err != nil {
			return err
		}
		now, err := f.checkedNow(ctx, want)
		if err != nil || now == "" {
			return err
		}
		if now == want {
			f.x.changes().Value = want
			return nil
		}
		if f.info.Checked != "mixed" {
			break
		}
	}
	return f.unset(f.info.Checked)
}

// checkedNow waits until the control reads as wanted; "" when it cannot be
// asked any more.
func (f *filling) checkedNow(ctx context.Context, want string) (string, error) {
	var r struct {
		Gone bool   `json:"gone"`
		Now  string `json:"now"`
	}
	err := f.doc.eval(ctx, "(n, want, ms) => reins.awaitChecked(n, want, ms)", &r, f.info.Number, want, takesEffect.Milliseconds())
	if err != nil || r.Gone {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		f.ended = true
		return "", nil
	}
	return r.Now, nil
}

func truth(v reins.Value) (string, bool) {
	switch {
	case v.Checked != nil:
		return strconv.FormatBool(*v.Checked), true
	case v.Text != nil:
		switch strings.ToLower(strings.TrimSpace(*v.Text)) {
		case "true", "on", "yes", "checked":
			return "true", true
		case "false", "off", "no", "unchecked":
			return "false", true
		}
	}
	return "", false
}

// setOption chooses the option itself.
func (f *filling) setOption(ctx context.Context, want string) error {
	if want == "false" {
		return f.refuse("an option is left by choosing another; fill the list itself")
	}
	if f.info.Kind == "option" {
		var r readyInfo
		if err := f.doc.eval(ctx, "n => reins.pressOption(n, false)", &r, f.info.Number); err != nil {
			return err
		}
		if !r.OK {
			return errNotActionable(f.a.Ref, r, f.doc)
		}
		return nil
	}
	return f.pressElement(ctx, f.info.Number)
}

// listed is an option of a list that is made of ordinary elements.
type listed struct {
	Number   int    `json:"number"`
	Name     string `json:"name"`
	Value    string `json:"value"`
	Selected bool   `json:"selected"`
	Disabled bool   `json:"disabled"`
}

// setOptions chooses from a page's own list or combo box by pressing what a
// person would press.
func (f *filling) setOptions(ctx context.Context) error {
	wanted := f.a.Value.Options
	if f.a.Value.Text != nil {
		wanted = []string{*f.a.Value.Text}
	}
	if len(wanted) == 0 {
		return f.refuse("name an option")
	}
	for i, w := range wanted {
		if f.info.Kind == "combo" || i == 0 {
			if err := f.open(ctx); err != nil {
				return err
			}
		}
		all, err := f.options(ctx)
		if err != nil {
			return err
		}
		o := slices.IndexFunc(all, func(o listed) bool { return flat(o.Name) == flat(w) })
		if o < 0 {
			o = slices.IndexFunc(all, func(o listed) bool { return o.Value != "" && o.Value == w || strings.EqualFold(flat(o.Name), flat(w)) })
		}
		if o < 0 {
			var names []string
			for _, o := range all[:min(len(all), 40)] {
				names = append(names, o.Name)
			}
			return f.refuse("it has no option %.80q; it takes %s", w, quoteAll(names, max(0, len(all)-40)))
		}
		if all[o].Selected && f.info.Kind == "list" {
			continue
		}
		if err := f.pressElement(ctx, all[o].Number); err != nil {
			return err
		}
	}
	return nil
}

// open presses a combo box so that it shows its options.
func (f *filling) open(ctx context.Context) error {
	if f.info.Kind == "list" {
		return f.reach(ctx, readyOptions{Soft: true})
	}
	if all, err := f.optionsWithin(ctx, 0); err != nil || len(all) > 0 {
		return err
	}
	return f.pressElement(ctx, f.info.Number)
}

// pressElement presses the control or a part of it; what follows is told by
// the settling of the whole fill.
func (f *filling) pressElement(ctx context.Context, n int) error {
	settling, s, err := f.b.pressElement(ctx, f.x, f.doc, n, f.left(), reins.Click{})
	if settling != nil {
		settling.stop()
	}
	if errors.Is(err, errUnhandled) {
		return errBusy(f.x.tab)
	}
	if err != nil {
		return err
	}
	if f.before == nil {
		f.before = s.before()
	}
	if n == f.info.Number {
		f.spot = s
	}
	return nil
}

func (f *filling) options(ctx context.Context) ([]listed, error) {
	return f.optionsWithin(ctx, max(f.left(), takesEffect))
}

func (f *filling) optionsWithin(ctx context.Context, wait time.Duration) ([]listed, error) {
	var r struct {
		Gone    bool     `json:"gone"`
		Options []listed `json:"options"`
	}
	if err := f.doc.eval(ctx, "(n, ms) => reins.optionsOf(n, ms)", &r, f.info.Number, wait.Milliseconds()); err != nil {
		return nil, err
	}
	if r.Gone {
		return nil, errStale(f.a.Ref)
	}
	return r.Options, nil
}

// setSlider moves a page's own slider with the arrow keys.
func (f *filling) setSlider(ctx context.Context) error {
	want, err := strconv.ParseFloat(strings.TrimSpace(f.text()), 64)
	if err != nil {
		return f.refuse("it takes a number")
	}
	if err := f.reach(ctx, readyOptions{Soft: true}); err != nil {
		return err
	}
	if err := f.focus(ctx, "focusOn"); err != nil {
		return err
	}
	last := ""
	for range sliderKeys {
		now, err := f.slider(ctx)
		if err != nil {
			return err
		}
		at, err := strconv.ParseFloat(now, 64)
		if err == nil && at == want {
			f.x.changes().Value = now
			return nil
		}
		if err != nil || now == last {
			return f.unset(now)
		}
		last = now
		arrow := "ArrowRight"
		if at > want {
			arrow = "ArrowLeft"
		}
		if err := f.send(ctx, stroke(named[arrow], 0)); err != nil || f.ended {
			return err
		}
	}
	return f.unset(last)
}

func (f *filling) slider(ctx context.Context) (string, error) {
	var r struct {
		Gone bool   `json:"gone"`
		Now  string `json:"now"`
	}
	if err := f.doc.eval(ctx, "n => reins.sliderNow(n)", &r, f.info.Number); err != nil {
		return "", err
	}
	if r.Gone {
		return "", errStale(f.a.Ref)
	}
	return r.Now, nil
}

// setFiles gives a file control files of the lease, by their paths in the cell.
func (f *filling) setFiles(ctx context.Context) error {
	ids := f.a.Value.Artifacts
	if ids == nil {
		return f.refuse("it is a file control and takes files, by the IDs of stored artifacts")
	}
	if len(ids) > 1 && !f.info.Multiple {
		return f.refuse("it takes one file")
	}
	paths := make([]string, 0, len(ids))
	for _, id := range ids {
		path, ok := f.x.cmd.Files[id]
		if !ok {
			return f.refuse("artifact %.60q is not available to it", id)
		}
		paths = append(paths, path)
	}
	var off readyInfo
	if err := f.doc.eval(ctx, "n => reins.fileReady(n)", &off, f.info.Number); err != nil {
		return err
	}
	if off.Why != "" {
		return errNotActionable(f.a.Ref, off, f.doc)
	}
	el, err := f.doc.evalHandle(ctx, "n => reins.elementOf(n)", f.info.Number)
	if err != nil {
		return err
	}
	defer cdp.Send(f.doc.session, runtime.ReleaseObject, runtime.ReleaseObjectParams{ObjectID: el.id})
	guarded, release := f.x.tab.guard(ctx)
	defer release()
	if _, err := cdp.Call(guarded, f.doc.session, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: el.id}); err != nil {
		if cause := context.Cause(guarded); ctx.Err() == nil && cause != nil && interrupted(cause) {
			f.ended = true
			return nil
		}
		return evalError(f.x.tab, err)
	}
	f.b.mu.Lock()
	if c := f.x.tab.chooser; c != nil && c != f.x.fx.chooser {
		f.x.tab.chooser = nil
		f.b.changedLocked()
	}
	f.b.mu.Unlock()
	return f.checkFiles(ctx, len(paths))
}

func (f *filling) checkFiles(ctx context.Context, n int) error {
	var now struct {
		Gone  bool     `json:"gone"`
		Names []string `json:"names"`
	}
	if err := f.doc.eval(ctx, "n => reins.filesOf(n)", &now, f.info.Number); err != nil || now.Gone {
		f.ended = true
		return nil
	}
	f.x.changes().Value = bounded(strings.Join(now.Names, ", "))
	if len(now.Names) != n {
		f.x.note("the page took %d of %d files out of the control again", n-len(now.Names), n)
	}
	return nil
}
