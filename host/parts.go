package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/child"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/egress"
	"github.com/reins-browser/reins/internal/hostdir"
)

// parts are what a host is built of besides cells. Production has one set,
// [realParts]; tests put in some that fail on cue, before or after they took
// effect.
type parts struct {
	// ready says whether children can be started at all.
	ready func() error
	// open takes ownership of the directory and begins a generation in it.
	open func(ctx context.Context, dir string) (ground, error)
	// drive starts a driver process.
	drive func(ctx context.Context, o driver.Options) (link, error)
	// door makes the egress proxy of one incarnation.
	door func(o egress.Options) (door, error)
}

// link is one driver process, the parent's end ([driver.Process]).
type link interface {
	Do(context.Context, driver.Command) (*driver.Reply, error)
	Done() <-chan struct{}
	Err() error
	Handover() driver.Handover
	Kill()

	StartCast(context.Context, driver.Cast) (cast uint64, err error)
	StopCast(context.Context) error
	AckFrame(ctx context.Context, cast, number uint64) error
	Capture(context.Context, driver.Cast) (driver.CastFrame, error)
	SetViewport(context.Context, reins.Viewport) error
}

// door is the egress proxy of one incarnation ([egress.Proxy]).
type door interface {
	Serve(net.Listener) error
	Adopt(reins.EgressPolicy, func(egress.Decision)) error
	Connections() []reins.CellConnection
	Close()
}

// ground is a generation's private directory and the ownership of it.
type ground interface {
	Generation() string
	// Artifacts is the held folder of the artifact store; not to be closed.
	Artifacts() *os.File
	// Room makes the directories of one incarnation. With a workspace its
	// profile is the named one of the project; busy when somebody has it.
	Room(ctx context.Context, project, workspace string) (room, error)
	// RemoveWorkspace removes a persistent profile for good (RES-5).
	RemoveWorkspace(ctx context.Context, project, name string) error
	// Lost is closed when the directory is no longer ours (OWN-7); Err then
	// says why.
	Lost() <-chan struct{}
	Err() error
	// Close removes the generation and gives the directory up; repeatable
	// until it succeeds.
	Close(context.Context) error
}

// room is where one incarnation's files are.
type room interface {
	Profile() string
	Downloads() *os.File // a held folder; its name is the host path
	Uploads() *os.File   // likewise
	// Close removes what is not persistent and gives the profile up;
	// repeatable until it succeeds. Nothing of the cell may be alive.
	Close(context.Context) error
}

// yard is the real ground.
type yard struct {
	*hostdir.Dir
	log *slog.Logger
}

// Room implements ground.
func (y yard) Room(ctx context.Context, project, workspace string) (_ room, err error) {
	slot, err := y.NewSlot()
	if err != nil {
		return nil, err
	}
	den := &den{slot: slot, profile: slot.Profile}
	if workspace == "" {
		return den, nil
	}
	den.space, err = y.Workspace(ctx, project, workspace)
	if err != nil {
		return nil, errors.Join(err, slot.Remove(context.WithoutCancel(ctx)))
	}
	den.profile = den.space.Profile
	for _, note := range den.space.Notes {
		y.log.Warn(note)
	}
	return den, nil
}

// den is the real room: a slot and, with a persistent profile, its workspace.
type den struct {
	slot    *hostdir.Slot
	space   *hostdir.Workspace
	profile string
}

func (d *den) Profile() string     { return d.profile }
func (d *den) Downloads() *os.File { return d.slot.DownloadsFolder() }
func (d *den) Uploads() *os.File   { return d.slot.UploadsFolder() }

func (d *den) Close(ctx context.Context) error {
	if err := d.slot.Remove(ctx); err != nil {
		return err
	}
	if d.space == nil {
		return nil
	}
	return d.space.Close()
}

func realParts(limits reins.Limits, log *slog.Logger) parts {
	return parts{
		ready: func() error { return child.Listed(driver.Role) },
		open: func(ctx context.Context, dir string) (ground, error) {
			d, err := hostdir.Open(ctx, dir, hostdir.Options{WorkspaceBytes: limits.WorkspaceBytes})
			if err != nil {
				return nil, err
			}
			for _, note := range d.Notes() {
				log.Warn(note)
			}
			return yard{d, log}, nil
		},
		drive: func(ctx context.Context, o driver.Options) (link, error) {
			p, err := driver.Start(ctx, o)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		door: func(o egress.Options) (door, error) {
			p, err := egress.New(o)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}
