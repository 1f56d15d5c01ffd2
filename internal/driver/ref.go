package driver

import (
	"strconv"
	"strings"

	"github.com/reins-browser/reins"
)

// The refs of an open dialog (SNAP-8).
const (
	refDialog        reins.Ref = "dialog"
	refDialogAccept  reins.Ref = "dialog-accept"
	refDialogDismiss reins.Ref = "dialog-dismiss"
	refDialogPrompt  reins.Ref = "dialog-prompt"
)

func isDialogRef(r reins.Ref) bool {
	return r == refDialog || r == refDialogAccept || r == refDialogDismiss || r == refDialogPrompt
}

// elementRef names element n of a document: "f2e12" (SNAP-4).
func elementRef(doc, n int) reins.Ref {
	return reins.Ref("f" + strconv.Itoa(doc) + "e" + strconv.Itoa(n))
}

// parseRef is the reverse of elementRef; ok is false for anything else.
func parseRef(r reins.Ref) (doc, n int, ok bool) {
	rest, found := strings.CutPrefix(string(r), "f")
	if !found {
		return 0, 0, false
	}
	d, e, found := strings.Cut(rest, "e")
	doc, errDoc := strconv.Atoi(d)
	n, errN := strconv.Atoi(e)
	ok = found && errDoc == nil && errN == nil && doc > 0 && n > 0 && elementRef(doc, n) == r
	return doc, n, ok
}

func errStale(r reins.Ref) *reins.Error {
	return reins.Errorf(reins.CodeStaleRef, "ref %.40q is of a page or an element that is gone; take a new snapshot", string(r))
}
