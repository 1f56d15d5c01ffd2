package reins

import (
	"fmt"
	"log/slog"
	"time"
	"unicode"
	"unicode/utf8"
)

// ResourceKey names one resource: an ID within a project. Both are 1 to 128
// bytes of [A-Za-z0-9._:-].
type ResourceKey struct {
	Project string `json:"project"`
	ID      string `json:"resource"`
}

// String is "project/id".
func (k ResourceKey) String() string { return k.Project + "/" + k.ID }

// Validate reports invalid_input naming the part that is wrong.
func (k ResourceKey) Validate() error {
	if err := checkID("project", k.Project); err != nil {
		return err
	}
	return checkID("resource", k.ID)
}

// Session is an agent conversation, qualified by the harness it runs in:
// ("opencode", "456").
type Session struct {
	Harness string `json:"harness"`
	Native  string `json:"native"`
}

// Attachment is the host's word on which session may drive a resource now
// (ATT-1). A nil Session means detached. Order is by Revision alone.
type Attachment struct {
	AuthorityID string   `json:"authority"`
	Revision    uint64   `json:"revision"`
	Session     *Session `json:"session,omitempty"`
}

// Equal reports whether a and b are the same revision with the same content.
func (a Attachment) Equal(b Attachment) bool {
	if a.AuthorityID != b.AuthorityID || a.Revision != b.Revision || (a.Session == nil) != (b.Session == nil) {
		return false
	}
	return a.Session == nil || *a.Session == *b.Session
}

// Validate reports invalid_input for a malformed attachment; revision 0 with a
// session is one.
func (a Attachment) Validate() error {
	if a.Revision == 0 && a.Session != nil {
		return Errorf(CodeInvalidInput, "attachment revision 0 is the detached state and takes no session; use revision 1 or above")
	}
	if a.AuthorityID == "" && a.Revision == 0 {
		return nil
	}
	if err := checkID("authority", a.AuthorityID); err != nil {
		return err
	}
	return a.Session.validate()
}

func (s *Session) validate() error {
	if s == nil {
		return nil
	}
	if err := checkID("session harness", s.Harness); err != nil {
		return err
	}
	return checkID("session native ID", s.Native)
}

// Role is what a participant is.
type Role string

// The two roles.
const (
	RoleAgent Role = "agent"
	RoleHuman Role = "human"
)

// Source is the door through which a participant comes; the door observes it.
type Source string

// The doors.
const (
	SourceMCP     Source = "mcp"
	SourcePipe    Source = "pipe"
	SourceAPI     Source = "api"
	SourceViewer  Source = "viewer"
	SourceLibrary Source = "library"
)

// Binding is the complete statement of who may act on what, from where
// (CAP-1). A capability is bound to one, and acquiring a lease needs every
// field to match.
type Binding struct {
	Project     string   `json:"project"`
	Resource    string   `json:"resource"`
	AuthorityID string   `json:"authority,omitempty"`
	Revision    uint64   `json:"revision,omitempty"`
	Session     *Session `json:"session,omitempty"` // nil for people
	Actor       string   `json:"actor"`             // 1..256 bytes of printable UTF-8
	Role        Role     `json:"role"`
	Peer        string   `json:"peer"` // 1..256 bytes of printable UTF-8
	Source      Source   `json:"source"`
	Scope       string   `json:"scope,omitempty"`
	Run         string   `json:"run,omitempty"`
}

// Key is the resource the binding is about.
func (b Binding) Key() ResourceKey { return ResourceKey{b.Project, b.Resource} }

// Equal reports whether every field matches.
func (b Binding) Equal(o Binding) bool {
	bs, os := b.Session, o.Session
	b.Session, o.Session = nil, nil
	if b != o || (bs == nil) != (os == nil) {
		return false
	}
	return bs == nil || *bs == *os
}

// Validate checks the form of every field, and that an agent names a session
// and a person none.
func (b Binding) Validate() error {
	if err := b.Key().Validate(); err != nil {
		return err
	}
	if err := b.Session.validate(); err != nil {
		return err
	}
	switch b.Role {
	case RoleAgent:
		if b.Session == nil || b.Revision == 0 {
			return Errorf(CodeInvalidInput, "an agent binding needs the session and revision of the current attachment")
		}
		if err := checkID("authority", b.AuthorityID); err != nil {
			return err
		}
	case RoleHuman:
		if b.Session != nil {
			return Errorf(CodeInvalidInput, "a human binding takes no session")
		}
	default:
		return Errorf(CodeInvalidInput, "role %q is unknown; use \"agent\" or \"human\"", string(b.Role))
	}
	switch b.Source {
	case SourceMCP, SourcePipe, SourceAPI, SourceViewer, SourceLibrary:
	default:
		return Errorf(CodeInvalidInput, "source %q is unknown; use mcp, pipe, api, viewer or library", string(b.Source))
	}
	for _, f := range []struct {
		name, value string
		optional    bool
	}{{"actor", b.Actor, false}, {"peer", b.Peer, false}, {"scope", b.Scope, true}, {"run", b.Run, true}} {
		if f.optional && f.value == "" {
			continue
		}
		if err := checkText(f.name, f.value, 256); err != nil {
			return err
		}
	}
	return nil
}

// Capability is an issued right to acquire a lease. Token is shown once, here;
// it formats as "[token]" and is never kept, logged or put into an error.
type Capability struct {
	ID      string    `json:"capability"`
	Token   Token     `json:"token"`
	Binding Binding   `json:"binding"`
	Expires time.Time `json:"expires"`
}

// LogValue leaves the token out of structured logs.
func (c Capability) LogValue() slog.Value {
	return slog.GroupValue(slog.String("capability", c.ID), slog.Time("expires", c.Expires))
}

// Token is the secret of a capability: 256 random bits as text. It hides
// itself from fmt and slog; convert it to string to hand it over.
type Token string

// String hides the token.
func (Token) String() string { return "[token]" }

// LogValue hides the token.
func (Token) LogValue() slog.Value { return slog.StringValue("[token]") }

// Format hides the token whatever the verb.
func (Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[token]") }

// Authority is an immutable value that says under what an action runs
// (LSE-5). Incarnation is 0 when no browser runs.
type Authority struct {
	RuntimeID    string  `json:"runtime"`
	Generation   string  `json:"generation"`
	Incarnation  uint64  `json:"incarnation"`
	CapabilityID string  `json:"capability"`
	LeaseID      string  `json:"lease"`
	Binding      Binding `json:"binding"`
}

func checkID(name, s string) error {
	if len(s) < 1 || len(s) > 128 {
		return Errorf(CodeInvalidInput, "%s must have 1 to 128 characters, not %d", name, len(s))
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == ':' || c == '-' {
			continue
		}
		return Errorf(CodeInvalidInput, "%s %q may hold only letters, digits and . _ : -", name, s)
	}
	return nil
}

func checkText(name, s string, limit int) error {
	if len(s) < 1 || len(s) > limit {
		return Errorf(CodeInvalidInput, "%s must have 1 to %d bytes, not %d", name, limit, len(s))
	}
	if !utf8.ValidString(s) {
		return Errorf(CodeInvalidInput, "%s is not valid UTF-8", name)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return Errorf(CodeInvalidInput, "%s holds the unprintable character %U", name, r)
		}
	}
	return nil
}
