package reins

import "time"

// ControlState is who may act on a browser (CTL-6).
type ControlState string

// The states of control. In the first two everybody acts side by side.
const (
	ControlAgent       ControlState = "agent"         // nobody asked for control
	ControlAgentActive ControlState = "agent-active"  // the same, and an agent's operation runs
	ControlPending     ControlState = "human-pending" // a person waits for running agent operations
	ControlHuman       ControlState = "human"         // a person has exclusive control
)

// Availability is whether there is a browser to control (CTL-6).
type Availability string

// The availabilities.
const (
	Available    Availability = "available"    // it runs and is driven
	Degraded     Availability = "degraded"     // it runs, its driver is being replaced
	Disconnected Availability = "disconnected" // none runs now
	Destroyed    Availability = "destroyed"    // none will run again
)

// Control is a snapshot of who is in control of a resource (CTL-6). It names
// people as their bindings do and holds no token or lease of anybody.
type Control struct {
	State        ControlState   `json:"state"`
	Agents       int            `json:"active_agents"` // agent operations that run now
	Actor        string         `json:"actor,omitempty"`
	Since        time.Time      `json:"since,omitzero"`   // asked, or held
	Expires      time.Time      `json:"expires,omitzero"` // when the request or the hold ends by itself
	Mine         bool           `json:"mine,omitempty"`   // it is the asking lease's own; only in results
	Availability Availability   `json:"availability"`
	Requests     []HumanRequest `json:"requests,omitempty"` // agents that wait for a person, oldest first
}

// HumanRequest is an agent's open request for a person (CTL-8). Reason is the
// agent's text, not the page's and not a person's.
type HumanRequest struct {
	ID      string    `json:"request"`
	Actor   string    `json:"actor"` // of the agent
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
}

// HumanOutcome is how a request for a person ended.
type HumanOutcome string

// The outcomes of a request for a person.
const (
	HumanDone     HumanOutcome = "done"
	HumanDeclined HumanOutcome = "declined"
	HumanExpired  HumanOutcome = "expired" // nobody came
)

// HumanAnswer is what came of a request for a person (CTL-8).
type HumanAnswer struct {
	Outcome HumanOutcome `json:"outcome"`
	Actor   string       `json:"actor,omitempty"` // who answered
	Note    string       `json:"note,omitempty"`
}
