package host

import (
	"cmp"
	"time"

	"github.com/reins-browser/reins"
)

// notable reports whether people who watch may want to read of a verb: not when it
// only asks for something, and not raw input, which is summed up.
func notable(v reins.Verb) bool {
	switch v {
	case reins.VerbControl, reins.VerbListTabs, reins.VerbListArtifacts, reins.VerbReadArtifact,
		reins.VerbSetViewport, reins.VerbRefresh, reins.VerbInspect, verbSubscribe:
		return false
	}
	return v.Class(reins.RoleHuman) != reins.ClassRawInput
}

// activity is the operation as people are told of it while it runs.
func (op *operation) activity() reins.Activity {
	b := op.lease.grant.binding
	a := reins.Activity{
		Operation: op.id, Actor: b.Actor, Role: b.Role, Verb: string(op.verb), Tab: cmp.Or(op.tab, op.where),
		Target: op.target, Box: op.box, Started: op.began,
	}
	if nav, ok := op.action.(reins.Navigate); ok {
		a.URL = bounded(nav.URL, reins.MaxPageString)
	}
	return a
}

// didLocked adds an operation that has ended to what people can read (VIEW-1). The
// record says what of it may be told (GATE-4).
func (op *operation) didLocked(s *state, rec reins.Record) {
	if !notable(op.verb) {
		return
	}
	a := op.activity()
	if a.Started.IsZero() {
		a.Started = op.admitted
	}
	s.view.add(a, rec)
}

// toldLocked adds what the runtime did by itself, and raw input that was summed up.
func (s *state) toldLocked(rec reins.Record) {
	s.view.add(reins.Activity{
		Operation: rec.Operation, Actor: rec.Actor, Role: rec.Role, Verb: rec.Action, Tab: rec.Tab,
		Target: rec.Target, Detail: bounded(rec.Detail, reins.MaxPageString), Started: rec.Time.Add(-rec.Duration),
	}, rec)
}

// add puts an activity that has ended at the end of the list.
func (v *view) add(a reins.Activity, rec reins.Record) {
	a.Ended, a.Outcome, a.Code = time.Now(), rec.Outcome, rec.Code
	if a.Target == nil {
		a.Target = rec.Target
	}
	if len(v.acts) >= reins.MaxActivities {
		v.acts = append(v.acts[:0], v.acts[1:]...)
	}
	v.acts = append(v.acts, a)
	v.acted++
}
