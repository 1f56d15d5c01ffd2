package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// frame is one frame of a tab: the main one, or one that a page embeds, in the
// page's process or another. Its fields are guarded by browser.mu.
type frame struct {
	tab      *tab
	id       proto.FrameID
	parent   *frame
	children []*frame     // in the order in which they became known; their elements (owner) say where they are
	session  *cdp.Session // that its document's events arrive on
	url      string
	name     string
	loader   proto.LoaderID // of the committed document
	phase    phase          // of that document
	painted  bool           // something of it was shown
	doc      *document      // nil until its isolated world is known
}

// phase is how far a document has come.
type phase int

const (
	phaseCommitted phase = iota
	phaseParsed          // DOMContentLoaded
	phaseLoaded          // load
)

// document is one document of one frame, as the isolated world in it sees it.
// It does not change but for how it is reached; a frame gets another one.
type document struct {
	frame   *frame
	number  int // only grows on a connection; never used again
	session *cdp.Session
	context string // unique ID of the isolated world's execution context
	id      runtime.ExecutionContextID
	gone    chan struct{} // closed when it is no longer the frame's document
	reach   atomic.Int32  // how a snapshot gets at it: reachUnknown and so on
}

// placed is a document and the index of its parent's in the same list, -1 for
// the main one.
type placed struct {
	*document
	parent int
}

// documents lists the tab's current documents, each before those inside it.
// Frames whose world is not known yet get one
// first; those that cannot be read (still being made, gone) are left out with
// what is in them.
func (t *tab) documents(ctx context.Context) ([]placed, error) {
	t.b.mu.Lock()
	var lacking []*frame
	t.main.eachLocked(func(f *frame) {
		if f.doc == nil {
			lacking = append(lacking, f)
		}
	})
	t.b.mu.Unlock()
	if err := t.enterAll(ctx, lacking); err != nil {
		return nil, err
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	var out []placed
	var add func(f *frame, parent int)
	add = func(f *frame, parent int) {
		if f.doc == nil {
			return
		}
		out = append(out, placed{f.doc, parent})
		at := len(out) - 1
		for _, c := range f.children {
			add(c, at)
		}
	}
	add(t.main, -1)
	return out, nil
}

// enterAll makes the worlds of frames known. The main frame's must be; the others
// have as long as they take together, in a bounded time: a page may make frames
// faster than they can be entered, and none that is gone answers.
func (t *tab) enterAll(ctx context.Context, lacking []*frame) error {
	short, cancel := context.WithTimeout(ctx, frameAnswers)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, f := range lacking {
		if f != t.main {
			wg.Go(func() { _ = f.enter(short) }) // what cannot be entered is left out
			continue
		}
		if err := t.within(ctx, mainAnswers, f.enter); err != nil {
			cancel()
			return err
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// document returns the main frame's current document.
func (t *tab) document(ctx context.Context) (*document, error) {
	t.b.mu.Lock()
	f, d := t.main, t.main.doc
	t.b.mu.Unlock()
	if d != nil {
		return d, nil
	}
	if err := f.enter(ctx); err != nil {
		return nil, err
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if f.doc == nil {
		return nil, errReplaced
	}
	return f.doc, nil
}

// element finds the document of a ref and the number of the element in it;
// stale_ref when the document is gone.
func (b *browser) element(ref reins.Ref) (*document, int, error) {
	number, n, ok := parseRef(ref)
	if !ok {
		return nil, 0, reins.Errorf(reins.CodeInvalidInput, "ref %.40q is not a ref from a snapshot", string(ref))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.documentLocked(number)
	if d == nil {
		return nil, 0, errStale(ref)
	}
	return d, n, nil
}

// eachLocked calls do for f and all below it, parents first.
func (f *frame) eachLocked(do func(*frame)) {
	do(f)
	for _, c := range slices.Clone(f.children) {
		c.eachLocked(do)
	}
}

// errReplaced: the document went away while it was being read or acted on.
var errReplaced = errors.New("the document was replaced")

// enter makes the isolated world of a frame's document known, for documents
// that were there before this connection.
func (f *frame) enter(ctx context.Context) error {
	f.tab.b.mu.Lock()
	session := f.session
	f.tab.b.mu.Unlock()
	ctx, release := f.tab.guard(ctx)
	defer release()
	// The context's event precedes the reply.
	got, err := cdp.Call(ctx, session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: f.id, WorldName: worldName})
	if err != nil {
		return evalError(f.tab, err)
	}
	_, err = cdp.Call(ctx, session, runtime.Evaluate, runtime.EvaluateParams{Expression: walkerSource, ContextID: got.ExecutionContextID})
	if err != nil {
		return evalError(f.tab, err)
	}
	return nil
}

// current reports whether d is still its frame's document.
func (d *document) current() bool {
	d.frame.tab.b.mu.Lock()
	defer d.frame.tab.b.mu.Unlock()
	return d.frame.doc == d
}

// handle is a remote object as an argument of eval.
type handle struct{ id runtime.RemoteObjectID }

// eval calls a JavaScript function in the document's isolated world, waits for
// the promise it may return, and decodes the result into out (nil: dropped).
// Arguments are JSON values or handles. It fails with errReplaced (wrapped) when
// the document is gone, with an *Error of the tab's state (dialog_open,
// page_crashed, invalid_state) when that interrupts it, and with tool_failed
// when the function throws.
func (d *document) eval(ctx context.Context, fn string, out any, args ...any) error {
	ctx, release := d.frame.tab.guard(ctx)
	defer release()
	got, err := d.wait(ctx, d.startEval(fn, true, args))
	if err != nil {
		return err
	}
	return d.result(got, out)
}

// evalHandle is eval for a function that returns an object to be used by
// handle; the object is released with d.
func (d *document) evalHandle(ctx context.Context, fn string, args ...any) (handle, error) {
	ctx, release := d.frame.tab.guard(ctx)
	defer release()
	got, err := d.wait(ctx, d.startEval(fn, false, args))
	if err != nil {
		return handle{}, err
	}
	if err := d.result(got, nil); err != nil {
		return handle{}, err
	}
	return handle{got.Result.ObjectID}, nil
}

// startEval sends an evaluation without waiting for it.
func (d *document) startEval(fn string, byValue bool, args []any) cdp.Reply[runtime.CallFunctionOnResult] {
	return cdp.Send(d.session, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: fn, Arguments: arguments(args), UniqueContextID: d.context,
		ReturnByValue: &byValue, AwaitPromise: new(true), Silent: new(true),
	})
}

// wait waits for an evaluation, no longer than the document lives.
func (d *document) wait(ctx context.Context, r cdp.Reply[runtime.CallFunctionOnResult]) (runtime.CallFunctionOnResult, error) {
	select {
	case <-r.Done():
	case <-ctx.Done():
	case <-d.gone:
		select {
		case <-r.Done(): // it was answered first
		default:
			if err := d.frame.tab.blocked(); err != nil {
				return runtime.CallFunctionOnResult{}, err
			}
			return runtime.CallFunctionOnResult{}, errReplaced
		}
	}
	got, err := r.Wait(ctx)
	if err != nil {
		return got, evalError(d.frame.tab, err)
	}
	return got, nil
}

func arguments(args []any) []*runtime.CallArgument {
	out := make([]*runtime.CallArgument, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case handle:
			out[i] = &runtime.CallArgument{ObjectID: a.id}
		default:
			raw, err := jsonv2.Marshal(a, jsonv2.AllowInvalidUTF8(true))
			if err != nil {
				raw = []byte("null")
			}
			out[i] = &runtime.CallArgument{Value: raw}
		}
	}
	return out
}

// result decodes what a function returned, or reports what it threw.
func (d *document) result(got runtime.CallFunctionOnResult, out any) error {
	if x := got.ExceptionDetails; x != nil {
		text := x.Text
		if x.Exception != nil {
			text = x.Exception.Description
		}
		return reins.Errorf(reins.CodeToolFailed, "a script in the page failed with %.200q; take a new snapshot and try again", text)
	}
	if out == nil || got.Result == nil || len(got.Result.Value) == 0 {
		return nil
	}
	if err := jsonv2.Unmarshal(got.Result.Value, out, jsonv2.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("a script in the page returned something else than expected: %w", err)
	}
	return nil
}

// evalError sorts the failure of an evaluation.
func evalError(t *tab, err error) error {
	var known *reins.Error
	switch fault, ok := cdp.IsProtocol(err); {
	case errors.As(err, &known):
		return known
	case errors.Is(err, cdp.ErrSessionEnded):
		if blocked := t.blocked(); blocked != nil {
			return blocked
		}
		return fmt.Errorf("%w: %w", errReplaced, err)
	case errors.Is(err, cdp.ErrTooLarge):
		return reins.Errorf(reins.CodeToolFailed, "the page answered with more than one message can hold; ask for a smaller part of it").Because(err)
	case ok && isReplaced(fault):
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	return err
}

// isReplaced recognises the refusals that mean that a document is gone.
func isReplaced(fault *cdp.ProtocolError) bool {
	for _, s := range []string{"context", "ContextId not found", "navigated or closed", "No frame", "Frame", "Session with given id"} {
		if strings.Contains(fault.Message, s) {
			return true
		}
	}
	return false
}

// owner returns the element that the frame is embedded by, as a node of its
// parent's document; resolve it with the parent's session.
func (f *frame) owner(ctx context.Context) (proto.BackendNodeID, error) {
	f.tab.b.mu.Lock()
	var session *cdp.Session
	if f.parent != nil {
		session = f.parent.session
	}
	f.tab.b.mu.Unlock()
	if session == nil {
		return 0, errReplaced
	}
	ctx, release := f.tab.guard(ctx)
	defer release()
	got, err := cdp.Call(ctx, session, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: f.id})
	if err != nil {
		return 0, evalError(f.tab, err)
	}
	return got.BackendNodeID, nil
}

// resolve makes a node known by its backend ID a handle in d's world.
func (d *document) resolve(ctx context.Context, node proto.BackendNodeID) (handle, error) {
	ctx, release := d.frame.tab.guard(ctx)
	defer release()
	got, err := cdp.Call(ctx, d.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node, ExecutionContextID: d.id})
	if err != nil {
		return handle{}, evalError(d.frame.tab, err)
	}
	return handle{got.Object.ObjectID}, nil
}
