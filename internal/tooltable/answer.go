package tooltable

import (
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/reins-browser/reins"
)

// Answer is what a client learns of a result: the structured content, and what
// the text is made of, so that nothing that matters is in one of them only. It
// leaves out the result's Meta, which is for hosts (LSE-7).
type Answer struct {
	Did     string             `json:"did,omitempty"`
	Page    *page              `json:"page,omitempty"`
	Changes *changes           `json:"changes,omitempty"`
	Tabs    []tab              `json:"tabs,omitempty"`
	Human   *reins.HumanAnswer `json:"human,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
	Content string             `json:"page_content,omitempty"` // a snapshot; named so that it says what it is
	Whole   bool               `json:"whole,omitempty"`        // Content is not a difference, though one was asked for
	Omitted int                `json:"omitted,omitempty"`
	Cursor  string             `json:"cursor,omitempty"`

	difference bool   // Content is what changed
	stays      bool   // the page is where the client left it, so its text need not say where
	form       string // the language of Content, when it is no outline
	what       string // what Content is then
	picture    *reins.ScreenshotResult
	paper      *reins.Artifact
}

// Picture is the screenshot that the answer is about, or nil.
func (a *Answer) Picture() *reins.ScreenshotResult { return a.picture }

// Stored is the artifact that the answer is, or nil.
func (a *Answer) Stored() *reins.Artifact {
	if a.picture != nil {
		return &a.picture.Artifact
	}
	return a.paper
}

// page is where the tab acted on is now.
type page struct {
	URL      string      `json:"url"`
	Title    string      `json:"title"`
	Status   int         `json:"status,omitempty"`
	Tab      reins.TabID `json:"tab,omitempty"`
	Selected reins.TabID `json:"selected,omitempty"` // when it is another
	Loading  bool        `json:"loading,omitempty"`
	Crashed  bool        `json:"crashed,omitempty"`
}

// tab is an open tab, without what a page result has of its own.
type tab struct {
	ID       reins.TabID `json:"tab"`
	URL      string      `json:"url"`
	Title    string      `json:"title"`
	Selected bool        `json:"selected,omitempty"`
	Loading  bool        `json:"loading,omitempty"`
	Crashed  bool        `json:"crashed,omitempty"`
}

// changes is what an action set off; an empty one is left out.
type changes struct {
	Navigated     bool              `json:"navigated,omitempty"`
	Within        bool              `json:"within,omitempty"`
	OpenedTabs    []tab             `json:"opened_tabs,omitempty"`
	ClosedTabs    []reins.TabID     `json:"closed_tabs,omitempty"`
	Dialog        *reins.Dialog     `json:"dialog,omitempty"`
	FileChooser   *reins.FileChoice `json:"file_chooser,omitempty"`
	Downloads     []download        `json:"downloads,omitempty"`
	ConsoleErrors int               `json:"console_errors,omitempty"`
	Focus         *focus            `json:"focus,omitempty"`
	Value         string            `json:"value,omitempty"`
	Unsettled     bool              `json:"unsettled,omitempty"`
	Pending       int               `json:"pending_requests,omitempty"`
}

type focus struct {
	Role string    `json:"role"`
	Name string    `json:"name"`
	Ref  reins.Ref `json:"ref,omitempty"`
}

type download struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Reason    string `json:"reason,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Size      int64  `json:"size,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	Artifact  string `json:"artifact,omitempty"`
	URI       string `json:"uri,omitempty"`
}

// newAnswer takes from the result what concerns a client.
func newAnswer(a reins.Action, res *reins.Result) *Answer {
	out := &Answer{Did: did(a, res), Notes: res.Notes, Human: res.Human, picture: res.Screenshot, paper: res.Document}
	out.Page = newPage(res)
	if c := res.Changes; c != nil {
		out.Changes = newChanges(a, c)
		out.stays = acts(a.Verb()) && !c.Navigated && c.URL == "" && c.Title == "" && out.Page != nil && out.Page.Tab != ""
	}
	if n := res.Navigation; n != nil && n.Download != nil {
		if out.Changes == nil {
			out.Changes = &changes{}
		}
		if d := newDownload(*n.Download); !slices.Contains(out.Changes.Downloads, d) {
			out.Changes.Downloads = append([]download{d}, out.Changes.Downloads...)
		}
	}
	for _, t := range res.Tabs {
		out.Tabs = append(out.Tabs, newTab(t))
	}
	if res.Snapshot != nil {
		out.read(res.Snapshot, wantsChanges(a))
	}
	out.passage(res)
	return out
}

func wantsChanges(a reins.Action) bool {
	s, ok := a.(reins.Snapshot)
	return !ok || s.Changes
}

// read takes in a snapshot.
func (a *Answer) read(s *reins.SnapshotResult, wantChanges bool) {
	a.Content, a.difference = s.Text, s.Changes
	a.Whole = wantChanges && !s.Changes
	a.Omitted, a.Cursor = s.Omitted, s.Cursor
	if a.Page != nil && s.Loading {
		a.Page.Loading = true
	}
}

func newPage(res *reins.Result) *page {
	p := &page{}
	if t := res.Tab; t != nil {
		*p = page{URL: t.URL, Title: t.Title, Tab: t.ID, Loading: t.Loading, Crashed: t.Crashed}
		if res.Selected != t.ID {
			p.Selected = res.Selected
		}
	}
	if n := res.Navigation; n != nil {
		p.URL, p.Title, p.Status = n.URL, n.Title, n.Status
		p.Loading = p.Loading || n.Loading
	}
	if c := res.Changes; c != nil {
		if c.URL != "" {
			p.URL = c.URL
		}
		if c.Title != "" {
			p.Title = c.Title
		}
	}
	if *p == (page{}) {
		return nil
	}
	p.URL, p.Title = Bounded(p.URL), Bounded(p.Title)
	return p
}

func newTab(t reins.Tab) tab {
	return tab{ID: t.ID, URL: Bounded(t.URL), Title: Bounded(t.Title), Selected: t.Selected, Loading: t.Loading, Crashed: t.Crashed}
}

// acts reports whether the verb is an input to the page, which settles.
func acts(v reins.Verb) bool {
	switch v {
	case reins.VerbClick, reins.VerbFill, reins.VerbPress, reins.VerbType, reins.VerbPressKey,
		reins.VerbHover, reins.VerbDrag, reins.VerbScroll:
		return true
	}
	return false
}

// newChanges leaves out what says nothing about this action: a navigation leads
// to another page, what does not act does not settle, and the element acted on
// has the focus.
func newChanges(a reins.Action, c *reins.Changes) *changes {
	out := &changes{
		Navigated: c.Navigated, Within: c.Within, ClosedTabs: c.ClosedTabs, Dialog: c.Dialog, FileChooser: c.FileChooser,
		ConsoleErrors: c.ConsoleErrors, Value: Bounded(c.Value),
	}
	switch v := a.Verb(); {
	case v == reins.VerbNavigate || v == reins.VerbOpenTab:
		out.Navigated, out.Within = false, false
	case acts(v):
		out.Unsettled, out.Pending = !c.Settled, c.Pending
	}
	for _, t := range c.OpenedTabs {
		out.OpenedTabs = append(out.OpenedTabs, newTab(t))
	}
	for _, d := range c.Downloads {
		out.Downloads = append(out.Downloads, newDownload(d))
	}
	if _, ref := a.Target(); c.Focus != nil && (ref == "" || c.FocusRef != ref) {
		out.Focus = &focus{Role: c.Focus.Role, Name: Bounded(c.Focus.Name), Ref: c.FocusRef}
	}
	if reflect.ValueOf(*out).IsZero() {
		return nil
	}
	return out
}

func newDownload(d reins.Download) download {
	out := download{Name: Bounded(d.Name), State: d.State, Reason: d.Reason}
	if a := d.Artifact; a != nil {
		out.MediaType, out.Size, out.SHA256, out.Artifact, out.URI = a.MediaType, a.Size, a.SHA256, a.ID, a.URI()
	}
	return out
}

// Bounded cuts a page-made string at the bound of results (OVW-7).
func Bounded(s string) string {
	if utf8.RuneCountInString(s) <= reins.MaxPageString {
		return s
	}
	runes := []rune(s)
	return string(runes[:reins.MaxPageString-1]) + "…"
}
