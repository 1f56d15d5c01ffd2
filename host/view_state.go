package host

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/redact"
)

// sight changes with whatever a state of the view tells (FRM-10), and with what is
// to be shown.
type sight struct {
	control       signature
	running       int
	life          reins.State
	incarnation   uint64
	conn          *connection
	page          uint64 // of conn's tabs and dialogs
	fitted        uint64 // the viewport that conn has
	selected      reins.TabID
	port          uint64
	people, acted uint64
}

// followView tells viewers that there is another state, and keeps the picture going
// for as long as somebody watches. It is called at the end of each update, so that
// nothing that changes it can forget.
func (r *resource) followView(s *state) {
	now := sight{
		control: s.takeover.seen, running: s.control.Running(), life: s.life, incarnation: s.count,
		port: s.view.port.Revision, people: s.view.people, acted: s.view.acted,
	}
	if s.inc != nil && s.inc.conn != nil {
		now.conn, now.page, now.selected, now.fitted = s.inc.conn, s.inc.conn.page, s.inc.conn.selected, s.inc.conn.fitted
	}
	if now == s.view.seen {
		return
	}
	if now.conn != s.view.seen.conn {
		r.refitLocked(s)
		now.port = s.view.port.Revision
	}
	s.view.seen = now
	for sub := range s.view.subs {
		sub.dirty = true
		sub.stir()
	}
	r.projectLocked(s)
}

// noteLocked keeps what the driver tells of tabs and dialogs. It is called under
// the resource's lock or, as long as nobody owns the connection, under its own.
func (c *connection) noteLocked(e driver.Event) {
	at := slices.IndexFunc(c.tabs, func(t reins.Tab) bool { return t.ID == e.Tab.ID })
	switch e.Kind {
	case "tab_opened", "tab_updated", "tab_selected", "page_crashed":
		if at < 0 {
			c.tabs = append(c.tabs, e.Tab)
		} else if e.Tab.URL != "" || e.Kind != "tab_selected" {
			c.tabs[at] = e.Tab
		}
	case "tab_closed":
		if at >= 0 {
			c.tabs = slices.Delete(c.tabs, at, at+1)
		}
		delete(c.dialogs, e.Tab.ID)
	case "dialog":
		if c.dialogs == nil {
			c.dialogs = map[reins.TabID]reins.Dialog{}
		}
		c.dialogs[e.Tab.ID] = reins.Dialog{Kind: e.Note}
		if e.Dialog != nil {
			c.dialogs[e.Tab.ID] = *e.Dialog
		}
	case "dialog_closed":
		delete(c.dialogs, e.Tab.ID)
	default:
		return
	}
	c.page++
}

// actingLocked shows where somebody is about to act (VIEW-1).
func (r *resource) actingLocked(s *state, e driver.Event) {
	if e.Kind != "acting" {
		return
	}
	for op := range s.ops {
		if op.begun && op.lease.id == e.Lease && (op.tab == "" || op.tab == e.Tab.ID) {
			op.box, op.where = e.Box, e.Tab.ID
			s.view.at(op, e.Tab.ID, e.X, e.Y)
			return
		}
	}
}

// at notes where the participant who acts has its pointer.
func (v *view) at(op *operation, tab reins.TabID, x, y float64) {
	b := op.lease.grant.binding
	v.cursor = &reins.Cursor{Tab: tab, X: x, Y: y, Actor: b.Actor, Role: b.Role}
	v.acted++
}

// viewStateLocked is what one viewer is told (FRM-10).
func (r *resource) viewStateLocked(l *lease, now time.Time) *reins.ViewState {
	s := &r.st
	out := &reins.ViewState{
		Incarnation: s.count, Life: s.life, Tabs: []reins.Tab{}, Viewport: s.view.port,
		Control: r.controlLocked(l.id), Participants: r.participantsLocked(l),
		Operation: r.runningLocked(), Activities: slices.Clone(s.view.acts),
	}
	if out.Activities == nil {
		out.Activities = []reins.Activity{}
	}
	if s.view.cursor != nil {
		cursor := *s.view.cursor
		out.Cursor = &cursor
	}
	if s.inc != nil && s.inc.conn != nil {
		c := s.inc.conn
		out.Selected = c.selected
		for _, t := range c.tabs {
			t.Selected = t.ID == c.selected
			out.Tabs = append(out.Tabs, t)
		}
		if d, open := c.dialogs[c.selected]; open {
			out.Dialog = &d
		}
	}
	if set := r.secrets.all(); len(set) > 0 {
		hideView(set, out)
	}
	return out
}

// hideView takes secrets out of a state: out of the texts that pages made, and of
// what was noted before a secret was one.
func hideView(set redact.Set, v *reins.ViewState) {
	hide(set, reflect.ValueOf(&v.Tabs).Elem())
	if v.Dialog != nil {
		hide(set, reflect.ValueOf(v.Dialog).Elem())
	}
	for i := range v.Activities {
		a := &v.Activities[i]
		a.URL, a.Detail = set.Text(a.URL), set.Text(a.Detail)
		if a.Target != nil {
			a.Target = &reins.Target{Role: a.Target.Role, Name: set.Bounded(a.Target.Name)}
		}
	}
	if v.Operation != nil {
		v.Operation.URL = set.Text(v.Operation.URL)
	}
}

// participantsLocked are those who take part, in the order in which they came.
func (r *resource) participantsLocked(mine *lease) []reins.Participant {
	out := []reins.Participant{}
	for _, g := range r.st.grants {
		if l := g.lease; l != nil {
			out = append(out, reins.Participant{
				Actor: g.binding.Actor, Role: g.binding.Role, Since: l.since,
				Watching: l.sub != nil, Mine: l == mine,
			})
		}
	}
	slices.SortFunc(out, func(a, b reins.Participant) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Actor, b.Actor))
	})
	return out
}

// runningLocked is the newest of the operations that run and that people may want
// to know of.
func (r *resource) runningLocked() *reins.Activity {
	var newest *operation
	for op := range r.st.ops {
		if op.begun && notable(op.verb) && (newest == nil || op.began.After(newest.began)) {
			newest = op
		}
	}
	if newest == nil {
		return nil
	}
	a := newest.activity()
	return &a
}
