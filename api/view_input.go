package api

import (
	"io"
	"sync"

	"github.com/coder/websocket"

	"github.com/reins-browser/reins"
)

// actionsMax bounds the actions of one viewer that have not been answered. The
// runtime's own bound is below that (OPS-2); here wait those that it has not
// admitted yet.
const actionsMax = 256

// actions lets a viewer's actions enter the lease in the order in which they
// came, while none waits for one before it to end: an action is let in when the
// one before was admitted, which its first progress tells, or is over.
type actions struct {
	last  chan struct{} // closed when the next may go; of the reader alone
	count chan struct{} // a slot for each
	all   sync.WaitGroup
}

func (a *actions) wait() { a.all.Wait() }

// take returns an action's place, or false when there are too many.
func (a *actions) take() (before, mine chan struct{}, ok bool) {
	if a.count == nil {
		a.count = make(chan struct{}, actionsMax)
	}
	select {
	case a.count <- struct{}{}:
	default:
		return nil, nil, false
	}
	before, mine = a.last, make(chan struct{})
	a.last = mine
	return before, mine, true
}

// read takes in what the viewer sends, until its connection ends. After the end
// of the view it reads on only so that the last words arrive.
func (v *viewer) read() {
	refused := make(chan ViewAnswer, actionsMax)
	var telling sync.WaitGroup
	telling.Go(func() {
		for a := range refused {
			_ = v.say(ViewNews{Answer: &a}) // a viewer that left needs none
		}
	})
	defer telling.Wait()
	defer close(refused)
	defer v.leave(errViewerLeft)
	for {
		b, err := v.receive()
		if b == nil && err != nil {
			return
		}
		if v.ctx.Err() != nil {
			continue
		}
		v.heard()
		var q rawRequest
		if err == nil {
			q, err = readRequest(b)
		}
		switch {
		case err != nil:
			v.leave(reins.AsError(err).In(reins.PhaseAdmission))
		case q.Ack != nil:
			v.sub.Ack(*q.Ack) // a late one harms nothing (FRM-5)
		default:
			if err := v.begin(*q.Do); err != nil && q.Do.ID != 0 {
				refused <- ViewAnswer{ID: q.Do.ID, Error: err} // a viewer that takes no answers waits here
			}
		}
	}
}

// receive returns the next message. With an error and no bytes there are no
// more; with both, the message is none that a viewer sends.
func (v *viewer) receive() ([]byte, error) {
	kind, r, err := v.conn.Reader(v.wire)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, requestMax+1))
	if err != nil {
		return nil, err
	}
	if len(b) <= requestMax && kind == websocket.MessageText {
		return b, nil
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	if kind != websocket.MessageText {
		return []byte{}, reins.Errorf(reins.CodeInvalidInput, "a viewer's messages are text; a binary one came")
	}
	return []byte{}, reins.Errorf(reins.CodeInvalidInput, "a message has more than %d bytes; send less", requestMax)
}

// begin starts an action in its turn, or says why there will be none.
func (v *viewer) begin(do rawDo) *reins.Error {
	if len(do.Action) == 0 || string(do.Action) == "null" {
		return reins.Errorf(reins.CodeInvalidInput, "action is missing; send one such as {\"verb\": \"snapshot\"}").In(reins.PhaseAdmission)
	}
	action, err := reins.DecodeAction(do.Action)
	if err != nil {
		return reins.AsError(err)
	}
	before, mine, ok := v.acts.take()
	if !ok {
		return reins.Errorf(reins.CodeQuotaExceeded, "%d actions of this view wait already; let some end first", actionsMax).In(reins.PhaseAdmission)
	}
	v.acts.all.Go(func() {
		defer func() { <-v.acts.count }()
		pass := sync.OnceFunc(func() { close(mine) })
		res, err := v.act(action, before, pass)
		pass()
		if do.ID == 0 {
			return
		}
		a := ViewAnswer{ID: do.ID, Result: res}
		if err != nil {
			a.Result, a.Error = nil, reins.AsError(err)
		}
		_ = v.say(ViewNews{Answer: &a}) // a viewer that left needs none
	})
	return nil
}

// act runs one action when the one before it has been let in.
func (v *viewer) act(action reins.Action, before <-chan struct{}, pass func()) (*reins.Result, error) {
	if before != nil {
		select {
		case <-before:
		case <-v.ctx.Done():
			return nil, reins.ContextError(v.ctx)
		}
	}
	return v.l.lease.Do(v.ctx, reins.Call{Action: action, Progress: func(reins.Progress) { pass() }})
}
