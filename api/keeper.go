package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reins-browser/reins"
)

// Keeper is what a server keeps beside its runtime. Who may ask has been decided
// when its methods are called; who is whose request it is.
type Keeper interface {
	// CreateKey makes an API key (API-2); its token is in this answer only.
	CreateKey(ctx context.Context, who Identity, in KeyForm) (NewKey, error)
	// Keys lists the keys of a project, of all when it is empty.
	Keys(ctx context.Context, project string) ([]Key, error)
	// RevokeKey ends a key, with the leases and streams made under it.
	RevokeKey(ctx context.Context, who Identity, id string) error
	// Join makes a one-time link for a person (API-3).
	Join(ctx context.Context, who Identity, in JoinForm) (Join, error)
	// Audit returns a part of the audit trail, the oldest that match first.
	Audit(context.Context, AuditQuery) ([]AuditEntry, error)
}

// KeyForm asks for an API key: an administrator's when it is empty, one project's,
// or an agent's, which names one binding and opens the MCP door only (MCP-2). The
// server sets the binding's peer and source.
type KeyForm struct {
	Project string         `json:"project,omitempty"`
	Binding *reins.Binding `json:"binding,omitempty"`
}

// Key is an API key without its secret.
type Key struct {
	ID      string         `json:"key"`
	Project string         `json:"project,omitempty"` // empty: an administrator's
	Binding *reins.Binding `json:"binding,omitempty"` // an agent's
	Created time.Time      `json:"created"`
	Revoked time.Time      `json:"revoked,omitzero"`
}

// NewKey is a key with its secret, which is shown once.
type NewKey struct {
	Key
	Token string `json:"token"`
}

// KeyList is a list of keys.
type KeyList struct {
	Keys []Key `json:"keys"`
}

// JoinForm asks for a link that lets a person in: to projects ("*" is all of them,
// for an administrator's key), or to one resource. Life is 60 s [10 s..1 h]. A framed
// one is for a page of your own that shows the resource in a frame (VIEW-5).
type JoinForm struct {
	Actor    string   `json:"actor"`
	Projects []string `json:"projects,omitempty"`
	Resource *Place   `json:"resource,omitempty"`
	Life     Life     `json:"life,omitempty"`
	Framed   bool     `json:"framed,omitempty"`
}

// Place names one resource to people's pages.
type Place struct {
	Project string `json:"project"`
	ID      string `json:"id"`
}

// Join is a link that lets one person in once. The secret is in its fragment.
type Join struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// AuditQuery names a part of the audit trail.
type AuditQuery struct {
	Project  string
	Resource string // of the project
	After    int64  // only entries with a greater ID
	Limit    int    // 1,000 [1..10,000]
}

// AuditEntry is one row of the audit trail. IDs rise.
type AuditEntry struct {
	ID     int64        `json:"id"`
	Record reins.Record `json:"record"`
}

// AuditList is a part of the audit trail.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
}

func errAdmin() *reins.Error {
	return reins.Errorf(reins.CodeDenied, "this needs an administrator's API key").In(reins.PhaseAdmission)
}

func (h *Handler) keeperRoutes() {
	k := h.o.Keeper
	handle(h, route{method: "POST", path: "/v1/keys", id: "createKey", tag: "keys", creates: true,
		summary: "Make an API key", about: "An administrator's when nothing is given, one project's, or an agent's, which names one binding. The token is in this answer only. Needs an administrator's key."},
		func(ctx context.Context, c *call, in KeyForm) (NewKey, error) {
			if !c.who.Admin {
				return NewKey{}, errAdmin()
			}
			return k.CreateKey(ctx, c.who, in)
		})
	handle(h, route{method: "GET", path: "/v1/keys", id: "listKeys", tag: "keys", query: []parameter{{"project", "Only of this one."}},
		summary: "List API keys", about: "In the order in which they were made, revoked ones too; without their secrets. Needs an administrator's key."},
		func(ctx context.Context, c *call, _ Nothing) (KeyList, error) {
			if !c.who.Admin {
				return KeyList{}, errAdmin()
			}
			all, err := k.Keys(ctx, c.r.URL.Query().Get("project"))
			return KeyList{append([]Key{}, all...)}, err
		})
	handle(h, route{method: "DELETE", path: "/v1/keys/{key}", id: "revokeKey", tag: "keys",
		summary: "Revoke an API key", about: "For good; leases and streams that were made under it end. Needs an administrator's key."},
		func(ctx context.Context, c *call, _ Nothing) (Nothing, error) {
			if !c.who.Admin {
				return Nothing{}, errAdmin()
			}
			return Nothing{}, k.RevokeKey(ctx, c.who, c.path("key"))
		})
	handle(h, route{method: "POST", path: "/v1/joins", id: "join", tag: "people",
		summary: "Let a person in", about: "A link that works once, for a short while. Its secret is in the fragment, which no server and no preview of a link is sent."},
		func(ctx context.Context, c *call, in JoinForm) (Join, error) {
			if err := c.mayJoin(in); err != nil {
				return Join{}, err
			}
			return k.Join(ctx, c.who, in)
		})
	handle(h, route{method: "GET", path: "/v1/audit", id: "audit", tag: "audit",
		summary: "Read the audit trail", about: "The oldest that match first. Needs an administrator's key, or that of the project named.",
		query: []parameter{{"project", "Only of this one."}, {"resource", "Only of this one of the project."}, {"after", "Only entries with a greater id."}, {"limit", "How many: 1000, up to 10000."}}},
		func(ctx context.Context, c *call, _ Nothing) (AuditList, error) {
			q, err := auditQuery(c.r.URL.Query())
			if err != nil {
				return AuditList{}, err
			}
			if !c.who.may(q.Project) || c.who.Resource != "" {
				return AuditList{}, errOtherProject()
			}
			all, err := k.Audit(ctx, q)
			return AuditList{append([]AuditEntry{}, all...)}, err
		})
}

// mayJoin reports whether the caller may let somebody in where the form says.
func (c *call) mayJoin(in JoinForm) error {
	if c.who.Holds != nil || c.who.Resource != "" {
		return errAdmin()
	}
	projects := in.Projects
	if in.Resource != nil {
		projects = append(projects[:len(projects):len(projects)], in.Resource.Project)
	}
	for _, p := range projects {
		if !c.who.may(p) {
			return errOtherProject()
		}
	}
	return nil
}

func auditQuery(v url.Values) (AuditQuery, error) {
	q := AuditQuery{Project: v.Get("project"), Resource: v.Get("resource")}
	var err error
	if s := v.Get("after"); s != "" {
		if q.After, err = strconv.ParseInt(s, 10, 64); err != nil {
			return q, reins.Errorf(reins.CodeInvalidInput, "after is %.40q; give the id of an entry", s)
		}
	}
	if s := v.Get("limit"); s != "" {
		if q.Limit, err = strconv.Atoi(s); err != nil || q.Limit == 0 {
			return q, reins.Errorf(reins.CodeInvalidInput, "limit is %.40q; use 1 to 10000", s)
		}
	}
	return q, nil
}

// CreateKey makes an API key on a server that keeps some.
func (c *Client) CreateKey(ctx context.Context, in KeyForm) (NewKey, error) {
	var out NewKey
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/keys", body: in, effect: "a key that nobody holds"}, &out)
	return out, err
}

// Keys lists the API keys of a project, of all when it is empty.
func (c *Client) Keys(ctx context.Context, project string) ([]Key, error) {
	q := url.Values{}
	if project != "" {
		q.Set("project", project)
	}
	var out KeyList
	err := c.call(ctx, request{method: http.MethodGet, path: "/v1/keys", query: q, repeat: true}, &out)
	return out.Keys, err
}

// RevokeKey ends an API key for good.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	if strings.HasPrefix(id, "reins_") || !isName(id) { // perhaps a token: not for an address (CAP-4)
		return reins.Errorf(reins.CodeNotFound, "what was given is not the ID of a key; list the keys to see them")
	}
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/keys/" + segment(id), repeat: true}, nil)
}

// Join makes a link that lets one person in once.
func (c *Client) Join(ctx context.Context, in JoinForm) (Join, error) {
	var out Join
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/joins", body: in, effect: "a link that nobody holds"}, &out)
	return out, err
}

// Audit reads a part of the audit trail.
func (c *Client) Audit(ctx context.Context, in AuditQuery) ([]AuditEntry, error) {
	q := url.Values{}
	for name, v := range map[string]string{"project": in.Project, "resource": in.Resource} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if in.After != 0 {
		q.Set("after", strconv.FormatInt(in.After, 10))
	}
	if in.Limit != 0 {
		q.Set("limit", strconv.Itoa(in.Limit))
	}
	var out AuditList
	err := c.call(ctx, request{method: http.MethodGet, path: "/v1/audit", query: q, repeat: true}, &out)
	return out.Entries, err
}
