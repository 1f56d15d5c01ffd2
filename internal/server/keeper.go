package server

import (
	"context"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/store"
)

// keeper is what the server keeps, for the API.
type keeper struct{ s *Server }

var _ api.Keeper = keeper{}

// CreateKey implements [api.Keeper]: on the disk first, then known.
func (k keeper) CreateKey(ctx context.Context, _ api.Identity, in api.KeyForm) (api.NewKey, error) {
	if k.s.truth.draining.Load() {
		return api.NewKey{}, errDraining()
	}
	made, token, err := k.s.store.CreateKey(ctx, actor(ctx), in.Project, in.Binding)
	if err != nil {
		return api.NewKey{}, err
	}
	k.s.keys.Add(store.HashedKey{Key: made, Hash: capability.Sum(token)})
	return api.NewKey{Key: shownKey(made), Token: string(token)}, nil
}

// shownKey is a key as the API shows it.
func shownKey(k store.Key) api.Key {
	return api.Key{ID: k.ID, Project: k.Project, Binding: k.Binding, Created: k.Created, Revoked: k.Revoked}
}

// Keys implements [api.Keeper].
func (k keeper) Keys(ctx context.Context, project string) ([]api.Key, error) {
	all, err := k.s.store.Keys(ctx, project)
	out := make([]api.Key, len(all))
	for i := range all {
		out[i] = shownKey(all[i])
	}
	return out, err
}

// RevokeKey implements [api.Keeper]: on the disk first; then nobody is let in by it,
// what was made under it ends, and it returns when that is quiet.
func (k keeper) RevokeKey(ctx context.Context, _ api.Identity, id string) error {
	if err := k.s.store.RevokeKey(ctx, actor(ctx), id); err != nil {
		return err
	}
	live := k.s.keys.drop(id)
	if live == nil {
		return nil
	}
	return live.end(ctx, k.s.host.Revoke)
}

// Join implements [api.Keeper]; the door has its own, which knows its address.
func (k keeper) Join(ctx context.Context, _ api.Identity, in api.JoinForm) (api.Join, error) {
	return k.s.door.Invite(in, sender(ctx).key)
}

// Audit implements [api.Keeper].
func (k keeper) Audit(ctx context.Context, q api.AuditQuery) ([]api.AuditEntry, error) {
	all, err := k.s.store.Audit(ctx, store.Query{Project: q.Project, Resource: q.Resource, After: q.After, Limit: q.Limit})
	out := make([]api.AuditEntry, len(all))
	for i, e := range all {
		out[i] = api.AuditEntry{ID: e.ID, Record: e.Record}
	}
	return out, err
}

// errNotKept is for doors without a store.
func errNotKept() *reins.Error {
	return reins.Errorf(reins.CodeDenied, "this server keeps nothing; reins serve does").In(reins.PhaseAdmission)
}

// guestbook is the keeper of a door that keeps nothing but its guests' links.
type guestbook struct{ api.Keeper }

func (guestbook) CreateKey(context.Context, api.Identity, api.KeyForm) (api.NewKey, error) {
	return api.NewKey{}, errNotKept()
}
func (guestbook) Keys(context.Context, string) ([]api.Key, error)       { return nil, errNotKept() }
func (guestbook) RevokeKey(context.Context, api.Identity, string) error { return errNotKept() }
func (guestbook) Audit(context.Context, api.AuditQuery) ([]api.AuditEntry, error) {
	return nil, errNotKept()
}
