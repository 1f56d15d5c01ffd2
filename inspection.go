package reins

import "time"

// VerbInspect looks into the cell of a browser (VIEW-6).
const VerbInspect Verb = "inspect"

// MaxInspected bounds each list of an [Inspection].
const MaxInspected = 256

// Inspect tells a person what is in the cell of the browser: its processes, its open
// connections, the files that it has downloaded. It changes nothing and starts
// nothing. The answer is [Result.Inspection].
type Inspect struct{}

// Verb implements Action.
func (Inspect) Verb() Verb { return VerbInspect }

// Target implements Action.
func (Inspect) Target() (TabID, Ref) { return "", "" }

func (Inspect) isAction() {}

// Validate implements Action.
func (Inspect) Validate() error { return nil }

// Inspection is what is in a cell (VIEW-6). Hosts and names of files are the page's
// text, bounded. Without a browser the lists are empty.
type Inspection struct {
	Incarnation uint64           `json:"incarnation"` // 0: none runs
	Processes   []CellProcess    `json:"processes"`
	Connections []CellConnection `json:"connections"` // oldest first
	Files       []CellFile       `json:"files"`       // in its download folder
	Left        int              `json:"left,omitempty"`
}

// CellProcess is one process of a cell.
type CellProcess struct {
	PID    int    `json:"pid"`    // inside of the cell
	Name   string `json:"name"`   // "init", "browser", "renderer", "gpu-process", …
	Memory int64  `json:"memory"` // bytes that nobody else holds
}

// CellConnection is one open connection at the egress door.
type CellConnection struct {
	Host  string    `json:"host"`
	Port  int       `json:"port"`
	Since time.Time `json:"since"`
	Up    int64     `json:"up"`   // bytes sent
	Down  int64     `json:"down"` // bytes received
}

// CellFile is one file in the download folder, under the name that it has there
// until it is taken into the artifacts.
type CellFile struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}
