package reins

import "time"

// Result is what an action returns. Fields that an action does not concern
// are empty. Text in it that came from a page is bounded and is page content.
type Result struct {
	Meta       Meta              `json:"meta"`
	Tab        *Tab              `json:"tab,omitempty"`      // acted on
	Selected   TabID             `json:"selected,omitempty"` // the selected tab now
	Navigation *NavigationResult `json:"navigation,omitempty"`
	Changes    *Changes          `json:"changes,omitempty"`
	Snapshot   *SnapshotResult   `json:"snapshot,omitempty"`
	Screenshot *ScreenshotResult `json:"screenshot,omitempty"`
	Reading    *Reading          `json:"reading,omitempty"`  // of read
	Scrolled   *Scrolled         `json:"scrolled,omitempty"` // where scroll came to
	Console    *ConsoleLog       `json:"console,omitempty"`
	Network    *NetworkLog       `json:"network,omitempty"`
	Document   *Artifact         `json:"document,omitempty"`  // of pdf
	Control    *Control          `json:"control,omitempty"`   // of people's control verbs
	Viewport   *Viewport         `json:"viewport,omitempty"`  // of set_viewport
	Clipboard  string            `json:"clipboard,omitempty"` // of copy and cut
	Inspection *Inspection       `json:"inspection,omitempty"`
	Human      *HumanAnswer      `json:"human,omitempty"` // of request_human
	Tabs       []Tab             `json:"tabs,omitempty"`
	Artifacts  []Artifact        `json:"artifacts,omitempty"`
	Target     *Target           `json:"target,omitempty"` // what was acted on
	Data       []byte            `json:"data,omitempty"`   // a chunk of read_artifact
	Notes      []string          `json:"notes,omitempty"`  // plain sentences worth knowing
}

// Meta says under what and when a result was made (LSE-7). It is for hosts
// and audit, not for the text an agent reads.
type Meta struct {
	Operation    string        `json:"operation"`
	CapabilityID string        `json:"capability"`
	LeaseID      string        `json:"lease"`
	Incarnation  uint64        `json:"incarnation,omitempty"`
	Connection   uint64        `json:"connection,omitempty"`
	Reconnected  bool          `json:"reconnected,omitempty"` // the driver was replaced: old refs and tab IDs are gone
	Started      time.Time     `json:"started"`
	Duration     time.Duration `json:"duration_ns"`
}

// Tab is an open tab.
type Tab struct {
	ID       TabID  `json:"tab"`
	URL      string `json:"url"`
	Title    string `json:"title"`
	Opener   TabID  `json:"opener,omitempty"`
	Selected bool   `json:"selected,omitempty"`
	Loading  bool   `json:"loading,omitempty"`
	Crashed  bool   `json:"crashed,omitempty"`
}

// NavigationResult is where a navigation ended (NAV-1).
type NavigationResult struct {
	URL      string    `json:"url"`
	Title    string    `json:"title"`
	Status   int       `json:"status,omitempty"` // HTTP; 0 when there was none
	Loading  bool      `json:"loading,omitempty"`
	Waited   bool      `json:"waited"` // the wait condition was met
	Download *Download `json:"download,omitempty"`
}

// Changes says what an action set off (ACT-7).
type Changes struct {
	Navigated     bool        `json:"navigated,omitempty"` // another document or address
	Within        bool        `json:"within,omitempty"`    // only the address: the document and its refs live on
	URL           string      `json:"url,omitempty"`       // when it changed
	Title         string      `json:"title,omitempty"`     // when it changed
	OpenedTabs    []Tab       `json:"opened_tabs,omitempty"`
	ClosedTabs    []TabID     `json:"closed_tabs,omitempty"`
	Dialog        *Dialog     `json:"dialog,omitempty"`
	FileChooser   *FileChoice `json:"file_chooser,omitempty"`
	Downloads     []Download  `json:"downloads,omitempty"`
	ConsoleErrors int         `json:"console_errors,omitempty"`
	Focus         *Target     `json:"focus,omitempty"`    // where the focus went
	FocusRef      Ref         `json:"focusRef,omitempty"` // when it has one
	Value         string      `json:"value,omitempty"`    // what a filled control holds now, as a snapshot shows it
	Settled       bool        `json:"settled"`            // false: the bound passed first
	Pending       int         `json:"pending,omitempty"`  // requests still open when it passed
}

// Dialog is an open JavaScript dialog (SNAP-8).
type Dialog struct {
	Kind    string `json:"kind"` // "alert", "confirm", "prompt", "beforeunload"
	Message string `json:"message"`
	Default string `json:"default,omitempty"`
}

// FileChoice is an open file chooser.
type FileChoice struct {
	Ref      Ref  `json:"ref,omitempty"`
	Multiple bool `json:"multiple,omitempty"`
}

// Download is a file that a page sent.
type Download struct {
	Name     string    `json:"name"` // made safe
	URL      string    `json:"url,omitempty"`
	State    string    `json:"state"` // "completed", "in_progress", "cancelled"
	Reason   string    `json:"reason,omitempty"`
	Artifact *Artifact `json:"artifact,omitempty"`
}

// SnapshotResult is the outline of a page or a part of it.
type SnapshotResult struct {
	Text     string `json:"text"`
	Elements int    `json:"elements"`         // in the whole outline
	Omitted  int    `json:"omitted"`          // left out by the byte budget
	Cursor   string `json:"cursor,omitempty"` // goes on with what was left out
	Changes  bool   `json:"changes"`          // Text is a difference, not the whole
	Loading  bool   `json:"loading"`
}

// ScreenshotResult is a stored picture and, when asked for, its bytes.
type ScreenshotResult struct {
	Artifact  Artifact `json:"artifact"`
	Width     int      `json:"width"`
	Height    int      `json:"height"`
	Scaled    bool     `json:"scaled,omitempty"` // smaller than the page to fit a bound
	Image     []byte   `json:"image,omitempty"`
	MediaType string   `json:"media_type,omitempty"` // of Image
}

// Artifact describes stored bytes (ART-1).
type Artifact struct {
	ID        string    `json:"artifact"`
	Project   string    `json:"project"`
	Resource  string    `json:"resource"`
	Kind      string    `json:"kind"` // "screenshot", "download", "upload", "pdf"
	MediaType string    `json:"media_type"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"` // hex
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	LeaseID   string    `json:"lease,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Name      string    `json:"name"` // for display only
}

// URI is the name of the artifact as an MCP resource (ART-7).
func (a Artifact) URI() string {
	return "reins://" + a.Project + "/" + a.Resource + "/artifacts/" + a.ID
}

// Reading is the content of a page, or a part of it, as Markdown.
type Reading struct {
	Markdown string `json:"markdown"`
	Whole    int    `json:"whole"`            // bytes of the whole text
	Left     int    `json:"left,omitempty"`   // bytes that the budget left out
	Cursor   string `json:"cursor,omitempty"` // goes on exactly where Markdown stops
}

// Scrolled is where a container stands after it was scrolled, in CSS pixels.
type Scrolled struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	MaxX float64 `json:"max_x"`
	MaxY float64 `json:"max_y"`
}

// ConsoleLog is what a page wrote to its console, oldest first.
type ConsoleLog struct {
	Messages []ConsoleMessage `json:"messages"`
	Dropped  int              `json:"dropped,omitempty"` // that were not kept until this look
}

// ConsoleMessage is one message, or several of the same in a row.
type ConsoleMessage struct {
	Level string `json:"level"` // "error", "warning", "info", "debug"
	Text  string `json:"text"`
	URL   string `json:"url,omitempty"` // of the script
	Line  int    `json:"line,omitempty"`
	Count int    `json:"count,omitempty"` // when it is more than one
}

// NetworkLog is the requests of a page, oldest first.
type NetworkLog struct {
	Requests []Request `json:"requests"`
	Dropped  int       `json:"dropped,omitempty"` // that were not kept until this look
}

// Request is one request of a page.
type Request struct {
	Method   string   `json:"method"`
	URL      string   `json:"url"`
	Type     string   `json:"type"`                  // "document", "fetch", "script", "image", …
	Status   int      `json:"status,omitempty"`      // HTTP; 0 when there is none yet
	Size     int64    `json:"size,omitempty"`        // bytes over the network
	Duration Duration `json:"duration_ms,omitempty"` // until it ended
	Cached   bool     `json:"cached,omitempty"`
	Open     bool     `json:"open,omitempty"`    // it has not ended
	Failure  string   `json:"failure,omitempty"` // why it failed, in plain words
}
