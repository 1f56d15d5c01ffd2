package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine bounds one message from a client: above the largest value to fill in
// (1 MiB, of which JSON can make six times as much).
const maxLine = 8 << 20

// Lines is the transport of a local client: one JSON message a line, in and out.
// What is not a message is answered as the protocol has it, and reading goes on:
// one bad line does not end a session. Use it once.
type Lines struct {
	in  io.Reader
	out io.Writer

	closeOnce sync.Once
	closed    chan struct{}
	gone      chan struct{}
	incoming  chan jsonrpc.Message

	writing sync.Mutex // of out

	mu    sync.Mutex
	open  int           // calls read and not answered
	quiet chan struct{} // closed when open is 0, made when somebody waits for it
}

// lastAnswers is how long calls may still take after the client closed its end:
// enough to answer a script that sends what it has and closes, and short enough
// not to keep a browser for a client that is gone.
const lastAnswers = 250 * time.Millisecond

// NewLines reads messages from in and writes to out. Close does not close either;
// reading goes on in the background until in ends or fails.
func NewLines(in io.Reader, out io.Writer) *Lines {
	return &Lines{in: in, out: out, closed: make(chan struct{}), gone: make(chan struct{}), incoming: make(chan jsonrpc.Message)}
}

// Gone is closed when the client closed its end, at once, whatever calls are
// still running.
func (l *Lines) Gone() <-chan struct{} { return l.gone }

// Connect implements the SDK's Transport.
func (l *Lines) Connect(context.Context) (sdk.Connection, error) {
	go l.receive()
	return l, nil
}

// SessionID implements the SDK's Connection.
func (l *Lines) SessionID() string { return "" }

// Close implements the SDK's Connection.
func (l *Lines) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return nil
}

// Read implements the SDK's Connection.
func (l *Lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-l.incoming:
		if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
			l.count(1)
		}
		return msg, nil
	case <-l.gone:
		l.waitQuiet(ctx)
		return nil, io.EOF
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection.
func (l *Lines) Write(_ context.Context, msg jsonrpc.Message) error {
	data, err := encode(msg)
	if err != nil {
		return err
	}
	if _, ok := msg.(*jsonrpc.Response); ok {
		defer l.count(-1)
	}
	return l.write(data)
}

// encode writes a message. A result is JSON already, in one line; it is put
// into its envelope as it is, since a snapshot may be large.
func encode(msg jsonrpc.Message) ([]byte, error) {
	res, ok := msg.(*jsonrpc.Response)
	if !ok || res.Error != nil || len(res.Result) == 0 || bytes.IndexByte(res.Result, '\n') >= 0 {
		return jsonrpc.EncodeMessage(msg)
	}
	id, err := json.Marshal(res.ID.Raw())
	if err != nil {
		return nil, err
	}
	const head, middle = `{"jsonrpc":"2.0","id":`, `,"result":`
	data := make([]byte, 0, len(head)+len(id)+len(middle)+len(res.Result)+2) // and a line end
	data = append(append(append(data, head...), id...), middle...)
	return append(append(data, res.Result...), '}'), nil
}

func (l *Lines) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
	if l.open <= 0 && l.quiet != nil {
		close(l.quiet)
		l.quiet = nil
	}
}

// waitQuiet returns when every call is answered, or after lastAnswers.
func (l *Lines) waitQuiet(ctx context.Context) {
	l.mu.Lock()
	if l.open <= 0 {
		l.mu.Unlock()
		return
	}
	if l.quiet == nil {
		l.quiet = make(chan struct{})
	}
	quiet := l.quiet
	l.mu.Unlock()
	timer := time.NewTimer(lastAnswers)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C:
	case <-l.closed:
	case <-ctx.Done():
	}
}

func (l *Lines) write(data []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.out.Write(append(data, '\n'))
	if err != nil {
		_ = l.Close() // a client that cannot be answered is gone
	}
	return err
}

// receive hands on messages until the client is gone or the connection closed.
func (l *Lines) receive() {
	defer close(l.gone)
	in := bufio.NewReaderSize(l.in, 64<<10)
	for {
		line, err := readLine(in)
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			l.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %d bytes", maxLine))
			continue
		case len(bytes.TrimSpace(line)) > 0:
			if !l.take(line) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// take hands on the messages of a line; false means that nobody reads any more.
func (l *Lines) take(line []byte) bool {
	var parts []json.RawMessage
	if json.Unmarshal(line, &parts) != nil || len(parts) == 0 { // not a batch
		parts = []json.RawMessage{line}
	}
	for _, part := range parts {
		if !json.Valid(part) {
			l.refuse(jsonrpc.CodeParseError, "the line is not JSON")
			continue
		}
		msg, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			l.refuse(jsonrpc.CodeInvalidRequest, "the line is not a JSON-RPC 2.0 message")
			continue
		}
		select {
		case l.incoming <- msg:
		case <-l.closed:
			return false
		}
	}
	return true
}

// refuse answers what has no ID that could be answered.
func (l *Lines) refuse(code int, sentence string) {
	data, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": sentence},
	})
	if err == nil {
		_ = l.write(data) // what a failure means, write sees to
	}
}

// readLine returns the next line without keeping more than the bound; a longer
// one is skipped as a whole.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if !long && len(line)+len(part) > maxLine {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && err == nil {
			err = bufio.ErrTooLong
		}
		return line, err
	}
}
