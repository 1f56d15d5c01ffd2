package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

// progress tells a client what its call waits for (MCP-6, OPS-4). Its tell never
// blocks: a client that reads slowly misses stages, not the last one.
type progress struct {
	latest chan reins.Progress
	ended  sync.WaitGroup
}

// newProgress starts telling the client of req, or nobody when it did not ask.
// End it before the result is sent.
func newProgress(ctx context.Context, req *sdk.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	p := &progress{latest: make(chan reins.Progress, 1)}
	p.ended.Go(func() {
		var last string
		var n float64
		for stage := range p.latest {
			message := stageText(stage)
			if message == last {
				continue
			}
			last, n = message, n+1
			// An error means that the client is gone, which its session sees too.
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message})
		}
	})
	return p
}

// tell is a Call's Progress.
func (p *progress) tell(stage reins.Progress) {
	if p == nil {
		return
	}
	for {
		select {
		case p.latest <- stage:
			return
		default:
		}
		select {
		case <-p.latest: // an older one makes room
		default:
		}
	}
}

// beatEvery is how often a client hears of a wait for a person: less than what
// clients commonly give a call that says nothing.
const beatEvery = 10 * time.Second

// beat says again and again that a person is waited for, since began, until the
// function that it returns is called: clients give up on a silent call.
func (p *progress) beat(began time.Time) (stop func()) {
	if p == nil {
		return func() {}
	}
	over := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.tell(reins.Progress{Stage: "person", Position: int(time.Since(began).Seconds())})
			case <-over:
				return
			}
		}
	})
	return func() { close(over); ended.Wait() }
}

// end waits until nothing more is sent; tell must not be called any more.
func (p *progress) end() {
	if p != nil {
		close(p.latest)
		p.ended.Wait()
	}
}

func stageText(p reins.Progress) string {
	switch p.Stage {
	case "queue":
		if p.Position == 1 {
			return "Waiting for one operation ahead."
		}
		return fmt.Sprintf("Waiting for %d operations ahead.", p.Position)
	case "browser":
		return "The browser is starting."
	case "running":
		return "Running."
	case "person":
		if p.Position > 0 {
			return fmt.Sprintf("Waiting for a person for %d s.", p.Position)
		}
		return "Waiting for a person."
	}
	return p.Stage
}
