package agents

import "errors"

// Task is a page of the site with the agent that does it.
type Task struct {
	Name string
	Run  func(*Agent)
	// Elsewhere says that its page is one of MiniWoB++, under the name behind
	// the stroke.
	Elsewhere bool
}

// All lists every task, in a fixed order, grouped as the files are.
func All() []Task {
	var out []Task
	for _, group := range [][]Task{forms(), controls(), lists(), layers(), places(), apps(), flows()} {
		out = append(out, group...)
	}
	return out
}

func asRefusal(err error, r **Refusal) bool { return errors.As(err, r) }
