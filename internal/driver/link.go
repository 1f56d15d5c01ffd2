package driver

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/redact"
)

// The link between the two halves is HTTP/2 over a socket pair. POST /do
// carries one command and its reply, POST /cancel ends one under way, GET
// /events streams notices. Bytes of pictures follow the reply's JSON as they
// are.
const (
	pathDo     = "/do"
	pathCancel = "/cancel"
	pathEvents = "/events"
)

// order is a Command on the link.
type order struct {
	ID     uint64            `json:"id"`
	Action json.RawMessage   `json:"action"`
	Lease  string            `json:"lease,omitempty"`
	Files  map[string]string `json:"files,omitempty"`
	Ask    bool              `json:"ask,omitempty"`
	Into   Place             `json:"into,omitzero"`
	Secret string            `json:"secret,omitempty"`
	Redact redact.Set        `json:"redact,omitempty"`
	Above  Numbers           `json:"above,omitzero"`
}

// outcome is what comes back for an order, before the blobs.
type outcome struct {
	Reply *Reply       `json:"reply,omitempty"`
	Error *reins.Error `json:"error,omitempty"`

	Numbers Numbers `json:"numbers"` // what it names is not above these
}

// notice is one line of the event stream; one field is set.
type notice struct {
	Event    *Event    `json:"event,omitempty"`
	Handover *Handover `json:"handover,omitempty"`
	Ready    bool      `json:"ready,omitempty"`

	sent []chan struct{} // closed when it is on its way to the parent
}

// startMessage is what the child is started with.
type startMessage struct {
	Settings Settings `json:"settings"`
	Previous Handover `json:"previous"`
}

const (
	mostJSON = 64 << 20  // of one reply, without pictures
	mostBlob = 256 << 20 // one picture or paper
)

// writeOutcome writes JSON and blobs, each after its length. The text of a
// snapshot is one of them: it may be large, and travels as it is.
func writeOutcome(w io.Writer, o outcome) error {
	o, text := o.apart()
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	parts := [][]byte{body, nil, nil, text}
	switch {
	case o.Reply == nil:
	case o.Reply.Picture != nil:
		parts[1], parts[2] = o.Reply.Picture.Data, o.Reply.Picture.Model
	case o.Reply.Paper != nil:
		parts[1] = o.Reply.Paper.Data
	}
	for _, p := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		if _, err := w.Write(size[:]); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// apart is o without the text of its snapshot, and that text.
func (o outcome) apart() (outcome, []byte) {
	if o.Reply == nil || o.Reply.Result.Snapshot == nil {
		return o, nil
	}
	reply, snapshot := *o.Reply, *o.Reply.Result.Snapshot
	text := []byte(snapshot.Text)
	snapshot.Text = ""
	reply.Result.Snapshot, o.Reply = &snapshot, &reply
	return o, text
}

// readOutcome reads what writeOutcome wrote. The driver is not trusted: every
// length is bounded, and memory is taken only for bytes that came.
func readOutcome(r io.Reader) (outcome, error) {
	var o outcome
	body, err := readPart(r, mostJSON)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, err
	}
	if (o.Reply == nil) == (o.Error == nil) {
		return o, fmt.Errorf("the reply has neither a result nor an error, or both")
	}
	data, err := readPart(r, mostBlob)
	if err != nil {
		return o, err
	}
	model, err := readPart(r, mostBlob)
	if err != nil {
		return o, err
	}
	text, err := readPart(r, mostJSON)
	if err != nil {
		return o, err
	}
	if o.Reply != nil && o.Reply.Result.Snapshot != nil {
		o.Reply.Result.Snapshot.Text = strings.ToValidUTF8(string(text), "\ufffd")
	}
	switch {
	case o.Reply == nil:
	case o.Reply.Picture != nil:
		o.Reply.Picture.Data, o.Reply.Picture.Model = data, model
	case o.Reply.Paper != nil:
		o.Reply.Paper.Data = data
	}
	return o, nil
}

func readPart(r io.Reader, most uint64) ([]byte, error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(size[:])
	if n > most {
		return nil, fmt.Errorf("a part of %d bytes is above the bound of %d", n, most)
	}
	if n <= 1<<20 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && uint64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// socketPair makes the two ends of a link.
func socketPair() (parent, driver *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "driver link"), os.NewFile(uintptr(fds[1]), "driver link"), nil
}

func http2Only() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

func http2Config() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: 1000, MaxReadFrameSize: 256 << 10,
		MaxReceiveBufferPerConnection: 16 << 20, MaxReceiveBufferPerStream: 8 << 20,
	}
}

// newTransport speaks over one connection and makes no other.
func newTransport(conn net.Conn) *http.Transport {
	var once sync.Once
	return &http.Transport{
		Protocols: http2Only(), HTTP2: http2Config(), DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			c := net.Conn(nil)
			once.Do(func() { c = conn })
			if c == nil {
				return nil, net.ErrClosed
			}
			return c, nil
		},
	}
}

// soleListener accepts one connection, then waits to be closed.
type soleListener struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newSoleListener(c net.Conn) *soleListener {
	l := &soleListener{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- c
	return l
}

func (l *soleListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *soleListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *soleListener) Addr() net.Addr { return &net.UnixAddr{Name: "driver link", Net: "unix"} }

// outbox holds notices until the stream takes them. Exceeding its bound ends
// the driver (DRV-3).
type outbox struct {
	mu      sync.Mutex
	lines   []notice
	wake    chan struct{}
	full    chan struct{} // closed when the bound is exceeded
	overrun bool
}

const mostNotices = 20_000

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), full: make(chan struct{})}
}

// put queues a notice and never blocks. Of updates of one tab that nothing
// came between, the last one stands.
func (o *outbox) put(n notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.lines) - 1
	switch {
	case o.overrun:
		return
	case last >= 0 && supersedes(n, o.lines[last]):
		n.sent = append(n.sent, o.lines[last].sent...)
		o.lines[last] = n
		return
	case len(o.lines) >= mostNotices:
		o.overrun = true
		close(o.full)
		return
	}
	o.lines = append(o.lines, n)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func supersedes(n, old notice) bool {
	switch {
	case n.Event != nil && old.Event != nil:
		return n.Event.Kind == "tab_updated" && old.Event.Kind == "tab_updated" && n.Event.Tab.ID == old.Event.Tab.ID
	case n.Handover != nil:
		return old.Handover != nil
	}
	return false
}

// take returns what is queued, waiting for it until ctx ends.
func (o *outbox) take(ctx context.Context) ([]notice, error) {
	for {
		o.mu.Lock()
		lines := o.lines
		o.lines = nil
		o.mu.Unlock()
		if len(lines) > 0 {
			return lines, nil
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
