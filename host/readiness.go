package host

import (
	"context"
	"maps"
	"slices"

	"github.com/reins-browser/reins"
)

// Readiness implements [reins.Resource] (RDY-1, RDY-2): what is known now.
func (r *resource) Readiness() reins.Readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readinessLocked()
}

func (r *resource) readinessLocked() reins.Readiness {
	s := &r.st
	out := reins.Readiness{Capabilities: map[string]reins.Capable{}, Facts: map[string]string{}}
	maps.Copy(out.Facts, s.facts)
	state, cause, remedy := "unknown", "", ""
	switch {
	case s.life == reins.StateDestroyed || s.life == reins.StateDestroying:
		out.Overall = "destroyed"
	case s.life == reins.StateStarting:
		out.Overall, state = "checking", "checking"
	case s.life == reins.StateRunning:
		out.Overall, state = "ready", "ready"
	case s.life == reins.StateError:
		out.Overall, state = "failed", "failed"
		if s.last != nil {
			cause, remedy = s.last.Message, s.last.Recovery.Sentence()
		}
	case s.count > 0:
		out.Overall = "stopped"
	default:
		out.Overall = "unknown"
	}
	for _, name := range r.capabilities() {
		out.Capabilities[name] = reins.Capable{State: state, Since: s.since, Cause: cause, Remedy: remedy}
	}
	if s.life == reins.StateRunning && s.inc != nil && s.inc.conn == nil {
		s.inc.withoutDriver(&out)
	}
	return out
}

// withoutDriver says what is known of a browser that has no driver: it runs, and
// the next operation connects a new one (TAB-1); or the last try to do so failed,
// while the cell is alive (RDY-2).
func (inc *incarnation) withoutDriver(out *reins.Readiness) {
	out.Overall = "partial"
	is := reins.Capable{State: "unknown", Since: inc.lostAt, Cause: "the driver was lost", Remedy: "The next operation connects a new one."}
	out.Capabilities[reins.CapableBrowser] = is // nobody can ask it
	if why := inc.refused; why != nil {
		out.Overall = "degraded"
		is.State, is.Cause, is.Remedy = "failed", why.Message, why.Recovery.Sentence()
	}
	out.Capabilities[reins.CapableAutomation] = is
}

// capabilities are those that the resource can have at all.
func (r *resource) capabilities() []string {
	out := []string{reins.CapableRuntime, reins.CapableBrowser, reins.CapableAutomation}
	if r.spec.Desktop {
		out = append(out, reins.CapableDesktop)
	}
	return out
}

// WaitFor implements [reins.Resource] (RDY-3). It waits for one start, which
// others may share and which goes on when ctx ends.
func (r *resource) WaitFor(ctx context.Context, names ...string) (reins.Readiness, error) {
	have := r.capabilities()
	for _, name := range names {
		switch {
		case slices.Contains(have, name):
		case name == reins.CapableDesktop:
			err := reins.Errorf(reins.CodeNotReady, "resource %s was registered without a desktop; register one with desktop", r.key).Recover(reins.RecoverChangeInput)
			err.Capability = name
			return r.Readiness(), err
		default:
			return r.Readiness(), reins.Errorf(reins.CodeInvalidInput, "capability %.40q is unknown; use runtime, browser, automation or desktop", name)
		}
	}
	err := r.Start(ctx)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		out := reins.Errorf(reins.CodeReadinessTimeout, "the browser of %s was not ready in time", r.key).In(reins.PhaseStart).Because(err)
		out.Capability = reins.CapableAutomation
		return r.Readiness(), out
	}
	return r.Readiness(), err
}
