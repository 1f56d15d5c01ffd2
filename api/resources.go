package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/reins-browser/reins"
)

const (
	projectPath  = "/v1/projects/{project}"
	resourcePath = projectPath + "/resources/{resource}"
)

func (h *Handler) resourceRoutes() {
	handle(h, route{method: "POST", path: projectPath + "/resources", id: "register", tag: "resources", creates: true,
		summary: "Register a resource",
		about:   "Makes a resource known; starts no browser. The identical thing again returns what exists, another at the same ID is a conflict."},
		func(ctx context.Context, c *call, in RegisterForm) (reins.Registration, error) {
			key := reins.ResourceKey{Project: c.path("project"), ID: in.Resource}
			return h.runtime.Register(ctx, reins.Registration{Key: key, Attachment: in.Attachment, Spec: in.Spec})
		})
	handle(h, route{method: "GET", path: projectPath + "/resources", id: "list", tag: "resources",
		summary: "List a project's resources", about: "With what their browsers are doing, ordered by ID."},
		func(ctx context.Context, c *call, _ Nothing) (ResourceList, error) {
			all, err := h.runtime.List(ctx, c.path("project"))
			all = slices.DeleteFunc(all, func(i reins.ResourceInfo) bool { return !c.who.sees(i.Key.ID) })
			return ResourceList{all}, err
		})
	handle(h, route{method: "GET", path: resourcePath, id: "show", tag: "resources",
		summary: "Show one resource", about: "Its registration and what its browser is doing."},
		func(ctx context.Context, c *call, _ Nothing) (reins.ResourceInfo, error) { return h.show(ctx, c) })
	handle(h, route{method: "GET", path: resourcePath + "/readiness", id: "readiness", tag: "resources",
		summary: "Tell what a browser can do now", about: "What is known; nothing is probed."},
		func(ctx context.Context, c *call, _ Nothing) (reins.Readiness, error) {
			r, err := c.resource(ctx)
			if err != nil {
				return reins.Readiness{}, err
			}
			return r.Readiness(), nil
		})
	handle(h, route{method: "POST", path: resourcePath + "/wait", id: "wait", tag: "resources",
		summary: "Start a browser and wait for capabilities", about: "None named means all."},
		func(ctx context.Context, c *call, in WaitForm) (reins.Readiness, error) {
			r, err := c.resource(ctx)
			if err != nil {
				return reins.Readiness{}, err
			}
			return r.WaitFor(ctx, in.Capabilities...)
		})
	handle(h, route{method: "POST", path: resourcePath + "/attach", id: "attach", tag: "resources",
		summary: "Change which session may drive", about: "Agents of an older revision lose their authority; answers when their effects are quiet. A lower revision is stale_revision, an equal one with other content a conflict."},
		func(ctx context.Context, c *call, in reins.Attachment) (Nothing, error) {
			r, err := c.resource(ctx)
			if err != nil {
				return Nothing{}, err
			}
			return Nothing{}, r.Attach(ctx, in)
		})
	for _, l := range []struct {
		verb, summary, about string
		do                   func(reins.Resource, context.Context) error
	}{
		{"start", "Start a browser", "One that is up already is a success.", reins.Resource.Start},
		{"stop", "Stop a browser", "What its backend can keep is kept for resume.", reins.Resource.Stop},
		{"resume", "Resume a stopped browser", "As a new incarnation.", reins.Resource.Resume},
		{"terminate", "Terminate the incarnation", "Registration, attachment and artifacts stay.", reins.Resource.Terminate},
		{"retire", "Retire a resource for good", "Ends its authority, browser, artifacts and workspace. Can be repeated until it succeeds.", retire},
	} {
		handle(h, route{method: "POST", path: resourcePath + "/" + l.verb, id: l.verb, tag: "resources", summary: l.summary, about: l.about},
			func(ctx context.Context, c *call, _ Nothing) (Nothing, error) {
				r, err := c.resource(ctx)
				if l.verb == "retire" && reins.CodeOf(err) == reins.CodeRetired {
					return Nothing{}, nil // it has succeeded before
				}
				if err != nil {
					return Nothing{}, err
				}
				return Nothing{}, l.do(r, ctx)
			})
	}
}

func retire(r reins.Resource, ctx context.Context) error { return r.Retire(ctx) }

func (h *Handler) show(ctx context.Context, c *call) (reins.ResourceInfo, error) {
	key := c.key()
	if _, err := h.runtime.Open(ctx, key); err != nil {
		return reins.ResourceInfo{}, err
	}
	all, err := h.runtime.List(ctx, key.Project)
	if err != nil {
		return reins.ResourceInfo{}, err
	}
	for _, info := range all {
		if info.Key == key {
			return info, nil
		}
	}
	return reins.ResourceInfo{}, reins.Errorf(reins.CodeNotFound, "no resource %s is registered", key)
}

func (h *Handler) capabilityRoutes() {
	handle(h, route{method: "POST", path: projectPath + "/capabilities", id: "issue", tag: "capabilities", creates: true,
		summary: "Issue a capability", about: "For a binding that fits the current attachment, once the host's policy agreed. The token is in this answer only: repeated under the same idempotency key, the request is a conflict that names the capability."},
		func(ctx context.Context, c *call, in IssueForm) (reins.Capability, error) {
			if in.Binding.Project != c.path("project") {
				return reins.Capability{}, reins.Errorf(reins.CodeInvalidInput, "the binding is for another project than the address").In(reins.PhaseAdmission)
			}
			made, err := h.runtime.Issue(ctx, in.Binding, time.Duration(in.Life))
			if err == nil {
				h.issued.add(made.ID, in.Binding.Project)
			}
			return made, err
		})
	handle(h, route{method: "DELETE", path: "/v1/capabilities/{capability}", id: "revoke", tag: "capabilities",
		summary: "Revoke a capability", about: "And the lease acquired with it; answers when its effects are quiet."},
		func(ctx context.Context, c *call, _ Nothing) (Nothing, error) {
			id := c.path("capability")
			if !c.who.Admin && h.issued.of(id) != c.who.Project {
				return Nothing{}, reins.Errorf(reins.CodeNotFound, "no such capability of this project is known").In(reins.PhaseAdmission)
			}
			return Nothing{}, h.runtime.Revoke(ctx, id)
		})
}

var _ http.Handler = (*Handler)(nil)
