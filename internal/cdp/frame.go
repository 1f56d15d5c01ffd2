package cdp

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// frames cuts a byte stream into the messages between its NUL bytes.
type frames struct {
	r     io.Reader
	max   int
	buf   []byte
	start int // of what was read and not yet returned
	seen  int // first byte not yet searched for NUL
}

// oversize tells of a message that was skipped because of its size: its
// beginning and end, which name the call and session it belongs to.
type oversize struct {
	size       int64
	head, tail []byte
}

const (
	firstBuffer = 64 << 10
	keptOnSkip  = 512
)

func newFrames(r io.Reader, limit int) *frames {
	return &frames{r: r, max: limit, buf: make([]byte, 0, firstBuffer)}
}

// next returns the next message, valid until the next call, or what it skipped.
func (f *frames) next() ([]byte, *oversize, error) {
	for {
		if i := bytes.IndexByte(f.buf[f.seen:], 0); i >= 0 {
			end := f.seen + i
			message := f.buf[f.start:end]
			f.start, f.seen = end+1, end+1
			if len(message) > f.max {
				return nil, skipped(message), nil
			}
			return message, nil, nil
		}
		f.seen = len(f.buf)
		if f.seen-f.start > f.max {
			over, err := f.skip()
			return nil, over, err
		}
		if err := f.fill(); err != nil {
			return nil, nil, err
		}
	}
}

// fill reads once more, after making room.
func (f *frames) fill() error {
	held := len(f.buf) - f.start
	switch {
	case held == 0 && cap(f.buf) > 4*firstBuffer:
		f.buf = make([]byte, 0, firstBuffer) // a large message is not kept for ever
	case held == 0:
		f.buf = f.buf[:0]
	case len(f.buf) == cap(f.buf) && held > cap(f.buf)/2:
		bigger := make([]byte, held, 2*cap(f.buf))
		copy(bigger, f.buf[f.start:])
		f.buf = bigger
	case len(f.buf) == cap(f.buf):
		copy(f.buf, f.buf[f.start:])
		f.buf = f.buf[:held]
	default:
		held = -1
	}
	if held >= 0 {
		f.start, f.seen = 0, len(f.buf)
	}
	n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// skip reads past the message under way, storing no more of it than its ends.
func (f *frames) skip() (*oversize, error) {
	over := skipped(f.buf[f.start:])
	f.buf = make([]byte, 0, firstBuffer)
	f.start, f.seen = 0, 0
	for {
		if err := f.fill(); err != nil {
			return nil, err
		}
		part := f.buf
		end := bytes.IndexByte(part, 0)
		if end >= 0 {
			part = part[:end]
		}
		over.size += int64(len(part))
		over.tail = append(over.tail, part[max(0, len(part)-keptOnSkip):]...)
		over.tail = over.tail[max(0, len(over.tail)-keptOnSkip):]
		if end >= 0 {
			f.start, f.seen = end+1, end+1
			return over, nil
		}
		f.start, f.seen = len(f.buf), len(f.buf)
	}
}

func skipped(message []byte) *oversize {
	return &oversize{
		size: int64(len(message)),
		head: bytes.Clone(message[:min(len(message), keptOnSkip)]),
		tail: bytes.Clone(message[max(0, len(message)-keptOnSkip):]),
	}
}

// envelope finds what the ends of a skipped message tell. The browser writes
// the ID or the method first and the session last; page text cannot pose as
// either, since quotes inside it are escaped.
func (o *oversize) envelope() envelope {
	var e envelope
	if rest, ok := bytes.CutPrefix(o.head, []byte(`{"id":`)); ok {
		if end := bytes.IndexByte(rest, ','); end > 0 {
			if id, err := strconv.ParseInt(string(rest[:end]), 10, 64); err == nil {
				e.id, e.hasID = id, true
			}
		}
	} else if rest, ok := bytes.CutPrefix(o.head, []byte(`{"method":"`)); ok {
		if end := bytes.IndexByte(rest, '"'); end > 0 {
			e.method = string(rest[:end])
		}
	}
	const key = `,"sessionId":"`
	if rest, ok := bytes.CutSuffix(o.tail, []byte(`"}`)); ok {
		if at := bytes.LastIndex(rest, []byte(key)); at >= 0 {
			if id := rest[at+len(key):]; bytes.IndexByte(id, '"') < 0 {
				e.session = string(id)
			}
		}
	}
	return e
}

// envelope is the outside of a message: values are slices of the message.
type envelope struct {
	id      int64
	hasID   bool
	method  string
	session string
	params  []byte
	result  []byte
	fault   []byte // "error"
}

var errMessage = errors.New("the message is not a DevTools message")

// parseEnvelope reads the top level of a message and leaves the values inside
// unread, so that a large result is decoded once only.
func parseEnvelope(b []byte) (envelope, error) {
	var e envelope
	s := scanner{b: b}
	if !s.take('{') {
		return e, errMessage
	}
	if s.take('}') {
		return e, s.finish()
	}
	for {
		key, ok := s.text()
		if !ok || !s.take(':') {
			return e, errMessage
		}
		value, ok := s.value()
		if !ok || !e.set(string(key), value) {
			return e, errMessage
		}
		if s.take(',') {
			continue
		}
		if !s.take('}') {
			return e, errMessage
		}
		return e, s.finish()
	}
}

func (e *envelope) set(key string, value []byte) bool {
	switch key {
	case "id":
		id, err := strconv.ParseInt(string(value), 10, 64)
		e.id, e.hasID = id, true
		return err == nil
	case "method":
		return plain(value, &e.method)
	case "sessionId":
		return plain(value, &e.session)
	case "params":
		e.params = value
	case "result":
		e.result = value
	case "error":
		e.fault = value
	}
	return true
}

// plain takes a string that needs no unescaping, as method and session names do.
func plain(value []byte, to *string) bool {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return false
	}
	*to = string(value[1 : len(value)-1])
	return true
}

// scanner walks JSON without building anything. It checks only what is needed
// to find where values end; their decoders check the rest.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

func (s *scanner) take(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) finish() error {
	s.space()
	if s.i != len(s.b) {
		return errMessage
	}
	return nil
}

// text reads a string and returns what is between its quotes.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	start := s.i
	for {
		quote := bytes.IndexByte(s.b[s.i:], '"')
		if quote < 0 {
			return nil, false
		}
		end := s.i + quote
		slashes := 0
		for end-slashes > start && s.b[end-slashes-1] == '\\' {
			slashes++
		}
		s.i = end + 1
		if slashes%2 == 0 {
			return s.b[start:end], true
		}
	}
}

// value steps over one value and returns its bytes.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if _, ok := s.text(); !ok {
				return nil, false
			}
		case '{', '[':
			depth++
			s.i++
			continue
		case '}', ']':
			depth--
			s.i++
		case ',', ':', ' ', '\n', '\r', '\t':
			s.i++
			if depth == 0 {
				return nil, false
			}
			continue
		default:
			s.literal()
		}
		if depth < 0 {
			return nil, false
		}
		if depth == 0 {
			return s.b[start:s.i], true
		}
	}
	return nil, false
}

func (s *scanner) literal() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\n', '\r', '\t':
			return
		}
		s.i++
	}
}
