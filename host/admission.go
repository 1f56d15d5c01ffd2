package host

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/queue"
)

// admit checks authority and verb and puts the call into the queue (CAP-7,
// OPS-2).
func (l *lease) admit(call reins.Call, cancel context.CancelCauseFunc) (op *operation, err error) {
	r, verb, role := l.r, call.Action.Verb(), l.grant.binding.Role
	op = &operation{
		id: capability.NewID(capability.KindOperation), r: r, lease: l, action: call.Action, verb: verb,
		class: verb.Class(role), admitted: time.Now(), cancel: cancel, settled: make(chan struct{}),
		progress: call.Progress,
	}
	op.tab, _ = call.Action.Target()
	op.named = op.tab != ""
	if role == reins.RoleAgent && !permitted(r.spec, verb) {
		err = reins.Errorf(reins.CodeDenied, "the registration of this browser does not permit the verb %q to agents; it permits %v", verb, r.spec.Verbs).In(reins.PhaseAdmission)
	}
	r.update(func(s *state) {
		if ended := l.liveLocked(op.admitted); ended != nil {
			err = ended
		}
		if refused := op.refusedLocked(s, op.admitted); err == nil && refused != nil {
			err = refused
		}
		if err == nil {
			err = op.unwatchedLocked()
		}
		if err != nil {
			return
		}
		req := r.requestLocked(op)
		req.Lease, req.Watch = l.id, op.progress != nil
		if op.entry, err = s.queue.Push(req); err == nil {
			op.mergeLocked(s)
			s.ops[op] = struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	return op, nil
}

// permitted reports whether agents may use a verb on a resource. What was made
// under an agent's lease it may always list, read and delete (LSE-8).
func permitted(spec reins.BrowserSpec, v reins.Verb) bool {
	switch v {
	case reins.VerbListArtifacts, reins.VerbReadArtifact, reins.VerbDeleteArtifact:
		return true
	}
	return slices.Contains(spec.Verbs, v)
}

// requestLocked is where an operation queues (SCH-2, SCH-3, SCH-4, OPS-7).
func (r *resource) requestLocked(op *operation) queue.Request {
	tab, ref := op.action.Target()
	if tab == "" && ref != "" {
		tab = r.st.docs[document(ref)]
		if tab == "" {
			return queue.Request{Place: queue.Alone}
		}
	}
	switch a := op.action.(type) {
	case reins.ListTabs, reins.OpenTab, reins.SelectTab:
		return queue.Request{Place: queue.OnContext}
	case reins.ListArtifacts, reins.ReadArtifact, reins.DeleteArtifact, reins.Inspect:
		return queue.Request{Place: queue.Apart}
	case reins.GetControl, reins.RequestControl, reins.RenewControl, reins.ReleaseControl, reins.StopAgents,
		reins.RequestHuman, reins.AnswerHuman:
		return queue.Request{Place: queue.Past}
	case reins.SetViewport:
		return queue.Request{Place: queue.Alone}
	case reins.Pointer, reins.Touch:
		return queue.Request{Place: queue.OnTab, Tab: tab, Coalesce: coalesce(a)}
	case reins.CloseTab:
		switch {
		case a.Force:
			return queue.Request{Place: queue.Past}
		case tab == "":
			return queue.Request{Place: queue.OnSelected, Close: true}
		}
		return queue.Request{Place: queue.OnTab, Tab: tab, Close: true}
	}
	if tab == "" {
		return queue.Request{Place: queue.OnSelected}
	}
	return queue.Request{Place: queue.OnTab, Tab: tab}
}

// coalesce names the events of which the latest one is enough when they wait directly
// behind each other (OPS-3): moves, and turns of a wheel, whose distances add up; see
// [operation.mergeLocked].
func coalesce(a reins.Action) string {
	switch a := a.(type) {
	case reins.Pointer:
		if a.Kind == "move" || a.Kind == "wheel" {
			return a.Kind + " " + string(a.Tab) + " " + strings.Join(a.Modifiers, " ")
		}
	case reins.Touch:
		if a.Kind == "move" {
			return "touch " + string(a.Tab)
		}
	}
	return ""
}

// mergeLocked adds to a turn of a wheel those whose place in the queue it has just
// taken.
func (op *operation) mergeLocked(s *state) {
	a, ok := op.action.(reins.Pointer)
	if !ok || a.Kind != "wheel" {
		return
	}
	for old := range s.ops {
		if phase, _ := s.queue.Outcome(old.entry); phase != queue.Superseded || old.merged || old.lease != op.lease {
			continue
		}
		old.merged = true
		if before, ok := old.action.(reins.Pointer); ok && before.Kind == "wheel" {
			a.DX, a.DY = cut(a.DX+before.DX), cut(a.DY+before.DY)
		}
	}
	op.action = a
}

// cut keeps a distance to what one action may have.
func cut(d float64) float64 { return max(min(d, reins.MaxDistance), -reins.MaxDistance) }

// knowsLocked refuses what rests on tab IDs, refs or a focus that belong to an
// earlier connection (TAB-1, TAB-2).
func (op *operation) knowsLocked(now connectionID) *reins.Error {
	l := op.lease
	if l.seen == (connectionID{}) {
		l.seen, l.told = now, now
	}
	tab, ref := op.action.Target()
	switch {
	case ref != "" && l.seen != now:
		return reins.Errorf(reins.CodeStaleRef, "ref %q is from before the browser's driver was replaced; take a snapshot and use a new one", string(ref)).In(reins.PhaseAction)
	case op.named && l.told != now:
		return reins.Errorf(reins.CodeInvalidState, "tab %q is from before the browser's driver was replaced; list the tabs and use a new ID", string(tab)).In(reins.PhaseAction)
	case op.overtakenLocked(now):
		return reins.Errorf(reins.CodeObserveAgain, "a person had control of the browser since your last snapshot, so the page may be another one; take a snapshot before %s", op.verb).In(reins.PhaseAction)
	case ref == "" && usesFocus(op.verb) && l.seen != now:
		return reins.Errorf(reins.CodeObserveAgain, "the browser's driver was replaced, so the focus may be elsewhere; take a snapshot before %s without a ref", op.verb).In(reins.PhaseAction)
	}
	return nil
}

func usesFocus(v reins.Verb) bool {
	return v == reins.VerbPress || v == reins.VerbType || v == reins.VerbPressKey
}

// onTab names the tab that an action without one was resolved to. All actions
// on pages have the field, under this name.
func onTab(a reins.Action, tab reins.TabID) reins.Action {
	v := reflect.New(reflect.TypeOf(a)).Elem()
	v.Set(reflect.ValueOf(a))
	if f := v.FieldByName("Tab"); f.IsValid() {
		f.SetString(string(tab))
	}
	if named, ok := v.Interface().(reins.Action); ok {
		return named
	}
	return a
}
