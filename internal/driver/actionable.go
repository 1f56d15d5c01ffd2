package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/reins-browser/reins"
)

const (
	waitActionable = 5 * time.Second // ACT-1
	waitSettle     = 5 * time.Second // ACT-6
)

// readyOptions go to the script that waits for an element (js/act.js).
type readyOptions struct {
	Millis   int64        `json:"ms"`
	Editable bool         `json:"editable,omitempty"`
	Disabled bool         `json:"disabled,omitempty"` // one that is disabled will do
	Soft     bool         `json:"soft,omitempty"`     // a hair-thin element is acted on by keys; nothing needs to hit it
	Position *reins.Point `json:"position,omitempty"`
	Arm      string       `json:"arm,omitempty"` // "pointer": stop presses that land elsewhere
}

// said is an element as it is named in a sentence.
type said struct {
	Text   string `json:"text"`
	Label  string `json:"label"`
	Number int    `json:"number"`
}

// readyInfo is what that script found.
type readyInfo struct {
	OK   bool    `json:"ok"`
	Gone bool    `json:"gone"`
	Why  string  `json:"why"`
	Text string  `json:"text"`
	By   *said   `json:"by"`
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	W    float64 `json:"w"`
	H    float64 `json:"h"`

	Place []float64 `json:"place"` // of the element in its document's window: x, y, width, height

	Tag    string `json:"tag"`
	Role   string `json:"role"`
	Name   string `json:"name"`
	Focus  int    `json:"focus"`
	Busy   int    `json:"busy"`
	Option bool   `json:"option"`
}

func (r readyInfo) target() *reins.Target { return &reins.Target{Role: r.Role, Name: r.Name} }

// spot is an element that can be acted on, and where in the tab's viewport.
type spot struct {
	readyInfo
	doc    *document
	number int
	x, y   float64
}

func (s *spot) ref() reins.Ref { return elementRef(s.doc.number, s.number) }

// or is the duration that was asked for, or the default.
func or(d *reins.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return time.Duration(*d)
}

// locate is locateElement for the element of a ref.
func (b *browser) locate(ctx context.Context, x *action, ref reins.Ref, wait time.Duration, o readyOptions) (*spot, error) {
	d, n, err := b.element(ref)
	if err != nil {
		return nil, err
	}
	return b.locateElement(ctx, x, d, n, wait, o)
}

// locateElement waits until an element can be acted on, through all the frames
// around it, and says where (ACT-1).
func (b *browser) locateElement(ctx context.Context, x *action, d *document, n int, wait time.Duration, o readyOptions) (*spot, error) {
	ref := elementRef(d.number, n)
	end := time.Now().Add(wait)
	for tries := 0; ; tries++ {
		o.Millis = max(0, time.Until(end).Milliseconds())
		s := &spot{doc: d, number: n}
		err := x.tab.within(ctx, time.Duration(o.Millis)*time.Millisecond+mainAnswers, func(ctx context.Context) error {
			return d.eval(ctx, "(n, o) => reins.ready(n, o)", &s.readyInfo, n, o)
		})
		if err != nil {
			return nil, err
		}
		x.reply.Result.Target = s.target()
		switch {
		case s.Gone:
			return nil, errStale(ref)
		case s.Why == "position":
			return nil, reins.Errorf(reins.CodeInvalidInput, "%s %.100q (ref %s): %s", s.Role, s.Name, ref, s.Text)
		case s.Why != "":
			return nil, errNotActionable(ref, s.readyInfo, d)
		case s.Option:
			return s, nil
		}
		why, where, err := b.climb(ctx, s, true)
		if err != nil {
			return nil, err
		}
		if why.OK {
			if err := x.same(ctx, s); err != nil {
				b.disarm(s)
				return nil, err
			}
			x.acting(s)
			return s, nil
		}
		if time.Now().After(end) {
			why.Role, why.Name = s.Role, s.Name
			b.disarm(s)
			return nil, errNotActionable(ref, why, where)
		}
		// The frame is out of view or covered: scroll it in, each time to
		// another place, and look again at the next picture.
		if err := d.eval(ctx, "(n, block) => { reins.reveal(n, block); return new Promise(d => requestAnimationFrame(() => d())); }", nil,
			n, []string{"center", "start", "end", "nearest"}[tries%4]); err != nil {
			return nil, err
		}
	}
}

// within bounds work on a page that may never answer.
func (t *tab) within(ctx context.Context, bound time.Duration, do func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := do(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return errBusy(t)
	}
	return err
}

func errBusy(t *tab) *reins.Error {
	return reins.Errorf(reins.CodeTimeout, "the page in tab %s is busy with a script and does not answer; wait, or reload the tab", t.id)
}

// climb carries a spot's point out through the frames around its document. It
// returns what was found in the outermost document that was reached; when it
// is strict, that is where the pointer would not get through.
func (b *browser) climb(ctx context.Context, s *spot, strict bool) (readyInfo, *document, error) {
	s.x, s.y = s.X, s.Y
	at := readyInfo{OK: true, X: s.X, Y: s.Y}
	d := s.doc
	for {
		b.mu.Lock()
		f := d.frame
		var parent *document
		if f.parent != nil {
			parent = f.parent.doc
		}
		top := f.parent == nil
		b.mu.Unlock()
		if top {
			s.x, s.y = at.X, at.Y
			return at, d, nil
		}
		if parent == nil {
			return at, d, errReplaced
		}
		n, err := b.ownerNumber(ctx, parent, f)
		if err != nil {
			return at, d, err
		}
		var next readyInfo
		if err := parent.eval(ctx, "(n, x, y) => reins.through(n, x, y)", &next, n, at.X, at.Y); err != nil {
			return at, d, err
		}
		if next.Gone {
			return at, d, errReplaced
		}
		if !next.OK && strict {
			return next, parent, nil
		}
		at, d = next, parent
	}
}

// disarm drops a spot's guard without asking what it saw.
func (b *browser) disarm(s *spot) {
	s.doc.startEval("() => { reins.disarm(); }", true, nil)
}

// errNotActionable says which check failed (ACT-1).
func errNotActionable(ref reins.Ref, r readyInfo, in *document) *reins.Error {
	what := fmt.Sprintf("%s %.100q (ref %s)", r.Role, r.Name, ref)
	if r.By == nil {
		return reins.Errorf(reins.CodeNotActionable, "%s cannot be acted on: %s; take a new snapshot to see what it needs", what, r.Text).With("reason", r.Why)
	}
	by := fmt.Sprintf("%.120q", r.By.Text)
	if r.By.Label != "" {
		by += fmt.Sprintf(" that reads %.80q", r.By.Label)
	}
	e := reins.Errorf(reins.CodeNotActionable, "%s cannot be acted on: it is covered by %s; deal with that first or take a new snapshot", what, by).With("reason", r.Why)
	if r.By.Number > 0 {
		cover := elementRef(in.number, r.By.Number)
		e.Message = fmt.Sprintf("%s cannot be acted on: it is covered by %s (ref %s); deal with that first or take a new snapshot", what, by, cover)
		e = e.With("covered_by", string(cover))
	}
	return e
}
