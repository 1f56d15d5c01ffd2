package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/reins-browser/reins/internal/tasks/agents"
	"github.com/reins-browser/reins/internal/tasks/site"
)

// Bounds of one run.
const (
	taskLimit    = 60 * time.Second
	verdictLimit = 3 * time.Second // after the agent's last call
)

// result is what one run came to.
type result struct {
	Task   string        `json:"task"`
	Seed   uint64        `json:"seed"`
	Done   bool          `json:"done"`
	Detail string        `json:"detail,omitempty"`
	Wall   time.Duration `json:"wall_ns"`
	tally
}

// field is the site on loopback.
type field struct {
	*site.Site
	Host   string // "127.0.0.1:PORT"
	server *http.Server
	ended  chan struct{}
}

// serve puts the site on a free port of loopback, with MiniWoB++ when there is
// a checkout; close ends it.
func serve(checkout string) (*field, error) {
	s := site.New()
	if checkout != "" {
		if err := s.MiniWoB(checkout); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &field{Site: s, Host: l.Addr().String(), server: &http.Server{Handler: s}, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		_ = f.server.Serve(l) // returns when the server is closed
	}()
	return f, nil
}

func (f *field) close() {
	_ = f.server.Close()
	<-f.ended
}

// allow lists what the browser must be let to: the site by its two names, which
// make two sites of it.
func (f *field) allow() []string {
	_, port, _ := net.SplitHostPort(f.Host)
	return []string{f.Host, "localhost:" + port}
}

// run lets a task's agent work on it once.
func run(ctx context.Context, s *session, f *field, task agents.Task, seed uint64) result {
	res := result{Task: task.Name, Seed: seed}
	ctx, cancel := context.WithTimeoutCause(ctx, taskLimit, fmt.Errorf("the task took longer than %s", taskLimit))
	defer cancel()
	id := fmt.Sprintf("%s.%d.%d", task.Name, seed, time.Now().UnixNano())
	defer f.Forget(id)
	start := time.Now()
	path := site.Path
	if task.Elsewhere {
		path = site.MiniWoBPath
	}
	page, err := s.fresh(ctx, "http://"+f.Host+path(strings.TrimPrefix(task.Name, "miniwob/"), seed, id))
	if err != nil {
		res.Detail = "opening the page: " + err.Error()
		return res
	}
	words, err := f.instruction(ctx, id)
	if err == nil && f.Judged(id) {
		err = errors.New("the page was judged before anybody acted")
	}
	if err == nil {
		a := agents.New(ctx, s, words, page)
		task.Run(a)
		err = a.Err()
	}
	res.tally, res.Wall = s.count, time.Since(start)
	res.judge(ctx, f, id, err)
	return res
}

func (f *field) instruction(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, verdictLimit)
	defer cancel()
	return f.Instruction(ctx, id)
}

// judge takes the page's verdict. What the agent ran into explains one that is
// missing or bad; an agent that ran into something has not done its task.
func (r *result) judge(ctx context.Context, f *field, id string, agentErr error) {
	var verdict site.Outcome
	if agentErr == nil || f.Judged(id) {
		ctx, cancel := context.WithTimeoutCause(ctx, verdictLimit, errors.New("the agent did all that it knew"))
		defer cancel()
		var err error
		if verdict, err = f.Outcome(ctx, id); err != nil {
			agentErr = err
		}
	}
	r.Done = verdict.OK && agentErr == nil
	switch {
	case r.Done:
	case agentErr == nil:
		r.Detail = "the page says: " + verdict.Detail
	default:
		r.Detail = agentErr.Error()
		if verdict.Detail != "" {
			r.Detail += "; the page says: " + verdict.Detail
		}
	}
}
