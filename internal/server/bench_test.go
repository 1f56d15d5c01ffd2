package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/cell"
)

// served starts a server for a benchmark.
func served(b *testing.B, dir string, limits reins.Limits) *Server {
	b.Helper()
	s, err := Start(b.Context(), Options{
		Dir: dir, Backends: []cell.Backend{noBrowser{reins.BackendProcess}}, URL: "http://127.0.0.1:1", Limits: limits,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkAction is an action that needs no browser, near and through the door: what
// the HTTP API adds to it, and the attempt that is on the disk before each.
func BenchmarkAction(b *testing.B) {
	dir := b.TempDir() + "/runtime"
	s := served(b, dir, reins.Limits{})
	h := httptest.NewServer(s.Handler())
	defer func() {
		s.CloseDoors()
		h.Close()
		if err := s.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	if _, err := s.truth.Register(b.Context(), reins.Registration{Key: reins.ResourceKey{Project: "p", ID: "a"}}); err != nil {
		b.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, AdminKeyFile))
	if err != nil {
		b.Fatal(err)
	}
	client, err := api.NewClient(api.ClientOptions{URL: h.URL, Key: strings.TrimSpace(string(key))})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	binding := reins.Binding{Project: "p", Resource: "a", Actor: "m", Role: reins.RoleHuman, Peer: "bench", Source: reins.SourceAPI}
	for _, c := range []struct {
		name string
		rt   reins.Runtime
	}{{"near", s.truth}, {"api", client}} {
		b.Run(c.name, func(b *testing.B) {
			made, err := c.rt.Issue(b.Context(), binding, 0)
			if err != nil {
				b.Fatal(err)
			}
			l, err := c.rt.Acquire(b.Context(), made.Token, binding)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Release(context.Background())
			for b.Loop() {
				if _, err := l.Do(b.Context(), reins.Call{Action: reins.ListArtifacts{}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStart is a start with 10,000 resources that are kept.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir() + "/runtime"
	limits := reins.Limits{Resources: 20_000}
	s := served(b, dir, limits)
	for i := range 10_000 {
		reg := reins.Registration{Key: reins.ResourceKey{Project: fmt.Sprint("p", i%100), ID: fmt.Sprint("r", i)}}
		if _, err := s.truth.Register(b.Context(), reg); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := served(b, dir, limits)
		b.StopTimer()
		if err := s.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
