package reins

import (
	"context"
	"io"
	"time"
)

// Runtime is the first port: what a host asks of a runtime, near or far.
// Every method fails with an *Error; runtime_stopped outside Start and Stop.
type Runtime interface {
	// Register makes a resource known; it never starts a browser (RES-1).
	// Registering the identical thing again returns what exists; anything
	// different at the same key is conflict (RES-2); a retired key is retired;
	// at the bound it is quota_exceeded (RES-6).
	Register(context.Context, Registration) (Registration, error)
	// Open returns the handle of a registered resource, or not_found.
	Open(context.Context, ResourceKey) (Resource, error)
	// List returns the registrations of a project, ordered by ID (RES-3).
	List(ctx context.Context, project string) ([]ResourceInfo, error)
	// Issue makes a capability for a binding that fits the current attachment,
	// once the host's Authorize hook agreed (CAP-2). Life 0 means the default.
	Issue(ctx context.Context, b Binding, life time.Duration) (Capability, error)
	// Revoke ends a capability and the lease acquired with it, and returns
	// when its effects are quiet (CAP-6). An unknown one is not_found.
	Revoke(ctx context.Context, capabilityID string) error
	// Acquire turns a token and the complete binding into a lease. Whatever
	// does not match, the answer is the same unauthorized (LSE-1). Acquiring
	// again replaces the older lease (LSE-2).
	Acquire(context.Context, Token, Binding) (Lease, error)
	// Artifacts is the trusted host's way to a resource's stored bytes;
	// participants use actions under their lease instead.
	Artifacts(ResourceKey) Artifacts
	// Events delivers what happens to a project's resources until ctx ends.
	// A reader that is too slow loses the oldest; Event.Missed counts them.
	Events(ctx context.Context, project string) (<-chan Event, error)
}

// Resource is the second port: the life of one browser identity.
type Resource interface {
	// Attach changes which session may drive the resource; see ATT-2, ATT-3.
	Attach(context.Context, Attachment) error
	// Start brings the browser up; one already up is a success (RES-7).
	Start(context.Context) error
	// Stop ends the browser and keeps what its backend can keep for Resume;
	// with the process backend that is a persistent workspace.
	Stop(context.Context) error
	// Resume brings a stopped browser back as a new incarnation.
	Resume(context.Context) error
	// Terminate ends the current incarnation only (RES-4).
	Terminate(context.Context) error
	// Retire ends the resource for good; repeatable until it succeeds (RES-5).
	Retire(context.Context) error
	// Readiness is synchronous and never probes (RDY-2).
	Readiness() Readiness
	// WaitFor starts the browser and waits for the named capabilities; none
	// named means all (RDY-3).
	WaitFor(context.Context, ...string) (Readiness, error)
}

// Lease is the third port: what one participant does while its authority
// lasts.
type Lease interface {
	// Authority is the immutable value under which actions run (LSE-5).
	Authority() Authority
	// IsCurrent reports exactly, and without I/O, whether an action could
	// begin now under the given authority.
	IsCurrent(Authority) bool
	// Do runs one action through the queue. Its context ends the wait and
	// the action (QUI-1); an ended lease is lease_ended.
	Do(context.Context, Call) (*Result, error)
	// Renew extends lease and capability together and returns the new expiry.
	Renew(context.Context) (time.Time, error)
	// Release ends the lease; idempotent (LSE-4).
	Release(context.Context) error
	// Subscribe opens the lease's one stream of frames and state (FRM-1);
	// only people's leases have one.
	Subscribe(context.Context, SubscribeOptions) (Subscription, error)
	// Done is closed when authority ended, for whatever reason (LSE-6).
	Done() <-chan struct{}
	// Expires is when the lease ends unless renewed.
	Expires() time.Time
}

// Artifacts lists, opens, stores and deletes a resource's bytes.
type Artifacts interface {
	List(context.Context) ([]Artifact, error)
	// Open checks size and digest first, then streams; a mismatch is corrupt.
	Open(ctx context.Context, id string) (Artifact, io.ReadCloser, error)
	// Put stores r under the quotas; Kind, MediaType, Name, LeaseID and Owner
	// of the argument are used. LeaseID marks it for that lease.
	Put(context.Context, Artifact, io.Reader) (Artifact, error)
	Delete(ctx context.Context, id string) error
}

// Registration is a resource as it was registered.
type Registration struct {
	Key        ResourceKey `json:"key"` // an empty ID gets a random one
	Attachment Attachment  `json:"attachment"`
	Spec       BrowserSpec `json:"spec"`
	Created    time.Time   `json:"created"`
}

// ResourceInfo is a registration with what its browser is doing (RES-3).
type ResourceInfo struct {
	Registration
	Incarnation  uint64    `json:"incarnation"` // 0 when there never was one
	State        State     `json:"state"`
	Connection   uint64    `json:"connection"`
	StartedAt    time.Time `json:"started_at,omitzero"`
	Readiness    Readiness `json:"readiness"`
	Participants int       `json:"participants"`
	Control      Control   `json:"control"` // CTL-6
}

// State is where an incarnation is in its life.
type State string

// The states. A resource whose browser was never started is stopped.
const (
	StateStarting   State = "starting"
	StateRunning    State = "running"
	StateStopping   State = "stopping"
	StateStopped    State = "stopped"
	StateDestroying State = "destroying"
	StateDestroyed  State = "destroyed"
	StateError      State = "error"
)

// Readiness tells what a resource's browser can do now (RDY-1, RDY-2).
type Readiness struct {
	Overall      string             `json:"overall"` // unknown, checking, partial, ready, degraded, failed, stopped, destroyed
	Capabilities map[string]Capable `json:"capabilities"`
	Facts        map[string]string  `json:"facts"` // egress, sandbox, limits, view, downloads
}

// The capabilities of readiness.
const (
	CapableRuntime    = "runtime"
	CapableBrowser    = "browser"
	CapableAutomation = "automation"
	CapableDesktop    = "desktop"
)

// Capable is the state of one capability.
type Capable struct {
	State  string    `json:"state"` // unknown, checking, ready, failed
	Since  time.Time `json:"since,omitzero"`
	Cause  string    `json:"cause,omitempty"`
	Remedy string    `json:"remedy,omitempty"`
}

// Event tells of a change of a resource.
type Event struct {
	Time    time.Time   `json:"time"`
	Key     ResourceKey `json:"key"`
	Kind    string      `json:"kind"` // "registered", "attached", "state", "control", "tab", "artifact", "retired"
	State   State       `json:"state,omitempty"`
	Detail  string      `json:"detail,omitempty"`
	Control *Control    `json:"control,omitempty"` // of kind "control": what it is now (CTL-6)
	Missed  int         `json:"missed,omitempty"`
}
