// Package cell says what a sealed box for one browser promises. Backends
// (cell/process) implement it; cell/celltest is the suite each of them passes.
//
// A cell runs one Chromium with its own sandbox on and gives the parent exactly
// its doors, as descriptors: the two ends of the DevTools pipe and the listener
// that everything the browser asks of a network arrives at. Nothing else leads
// in or out. The parent keeps the pipe ends for the life of the cell, so that
// a driver may die without the browser noticing.
//
// A cell ends by [Cell.Close] (the browser flushes and exits), by [Cell.Kill],
// by the browser's own death, or by the parent's; whichever it is, no process
// of it is left one second later. Done is closed when everything is reaped.
//
// All that comes out of a cell is hostile and is treated so by its users.
package cell

import (
	"context"
	"net"
	"os"

	"github.com/reins-browser/reins"
)

// Where a cell's directories appear inside it, for any backend.
const (
	ProfilePath   = "/cell/profile"
	DownloadsPath = "/cell/downloads"
	UploadsPath   = "/cell/uploads"
)

// Backend starts cells.
type Backend interface {
	// Name is the backend as a spec names it.
	Name() reins.Backend
	// Check tests what this host can do, without leaving anything behind.
	Check(context.Context) []Finding
	// Start brings a cell up: Chromium executed, doors handed out. It fails
	// with unsafe_host when the host cannot hold a rule, with startup_failed
	// when the browser did not come up, and leaves nothing behind either way.
	Start(context.Context, Spec) (Cell, error)
}

// Finding is the result of one check of the host. A finding that is not OK and
// not Optional keeps browsers from starting.
type Finding struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Optional bool   `json:"optional,omitempty"`
	Detail   string `json:"detail"`
	Remedy   string `json:"remedy,omitempty"`
}

// Spec says what to start. The directories exist, are the caller's and
// owner-only; the caller removes them.
type Spec struct {
	Key         reins.ResourceKey // for errors only; zero for a cell that nobody owns yet
	Incarnation uint64            // likewise
	Engine      reins.Engine
	Desktop     bool
	WebGL       bool
	Locale      string // BCP 47
	TimeZone    string // IANA
	Width       int    // of the first window, CSS pixels
	Height      int
	Profile     string // host path; the browser's user data directory
	Downloads   string // host path; where the browser saves
	Uploads     string // host path; read-only inside
	Navigation  reins.NavigationPolicy
	Limits      reins.Limits // complete
}

// Cell is one running box.
type Cell interface {
	// Doors are the same for the cell's life and closed with it.
	Doors() Doors
	// Facts are what readiness tells: "sandbox", "limits", "egress", ….
	Facts() map[string]string
	// Verify reads from the kernel that the browser's processes are confined
	// (CELL-4); call it once a page exists. A process that is not ends the
	// cell and is unsafe_host.
	Verify(context.Context) error
	// Processes lists those of the cell, by their numbers inside, with names such
	// as "init", "browser" and "renderer". It only reads.
	Processes() ([]reins.CellProcess, error)
	// Close lets the browser flush and exit, kills after the grace of the
	// limits, and returns when nothing is left. Idempotent.
	Close(context.Context) error
	// Kill ends everything at once and returns when nothing is left.
	Kill(context.Context) error
	// Done is closed when no process of the cell is left.
	Done() <-chan struct{}
	// Err says, once Done is closed, why the cell ended: nil after Close or
	// Kill, else browser_ended with the last lines of its error output. A browser
	// that can start no page any more is ended so by the backend.
	Err() error
}

// Doors are a cell's only ways in and out.
type Doors struct {
	ToBrowser   *os.File     // DevTools commands, NUL-terminated
	FromBrowser *os.File     // DevTools replies and events, NUL-terminated
	Egress      net.Listener // accepts inside the cell's own network
}
