package host

import (
	"context"
	"errors"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/frames"
)

const (
	castPause   = 100 * time.Millisecond // before a screencast that did not start is started again; doubles
	castTries   = 3                      // that fail for no reason of the page's, in a row
	maxEarly    = 16                     // pictures that come before their screencast has a number
	sharpness   = 92                     // quality of the picture of a still page, at least (FRM-11)
	maxDiagnose = 2048                   // FRM-9
)

// projector shows one incarnation to all who watch: one screencast, of the selected
// tab, from the first viewer to the last (FRM-1). It is one goroutine that brings
// about what is to be shown, one that acknowledges, and at times one that captures.
type projector struct {
	inc  *incarnation
	wake chan struct{} // something may have to be done; one pending at most
	owes chan struct{} // an acknowledgement may be owed; one pending at most

	// Guarded by the resource's lock.
	on        casting  // what is shown; zero when nothing is
	starting  *casting // what is about to be
	early     []driver.CastFrame
	began     time.Time // when it was asked for; zero once its first picture came
	told      bool      // that the first picture did not come
	made      bool      // a picture was made because none came
	capturing bool
	behind    behind
	failures  int
	notBefore time.Time // no other try until then
	wanted    uint64    // the refresh that was asked for last (FRM-8)
	refreshed chan struct{}
}

// behind is the search for a picture of a viewport that the newest one is not of.
type behind struct {
	revision uint64
	tries    int
	next     time.Time
}

// maxBehind is how often a picture is made for one viewport, with pauses that double.
const maxBehind = 6

// casting is a screencast.
type casting struct {
	conn    *connection
	tab     reins.TabID
	refresh uint64
	cast    uint64 // its number on that connection
}

// same reports whether a screencast shows what is to be shown.
func (c casting) same(o casting) bool {
	return c.conn == o.conn && c.tab == o.tab && c.refresh == o.refresh
}

// projectLocked has a projector wherever there is a browser and somebody who
// watches it, and wakes the one there is.
func (r *resource) projectLocked(s *state) {
	if s.view.show == nil && len(s.view.subs) > 0 && r.incarnationLocked() != 0 {
		p := &projector{inc: s.inc, wake: make(chan struct{}, 1), owes: make(chan struct{}, 1), refreshed: make(chan struct{})}
		s.view.show = p
		s.view.stream.Begin(s.inc.number)
		p.go_(p.run)
	}
	if s.view.show != nil {
		s.view.show.kick()
	}
}

// go_ runs f as a part of the generation, which waits for it. It is called while an
// incarnation lives, or another part of it: the generation does not wait yet.
func (p *projector) go_(f func()) {
	p.inc.r.gen.wg.Go(f)
}

func (p *projector) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *projector) pay() {
	select {
	case p.owes <- struct{}{}:
	default:
	}
}

// run brings about what is to be shown until nobody watches or the incarnation
// ends.
func (p *projector) run() {
	ctx, cancel := context.WithCancel(p.inc.ctx)
	defer cancel()
	p.go_(func() { p.acknowledge(ctx) })
	for {
		todo, when := p.next(time.Now())
		if todo != nil {
			if !todo(ctx) {
				return
			}
			continue
		}
		if !pauseUntil(ctx, p.wake, when) {
			return
		}
	}
}

// pauseUntil waits for a wake-up, or for a time that is not zero; false when ctx has
// ended.
func pauseUntil(ctx context.Context, wake <-chan struct{}, when time.Time) bool {
	var late <-chan time.Time
	if !when.IsZero() {
		t := time.NewTimer(time.Until(when))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-wake:
	case <-late:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// next is what is to be done now, without the lock; nil, and the time to ask again,
// when it is nothing. What is to be done says whether there is anything after it.
func (p *projector) next(now time.Time) (todo func(context.Context) bool, when time.Time) {
	p.inc.r.update(func(s *state) {
		if s.view.show != p || p.inc.ctx.Err() != nil {
			todo = func(context.Context) bool { return false }
			return
		}
		todo, when = p.nextLocked(s, now)
	})
	return todo, when
}

func (p *projector) nextLocked(s *state, now time.Time) (todo func(context.Context) bool, when time.Time) {
	conn, stream := p.inc.conn, s.view.stream
	if p.on.conn != conn {
		p.on = casting{} // its driver is gone, and the screencast with it
	}
	watched := len(s.view.subs) > 0
	switch {
	case !watched && p.on.conn == nil:
		s.view.show = nil
		stream.Clear() // it will not be what there is to see then
		return func(context.Context) bool { return false }, when
	case !watched:
		return p.stop, when
	case conn == nil:
		p.inc.ask()
		return nil, when
	}
	want := casting{conn: conn, tab: conn.selected, refresh: p.wanted}
	if !p.on.same(want) {
		switch {
		case want.tab == "":
			return nil, when
		case now.Before(p.notBefore):
			return nil, p.notBefore
		case want.refresh != p.on.refresh && p.on.conn != nil && !stream.Quiet():
			return nil, when // the acknowledgements come first (FRM-8)
		}
		p.starting, p.early = &want, nil
		stream.Begin(p.inc.number)
		return p.start, when
	}
	return p.watchLocked(s, now)
}

// watchLocked looks after a screencast that is on.
func (p *projector) watchLocked(s *state, now time.Time) (todo func(context.Context) bool, when time.Time) {
	stream := s.view.stream
	if p.capturing {
		return nil, when
	}
	if stream.Last() == nil {
		due := p.began.Add(frames.Still) // a page that paints nothing
		switch {
		case p.made:
		case now.Before(due):
			return nil, due
		default:
			p.made = true
			return p.capture(p.on, stream.Fresh), when
		}
		due = p.began.Add(p.inc.r.gen.host.limits.FrameFirst)
		switch {
		case p.told:
		case now.Before(due):
			return nil, due
		default:
			p.told = true
			stream.Tell(reins.Errorf(reins.CodeFrameStreamFailed, "tab %q has shown nothing within %s; it may be busy", string(p.on.tab), p.inc.r.gen.host.limits.FrameFirst).With("tab", string(p.on.tab)))
			s.view.stirAll()
		}
		return nil, when
	}
	p.arrivedLocked()
	of, ask, fresh, when := stream.Sharpen(now)
	switch {
	case ask:
		return p.capture(p.on, func(made frames.Picture) bool { return stream.Sharp(of, made) }), when
	case fresh:
		s.view.stirAll()
	}
	if todo, again := p.catchUpLocked(s, now); todo != nil || when.IsZero() || !again.IsZero() && again.Before(when) {
		return todo, again
	}
	return nil, when
}

// catchUpLocked has a picture made of the viewport that the browser has when the
// newest one is of another: whoever looks at that one cannot act by it (INP-1), and a
// still page paints no other by itself.
func (p *projector) catchUpLocked(s *state, now time.Time) (todo func(context.Context) bool, when time.Time) {
	stream, revision := s.view.stream, s.view.port.Revision
	if stream.Last().Viewport >= revision || p.on.conn.fitted != revision {
		return nil, when
	}
	b := &p.behind
	if b.revision != revision {
		*b = behind{revision: revision, next: now.Add(frames.Still)}
	}
	switch {
	case b.tries >= maxBehind:
		return nil, when
	case now.Before(b.next):
		return nil, b.next
	}
	b.tries++
	b.next = now.Add(frames.Still << b.tries)
	return p.capture(p.on, stream.Newer), when
}

// arrivedLocked tells those who wait for a refresh that its first picture is there.
func (p *projector) arrivedLocked() {
	p.failures = 0
	select {
	case <-p.refreshed:
	default:
		if p.on.refresh == p.wanted {
			close(p.refreshed)
		}
	}
}

// stirAll wakes all who wait for a picture.
func (v *view) stirAll() {
	for sub := range v.subs {
		sub.stir()
	}
}

// start starts the screencast that is wanted, in the place of the one there is.
func (p *projector) start(ctx context.Context) bool {
	r := p.inc.r
	r.mu.Lock()
	want := *p.starting
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, r.gen.host.limits.FrameFirst)
	defer cancel()
	cast, err := want.conn.link.StartCast(ctx, r.cast(want.tab))
	over := false
	r.update(func(s *state) {
		early := p.early
		p.starting, p.early = nil, nil
		if err != nil {
			over = p.failedLocked(s, want, err)
			return
		}
		want.cast = cast
		p.on, p.began, p.told, p.made = want, time.Now(), false, false
		for _, f := range early {
			r.admitLocked(s, p, f)
		}
	})
	return !over
}

// cast is how a tab is shown (FRM-7).
func (r *resource) cast(tab reins.TabID) driver.Cast {
	l := r.gen.host.limits
	return driver.Cast{Tab: tab, Quality: *l.FrameQuality, MaxWidth: l.FrameWidth, MaxHeight: l.FrameHeight, EveryNth: l.FrameEvery}
}

// failedLocked takes that a screencast did not start. A page or driver that is gone
// or busy is no fault of the screencast's; when there is no reason but its own, a few
// times in a row, it is broken for good (FRM-9). It reports whether it is.
func (p *projector) failedLocked(s *state, want casting, err error) bool {
	p.on = casting{}
	p.failures++
	p.notBefore = time.Now().Add(castPause << min(p.failures-1, 6))
	switch reins.CodeOf(err) {
	case reins.CodeInvalidState, reins.CodePageCrashed, reins.CodeDialogOpen, reins.CodeTimeout, reins.CodeCancelled:
		return false
	}
	if want.conn.lost() {
		return false
	}
	p.inc.r.gen.host.log.Warn("the live view did not start", "resource", p.inc.r.key.String(), "err", err)
	if p.failures < castTries {
		return false
	}
	p.breakLocked(s, reins.Errorf(reins.CodeFrameStreamFailed, "the browser's pictures could not be had: %s", bounded(reins.AsError(err).Message, maxDiagnose)).Because(err))
	return true
}

// stop ends the screencast when nobody watches any more.
func (p *projector) stop(ctx context.Context) bool {
	p.inc.r.mu.Lock()
	on := p.on
	p.inc.r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.inc.r.gen.host.limits.FrameFirst)
	defer cancel()
	if err := on.conn.link.StopCast(ctx); err != nil && !on.conn.lost() {
		p.inc.r.gen.host.log.Warn("a live view was not stopped", "resource", p.inc.r.key.String(), "err", err)
	}
	p.inc.r.update(func(s *state) {
		if p.on == on {
			p.on = casting{}
			s.view.stream.Begin(p.inc.number)
		}
	})
	return true
}

// capture makes a picture on the side, for use, which reports whether viewers have
// something new to take: a sharp one of a still page, or one of a page that paints
// nothing (FRM-11, FRM-12).
func (p *projector) capture(on casting, use func(frames.Picture) bool) func(context.Context) bool {
	p.capturing = true
	return func(ctx context.Context) bool {
		p.go_(func() {
			r := p.inc.r
			c := r.cast(on.tab)
			c.Quality = max(c.Quality, sharpness)
			ctx, cancel := context.WithTimeout(ctx, r.gen.host.limits.FrameFirst)
			defer cancel()
			f, err := on.conn.link.Capture(ctx, c)
			r.update(func(s *state) {
				p.capturing = false
				p.kick()
				if s.view.show != p || p.on != on {
					return // it is of something that is not shown any more
				}
				switch {
				case reins.CodeOf(err) == reins.CodeFrameTooLarge:
					f = driver.CastFrame{Tab: on.tab, TooLarge: r.gen.host.limits.FrameBytes + 1}
				case err != nil:
					return // a busy page; pictures of the screencast are all there is
				}
				if use(picture(f)) {
					s.view.stirAll()
				}
			})
		})
		return true
	}
}

func picture(f driver.CastFrame) frames.Picture {
	return frames.Picture{
		Cast: f.Cast, Number: f.Number, Tab: f.Tab, Viewport: f.Viewport, Width: f.Width, Height: f.Height,
		Captured: f.Captured, JPEG: f.JPEG, TooLarge: f.TooLarge,
	}
}

// frame takes a picture from the driver. It returns at once.
func (c *connection) frame(f driver.CastFrame) {
	c.mu.Lock()
	inc := c.inc
	c.mu.Unlock()
	if inc == nil {
		return
	}
	inc.r.update(func(s *state) {
		p := s.view.show
		switch {
		case p == nil || p.inc != inc:
		case p.starting != nil && p.starting.conn == c && (p.on.conn != c || f.Cast != p.on.cast):
			if len(p.early) < maxEarly {
				p.early = append(p.early, f)
			}
		case p.on.conn == c:
			inc.r.admitLocked(s, p, f)
		}
	})
}

// admitLocked gives a picture to those who watch, if it is of what is shown.
func (r *resource) admitLocked(s *state, p *projector, f driver.CastFrame) {
	if f.Cast != p.on.cast || f.Tab != p.on.tab {
		return // of a screencast that was replaced: nothing is owed for it
	}
	if s.view.stream.Admit(picture(f), time.Now()) {
		s.view.stirAll()
		p.kick() // to look when it is still
	}
	p.pay()
}

// acknowledge tells the browser of each picture that it came (FRM-4).
func (p *projector) acknowledge(ctx context.Context) {
	r := p.inc.r
	for {
		var a frames.Ack
		var on casting
		var send, over bool
		var when time.Time
		r.update(func(s *state) {
			if over = s.view.show != p; over {
				return
			}
			now, late := time.Now(), time.Time{}
			var broken *reins.Error
			if broken, late = s.view.stream.Broken(now); broken != nil {
				over = true
				p.breakLocked(s, broken)
				return
			}
			a, send, when = s.view.stream.Owed(now)
			if on = p.on; when.IsZero() || !late.IsZero() && late.Before(when) {
				when = late
			}
		})
		switch {
		case over || ctx.Err() != nil:
			return
		case !send:
			if !pauseUntil(ctx, p.owes, when) {
				return
			}
		case !p.send(ctx, on, a):
			return
		}
	}
}

// send sends one acknowledgement; false when that broke the view.
func (p *projector) send(ctx context.Context, on casting, a frames.Ack) (fine bool) {
	r := p.inc.r
	err := errors.New("there is no screencast")
	if on.conn != nil {
		err = p.deliver(ctx, on, a)
	}
	fine = true
	r.update(func(s *state) {
		s.view.stream.Settled(a)
		if s.view.stream.Quiet() {
			p.kick() // a refresh may wait for it
		}
		refused := reins.CodeOf(err) == reins.CodeInvalidState
		if err == nil || refused || s.view.show != p || p.on != on || on.conn.lost() || ctx.Err() != nil {
			return
		}
		fine = false
		p.breakLocked(s, reins.Errorf(reins.CodeFrameStreamFailed, "a picture could not be acknowledged to the browser: %s", bounded(reins.AsError(err).Message, maxDiagnose)).Because(err))
	})
	return fine
}

// deliver waits for the browser's answer to an acknowledgement, and no longer than
// it may take (FRM-5), whatever the driver does.
func (p *projector) deliver(ctx context.Context, on casting, a frames.Ack) error {
	ctx, cancel := context.WithTimeout(ctx, p.inc.r.gen.host.limits.FrameLife)
	defer cancel()
	done := make(chan error, 1)
	p.go_(func() { done <- on.conn.link.AckFrame(ctx, a.Cast, a.Number) }) // ends with the driver at the latest
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
}

// breakLocked ends what cannot be relied on any more: first all who watch, then the
// incarnation (FRM-9).
func (p *projector) breakLocked(s *state, cause *reins.Error) {
	r := p.inc.r
	cause = reins.AsError(r.secrets.hideError(cause.In(reins.PhaseAction)))
	r.gen.host.log.Error("the live view broke", "resource", r.key.String(), "err", cause)
	for sub := range s.view.subs {
		sub.endLocked(s, cause)
		r.endLocked(s, sub.l.grant, errEnded(reasonRevoked))
	}
	p.inc.broken = cause
	ended := reins.Errorf(reins.CodeBrowserEnded, "the browser was ended because its live view failed; the next operation starts a new one").In(reins.PhaseLifeCycle).Because(cause)
	p.inc.died = p.inc.stopLocked(s, ended) || p.inc.died
}
