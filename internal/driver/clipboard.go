package driver

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

const (
	clipBytes   = 1 << 20         // of a text that is copied (INP-1)
	clipAnswers = 5 * time.Second // for all that one use of the clipboard asks of the page
	clipTries   = 3               // of a paste that found another text than was put there
	putTries    = 3               // pictures that the focus may take to arrive
)

// clipInfo is what a document saw of a paste (js/view.js: clipTaken).
type clipInfo struct {
	Text  string `json:"text"`
	Taken bool   `json:"taken"`
	Long  int    `json:"long"`  // the length of a text above the bound
	Seen  bool   `json:"seen"`  // a paste came
	Stale bool   `json:"stale"` // and brought another text
}

// clipboard pastes, copies or cuts as a person's keyboard would: the page gets the
// keys of the shortcut and the events that follow from them. The browser's own
// clipboard is in between, and holds nothing of it afterwards.
func (x *action) clipboard(ctx context.Context, a reins.Clipboard) error {
	guarded, release := x.tab.guard(ctx)
	defer release()
	if guarded.Err() != nil {
		return context.Cause(guarded)
	}
	x.tab.b.clipping.Lock() // there is one for all tabs
	defer x.tab.b.clipping.Unlock()
	return x.tab.within(guarded, clipAnswers, func(ctx context.Context) error {
		if a.Kind == "paste" {
			return x.paste(ctx, a.Text)
		}
		return x.copyOut(ctx, a.Kind)
	})
}

func (x *action) paste(ctx context.Context, text string) error {
	defer x.clearClip()
	for range clipTries {
		if err := x.putClip(ctx, text); err != nil {
			return err
		}
		if err := x.everywhere(ctx, "t => reins.expectClip(t)", nil, text); err != nil {
			return err
		}
		if err := x.chord(ctx, "v"); err != nil {
			return err
		}
		got, err := x.clipTaken(ctx)
		if err != nil {
			return err
		}
		if !got.Stale {
			return nil
		}
	}
	return reins.Errorf(reins.CodeToolFailed, "the browser's clipboard did not take the text; type it instead")
}

func (x *action) copyOut(ctx context.Context, kind string) error {
	if err := x.putClip(ctx, ""); err != nil {
		return err
	}
	defer x.clearClip()
	letter := "c"
	if kind == "cut" {
		letter = "x"
	}
	if err := x.chord(ctx, letter); err != nil {
		return err
	}
	if err := x.everywhere(ctx, "() => reins.takeClip()", nil); err != nil {
		return err
	}
	// The event of a key that has no name, which the page does not get.
	hidden := rawKey(reins.Key{Kind: "down", Key: "v", Code: "KeyV", Modifiers: []string{"Control"}})
	if err := x.handled(ctx, hidden); err != nil {
		return err
	}
	got, err := x.clipTaken(ctx)
	switch {
	case err != nil:
		return err
	case got.Long > 0 || len(got.Text) > clipBytes:
		return reins.Errorf(reins.CodeQuotaExceeded, "what is selected has %d characters; at most %d bytes are copied: select less", max(got.Long, len([]rune(got.Text))), clipBytes)
	case got.Text == "":
		x.note("nothing is selected that can be copied")
	}
	x.reply.Result.Clipboard = x.cmd.Redact.Text(got.Text)
	return nil
}

// chord is a shortcut as from a keyboard.
func (x *action) chord(ctx context.Context, letter string) error {
	down := reins.Key{Kind: "down", Key: letter, Code: "Key" + string(letter[0]-'a'+'A'), Modifiers: []string{"Control"}}
	up := down
	up.Kind = "up"
	return x.handled(ctx, rawInput{requests: append(rawKey(down).requests, rawKey(up).requests...)})
}

// handled sends input and waits until the page has handled it.
func (x *action) handled(ctx context.Context, in rawInput) error {
	for _, p := range x.tab.pageSession().SendAll(in.requests...) {
		if err := p.Wait(ctx, nil); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return evalError(x.tab, err)
		}
	}
	return nil
}

// putClip puts a text on the browser's clipboard. Only a document that has the
// focus may do that, or one around it; which that is, trying tells. While the
// focus is on its way from one process to another it is none of them.
func (x *action) putClip(ctx context.Context, text string) error {
	for range putTries {
		docs, err := x.tab.documents(ctx)
		if err != nil {
			return err
		}
		for i, d := range docs {
			got, err := d.wait(ctx, putting(d.document, text))
			if err != nil && (i == 0 || ctx.Err() != nil) {
				return err
			}
			var ok bool
			if err == nil && d.result(got, &ok) == nil && ok {
				return nil
			}
		}
		if err := docs[0].eval(ctx, "() => reins.after(1e9, 0)", nil); err != nil {
			return err
		}
	}
	return reins.Errorf(reins.CodeToolFailed, "the page in tab %s does not let the clipboard be used; type the text instead", x.tab.id)
}

func putting(d *document, text string) cdp.Reply[runtime.CallFunctionOnResult] {
	return cdp.Send(d.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: "t => reins.putClip(t)", Arguments: arguments([]any{text}), UniqueContextID: d.context,
		ReturnByValue: new(true), Silent: new(true), UserGesture: new(true),
	})
}

// clearClip leaves nothing on the clipboard for who comes next.
func (x *action) clearClip() {
	ctx, cancel := context.WithTimeout(context.Background(), clipAnswers)
	defer cancel()
	for ctx.Err() == nil && x.tab.blocked() == nil {
		err := x.putClip(ctx, "")
		if !errors.Is(err, errReplaced) { // by what was pasted: its document has gone
			return
		}
		x.tab.b.awaitParsed(ctx, x.tab)
	}
}

// everywhere calls a function in all documents of the tab; each is for itself,
// but for the main one.
func (x *action) everywhere(ctx context.Context, fn string, each func(clipInfo), args ...any) error {
	docs, err := x.tab.documents(ctx)
	if err != nil {
		return err
	}
	replies := make([]cdp.Reply[runtime.CallFunctionOnResult], len(docs))
	for i, d := range docs {
		replies[i] = d.startEval(fn, true, args)
	}
	for i, d := range docs {
		got, err := d.wait(ctx, replies[i])
		if err != nil && i == 0 {
			return err
		}
		var info clipInfo
		if err == nil && d.result(got, &info) == nil && each != nil {
			each(info)
		}
	}
	return nil
}

// clipTaken is what the documents saw of the paste.
func (x *action) clipTaken(ctx context.Context) (all clipInfo, err error) {
	err = x.everywhere(ctx, "most => reins.clipTaken(most)", func(one clipInfo) {
		all.Seen, all.Stale = all.Seen || one.Seen, all.Stale || one.Stale
		all.Long = max(all.Long, one.Long)
		if one.Taken {
			all.Text, all.Taken = one.Text, true
		}
	}, clipBytes)
	return all, err
}
