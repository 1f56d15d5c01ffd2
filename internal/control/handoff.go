package control

import (
	"slices"

	"github.com/reins-browser/reins"
)

// Handoff is one agent's open request for a person. Done may be called without
// the owner's lock.
type Handoff struct {
	lease  string
	shown  reins.HumanRequest
	done   chan struct{}
	answer reins.HumanAnswer
}

// Done is closed when it was answered.
func (h *Handoff) Done() <-chan struct{} { return h.done }

// Answer is what a person said, once Done is closed.
func (h *Handoff) Answer() reins.HumanAnswer { return h.answer }

// Handoffs are the open requests of one browser's agents, one for each lease
// (CTL-8). The zero value is none. Guarded by its owner's lock.
type Handoffs struct {
	open    []*Handoff // oldest first
	version uint64
}

// Version grows with every change.
func (h *Handoffs) Version() uint64 { return h.version }

// Ask adds a request; busy when the lease has one already.
func (h *Handoffs) Ask(lease string, r reins.HumanRequest) (*Handoff, error) {
	for _, o := range h.open {
		if o.lease == lease {
			return nil, reins.Errorf(reins.CodeBusy, "a request of this lease for a person is open already; wait for its answer").In(reins.PhaseAdmission)
		}
	}
	o := &Handoff{lease: lease, shown: r, done: make(chan struct{})}
	h.open = append(h.open, o)
	h.version++
	return o, nil
}

// Answer ends the request of that ID; not_found when it is not open any more.
func (h *Handoffs) Answer(id string, a reins.HumanAnswer) error {
	for _, o := range h.open {
		if o.shown.ID == id {
			o.answer = a
			close(o.done)
			h.Drop(o)
			return nil
		}
	}
	return reins.Errorf(reins.CodeNotFound, "no open request %s for a person is known; it was answered or its agent gave up", id)
}

// Drop forgets a request, answered or not; idempotent.
func (h *Handoffs) Drop(o *Handoff) {
	if i := slices.Index(h.open, o); i >= 0 {
		h.open = slices.Delete(h.open, i, i+1)
		h.version++
	}
}

// Shown are the open requests, oldest first.
func (h *Handoffs) Shown() []reins.HumanRequest {
	var out []reins.HumanRequest
	for _, o := range h.open {
		out = append(out, o.shown)
	}
	return out
}
