package agents

import "github.com/reins-browser/reins/internal/tasks/reading"

// wobMail opens the mail of a person and does what the task says. Icons without
// words are told by their place, as a reader of the outline would.
func wobMail(a *Agent) {
	a.Fail("not written yet")
	_ = reading.Match{}
}
