package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/server"
)

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	lastWords  = 2 * time.Second // for answers that are on their way when all ends
)

// serves is a server that runs.
type serves struct {
	*serving
	server  *server.Server
	http    []*http.Server
	failed  chan error // of a listener
	signals chan os.Signal
	undo    []func() // in the order in which they were made
}

// start opens the listeners, then the server, then lets requests in. What was made is
// undone when a later step fails. Signals count from the beginning.
func (s *serving) start(ctx context.Context, dir string) (_ *serves, err error) {
	r := &serves{serving: s, failed: make(chan error, 2), signals: make(chan os.Signal, 2)}
	signal.Notify(r.signals, syscall.SIGTERM, syscall.SIGINT)
	r.undo = append(r.undo, func() { signal.Stop(r.signals) })
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan struct{})
	defer close(started)
	go func() { // a signal breaks the start off; ends with it
		select {
		case sig := <-r.signals:
			r.signals <- sig // for wait, when the start was just over
			cancel()
		case <-started:
		}
	}()
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, listenError("--listen", s.listen, err)
	}
	r.undo = append(r.undo, func() { _ = l.Close() }) // serving has closed it, perhaps
	here := s.address(l)
	s.options.URL = s.url
	if s.url == "" {
		s.options.URL = here
	}
	s.options.Secret = rand.Text()
	s.options.Secure = s.options.URL[:6] == "https:"
	s.options.Dir, s.options.Backends = dir, s.backends(dir)
	tracer, flush, err := newTracer(ctx, s.otlp, s.log)
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, flush)
	s.options.Meters = server.NewMeters(version, tracer)
	if r.server, err = server.Start(ctx, s.options); err != nil {
		return nil, err
	}
	if err := r.listen(l); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	i := instance{URL: here, KeyFile: filepath.Join(dir, server.AdminKeyFile), Certificate: absolute(s.cert), Secret: s.options.Secret, PID: os.Getpid(), Started: time.Now().UTC()}
	remove, err := i.write(dir)
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	r.undo = append(r.undo, remove)
	s.tell(dir, here)
	return r, nil
}

func absolute(path string) string {
	if path == "" {
		return ""
	}
	a, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return a
}

func listenError(flag, address string, err error) error {
	code := reins.CodeInvalidInput
	if errors.Is(err, syscall.EADDRINUSE) {
		code = reins.CodeLocked
	}
	return reins.Errorf(code, "%s %s cannot be listened on: %w", flag, address, err)
}

// listen lets requests in.
func (r *serves) listen(l net.Listener) error {
	main := newHTTP(r.server.Handler(), r.log)
	if r.cert != "" {
		c := &certificate{cert: r.cert, key: r.key}
		if _, err := c.get(nil); err != nil {
			return err
		}
		main.TLSConfig = &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}
	}
	r.serve(main, l, r.cert != "")
	if r.metrics == "" {
		return nil
	}
	m, err := net.Listen("tcp", r.metrics)
	if err != nil {
		return listenError("--metrics-listen", r.metrics, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.options.Meters.Handler())
	r.metrics = m.Addr().String()
	r.serve(newHTTP(mux, r.log), m, false)
	return nil
}

func newHTTP(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serve serves a listener until the server is shut down.
func (r *serves) serve(h *http.Server, l net.Listener, secure bool) {
	r.http = append(r.http, h)
	go func() { // ends with Shutdown or Close, which stop waits for
		var err error
		if secure {
			err = h.ServeTLS(l, "", "")
		} else {
			err = h.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			r.failed <- reins.Errorf(reins.CodeInternal, "listening failed: %w", err)
		}
	}()
}

// wait returns when it was told to end and has, or could not go on. A second signal
// ends the process at once (LIFE-3): its children do not outlive it.
func (r *serves) wait() error {
	defer r.end()
	var cause error
	select {
	case sig := <-r.signals:
		r.log.Info("stopping", "signal", sig.String())
	case cause = <-r.failed:
	case <-r.server.Done():
		cause = r.server.Err()
	}
	go func() { // ends with the process
		<-r.signals
		os.Exit(130)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), r.drain)
	defer cancel()
	if cause == nil {
		r.server.Drain(ctx)
	}
	err := r.stop()
	if cause != nil {
		return cause
	}
	if err == nil {
		r.log.Info("stopped")
	}
	return err
}

// stop ends streams and sessions, lets the last answers out, and stops the server.
func (r *serves) stop() error {
	r.server.CloseDoors()
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	var wg sync.WaitGroup
	for _, h := range r.http {
		wg.Go(func() {
			if h.Shutdown(ctx) != nil {
				_ = h.Close() // whatever is left is cut off
			}
		})
	}
	wg.Wait()
	limit := r.options.Limits
	if full, err := limit.WithDefaults(); err == nil {
		limit = full
	}
	ctx, cancel = context.WithTimeout(context.Background(), limit.CleanUp+5*time.Second)
	defer cancel()
	return r.server.Stop(ctx)
}

func (r *serves) end() {
	for i := len(r.undo) - 1; i >= 0; i-- {
		r.undo[i]()
	}
}

// certificate is the TLS certificate of two files, read again when they changed.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	loaded *tls.Certificate
	stamp  [2]time.Time
}

// get implements [tls.Config.GetCertificate]. Files that cannot be read after a change
// leave the one before in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stamp [2]time.Time
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	if c.loaded != nil && stamp == c.stamp {
		return c.loaded, nil
	}
	made, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		if c.loaded != nil {
			return c.loaded, nil
		}
		return nil, reins.Errorf(reins.CodeInvalidInput, "--tls-cert and --tls-key: %w", err)
	}
	c.loaded, c.stamp = &made, stamp
	return c.loaded, nil
}
