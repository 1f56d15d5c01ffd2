package driver

import (
	"context"
	"math"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

const (
	dragStep  = 24 // CSS pixels of one move, about
	dragMoves = 40 // moves of one drag at most
	dragBegin = 6  // CSS pixels each way after which a press is a drag
)

// dragging is one drag under way.
type dragging struct {
	b      *browser
	x      *action
	a      reins.Drag
	from   *spot
	px, py float64 // where the pointer is
	over   bool    // a dialog opened or the tab closed
}

// drag presses on an element, moves to a place in steps and lets go there. The
// browser makes a native drag of it where the element is one: its events come
// from the same moves.
func (b *browser) drag(ctx context.Context, x *action, a reins.Drag) error {
	if a.To != "" {
		to, _, err := b.element(a.To)
		if err != nil {
			return err
		}
		if to.frame.tab != x.tab {
			return reins.Errorf(reins.CodeInvalidInput, "ref %s is in another tab than ref %s; a drag stays in one tab", a.To, a.Ref)
		}
	}
	from, err := b.locate(ctx, x, a.Ref, or(a.Actionable, waitActionable), readyOptions{Position: a.At, Arm: "pointer"})
	if err != nil {
		return err
	}
	if from.Option {
		return reins.Errorf(reins.CodeInvalidInput, "%s %.100q (ref %s) cannot be dragged; it is an option of a list", from.Role, from.Name, from.ref())
	}
	d := &dragging{b: b, x: x, a: a, from: from, px: from.x, py: from.y}
	settling := b.settle(x)
	if err := d.run(ctx); err != nil {
		settling.stop()
		return err
	}
	settling.inputs = time.Now()
	if err := settling.finish(ctx, x, or(a.Settle, waitSettle), from.before(), from.doc); err != nil {
		return err
	}
	return b.look(ctx, x, a.Waits)
}

// run is the whole movement. Whatever comes in between, the button does not
// stay down.
func (d *dragging) run(ctx context.Context) error {
	if err := d.send(ctx, moved(d.px, d.py, 0, false)); err != nil {
		return err
	}
	down := d.button(input.DispatchMouseEventTypeMousePressed, 1)
	if err := d.send(ctx, down); err != nil {
		d.letGo()
		return err
	}
	if err := d.carry(ctx); err != nil {
		d.letGo()
		return err
	}
	if _, err := d.b.landed(ctx, d.x, d.from, reins.Click{Button: "middle"}); err != nil {
		d.letGo()
		return err
	}
	return d.send(ctx, d.button(input.DispatchMouseEventTypeMouseReleased, 0))
}

// carry moves to where the drag ends. The place of its element is looked up
// once the drag has begun: pages make room for what is dragged only then.
func (d *dragging) carry(ctx context.Context) error {
	if d.a.By != nil {
		return d.moveTo(ctx, d.from.x+d.a.By.X, d.from.y+d.a.By.Y)
	}
	if err := d.moveTo(ctx, d.px+dragBegin, d.py+dragBegin); err != nil {
		return err
	}
	if err := d.from.doc.eval(ctx, "() => reins.after(1e9, 0)", nil); err != nil && !d.ended(err) {
		return err
	}
	x, y, err := d.goal(ctx)
	if err != nil {
		return err
	}
	return d.moveTo(ctx, x, y)
}

// goal is where the drag ends, in the tab's viewport.
func (d *dragging) goal(ctx context.Context) (px, py float64, err error) {
	doc, n, err := d.b.element(d.a.To)
	if err != nil {
		return 0, 0, err
	}
	s := &spot{doc: doc, number: n}
	if err := doc.eval(ctx, "n => reins.placed(n)", &s.readyInfo, n); err != nil {
		return 0, 0, err
	}
	switch {
	case s.Gone:
		return 0, 0, errStale(d.a.To)
	case s.Why != "":
		return 0, 0, errNotActionable(d.a.To, s.readyInfo, doc)
	}
	if on := d.a.Onto; on != nil {
		s.X, s.Y = s.X+on.X, s.Y+on.Y
	} else {
		s.X, s.Y = s.X+s.W/2, s.Y+s.H/2
	}
	if _, _, err := d.b.climb(ctx, s, false); err != nil {
		return 0, 0, err
	}
	return s.x, s.y, nil
}

// moveTo moves the pointer in steps; the last one comes twice, since a native
// drag only enters a place with the first.
func (d *dragging) moveTo(ctx context.Context, px, py float64) error {
	fromX, fromY := d.px, d.py
	steps := min(max(int(math.Hypot(px-fromX, py-fromY)/dragStep), 2), dragMoves)
	for i := 1; i <= steps+1; i++ {
		part := min(float64(i)/float64(steps), 1)
		d.px, d.py = fromX+(px-fromX)*part, fromY+(py-fromY)*part
		if err := d.send(ctx, moved(d.px, d.py, 0, true)); err != nil {
			return err
		}
	}
	return nil
}

func (d *dragging) button(kind input.DispatchMouseEventType, held int64) input.DispatchMouseEventParams {
	p := moved(d.px, d.py, 0, false)
	p.Type, p.Button, p.Buttons, p.ClickCount = kind, input.MouseButtonLeft, held, 1
	return p
}

func (d *dragging) send(ctx context.Context, p input.DispatchMouseEventParams) error {
	if d.over {
		return nil
	}
	on, err := d.b.pointer(ctx, d.x, p)
	d.over = d.over || err == nil && !on
	return err
}

// ended tells the ends of an evaluation that the drag itself has led to.
func (d *dragging) ended(err error) bool {
	d.over = d.over || interrupted(err)
	return d.over
}

// letGo ends a drag that did not come to its end: without a drop.
func (d *dragging) letGo() {
	d.b.disarm(d.from)
	s := d.x.tab.pageSession()
	d.x.tab.giveUp()
	s.SendAll(append([]cdp.Request{cdp.Prepare(input.CancelDragging, none)}, d.x.tab.mouse(d.button(input.DispatchMouseEventTypeMouseReleased, 0))...)...)
}
