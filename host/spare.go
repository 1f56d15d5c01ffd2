package host

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

// maxSpares is the most spares that a host keeps (CELL-11).
const maxSpares = 64

// checkSpares completes what spares are to be, and refuses what they never can.
func (h *Host) checkSpares(n int, spec reins.BrowserSpec) error {
	if n < 0 || n > maxSpares {
		return reins.Errorf(reins.CodeInvalidInput, "Options.Spares is %d; use 0 to %d", n, maxSpares)
	}
	if n == 0 {
		return nil
	}
	spec, err := spec.WithDefaults()
	if err != nil {
		return err
	}
	if spec.Workspace != "" {
		return reins.Errorf(reins.CodeInvalidInput, "Options.SpareSpec names a workspace; a spare starts with a fresh profile, so leave it empty")
	}
	h.spares, h.spareSpec = n, spec
	return h.possible(spec)
}

// sameBuild reports whether browsers of both specs are built the same. Policy of
// the network door, order and verbs come with the owner.
func sameBuild(a, b reins.BrowserSpec) bool {
	for _, s := range []*reins.BrowserSpec{&a, &b} {
		s.Egress, s.Scheduling, s.Verbs = reins.EgressPolicy{}, "", nil
	}
	return equalSpec(a, b)
}

// spares are started browsers that nobody owns, kept for the next ephemeral
// incarnations whose browser is built the same (CELL-11). One goroutine builds
// what is missing, one after another; each spare has one that watches it until
// it is claimed. All end with the generation, and close cleans up.
type spares struct {
	gen  *generation
	spec reins.BrowserSpec
	want int
	wake chan struct{} // there may be something to build; one pending at most
	wg   sync.WaitGroup

	mu        sync.Mutex // guards all below; a leaf: nothing is locked under it
	bodies    map[*body]struct{}
	ready     []*spare // of bodies, those that can be claimed, oldest first
	failures  int      // in a row
	notBefore time.Time
}

// spare is one that can be claimed.
type spare struct {
	*body
	since time.Time
	taken chan struct{} // closed when it is claimed
}

// newSpares begins to keep spares for a generation.
func newSpares(g *generation) *spares {
	p := &spares{
		gen: g, spec: g.host.spareSpec, want: g.host.spares,
		wake: make(chan struct{}, 1), bodies: map[*body]struct{}{},
	}
	if p.want > 0 {
		p.wg.Go(p.keep)
	}
	return p
}

// claim takes the oldest spare whose browser is built as spec says, or nothing.
// It is the caller's then.
func (p *spares) claim(spec reins.BrowserSpec) *body {
	if p.want == 0 || !sameBuild(p.spec, spec) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.ready {
		if s.lost() == nil && p.gen.ctx.Err() == nil {
			close(s.taken)
			p.dropLocked(s)
			delete(p.bodies, s.body)
			p.failures, p.notBefore = 0, time.Time{}
			p.stir()
			return s.body
		}
	}
	return nil
}

// lost is why a spare cannot be used any more, or nil.
func (s *spare) lost() error {
	select {
	case <-s.cell.Done():
		return endedError(s.cell.Err())
	case <-s.first.link.Done():
		return fmt.Errorf("its driver ended: %w", s.first.link.Err())
	default:
		return nil
	}
}

// dropLocked takes a spare out of those that can be claimed; false when it was
// not among them any more.
func (p *spares) dropLocked(s *spare) bool {
	i := slices.Index(p.ready, s)
	if i >= 0 {
		p.ready = slices.Delete(p.ready, i, i+1)
	}
	return i >= 0
}

// stir has keep look again.
func (p *spares) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// keep builds what is missing until the generation ends.
func (p *spares) keep() {
	for p.missing() {
		b := &body{gen: p.gen, spec: p.spec}
		p.mu.Lock()
		p.bodies[b] = struct{}{}
		p.mu.Unlock()
		if err := b.build(p.gen.ctx, driver.Numbers{}, p.refused); err != nil {
			p.fail("did not start", err, 0)
			p.bury(b)
			continue
		}
		s := &spare{body: b, since: time.Now(), taken: make(chan struct{})}
		p.mu.Lock()
		p.ready = append(p.ready, s)
		p.mu.Unlock()
		p.wg.Go(func() { p.watch(s) })
	}
}

// missing waits until a spare is to be built; false when the generation ends.
// Those that could not be ended count, so that there are never too many.
func (p *spares) missing() bool {
	for p.gen.ctx.Err() == nil {
		p.mu.Lock()
		missing, wait := len(p.bodies) < p.want, time.Until(p.notBefore)
		p.mu.Unlock()
		if missing && wait <= 0 {
			return true
		}
		timer := time.NewTimer(wait)
		due := timer.C
		if !missing {
			due = nil
		}
		select {
		case <-p.wake:
		case <-due:
		case <-p.gen.ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// watch waits until a spare is claimed, and ends it when it is lost before.
func (p *spares) watch(s *spare) {
	select {
	case <-s.taken:
		return
	case <-p.gen.ctx.Done():
		return // close has it
	case <-s.cell.Done():
	case <-s.first.link.Done():
	}
	p.mu.Lock()
	mine := p.dropLocked(s)
	p.mu.Unlock()
	if mine {
		p.fail("was lost", s.lost(), time.Since(s.since))
		p.bury(s.body)
	}
}

// fail notes why a spare was lost, and has the next one wait longer with each in
// a row; one that had lived a while begins a new row.
func (p *spares) fail(what string, err error, lived time.Duration) {
	if p.gen.ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	if lived > window {
		p.failures = 0
	}
	p.failures++
	wait := pause(p.failures)
	p.notBefore = time.Now().Add(wait)
	p.mu.Unlock()
	p.gen.host.log.Warn("a spare browser "+what, "again_in", wait, "err", err)
}

// bury ends a body, trying again with growing pauses until the generation ends;
// then close has it.
func (p *spares) bury(b *body) {
	for n := 1; ; n++ {
		err := p.end(b)
		if err == nil {
			p.stir()
			return
		}
		p.gen.host.log.Error("a spare browser could not be ended", "again_in", pause(n), "err", err)
		again := time.NewTimer(pause(n))
		select {
		case <-again.C:
		case <-p.gen.ctx.Done():
			again.Stop()
			return
		}
	}
}

func (p *spares) end(b *body) error {
	if err := b.clean(nil); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.bodies, b)
	return nil
}

// refused is told what a spare's door refused: a browser at rest asks for
// nothing (CELL-8).
func (p *spares) refused(d egress.Decision) {
	p.gen.host.log.Warn("a spare browser asked for the network and was refused",
		"method", d.Method, "host", d.Host, "port", d.Port, "reason", string(d.Reason))
}

// close ends all spares once the generation has been fenced; repeatable until
// it succeeds.
func (p *spares) close() []error {
	p.wg.Wait()
	p.mu.Lock()
	p.ready = nil
	left := make([]*body, 0, len(p.bodies))
	for b := range p.bodies {
		left = append(left, b)
	}
	p.mu.Unlock()
	errs := make([]error, len(left))
	var wg sync.WaitGroup
	for i, b := range left {
		wg.Go(func() {
			if err := p.end(b); err != nil {
				errs[i] = fmt.Errorf("a spare browser: %w", err)
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// alive reports whether a spare is left.
func (p *spares) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bodies) > 0
}
