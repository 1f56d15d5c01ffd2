package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/reinstest"
)

// near makes hosts over fakes for the contract suite.
func near(t *testing.T, s reinstest.Setup) reinstest.Subject {
	w := newWorld(t, t.TempDir(), s.Hooks, s.Limits)
	t.Cleanup(func() { w.stop(t) })
	return reinstest.Subject{Runtime: w.host, Stop: w.host.Stop}
}

// far makes clients of such hosts, over a real server on loopback.
func far(t *testing.T, s reinstest.Setup) reinstest.Subject {
	subject := near(t, s)
	h, err := api.New(api.Options{
		Runtime:      subject.Runtime,
		Authenticate: func(*http.Request) (api.Identity, error) { return api.Identity{Admin: true}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(h.Close)
	client, err := api.NewClient(api.ClientOptions{URL: server.URL, Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return reinstest.Subject{Runtime: client, Stop: func(ctx context.Context) error { return subject.Stop(ctx) }}
}

// TestContract holds the host against the ports, and the HTTP API over it
// (API-1).
func TestContract(t *testing.T) {
	t.Run("near", func(t *testing.T) { reinstest.Run(t, near) })
	t.Run("far", func(t *testing.T) { reinstest.Run(t, far) })
}
