package api

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
)

// newName is a random name that nobody has used.
func newName() string { return rand.Text() }

// resource is a [reins.Resource] that is elsewhere.
type resource struct {
	c       *Client
	key     reins.ResourceKey
	retired atomic.Bool // by this handle
}

var _ reins.Resource = (*resource)(nil)

// ask calls the server about the resource; then what its leases know is
// brought up to date, so that the caller sees what it has done.
func (r *resource) ask(ctx context.Context, verb string, body any, repeat bool, effect string) error {
	if r.retired.Load() {
		return r.gone()
	}
	err := r.c.call(ctx, request{method: "POST", path: pathOf(r.key) + "/" + verb, body: body, repeat: repeat, effect: effect}, nil)
	r.c.refresh(ctx, func(l *lease) bool { return l.key == r.key })
	return err
}

func (r *resource) gone() *reins.Error {
	return reins.Errorf(reins.CodeRetired, "resource %s is retired for good; register another", r.key).In(reins.PhaseLifeCycle)
}

// Attach implements [reins.Resource].
func (r *resource) Attach(ctx context.Context, a reins.Attachment) error {
	if err := a.Validate(); err != nil {
		return err
	}
	return r.ask(ctx, "attach", a, true, "")
}

// Start implements [reins.Resource].
func (r *resource) Start(ctx context.Context) error { return r.ask(ctx, "start", nil, true, "") }

// Stop implements [reins.Resource].
func (r *resource) Stop(ctx context.Context) error {
	return r.ask(ctx, "stop", nil, false, "the stop of the browser")
}

// Resume implements [reins.Resource].
func (r *resource) Resume(ctx context.Context) error { return r.ask(ctx, "resume", nil, true, "") }

// Terminate implements [reins.Resource].
func (r *resource) Terminate(ctx context.Context) error {
	return r.ask(ctx, "terminate", nil, false, "the end of the browser")
}

// Retire implements [reins.Resource].
func (r *resource) Retire(ctx context.Context) error {
	if r.retired.Load() {
		return nil
	}
	err := r.ask(ctx, "retire", nil, true, "")
	if err == nil {
		r.retired.Store(true)
	}
	return err
}

// Readiness implements [reins.Resource]. It asks the server, for some seconds
// at most; what cannot be learned is unknown and says why.
func (r *resource) Readiness() reins.Readiness {
	ctx, cancel := context.WithTimeout(context.Background(), controlWait)
	defer cancel()
	var out reins.Readiness
	err := error(r.gone())
	if !r.retired.Load() {
		err = r.c.call(ctx, request{method: "GET", path: pathOf(r.key) + "/readiness", repeat: true}, &out)
	}
	if err == nil {
		return out
	}
	e := reins.AsError(err)
	state := reins.Capable{State: "unknown", Since: time.Now(), Cause: e.Message, Remedy: string(e.Recovery)}
	out = reins.Readiness{Overall: "unknown", Facts: map[string]string{}, Capabilities: map[string]reins.Capable{
		reins.CapableRuntime: state, reins.CapableBrowser: state, reins.CapableAutomation: state,
	}}
	if e.Code == reins.CodeRetired {
		out.Overall = "destroyed"
	}
	return out
}

// WaitFor implements [reins.Resource].
func (r *resource) WaitFor(ctx context.Context, names ...string) (reins.Readiness, error) {
	if r.retired.Load() {
		return r.Readiness(), r.gone()
	}
	var out reins.Readiness
	err := r.c.call(ctx, request{method: "POST", path: pathOf(r.key) + "/wait", body: WaitForm{names}, repeat: true}, &out)
	r.c.refresh(ctx, func(l *lease) bool { return l.key == r.key })
	if err == nil {
		return out, nil
	}
	if reins.CodeOf(err) == reins.CodeTimeout && ctx.Err() == context.DeadlineExceeded {
		late := reins.Errorf(reins.CodeReadinessTimeout, "the browser of %s was not ready in time", r.key).In(reins.PhaseStart).Because(err)
		late.Capability = reins.CapableAutomation
		err = late
	}
	return r.Readiness(), err
}
