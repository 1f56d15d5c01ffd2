package driver

import (
	"strings"
	"unicode"

	"github.com/reins-browser/reins"
)

// download is one download of the browser. browser.mu guards it.
type download struct {
	guid     string
	url      string
	name     string // safe
	state    string // as reins.Download.State
	reason   string
	size     int64
	tab      *tab
	reported bool // as finished, in a reply or an event
}

func (d *download) describe() reins.Download {
	return reins.Download{Name: d.name, URL: bounded(d.url), State: d.state, Reason: d.reason}
}

// saved is what the parent takes, once the download is complete.
func (d *download) saved() (Saved, bool) {
	return Saved{GUID: d.guid, Name: d.name, URL: bounded(d.url), Size: d.size}, d.state == downloadCompleted
}

const (
	downloadRunning   = "in_progress"
	downloadCompleted = "completed"
	downloadCancelled = "cancelled"
)

// safeName makes a name that a page proposed fit to be shown and stored: one
// path element, no control or format characters, at most 120 bytes.
func safeName(s string) string {
	s = strings.ToValidUTF8(s, "_")
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	s = strings.Map(safeRune, s)
	s = strings.Trim(s, " .")
	const most = 120
	if len(s) > most {
		ext := ""
		if i := strings.LastIndexByte(s, '.'); i > 0 && len(s)-i <= 12 {
			ext = s[i:]
		}
		s = strings.ToValidUTF8(s[:most-len(ext)], "") + ext
	}
	if s == "" {
		return "download"
	}
	return s
}

// safeRune replaces what must not be in a file's name; invisible characters go.
func safeRune(r rune) rune {
	switch {
	case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r):
		return -1
	case strings.ContainsRune(`<>:"|?*`, r):
		return '_'
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}
