package server

import (
	"context"

	"github.com/reins-browser/reins/api"
)

// who is who sent a request, as the door found out: by an API key, or a person by a
// page.
type who struct {
	key  *liveKey
	page *page
}

type whoKey struct{}

// as returns ctx with the sender of a request.
func as(ctx context.Context, w who) context.Context { return context.WithValue(ctx, whoKey{}, w) }

// sender is who sent the request that ctx is of; nobody when there is none.
func sender(ctx context.Context) who {
	w, _ := ctx.Value(whoKey{}).(who)
	return w
}

// actor is who the audit trail names for a change.
func actor(ctx context.Context) string {
	switch w := sender(ctx); {
	case w.key != nil:
		return w.key.ID
	case w.page != nil:
		return w.page.session.access.Actor
	}
	return "server"
}

// identity is what the API is told of the sender of a request about a project.
func (w who) identity(project string) api.Identity {
	switch {
	case w.key != nil:
		return api.Identity{Name: w.key.ID, Admin: w.key.Project == "", Project: w.key.Project, Ended: w.key.ended}
	case w.page != nil:
		s := w.page.session
		i := api.Identity{Name: s.id, Project: " ", Holds: w.page.holds, Ended: w.page.ended} // of no project
		if s.access.sees(project) {
			i.Project = project
		}
		if s.access.Resource != nil {
			i.Resource = s.access.Resource.ID
		}
		return i
	}
	return api.Identity{}
}
