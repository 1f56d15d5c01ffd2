package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// scene is a browser with a site, for the cases that are told as a person would
// go through them.
type scene struct {
	*testBrowser
	*testing.T
	site string
}

// visit opens a page of the site.
func (s *scene) visit(path string) *Reply {
	s.T.Helper()
	return s.testBrowser.open(s.T, s.site+path)
}

// ref is that of the element on the only line that holds text.
func (s *scene) ref(text string) reins.Ref {
	s.T.Helper()
	return refTo(s.T, s.see(s.T), text)
}

// quoted is a name as the outline writes it.
func quoted(name string) string { return fmt.Sprintf("%q", name) }

// press clicks the element of that name.
func (s *scene) press(name string) *Reply {
	s.T.Helper()
	return s.act(s.T, reins.Click{Ref: s.ref(quoted(name))})
}

// set fills the control of that name.
func (s *scene) set(name string, v reins.Value) *Reply {
	s.T.Helper()
	return s.act(s.T, reins.Fill{Ref: s.ref(quoted(name)), Value: v})
}

// says fails unless the page's result is want.
func (s *scene) says(want string) {
	s.T.Helper()
	if got := s.testBrowser.result(s.T); got != want {
		s.T.Errorf("the page says %q, want %q", got, want)
	}
}

// refused fails unless an action is refused with a code and words, within most.
func (s *scene) refused(a reins.Action, code reins.Code, words string, most time.Duration) {
	s.T.Helper()
	began := time.Now()
	_, err := s.try(a)
	wantCode(s.T, err, code)
	if err != nil && !strings.Contains(err.Error(), words) {
		s.T.Errorf("%q does not say %q", err, words)
	}
	if took := time.Since(began); took > most {
		s.T.Errorf("%s was refused after %s, want within %s", a.Verb(), took, most)
	}
}

// aCase is a fault that people met, with pages to meet it on and the way to the
// right outcome.
type aCase struct {
	name  string
	pages map[string]string // path to HTML
	walk  func(s *scene)
}

// walkThrough runs cases on both engines, each on a tab of its own.
func walkThrough(t *testing.T, cases []aCase) {
	pages := map[string]string{}
	for i, c := range cases {
		for path, html := range c.pages {
			pages[fmt.Sprintf("/%d%s", i, path)] = "<!doctype html><html lang=en><title>start</title>" + html
		}
	}
	served := site(t, pages)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				s := &scene{b, t, fmt.Sprintf("%s/%d", served.URL, i)}
				s.visit("/")
				c.walk(s)
			})
		}
	})
}
