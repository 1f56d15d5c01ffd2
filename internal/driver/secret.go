package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
	"github.com/reins-browser/reins/internal/outline"
	"github.com/reins-browser/reins/internal/redact"
)

// secretStrokes is how many keys of a secret leave before it is made sure that
// they still land where they should.
const secretStrokes = 4

// barLasts is when the guards of other documents are made new; they go by
// themselves some time later (js/act.js: GUARDED).
const barLasts = time.Second

// hide takes what must not be told out of entries, before they are cut.
func (x *action) hide(nodes []outline.Node) {
	set := x.cmd.Redact
	if len(set) == 0 {
		return
	}
	for i := range nodes {
		n := &nodes[i]
		n.Name, n.Value, n.States = set.Bounded(n.Name), set.Bounded(n.Value), set.Text(n.States)
	}
}

// askPlace tells where an action's secret would be typed: the element, and the
// origin of its document, as that document's process knows it. Nothing is done
// to the page.
func (b *browser) askPlace(ctx context.Context, t *tab, cmd Command) (*Reply, error) {
	_, ref := cmd.Action.Target()
	if isDialogRef(ref) {
		return nil, reins.Errorf(reins.CodeInvalidInput, "a secret is not typed into a dialog of the page; fill it with plain text or dismiss it")
	}
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	x := &action{tab: t, cmd: cmd, reply: &Reply{}}
	d, n, err := b.placeOf(ctx, t, ref)
	if err != nil {
		return nil, x.failure(err)
	}
	place := &Place{Ref: elementRef(d.number, n)}
	if place.Origin, err = d.origin(ctx); err != nil {
		return nil, x.failure(err)
	}
	return &Reply{Place: place}, nil
}

// placeOf is the element of a ref, or the one that has the focus.
func (b *browser) placeOf(ctx context.Context, t *tab, ref reins.Ref) (*document, int, error) {
	if ref != "" {
		return b.element(ref)
	}
	d, err := t.document(ctx)
	if err != nil {
		return nil, 0, err
	}
	at := &stood{doc: d}
	if err := d.eval(ctx, "() => reins.standing()", &at.standing); err != nil {
		return nil, 0, err
	}
	if at.Frame {
		b.inner(ctx, at)
	}
	if at.Focus == 0 || at.Frame {
		return nil, 0, reins.Errorf(reins.CodeNotActionable, "no field has the focus; give the ref of the field that the secret goes into").With("reason", "focus")
	}
	return at.doc, at.Focus, nil
}

// origin is the origin of a document, "null" when it has one of its own.
func (d *document) origin(ctx context.Context) (string, error) {
	var origin string
	err := d.eval(ctx, "() => self.origin", &origin)
	return origin, err
}

// fillSecret replaces what a field holds by a secret (ACT-11).
func (b *browser) fillSecret(ctx context.Context, x *action, a reins.Fill) error {
	return b.enterSecret(ctx, x, &entering{name: a.Value.Secret, how: "selectAll", waits: a.Waits, submit: a.Submit})
}

// typeSecret adds a secret to what a field holds (ACT-11).
func (b *browser) typeSecret(ctx context.Context, x *action, a reins.Type) error {
	return b.enterSecret(ctx, x, &entering{name: a.Secret, how: "caretForSecret", waits: a.Waits})
}

// entering is a secret on its way into a field.
type entering struct {
	filling
	name   string
	how    string // which function of the script makes the field ready
	waits  reins.Waits
	submit bool
}

// enterSecret types a secret key by key into the one element that its host has
// permitted. It stops at once when keys would land elsewhere; what came of it
// until then is wiped.
func (b *browser) enterSecret(ctx context.Context, x *action, e *entering) error {
	e.filling = filling{keying: keying{b: b, x: x, bound: max(or(e.waits.Settle, waitSettle), time.Second)}, end: time.Now().Add(or(e.waits.Actionable, waitActionable))}
	if err := e.check(ctx); err != nil {
		return err
	}
	if err := e.reach(ctx, readyOptions{Editable: true, Soft: true}); err != nil {
		return err
	}
	e.settling = b.settle(x)
	err := e.enter(ctx)
	if err == nil && e.submit && !e.ended {
		err = e.enterKey(ctx)
	}
	if err != nil {
		e.settling.stop()
		return err
	}
	if e.busy {
		return x.unsettled(e.settling)
	}
	e.settling.inputs = time.Now()
	if err := e.settling.finish(ctx, x, or(e.waits.Settle, waitSettle), e.before, e.doc); err != nil {
		return err
	}
	x.changes().Value = redact.Mark(e.name)
	return b.look(ctx, x, e.waits)
}

// check makes sure that the element is the one that was asked about, that its
// document still has that origin, and that it takes this text.
func (e *entering) check(ctx context.Context) error {
	cmd := e.x.cmd
	if cmd.Secret == "" || cmd.Into.Ref == "" {
		return reins.Errorf(reins.CodeInvalidInput, "secret %q has no value here", e.name)
	}
	var n int
	var err error
	if e.doc, n, err = e.b.element(cmd.Into.Ref); err != nil {
		return err
	}
	origin, err := e.doc.origin(ctx)
	if err != nil {
		return err
	}
	if origin != cmd.Into.Origin || origin == "null" {
		return reins.Errorf(reins.CodeStaleRef, "the page that ref %s is of is not of %.200q any more; take a new snapshot", cmd.Into.Ref, cmd.Into.Origin)
	}
	if err := e.doc.eval(ctx, "n => reins.control(n)", &e.info, n); err != nil {
		return err
	}
	e.a.Ref = cmd.Into.Ref
	e.x.reply.Result.Target = &reins.Target{Role: e.info.Role, Name: e.info.Name}
	lines := strings.ContainsFunc(cmd.Secret, unicode.IsControl)
	switch {
	case e.info.Gone:
		return errStale(cmd.Into.Ref)
	case e.info.Kind != "text" && e.info.Kind != "rich" || e.info.Tiny:
		return e.refuse("a secret goes into a field that is typed into")
	case e.info.Max >= 0 && utf16Len(cmd.Secret) > e.info.Max:
		return e.refuse("it takes at most %d characters, and the secret has more", e.info.Max)
	case lines:
		return e.refuse("the secret has line ends or other control characters")
	}
	return nil
}

// enter types the secret while no other document gets a key.
func (e *entering) enter(ctx context.Context) error {
	others, err := e.bar(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, d := range others {
			d.startEval("() => { reins.disarm(); }", true, nil)
		}
	}()
	var ready focusInfo
	if err := e.doc.eval(ctx, "(n, how) => reins[how](n)", &ready, e.info.Number, e.how); err != nil {
		return err
	}
	switch {
	case ready.Gone:
		return errStale(e.a.Ref)
	case !ready.OK:
		e.b.disarm(e.spot)
		return reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) does not take the focus; use another element", e.info.Role, e.info.Name, e.a.Ref).With("reason", "focus")
	}
	if err := e.keys(ctx); err != nil {
		e.wipe()
		return err
	}
	return nil
}

// keys types in small groups. Within a group keys that would land elsewhere
// are stopped in the page; after each it is over when that happened.
func (e *entering) keys(ctx context.Context) error {
	all, barred := slices.Collect(clusters(e.x.cmd.Secret)), time.Now()
	for group := range slices.Chunk(all, secretStrokes) {
		var events []cdp.Request
		for _, c := range group {
			events = append(events, typeCluster(c)...)
		}
		if time.Since(barred) > barLasts {
			if _, err := e.bar(ctx); err != nil {
				return err
			}
			barred = time.Now()
		}
		if err := e.send(ctx, events); err != nil {
			return err
		}
		if e.ended || e.busy {
			return nil
		}
		var s struct {
			Gone    bool  `json:"gone"`
			Blocked *said `json:"blocked"`
		}
		if err := e.doc.eval(ctx, "n => reins.strayed(n)", &s, e.info.Number); err != nil {
			if errors.Is(err, errReplaced) || interrupted(err) {
				e.ended = true // the page went on with what it got
				return nil
			}
			return err
		}
		if s.Gone {
			return reins.Errorf(reins.CodeStaleRef, "%s %.100q (ref %s) went while the secret was typed, which was stopped; take a new snapshot", e.info.Role, e.info.Name, e.a.Ref)
		}
		if s.Blocked != nil {
			return reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) lost the focus to %.120q while the secret was typed, which was stopped; the field was emptied", e.info.Role, e.info.Name, e.a.Ref, s.Blocked.Text).With("reason", "focus")
		}
	}
	e.b.disarm(e.spot)
	return e.holds(ctx)
}

// holds makes sure that the field has the secret, whatever form it gives it.
func (e *entering) holds(ctx context.Context) error {
	var h struct {
		Gone  bool `json:"gone"`
		Holds bool `json:"holds"`
	}
	err := e.doc.eval(ctx, "(n, text) => reins.takesSecret(n, text)", &h, e.info.Number, e.x.cmd.Secret)
	switch {
	case err != nil && (errors.Is(err, errReplaced) || interrupted(err)):
		e.ended = true
		return nil
	case err != nil:
		return err
	case !h.Gone && !h.Holds:
		return reins.Errorf(reins.CodeToolFailed, "%s %.100q (ref %s) did not take the secret as it is; the field was emptied", e.info.Role, e.info.Name, e.a.Ref)
	}
	return nil
}

// bar keeps keys from every document of the tab but the field's.
func (e *entering) bar(ctx context.Context) ([]*document, error) {
	docs, err := e.x.tab.documents(ctx)
	if err != nil {
		return nil, err
	}
	var others []*document
	for _, each := range docs {
		if each.document == e.doc {
			continue
		}
		short, cancel := context.WithTimeout(ctx, frameAnswers)
		err := each.eval(short, "() => { reins.bar(); }", nil)
		cancel()
		if err != nil && !errors.Is(err, errReplaced) {
			return others, reins.Errorf(reins.CodeToolFailed, "a frame of the page does not answer, so that the secret was not typed; try again").Because(err)
		}
		others = append(others, each.document)
	}
	return others, nil
}

// wipe empties the field; a page that has gone took it along.
func (e *entering) wipe() {
	e.doc.startEval("n => { reins.disarm(); reins.wipe(n); }", true, []any{e.info.Number})
}

// enterKey presses Enter in the field.
func (e *entering) enterKey(ctx context.Context) error {
	if err := e.focus(ctx, "focusOn"); err != nil {
		return err
	}
	if err := e.send(ctx, stroke(named["Enter"], 0)); err != nil {
		return err
	}
	g, err := e.landed(ctx)
	if err == nil && g.Blocked != nil && !g.Seen {
		err = reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) has the secret, but lost the focus before Enter came; press Enter on it", e.info.Role, e.info.Name, e.a.Ref).With("reason", "focus")
	}
	return err
}
