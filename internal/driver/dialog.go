package driver

import (
	proto "github.com/chromedp/cdproto/cdp"

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
	return reins.Errorf(reins.CodeDialogOpen, "a dialog of kind %s is open in tab %s and says %.200q; answer it with click on ref %s or %s", d.kind, t.id, d.message, refDialogAccept, refDialogDismiss).
		With("dialog", d.describe())
}

// fileChooser is a file chooser that the page asked for. The browser shows
// none; a fill of the input answers it.
type fileChooser struct {
	frame    *frame
	node     proto.BackendNodeID // of the input; 0 when there is none
	multiple bool
}
