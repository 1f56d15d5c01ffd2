package mcp

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/webguard"
)

const (
	// resumeTime is how long a client whose connections are all lost has to come
	// back before its calls are taken back and their places in the queue are free.
	resumeTime = 5 * time.Second
	// lastBytes is how long answers that are under way when the lease ends may
	// still be written: they say that it did (LSE-6 allows 250 ms in all).
	lastBytes = 150 * time.Millisecond
	// replayBytes bounds what a session keeps for a client that resumes.
	replayBytes = 2 << 20
)

// link is one session over HTTP, or what all requests of a client of the versions
// without sessions go through. What may change is guarded by the handler's lock.
type link struct {
	handler *HTTPHandler
	client  *client
	id      string
	session *session
	quit    context.CancelCauseFunc // of the session
	server  *sdk.Server
	door    http.Handler // the SDK's, of this one session
	events  *events

	open    map[*exchange]struct{}
	seen    time.Time // when a request last began or ended
	timer   *time.Timer
	dropped chan struct{} // not nil once it is; closed when all of it is gone
}

func newLink(h *HTTPHandler, c *client, free bool) *link {
	l := &link{
		handler: h, client: c, id: rand.Text(),
		open: map[*exchange]struct{}{}, seen: time.Now(), events: newEvents(),
	}
	var ctx context.Context
	ctx, l.quit = context.WithCancelCause(c.ctx)
	l.session = newSession(ctx, h.server, c.hold)
	if of := h.options.ReadinessOf; of != nil {
		l.session.readiness = func() reins.Readiness { return of(c.binding) }
	}
	l.server = h.server.protocol(l.session, func() string { return l.id })
	o := &sdk.StreamableHTTPOptions{
		Logger: h.options.Logger, MaxRequestBodyBytes: webguard.MaxBody,
		DisableLocalhostProtection: true, // the guard's
	}
	if free {
		o.Stateless, o.PropagateRequestCancellation = true, true
	} else {
		o.EventStore = l.events
	}
	l.door = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return l.server }, o)
	l.timer = time.AfterFunc(h.options.Idle, l.tick)
	return l
}

// versions are those of the protocol that the SDK speaks.
func versions() []string { return sdk.SupportedProtocolVersions() }

// exchange is one request with its answer, for as long as that is written.
type exchange struct {
	get    bool // a stream that a client opened to listen, or to resume
	cancel context.CancelFunc
	answer *http.ResponseController

	mu   sync.Mutex
	done bool
}

// cut ends an exchange, however slowly its client reads.
func (e *exchange) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return
	}
	e.cancel()
	_ = e.answer.SetWriteDeadline(time.Now()) // not every kind of connection has one
}

func (e *exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = true
	e.cancel()
}

// serve answers one request of this link's client.
func (l *link) serve(w http.ResponseWriter, r *http.Request, sent message) {
	ctx, cancel := context.WithCancel(r.Context())
	e := &exchange{get: r.Method == http.MethodGet, cancel: cancel, answer: http.NewResponseController(w)}
	defer e.end()
	if !l.enter(e) {
		refuse(w, errNoSession())
		return
	}
	defer l.leave(e)
	if e.get { // what it listens to is its lease's (LSE-6)
		if _, err := l.client.hold.Current(ctx); err != nil {
			refuse(w, err)
			return
		}
	}
	if agreed, ok := l.session.agreed.Load().(string); ok && l != l.client.free {
		r.Header.Set(headerVersion, agreed)
	}
	if r.Method == http.MethodDelete {
		l.quit(errNoSession()) // the SDK waits for calls before it answers
		defer func() { <-l.handler.drop(l, errNoSession()) }()
	}
	// An initialize that came to nothing leaves the session to its timer, and the
	// capability as good as it was.
	l.door.ServeHTTP(w, r.WithContext(ctx))
	if sent.initialize {
		l.closeIfDropped()
	}
}

// closeIfDropped ends what the SDK began for a session that was ended meanwhile.
func (l *link) closeIfDropped() {
	l.handler.mu.Lock()
	gone := l.dropped != nil
	l.handler.mu.Unlock()
	if gone {
		l.closeSessions()
	}
}

func (l *link) closeSessions() {
	for s := range l.server.Sessions() {
		_ = s.Close()
	}
}

// enter counts an exchange as open, unless the link is gone.
func (l *link) enter(e *exchange) bool {
	l.handler.mu.Lock()
	defer l.handler.mu.Unlock()
	if l.dropped != nil {
		return false
	}
	l.open[e] = struct{}{}
	l.seen = time.Now()
	return true
}

func (l *link) leave(e *exchange) {
	l.handler.mu.Lock()
	defer l.handler.mu.Unlock()
	delete(l.open, e)
	l.seen = time.Now()
	if len(l.open) == 0 && l.dropped == nil {
		l.timer.Reset(resumeTime)
	}
}

// allLocked reports whether fits holds for whatever is open.
func (l *link) allLocked(fits func(*exchange) bool) bool {
	for e := range l.open {
		if !fits(e) {
			return false
		}
	}
	return true
}

// tick looks after a link that nobody has used for a while: it takes back the
// calls of a client that did not come back, and ends the session of one whose
// lease has ended too (MCP-6).
func (l *link) tick() {
	h := l.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.dropped != nil || len(l.open) > 0 {
		return
	}
	quiet := time.Since(l.seen)
	if quiet < resumeTime {
		l.timer.Reset(resumeTime - quiet)
		return
	}
	l.session.interrupt(reins.Errorf(reins.CodeCancelled, "the MCP client left and did not come back within %s", resumeTime))
	if quiet < h.options.Idle {
		l.timer.Reset(h.options.Idle - quiet)
		return
	}
	if lease := l.client.hold.Live(); lease != nil {
		l.timer.Reset(max(time.Until(lease.Expires()), time.Second))
		return
	}
	h.dropLocked(l, errNoSession())
}

// cut ends the open streams of a client whose lease has ended, and forgets what
// they could replay: those that listen at once, answers when they had the time to
// say so (LSE-6).
func (h *HTTPHandler) cut(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range c.links {
		l.events.forget(l.id)
		for e := range l.open {
			if e.get {
				e.cut()
			} else {
				time.AfterFunc(lastBytes, e.cut)
			}
		}
	}
}

// end ends the session's calls, streams and the SDK's part.
func (l *link) end(cause *reins.Error) {
	l.quit(cause)
	l.handler.mu.Lock()
	for e := range l.open {
		time.AfterFunc(lastBytes, e.cut)
	}
	l.handler.mu.Unlock()
	l.closeSessions()
}
