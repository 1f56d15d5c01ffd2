package driver

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	protobrowser "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
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
	total    int64  // bytes it will have; 0 is unknown
	lease    string // whose action began it
	holders  int    // actions under way that will report it
	reported bool   // as finished, in a reply or an event
}

func (d *download) describe() reins.Download {
	return reins.Download{Name: d.name, URL: bounded(withoutUser(d.url)), State: d.state, Reason: d.reason}
}

// saved is what the parent takes, once the download is complete.
func (d *download) saved() (Saved, bool) {
	return Saved{GUID: d.guid, Name: d.name, URL: bounded(withoutUser(d.url)), Size: d.size}, d.state == downloadCompleted
}

const (
	downloadRunning   = "in_progress"
	downloadCompleted = "completed"
	downloadCancelled = "cancelled"
)

// onDownloadEvent follows the downloads (ACT-10).
func (b *browser) onDownloadEvent(e cdp.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.Method {
	case protobrowser.DownloadWillBegin.Method:
		if v, ok := cdp.Is(e, protobrowser.DownloadWillBegin); ok {
			b.downloadBeginsLocked(v)
		}
	case protobrowser.DownloadProgress.Method:
		if v, ok := cdp.Is(e, protobrowser.DownloadProgress); ok {
			b.downloadProgressLocked(v)
		}
	default:
		return
	}
	b.changedLocked()
}

// downloadBeginsLocked attributes a download to the action that runs on its
// tab, or, when its tab was opened for it, on the opener.
func (b *browser) downloadBeginsLocked(v protobrowser.EventDownloadWillBegin) {
	d := &download{guid: v.GUID, url: v.URL, name: safeName(v.SuggestedFilename), state: downloadRunning, tab: b.tabOfFrameLocked(v.FrameID)}
	b.downloads[d.guid] = d
	for fx := range b.effects {
		if fx.tab == nil {
			continue
		}
		of := d.tab == nil && len(b.effects) == 1 || d.tab == fx.tab || d.tab != nil && d.tab.opener == fx.tab
		if of {
			fx.downloads = append(fx.downloads, d)
			d.holders++
			d.lease = cmp.Or(d.lease, fx.lease)
		}
	}
}

func (b *browser) tabOfFrameLocked(id proto.FrameID) *tab {
	for _, t := range b.tabs {
		if t.frames[id] != nil {
			return t
		}
	}
	return nil
}

func (b *browser) downloadProgressLocked(v protobrowser.EventDownloadProgress) {
	d := b.downloads[v.GUID]
	if d == nil {
		return
	}
	if d.state != downloadRunning { // it was too large; the browser may have been done before it was told
		if v.State == protobrowser.DownloadProgressStateCompleted {
			b.discardLocked(d)
		}
		if v.State != protobrowser.DownloadProgressStateInProgress {
			delete(b.downloads, v.GUID)
		}
		return
	}
	d.size, d.total = int64(v.ReceivedBytes), int64(v.TotalBytes)
	last := true // the browser tells of it no more
	if most := b.settings.Download; most > 0 && max(v.ReceivedBytes, v.TotalBytes)+b.arrivingLocked(d) > float64(most) {
		if v.State == protobrowser.DownloadProgressStateInProgress {
			b.session.Send(protobrowser.CancelDownload.Method, protobrowser.CancelDownloadParams{GUID: v.GUID})
			last = false
		} else if v.State == protobrowser.DownloadProgressStateCompleted { // too late to cancel: the file is there
			b.discardLocked(d)
		}
		v.State, d.reason = protobrowser.DownloadProgressStateCanceled, fmt.Sprintf("it exceeds the %d bytes that downloads under way may have", most)
	}
	switch v.State {
	case protobrowser.DownloadProgressStateCompleted:
		d.state = downloadCompleted
	case protobrowser.DownloadProgressStateCanceled:
		d.state, d.reason = downloadCancelled, cmp.Or(d.reason, "the browser could not complete it")
	default:
		return
	}
	if last {
		delete(b.downloads, v.GUID)
	}
	if d.holders == 0 {
		b.tellDownloadLocked(d)
	}
}

// arrivingLocked is how much the downloads besides d have that are under way:
// together they have the room of one.
func (b *browser) arrivingLocked(d *download) float64 {
	sum := int64(0)
	for _, other := range b.downloads {
		if other != d && other.state == downloadRunning {
			sum += other.size
		}
	}
	return float64(sum)
}

// discardLocked has the parent delete a file that nobody may have.
func (b *browser) discardLocked(d *download) {
	b.emit(Event{Kind: "discarded", Saved: &Saved{GUID: d.guid, Name: d.name, URL: bounded(withoutUser(d.url)), Size: d.size}})
}

// tellDownloadLocked emits the end of a download that no action reports.
func (b *browser) tellDownloadLocked(d *download) {
	if d.reported || d.state == downloadRunning {
		return
	}
	d.reported = true
	shown := d.describe()
	e := Event{Kind: "download", Note: d.state, Lease: d.lease, Download: &shown}
	if d.tab != nil {
		e.Tab = d.tab.infoLocked()
	}
	if saved, ok := d.saved(); ok {
		e.Saved = &saved
	}
	b.emit(e)
}

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
