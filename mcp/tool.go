package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/tooltable"
)

// The names under which several tools are chosen at once.
const (
	ToolsetDefault = tooltable.ToolsetDefault // the six
	ToolsetTabs    = tooltable.ToolsetTabs    // the six, six about tabs, and the tab argument
	ToolsetFull    = tooltable.ToolsetFull    // all tools there are
)

// Toolsets lists the names of the toolsets.
func Toolsets() []string { return tooltable.Toolsets() }

// Verbs returns the verbs that the named toolsets and tools need, for the
// registration of a resource that they are to act on (CAP-7). No name means the
// default toolset; an unknown one is invalid_input.
func Verbs(names []string) ([]reins.Verb, error) { return tooltable.Verbs(names) }

// description is a tool as a client is told of it (MCP-4).
func description(t *tooltable.Tool, o tooltable.Offer) *sdk.Tool {
	hints := t.Hints()
	out := &sdk.Tool{
		Name:        t.Name(),
		Title:       t.Title(),
		Description: t.About(),
		InputSchema: t.InputSchema(o),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint:    hints.ReadOnly,
			DestructiveHint: &hints.Destructive,
			IdempotentHint:  hints.Idempotent,
		},
	}
	if !t.Document() {
		out.OutputSchema = t.OutputSchema()
	}
	return out
}
