package mcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

// session is one client: its calls under the lease that it holds.
type session struct {
	server *Server
	ctx    context.Context // ends when the client leaves
	hold   *hold
	order  order

	readiness func() reins.Readiness // nil: not offered
	agreed    atomic.Value           // the version of the protocol, a string, once there is one

	mu      sync.Mutex
	present context.Context // ends when the client is given up, and is made anew
	giveUp  context.CancelCauseFunc
}

func newSession(ctx context.Context, s *Server, h *hold) *session {
	c := &session{server: s, ctx: ctx, hold: h}
	c.present, c.giveUp = context.WithCancelCause(ctx)
	return c
}

// agree notes the version of the protocol that the handshake came to.
func (s *session) agree(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		if got, ok := res.(*sdk.InitializeResult); ok && err == nil {
			s.agreed.Store(got.ProtocolVersion)
		}
		return res, err
	}
}

// interrupt ends the calls that are under way, with cause; the client may go on.
func (s *session) interrupt(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveUp(cause)
	s.present, s.giveUp = context.WithCancelCause(s.ctx)
}

// until returns a context that ends with ctx, and with cause when the client
// leaves or its calls are interrupted. Its stop has to be called.
func (s *session) until(ctx context.Context) (_ context.Context, stop func()) {
	s.mu.Lock()
	present := s.present
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	loose := context.AfterFunc(present, func() { cancel(context.Cause(present)) })
	return ctx, func() { loose(); cancel(nil) }
}

// handler answers calls of one tool.
func (s *session) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, stop := s.until(ctx)
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
	lease, err := s.hold.current(ctx)
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
