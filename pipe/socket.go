package pipe

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
)

// Pair makes the two ends of a channel: the host's, and the worker's as a file
// for its inheritance ([os/exec.Cmd.ExtraFiles]). Close the file when the worker
// has been started. The worker makes a connection of it with [Inherited].
func Pair() (host *net.UnixConn, worker *os.File, err error) {
	mine, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer mine.Close()
	if host, err = connOf(mine); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return host, theirs, nil
}

func socketPair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, reins.Errorf(reins.CodeUnsafeHost, "no socket pair could be made: %w", err).In(reins.PhaseConnect)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// Inherited is the worker's end that it was started with: descriptor 3 is the
// first of ExtraFiles.
func Inherited(descriptor uintptr) (*net.UnixConn, error) {
	f := os.NewFile(descriptor, "pipe")
	if f == nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "%d is no descriptor", descriptor)
	}
	defer f.Close()
	return connOf(f)
}

// connOf makes a connection of a file, which stays open; invalid_input when it is
// anything but an end of a stream socket of this machine.
func connOf(f *os.File) (*net.UnixConn, error) {
	bad := func(err error) error {
		return reins.Errorf(reins.CodeInvalidInput, "descriptor %d is not the end of a unix stream socket", f.Fd()).In(reins.PhaseConnect).Because(err)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, bad(err)
	}
	var listens int
	var is, heard error
	err = raw.Control(func(fd uintptr) {
		var domain, kind int
		domain, is = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		if is == nil {
			kind, is = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
		}
		if is == nil && (domain != unix.AF_UNIX || kind != unix.SOCK_STREAM) {
			is = errors.New("another kind of socket")
		}
		listens, heard = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	})
	if err = errors.Join(err, is, heard); err != nil || listens != 0 {
		return nil, bad(err)
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, bad(err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, bad(nil)
	}
	return u, nil
}

// Listener is a unix socket on which one worker is awaited. Close it.
type Listener struct {
	listener *net.UnixListener
	user     int
}

// Listen makes a socket of mode 0600 at a path where nothing is yet. User is who
// may connect: a user ID; that of the worker, or one's own.
func Listen(path string, user int) (*Listener, error) {
	if path == "" || path[0] != '/' || len(path) > 107 {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the path of a socket is absolute and has at most 107 bytes").In(reins.PhaseConnect)
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var mode error
		// Before it has a name: what it is bound as is never open to others.
		if err := raw.Control(func(fd uintptr) { mode = unix.Fchmod(int(fd), 0o600) }); err != nil {
			return err
		}
		return mode
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "no socket can be made at %.200q: %w", path, err).In(reins.PhaseConnect)
	}
	return &Listener{l.(*net.UnixListener), user}, nil
}

// Accept waits until a process of the right user connects, and returns the host's
// end; the socket is gone then. Others are turned away and end nothing.
func (l *Listener) Accept(ctx context.Context) (*net.UnixConn, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		c, err := l.listener.AcceptUnix()
		if err != nil {
			if gone := reins.ContextError(ctx); gone != nil {
				return nil, gone
			}
			return nil, reins.Errorf(reins.CodeConnectionClosed, "the socket was closed before a worker came: %w", err).In(reins.PhaseConnect)
		}
		if peer, err := credentials(c); err != nil || int(peer.Uid) != l.user {
			c.Close()
			continue
		}
		_ = l.Close() // it has served its purpose
		return c, nil
	}
}

// Close removes the socket. Idempotent.
func (l *Listener) Close() error {
	if err := l.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return reins.Errorf(reins.CodeInternal, "the socket could not be closed: %w", err)
	}
	return nil
}

// credentials are those of the process that connected, as the kernel kept them.
func credentials(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	var got error
	if err := raw.Control(func(fd uintptr) { peer, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	return peer, got
}
