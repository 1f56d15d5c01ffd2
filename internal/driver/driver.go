package driver

import (
	"os"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/redact"
)

// Options start one driver process.
type Options struct {
	ToBrowser   *os.File // the parent keeps both; the driver gets copies
	FromBrowser *os.File
	Previous    Handover // what the driver before left behind; zero for the first
	Settings    Settings
	// Events is called in order, from one goroutine, until the process is
	// reaped; it must return soon.
	Events func(Event)
	// Frames is called for each frame of a screencast, in order, from one
	// goroutine, until the process is reaped; it must return at once.
	Frames func(CastFrame)
}

// Settings hold for the life of one connection.
type Settings struct {
	Connection uint64                 `json:"connection"`         // this connection's number, from 1
	Message    int64                  `json:"message"`            // bound of one DevTools message, bytes
	Memory     int64                  `json:"memory"`             // bound of the driver, bytes
	Tabs       int                    `json:"tabs"`               // TAB-4
	Downloads  string                 `json:"downloads"`          // path inside the cell
	Download   int64                  `json:"download,omitempty"` // bound of the downloads under way, bytes; 0 is none
	Navigation reins.NavigationPolicy `json:"navigation"`         // wording only; the cell's policies hold
	Width      int                    `json:"width"`              // viewport, CSS pixels, until SetViewport sets another
	Height     int                    `json:"height"`
	Scale      float64                `json:"scale"`
	Frame      int64                  `json:"frame,omitempty"` // bound of one picture of a screencast, bytes; 4 MiB when 0 (FRM-6)
	Engine     reins.Engine           `json:"engine"`
	Locale     string                 `json:"locale"`
	UserAgent  string                 `json:"user_agent,omitempty"` // empty: an ordinary Chromium's of its version
}

// Handover is what a driver tells the parent as it goes, so that the next one
// can take over (DRV-2): the IDs of its browser session and page sessions.
type Handover struct {
	Browser  string   `json:"browser,omitempty"`
	Left     []string `json:"left,omitempty"` // browser sessions of the one before, while it is being taken over
	Pages    []string `json:"pages,omitempty"`
	Selected string   `json:"selected,omitempty"` // target ID of the selected tab, which stays so
	Numbers  Numbers  `json:"numbers"`

	Viewport reins.Viewport `json:"viewport,omitzero"` // that was set; zero when none was
}

// Numbers are those of the newest tab and document that a driver has named.
// The next one's are above, so that a tab ID or ref of an earlier connection
// never means something else (TAB-2, SNAP-4).
type Numbers struct {
	Tab      int `json:"tab"`
	Document int `json:"document"`
}

// Max is the larger of each.
func (n Numbers) Max(o Numbers) Numbers {
	return Numbers{max(n.Tab, o.Tab), max(n.Document, o.Document)}
}

// Command is one action for the browser.
type Command struct {
	Action      reins.Action
	Lease       string            // whose previous snapshot "changes" compares with
	Files       map[string]string // artifact ID to path inside the cell, for a file control
	Ask         bool              // do nothing: tell where the action's secret would be typed (ACT-11)
	Into        Place             // where a secret may be typed: as Ask told it
	Secret      string            // its value
	Redact      redact.Set        // what must not be in the reply
	Credentials []Credential      // from now on, in the place of those before; nil changes nothing (NAV-5)
	Above       Numbers           // first name all there is anew, above these: it was started for nobody, who gets it knew other names (CELL-11)
	Watched     bool              // somebody looks on: an "acting" event says where it acts, before it does
}

// Credential is the header by which one origin is answered that asks for a user
// and password.
type Credential struct {
	Origin        string `json:"origin"` // "https://wiki.example", without a default port
	Authorization string `json:"authorization"`
}

// Place is where keys would land.
type Place struct {
	Origin string    `json:"origin"` // of the frame's document: "https://bank.example"; "null" when it has none
	Ref    reins.Ref `json:"ref"`    // of the element
}

// Reply is what a command came to. Result lacks what only the parent knows:
// Meta, and the artifacts for Picture and Downloads.
type Reply struct {
	Result    reins.Result `json:"result"`
	Place     *Place       `json:"place,omitempty"`     // what was asked
	Picture   *Picture     `json:"picture,omitempty"`   // of a screenshot
	Paper     *Paper       `json:"paper,omitempty"`     // of pdf
	Downloads []Saved      `json:"downloads,omitempty"` // same order as Result's, where State is completed
}

// Picture is a screenshot's bytes, and the same fit for a model when asked.
type Picture struct {
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Scaled    bool   `json:"scaled,omitempty"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"-"`
	Model     []byte `json:"-"`                    // at most 8,000 px a side and about 1 MB; empty when not asked for
	ModelType string `json:"model_type,omitempty"` // media type of Model
}

// Paper is a page printed as a PDF.
type Paper struct {
	Data []byte `json:"-"`
}

// Saved is a finished download in the cell's folder, under its GUID.
type Saved struct {
	GUID string `json:"guid"`
	Name string `json:"name"` // as the page wants it: made safe, bounded
	URL  string `json:"url"`
	Size int64  `json:"size"`
}

// Event tells the parent what happened in the browser.
type Event struct {
	Kind  string    `json:"kind"` // "tab_opened", "tab_closed", "tab_updated", "tab_selected", "page_crashed", "dialog", "dialog_closed", "download", "discarded", "acting"
	Tab   reins.Tab `json:"tab"`
	Saved *Saved    `json:"saved,omitempty"` // a download that ended after its action; for "discarded", a file to delete unread
	Note  string    `json:"note,omitempty"`

	Dialog *reins.Dialog `json:"dialog,omitempty"` // that opened

	Lease    string          `json:"lease,omitempty"`    // whose action began the download; empty when none did
	Download *reins.Download `json:"download,omitempty"` // how it ended

	// Where an action that is watched acts, in CSS pixels of its tab's viewport:
	// the element, and the point that the pointer goes to. At most one event for
	// an action; none for one that has no place.
	Box *reins.Box `json:"box,omitempty"`
	X   float64    `json:"x,omitempty"`
	Y   float64    `json:"y,omitempty"`
}
