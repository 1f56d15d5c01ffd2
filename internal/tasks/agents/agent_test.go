package agents

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reins-browser/reins/internal/tasks/reading"
)

// script answers tools from a list and writes down what was called.
type script struct {
	calls   []string
	answers []any // string or error, in order; the last one stays
}

func (s *script) next(format string, args ...any) (string, error) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
	if len(s.answers) == 0 {
		return "", nil
	}
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if err, ok := a.(error); ok {
		return "", err
	}
	return a.(string), nil
}

func (s *script) Navigate(_ context.Context, address string) (string, error) {
	return s.next("navigate %s", address)
}
func (s *script) Snapshot(context.Context, Look) (string, error) { return s.next("snapshot") }
func (s *script) Click(_ context.Context, ref string, how Click) (string, error) {
	return s.next("click %s %d", ref, how.Count)
}
func (s *script) Fill(_ context.Context, ref string, what Fill) (string, error) {
	return s.next("fill %s %s %v", ref, what.Value, what.Submit)
}
func (s *script) Press(_ context.Context, ref, key string) (string, error) {
	return s.next("press %s %s", ref, key)
}
func (s *script) Drag(_ context.Context, ref, to string) (string, error) {
	return s.next("drag %s %s", ref, to)
}

func (s *script) Type(_ context.Context, ref, text string) (string, error) {
	return s.next("type %s %s", ref, text)
}
func (s *script) Tabs(_ context.Context, verb, tab string) (string, error) {
	return s.next("%s %s", verb, tab)
}

const loginPage = "```yaml\n" + `- textbox "User name" [ref=f1e1]
- textbox "Password" [ref=f1e2]
- checkbox "Stay signed in" [ref=f1e3]
- button "Sign in" [ref=f1e4]
` + "```"

func TestAgentActsByRoleAndName(t *testing.T) {
	s := &script{}
	a := New(t.Context(), s, `Sign in as "ada" with the password "x".`, loginPage)
	login(a)
	if a.Err() != nil {
		t.Fatal(a.Err())
	}
	if diff := cmp.Diff([]string{"fill f1e1 ada false", "fill f1e2 x false", "click f1e4 0"}, s.calls); diff != "" {
		t.Error(diff)
	}
}

func TestFirstFaultStopsEverything(t *testing.T) {
	refusal := &Refusal{Text: "not_actionable: it is covered\nNext: …"}
	s := &script{answers: []any{"", refusal, ""}}
	a := New(t.Context(), s, `Sign in as "ada" with the password "x".`, loginPage)
	login(a)
	if !errors.Is(a.Err(), error(refusal)) || len(s.calls) != 2 {
		t.Fatalf("%v after %q", a.Err(), s.calls)
	}
	if a.Refused("stale_ref") || !a.Refused("not_actionable") || a.Err() != nil {
		t.Error("the refusal is not recognised by its code")
	}
	for _, c := range []struct {
		name string
		do   func(*Agent)
	}{
		{"missing", func(a *Agent) { a.Push("Nothing") }},
		{"no ref", func(a *Agent) { a.Click(&reading.Node{Role: "text"}) }},
		{"no quote", func(a *Agent) { a.Q(9) }},
		{"too many rounds", func(a *Agent) { a.Repeat(3, func() bool { return false }) }},
	} {
		s := &script{}
		a := New(t.Context(), s, "", loginPage)
		c.do(a)
		if a.Err() == nil || len(s.calls) > 0 {
			t.Errorf("%s: %v after %q", c.name, a.Err(), s.calls)
		}
	}
}

func TestUntilLooksAgainAndGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []any{"```\n```", "```\n```", loginPage}}
		a := New(t.Context(), s, "", "")
		if n := a.Until(reading.Match{Role: "button"}); n.Ref != "f1e4" || len(s.calls) != 3 {
			t.Errorf("found %q after %d looks", n.Ref, len(s.calls))
		}
		start := time.Now()
		a.Until(reading.Match{Role: "slider"})
		if took := time.Since(start); a.Err() == nil || took < patience || took > patience+2*pause {
			t.Errorf("%v after %s", a.Err(), took)
		}
	})
}

func TestTasksAreNamedOnceAndHaveAgents(t *testing.T) {
	all := append(All(), MiniWoB()...)
	names := map[string]bool{}
	for _, task := range all {
		if names[task.Name] {
			t.Errorf("%s is listed twice", task.Name)
		}
		names[task.Name] = true
		if task.Run == nil {
			t.Errorf("%s has no agent", task.Name)
		}
	}
	if len(all) < 60 {
		t.Errorf("only %d tasks", len(all))
	}
}
