package child

import (
	"io"
	"strings"
	"sync"
)

const tailSize = 16 << 10

// tail keeps the last bytes written to it. The zero value is empty.
type tail struct {
	mu  sync.Mutex
	buf []byte // at most 2*tailSize, so that trimming is rare
}

// readFrom reads r to its end, keeping the tail; errors end it alike.
func (t *tail) readFrom(r io.Reader) {
	chunk := make([]byte, 4<<10)
	for {
		n, err := r.Read(chunk)
		t.add(chunk[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*tailSize {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailSize:]...)
	}
}

// String returns the tail as valid UTF-8.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.buf[max(0, len(t.buf)-tailSize):]), "\uFFFD")
}
