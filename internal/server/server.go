package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/cell"
	"github.com/reins-browser/reins/host"
	"github.com/reins-browser/reins/internal/capability"
	"github.com/reins-browser/reins/internal/store"
	"github.com/reins-browser/reins/mcp"
)

// Options make a server. Dir, Backends and URL are required.
type Options struct {
	// Dir is the runtime directory (DIR-1); the store is in it.
	Dir      string
	Backends []cell.Backend
	Limits   reins.Limits
	// AuditRows is how many rows the audit trail keeps; 0 is a million.
	AuditRows int64
	// Spares and SpareSpec as in [host.Options].
	Spares    int
	SpareSpec reins.BrowserSpec
	// Tools, Version and the rest of what agents' MCP sessions offer; Lease and
	// Readiness are the server's own.
	Agents mcp.Options
	// The rest is as in [DoorOptions].
	Files               fs.FS
	URL, Secret         string
	Hosts, Origins      []string
	AnyHost             bool
	Ancestors           []string
	Ask                 func(context.Context, Visit) error
	Proxies             []netip.Prefix
	OnlyProxies, Secure bool
	SessionLife         time.Duration
	Meters              *Meters
	SeparateMetrics     bool // not served by the door
	Version             string
	Logger              *slog.Logger
}

// The names of files in the runtime directory that are the server's.
const (
	stateFile = "state.db"
	// AdminKeyFile holds the key of a fresh server's administrator, 0600 (API-2).
	AdminKeyFile = "admin.key"
)

// Server is the served form: a host, its durable truth, and a door. Stop it.
type Server struct {
	o      Options
	log    *slog.Logger
	host   *host.Host
	store  *store.Store
	ledger *ledger
	keys   *Keyring
	truth  *truth
	door   *Door
	up     atomic.Bool // hooks answer: all of it is built
}

// Start takes the directory, brings back what is kept, and opens the door. Nobody is
// served before all of that is done. A start that fails leaves nothing running.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{o: o, log: o.Logger, keys: NewKeyring()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.o.Meters == nil {
		s.o.Meters = NewMeters(o.Version, nil)
	}
	s.host, err = host.New(host.Options{
		Dir: o.Dir, Limits: o.Limits, Backends: o.Backends, Logger: s.log, Spares: o.Spares, SpareSpec: o.SpareSpec,
		Hooks: reins.Hooks{Authorize: s.authorize, BeforeOperation: s.before, Audit: s.audit},
	})
	if err != nil {
		return nil, err
	}
	if err := s.host.Start(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if s.store, err = store.Open(ctx, filepath.Join(o.Dir, stateFile), store.Options{AuditRows: o.AuditRows}); err != nil {
		return nil, err
	}
	s.ledger = newLedger(s.store.Append, s.log)
	s.truth = &truth{host: s.host, store: s.store, log: s.log, lame: map[reins.ResourceKey]lame{}}
	if err := s.loadKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.openDoor(ctx); err != nil {
		return nil, err
	}
	s.up.Store(true)
	if err := s.truth.restore(ctx); err != nil {
		return nil, err
	}
	s.meter()
	return s, nil
}

// loadKeys makes the keys known, the first one made where there is none (API-2).
func (s *Server) loadKeys(ctx context.Context) error {
	made, err := s.store.FirstKey(ctx, "server", func(t reins.Token) error {
		return WritePrivate(filepath.Join(s.o.Dir, AdminKeyFile), []byte(string(t)+"\n"))
	})
	if err != nil {
		return err
	}
	if made {
		s.log.Info("an administrator's key was made", "file", filepath.Join(s.o.Dir, AdminKeyFile))
	}
	all, err := s.store.LiveKeys(ctx)
	for _, k := range all {
		s.keys.Add(k)
	}
	return err
}

// WritePrivate writes a file that only this user may read, whole or not at all, and on
// the disk when it returns.
func WritePrivate(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return reins.Errorf(reins.CodeFenced, "%s cannot be written: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the reason is err
			err = reins.Errorf(reins.CodeFenced, "%s cannot be written: %w", path, err)
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *Server) openDoor(ctx context.Context) error {
	id, err := s.store.Setting(ctx, "server", func() string { return strings.TrimPrefix(capability.NewID("srv"), "srv_") })
	if err != nil {
		return err
	}
	o := s.o
	agents := o.Agents
	agents.Version, agents.Logger = cmp.Or(agents.Version, o.Version), s.log
	d := DoorOptions{
		Runtime: s.truth, Keys: s.keys, Keeper: keeper{s}, Agents: &agents, Files: o.Files, URL: o.URL, Secret: o.Secret, ID: id,
		Hosts: o.Hosts, Origins: o.Origins, AnyHost: o.AnyHost, Ancestors: o.Ancestors, Ask: o.Ask,
		Proxies: o.Proxies, OnlyProxies: o.OnlyProxies, Secure: o.Secure, SessionLife: o.SessionLife,
		Projects: s.store.Projects, Ready: s.ready, Observe: o.Meters.Observe, Version: o.Version, Logger: s.log,
	}
	if !o.SeparateMetrics {
		d.Metrics = o.Meters.Handler()
	}
	s.door, err = NewDoor(d)
	return err
}

// Handler is the door.
func (s *Server) Handler() http.Handler { return s.door }

// Invite makes a one-time link for a person.
func (s *Server) Invite(in api.JoinForm) (api.Join, error) { return s.door.Invite(in, nil) }

// Done is closed when the server cannot work any more: see [host.Host.Done].
func (s *Server) Done() <-chan struct{} { return s.host.Done() }

// Err says why the server cannot work any more by itself, or nil.
func (s *Server) Err() error { return s.host.Err() }

// Drain gives no more leases, and returns when no action is under way, or ctx ends
// (LIFE-3).
func (s *Server) Drain(ctx context.Context) {
	s.truth.draining.Store(true)
	s.door.Wait(ctx)
}

// CloseDoors ends all streams and sessions with their reason and waits for them; what
// else is asked is refused from then on. Whoever serves the handler can then wait for
// its last answers before Stop.
func (s *Server) CloseDoors() { s.door.Close() }

// Stop ends everything in the reverse order of building, each even when another
// failed, and reports all failures together. The handler refuses from then on.
func (s *Server) Stop(ctx context.Context) error {
	if s.truth != nil {
		s.truth.draining.Store(true)
	}
	if s.door != nil {
		s.door.Close()
	}
	stopped := s.host.Stop(ctx)
	if s.ledger != nil {
		s.ledger.close()
	}
	if s.store == nil {
		return stopped
	}
	return errors.Join(stopped, s.store.Close())
}

// authorize is the host's hook (HK-1): an agent's key and a person's session have to be
// good still, each time. Who else may issue has shown an API key, and what was issued
// under one ends with it.
func (s *Server) authorize(_ context.Context, b reins.Binding) error {
	if capability.IsID("key", b.Peer) && b.Source == reins.SourceMCP {
		if k := s.keys.byID(b.Peer); k == nil || k.Binding == nil || !k.Binding.Equal(b) {
			return errKeyEnded()
		}
	}
	if capability.IsID("person", b.Peer) && !s.door.people.authorized(b.Peer, b) {
		return errNoSession()
	}
	return nil
}

// before is the host's gate (GATE-1): people's sessions are asked for once more, and who
// runs the server about control; that the operation is about to begin is on the disk
// before it does.
func (s *Server) before(ctx context.Context, op reins.Operation) error {
	if err := s.authorize(ctx, op.Authority.Binding); err != nil {
		return err
	}
	if v, asked := control(op); asked {
		if err := s.door.ask(ctx, v); err != nil {
			return err
		}
	}
	return s.ledger.attempt(ctx, op)
}

func (s *Server) audit(r reins.Record) {
	s.o.Meters.record(r)
	if s.up.Load() {
		s.ledger.outcome(r)
	}
}

// ready is what /readyz tells.
func (s *Server) ready(ctx context.Context) map[string]reins.Capable {
	out := map[string]reins.Capable{"leases": capable(nil)}
	if s.truth.draining.Load() {
		out["leases"] = capable(errDraining())
	}
	var running error
	select {
	case <-s.host.Done():
		running = cmp.Or(s.host.Err(), error(errDraining()))
	default:
	}
	out[reins.CapableRuntime] = capable(running)
	_, err := s.store.Projects(ctx)
	out["store"] = capable(err)
	audit := s.ledger.last.Load()
	if audit != nil {
		err = audit
	} else {
		err = nil
	}
	out["audit"] = capable(err)
	return out
}

// meter adds what is counted elsewhere to the meters.
func (s *Server) meter() {
	m := s.o.Meters
	m.gauge("reins_resources_unavailable", "Resources that are kept and cannot be had on this host.", func() float64 { return float64(len(s.truth.lameKeys())) })
	m.gauge("reins_api_keys", "API keys that are good.", func() float64 { return float64(s.keys.count()) })
	m.counter("reins_audit_dropped_total", "Audit records that did not fit the buffer.", func() float64 { return float64(s.host.Dropped()) })
	m.counter("reins_audit_failed_total", "Audit records that could not be written.", func() float64 { return float64(s.ledger.failed.Load()) })
	for name, pick := range map[string]func(a, b, c int) int{
		"reins_people_sessions": func(a, _, _ int) int { return a },
		"reins_people_pages":    func(_, b, _ int) int { return b },
		"reins_people_leases":   func(_, _, c int) int { return c },
	} {
		m.gauge(name, "People: "+strings.TrimPrefix(name, "reins_people_")+" there are.", func() float64 { return float64(pick(s.door.people.counts())) })
	}
}
