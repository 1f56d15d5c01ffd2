package api

import (
	"encoding/binary"
	"encoding/json"

	"github.com/reins-browser/reins"
)

// viewProtocol is the WebSocket's subprotocol of a live view.
const viewProtocol = "reins.view.v1"

const (
	requestMax = 4 << 20         // bytes of a message from a viewer
	newsMax    = 16<<20 + 64<<10 // bytes of one to a viewer: the largest frame and its header (FRM-6)
	windowMax  = 32              // unacknowledged frames (FRM-3)
	pieceSize  = 64 << 10        // bytes that a connection has to take at a time
	prefixSize = 4               // bytes before a frame's header
)

// ViewNews is one text message of a live view to its viewer: exactly one of its
// fields. A frame is a binary message: the length of its header as four bytes,
// the highest first, the header, which is a Frame, and the JPEG.
type ViewNews struct {
	State  *reins.ViewState `json:"state,omitempty"`
	Error  *reins.Error     `json:"error,omitempty"` // the view goes on
	Answer *ViewAnswer      `json:"answer,omitempty"`
	End    *reins.Error     `json:"end,omitempty"` // the last message
}

// ViewAnswer is what came of a viewer's action: a result or an error.
type ViewAnswer struct {
	ID     uint64        `json:"id"`
	Result *reins.Result `json:"result,omitempty"`
	Error  *reins.Error  `json:"error,omitempty"`
}

// ViewRequest is one text message of a viewer: exactly one of its fields.
type ViewRequest struct {
	Ack *reins.FrameID `json:"ack,omitempty"` // the frame is shown
	Do  *ViewDo        `json:"do,omitempty"`
}

// ViewDo is one action of a viewer. It is answered unless its ID is 0.
type ViewDo struct {
	ID     uint64     `json:"id,omitempty"`
	Action ActionForm `json:"action"`
}

// rawRequest is a ViewRequest whose action has not been looked at, so that a bad
// one is answered and ends nothing.
type rawRequest struct {
	Ack *reins.FrameID `json:"ack"`
	Do  *rawDo         `json:"do"`
}

type rawDo struct {
	ID     uint64          `json:"id"`
	Action json.RawMessage `json:"action"`
}

// readRequest reads what a viewer sent; what no viewer sends is invalid_input.
func readRequest(b []byte) (rawRequest, error) {
	var q rawRequest
	if err := decodeStrict(b, &q); err != nil {
		return q, err
	}
	if (q.Ack == nil) == (q.Do == nil) {
		return q, reins.Errorf(reins.CodeInvalidInput, "a message of a view is {\"ack\": …} or {\"do\": …}, one of them")
	}
	return q, nil
}

// frameHead is what stands before the JPEG in a frame's message.
func frameHead(f *reins.Frame) ([]byte, error) {
	head, err := json.Marshal(f)
	if err != nil {
		return nil, reins.AsError(err)
	}
	out := make([]byte, prefixSize, prefixSize+len(head))
	binary.BigEndian.PutUint32(out, uint32(len(head)))
	return append(out, head...), nil
}

// readFrame reads a frame's message.
func readFrame(b []byte) (*reins.Frame, error) {
	bad := func() error {
		return reins.Errorf(reins.CodeTransportFailure, "the server's view holds a frame that no Reins server sends")
	}
	if len(b) < prefixSize {
		return nil, bad()
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[prefixSize:]; uint64(n) > uint64(len(b)) {
		return nil, bad()
	}
	var f reins.Frame
	if json.Unmarshal(b[:n], &f) != nil {
		return nil, bad()
	}
	f.JPEG = b[n:]
	return &f, nil
}

// readNews reads a text message of a server.
func readNews(b []byte) (ViewNews, error) {
	var raw struct {
		State      *reins.ViewState `json:"state"`
		Error, End json.RawMessage
	}
	bad := reins.Errorf(reins.CodeTransportFailure, "the server's view holds what no Reins server sends")
	if json.Unmarshal(b, &raw) != nil {
		return ViewNews{}, bad
	}
	n := ViewNews{State: raw.State}
	for _, e := range []struct {
		raw json.RawMessage
		out **reins.Error
	}{{raw.Error, &n.Error}, {raw.End, &n.End}} {
		if len(e.raw) == 0 {
			continue
		}
		if *e.out = decodeError(e.raw); *e.out == nil {
			return ViewNews{}, bad
		}
	}
	return n, nil
}

// encodeNews writes a text message. Details of an error that are no JSON are
// left out.
func encodeNews(n ViewNews) ([]byte, error) {
	b, err := json.Marshal(n)
	if err == nil {
		return b, nil
	}
	bare := func(e *reins.Error) *reins.Error {
		if e == nil {
			return nil
		}
		c := *e
		c.Details = nil
		return &c
	}
	n.Error, n.End = bare(n.Error), bare(n.End)
	if n.Answer != nil {
		n.Answer = &ViewAnswer{n.Answer.ID, n.Answer.Result, bare(n.Answer.Error)}
	}
	if b, err = json.Marshal(n); err != nil {
		return nil, reins.AsError(err)
	}
	return b, nil
}
