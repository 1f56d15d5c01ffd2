package driver

import (
	"testing"

	"github.com/reins-browser/reins"
)

// TestDialogsDoNotKeepATab: one dialog is the agent's to answer; a page that opens
// one after the other can be left all the same (ACT-8).
func TestDialogsDoNotKeepATab(t *testing.T) {
	b := newBrowser(t, reins.EngineShell)
	s := site(t, map[string]string{"/": `<title>Free</title>`, "/loop": `<title>c</title><script>setTimeout(() => { for(;;) confirm('again'); }, 50)</script>`})
	b.act(t, reins.Navigate{URL: s.URL + "/loop"})
	open := func() bool { return b.selected.dialog != nil }
	for range dialogFlood - 1 {
		b.eventually(t, "a dialog", open)
		_, err := b.try(reins.Navigate{URL: s.URL + "/"})
		wantCode(t, err, reins.CodeDialogOpen)
		b.act(t, reins.Click{Ref: refDialogAccept})
	}
	b.eventually(t, "the next dialog", open)
	if got := b.act(t, reins.Navigate{URL: s.URL + "/"}).Result; got.Navigation.Title != "Free" || len(got.Notes) == 0 {
		t.Errorf("it is at %+v, noting %q", got.Navigation, got.Notes)
	}
}
