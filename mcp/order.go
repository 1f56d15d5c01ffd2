package mcp

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
)

const methodCall = "tools/call"

// order makes the calls of one client enter its lease as the client sent them
// (OPS-1): a client may send "fill" and "click" without waiting in between, and
// the SDK answers each in a goroutine of its own.
//
// The transport does not read on after a call until that call's handler took its
// place here, which it does first of all. Each place then waits for the one before
// to be passed: its call was admitted by the lease, or is over.
type order struct {
	mu     sync.Mutex
	unread chan struct{} // closed when the last call read has its place; nil: none
	id     jsonrpc.ID    // of that call
	places map[*sdk.CallToolParamsRaw]*place
	last   *place
}

// place is one call's position.
type place struct {
	before *place // nil: nobody, or passed already; its call's until passed is closed
	passed chan struct{}
	once   sync.Once
}

// wait returns when every call before was passed. One that gave up waiting has
// passed before its turn, and still knows whom it waited for.
func (p *place) wait(ctx context.Context) error {
	for b := p.before; b != nil; b = b.before {
		select {
		case <-b.passed:
		case <-ctx.Done():
			return reins.ContextError(ctx)
		}
	}
	p.before = nil // a long chain is not kept
	return nil
}

// pass lets the next call go on. Idempotent.
func (p *place) pass() { p.once.Do(func() { close(p.passed) }) }

// middleware takes a place for each call as soon as it is handled.
func (o *order) middleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		call, ok := req.(*sdk.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		p := o.take(call.Params)
		defer o.leave(call.Params, p)
		return next(ctx, method, req)
	}
}

func (o *order) take(params *sdk.CallToolParamsRaw) *place {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &place{before: o.last, passed: make(chan struct{})}
	if o.places == nil {
		o.places = map[*sdk.CallToolParamsRaw]*place{}
	}
	o.last, o.places[params] = p, p
	o.readOnLocked()
	return p
}

func (o *order) leave(params *sdk.CallToolParamsRaw, p *place) {
	p.pass()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.places, params)
	if o.last == p {
		o.last = p.before // not nil when this call did not wait for its turn
	}
}

// turn is the place of a call that is being handled.
func (o *order) turn(req *sdk.CallToolRequest) *place {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.places[req.Params]
}

func (o *order) readOnLocked() {
	if o.unread != nil {
		close(o.unread)
		o.unread = nil
	}
}

// read notes that a message was read.
func (o *order) read(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() || req.Method != methodCall {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread, o.id = make(chan struct{}), req.ID
}

// wrote notes that a message was written: a call may be answered without ever
// having been handled.
func (o *order) wrote(msg jsonrpc.Message) {
	res, ok := msg.(*jsonrpc.Response)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.id == res.ID {
		o.readOnLocked()
	}
}

// handled returns when the last call read has its place.
func (o *order) handled(ctx context.Context) {
	o.mu.Lock()
	unread := o.unread
	o.mu.Unlock()
	if unread == nil {
		return
	}
	select {
	case <-unread:
	case <-ctx.Done():
	}
}

// orderedTransport lets an order see what is read and written.
type orderedTransport struct {
	sdk.Transport
	order *order
}

// Connect implements the SDK's Transport.
func (t *orderedTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &orderedConn{Connection: c, order: t.order}, nil
}

type orderedConn struct {
	sdk.Connection
	order *order
}

// Read implements the SDK's Connection.
func (c *orderedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	c.order.handled(ctx)
	msg, err := c.Connection.Read(ctx)
	if err == nil {
		c.order.read(msg)
	}
	return msg, err
}

// Write implements the SDK's Connection.
func (c *orderedConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	c.order.wrote(msg)
	return err
}
