package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/reins-browser/reins"
)

// callsMax bounds the calls of a lease that can be cancelled by name; the
// runtime bounds how many there are.
const callsMax = 4096

func (h *Handler) operationRoutes() {
	rt := route{method: "POST", path: "/v1/leases/{lease}/operations", id: "act", tag: "leases", participant: true, headers: tokenParameter,
		summary: "Run one action", about: "Through the resource's queue. The action ends when this request is given up, or when its call is cancelled. Asked for text/event-stream, it tells meanwhile what it waits for, as events progress, and ends with result or error."}
	answer := reflect.TypeFor[OperationAnswer]()
	stream(h, rt, typeJSON, reflect.TypeFor[OperationForm](), answer, h.act)
	handle(h, route{method: "DELETE", path: "/v1/leases/{lease}/operations/{call}", id: "cancel", tag: "leases", participant: true, headers: tokenParameter,
		summary: "Cancel a call", about: "By the name it was made with. The call's own request answers when the browser is quiet. One that is not under way is not_found."},
		func(_ context.Context, c *call, _ Nothing) (Nothing, error) {
			l, err := c.held()
			if err != nil {
				return Nothing{}, err
			}
			return Nothing{}, l.cancelCall(c.path("call"))
		})
	stream(h, route{method: "GET", path: "/v1/leases/{lease}/events", id: "follow", tag: "leases", participant: true, headers: tokenParameter,
		summary: "Follow a lease", about: "An event state whenever incarnation or expiry changed, at first at once; an event end, an Error, when it has ended."},
		typeSSE, reflect.TypeFor[Nothing](), reflect.TypeFor[LeaseState](), h.follow)
}

// act runs one action.
func (h *Handler) act(ctx context.Context, c *call) error {
	l, err := c.held()
	if err != nil {
		return err
	}
	var in OperationForm
	if err := decodeBody(c.r, &in); err != nil {
		return err
	}
	if in.Action.Action == nil {
		return reins.Errorf(reins.CodeInvalidInput, "action is missing; send one such as {\"verb\": \"snapshot\"}").In(reins.PhaseAdmission)
	}
	ctx, over, err := l.beginCall(ctx, in.Call)
	if err != nil {
		return err
	}
	defer over()
	do := reins.Call{Action: in.Action.Action, Key: in.Key}
	if strings.Contains(c.r.Header.Get("Accept"), typeSSE) {
		return h.actAloud(ctx, c, l, do)
	}
	res, err := l.lease.Do(ctx, do)
	if err != nil {
		return err
	}
	return writeJSON(c.w, http.StatusOK, OperationAnswer{res, l.state()})
}

// actAloud runs an action and streams what it waits for. Progress that the
// client does not take in time is dropped but for the newest.
func (h *Handler) actAloud(ctx context.Context, c *call, l *held, do reins.Call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	live, done, err := c.life(nil)
	if err != nil {
		return err
	}
	defer done()
	stop := context.AfterFunc(live, func() { cancel(context.Cause(live)) })
	defer stop()
	news := make(chan reins.Progress, 1)
	do.Progress = func(p reins.Progress) { newest(news, p) }
	type outcome struct {
		res *reins.Result
		err error
	}
	finished := make(chan outcome, 1)
	go func() { // ends with the operation, which this function waits for
		res, err := l.lease.Do(ctx, do)
		finished <- outcome{res, err}
	}()
	out := newSSE(c.w, live.Err)
	gone := out.flush() // nothing yet but the header
	alive := h.ticker()
	defer alive.Stop()
	for {
		select {
		case p := <-news:
			if gone == nil {
				gone = out.send(eventProgress, "", p)
			}
		case <-alive.C:
			if gone == nil {
				gone = out.alive()
			}
		case o := <-finished:
			if o.err != nil {
				_ = out.send(eventError, "", reins.AsError(o.err)) // to a client that may have left
			} else {
				_ = out.send(eventResult, "", OperationAnswer{o.res, l.state()})
			}
			return nil
		}
		if gone != nil {
			cancel(reins.Errorf(reins.CodeCancelled, "the client takes nothing"))
		}
	}
}

// newest puts p into news, in the place of one that nobody has seen.
func newest(news chan reins.Progress, p reins.Progress) {
	for {
		select {
		case news <- p:
			return
		default:
		}
		select {
		case <-news:
		default:
		}
	}
}

// beginCall makes a call cancellable by its name until over is called.
func (l *held) beginCall(ctx context.Context, name string) (_ context.Context, over func(), err error) {
	if name == "" {
		return ctx, func() {}, nil
	}
	if !callName(name) {
		return nil, nil, reins.Errorf(reins.CodeInvalidInput, "call must have 1 to 64 letters and digits").In(reins.PhaseAdmission)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.calls[name] != nil:
		err = reins.Errorf(reins.CodeConflict, "a call of that name is under way; give each its own").In(reins.PhaseAdmission)
	case len(l.calls) >= callsMax:
		err = reins.Errorf(reins.CodeQuotaExceeded, "%d calls of this lease are under way", callsMax).In(reins.PhaseAdmission)
	default:
		l.calls[name] = cancel
		return ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.calls, name)
			cancel(nil)
		}, nil
	}
	cancel(nil)
	return nil, nil, err
}

func (l *held) cancelCall(name string) error {
	l.mu.Lock()
	cancel := l.calls[name]
	l.mu.Unlock()
	if cancel == nil {
		return reins.Errorf(reins.CodeNotFound, "no call of that name is under way")
	}
	cancel(reins.Errorf(reins.CodeCancelled, "the call was cancelled by its caller"))
	return nil
}
