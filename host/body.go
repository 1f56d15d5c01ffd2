package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
)

// body is what an incarnation lives in: directories, egress door, cell, and the
// first driver on it. It is built for nobody, with a door that refuses
// everything, and then owned once: at once when a resource waits for it, some
// time later when it is a spare (CELL-11). Whoever has it cleans it up.
type body struct {
	gen    *generation
	spec   reins.BrowserSpec // what it is built by
	key    reins.ResourceKey // for errors: whose it is going to be, if that is known
	number uint64            // likewise

	room    room
	door    door
	serving chan struct{} // closed when the door's Serve has returned
	cell    cell.Cell
	first   *connection // later ones are the owner's

	quiet chan struct{}  // made by build; closed when driver and cell have ended and nothing of it can act any more
	saves sync.WaitGroup // who uses its folders; added to under its owner's lock
	going atomic.Bool    // it is being cleaned up
}

// build builds everything up, within the limit for starts, and has the kernel
// say that it is sealed. What it built is cleaned up by clean, whether or not
// all of it was. Tabs and documents get names above numbers; audit is told what
// the door refuses until somebody owns it.
func (b *body) build(ctx context.Context, numbers driver.Numbers, audit func(egress.Decision)) (err error) {
	b.quiet = make(chan struct{})
	limit := b.gen.host.limits.StartTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, reins.Errorf(reins.CodeStartupFailed,
		"the browser did not come up within %s", limit))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.Join(reins.ContextError(ctx), err)
		}
	}()
	defer contain(&err, "starting")
	if err := b.enclose(ctx, audit); err != nil {
		return err
	}
	conn := &connection{number: 1, meeting: make(chan struct{}, 1)}
	if err := b.connect(ctx, conn, driver.Handover{Numbers: numbers}); err != nil {
		return b.blame(ctx, err)
	}
	b.first = conn
	return b.cell.Verify(ctx)
}

// enclose makes directories, door and cell.
func (b *body) enclose(ctx context.Context, audit func(egress.Decision)) error {
	h, s := b.gen.host, b.spec
	limits := h.limits
	if s.Workspace != "" { // which must fit the next time too (WSP-2)
		limits.CellDisk = min(limits.CellDisk, limits.WorkspaceBytes)
	}
	var err error
	if b.room, err = b.gen.ground.Room(ctx, b.key.Project, s.Workspace); err != nil {
		b.room = nil // not a typed nil of somebody's
		return err
	}
	if b.door, err = h.parts.door(egress.Options{Limits: h.limits, Refuse: true, Audit: audit}); err != nil {
		b.door = nil
		return err
	}
	b.cell, err = h.backends[s.Backend].Start(ctx, cell.Spec{
		Key: b.key, Incarnation: b.number, Engine: s.Engine, Desktop: s.Desktop,
		WebGL: s.WebGL, Locale: s.Locale, TimeZone: s.TimeZone,
		Width: width, Height: height, Profile: b.room.Profile(),
		Downloads: b.room.Downloads().Name(), Uploads: b.room.Uploads().Name(),
		Navigation: s.Navigation, Limits: limits,
	})
	if err != nil {
		b.cell = nil
		return err
	}
	listener, served := b.cell.Doors().Egress, make(chan struct{})
	b.serving = served
	go func() {
		defer close(served)
		// A cell that ended by itself closes its door first, and tells more.
		if err := b.door.Serve(listener); err != nil && !b.going.Load() && !errors.Is(err, net.ErrClosed) {
			h.log.Warn("the egress door stopped", "resource", b.key.String(), "err", err)
		}
	}()
	return nil
}

// connect starts a driver on the cell, for conn.
func (b *body) connect(ctx context.Context, conn *connection, previous driver.Handover) error {
	l, s := b.gen.host.limits, b.spec
	ctx, cancel := context.WithTimeoutCause(ctx, l.ConnectTimeout, reins.Errorf(reins.CodeConnectionTimeout,
		"the driver did not connect within %s", l.ConnectTimeout).In(reins.PhaseConnect))
	defer cancel()
	doors := b.cell.Doors()
	link, err := b.gen.host.parts.drive(ctx, driver.Options{
		ToBrowser: doors.ToBrowser, FromBrowser: doors.FromBrowser, Previous: previous,
		Settings: driver.Settings{
			Connection: conn.number, Message: l.Message, Memory: l.DriverMemory, Tabs: l.Tabs,
			Downloads: cellDownloads, Download: l.ArtifactBytesResource, Navigation: s.Navigation,
			Width: width, Height: height, Scale: 1, Frame: int64(l.FrameBytes), Engine: s.Engine, Locale: s.Locale,
		},
		Events: conn.hear, Frames: conn.frame,
	})
	if err != nil {
		return err
	}
	conn.link = link
	return nil
}

// blame prefers what the cell tells to what a driver tells that could not
// connect: of a browser that died it only saw a pipe close.
func (b *body) blame(ctx context.Context, err error) error {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-b.cell.Done():
	case <-t.C:
	case <-ctx.Done():
	}
	select {
	case <-b.cell.Done():
		if told := b.cell.Err(); told != nil {
			return told
		}
	default:
	}
	return err
}

// own makes the body the incarnation's: from here on its resource's policy holds
// at the door, and its resource is told what happens.
func (b *body) own(inc *incarnation) error {
	r := inc.r
	if err := b.door.Adopt(r.spec.Egress, inc.passed); err != nil {
		return err
	}
	b.first.own(inc)
	return nil
}

// clean makes one try to end everything, the owner's connection too. It is
// bounded, and whatever it ended already stays ended when it is called again.
func (b *body) clean(conn *connection) (err error) {
	b.going.Store(true)
	defer contain(&err, "ending")
	l := b.gen.host.limits
	ctx, cancel := context.WithTimeout(context.Background(), l.CloseGrace+l.CleanUp/2)
	defer cancel()
	if err := join(ctx, b.first, conn); err != nil {
		return err
	}
	b.saves.Wait()
	if err := b.endCell(ctx); err != nil {
		return err
	}
	if !b.still() {
		close(b.quiet) // what is left are files
	}
	if b.door != nil {
		b.door.Close()
		if b.serving != nil {
			<-b.serving
		}
	}
	if b.room != nil {
		if err := b.room.Close(ctx); err != nil {
			return fmt.Errorf("directories: %w", err)
		}
	}
	return nil
}

// still reports whether nothing of it can act any more.
func (b *body) still() bool {
	select {
	case <-b.quiet:
		return true
	default:
		return false
	}
}

// join kills drivers and waits until they are reaped.
func join(ctx context.Context, conns ...*connection) error {
	for _, c := range conns {
		if c == nil {
			continue
		}
		go c.link.Kill() // it waits until the process is reaped
		select {
		case <-c.link.Done():
		case <-ctx.Done():
			return errors.New("the driver does not end")
		}
	}
	return nil
}

// endCell ends the cell and waits until nothing of it is left.
func (b *body) endCell(ctx context.Context) error {
	if b.cell == nil {
		return nil
	}
	end := b.cell.Kill
	if b.spec.Workspace != "" {
		end = b.cell.Close // cookies and storage are to survive (WSP-2)
	}
	if err := end(ctx); err != nil {
		return fmt.Errorf("cell: %w", err)
	}
	select {
	case <-b.cell.Done():
		return nil
	case <-ctx.Done():
		return errors.New("the cell does not end")
	}
}

// contain makes an error of a panic in some part of a browser; defer it.
func contain(err *error, doing string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic while %s a browser: %v", doing, p)
	}
}
