package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/demo"
	"github.com/reins-browser/reins/mcp"
)

// served says what overHTTP serves.
type served struct {
	engine reins.Engine
	open   bool // also to clients without a token
}

// overHTTP serves MCP over HTTP for a runtime with a real browser that may reach
// the site; what it returns is where, and the token of a capability.
func overHTTP(t *testing.T, site *demo.Site, o served) (url string, token reins.Token) {
	t.Helper()
	l := newLocal(localOptions{
		dir: t.TempDir() + "/runtime", engine: o.engine, allow: site.Targets(), logger: slog.New(slog.DiscardHandler),
		say: func(format string, arguments ...any) { t.Logf(format, arguments...) },
	})
	up, err := l.ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	c, err := up.host.Issue(t.Context(), up.binding, 0)
	if err != nil {
		t.Fatal(err)
	}
	h, err := mcp.NewHTTPHandler(mcp.HTTPOptions{
		Authenticate: func(*http.Request) (reins.Binding, error) { return up.binding, nil },
		Acquire: func(ctx context.Context, given reins.Token, b reins.Binding) (reins.Lease, error) {
			if given == "" && o.open { // for a client that cannot bear one
				given = c.Token
			}
			return up.host.Acquire(ctx, given, b)
		},
		ReadinessOf: func(reins.Binding) reins.Readiness { return up.resource.Readiness() },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); server.Close() })
	return server.URL + "/mcp", c.Token
}

// MCP-1: the official Go client walks through the demo's shop over HTTP, in the
// version with sessions and in the one without.
func TestWalkOverHTTP(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			site, err := demo.Serve()
			if err != nil {
				t.Fatal(err)
			}
			defer site.Close()
			url, token := overHTTP(t, site, served{engine: reins.EngineShell})
			ctx, cancel := context.WithTimeout(context.Background(), 4*deadline)
			defer cancel()
			c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
				Connect(ctx, &sdk.StreamableClientTransport{
					Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)},
				}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("version %s", got)
			}
			tour := &demo.Tour{Site: site, Client: c, Out: testWriter{t}}
			if err := tour.Walk(ctx); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// bearer is a transport that bears a token.
type bearer reins.Token

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
