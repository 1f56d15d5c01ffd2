package driver

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/redact"
)

// The link between the two halves is a socket pair that carries frames. The
// parent sends orders and cancels them; the driver sends one outcome for each
// order, and notices in between. Framing of our own takes a third of the time of HTTP/2
// here, of which nothing else was of use: both ends are one binary.
const (
	frameOrder   = 'o'
	frameCancel  = 'c'
	frameOutcome = 'r'
	frameNotice  = 'n'
	frameCast    = 'f' // a picture of a screencast
)

const (
	mostParts = 4        // of a frame
	mostJSON  = 64 << 20 // bytes of a part that is JSON or text
	mostBlob  = 256 << 20
)

// partBounds are how large the parts of a frame may be: JSON, a picture or
// paper, the picture for a model, text.
var partBounds = [mostParts]uint64{mostJSON, mostBlob, mostBlob, mostJSON}

// castBounds are those of a frame of a screencast, of which several may wait.
var castBounds = [mostParts]uint64{64 << 10, 16 << 20}

// wireFrame is one message on the link; the number is that of the order it is about.
type wireFrame struct {
	kind  byte
	id    uint64
	parts [][]byte
}

// wire is one end of the link. Any goroutine may write; one reads.
type wire struct {
	conn net.Conn
	in   *bufio.Reader

	writing chan struct{} // holds one thing while somebody writes
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), writing: make(chan struct{}, 1)}
}

// write is writeWhile for what is to be sent in any case.
func (w *wire) write(f wireFrame) error { return w.writeWhile(context.Background(), f) }

// writeWhile sends a frame whole, in one call to the kernel where it fits: kind,
// number of parts, ID, the length of each part, the parts. When ctx has ended before
// its turn has come nothing of it is sent; a frame that has begun is not cut.
func (w *wire) writeWhile(ctx context.Context, f wireFrame) error {
	head := append(make([]byte, 0, 10+8*mostParts), f.kind, byte(len(f.parts)))
	head = binary.BigEndian.AppendUint64(head, f.id)
	for _, p := range f.parts {
		head = binary.BigEndian.AppendUint64(head, uint64(len(p)))
	}
	buffers := append(make(net.Buffers, 0, 1+mostParts), head)
	buffers = append(buffers, f.parts...)
	select {
	case w.writing <- struct{}{}:
	case <-ctx.Done():
		return errNotSent
	}
	defer func() { <-w.writing }()
	if ctx.Err() != nil {
		return errNotSent
	}
	_, err := buffers.WriteTo(w.conn)
	return err
}

// read returns the next frame. A link that broke is not used again.
func (w *wire) read() (wireFrame, error) { return readFrame(w.in) }

// readFrame reads what write wrote. The driver is not trusted: every length is
// bounded, and memory is taken only for bytes that came.
func readFrame(r io.Reader) (wireFrame, error) {
	var head [10]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return wireFrame{}, err
	}
	f := wireFrame{kind: head[0], id: binary.BigEndian.Uint64(head[2:])}
	if head[1] > mostParts {
		return f, fmt.Errorf("a frame of %d parts is above the bound of %d", head[1], mostParts)
	}
	var sizes [8 * mostParts]byte
	if _, err := io.ReadFull(r, sizes[:8*int(head[1])]); err != nil {
		return f, unexpected(err)
	}
	bounds := partBounds
	if f.kind == frameCast {
		bounds = castBounds
	}
	for i := range int(head[1]) {
		p, err := readPart(r, binary.BigEndian.Uint64(sizes[8*i:]), bounds[i])
		if err != nil {
			return f, err
		}
		f.parts = append(f.parts, p)
	}
	return f, nil
}

func readPart(r io.Reader, n, most uint64) ([]byte, error) {
	if n > most {
		return nil, fmt.Errorf("a part of %d bytes is above the bound of %d", n, most)
	}
	if n <= 1<<20 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, unexpected(err)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && uint64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// unexpected is err, of an end in the middle of a frame.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// order is a Command on the link.
type order struct {
	Action      json.RawMessage   `json:"action,omitempty"`
	Lease       string            `json:"lease,omitempty"`
	Files       map[string]string `json:"files,omitempty"`
	Ask         bool              `json:"ask,omitempty"`
	Into        Place             `json:"into,omitzero"`
	Secret      string            `json:"secret,omitempty"`
	Redact      redact.Set        `json:"redact,omitempty"`
	Above       Numbers           `json:"above,omitzero"`
	Credentials []Credential      `json:"credentials,omitempty"`
	Watched     bool              `json:"watched,omitempty"`

	View *viewOrder `json:"view,omitempty"` // in the place of all the others
}

// outcome is what comes back for an order, before the blobs: one of the first
// three.
type outcome struct {
	Reply *Reply       `json:"reply,omitempty"`
	View  *viewed      `json:"view,omitempty"`
	Error *reins.Error `json:"error,omitempty"`

	Numbers Numbers `json:"numbers"` // what it names is not above these
}

// notice is what the driver tells by itself; one field is set.
type notice struct {
	Event    *Event    `json:"event,omitempty"`
	Handover *Handover `json:"handover,omitempty"`
	Ready    bool      `json:"ready,omitempty"`

	sent []chan struct{} // closed when it is on its way to the parent
	size int             // how many bytes it came in; 0 in the driver
}

// startMessage is what the child is started with.
type startMessage struct {
	Settings Settings `json:"settings"`
	Previous Handover `json:"previous"`
}

// frame is o as it travels: JSON, and apart from it the picture, that for a
// model, and the text of a snapshot, which may be large.
func (o outcome) frame(id uint64) (wireFrame, error) {
	o, text := o.apart()
	body, err := json.Marshal(o)
	if err != nil {
		return wireFrame{}, err
	}
	parts := [][]byte{body, nil, nil, text}
	switch {
	case o.View != nil && o.View.Frame != nil:
		parts[1] = o.View.Frame.JPEG
	case o.Reply == nil:
	case o.Reply.Picture != nil:
		parts[1], parts[2] = o.Reply.Picture.Data, o.Reply.Picture.Model
	case o.Reply.Paper != nil:
		parts[1] = o.Reply.Paper.Data
	}
	return wireFrame{kind: frameOutcome, id: id, parts: parts}, nil
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

// outcomeOf is the outcome in a frame.
func outcomeOf(f wireFrame) (outcome, error) {
	var o outcome
	if len(f.parts) != mostParts {
		return o, fmt.Errorf("an outcome has %d parts, want %d", len(f.parts), mostParts)
	}
	if err := json.Unmarshal(f.parts[0], &o); err != nil {
		return o, err
	}
	set := 0
	for _, is := range []bool{o.Reply != nil, o.View != nil, o.Error != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return o, fmt.Errorf("the outcome has %d of a result, a view and an error, want 1", set)
	}
	if err := o.sane(); err != nil {
		return o, err
	}
	if o.Reply != nil && o.Reply.Result.Snapshot != nil {
		o.Reply.Result.Snapshot.Text = strings.ToValidUTF8(string(f.parts[3]), "\ufffd")
	}
	switch {
	case o.View != nil && o.View.Frame != nil:
		o.View.Frame.JPEG = f.parts[1]
	case o.Reply == nil:
	case o.Reply.Picture != nil:
		o.Reply.Picture.Data, o.Reply.Picture.Model = f.parts[1], f.parts[2]
	case o.Reply.Paper != nil:
		o.Reply.Paper.Data = f.parts[1]
	}
	return o, nil
}

// socketPair makes the two ends of a link.
func socketPair() (parent, driver *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "driver link"), os.NewFile(uintptr(fds[1]), "driver link"), nil
}

// outbox holds notices until the stream takes them. Exceeding its bound ends
// the driver (DRV-3).
type outbox struct {
	mu      sync.Mutex
	lines   []notice
	bytes   int // of all lines
	wake    chan struct{}
	full    chan struct{} // closed when the bound is exceeded
	overrun bool
}

const mostNotices = 20_000

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), full: make(chan struct{})}
}

// put queues a notice and never blocks. Of updates of one tab that nothing
// came between, the last one stands. It reports whether there was room.
func (o *outbox) put(n notice) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.lines) - 1
	switch {
	case o.overrun:
		return false
	case last >= 0 && supersedes(n, o.lines[last]):
		n.sent = append(n.sent, o.lines[last].sent...)
		o.bytes += n.size - o.lines[last].size
		o.lines[last] = n
		return true
	case len(o.lines) >= mostNotices || o.bytes+n.size > mostWaiting:
		o.overrun = true
		close(o.full)
		return false
	}
	o.lines = append(o.lines, n)
	o.bytes += n.size
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
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
		o.lines, o.bytes = nil, 0
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
