package host

import (
	"context"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
)

// The rungs of the ladder that makes a browser quiet (QUI-2).
const (
	rungCancel = 2 * time.Second // the driver stops the action by itself
	rungClose  = 5 * time.Second // per-tab order: the page is closed
	rungKill   = 2 * time.Second // the driver is killed and joined
	rungProbe  = 5 * time.Second // a new driver sees whether every page answers
)

// answer is what came of a command.
type answer struct {
	reply *driver.Reply
	err   error
}

// act sends the command and waits for its answer. When the operation's context
// ends first, whatever the answer would have been is dropped (QUI-3), and act
// returns the context's reason once the browser is quiet.
func (op *operation) act(ctx context.Context, inc *incarnation, conn *connection) (*driver.Reply, error) {
	files, err := op.files(ctx, inc)
	if err != nil {
		return nil, err
	}
	op.leaveHeld(inc)
	cmd := op.command(files)
	done := make(chan answer, 1)
	go func() { // ends with the driver at the latest
		var a answer
		a.err = op.introduce(ctx, conn, &cmd)
		if a.err == nil {
			a.err = op.supply(ctx, conn, &cmd)
		}
		if a.err == nil {
			a.reply, a.err = conn.link.Do(ctx, cmd)
		}
		done <- a
	}()
	select {
	case a := <-done:
		if ctx.Err() == nil {
			return a.reply, op.translate(inc, a.err)
		}
		done <- a // for the ladder to judge
	case <-ctx.Done():
	}
	op.quiesce(inc, conn, done)
	return nil, op.translate(inc, reins.ContextError(ctx))
}

// translate says what it was that an action lost when the browser died under
// it: its driver saw only a pipe close. What may have happened is then unknown,
// unless the action only reads (OPS-6).
func (op *operation) translate(inc *incarnation, err error) error {
	if err == nil {
		return nil
	}
	switch reins.CodeOf(err) {
	case reins.CodeConnectionClosed, reins.CodeTransportFailure, reins.CodeCompletionUnknown, reins.CodeInternal:
	case reins.CodeBrowserEnded:
	default:
		return op.refused(inc, err)
	}
	cause := inc.death()
	switch {
	case cause == nil:
		return err
	case op.verb.ReadOnly():
		return cause
	}
	return reins.Errorf(reins.CodeCompletionUnknown, "the browser was lost while it ran %s, which may or may not have happened: %s", op.verb, cause.Message).
		In(reins.PhaseAction).Because(err)
}

// death is why the incarnation ended by itself, or nil: it lives, or was told
// to end. A browser that has just died is given a moment to be noticed.
func (inc *incarnation) death() *reins.Error {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-inc.ctx.Done():
	case <-t.C:
		return nil
	}
	inc.r.mu.Lock()
	defer inc.r.mu.Unlock()
	if !inc.died {
		return nil
	}
	return reins.ContextError(inc.ctx)
}

// quiesce climbs the ladder until nothing of the operation can happen any more.
func (op *operation) quiesce(inc *incarnation, conn *connection, done chan answer) {
	a, ok := await(done, inc.quiet, rungCancel)
	if ok && !a.lost(conn) {
		return
	}
	if ok {
		done <- a // for those who wait until the command is over
	}
	if !inc.still() && op.closePage(inc, conn, done) {
		return
	}
	if !inc.still() && inc.disconnect(conn, rungKill) && inc.calm(rungProbe) {
		await(done, nil, rungKill) // its driver is gone, so the command is over
		return
	}
	inc.stop(reins.Errorf(reins.CodeBrowserEnded,
		"the browser did not become quiet after %s was stopped and was ended; the next operation starts a new one", op.verb).In(reins.PhaseCleanUp))
	<-inc.quiet
	await(done, nil, rungKill)
}

// await waits for an answer; ok is false when none came in time. An ended
// incarnation is as quiet as an answer.
func await(done chan answer, quiet <-chan struct{}, limit time.Duration) (a answer, ok bool) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case a := <-done:
		return a, true
	case <-quiet:
		return answer{}, false
	case <-t.C:
		return answer{}, false
	}
}

// lost reports whether the answer came from the end of the driver and not from
// the browser: then it proves nothing about the page.
func (a answer) lost(conn *connection) bool {
	if conn.lost() {
		return true
	}
	switch reins.CodeOf(a.err) {
	case reins.CodeCompletionUnknown, reins.CodeConnectionClosed, reins.CodeTransportFailure:
		return true
	}
	return false
}

// closePage closes the page that the operation was on, in per-tab order only:
// there the other tabs go on (SCH-6).
func (op *operation) closePage(inc *incarnation, conn *connection, done chan answer) bool {
	if op.r.spec.Scheduling != reins.PerTab || op.tab == "" || op.verb == reins.VerbCloseTab {
		return false
	}
	ctx, cancel := context.WithTimeout(inc.ctx, rungClose)
	defer cancel()
	began := time.Now()
	_, err := conn.link.Do(ctx, driver.Command{Action: reins.CloseTab{Tab: op.tab, Force: true}, Lease: op.lease.id})
	if err != nil && reins.CodeOf(err) != reins.CodeInvalidState {
		return false
	}
	a, ok := await(done, inc.quiet, max(rungClose-time.Since(began), 0))
	return ok && !a.lost(conn)
}

// disconnect kills the connection's driver and reports whether it is reaped in
// time. It does not count as a failure of the driver (QUI-2).
func (inc *incarnation) disconnect(conn *connection, limit time.Duration) bool {
	inc.r.update(func(*state) { conn.deliberate = true })
	go conn.link.Kill() // it waits until the process is reaped
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-conn.link.Done():
		return true
	case <-t.C:
		return false
	}
}

// calm connects anew and reports whether every page answers, or has crashed, or
// shows a dialog, within the limit. A killed driver alone would prove nothing.
func (inc *incarnation) calm(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(inc.ctx, limit)
	defer cancel()
	conn, err := inc.connection(ctx)
	if err != nil {
		return false
	}
	reply, err := conn.link.Do(ctx, driver.Command{Action: reins.ListTabs{}})
	if err != nil {
		return false
	}
	for _, tab := range reply.Result.Tabs {
		_, err := conn.link.Do(ctx, driver.Command{Action: reins.Snapshot{Tab: tab.ID, Depth: 1, MaxBytes: 1000}})
		switch reins.CodeOf(err) {
		case "", reins.CodePageCrashed, reins.CodeDialogOpen, reins.CodeInvalidState:
		default:
			return false
		}
	}
	return true
}
