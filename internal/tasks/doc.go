// Command tasks measures whether an agent gets things done: it starts a real
// `reins mcp` as an MCP client would, serves the pages of package site on
// loopback, and lets the scripted agents of package agents work through them.
//
//	go build -o bin/reins-tasks ./internal/tasks
//	bin/reins-tasks --reins bin/reins [--engine shell] [--seeds 3] [--only login] [--json]
//
// For every task and seed it prints whether the page itself found the task done,
// how many tool calls that took, how many bytes of text the agent had to read,
// and the time; then totals. It exits with 1 when a task that today's verbs can
// do was not done, with 2 when it could not measure.
//
// Each task gets a fresh tab; closing the tabs of the one before it is not
// counted. With --miniwob DIR generic agents also work on the pages of a
// checkout of MiniWoB++, which is not part of this repository.
package main
