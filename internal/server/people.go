package server

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/capability"
)

const (
	joinLife    = 60 * time.Second // of a link, when none is asked for (API-3)
	joinLifeMin = 10 * time.Second
	joinLifeMax = time.Hour

	joinsMax    = 1024 // links that nobody has used yet
	joinsOfKey  = 64   // of one project's key
	sessionsMax = 1024
	pagesMax    = 16 // of one session; the one used least lately goes
	openedMax   = 64 // resources that one page holds
	projectsMax = 64 // that one link names

	sweepEvery  = 5 * time.Second
	releaseTime = 10 * time.Second
)

// people are those who came in by a link (API-3). All of it is in memory and ends
// with the process.
type people struct {
	peopleOptions

	ctx  context.Context // of sessions; ends with close
	end  context.CancelCauseFunc
	work sync.WaitGroup

	mu       sync.Mutex // guards all below, and what sessions and pages say it does
	joins    map[capability.Hash]*join
	sessions map[capability.Hash]*session
}

// peopleOptions are what people need of others.
type peopleOptions struct {
	runtime reins.Runtime
	adopt   func(reins.Lease) (func() api.LeaseState, func()) // makes a lease the API's
	log     *slog.Logger
	life    time.Duration // of a session
	absent  time.Duration // how long a page may not be seen until it is gone
}

// access is what a person may see: one resource, or projects, or all of them.
type access struct {
	Actor    string
	All      bool
	Projects []string
	Resource *reins.ResourceKey
}

// sees reports whether there is anything of a project for the person.
func (a access) sees(project string) bool {
	if a.Resource != nil {
		return a.Resource.Project == project
	}
	return a.All && project != "" || slices.Contains(a.Projects, project)
}

func (a access) may(key reins.ResourceKey) bool {
	return a.sees(key.Project) && (a.Resource == nil || *a.Resource == key)
}

// join is a link that nobody has used yet.
type join struct {
	access  access
	framed  bool
	key     *liveKey // under which it was made; its end is that of the session
	expires time.Time
}

// session is one person at one browser, known by a cookie, or in a frame of another
// site's page, where cookies are not sent, by a secret in that frame's memory.
type session struct {
	id      string // no secret: the peer of the person's bindings
	hash    capability.Hash
	access  access
	framed  bool
	key     *liveKey
	expires time.Time
	ended   chan struct{}

	pages map[capability.Hash]*page // guarded by people.mu
	over  bool                      // likewise
}

// page is one open page of a session, known by a secret that only its script has.
type page struct {
	people  *people
	session *session
	hash    capability.Hash
	ended   chan struct{}

	// Guarded by people.mu.
	open   int       // requests and streams under way
	seen   time.Time // the last of them
	over   bool
	opened map[string]*opened // by lease ID
}

// opened is a lease that the server holds for a page.
type opened struct {
	lease reins.Lease
	key   reins.ResourceKey
	state func() api.LeaseState
	done  chan struct{} // closed when its renewal has stopped and it is released
}

func newPeople(o peopleOptions) *people {
	p := &people{peopleOptions: o, joins: map[capability.Hash]*join{}, sessions: map[capability.Hash]*session{}}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	return p
}

// close ends all sessions and waits until their leases are released.
func (p *people) close() {
	p.end(errDraining())
	p.mu.Lock()
	clear(p.joins)
	p.mu.Unlock()
	p.work.Wait()
}

// errJoin is the one answer to a secret that is not good, for whatever reason.
func errJoin() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "this link has been used, has expired, or never was one; ask for a new one (reins view prints it)").In(reins.PhaseAdmission)
}

func errNoSession() *reins.Error {
	return reins.Errorf(reins.CodeUnauthorized, "you are not signed in here, or not any more; ask for a link (reins view prints one)").In(reins.PhaseAdmission)
}

// invite makes the secret of a link.
func (p *people) invite(in api.JoinForm, key *liveKey) (reins.Token, time.Time, error) {
	a, life, err := readJoin(in)
	if err != nil {
		return "", time.Time{}, err
	}
	token, now := capability.NewToken(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return "", time.Time{}, errDraining()
	}
	maps.DeleteFunc(p.joins, func(_ capability.Hash, j *join) bool { return !now.Before(j.expires) || keyOver(j.key) })
	if key != nil && key.Project != "" { // one project does not take all places
		own := 0
		for _, j := range p.joins {
			if j.key == key {
				own++
			}
		}
		if own >= joinsOfKey {
			return "", time.Time{}, reins.Errorf(reins.CodeQuotaExceeded, "%d links of this key wait to be used already; wait until some have expired", joinsOfKey).In(reins.PhaseAdmission)
		}
	}
	if len(p.joins) >= joinsMax {
		return "", time.Time{}, reins.Errorf(reins.CodeQuotaExceeded, "%d links wait to be used already; wait until some have expired", joinsMax).In(reins.PhaseAdmission)
	}
	j := &join{access: a, framed: in.Framed, key: key, expires: now.Add(life)}
	p.joins[capability.Sum(token)] = j
	return token, j.expires, nil
}

// readJoin checks what a link is asked for.
func readJoin(in api.JoinForm) (access, time.Duration, error) {
	a := access{Actor: in.Actor}
	life := cmp.Or(time.Duration(in.Life), joinLife)
	if life < joinLifeMin || life > joinLifeMax {
		return a, 0, reins.Errorf(reins.CodeInvalidInput, "life is %s; a link lives from %s to %s", life, joinLifeMin, joinLifeMax)
	}
	place := reins.ResourceKey{Project: "any", ID: "any"}
	switch {
	case in.Resource != nil && len(in.Projects) > 0:
		return a, 0, reins.Errorf(reins.CodeInvalidInput, "a link is for projects or for one resource, not for both")
	case in.Resource != nil:
		place = reins.ResourceKey{Project: in.Resource.Project, ID: in.Resource.ID}
		a.Resource = &place
	case in.Framed:
		return a, 0, reins.Errorf(reins.CodeInvalidInput, "resource is missing; a frame shows one resource")
	case len(in.Projects) == 0:
		return a, 0, reins.Errorf(reins.CodeInvalidInput, "projects is missing; name those that the person may see, or one resource")
	case len(in.Projects) > projectsMax:
		return a, 0, reins.Errorf(reins.CodeInvalidInput, "a link names at most %d projects, not %d", projectsMax, len(in.Projects))
	}
	for _, project := range in.Projects {
		if project == "*" {
			a.All = true
			continue
		}
		if err := (reins.ResourceKey{Project: project, ID: "any"}).Validate(); err != nil {
			return a, 0, err
		}
		a.Projects = append(a.Projects, project)
	}
	// As the person's bindings will be checked.
	return a, life, reins.Binding{Project: place.Project, Resource: place.ID, Actor: in.Actor, Role: reins.RoleHuman, Peer: "page", Source: reins.SourceViewer}.Validate()
}

// enter spends the secret of a link and begins a session, which is known by the
// returned secret.
func (p *people) enter(secret reins.Token) (*session, reins.Token, error) {
	hash, now := capability.Sum(secret), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.joins[hash]
	delete(p.joins, hash)
	switch {
	case p.ctx.Err() != nil:
		return nil, "", errDraining()
	case j == nil || !hash.Matches(secret) || !now.Before(j.expires) || keyOver(j.key):
		return nil, "", errJoin()
	case len(p.sessions) >= sessionsMax:
		return nil, "", reins.Errorf(reins.CodeQuotaExceeded, "%d people are signed in already; wait until somebody has left", sessionsMax).In(reins.PhaseAdmission)
	}
	token := capability.NewToken()
	s := &session{
		id: capability.NewID("person"), hash: capability.Sum(token), access: j.access, framed: j.framed, key: j.key,
		expires: now.Add(p.life), ended: make(chan struct{}), pages: map[capability.Hash]*page{},
	}
	p.sessions[s.hash] = s
	p.work.Go(func() { p.watch(s) })
	return s, token, nil
}

func keyOver(k *liveKey) bool {
	if k == nil {
		return false
	}
	select {
	case <-k.ended:
		return true
	default:
		return false
	}
}

// watch ends a session when its time has come, and its pages when they are gone. It
// returns when all of it is released.
func (p *people) watch(s *session) {
	expiry := time.NewTimer(time.Until(s.expires))
	defer expiry.Stop()
	sweep := time.NewTicker(min(sweepEvery, p.absent/4))
	defer sweep.Stop()
	var key <-chan struct{}
	if s.key != nil {
		key = s.key.ended
	}
	for going := true; going; {
		select {
		case <-sweep.C:
			p.sweep(s)
		case <-expiry.C:
			going = false
		case <-key:
			going = false
		case <-s.ended:
			going = false
		case <-p.ctx.Done():
			going = false
		}
	}
	p.leave(s)
}

// sweep ends the pages of a session that were not seen for a while.
func (p *people) sweep(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range s.pages {
		if g.open == 0 && time.Since(g.seen) >= p.absent {
			p.closePageLocked(g)
		}
	}
}

// leave ends a session; idempotent.
func (p *people) leave(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	close(s.ended)
	delete(p.sessions, s.hash)
	for _, g := range s.pages {
		p.closePageLocked(g)
	}
}

// session is the one of a secret.
func (p *people) session(secret reins.Token) (*session, error) {
	hash := capability.Sum(secret)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[hash]
	if s == nil || !hash.Matches(secret) || !s.hash.Matches(secret) || !time.Now().Before(s.expires) || keyOver(s.key) {
		return nil, errNoSession()
	}
	return s, nil
}

// page begins a page of a session and returns its secret.
func (p *people) page(s *session) (reins.Token, error) {
	token := capability.NewToken()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.over || p.ctx.Err() != nil {
		return "", errNoSession()
	}
	if len(s.pages) >= pagesMax {
		var oldest *page
		for _, g := range s.pages {
			if g.open == 0 && (oldest == nil || g.seen.Before(oldest.seen)) {
				oldest = g
			}
		}
		if oldest == nil {
			return "", reins.Errorf(reins.CodeQuotaExceeded, "%d pages are open in this browser already; close one", pagesMax).In(reins.PhaseAdmission)
		}
		p.closePageLocked(oldest)
	}
	g := &page{people: p, session: s, hash: capability.Sum(token), ended: make(chan struct{}), seen: time.Now(), opened: map[string]*opened{}}
	s.pages[g.hash] = g
	return token, nil
}

// closePageLocked ends a page: its streams, and the leases that it held.
func (p *people) closePageLocked(g *page) {
	if g.over {
		return
	}
	g.over = true
	close(g.ended)
	delete(g.session.pages, g.hash)
}

// visit finds a page by both secrets and counts a request of it, until over is
// called.
func (p *people) visit(cookie, secret reins.Token) (g *page, over func(), err error) {
	s, err := p.session(cookie)
	if err != nil {
		return nil, nil, err
	}
	hash := capability.Sum(secret)
	p.mu.Lock()
	defer p.mu.Unlock()
	g = s.pages[hash]
	if g == nil || !g.hash.Matches(secret) {
		return nil, nil, reins.Errorf(reins.CodeUnauthorized, "the request lacks the secret of an open page; load the page anew").In(reins.PhaseAdmission)
	}
	g.open++
	return g, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		g.open--
		g.seen = time.Now()
	}), nil
}

// here reports whether a page is connected, or was not long ago.
func (g *page) here() bool {
	g.people.mu.Lock()
	defer g.people.mu.Unlock()
	return !g.over && (g.open > 0 || time.Since(g.seen) < g.people.absent)
}

// holds reports whether a lease is one of the page's.
func (g *page) holds(lease string) bool {
	g.people.mu.Lock()
	defer g.people.mu.Unlock()
	return !g.over && g.opened[lease] != nil
}

// resourceOf is what a lease of the page is of.
func (g *page) resourceOf(lease string) (key reins.ResourceKey) {
	g.people.mu.Lock()
	defer g.people.mu.Unlock()
	if o := g.opened[lease]; o != nil {
		key = o.key
	}
	return key
}

// authorized reports whether the session of an ID is good and may see a resource:
// what the host's hook asks about people's bindings.
func (p *people) authorized(id string, b reins.Binding) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.id == id {
			return !s.over && !keyOver(s.key) && time.Now().Before(s.expires) && b.Role == reins.RoleHuman && b.Source == reins.SourceViewer && b.Actor == s.access.Actor && s.access.may(b.Key())
		}
	}
	return false
}

func (p *people) counts() (sessions, pages, leases int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		pages += len(s.pages)
		for _, g := range s.pages {
			leases += len(g.opened)
		}
	}
	return len(p.sessions), pages, leases
}
