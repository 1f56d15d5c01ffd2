package hostdir

import (
	"github.com/reins-browser/reins"
)

// fenced says that ownership cannot be established, and what a person can do.
func fenced(format string, args ...any) *reins.Error {
	return reins.Errorf(reins.CodeFenced, format, args...)
}

// fencedBy is fenced with a cause.
func fencedBy(cause error, format string, args ...any) *reins.Error {
	return fenced(format, args...).Because(cause)
}

// startOver is the way out that always works (OWN-5).
const startOver = "stop every program that uses the directory, then remove the whole directory"
