package mcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/hold"
	"github.com/reins-browser/reins/internal/tooltable"
)

// session is one client: its calls under the lease that it holds.
type session struct {
	server *Server
	ctx    context.Context // ends when the client leaves
	hold   *hold.Lease
	order  order

	readiness func() reins.Readiness // nil: not offered
	agreed    atomic.Value           // the version of the protocol, a string, once there is one

	mu      sync.Mutex
	present context.Context // ends when the client is given up, and is made anew
	giveUp  context.CancelCauseFunc
}

func newSession(ctx context.Context, s *Server, h *hold.Lease) *session {
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
func (s *session) handler(t *tooltable.Tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, stop := s.until(ctx)
		defer stop()
		res, err := s.call(ctx, t, req)
		if err != nil {
			return failure(err, s.server.tools.Offer), nil
		}
		return res, nil
	}
}

func (s *session) call(ctx context.Context, t *tooltable.Tool, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	turn := s.order.turn(req)
	defer turn.pass()
	asked, err := s.server.tools.Decode(t, req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	progress := newProgress(ctx, req)
	defer progress.end()
	if err := turn.wait(ctx); err != nil {
		return nil, err
	}
	lease, err := s.hold.Current(ctx)
	if err != nil {
		return nil, err
	}
	tell := func(p reins.Progress) {
		turn.pass() // it was admitted
		progress.tell(p)
	}
	if t.People() {
		defer progress.beat(time.Now())()
	}
	out, err := asked.Do(ctx, lease, tell)
	if err != nil {
		return nil, err
	}
	return s.result(t, req, out), nil
}

// result is the form of an answer for this client.
func (s *session) result(t *tooltable.Tool, req *sdk.CallToolRequest, out *tooltable.Answer) *sdk.CallToolResult {
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.Text()}}}
	if !t.Document() {
		res.StructuredContent = out
	}
	if p := out.Picture(); p != nil && len(p.Image) > 0 {
		res.Content = append(res.Content, &sdk.ImageContent{Data: p.Image, MIMEType: p.MediaType})
	}
	if stored := out.Stored(); stored != nil && knowsLinks(req.Session) {
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
