package reins

import (
	"slices"
	"strings"
	"time"
)

// Backend names how a browser is boxed in.
type Backend string

// The backends.
const (
	BackendProcess Backend = "process"
	BackendDocker  Backend = "docker"
)

// Engine names which Chromium runs (CELL-13).
type Engine string

// The engines: the ordinary Chromium, and the smaller headless shell.
const (
	EngineFull  Engine = "full"
	EngineShell Engine = "shell"
)

// Scheduling names how a resource orders operations (SCH-1).
type Scheduling string

// The two orders.
const (
	Serial Scheduling = "serial"
	PerTab Scheduling = "per-tab"
)

// BrowserSpec says what browser a resource gets. The zero value is the
// default: process backend, full engine, headless, ephemeral, serial.
type BrowserSpec struct {
	Backend    Backend          `json:"backend,omitempty"`
	Engine     Engine           `json:"engine,omitempty"`
	Desktop    bool             `json:"desktop,omitempty"`
	Workspace  string           `json:"workspace,omitempty"` // a persistent profile's name; empty is ephemeral
	Scheduling Scheduling       `json:"scheduling,omitempty"`
	Egress     EgressPolicy     `json:"egress,omitzero"`
	Navigation NavigationPolicy `json:"navigation,omitzero"`
	Verbs      []Verb           `json:"verbs,omitempty"` // agent verbs permitted (CAP-7); empty is the six
	WebGL      bool             `json:"webgl,omitempty"`
	Locale     string           `json:"locale,omitempty"`    // BCP 47; empty is en-US
	TimeZone   string           `json:"time_zone,omitempty"` // IANA; empty is UTC
}

// EgressPolicy adds to the network door's rules for one resource (EGR-5).
// Hosts are names ("example.com", "*.example.com"), optionally with ":port".
// AllowPrivate entries are exact targets ("10.1.2.3:8080", "127.0.0.1:3000",
// "intranet.corp:443") or prefixes ("10.0.0.0/8").
type EgressPolicy struct {
	AllowHosts   []string `json:"allow_hosts,omitempty"` // when not empty, only these
	DenyHosts    []string `json:"deny_hosts,omitempty"`
	AllowPrivate []string `json:"allow_private,omitempty"`
	MaxBytesUp   int64    `json:"max_bytes_up,omitempty"`   // per incarnation; 0 is unlimited
	MaxBytesDown int64    `json:"max_bytes_down,omitempty"` // per incarnation; 0 is unlimited
}

// NavigationPolicy limits top-level navigation (NAV-3). Both empty is
// "all-http". Entries are hosts as in [EgressPolicy].
type NavigationPolicy struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// WithDefaults fills what is empty and validates the rest; lists are copied.
func (s BrowserSpec) WithDefaults() (BrowserSpec, error) {
	if s.Backend == "" {
		s.Backend = BackendProcess
	}
	if s.Engine == "" {
		s.Engine = EngineFull
	}
	if s.Scheduling == "" {
		s.Scheduling = Serial
	}
	if s.Locale == "" {
		s.Locale = "en-US"
	}
	if s.TimeZone == "" {
		s.TimeZone = "UTC"
	}
	if len(s.Verbs) == 0 {
		s.Verbs = DefaultVerbs()
	}
	s.Verbs = slices.Compact(slices.Sorted(slices.Values(s.Verbs)))
	s.Egress.AllowHosts = slices.Clone(s.Egress.AllowHosts)
	s.Egress.DenyHosts = slices.Clone(s.Egress.DenyHosts)
	s.Egress.AllowPrivate = slices.Clone(s.Egress.AllowPrivate)
	s.Navigation.Allow = slices.Clone(s.Navigation.Allow)
	s.Navigation.Deny = slices.Clone(s.Navigation.Deny)
	return s, s.validate()
}

func (s BrowserSpec) validate() error {
	switch {
	case s.Backend != BackendProcess && s.Backend != BackendDocker:
		return Errorf(CodeInvalidInput, "backend %q is unknown; use \"process\" or \"docker\"", string(s.Backend))
	case s.Engine != EngineFull && s.Engine != EngineShell:
		return Errorf(CodeInvalidInput, "engine %q is unknown; use \"full\" or \"shell\"", string(s.Engine))
	case s.Engine == EngineShell && s.Desktop:
		return Errorf(CodeInvalidInput, "engine \"shell\" has no desktop; use \"full\"")
	case s.Scheduling != Serial && s.Scheduling != PerTab:
		return Errorf(CodeInvalidInput, "scheduling %q is unknown; use \"serial\" or \"per-tab\"", string(s.Scheduling))
	case s.Egress.MaxBytesUp < 0 || s.Egress.MaxBytesDown < 0:
		return Errorf(CodeInvalidInput, "egress byte limits must not be negative; 0 means unlimited")
	}
	for _, v := range s.Verbs {
		if !v.agent() {
			return Errorf(CodeInvalidInput, "%q is not a verb for agents", string(v))
		}
	}
	if s.Workspace != "" {
		if err := checkID("workspace", s.Workspace); err != nil {
			return err
		}
	}
	if err := checkLocale(s.Locale); err != nil {
		return err
	}
	if strings.HasPrefix(s.TimeZone, "/") || strings.Contains(s.TimeZone, "..") {
		return Errorf(CodeInvalidInput, "time zone %q is not an IANA name such as \"Europe/Berlin\"", s.TimeZone)
	}
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" {
		return Errorf(CodeInvalidInput, "time zone %q is not an IANA name such as \"Europe/Berlin\"", s.TimeZone)
	}
	return nil
}

func checkLocale(s string) error {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') || len(s) > 35 {
			return Errorf(CodeInvalidInput, "locale %q is not a BCP 47 tag such as \"en-US\"", s)
		}
	}
	return nil
}
