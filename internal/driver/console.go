package driver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	protolog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// message is an entry of the console.
type message struct {
	reins.ConsoleMessage
	at int
}

func (m *message) when() int { return m.at }

// heard is how much a tab wrote to its console lately.
type heard struct {
	since time.Time
	n     int
}

// mostHeard is how many writings of a page to its console are read in a second.
const mostHeard = 4 * keptEntries

// shouts reports whether an event is one of more writings to the console than
// are read. Those are dropped unread: a page that does
// nothing else would have the others wait for what the browser says of them.
func (t *tab) shouts(e cdp.Event) bool {
	switch e.Method {
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method, protolog.EntryAdded.Method:
	default:
		return false
	}
	h := &t.heard
	if now := time.Now(); now.Sub(h.since) >= time.Second {
		*h = heard{since: now}
	}
	if h.n++; h.n == mostHeard+1 {
		t.journal.miss()
	}
	return h.n > mostHeard
}

// miss notes in the console's log that writings were dropped.
func (j *journal) miss() {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := fmt.Sprintf("(the page wrote more than %d messages within a second; the rest of them is not here)", mostHeard)
	j.console.add(&message{reins.ConsoleMessage{Level: "warning", Text: text}, j.tickLocked()})
}

// levels of messages, gravest first.
var levels = []string{"error", "warning", "info", "debug"}

// consoleLog answers the verb console.
func (b *browser) consoleLog(x *action, a reins.Console) error {
	most := 1
	for i, l := range levels {
		if l == a.Level {
			most = i
		}
	}
	j := &x.tab.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	since := j.sinceLocked(x.cmd.Lease, string(a.Verb()), a.All, j.page.console)
	out := &reins.ConsoleLog{Messages: []reins.ConsoleMessage{}}
	for _, m := range j.console.entries {
		if m.at > since && gravity(m.Level) <= most {
			out.Messages = append(out.Messages, m.ConsoleMessage)
		}
	}
	n := len(out.Messages)
	fit := fitting(n, func(i int) int { return len(out.Messages[i].Text) + len(out.Messages[i].URL) })
	out.Messages, out.Dropped = out.Messages[n-fit:], n-fit
	if out.Dropped > 0 {
		x.note("%d older messages did not fit", out.Dropped)
	}
	if j.console.dropped > since {
		x.note("of more than %d messages the oldest were not kept", keptEntries)
	}
	x.reply.Result.Console = out
	return nil
}

func gravity(level string) int {
	for i, l := range levels {
		if l == level {
			return i
		}
	}
	return len(levels)
}

// consoleLocked notes an event of the console; false when it is none.
func (j *journal) consoleLocked(e cdp.Event) bool {
	var m reins.ConsoleMessage
	switch e.Method {
	case runtime.ConsoleAPICalled.Method:
		m = called(e)
	case runtime.ExceptionThrown.Method:
		m = thrown(e)
	case protolog.EntryAdded.Method:
		m = logged(e)
	default:
		return false
	}
	if m.Level == "" {
		return true
	}
	m.Text, m.URL = bounded(m.Text), bounded(m.URL)
	if n := len(j.console.entries); n > 0 {
		last := j.console.entries[n-1]
		same := last.ConsoleMessage
		same.Count = 0
		if same == m && last.at > j.page.console {
			last.Count = max(last.Count, 1) + 1
			last.at = j.tickLocked()
			return true
		}
	}
	j.console.add(&message{m, j.tickLocked()})
	return true
}

// called is a call of console.log and its like.
func called(e cdp.Event) reins.ConsoleMessage {
	var v struct {
		Type  string         `json:"type"`
		Args  []remoteObject `json:"args"`
		Stack struct {
			Frames []struct {
				URL  string `json:"url"`
				Line int    `json:"lineNumber"`
			} `json:"callFrames"`
		} `json:"stackTrace"`
	}
	if e.Decode(&v) != nil {
		return reins.ConsoleMessage{}
	}
	m := reins.ConsoleMessage{Level: "info", Text: format(v.Args)}
	switch v.Type {
	case "error", "assert":
		m.Level = "error"
	case "warning":
		m.Level = "warning"
	case "debug":
		m.Level = "debug"
	case "clear", "endGroup", "profile", "profileEnd":
		return reins.ConsoleMessage{}
	}
	if len(v.Stack.Frames) > 0 {
		m.URL, m.Line = v.Stack.Frames[0].URL, v.Stack.Frames[0].Line+1
	}
	return m
}

// thrown is an exception that nobody caught.
func thrown(e cdp.Event) reins.ConsoleMessage {
	v, ok := cdp.Is(e, runtime.ExceptionThrown)
	if !ok || v.ExceptionDetails == nil {
		return reins.ConsoleMessage{}
	}
	d := v.ExceptionDetails
	text := d.Text
	if x := d.Exception; x != nil {
		what := x.Description
		if what == "" {
			what = string(x.Value)
		}
		text = strings.TrimSpace(text + " " + what)
	}
	return reins.ConsoleMessage{Level: "error", Text: text, URL: d.URL, Line: int(d.LineNumber) + 1}
}

// logged is what the browser itself has to say about the page.
func logged(e cdp.Event) reins.ConsoleMessage {
	var v struct {
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
			URL   string `json:"url"`
			Line  int    `json:"lineNumber"`
		} `json:"entry"`
	}
	if e.Decode(&v) != nil {
		return reins.ConsoleMessage{}
	}
	m := reins.ConsoleMessage{Level: v.Entry.Level, Text: v.Entry.Text, URL: v.Entry.URL}
	if m.Level == "verbose" {
		m.Level = "debug"
	}
	if v.Entry.Line > 0 {
		m.Line = v.Entry.Line + 1
	}
	return m
}

// remoteObject is an argument of a call, as far as it can be written down.
type remoteObject struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Value       json.RawMessage `json:"value"`
	Special     string          `json:"unserializableValue"`
	Description string          `json:"description"`
	Preview     *preview        `json:"preview"`
}

// preview is the first things in an object.
type preview struct {
	Subtype    string    `json:"subtype"`
	Overflow   bool      `json:"overflow"`
	Properties []preview `json:"properties"`
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	Value      string    `json:"value"`
}

func (o remoteObject) String() string {
	switch {
	case o.Type == "string":
		var s string
		if json.Unmarshal(o.Value, &s) == nil {
			return s
		}
	case o.Subtype == "error":
		return o.Description
	case o.Preview != nil && (o.Type == "object"):
		return o.Preview.text()
	case o.Special != "":
		return o.Special
	case len(o.Value) > 0:
		return string(o.Value)
	}
	if o.Description != "" {
		return o.Description
	}
	return o.Type
}

func (p *preview) text() string {
	var parts []string
	for _, each := range p.Properties {
		value := each.Value
		if each.Type == "string" {
			value = strconv.Quote(value)
		}
		if p.Subtype != "array" {
			value = each.Name + ": " + value
		}
		parts = append(parts, value)
	}
	if p.Overflow {
		parts = append(parts, "…")
	}
	if p.Subtype == "array" {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// format writes arguments as the console does, with the directives that the
// first of them may hold.
func format(args []remoteObject) string {
	var b strings.Builder
	if len(args) > 1 && args[0].Type == "string" && strings.Contains(args[0].String(), "%") {
		args = directives(&b, args[0].String(), args[1:])
		if len(args) > 0 {
			b.WriteByte(' ')
		}
	}
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// directives writes the text with arguments put in, and returns those left.
func directives(b *strings.Builder, text string, args []remoteObject) []remoteObject {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) || len(args) == 0 {
			b.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case 's', 'd', 'i', 'f', 'o', 'O':
			b.WriteString(args[0].String())
		case 'c': // a style
		case '%':
			b.WriteByte('%')
			i++
			continue
		default:
			b.WriteByte('%')
			continue
		}
		args = args[1:]
		i++
	}
	return args
}
