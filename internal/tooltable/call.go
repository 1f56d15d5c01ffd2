package tooltable

import (
	"context"

	"github.com/reins-browser/reins"
)

// Call is a decoded call of a tool: the action, and what the door itself adds.
type Call struct {
	first  reins.Action // to be done before it; nil for none
	action reins.Action
	read   bool // a snapshot belongs to the answer
	bytes  int  // of a snapshot that names no size
}

// Decode makes a call of a tool's arguments, which are a JSON object, or nothing.
// What is wrong with them is invalid_input and names the argument.
func (l List) Decode(t *Tool, arguments []byte) (Call, error) {
	c, err := t.decode(arguments, l.Offer)
	if err != nil {
		return Call{}, err
	}
	c.bytes = l.bytes
	c.action = c.sized(c.action)
	return c, nil
}

// Action is what the call comes to.
func (c Call) Action() reins.Action { return c.action }

// Do makes the call under a lease. Progress may be nil; see [reins.Call].
func (c Call) Do(ctx context.Context, lease reins.Lease, progress func(reins.Progress)) (*Answer, error) {
	if c.first != nil {
		if _, err := lease.Do(ctx, reins.Call{Action: c.first}); err != nil {
			return nil, err
		}
	}
	res, err := lease.Do(ctx, reins.Call{Action: c.action, Progress: progress})
	if err != nil {
		return nil, err
	}
	out := newAnswer(c.action, res)
	if c.read && res.Snapshot == nil && (res.Navigation == nil || res.Navigation.Download == nil) {
		c.readAfter(ctx, lease, res, out)
	}
	return out, nil
}

// sized gives a snapshot that names no size the list's.
func (c Call) sized(a reins.Action) reins.Action {
	if read, ok := a.(reins.Snapshot); ok && read.MaxBytes == 0 {
		read.MaxBytes = c.bytes
		return read
	}
	return a
}

// readAfter adds a snapshot to a result that came without: that of the page for a
// navigation, else what changed. The action has succeeded whatever becomes of it.
func (c Call) readAfter(ctx context.Context, lease reins.Lease, res *reins.Result, out *Answer) {
	read := reins.Snapshot{MaxBytes: c.bytes, Changes: acts(c.action.Verb())}
	if res.Tab != nil {
		read.Tab = res.Tab.ID
	}
	got, err := lease.Do(ctx, reins.Call{Action: read})
	if err != nil {
		out.Notes = append(out.Notes, "There is no snapshot: "+Bounded(reins.AsError(err).Error())+".")
		return
	}
	out.Notes = append(out.Notes, got.Notes...)
	if got.Snapshot == nil {
		return
	}
	if now := newPage(got); now != nil && out.Page != nil { // it may have gone on meanwhile
		if now.URL != out.Page.URL {
			now.Status, out.stays = 0, false
		} else {
			now.Status = out.Page.Status
		}
		out.Page = now
	}
	out.read(got.Snapshot, read.Changes)
}
