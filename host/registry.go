package host

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/egress"
)

// Register implements [reins.Runtime] (RES-1, RES-2, RES-6).
func (h *Host) Register(_ context.Context, reg reins.Registration) (reins.Registration, error) {
	made, err := h.name(&reg)
	if err != nil {
		return reins.Registration{}, err
	}
	g, reg, err := h.complete(reg)
	if err != nil {
		return reins.Registration{}, err
	}
	return g.register(reg, made)
}

// name gives a registration an ID where it has none. One of the form that only the
// runtime makes (RES-6) is refused, unless there is such a resource.
func (h *Host) name(reg *reins.Registration) (made bool, _ error) {
	reg.Created = time.Time{}
	if reg.Key.ID == "" {
		reg.Key.ID = capability.NewID(capability.KindResource)
		return true, nil
	}
	if !capability.IsID(capability.KindResource, reg.Key.ID) {
		return false, nil
	}
	_, err := h.Open(context.Background(), reg.Key)
	if reins.CodeOf(err) == reins.CodeNotFound {
		return false, reins.Errorf(reins.CodeInvalidInput,
			"resource ID %q has the form of those the runtime makes; choose another or leave it empty", reg.Key.ID)
	}
	return true, err
}

// Prepare completes a registration as [Host.Register] would, with an ID where it
// has none, and registers nothing: for a program that keeps registrations durably
// and has to know, before it keeps one, that [Host.Restore] will take it. Whatever
// Register refuses is refused here, but for what changes meanwhile.
func (h *Host) Prepare(reg reins.Registration) (reins.Registration, error) {
	if _, err := h.name(&reg); err != nil {
		return reins.Registration{}, err
	}
	g, reg, err := h.complete(reg)
	if err != nil {
		return reins.Registration{}, err
	}
	g.mu.Lock()
	old := g.resources[reg.Key]
	err = g.roomLocked(reg.Key)
	g.mu.Unlock()
	if old != nil {
		return old.same(reg)
	}
	return shown(reg), err
}

// Restore registers what an earlier generation had, by the word of the program that
// kept it: as [Host.Register], but an ID that the runtime once made is one again,
// and Created stays.
func (h *Host) Restore(reg reins.Registration) (reins.Registration, error) {
	g, reg, err := h.complete(reg)
	if err != nil {
		return reins.Registration{}, err
	}
	return g.register(reg, capability.IsID(capability.KindResource, reg.Key.ID))
}

// complete fills a registration in and checks it.
func (h *Host) complete(reg reins.Registration) (*generation, reins.Registration, error) {
	g, err := h.current()
	if err != nil {
		return nil, reg, err
	}
	if reg.Spec, err = reg.Spec.WithDefaults(); err != nil {
		return nil, reg, err
	}
	if reg.Attachment.Session != nil {
		session := *reg.Attachment.Session
		reg.Attachment.Session = &session
	}
	return g, reg, cmp.Or(reg.Key.Validate(), reg.Attachment.Validate(), h.possible(reg.Spec))
}

// possible refuses what no backend of this host could ever start.
func (h *Host) possible(spec reins.BrowserSpec) error {
	if h.backends[spec.Backend] == nil {
		return reins.Errorf(reins.CodeInvalidInput, "this runtime has no %q backend; use one of those it was made with", string(spec.Backend))
	}
	p, err := egress.New(egress.Options{Policy: spec.Egress, Limits: h.limits, Refuse: true})
	if err == nil {
		p.Close() // it was made to have the policy judged only
	}
	return err
}

func (g *generation) register(reg reins.Registration, made bool) (reins.Registration, error) {
	g.mu.Lock()
	if old := g.resources[reg.Key]; old != nil {
		g.mu.Unlock()
		return old.same(reg)
	}
	defer g.mu.Unlock()
	// All under the lock that the end of a resource and of the generation take:
	// what is retired stays so, and nothing comes in after the fence.
	if err := g.roomLocked(reg.Key); err != nil {
		return reins.Registration{}, err
	}
	if reg.Created.IsZero() {
		reg.Created = time.Now()
	}
	r := newResource(g, reg, made)
	g.resources[reg.Key] = r
	r.publish(reins.Event{Kind: "registered", State: reins.StateStopped})
	return shown(reg), nil
}

// roomLocked is why a key that is not registered cannot be, or nil.
func (g *generation) roomLocked(key reins.ResourceKey) error {
	retired, tombs := g.host.graves.has(key)
	limit := g.host.limits.Resources
	switch {
	case g.ctx.Err() != nil:
		return g.closing()
	case retired:
		return errRetired(key)
	case tombs >= limit:
		return reins.Errorf(reins.CodeQuotaExceeded,
			"%d resources were retired in this process and fill the bound; restart the process or raise the limit resources", tombs).Recover(reins.RecoverNone).In(reins.PhaseAdmission)
	case len(g.resources)+tombs >= limit:
		return reins.Errorf(reins.CodeQuotaExceeded,
			"%d resources are registered or retired and fill the bound; retire some that the runtime named, or raise the limit resources", limit).In(reins.PhaseAdmission)
	}
	return nil
}

// same answers a registration of a key that exists (RES-2). A newer attachment
// since then makes it something different.
func (r *resource) same(reg reins.Registration) (reins.Registration, error) {
	r.mu.Lock()
	attached, fence := r.st.attachment, r.st.fence
	r.mu.Unlock()
	if fence != nil {
		return reins.Registration{}, fence
	}
	if !attached.Equal(reg.Attachment) || !equalSpec(r.spec, reg.Spec) {
		return reins.Registration{}, reins.Errorf(reins.CodeConflict,
			"resource %s is registered with another attachment or spec; use those, or Attach to change the session", r.key).
			With("revision", attached.Revision).In(reins.PhaseAdmission)
	}
	reg.Created = r.created // whatever was given
	return shown(reg), nil
}

// shown returns a registration that shares nothing with reg, for callers.
func shown(reg reins.Registration) reins.Registration {
	if reg.Attachment.Session != nil {
		session := *reg.Attachment.Session
		reg.Attachment.Session = &session
	}
	s := &reg.Spec
	s.Verbs = slices.Clone(s.Verbs)
	for _, list := range []*[]string{&s.Egress.AllowHosts, &s.Egress.DenyHosts, &s.Egress.AllowPrivate, &s.Navigation.Allow, &s.Navigation.Deny} {
		*list = slices.Clone(*list)
	}
	return reg
}

func equalSpec(a, b reins.BrowserSpec) bool {
	same := slices.Equal(a.Verbs, b.Verbs) &&
		slices.Equal(a.Egress.AllowHosts, b.Egress.AllowHosts) &&
		slices.Equal(a.Egress.DenyHosts, b.Egress.DenyHosts) &&
		slices.Equal(a.Egress.AllowPrivate, b.Egress.AllowPrivate) &&
		slices.Equal(a.Navigation.Allow, b.Navigation.Allow) &&
		slices.Equal(a.Navigation.Deny, b.Navigation.Deny)
	return same && a.Backend == b.Backend && a.Engine == b.Engine && a.Desktop == b.Desktop &&
		a.Workspace == b.Workspace && a.Scheduling == b.Scheduling && a.WebGL == b.WebGL &&
		a.Locale == b.Locale && a.TimeZone == b.TimeZone &&
		a.Egress.MaxBytesUp == b.Egress.MaxBytesUp && a.Egress.MaxBytesDown == b.Egress.MaxBytesDown
}

func errRetired(key reins.ResourceKey) *reins.Error {
	return reins.Errorf(reins.CodeRetired, "resource %s is retired for good; register another", key).In(reins.PhaseLifeCycle)
}

// Open implements [reins.Runtime].
func (h *Host) Open(_ context.Context, key reins.ResourceKey) (reins.Resource, error) {
	g, err := h.current()
	if err != nil {
		return nil, err
	}
	r, err := g.find(key)
	if err != nil {
		return nil, err // and not a resource that is none
	}
	return r, nil
}

// find is the resource of a key, or retired, or not_found.
func (g *generation) find(key reins.ResourceKey) (*resource, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	r := g.resources[key]
	g.mu.Unlock()
	if r != nil {
		return r, nil
	}
	if retired, _ := g.host.graves.has(key); retired {
		return nil, errRetired(key)
	}
	return nil, reins.Errorf(reins.CodeNotFound, "no resource %s is registered", key)
}

// List implements [reins.Runtime] (RES-3).
func (h *Host) List(_ context.Context, project string) ([]reins.ResourceInfo, error) {
	if err := (reins.ResourceKey{Project: project, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	g, err := h.current()
	if err != nil {
		return nil, err
	}
	out := []reins.ResourceInfo{}
	for _, r := range g.all() {
		if r.key.Project == project {
			out = append(out, r.info())
		}
	}
	slices.SortFunc(out, func(a, b reins.ResourceInfo) int { return cmp.Compare(a.Key.ID, b.Key.ID) })
	return out, nil
}
