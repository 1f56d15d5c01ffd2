package cdp

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// Event is what the browser reports on a session. Params is valid only until
// the handler returns.
type Event struct {
	Session *Session
	Method  string
	Params  []byte
}

// Decode reads an event's parameters into v, a pointer.
func (e Event) Decode(v any) error { return decode(e.Params, v) }

// Is reports whether e is an event of the kind k, and its parameters when it
// is and they can be read.
func Is[E any](e Event, k proto.Event[E]) (E, bool) {
	var v E
	if e.Method != k.Method || decode(e.Params, &v) != nil {
		var zero E
		return zero, false
	}
	return v, true
}

// Then queues a typed command and returns; handle gets its outcome in order with
// the browser's events, under the rules of a handler: it returns soon and waits
// for no reply. A call that can no longer be answered is handled too, in the
// goroutine that ended it.
func Then[P, R any](s *Session, c proto.Command[P, R], params P, handle func(R, error)) {
	s.conn.send(s, []Request{{c.Method, params}}, func(p *Pending) {
		v, err := Reply[R]{p}.Wait(context.Background())
		handle(v, err)
	})
}

// Session is one flat session of a connection.
type Session struct {
	conn   *Conn
	id     string
	handle func(Event)
	err    error // guarded by conn.mu; why it ended
	done   chan struct{}
}

// ID is the browser's name of the session; "" for the root.
func (s *Session) ID() string { return s.id }

// Conn is the connection that the session is of.
func (s *Session) Conn() *Conn { return s.conn }

// Done is closed when the session, or its connection, has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says, once Done is closed, why the session ended.
func (s *Session) Err() error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.err
}

// End ends the session on this side: what waits on it fails with
// ErrSessionEnded, later events are dropped. The browser is not told.
func (s *Session) End() {
	s.conn.mu.Lock()
	failed := s.conn.endSessionLocked(s, ErrSessionEnded)
	s.conn.mu.Unlock()
	failed.finish(ErrSessionEnded)
}

// Send queues a call and returns without waiting for anything. The reply may
// be left alone.
func (s *Session) Send(method string, params any) *Pending {
	return s.conn.send(s, []Request{{method, params}}, nil)[0]
}

// SendAll queues calls that leave in one write, in order.
func (s *Session) SendAll(requests ...Request) []*Pending { return s.conn.send(s, requests, nil) }

// Call sends and waits. A nil result is not decoded.
func (s *Session) Call(ctx context.Context, method string, params, result any) error {
	return s.Send(method, params).Wait(ctx, result)
}

// Pending is a call that was sent.
type Pending struct {
	session *Session
	method  string
	id      int64
	then    func(*Pending) // called by finish; may be nil
	done    chan struct{}  // closed once body and err are set
	body    []byte
	err     error
}

// finish sets the outcome; only who removed p from the pending calls does.
func (p *Pending) finish(body []byte, err error) {
	p.body, p.err = body, err
	close(p.done)
	if p.then != nil {
		p.then(p)
	}
}

// Done is closed when the call was answered or can no longer be.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits for the reply and decodes it into result, a pointer or nil. It
// fails with a *ProtocolError, with one of this package's errors, or with the
// cause of ctx, when that ends first; the call itself goes on then.
func (p *Pending) Wait(ctx context.Context, result any) error {
	select {
	case <-p.done:
	default:
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", p.method, context.Cause(ctx))
		}
	}
	if p.err != nil {
		var fault *ProtocolError
		if errors.As(p.err, &fault) {
			return p.err
		}
		return fmt.Errorf("%s: %w", p.method, p.err)
	}
	if result == nil {
		return nil
	}
	if err := decode(p.body, result); err != nil {
		return fmt.Errorf("%s: the reply does not have the expected form: %w", p.method, err)
	}
	return nil
}

// Call sends a typed command and waits for its reply.
func Call[P, R any](ctx context.Context, s *Session, c proto.Command[P, R], params P) (R, error) {
	return Send(s, c, params).Wait(ctx)
}

// Send queues a typed command.
func Send[P, R any](s *Session, c proto.Command[P, R], params P) Reply[R] {
	return Reply[R]{s.Send(c.Method, params)}
}

// Prepare makes a typed command a Request for [Session.SendAll].
func Prepare[P, R any](c proto.Command[P, R], params P) Request {
	return Request{c.Method, params}
}

// Reply is a Pending that knows the type of its result.
type Reply[R any] struct{ *Pending }

// Wait is [Pending.Wait] with the result.
func (r Reply[R]) Wait(ctx context.Context) (R, error) {
	var v R
	if err := r.Pending.Wait(ctx, &v); err != nil {
		var zero R
		return zero, err
	}
	return v, nil
}

// empty are the parameters of commands that take none.
var empty proto.Empty

// decode reads JSON as the browser writes it: half surrogate pairs in page
// text become U+FFFD.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		b = []byte("{}")
	}
	return jsonv2.Unmarshal(b, v, jsonv2.AllowInvalidUTF8(true))
}

// encodeBody writes a message without the brace and ID it begins with.
func encodeBody(session string, r Request) ([]byte, error) {
	b := append([]byte(`,"method":"`), r.Method...)
	b = append(b, '"')
	if r.Params != nil {
		params, err := jsonv2.Marshal(r.Params, jsonv2.AllowInvalidUTF8(true))
		if err != nil {
			return nil, fmt.Errorf("%s: the parameters cannot be encoded: %w", r.Method, err)
		}
		b = append(append(b, `,"params":`...), params...)
	}
	if session != "" {
		b = append(append(append(b, `,"sessionId":"`...), session...), '"')
	}
	return append(b, '}'), nil
}

func appendMessage(out []byte, id int64, body []byte) []byte {
	out = strconv.AppendInt(append(out, `{"id":`...), id, 10)
	return append(append(out, body...), 0)
}
