package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/reins-browser/reins"
)

// The names of events on the streams of this door.
const (
	eventOpen     = "open"     // where the stream begins
	eventChange   = "event"    // a reins.Event
	eventState    = "state"    // a LeaseState
	eventProgress = "progress" // a reins.Progress
	eventResult   = "result"   // an OperationAnswer
	eventError    = "error"    // a reins.Error: what the stream was for has failed
	eventEnd      = "end"      // a reins.Error: why there is no more
)

// patience is how long a connection may take no byte before it is dropped.
const patience = 30 * time.Second

// sseWriter writes a stream of events. A reader that takes nothing for as long
// as patience lasts loses it.
type sseWriter struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	ended func() error // says whether the stream is to end
	buf   bytes.Buffer
}

func newSSE(w http.ResponseWriter, ended func() error) *sseWriter {
	w.Header().Set("Content-Type", typeSSE)
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not hold events back
	w.WriteHeader(http.StatusOK)
	return &sseWriter{w: w, c: http.NewResponseController(w), ended: ended}
}

// send writes one event and flushes it.
func (s *sseWriter) send(name, id string, v any) error {
	if err := s.write(name, id, v); err != nil {
		return err
	}
	return s.flush()
}

// write puts one event into the buffer.
func (s *sseWriter) write(name, id string, v any) error {
	s.buf.Reset()
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if id != "" {
		s.buf.WriteString("id: " + id + "\n")
	}
	s.buf.WriteString("event: " + name + "\ndata: ")
	s.buf.Write(b)
	s.buf.WriteString("\n\n")
	return nil
}

// alive writes a comment, so that both ends know the other is there.
func (s *sseWriter) alive() error {
	s.buf.Reset()
	s.buf.WriteString(": keep-alive\n\n")
	return s.flush()
}

func (s *sseWriter) flush() error {
	_ = s.c.SetWriteDeadline(time.Now().Add(patience)) // where it cannot be set, the server's own holds
	if err := s.ended(); err != nil {                  // after the deadline: the end sets its own
		return err
	}
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	return s.c.Flush()
}

// sseEvent is one event as it was read.
type sseEvent struct {
	name, id string
	data     []byte
}

// sseReader reads a stream of events, each within a bound.
type sseReader struct {
	r     *bufio.Reader
	bound int
}

func newSSEReader(r io.Reader, bound int) *sseReader {
	return &sseReader{bufio.NewReaderSize(r, 4096), bound}
}

var errSSEBound = errors.New("an event is larger than the bound")

// next returns the next event that has data; alive is called for each line,
// comments too.
func (s *sseReader) next(alive func()) (sseEvent, error) {
	var e sseEvent
	var data bytes.Buffer
	has := false
	for size := 0; ; {
		line, err := s.line(s.bound - size)
		if err != nil {
			return sseEvent{}, err
		}
		alive()
		size += len(line)
		if len(line) == 0 {
			if has {
				e.data = data.Bytes()
				return e, nil
			}
			e = sseEvent{}
			size = 0
			continue
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if has {
				data.WriteByte('\n')
			}
			has = true
			data.WriteString(value)
		}
	}
}

// line reads up to a line feed, without it and a carriage return before it.
func (s *sseReader) line(bound int) ([]byte, error) {
	var out []byte
	for {
		part, err := s.r.ReadSlice('\n')
		if len(out)+len(part) > bound+2 {
			return nil, errSSEBound
		}
		out = append(out, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(out[:len(out)-1], []byte("\r")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// decode reads an event's data as what its name says; an end or error becomes
// the *reins.Error in it.
func (e sseEvent) decode(out any) error {
	if e.name == eventEnd || e.name == eventError {
		if known := decodeError(e.data); known != nil {
			return known
		}
	} else if json.Unmarshal(e.data, out) == nil {
		return nil
	}
	return reins.Errorf(reins.CodeTransportFailure, "the server's stream holds what no Reins server sends")
}

// last says why there is no more. When the client left, or the server goes,
// there is nothing to say.
func (s *sseWriter) last(why *reins.Error) error {
	if why == nil || why == errStopping || why.Code == reins.CodeCancelled {
		return nil
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(lastWords))
	s.write(eventEnd, "", why)
	_, _ = s.w.Write(s.buf.Bytes()) // to a client that may have left
	_ = s.c.Flush()
	return nil
}
