package mcp

import (
	"context"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// events keeps what one session was sent, so that a client whose connection broke
// can have the rest (MCP-6): the newest, within replayBytes.
type events struct {
	*sdk.MemoryEventStore
	forgetting sync.Mutex
}

func newEvents() *events {
	e := &events{MemoryEventStore: sdk.NewMemoryEventStore(nil)}
	e.SetMaxBytes(replayBytes)
	return e
}

// forget drops all of it: it was made under a lease that has ended. The stream
// that a client listens to goes on, empty.
func (e *events) forget(session string) {
	e.forgetting.Lock()
	defer e.forgetting.Unlock()
	_ = e.SessionClosed(context.Background(), session) // in memory: it does not fail
	_ = e.Open(context.Background(), session, "")
}
