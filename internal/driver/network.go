package driver

import (
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// traffic is an entry of the network log: one request.
type traffic struct {
	reins.Request
	session string
	loader  string  // of the document it is for
	habit   string  // what it has in common with others of its kind
	began   int     // by the journal's clock
	ended   int     // 0 while it is open
	sent    float64 // seconds of the browser's clock
	answer  time.Time
}

func (r *traffic) when() int { return r.began }

// networkLog answers the verb network.
func (b *browser) networkLog(x *action, a reins.Network) error {
	j := &x.tab.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	since := j.sinceLocked(x.cmd.Lease, string(a.Verb()), a.All, j.page.network)
	out := &reins.NetworkLog{Requests: []reins.Request{}}
	for _, r := range j.network.entries {
		if r.began <= since && (r.ended <= since || a.All) {
			continue
		}
		if a.Failed && r.Failure == "" && r.Status < 400 || a.Match != "" && !strings.Contains(r.URL, a.Match) {
			continue
		}
		one := r.Request
		one.Open = r.ended == 0
		out.Requests = append(out.Requests, one)
	}
	n := len(out.Requests)
	fit := fitting(n, func(i int) int { return len(out.Requests[i].URL) + len(out.Requests[i].Failure) })
	out.Requests, out.Dropped = out.Requests[n-fit:], n-fit
	if out.Dropped > 0 {
		x.note("%d older requests did not fit; narrow with match or failed", out.Dropped)
	}
	if j.network.dropped > since {
		x.note("of more than %d requests the oldest were not kept", keptEntries)
	}
	x.reply.Result.Network = out
	return nil
}

// networkLocked notes an event of the network; true when it was one.
func (j *journal) networkLocked(e cdp.Event) bool {
	switch e.Method {
	case network.RequestWillBeSent.Method:
		j.sentLocked(e)
	case network.RequestServedFromCache.Method, network.ResponseReceived.Method,
		network.LoadingFinished.Method, network.LoadingFailed.Method:
		j.followLocked(e)
	case network.WebSocketCreated.Method, network.WebSocketHandshakeResponseReceived.Method,
		network.WebSocketFrameError.Method, network.WebSocketClosed.Method:
		j.socketLocked(e)
	default:
		return false
	}
	return true
}

// answered is the part of a response that is told of.
type answered struct {
	Status  int               `json:"status"`
	Mime    string            `json:"mimeType"`
	Headers map[string]string `json:"headers"`
	Disk    bool              `json:"fromDiskCache"`
}

// sentLocked notes a request. A redirect ends the one before under the same ID.
func (j *journal) sentLocked(e cdp.Event) {
	var v struct {
		ID       string    `json:"requestId"`
		Loader   string    `json:"loaderId"`
		Time     float64   `json:"timestamp"`
		Type     string    `json:"type"`
		Redirect *answered `json:"redirectResponse"`
		Request  struct {
			Method string `json:"method"`
			URL    string `json:"url"`
		} `json:"request"`
	}
	if e.Decode(&v) != nil || strings.HasPrefix(v.Request.URL, "data:") {
		return
	}
	key := e.Session.ID() + v.ID
	if before := j.open[key]; before != nil && v.Redirect != nil {
		before.Status = v.Redirect.Status
		j.endLocked(key, before, v.Time)
	}
	r := &traffic{session: e.Session.ID(), loader: v.Loader, sent: v.Time, habit: habitOf(v.Request.Method, v.Request.URL)}
	r.Method, r.URL, r.Type = v.Request.Method, bounded(withoutUser(v.Request.URL)), strings.ToLower(v.Type)
	j.beginLocked(key, r)
}

func (j *journal) beginLocked(key string, r *traffic) {
	if j.open == nil {
		j.open = map[string]*traffic{}
	}
	r.began = j.tickLocked()
	if len(j.open) < 4*keptEntries {
		j.open[key] = r
	}
	j.network.add(r)
}

func (j *journal) endLocked(key string, r *traffic, at float64) {
	delete(j.open, key)
	r.ended = j.tickLocked()
	if at > r.sent && r.sent > 0 {
		r.Duration = reins.Duration((at - r.sent) * float64(time.Second))
	}
}

// followLocked notes what became of a request.
func (j *journal) followLocked(e cdp.Event) {
	var v struct {
		ID       string   `json:"requestId"`
		Time     float64  `json:"timestamp"`
		Response answered `json:"response"`
		Size     float64  `json:"encodedDataLength"`
		Fault    string   `json:"errorText"`
		Canceled bool     `json:"canceled"`
		Blocked  string   `json:"blockedReason"`
		CORS     *struct {
			Error string `json:"corsError"`
		} `json:"corsErrorStatus"`
	}
	if e.Decode(&v) != nil {
		return
	}
	key := e.Session.ID() + v.ID
	r := j.open[key]
	if r == nil {
		return
	}
	switch e.Method {
	case network.RequestServedFromCache.Method:
		r.Cached = true
	case network.ResponseReceived.Method:
		r.Status, r.Cached, r.answer = v.Response.Status, r.Cached || v.Response.Disk, time.Now()
		if reason := header(v.Response.Headers, refusalHeader); reason != "" && r.Status == 403 {
			r.Failure = "the network door refused it: " + bounded(reason)
		}
		if streaming(v.Response.Mime) {
			r.Type = "eventsource"
		}
	case network.LoadingFinished.Method:
		r.Size = int64(v.Size)
		j.endLocked(key, r, v.Time)
	case network.LoadingFailed.Method:
		r.Failure = failureOf(v.Fault, v.Canceled, v.Blocked)
		if v.CORS != nil {
			r.Failure = "the other site does not permit it (CORS: " + bounded(v.CORS.Error) + ")"
		}
		j.endLocked(key, r, v.Time)
	}
}

// failureOf says in plain words why a request failed.
func failureOf(fault string, canceled bool, blocked string) string {
	code := strings.TrimPrefix(fault, "net::ERR_")
	switch {
	case canceled:
		return "the page or the browser cancelled it"
	case blocked != "":
		return "the browser blocked it (" + bounded(blocked) + ")"
	case strings.HasPrefix(code, "BLOCKED_BY_"):
		return "the rules of this browser block it"
	}
	return wordsOf(code)
}

// socketLocked follows a WebSocket.
func (j *journal) socketLocked(e cdp.Event) {
	var v struct {
		ID       string   `json:"requestId"`
		URL      string   `json:"url"`
		Time     float64  `json:"timestamp"`
		Response answered `json:"response"`
		Fault    string   `json:"errorMessage"`
	}
	if e.Decode(&v) != nil {
		return
	}
	key := e.Session.ID() + v.ID
	r := j.open[key]
	switch {
	case e.Method == network.WebSocketCreated.Method:
		r = &traffic{session: e.Session.ID()}
		r.Method, r.URL, r.Type = "GET", bounded(v.URL), "websocket"
		j.beginLocked(key, r)
	case r == nil:
	case e.Method == network.WebSocketHandshakeResponseReceived.Method:
		r.Status, r.sent = v.Response.Status, v.Time
	case e.Method == network.WebSocketFrameError.Method:
		r.Failure = bounded(v.Fault)
	case e.Method == network.WebSocketClosed.Method:
		j.endLocked(key, r, v.Time)
	}
}

// loading counts the requests that a page still waits for, says when to look
// again although nothing may happen, and what is closed at the next change.
func (j *journal) loading(b *browser, t *tab) (open int, again time.Duration, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	again = time.Hour
	for _, r := range j.open {
		switch r.Type {
		case "websocket", "eventsource", "ping", "media", "prefetch":
			continue
		case "document": // the tab's own state tells of it, also when its process changed midway
			continue
		case "xhr", "fetch", "other":
			if b.habitual(t, r.habit) {
				continue
			}
			if !r.answer.IsZero() { // what goes on arriving is a stream
				left := streamAfter - time.Since(r.answer)
				if left <= 0 {
					continue
				}
				again = min(again, left)
			}
		}
		open++
	}
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return open, again, j.changed
}
