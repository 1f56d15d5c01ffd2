package mcp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// What the door and both ends of the protocol add to a call: a snapshot of the
// default size over an in-memory connection.
func BenchmarkSnapshot(b *testing.B) {
	res := &reins.Result{Tab: shop, Selected: "t1", Snapshot: &reins.SnapshotResult{Text: strings.Repeat("- button \"Save\" [ref=f1e12]\n", 850)}}
	server, err := mcp.NewServer(mcp.Options{Lease: give(newFakeLease(func(context.Context, reins.Call) (*reins.Result, error) { return res, nil }))})
	if err != nil {
		b.Fatal(err)
	}
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- server.Serve(b.Context(), &sdk.IOTransport{Reader: far, Writer: far}) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(), &sdk.IOTransport{Reader: near, Writer: near}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.CallTool(b.Context(), &sdk.CallToolParams{Name: "browser_snapshot", Arguments: map[string]any{}}); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
	<-served
}

// The same over HTTP, on loopback.
func BenchmarkHTTP(b *testing.B) {
	res := &reins.Result{Tab: shop, Selected: "t1", Snapshot: &reins.SnapshotResult{Text: strings.Repeat("- button \"Save\" [ref=f1e12]\n", 850)}}
	lease := newFakeLease(func(context.Context, reins.Call) (*reins.Result, error) { return res, nil })
	h, err := mcp.NewHTTPHandler(mcp.HTTPOptions{
		Authenticate: func(*http.Request) (reins.Binding, error) { return bindingOf("bench"), nil },
		Acquire:      func(context.Context, reins.Token, reins.Binding) (reins.Lease, error) { return lease, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer func() { h.Close(); s.Close() }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil).Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: s.URL}, nil)
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := c.CallTool(b.Context(), &sdk.CallToolParams{Name: "browser_snapshot", Arguments: map[string]any{}}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "ms-p50")
	_ = c.Close()
}
