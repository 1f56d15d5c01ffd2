package driver

import (
	"context"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// dialog is an open JavaScript dialog (SNAP-8, ACT-8). It does not change but
// for the answer being prepared, which browser.mu guards.
type dialog struct {
	kind     string // "alert", "confirm", "prompt", "beforeunload"
	message  string
	fallback string       // the prompt's default text
	session  *cdp.Session // that answers it
	typed    *string      // what a prompt was filled with
}

func (d *dialog) describe() *reins.Dialog {
	return &reins.Dialog{Kind: d.kind, Message: bounded(d.message), Default: bounded(d.fallback)}
}

func errDialog(t *tab, d *dialog) *reins.Error {
	out := ""
	if t.floodedLocked() {
		out = ", or leave this page with navigate: it opens one dialog after the other"
	}
	return reins.Errorf(reins.CodeDialogOpen, "a dialog of kind %s is open in tab %s and says %.200q; answer it with click on ref %s or %s%s", d.kind, t.id, d.message, refDialogAccept, refDialogDismiss, out).
		With("dialog", d.describe())
}

// dialogOpened keeps a dialog as the tab's state. A question whether to leave
// that our own navigation or close has caused is answered with yes (ACT-8).
func (t *tab) dialogOpened(s *cdp.Session, v page.EventJavascriptDialogOpening) {
	d := &dialog{kind: string(v.Type), message: v.Message, fallback: v.DefaultPrompt, session: s}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if d.kind == "beforeunload" && (t.closing || t.leaving > 0) {
		s.Send(page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true})
		t.dismissed++
		for fx := range t.b.effects {
			fx.notes = append(fx.notes, "the page of tab "+string(t.id)+" asked whether to leave it; that was accepted")
		}
		return
	}
	t.dialogs++
	if t.floodedLocked() && t.leaving > 0 {
		t.dismissLocked(d)
		return
	}
	t.dialog = d
	for fx := range t.b.effects {
		if fx.tab == t {
			fx.dialog = d
		}
	}
	t.interruptLocked(errDialog(t, d))
	t.b.emit(Event{Kind: "dialog", Tab: t.infoLocked(), Note: d.kind, Dialog: d.describe()})
	t.b.changedLocked()
}

func (t *tab) dialogClosedLocked() bool {
	if t.dialog == nil {
		return false
	}
	t.dialog = nil
	t.b.tellLocked("dialog_closed", t)
	return true
}

// answer handles what the plain actions do to an open dialog; done is false
// when the action is not about one.
func (b *browser) answer(ctx context.Context, x *action) (done bool, err error) {
	_, ref := x.cmd.Action.Target()
	b.mu.Lock()
	d := x.tab.dialog
	b.mu.Unlock()
	if d == nil {
		if isDialogRef(ref) {
			return true, reins.Errorf(reins.CodeStaleRef, "tab %s has no dialog open any more; take a new snapshot", x.tab.id)
		}
		return false, nil
	}
	about := isDialogRef(ref)
	switch a := x.cmd.Action.(type) {
	case reins.Click:
		switch {
		case ref == refDialogAccept:
			return true, b.answerDialog(ctx, x, d, true)
		case ref == refDialogDismiss && d.kind != "alert":
			return true, b.answerDialog(ctx, x, d, false)
		}
	case reins.Fill:
		if ref == refDialogPrompt || ref == refDialog && d.kind == "prompt" {
			return true, b.fillDialog(ctx, x, d, a)
		}
	case reins.Press:
		if about || ref == "" {
			return b.pressOnDialog(ctx, x, d, a.Key)
		}
	case reins.PressKey:
		return b.pressOnDialog(ctx, x, d, a.Key)
	}
	if about {
		if _, isSnapshot := x.cmd.Action.(reins.Snapshot); !isSnapshot {
			return true, reins.Errorf(reins.CodeInvalidInput, "the open dialog of kind %s does not take that; click on ref %s or %s", d.kind, refDialogAccept, refDialogDismiss)
		}
	}
	return false, nil
}

// pressOnDialog answers with the keys that a person would use.
func (b *browser) pressOnDialog(ctx context.Context, x *action, d *dialog, key string) (bool, error) {
	switch key {
	case "Enter":
		return true, b.answerDialog(ctx, x, d, true)
	case "Escape":
		return true, b.answerDialog(ctx, x, d, false)
	}
	return false, nil
}

// fillDialog sets what a prompt is answered with.
func (b *browser) fillDialog(ctx context.Context, x *action, d *dialog, a reins.Fill) error {
	if d.kind != "prompt" || a.Value.Text == nil {
		return reins.Errorf(reins.CodeInvalidInput, "the open dialog of kind %s takes text only when it is a prompt; click on ref %s or %s", d.kind, refDialogAccept, refDialogDismiss)
	}
	b.mu.Lock()
	d.typed = a.Value.Text
	b.mu.Unlock()
	x.reply.Result.Target = &reins.Target{Role: "textbox", Name: bounded(d.message)}
	if a.Submit {
		return b.answerDialog(ctx, x, d, true)
	}
	x.reply.Result.Changes = &reins.Changes{Settled: true, Value: bounded(*a.Value.Text)}
	return nil
}

// answerDialog closes the dialog and waits until the page goes on: it is
// gone, and another one open or the script that showed it past it.
func (b *browser) answerDialog(ctx context.Context, x *action, d *dialog, accept bool) error {
	params := page.HandleJavaScriptDialogParams{Accept: accept}
	b.mu.Lock()
	if d.kind == "prompt" && accept {
		params.PromptText = d.fallback
		if d.typed != nil {
			params.PromptText = *d.typed
		}
	}
	if x.tab.dialog == d { // the next event may already be about another one
		x.tab.dialogClosedLocked()
		b.changedLocked()
	}
	b.mu.Unlock()
	name := "OK"
	if !accept {
		name = "Cancel"
	}
	x.reply.Result.Target = &reins.Target{Role: "button", Name: name}
	settling := b.settle(x)
	if _, err := cdp.Call(ctx, d.session, page.HandleJavaScriptDialog, params); err != nil {
		settling.stop()
		if _, refused := cdp.IsProtocol(err); refused {
			return reins.Errorf(reins.CodeStaleRef, "the dialog of tab %s was closed meanwhile; take a new snapshot", x.tab.id).Because(err)
		}
		return err
	}
	if d.kind == "beforeunload" && accept {
		settling.begins(ctx)
	}
	settled := b.settleDialog(ctx, x)
	x.changes().Settled = settled
	if !settled || x.tab.blocked() != nil {
		settling.stop()
		return ctx.Err()
	}
	// The script that goes on may lead somewhere (ACT-6).
	err := settling.finish(ctx, x, or(waitsOf(x.cmd.Action).Settle, waitSettle), nil, x.fx.doc)
	x.changes().Focus, x.changes().FocusRef = nil, ""
	return err
}

// waitsOf are the waits of an action that can answer a dialog.
func waitsOf(a reins.Action) reins.Waits {
	switch a := a.(type) {
	case reins.Click:
		return a.Waits
	case reins.Fill:
		return a.Waits
	case reins.Press:
		return a.Waits
	case reins.PressKey:
		return a.Waits
	}
	return reins.Waits{}
}

// fileChooser is a file chooser that the page asked for. The browser shows
// none; a fill of the input answers it.
type fileChooser struct {
	frame    *frame
	node     proto.BackendNodeID // of the input; 0 when there is none
	multiple bool
}

// chooserOpened keeps a file chooser as the tab's state.
func (t *tab) chooserOpened(v page.EventFileChooserOpened) {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	t.chooser = &fileChooser{
		frame: t.frames[v.FrameID], node: v.BackendNodeID,
		multiple: v.Mode == page.FileChooserOpenedModeSelectMultiple,
	}
	for fx := range t.b.effects {
		if fx.tab == t {
			fx.chooser = t.chooser
		}
	}
	t.b.changedLocked()
}
