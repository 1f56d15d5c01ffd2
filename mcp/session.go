package mcp

import (
	"context"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

// session is one client: its lease, and its calls under it.
type session struct {
	server *Server
	ctx    context.Context // ends when the client leaves
	order  order
	work   sync.WaitGroup // acquisitions and renewals

	mu      sync.Mutex
	lease   reins.Lease  // nil before the first and while one is acquired
	pending *acquisition // not nil while a lease is acquired
}

// acquisition is shared by all calls that wait for the same lease; done guards
// the rest.
type acquisition struct {
	done  chan struct{}
	lease reins.Lease
	err   error
}

func newSession(ctx context.Context, s *Server) *session {
	return &session{server: s, ctx: ctx}
}

// close waits for what the session started and releases its lease; its context
// has ended.
func (s *session) close() {
	s.work.Wait()
	s.mu.Lock()
	lease := s.lease
	s.mu.Unlock()
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), releaseTimeout)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		s.server.options.Logger.Warn("a lease was not released", "error", err)
	}
}

// current returns the live lease, acquiring one when there is none. A caller that
// leaves does not take the acquisition from the others.
func (s *session) current(ctx context.Context) (reins.Lease, error) {
	s.mu.Lock()
	if s.lease != nil && !ended(s.lease) {
		defer s.mu.Unlock()
		return s.lease, nil
	}
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return nil, reins.ContextError(s.ctx)
	}
	if s.pending == nil {
		s.pending = &acquisition{done: make(chan struct{})}
		p := s.pending
		s.work.Go(func() { s.acquire(p) })
	}
	p := s.pending
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.lease, p.err
	case <-ctx.Done():
		return nil, reins.ContextError(ctx)
	}
}

func (s *session) acquire(p *acquisition) {
	p.lease, p.err = s.server.options.Lease(s.ctx)
	switch {
	case p.err != nil:
		p.lease = nil // whatever came with the error
	case p.lease == nil:
		p.err = reins.Errorf(reins.CodeInternal, "no lease was given to this MCP server")
	}
	s.mu.Lock()
	s.lease, s.pending = p.lease, nil
	if p.err == nil {
		s.work.Go(func() { s.renew(p.lease) })
	}
	s.mu.Unlock()
	close(p.done)
}

func ended(l reins.Lease) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// renew extends the lease at half of its remaining life until it ends or the
// client leaves (LSE-3). A renewal that failed is tried again at half of what
// then remains, so ever sooner, but not more often than every tenth of a second.
func (s *session) renew(l reins.Lease) {
	for {
		timer := time.NewTimer(max(time.Until(l.Expires())/2, 100*time.Millisecond))
		select {
		case <-timer.C:
		case <-l.Done():
			timer.Stop()
			return
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		if _, err := l.Renew(s.ctx); err != nil && s.ctx.Err() == nil {
			s.server.options.Logger.Warn("a lease was not renewed", "error", err)
		}
	}
}

// handler answers calls of one tool.
func (s *session) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
		defer stop()
		res, err := s.call(ctx, t, req)
		if err != nil {
			return failure(err, s.server.offer.tabs), nil
		}
		return res, nil
	}
}

func (s *session) call(ctx context.Context, t *tool, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	turn := s.order.turn(req)
	defer turn.pass()
	asked, err := t.decode(req.Params.Arguments, s.server.offer)
	if err != nil {
		return nil, err
	}
	progress := newProgress(ctx, req)
	defer progress.end()
	if err := turn.wait(ctx); err != nil {
		return nil, err
	}
	lease, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	tell := func(p reins.Progress) {
		turn.pass() // it was admitted
		progress.tell(p)
	}
	if t.people {
		defer progress.beat(time.Now())()
	}
	if asked.first != nil {
		if _, err := lease.Do(ctx, reins.Call{Action: asked.first}); err != nil {
			return nil, err
		}
	}
	res, err := lease.Do(ctx, reins.Call{Action: s.sized(asked.action), Progress: tell})
	if err != nil {
		return nil, err
	}
	out := newOutput(asked.action, res)
	if asked.read && res.Snapshot == nil && (res.Navigation == nil || res.Navigation.Download == nil) {
		s.readAfter(ctx, lease, asked.action, res, out)
	}
	return s.result(t, req, out), nil
}

// sized gives a snapshot that names no size this server's.
func (s *session) sized(a reins.Action) reins.Action {
	if read, ok := a.(reins.Snapshot); ok && read.MaxBytes == 0 {
		read.MaxBytes = s.server.options.SnapshotBytes
		return read
	}
	return a
}

// readAfter adds a snapshot to a result that came without: that of the page for a
// navigation, else what changed. The action has succeeded whatever becomes of it.
func (s *session) readAfter(ctx context.Context, lease reins.Lease, after reins.Action, res *reins.Result, out *output) {
	read := reins.Snapshot{MaxBytes: s.server.options.SnapshotBytes, Changes: acts(after.Verb())}
	if res.Tab != nil {
		read.Tab = res.Tab.ID
	}
	got, err := lease.Do(ctx, reins.Call{Action: read})
	if err != nil {
		out.Notes = append(out.Notes, "There is no snapshot: "+bounded(reins.AsError(err).Error())+".")
		return
	}
	out.Notes = append(out.Notes, got.Notes...)
	if got.Snapshot != nil {
		if now := newPage(got); now != nil && out.Page != nil { // it may have gone on meanwhile
			if now.URL != out.Page.URL {
				now.Status, out.stays = 0, false
			} else {
				now.Status = out.Page.Status
			}
			out.Page = now
		}
		out.read(got.Snapshot, read.Changes)
	}
}

// result is the form of an output for this client.
func (s *session) result(t *tool, req *sdk.CallToolRequest, out *output) *sdk.CallToolResult {
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text()}}}
	if !t.document {
		res.StructuredContent = out
	}
	stored := out.paper
	if p := out.picture; p != nil {
		stored = &p.Artifact
		if len(p.Image) > 0 {
			res.Content = append(res.Content, &sdk.ImageContent{Data: p.Image, MIMEType: p.MediaType})
		}
	}
	if stored != nil && knowsLinks(req.Session) {
		res.Content = append(res.Content, &sdk.ResourceLink{
			URI: stored.URI(), Name: stored.Name, MIMEType: stored.MediaType, Size: &stored.Size,
		})
	}
	return res
}

// knowsLinks reports whether the client's version of the protocol has resource
// links; older clients may drop a whole result for one. The text names the
// address either way.
func knowsLinks(ss *sdk.ServerSession) bool {
	const since = "2025-06-18"
	p := ss.InitializeParams()
	return p == nil || p.ProtocolVersion == "" || p.ProtocolVersion >= since
}
