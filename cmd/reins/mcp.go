package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
	"github.com/reins-browser/reins/mcp"
)

// mcpFlags are the command line of `reins mcp`.
type mcpFlags struct {
	dir      string
	allow    []string
	chromium string
	engine   string
	runAs    string
	tools    []string
	maxBytes int
	logLevel string

	server, keyFile, certificate string // of one that runs elsewhere
}

func newMCP(io stdio) *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Give one MCP client a browser, over stdin and stdout",
		Long: `Speaks the Model Context Protocol on stdin and stdout and gives the client at
the other end a sealed Chromium of its own. There is nothing to set up: Chromium
starts while the client initialises, and all of it is gone when the client ends.
Meanwhile ` + "`reins view`" + ` prints a link to a page on which you watch it and take over.

The browser reaches the public web and nothing private: --allow names what else.
Started as root, it becomes an ordinary user first.`,
		Example: `  claude mcp add reins -- reins mcp
  reins mcp --allow 127.0.0.1:3000          it may also reach your own server
  reins mcp --allow 10.1.0.0/16             or a network
  reins mcp --tools tabs                    tools for several tabs
  reins mcp --tools full                    all tools: drag, wait, read, PDF and more
  REINS_KEY=… reins mcp --server https://tools.site.test
                                            speak for a running reins serve`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, s, err := f.check(io)
			if err != nil {
				return err
			}
			if f.server != "" {
				return f.speakFor(cmd.Context(), io, o.logger)
			}
			if err := becomeOrdinary(f.runAs); err != nil {
				return err
			}
			return serveMCP(cmd.Context(), io, newLocal(o), s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "runtime `directory`, private to this process (default: a free one under $XDG_STATE_HOME/reins)")
	flags.StringArrayVar(&f.allow, "allow", nil, "private `target` that the browser may reach: HOST:PORT or a prefix such as 10.1.0.0/16 (repeatable)")
	f.addBrowser(cmd)
	flags.StringSliceVar(&f.tools, "tools", nil, "toolsets ("+strings.Join(mcp.Toolsets(), ", ")+") or single tools (default: default)")
	flags.IntVar(&f.maxBytes, "max-bytes", 0, "size in `bytes` of a snapshot that names none, 1000 to 1000000 (default 24000)")
	flags.StringVar(&f.server, "server", "", "`address` of a running reins serve to speak for, instead of a runtime of its own; the agent's key is in $"+keyVariable)
	flags.StringVar(&f.keyFile, "key-file", "", "`file` with the agent's key, instead of $"+keyVariable)
	flags.StringVar(&f.certificate, "ca", "", "`file` with a certificate to be trusted besides the system's")
	flags.StringVar(&f.logLevel, "log-level", "warn", "what stderr tells beside a few plain lines: debug, info, warn, error")
	return cmd
}

// addBrowser adds the flags about which browser runs as whom.
func (f *mcpFlags) addBrowser(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.chromium, "chromium", "", "`path` of the browser's program (default: where distributions put it)")
	flags.StringVar(&f.engine, "engine", "full", "\"full\" Chromium, or \"shell\", the smaller headless one")
	flags.StringVar(&f.runAs, "run-as", "", "`user` to become when started as root (default: who called sudo, else reins)")
}

// check validates all of the command line before anything is opened.
func (f *mcpFlags) check(io stdio) (localOptions, mcp.Options, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return localOptions{}, mcp.Options{}, reins.Errorf(reins.CodeInvalidInput, "--log-level %q is unknown; use debug, info, warn or error", f.logLevel)
	}
	logger := slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: level}))
	// net/http writes there what a host says unasked: a page's words, for nobody.
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer())
	o := localOptions{
		chromium: f.chromium, engine: reins.Engine(f.engine), allow: f.allow, logger: logger, watched: true,
		say: func(format string, arguments ...any) {
			if level < slog.LevelError {
				fmt.Fprintf(io.err, "reins mcp: "+format+"\n", arguments...)
			}
		},
	}
	s := mcp.Options{Tools: f.tools, People: true, Version: version, SnapshotBytes: f.maxBytes, Logger: logger}
	var err error
	if f.dir != "" {
		if o.dir, err = filepath.Abs(f.dir); err != nil {
			return o, s, reins.Errorf(reins.CodeInvalidInput, "--dir %q is not a path: %w", f.dir, err)
		}
	}
	if err := (reins.Snapshot{MaxBytes: f.maxBytes}).Validate(); err != nil {
		return o, s, asFlags(err, map[string]string{"max_bytes": "--max-bytes"})
	}
	if o.verbs, err = mcp.Verbs(f.tools); err != nil {
		return o, s, err
	}
	spec, err := o.spec().WithDefaults()
	if err != nil {
		return o, s, err
	}
	door, err := egress.New(egress.Options{Policy: spec.Egress, Refuse: true})
	if err != nil {
		return o, s, asFlag(err)
	}
	door.Close()
	return o, s, nil
}

// asFlag names the flag that a rule of the network door came from: here all of
// them come from one.
func asFlag(err error) error {
	e := reins.AsError(err)
	rest, ok := strings.CutPrefix(e.Message, "egress allow_private entry ")
	if !ok {
		return err
	}
	return reins.Errorf(e.Code, "--allow %s", rest)
}

// lastCalls is how long calls of a client that is gone may go on before the
// runtime under them is stopped. Every process is gone within a second (OVW-1).
const lastCalls = 300 * time.Millisecond

// serveMCP speaks with the client until it is gone or a signal came, and leaves
// nothing behind. A second signal ends the process at once; its children do not
// outlive it.
func serveMCP(ctx context.Context, io stdio, l *local, o mcp.Options) error {
	o.Lease, o.Readiness = l.lease, l.readiness
	server, err := mcp.NewServer(o)
	if err != nil {
		return err
	}
	if isTerminal(io.in) {
		l.options.say("this speaks MCP to the program that starts it; `reins demo` shows it at work. Ctrl-C ends it.")
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	// A client that closed its end of stdout only is gone too: writing fails then,
	// and must not be the end of this process before it has cleaned up.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	l.warm()
	lines := mcp.NewLines(io.in, io.out)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, lines) }()
	told := false // by a signal
	select {
	case err = <-served:
		served <- err
	case <-lines.Gone():
	case <-signals:
		told = true
		cancel()
	}
	go atOnce(signals, told)
	return finish(l, served)
}

// atOnce ends the process at the second signal (LIFE-3). A client that is gone
// may still send the first one: that asks for no more than what is under way.
func atOnce(signals <-chan os.Signal, told bool) {
	if !told {
		<-signals
	}
	<-signals
	os.Exit(130)
}

// finish waits a moment for the last calls, then stops the runtime under them.
// Answers that the client does not take end with the process: a client that keeps
// its end of stdout open and reads nothing does not keep the server.
func finish(l *local, served <-chan error) error {
	err, done := within(lastCalls, served)
	if stopped := l.close(); stopped != nil {
		return stopped
	}
	if !done {
		err, _ = within(lastCalls, served)
	}
	return err
}

// within returns what served brings, when it brings it in time.
func within(limit time.Duration, served <-chan error) (err error, done bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err = <-served:
		return err, true
	case <-timer.C:
		return nil, false
	}
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// untilSignal returns a context that ends with SIGTERM or SIGINT.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}
