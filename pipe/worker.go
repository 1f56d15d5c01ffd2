package pipe

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// Worker is the worker's end of a channel. It is safe for concurrent use. Close
// it.
type Worker struct {
	conn      *net.UnixConn
	transport *http.Transport
	client    *api.Client
	done      chan struct{}

	mu sync.Mutex // held while a connection is passed along
}

// Dial makes a worker of its end of a channel, which becomes the worker's. It
// does no I/O.
func Dial(conn *net.UnixConn) (*Worker, error) {
	if conn == nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the worker needs its end of a channel; use Inherited")
	}
	w := &Worker{conn: conn, done: make(chan struct{})}
	// A connection is made in microseconds, and one that waits for its next request
	// would hold a place.
	w.transport = &http.Transport{DialContext: w.connect, DisableKeepAlives: true, DisableCompression: true}
	var err error
	if w.client, err = api.NewClient(api.ClientOptions{URL: "http://localhost", Transport: w.transport}); err != nil {
		return nil, err
	}
	go w.watch()
	return w, nil
}

// Acquire turns a token that was issued for the channel's binding into a lease,
// with which the worker acts. The host renews it while the channel lives, and
// releases it when that ends. Its errors are those of [reins.Runtime].Acquire.
func (w *Worker) Acquire(ctx context.Context, t reins.Token) (reins.Lease, error) {
	return w.client.Acquire(ctx, t, reins.Binding{}) // the channel knows
}

// Done is closed when the channel has ended, at either side.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Close releases the worker's leases and ends the channel. Idempotent.
func (w *Worker) Close() error {
	_ = w.client.Close()
	_ = w.conn.Close()
	<-w.done
	return nil
}

// watch ends the worker with its channel.
func (w *Worker) watch() {
	defer close(w.done)
	_, _ = w.conn.Read(make([]byte, 1)) // a host says nothing; what ends it is an end
	_ = w.conn.Close()
	_ = w.client.Close()
}

// connect passes the end of a new connection to the host.
func (w *Worker) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	defer mine.Close()
	if err := w.pass(ctx, theirs); err != nil {
		return nil, err
	}
	return connOf(mine)
}

func (w *Worker) pass(ctx context.Context, f *os.File) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		_ = w.conn.SetWriteDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-told // before the next one sets its own
		}
	}()
	_, _, err := w.conn.WriteMsgUnix([]byte{knocking}, unix.UnixRights(int(f.Fd())), nil)
	if gone := reins.ContextError(ctx); err != nil && gone != nil {
		return gone
	}
	return err
}
