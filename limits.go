package reins

import (
	"strconv"
	"time"
)

// Limits are the bounds of a runtime. A zero field means the default of
// [LimitTable], a nil one where zero is a value too; outside its range the constructor fails with invalid_input
// naming the option.
type Limits struct {
	Resources               int           `json:"resources,omitempty"`
	Capabilities            int           `json:"capabilities,omitempty"`
	CapabilitiesPerResource int           `json:"capabilities_per_resource,omitempty"`
	CapabilityLife          time.Duration `json:"capability_life,omitempty"`
	CapabilityLifeMax       time.Duration `json:"capability_life_max,omitempty"`
	Queue                   int           `json:"queue,omitempty"`
	QueuePerTab             int           `json:"queue_per_tab,omitempty"`
	TabsAtOnce              int           `json:"tabs_at_once,omitempty"`
	Tabs                    int           `json:"tabs,omitempty"`
	AuthorizeTimeout        time.Duration `json:"authorize_timeout,omitempty"`
	GateTimeout             time.Duration `json:"gate_timeout,omitempty"`
	StartTimeout            time.Duration `json:"start_timeout,omitempty"`
	ConnectTimeout          time.Duration `json:"connect_timeout,omitempty"`
	CloseGrace              time.Duration `json:"close_grace,omitempty"`
	CleanUp                 time.Duration `json:"clean_up,omitempty"`
	Message                 int64         `json:"message,omitempty"`
	DriverMemory            int64         `json:"driver_memory,omitempty"`
	ProcessMemory           int64         `json:"process_memory,omitempty"`
	CellMemory              int64         `json:"cell_memory,omitempty"`
	CellTasks               int           `json:"cell_tasks,omitempty"`
	CellDisk                int64         `json:"cell_disk,omitempty"`
	WorkspaceBytes          int64         `json:"workspace_bytes,omitempty"`
	SharedMemory            int64         `json:"shared_memory,omitempty"`
	TempSpace               int64         `json:"temp_space,omitempty"`
	EgressConnections       int           `json:"egress_connections,omitempty"`
	EgressHeader            int           `json:"egress_header,omitempty"`
	EgressDial              time.Duration `json:"egress_dial,omitempty"`
	EgressIdle              time.Duration `json:"egress_idle,omitempty"`
	EgressLife              time.Duration `json:"egress_life,omitempty"`
	ArtifactsPerResource    int           `json:"artifacts_per_resource,omitempty"`
	ArtifactsPerProject     int           `json:"artifacts_per_project,omitempty"`
	Artifacts               int           `json:"artifacts,omitempty"`
	ArtifactBytesResource   int64         `json:"artifact_bytes_per_resource,omitempty"`
	ArtifactBytesProject    int64         `json:"artifact_bytes_per_project,omitempty"`
	ArtifactBytes           int64         `json:"artifact_bytes,omitempty"`
	FrameWindow             int           `json:"frame_window,omitempty"`
	FrameLife               time.Duration `json:"frame_life,omitempty"`
	FrameBytes              int           `json:"frame_bytes,omitempty"`
	FrameQuality            *int          `json:"frame_quality,omitempty"` // nil is the default
	FrameWidth              int           `json:"frame_width,omitempty"`
	FrameHeight             int           `json:"frame_height,omitempty"`
	FrameEvery              int           `json:"frame_every,omitempty"`
	FrameFirst              time.Duration `json:"frame_first,omitempty"`
}

// LimitInfo is one row of the table of limits. Durations are in nanoseconds.
type LimitInfo struct {
	Name    string // the JSON name of the option
	Rule    string // the rule it comes from
	Unit    string // "", "bytes" or "duration"
	Default int64
	Min     int64
	Max     int64
	What    string
	at      func(*Limits) any
}

const (
	kib = int64(1) << 10
	mib = kib << 10
	gib = mib << 10
)

func row[T any](name, rule, unit string, def, lo, hi int64, what string, at func(*Limits) *T) LimitInfo {
	return LimitInfo{name, rule, unit, def, lo, hi, what, func(l *Limits) any { return at(l) }}
}

func span(name, rule string, def, lo, hi time.Duration, what string, at func(*Limits) *time.Duration) LimitInfo {
	return row(name, rule, "duration", int64(def), int64(lo), int64(hi), what, at)
}

// LimitTable returns every limit with its default and range, in a fixed order.
func LimitTable() []LimitInfo {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	return []LimitInfo{
		row("resources", "RES-6", "", 4096, 1, 65536, "registrations and tombstones together", func(l *Limits) *int { return &l.Resources }),
		row("capabilities", "CAP-5", "", 1024, 1, 65536, "capabilities in the runtime", func(l *Limits) *int { return &l.Capabilities }),
		row("capabilities_per_resource", "CAP-5", "", 64, 1, 1024, "capabilities on one resource", func(l *Limits) *int { return &l.CapabilitiesPerResource }),
		span("capability_life", "CAP-5", 5*m, s, 24*h, "life of a capability when none is asked for", func(l *Limits) *time.Duration { return &l.CapabilityLife }),
		span("capability_life_max", "CAP-5", h, s, 24*h, "longest life that may be asked for", func(l *Limits) *time.Duration { return &l.CapabilityLifeMax }),
		row("queue", "OPS-2", "", 128, 1, 1024, "queued operations of one lease", func(l *Limits) *int { return &l.Queue }),
		row("queue_per_tab", "SCH-5", "", 1000, 1, 100_000, "queued operations of a resource in per-tab mode", func(l *Limits) *int { return &l.QueuePerTab }),
		row("tabs_at_once", "SCH-2", "", 8, 1, 64, "tabs that act at the same time in per-tab mode", func(l *Limits) *int { return &l.TabsAtOnce }),
		row("tabs", "TAB-4", "", 32, 1, 256, "open tabs of one browser", func(l *Limits) *int { return &l.Tabs }),
		span("authorize_timeout", "HK-1", 10*s, 100*ms, 120*s, "answer of the Authorize hook", func(l *Limits) *time.Duration { return &l.AuthorizeTimeout }),
		span("gate_timeout", "GATE-1", 10*s, 100*ms, 120*s, "answer of the BeforeOperation hook", func(l *Limits) *time.Duration { return &l.GateTimeout }),
		span("start_timeout", "RDY-3", 60*s, s, 10*m, "start of a browser until it is usable", func(l *Limits) *time.Duration { return &l.StartTimeout }),
		span("connect_timeout", "DRV-4", 30*s, ms, (1<<31-1)*ms, "connection of a driver", func(l *Limits) *time.Duration { return &l.ConnectTimeout }),
		span("close_grace", "CELL-6", 3*s, 100*ms, 30*s, "clean exit of a browser before it is killed", func(l *Limits) *time.Duration { return &l.CloseGrace }),
		span("clean_up", "LIFE-2", 30*s, 100*ms, 120*s, "clean-up when the runtime stops", func(l *Limits) *time.Duration { return &l.CleanUp }),
		row("message", "DRV-3", "bytes", 64*mib, mib, 256*mib, "one DevTools message", func(l *Limits) *int64 { return &l.Message }),
		row("driver_memory", "DRV-3", "bytes", 512*mib, 64*mib, 8*gib, "memory of a driver", func(l *Limits) *int64 { return &l.DriverMemory }),
		row("process_memory", "CELL-7", "bytes", 4*gib, 512*mib, 64*gib, "data size of each process of a browser", func(l *Limits) *int64 { return &l.ProcessMemory }),
		row("cell_memory", "CELL-7", "bytes", 4*gib, 512*mib, 256*gib, "memory of a whole browser", func(l *Limits) *int64 { return &l.CellMemory }),
		row("cell_tasks", "CELL-7", "", 1024, 200, 32768, "processes and threads of a browser", func(l *Limits) *int { return &l.CellTasks }),
		row("cell_disk", "CELL-7", "bytes", 2*gib, 64*mib, 256*gib, "profile and downloads of a browser", func(l *Limits) *int64 { return &l.CellDisk }),
		row("workspace_bytes", "WSP-2", "bytes", 2*gib, 64*mib, 256*gib, "a persistent profile", func(l *Limits) *int64 { return &l.WorkspaceBytes }),
		row("shared_memory", "CELL-7", "bytes", 512*mib, 64*mib, 16*gib, "shared memory of a browser", func(l *Limits) *int64 { return &l.SharedMemory }),
		row("temp_space", "CELL-7", "bytes", 512*mib, 16*mib, 16*gib, "temporary files of a browser", func(l *Limits) *int64 { return &l.TempSpace }),
		row("egress_connections", "EGR-7", "", 256, 1, 4096, "open connections of a browser", func(l *Limits) *int { return &l.EgressConnections }),
		row("egress_header", "EGR-7", "bytes", 64*kib, kib, mib, "header of one request", func(l *Limits) *int { return &l.EgressHeader }),
		span("egress_dial", "EGR-7", 10*s, 100*ms, 2*m, "name look-up and connection", func(l *Limits) *time.Duration { return &l.EgressDial }),
		span("egress_idle", "EGR-7", 5*m, s, 24*h, "a connection without traffic", func(l *Limits) *time.Duration { return &l.EgressIdle }),
		span("egress_life", "EGR-7", 24*h, s, 30*24*h, "life of one connection", func(l *Limits) *time.Duration { return &l.EgressLife }),
		row("artifacts_per_resource", "ART-3", "", 256, 1, 65536, "artifacts of one resource", func(l *Limits) *int { return &l.ArtifactsPerResource }),
		row("artifacts_per_project", "ART-3", "", 4096, 1, 1<<20, "artifacts of one project", func(l *Limits) *int { return &l.ArtifactsPerProject }),
		row("artifacts", "ART-3", "", 16384, 1, 1<<20, "artifacts in the runtime", func(l *Limits) *int { return &l.Artifacts }),
		row("artifact_bytes_per_resource", "ART-3", "bytes", 256*mib, kib, 1<<40, "stored bytes of one resource", func(l *Limits) *int64 { return &l.ArtifactBytesResource }),
		row("artifact_bytes_per_project", "ART-3", "bytes", gib, kib, 1<<40, "stored bytes of one project", func(l *Limits) *int64 { return &l.ArtifactBytesProject }),
		row("artifact_bytes", "ART-3", "bytes", 4*gib, kib, 1<<42, "stored bytes in the runtime", func(l *Limits) *int64 { return &l.ArtifactBytes }),
		row("frame_window", "FRM-3", "", 4, 1, 32, "pictures of the live view that a viewer has not acknowledged", func(l *Limits) *int { return &l.FrameWindow }),
		span("frame_life", "FRM-5", 10*s, 100*ms, 60*s, "life of an acknowledgement of a picture", func(l *Limits) *time.Duration { return &l.FrameLife }),
		row("frame_bytes", "FRM-6", "bytes", 4*mib, 64*kib, 16*mib, "one picture of the live view", func(l *Limits) *int { return &l.FrameBytes }),
		row("frame_quality", "FRM-7", "", 70, 0, 100, "quality of the pictures of the live view", func(l *Limits) **int { return &l.FrameQuality }),
		row("frame_width", "FRM-7", "", 2560, 1, 4096, "width of the pictures of the live view, pixels", func(l *Limits) *int { return &l.FrameWidth }),
		row("frame_height", "FRM-7", "", 1600, 1, 4096, "height of the pictures of the live view, pixels", func(l *Limits) *int { return &l.FrameHeight }),
		row("frame_every", "FRM-7", "", 1, 1, 60, "of so many pictures that a page paints the live view gets one", func(l *Limits) *int { return &l.FrameEvery }),
		span("frame_first", "FRM-7", 5*s, s, 60*s, "first picture after the live view was started", func(l *Limits) *time.Duration { return &l.FrameFirst }),
	}
}

// WithDefaults fills zero fields from the table and checks the others.
func (l Limits) WithDefaults() (Limits, error) {
	for _, info := range LimitTable() {
		v, given := info.get(&l)
		switch {
		case !given:
			info.set(&l, info.Default)
		case v < info.Min || v > info.Max:
			return l, Errorf(CodeInvalidInput, "limit %s is %s; use %s to %s", info.Name, info.format(v), info.format(info.Min), info.format(info.Max))
		}
	}
	if l.CapabilityLife > l.CapabilityLifeMax {
		return l, Errorf(CodeInvalidInput, "limit capability_life is %s, above capability_life_max of %s", l.CapabilityLife, l.CapabilityLifeMax)
	}
	if n := l.FrameWidth * l.FrameHeight; n > MaxPixels {
		return l, Errorf(CodeInvalidInput, "limits frame_width and frame_height make pictures of %d pixels; use at most %d", n, MaxPixels)
	}
	return l, nil
}

// get is the value of a limit, and whether one is given.
func (i LimitInfo) get(l *Limits) (v int64, given bool) {
	switch p := i.at(l).(type) {
	case *int:
		v = int64(*p)
	case *int64:
		v = *p
	case *time.Duration:
		v = int64(*p)
	case **int: // one that may be zero
		if *p == nil {
			return 0, false
		}
		return int64(**p), true
	}
	return v, v != 0
}

func (i LimitInfo) set(l *Limits, v int64) {
	switch p := i.at(l).(type) {
	case *int:
		*p = int(v)
	case *int64:
		*p = v
	case *time.Duration:
		*p = time.Duration(v)
	case **int:
		*p = new(int(v))
	}
}

// format writes v in the row's unit, for a sentence.
func (i LimitInfo) format(v int64) string {
	switch i.Unit {
	case "duration":
		return time.Duration(v).String()
	case "bytes":
		return strconv.FormatInt(v, 10) + " bytes"
	}
	return strconv.FormatInt(v, 10)
}
