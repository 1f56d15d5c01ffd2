package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/cell/process"
	"github.com/reins-browser/reins/internal/server"
	"github.com/reins-browser/reins/mcp"
	"github.com/reins-browser/reins/viewer"
)

// serveDirectory is the runtime directory of `reins serve` below the user's own.
const serveDirectory = "serve"

// hookKeyVariable is the environment variable with the key of --people-hook.
const hookKeyVariable = "REINS_PEOPLE_HOOK_KEY"

// serveFlags are the settings of `reins serve`.
type serveFlags struct {
	browser   mcpFlags // chromium, engine, run-as, tools, max-bytes, log-level
	dir       string
	listen    string
	url       string
	config    string
	cert, key string
	proxies   []string
	hosts     []string
	origins   []string
	anyHost   bool
	ancestors []string
	hook      string
	limits    limitFlag
	auditRows int64
	spares    int
	metrics   string
	otlp      string
	session   time.Duration
	drain     time.Duration
	logFormat string
}

func newServe(io stdio) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve browsers to agents, programs and people",
		Long: `Serves the HTTP API, MCP for agents and pages for people, over browsers of this
machine. Resources, attachments, retirements, API keys and the audit trail last; they are
in the runtime directory.

Without any setting it serves this machine only. To serve others it needs TLS
(--tls-cert, --tls-key) or a proxy that has it (--trusted-proxy). Started as root, it
becomes an ordinary user first.

Each flag can also be given by the environment (REINS_LISTEN for --listen) or by a line
of the file that --config names ("listen = 127.0.0.1:7777"); the command line counts
before the environment, that before the file.

SIGTERM or SIGINT ends it: no new leases, calls under way may end (--drain), people
are told, then browsers are closed. A second one ends it at once.

Limits (--limit NAME=VALUE), each with its default and range:
` + limitHelp(),
		Example: `  reins serve                                   for this machine, at 127.0.0.1:7777
  reins view                                    a link that lets you in
  reins serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --url https://tools.site.test
  reins serve --listen 10.0.0.5:7777 --trusted-proxy 10.0.0.2 --url https://tools.site.test
  reins serve --limit resources=10000 --limit cell_memory=2G --spares 2`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}
			s, err := f.check(io)
			if err != nil {
				return err
			}
			if err := becomeOrdinary(f.browser.runAs); err != nil {
				return err
			}
			return s.serve(cmd.Context())
		},
	}
	f.add(cmd)
	return cmd
}

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "runtime `directory` (default: $XDG_STATE_HOME/reins/serve)")
	flags.StringVar(&f.config, "config", "", "`file` with settings, one \"name = value\" a line")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7777", "`address` to listen on; port 0 is a free one")
	flags.StringVar(&f.url, "url", "", "`address` by which people and agents reach the server (default: that of --listen)")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the TLS certificate chain; read again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "`file` with its key")
	flags.StringSliceVar(&f.proxies, "trusted-proxy", nil, "`address` or prefix of a proxy whose X-Forwarded-For is believed (repeatable); without TLS only it and this machine are served")
	flags.StringSliceVar(&f.hosts, "host", nil, "further `name` by which clients reach the server (repeatable)")
	flags.StringSliceVar(&f.origins, "origin", nil, "further `origin` of pages that may talk to the server (repeatable)")
	flags.BoolVar(&f.anyHost, "any-host", false, "answer to every name: only behind a proxy that checks it, else any web page can reach the server")
	flags.StringSliceVar(&f.ancestors, "frame-ancestor", nil, "`origin` of a page that may show people's pages in a frame (repeatable)")
	flags.StringVar(&f.hook, "people-hook", "", "`address` that is asked, with $"+hookKeyVariable+" as bearer token, when a person's page opens a resource or a stream, and before it takes or gives control; any success is a yes")
	flags.Var(&f.limits, "limit", "a limit of the list above (repeatable)")
	flags.Int64Var(&f.auditRows, "audit-rows", 1_000_000, "`rows` that the audit trail keeps")
	flags.IntVar(&f.spares, "spares", 0, "`browsers` kept started for the next resources, 0 to 64")
	flags.StringVar(&f.metrics, "metrics-listen", "", "`address` that serves /metrics alone (default: the server's own, to this machine and administrators)")
	flags.StringVar(&f.otlp, "otlp-endpoint", "", "`address` that traces are sent to by OTLP over HTTP (default: as OTEL_EXPORTER_OTLP_ENDPOINT says, else none)")
	flags.DurationVar(&f.session, "session-life", 12*time.Hour, "how long a person stays signed in, 1m to 720h")
	flags.DurationVar(&f.drain, "drain", 3*time.Second, "how long calls under way may go on after SIGTERM, 0 to 10m")
	flags.StringVar(&f.logFormat, "log-format", "json", "form of the log on stderr: json, text")
	f.browser.addBrowser(cmd)
	flags.StringSliceVar(&f.browser.tools, "tools", nil, "tools that agents are offered: toolsets ("+strings.Join(mcp.Toolsets(), ", ")+") or single ones (default: default)")
	flags.IntVar(&f.browser.maxBytes, "max-bytes", 0, "size in `bytes` of a snapshot that names none, 1000 to 1000000 (default 24000)")
	flags.StringVar(&f.browser.logLevel, "log-level", "info", "what the log tells: debug, info, warn, error")
}

// serving is what `reins serve` is about to do, checked.
type serving struct {
	serveFlags
	io       stdio
	log      *slog.Logger
	options  server.Options
	loopback bool
}

// check validates all settings before anything is opened.
func (f *serveFlags) check(io stdio) (*serving, error) {
	s := &serving{serveFlags: *f, io: io}
	var err error
	if s.log, err = f.logger(io.err); err != nil {
		return nil, err
	}
	if _, _, err := f.browser.check(stdio{io.in, io.out, discard{}}); err != nil {
		return nil, err
	}
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(s.log.Handler(), slog.LevelDebug).Writer())
	if f.dir != "" {
		if s.dir, err = filepath.Abs(f.dir); err != nil {
			return nil, reins.Errorf(reins.CodeInvalidInput, "--dir %q is not a path: %w", f.dir, err)
		}
	}
	if f.drain < 0 || f.drain > 10*time.Minute {
		return nil, reins.Errorf(reins.CodeInvalidInput, "--drain is %s; use 0 to 10m", f.drain)
	}
	if f.session < time.Minute || f.session > 720*time.Hour {
		return nil, reins.Errorf(reins.CodeInvalidInput, "--session-life is %s; use 1m to 720h", f.session)
	}
	if _, err := f.limits.limits.WithDefaults(); err != nil {
		return nil, err
	}
	if err := s.checkNetwork(); err != nil {
		return nil, err
	}
	if f.hook != "" {
		if s.options.Ask, err = server.AskAt(f.hook, os.Getenv(hookKeyVariable)); err != nil {
			return nil, err
		}
	}
	s.options = server.Options{
		Limits: f.limits.limits, AuditRows: f.auditRows, Spares: f.spares,
		SpareSpec: reins.BrowserSpec{Engine: reins.Engine(f.browser.engine)},
		Agents:    mcp.Options{Tools: f.browser.tools, People: true, SnapshotBytes: f.browser.maxBytes},
		Hosts:     s.hosts, Origins: s.origins, AnyHost: f.anyHost, Ancestors: f.ancestors,
		Proxies: s.options.Proxies, Ask: s.options.Ask, OnlyProxies: !s.loopback && f.cert == "",
		SessionLife: f.session, SeparateMetrics: f.metrics != "", Version: version, Logger: s.log, Files: viewer.Files(),
	}
	return s, nil
}

// discard drops what the check of other flags would say.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (f *serveFlags) logger(to io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.browser.logLevel)); err != nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "--log-level %q is unknown; use debug, info, warn or error", f.browser.logLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(to, o)), nil
	case "text":
		return slog.New(slog.NewTextHandler(to, o)), nil
	}
	return nil, reins.Errorf(reins.CodeInvalidInput, "--log-format %q is unknown; use json or text", f.logFormat)
}

// checkNetwork checks where it listens, and that it does not give itself to a network
// without TLS (API-6, MCP-7).
func (s *serving) checkNetwork() error {
	if (s.cert == "") != (s.key == "") {
		return reins.Errorf(reins.CodeInvalidInput, "--tls-cert and --tls-key belong together; give both")
	}
	var err error
	if s.loopback, err = onLoopback("--listen", s.listen); err != nil {
		return err
	}
	for _, p := range s.proxies {
		prefix, err := netip.ParsePrefix(p)
		if a, aerr := netip.ParseAddr(p); aerr == nil {
			prefix, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
		}
		if err != nil {
			return reins.Errorf(reins.CodeInvalidInput, "--trusted-proxy %.60q is no address or prefix such as 10.0.0.2 or 10.0.0.0/24", p)
		}
		s.options.Proxies = append(s.options.Proxies, prefix.Masked())
	}
	if !s.loopback && s.cert == "" && len(s.proxies) == 0 {
		return reins.Errorf(reins.CodeDenied, "%s is reached by others, and there is no TLS; give --tls-cert and --tls-key, or the proxy that has it with --trusted-proxy, or listen on 127.0.0.1", s.listen)
	}
	if s.metrics != "" {
		if _, err := onLoopback("--metrics-listen", s.metrics); err != nil {
			return err
		}
	}
	if s.url == "" {
		return nil
	}
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return reins.Errorf(reins.CodeInvalidInput, "--url %.100q is no address such as https://tools.site.test", s.url)
	}
	s.url = u.Scheme + "://" + u.Host
	s.hosts = append(s.hosts, u.Host)
	s.origins = append(s.origins, s.url)
	return nil
}

// onLoopback reports whether nobody but this machine reaches an address.
func onLoopback(flag, address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, reins.Errorf(reins.CodeInvalidInput, "%s %.100q is no address such as 127.0.0.1:7777", flag, address)
	}
	if host == "localhost" {
		return true, nil
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback(), nil
}

// directory is the runtime directory, whose parent is made when it is missing.
func (s *serving) directory() (string, error) {
	if s.dir != "" {
		return s.dir, nil
	}
	base, err := stateDir()
	return filepath.Join(base, serveDirectory), err
}

func (s *serving) backends(dir string) []cell.Backend {
	o := process.Options{Directory: filepath.Dir(dir)}
	if s.browser.chromium != "" {
		if reins.Engine(s.browser.engine) == reins.EngineShell {
			o.Shell = s.browser.chromium
		} else {
			o.Chromium = s.browser.chromium
		}
	}
	return []cell.Backend{process.New(o)}
}

// address is the URL of a listener: for people when nothing else is said, and for
// this machine.
func (s *serving) address(l net.Listener) string {
	scheme := "http"
	if s.cert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return scheme + "://" + l.Addr().String()
	}
	if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// tell prints where everything is.
func (s *serving) tell(dir, here string) {
	say := func(format string, a ...any) { fmt.Fprintf(s.io.out, format+"\n", a...) }
	say("reins %s serves.", version)
	say("  pages      %s/    `reins view` prints a link that lets you in", s.options.URL)
	say("  API        %s/v1  described at %s/docs", s.options.URL, s.options.URL)
	say("  MCP        %s/mcp", s.options.URL)
	say("  admin key  %s", filepath.Join(dir, server.AdminKeyFile))
	say("  data       %s", dir)
	if here != s.options.URL {
		say("  listens    %s", here)
	}
	if s.metrics != "" {
		say("  metrics    http://%s/metrics", s.metrics)
	}
}

// run is serving until it is told to end, or cannot go on.
func (s *serving) serve(ctx context.Context) error {
	dir, err := s.directory()
	if err != nil {
		return err
	}
	running, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	return running.wait()
}
