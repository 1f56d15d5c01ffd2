package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// seen is what the walk has read of the page that it is on: the entries of its
// snapshots, newest reading first.
type seen struct{ entries []entry }

// entry is one line of a snapshot.
type entry struct {
	role, name string
	ref        string
	line       string // without indentation
}

// entryForm is a mark of what changed, indentation, role, name, and the rest.
var entryForm = regexp.MustCompile(`^([-+~ ] )?\s*- ([a-z]+)(?: ("(?:[^"\\]|\\.)*"))?(.*)$`)

var refForm = regexp.MustCompile(`\[ref=([^\]]+)\]`)

// read adds a reading; whole means that it replaces what was read before.
func (s *seen) read(content string, whole bool) {
	var now []entry
	for line := range strings.Lines(content) {
		m := entryForm.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		e := entry{role: m[2], line: strings.TrimSpace(strings.TrimPrefix(line, m[1]))}
		if name, err := strconv.Unquote(m[3]); err == nil {
			e.name = name
		}
		if ref := refForm.FindStringSubmatch(m[4]); ref != nil {
			e.ref = ref[1]
		}
		if !whole && m[1] == "- " { // it is gone
			s.entries = slices.DeleteFunc(s.entries, func(old entry) bool { return old.line == e.line })
			continue
		}
		now = append(now, e)
	}
	if !whole {
		now = append(now, s.entries...)
	}
	s.entries = now
}

// find returns the ref of the first entry with that role and name; no role means
// any.
func (s *seen) find(role, name string) (string, error) {
	for _, e := range s.entries {
		if e.ref != "" && (role == "" || e.role == role) && e.name == name {
			return e.ref, nil
		}
	}
	return "", fmt.Errorf("the page shows no %s %q; it shows:\n%s", role, name, s)
}

// has returns the newest line that contains the text.
func (s *seen) has(text string) (string, bool) {
	for _, e := range s.entries {
		if strings.Contains(e.line, text) {
			return e.line, true
		}
	}
	return "", false
}

// actionable counts the entries that have a ref.
func (s *seen) actionable() int {
	refs := map[string]bool{}
	for _, e := range s.entries {
		if e.ref != "" {
			refs[e.ref] = true
		}
	}
	return len(refs)
}

// String is what was read, shortened for an error.
func (s *seen) String() string {
	var b strings.Builder
	for _, e := range s.entries {
		b.WriteString("  " + e.line + "\n")
		if b.Len() > 3000 {
			b.WriteString("  …\n")
			break
		}
	}
	return b.String()
}
