package driver

import "github.com/chromedp/cdproto/page"

// dialogFlood is how many dialogs of one document an agent has to answer: from
// the last of them on, it can also leave the page. A page that opens dialogs in a
// loop would else keep its tab for ever.
const dialogFlood = 3

func (t *tab) floodedLocked() bool { return t.dialogs >= dialogFlood }

// leaveDialogs dismisses the dialog that is open when there were many before it;
// those that the page opens until it is left are dismissed as they come.
func (v *voyage) leaveDialogs() {
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	d := v.t.dialog
	if d == nil || !v.t.floodedLocked() {
		return
	}
	v.t.dialogClosedLocked()
	v.b.changedLocked()
	v.t.dismissLocked(d)
	v.x.note("the page of tab %s opened one dialog after the other; they were dismissed to leave it", v.t.id)
}

// dismissLocked answers a dialog with no, or with yes when it asks whether to
// leave.
func (t *tab) dismissLocked(d *dialog) {
	t.dismissed++
	d.session.Send(page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: d.kind == "beforeunload"})
}
