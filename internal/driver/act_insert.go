package driver

import (
	"context"

	"github.com/chromedp/cdproto/input"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// retype fills a field key by key that did not take its text at once, as some
// do that shape their value.
func (f *filling) retype(ctx context.Context, text string) error {
	if len(text) > 4096 {
		return nil // verify says what it holds
	}
	if err := f.insert(ctx, ""); err != nil || f.ended {
		return err
	}
	if err := f.focus(ctx, "caretAtEnd"); err != nil {
		return err
	}
	if err := f.typeOut(ctx, text); err != nil {
		return err
	}
	_, err := f.landed(ctx)
	return err
}

// insert selects all that the control holds and puts text in its place. Input
// that something else would get is stopped, and tried again.
func (f *filling) insert(ctx context.Context, text string) error {
	for tries := 0; ; tries++ {
		var sel focusInfo
		if err := f.doc.eval(ctx, "n => reins.selectAll(n)", &sel, f.info.Number); err != nil {
			return err
		}
		if sel.Gone {
			return errStale(f.a.Ref)
		}
		if !sel.OK {
			f.b.disarm(f.spot)
			return reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) does not take the focus; use another element", f.info.Role, f.info.Name, f.a.Ref).With("reason", "focus")
		}
		var events []cdp.Request
		switch {
		case text != "":
			events = keyedIn(text, f.info.Kind == "text")
		case !sel.Empty:
			events = stroke(named["Delete"], 0)
		}
		if err := f.send(ctx, events); err != nil {
			return err
		}
		g, err := f.landed(ctx)
		if err != nil || g.Blocked == nil {
			return err
		}
		if tries == 2 {
			return reins.Errorf(reins.CodeNotActionable, "%s %.100q (ref %s) keeps losing the focus to %.120q; fill that first or take a new snapshot", f.info.Role, f.info.Name, f.a.Ref, g.Blocked.Text).With("reason", "focus")
		}
	}
}

// keyedIn puts text in at once; keyed has its last character come by its key,
// where it has one: many fields that filter or check listen to keys alone.
func keyedIn(text string, keyed bool) []cdp.Request {
	last := text[len(text)-1]
	if !keyed || last <= ' ' || last > '~' {
		return []cdp.Request{cdp.Prepare(input.InsertText, input.InsertTextParams{Text: text})}
	}
	var events []cdp.Request
	if before := text[:len(text)-1]; before != "" {
		events = append(events, cdp.Prepare(input.InsertText, input.InsertTextParams{Text: before}))
	}
	return append(events, typeCluster(string(last))...)
}

// insertWithKeys is for editors that take their text out of a hidden field:
// only their own "select all" knows what they hold.
func (f *filling) insertWithKeys(ctx context.Context, text string) error {
	if err := f.focus(ctx, "focusOn"); err != nil {
		return err
	}
	all, err := parseChord("Control+A")
	if err != nil {
		return err
	}
	if err := f.send(ctx, chordEvents(all)); err != nil {
		return err
	}
	replace := stroke(named["Backspace"], 0) // editors bind it more often than Delete
	if text != "" {
		replace = []cdp.Request{cdp.Prepare(input.InsertText, input.InsertTextParams{Text: text})}
	}
	if err := f.send(ctx, replace); err != nil {
		return err
	}
	_, err = f.landed(ctx)
	return err
}
