package reins

import (
	"context"
	"time"
)

// Class classifies an operation for the gate (GATE-1).
type Class string

// The classes.
const (
	ClassRawInput    Class = "raw-input"
	ClassFrameStream Class = "frame-stream"
	ClassViewport    Class = "viewport"
	ClassNavigation  Class = "navigation"
	ClassTab         Class = "tab"
	ClassAgentAction Class = "agent-action"
	ClassArtifact    Class = "artifact"
	ClassControl     Class = "control"
)

// Call is an action together with how it is asked for.
type Call struct {
	Action Action
	// Key makes the call idempotent under its lease (OPS-5): at most 128
	// bytes; empty means none.
	Key string
	// Progress, when not nil, is told what a waiting call waits for. It must
	// return at once and may be called from any goroutine until Do returns.
	Progress func(Progress)
}

// Progress says what a waiting operation waits for (OPS-4).
type Progress struct {
	Stage    string `json:"stage"`    // "queue", "browser", "running", "agents", "person"
	Position int    `json:"position"` // operations ahead, for "queue"; that run, for "agents"
}

// Operation is one admitted unit of work, as the gate sees it.
type Operation struct {
	ID        string    `json:"operation"`
	Authority Authority `json:"authority"`
	Action    Action    `json:"-"` // complete; hosts may inspect, never keep
	Verb      Verb      `json:"verb"`
	Class     Class     `json:"class"`
	Tab       TabID     `json:"tab,omitempty"`
	Ref       Ref       `json:"ref,omitempty"`
	Started   time.Time `json:"started"`
}

// Outcome is how an operation ended (OPS-6).
type Outcome string

// The outcomes.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeUnknown   Outcome = "unknown"
	// OutcomeAttempted is of the record that a host keeps before an effect begins
	// (GATE-1); the one that says how it ended has the same operation.
	OutcomeAttempted Outcome = "attempted"
)

// Record is one line of the audit trail (GATE-3, GATE-4). It holds no typed
// text, token, password, cookie or page body.
type Record struct {
	Time         time.Time     `json:"time"`
	Operation    string        `json:"operation,omitempty"`
	Project      string        `json:"project"`
	Resource     string        `json:"resource"`
	Actor        string        `json:"actor,omitempty"`
	Role         Role          `json:"role,omitempty"`
	CapabilityID string        `json:"capability,omitempty"`
	LeaseID      string        `json:"lease,omitempty"`
	Run          string        `json:"run,omitempty"`
	Revision     uint64        `json:"revision,omitempty"`
	Incarnation  uint64        `json:"incarnation,omitempty"`
	Tab          TabID         `json:"tab,omitempty"`
	Action       string        `json:"action"` // a verb, or what the runtime did: "start", "releaseParticipant", "egress"
	Class        Class         `json:"class,omitempty"`
	Target       *Target       `json:"target,omitempty"`
	Outcome      Outcome       `json:"outcome"`
	Code         Code          `json:"code,omitempty"`
	Detail       string        `json:"detail,omitempty"`
	Duration     time.Duration `json:"duration_ns"`
}

// Target is what an operation acted on, as the page names it: page content,
// bounded to 256 characters each.
type Target struct {
	Role string `json:"role"`
	Name string `json:"name"`
}

// Credential is a user and password for one origin, such as
// "https://wiki.example" or "http://127.0.0.1:3000" (NAV-5). They are sent, by the
// Basic scheme, with documents of that origin and with what its own documents
// ask of it. The password is taken out of all texts of the resource when it has 4
// characters or more; JSON and formatted text of a Credential do not hold it.
type Credential struct {
	Origin   string `json:"origin"`
	User     string `json:"user"`
	Password string `json:"-"`
}

// String names the credential without its password.
func (c Credential) String() string { return c.User + " at " + c.Origin }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Hooks are the host's policy (HK). Authorize is required.
type Hooks struct {
	// Authorize is asked before a capability is issued or renewed, with the
	// complete binding. An error, a panic or no answer in time is a no.
	Authorize func(context.Context, Binding) error
	// BeforeOperation, when set, is asked before any side effect (GATE-1). Why it
	// says no stays with the host, unless it returns an [*Error] with CodeDenied:
	// its sentence and recovery are what the participant is told.
	BeforeOperation func(context.Context, Operation) error
	// Secret, when set, supplies the text that is typed for a secret of that
	// name on a page of that origin ("https://bank.example"), for a resource
	// (ACT-11): 4 to 4,096 bytes. An error is a no. It is asked only for origins
	// that are https, or that SecretOrigin permits, and each time.
	Secret func(ctx context.Context, key ResourceKey, origin, name string) (string, error)
	// SecretOrigin, when set, is asked whether secrets may be typed on an origin
	// that is not https, such as "http://127.0.0.1:3000". Unset is a no.
	SecretOrigin func(ctx context.Context, key ResourceKey, origin string) error
	// Credentials, when set, says with what a resource's browser answers sites
	// that ask for a user and password by HTTP (NAV-5): at most 64, one for an
	// origin. It is asked before the first operation on a browser, and again when
	// a new driver takes it over. An error is a no to that operation.
	Credentials func(ctx context.Context, key ResourceKey) ([]Credential, error)
	// Audit, when set, receives records in order. It is called from one
	// goroutine; what does not fit a bounded buffer is dropped and counted.
	Audit func(Record)
}
