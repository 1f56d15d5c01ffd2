package host

import (
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/control"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/queue"
)

// resource is one registration and everything that happens under it. It
// implements [reins.Resource].
type resource struct {
	gen     *generation
	key     reins.ResourceKey
	spec    reins.BrowserSpec
	created time.Time
	made    bool          // the runtime made the ID: no tombstone (RES-6)
	left    bool          // it is done with its workspace; guarded by the generation's lock
	done    chan struct{} // closed when it is retired or its generation has ended

	secrets secrets // typed on it; has a lock of its own

	mu sync.Mutex
	st state // changed in update only
}

var _ reins.Resource = (*resource)(nil)

// state is all that changes of a resource. Guarded by resource.mu.
type state struct {
	attachment reins.Attachment
	detaching  *detaching  // the newest change of attachment, until it took effect (ATT-3)
	retiring   *retirement // the try to retire that is under way
	fence      *reins.Error
	retired    bool              // a try to retire succeeded
	grants     map[string]*grant // live capabilities, by ID
	ops        map[*operation]struct{}
	queue      *queue.Queue
	control    control.Control
	handoffs   control.Handoffs
	takeover   takeover
	view       view
	owed       map[string]*owed // what is down and nobody holds any more
	releasing  chan struct{}    // closed when the release on its way has ended; nil: there is none
	inc        *incarnation     // starting, running or ending; nil when there is none
	count      uint64           // incarnations so far
	numbers    driver.Numbers   // of tabs and documents, over all of them
	life       reins.State
	last       *reins.Error // why the last incarnation did not start, or ended
	since      time.Time    // of life
	facts      map[string]string
	failures   int       // starts that failed in a row
	notBefore  time.Time // no start by an operation until then
	owner      map[reins.TabID]string
	docs       map[string]reins.TabID // which tab a document is in, per-tab order only
}

func newResource(g *generation, reg reins.Registration, made bool) *resource {
	r := &resource{
		gen: g, key: reg.Key, spec: reg.Spec, created: reg.Created, made: made,
		done: make(chan struct{}),
	}
	l := g.host.limits
	total := l.Queue * l.CapabilitiesPerResource
	if reg.Spec.Scheduling == reins.PerTab {
		total = l.QueuePerTab
	}
	r.st = state{
		attachment: reg.Attachment,
		grants:     map[string]*grant{},
		ops:        map[*operation]struct{}{},
		life:       reins.StateStopped,
		since:      time.Now(),
		owner:      map[reins.TabID]string{},
		owed:       map[string]*owed{},
		docs:       map[string]reins.TabID{},
		takeover:   takeover{seen: signature{availability: reins.Disconnected}},
		view:       newView(l),
		queue: queue.New(queue.Options{
			PerTab: reg.Spec.Scheduling == reins.PerTab, PerLease: l.Queue, Total: total,
			AtOnce: l.TabsAtOnce, Selected: r.selectedLocked,
		}),
	}
	return r
}

// update is the one way to change a resource's state. It publishes what
// changed for all to see and closes done once nothing is left of a resource
// that is fenced for good.
func (r *resource) update(f func(*state)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, attached := r.st.life, r.st.attachment
	now := time.Now()
	r.st.control.Pass(now)
	f(&r.st)
	r.followControl(&r.st, now)
	r.followView(&r.st)
	if r.st.life != before {
		r.st.since = now
		detail := ""
		if r.st.last != nil && (r.st.life == reins.StateError || r.st.life == reins.StateStopped) {
			detail = r.st.last.Message
		}
		r.publish(reins.Event{Kind: "state", State: r.st.life, Detail: detail})
	}
	if !r.st.attachment.Equal(attached) {
		r.publish(reins.Event{Kind: "attached"})
	}
	if r.st.life == reins.StateDestroyed && before != reins.StateDestroyed {
		close(r.done)
		r.secrets.forget()
	}
}

// publish tells subscribers of the project; it never blocks.
func (r *resource) publish(e reins.Event) {
	e.Time, e.Key = time.Now(), r.key
	e.Detail = r.secrets.text(e.Detail)
	r.gen.events.publish(e)
}

// info is what List tells (RES-3).
func (r *resource) info() reins.ResourceInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := reins.ResourceInfo{
		Registration: shown(reins.Registration{Key: r.key, Attachment: r.st.attachment, Spec: r.spec, Created: r.created}),
		Incarnation:  r.st.count,
		State:        r.st.life,
		Readiness:    r.readinessLocked(),
		Control:      r.controlLocked(""),
	}
	for _, g := range r.st.grants {
		if g.lease != nil {
			out.Participants++
		}
	}
	if inc := r.st.inc; inc != nil {
		out.StartedAt = inc.started
		if inc.conn != nil {
			out.Connection = inc.conn.number
		}
	}
	return out
}

// selectedLocked is the selected tab as the driver last told, "" when unknown.
func (r *resource) selectedLocked() reins.TabID {
	if inc := r.st.inc; inc != nil && inc.conn != nil {
		return inc.conn.selected
	}
	return ""
}

// fenced is why the resource takes nothing more, or nil.
func (r *resource) fenced() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.st.fence != nil {
		return r.st.fence
	}
	return nil
}

// fenceAll ends all authority, as ended tells, cancels all operations and lets
// nothing in any more, for cause (QUI-4).
func (r *resource) fenceAll(cause, ended *reins.Error) {
	r.update(func(s *state) {
		if s.fence == nil {
			s.fence = cause
		}
		for _, g := range s.grants {
			r.endLocked(s, g, ended)
		}
		r.cancelLocked(s, cause, func(*operation) bool { return true })
	})
}

// cancelLocked ends the waiting operations that match and cancels the running
// ones, with cause, and returns them all. They settle on their own.
func (r *resource) cancelLocked(s *state, cause *reins.Error, match func(*operation) bool) (all []*operation) {
	of := map[*queue.Entry]*operation{}
	for op := range s.ops {
		if match(op) {
			of[op.entry] = op
			all = append(all, op)
		}
	}
	running := s.queue.CancelWhere(func(e *queue.Entry) bool { return of[e] != nil }, cause)
	for _, e := range running {
		of[e].cancel(cause)
	}
	return all
}

// unsettled are the operations that match now, for a caller that waits for
// them to settle.
func (r *resource) unsettled(match func(*operation) bool) []*operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*operation
	for op := range r.st.ops {
		if match(op) {
			out = append(out, op)
		}
	}
	return out
}
