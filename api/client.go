package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/reins-browser/reins"
)

// ClientOptions make a client. URL is required.
type ClientOptions struct {
	// URL is where the handler is: "https://tools.site.test",
	// "http://127.0.0.1:7777/reins".
	URL string
	// Key is the API key; empty for a participant that only has a capability.
	Key string
	// Transport carries the requests; nil is one of the client's own, which goes
	// through the proxies of the environment.
	Transport http.RoundTripper
}

// Client is a runtime that is elsewhere: it implements [reins.Runtime] over the
// HTTP door. It is safe for concurrent use. Close it.
type Client struct {
	base      string
	key       string
	http      *http.Client
	transport *http.Transport   // when it is the client's own
	sockets   http.RoundTripper // of WebSockets, which are HTTP/1.1

	ctx context.Context // ended by Close
	end context.CancelCauseFunc

	mu     sync.Mutex // guards all below
	over   bool
	leases map[*lease]struct{} // live
	wg     sync.WaitGroup      // streams
}

var _ reins.Runtime = (*Client)(nil)

const (
	answerMax   = 64 << 20 // bytes of an answer that are read
	errorMax    = 1 << 20
	attempts    = 3 // of a request that can be repeated
	settleWait  = 30 * time.Second
	controlWait = 5 * time.Second // for what must not hold a caller up
)

// NewClient checks the options; it does no I/O.
func NewClient(o ClientOptions) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, reins.Errorf(reins.CodeInvalidInput, "ClientOptions.URL is not an address such as \"http://127.0.0.1:7777\"")
	}
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, reins.Errorf(reins.CodeInvalidInput, "ClientOptions.Key holds characters that no key has")
	}
	c := &Client{base: strings.TrimSuffix(o.URL, "/"), key: o.Key, leases: map[*lease]struct{}{}}
	if o.Transport == nil {
		c.transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			DisableCompression:  true, // digests are of what is sent
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     90 * time.Second,
		}
	}
	c.http = &http.Client{
		Transport: o.Transport,
		// No Reins server redirects; where it leads is not told the key.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if c.transport != nil {
		c.http.Transport = c.transport
	}
	c.sockets = c.http.Transport
	if t, ok := c.sockets.(*http.Transport); ok {
		t = t.Clone()
		t.Protocols, t.ForceAttemptHTTP2, t.TLSNextProto = new(http.Protocols), false, nil
		t.Protocols.SetHTTP1(true)
		c.sockets = t
	}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c, nil
}

func errClosed() *reins.Error {
	return reins.Errorf(reins.CodeRuntimeStopped, "the client is closed; make a new one").In(reins.PhaseLifeCycle)
}

// Close releases the leases that were acquired through the client, ends its
// streams, and waits for them. What takes longer than some seconds to release
// expires. Idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	c.over = true
	live := make([]*lease, 0, len(c.leases))
	for l := range c.leases {
		live = append(live, l)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), controlWait)
	defer cancel()
	var wg sync.WaitGroup
	for _, l := range live {
		wg.Go(func() {
			l.finish(errClosed())
			_ = l.release(ctx) // else it expires
		})
	}
	wg.Wait()
	c.end(errClosed())
	c.wg.Wait()
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	if t, ok := c.sockets.(*http.Transport); ok {
		t.CloseIdleConnections() // of refused handshakes
	}
	return nil
}

// request is one call of the server.
type request struct {
	method, path string
	query        url.Values
	body         any       // as JSON
	bytes        io.Reader // or as it is
	token        reins.Token
	header       map[string]string
	repeat       bool   // it may be sent again when its answer is lost
	effect       string // else: what may have happened then, for a sentence; "" is nothing
}

// do sends a request and reads its JSON into out.
func (c *Client) do(ctx context.Context, q request, out any) error {
	r, err := c.open(ctx, q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if out == nil {
		_, _ = io.CopyN(io.Discard, r.Body, errorMax) // so that the connection is used again
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, answerMax))
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		return c.lost(ctx, q, err, true)
	}
	return nil
}

// open sends a request, as often as it may be, and returns the answer when it
// is a success.
func (c *Client) open(ctx context.Context, q request) (*http.Response, error) {
	if err := reins.ContextError(ctx); err != nil {
		return nil, err
	}
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return nil, reins.AsError(err)
		}
	}
	for try := 1; ; try++ {
		r, sent, err := c.send(ctx, q, body)
		switch {
		case err == nil && r.StatusCode < 300:
			return r, nil
		case err == nil:
			e := c.refusal(r)
			if try > 1 && q.method == http.MethodDelete && e.Code == reins.CodeNotFound {
				r.StatusCode, r.Body = http.StatusNoContent, http.NoBody // the first one did it
				return r, nil
			}
			return nil, e
		case !q.repeat || try == attempts || ctx.Err() != nil || c.ctx.Err() != nil:
			return nil, c.lost(ctx, q, err, sent)
		}
		pause(ctx, time.Duration(try)*50*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// send makes one try. Sent is whether the server may have got it.
func (c *Client) send(ctx context.Context, q request, body []byte) (_ *http.Response, sent bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	address := c.base + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	from := q.bytes
	if body != nil {
		from = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, from)
	if err != nil {
		return nil, false, reins.AsError(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", typeJSON)
	} else if q.bytes != nil {
		r.Header.Set("Content-Type", typeBytes)
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if q.token != "" {
		r.Header.Set(capabilityHeader, string(q.token))
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	res, err := c.http.Do(r)
	return res, sent, err
}

// refusal is the error that an answer tells.
func (c *Client) refusal(r *http.Response) *reins.Error {
	defer r.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(r.Body, errorMax)) // what is cut is no JSON
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == typeJSON {
		if e := decodeError(b); e != nil {
			return e
		}
	}
	return reins.Errorf(reins.CodeTransportFailure, "the server at %s answered with status %d and not as Reins does; check the address", c.base, r.StatusCode).In(reins.PhaseConnect)
}

// lost is the error of a request that has no answer: its caller's reason when
// there is one, unless it may have had an effect.
func (c *Client) lost(ctx context.Context, q request, err error, sent bool) *reins.Error {
	if sent && !q.repeat && q.effect != "" {
		return reins.Errorf(reins.CodeCompletionUnknown, "the answer of the server was lost; %s may have happened, look before you ask again", q.effect).In(reins.PhaseAction).Because(err)
	}
	if gone := reins.ContextError(ctx); gone != nil {
		return gone
	}
	if c.ctx.Err() != nil {
		return errClosed()
	}
	var known *reins.Error
	if errors.As(err, &known) {
		return known
	}
	return reins.Errorf(reins.CodeTransportFailure, "the server at %s could not be reached, or its answer was lost; check that it runs and try again", c.base).In(reins.PhaseConnect).Because(err)
}

// begin counts a stream of the client, unless it is closed.
func (c *Client) begin(run func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errClosed()
	}
	c.wg.Go(run)
	return nil
}

// within returns a context that also ends with the client.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	return ctx, func(err error) { stop(); cancel(err) }
}

// call is do under a context that also ends with the client.
func (c *Client) call(ctx context.Context, q request, out any) error {
	if c.ctx.Err() != nil {
		return errClosed()
	}
	ctx, cancel := c.within(ctx)
	defer cancel(nil)
	return c.do(ctx, q, out)
}

func projectOf(project string) string { return "/v1/projects/" + segment(project) }

func pathOf(key reins.ResourceKey) string {
	return projectOf(key.Project) + "/resources/" + segment(key.ID)
}

// Register implements [reins.Runtime].
func (c *Client) Register(ctx context.Context, reg reins.Registration) (reins.Registration, error) {
	if err := (reins.ResourceKey{Project: reg.Key.Project, ID: cmp.Or(reg.Key.ID, "any")}).Validate(); err != nil {
		return reins.Registration{}, err
	}
	var out reins.Registration
	err := c.call(ctx, request{
		method: "POST", path: projectOf(reg.Key.Project) + "/resources", repeat: true,
		header: map[string]string{keyHeader: newName()},
		body:   RegisterForm{reg.Key.ID, reg.Attachment, reg.Spec},
	}, &out)
	return out, err
}

// Open implements [reins.Runtime].
func (c *Client) Open(ctx context.Context, key reins.ResourceKey) (reins.Resource, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	var now reins.Readiness
	if err := c.call(ctx, request{method: "GET", path: pathOf(key) + "/readiness", repeat: true}, &now); err != nil {
		return nil, err
	}
	return &resource{c: c, key: key}, nil
}

// List implements [reins.Runtime].
func (c *Client) List(ctx context.Context, project string) ([]reins.ResourceInfo, error) {
	if err := (reins.ResourceKey{Project: project, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	var out ResourceList
	err := c.call(ctx, request{method: "GET", path: projectOf(project) + "/resources", repeat: true}, &out)
	if err != nil {
		return nil, err
	}
	return append([]reins.ResourceInfo{}, out.Resources...), nil
}

// Issue implements [reins.Runtime]. The expiry is by the server's clock.
func (c *Client) Issue(ctx context.Context, b reins.Binding, life time.Duration) (reins.Capability, error) {
	if err := b.Validate(); err != nil {
		return reins.Capability{}, err
	}
	var out reins.Capability
	err := c.call(ctx, request{
		method: "POST", path: projectOf(b.Project) + "/capabilities", effect: "a capability that nobody holds",
		body: IssueForm{b, Life(life)},
	}, &out)
	return out, err
}

// Revoke implements [reins.Runtime].
func (c *Client) Revoke(ctx context.Context, capabilityID string) error {
	if strings.HasPrefix(capabilityID, "reins_") || !isName(capabilityID) { // perhaps a token: not for an address (CAP-4)
		return reins.Errorf(reins.CodeNotFound, "what was given is not the ID of a capability; use the one that Issue returned beside the token")
	}
	err := c.call(ctx, request{method: "DELETE", path: "/v1/capabilities/" + segment(capabilityID), repeat: true}, nil)
	c.refresh(ctx, func(l *lease) bool { return l.capability == capabilityID })
	return err
}

// isName reports whether s has the form of an ID.
func isName(s string) bool { return reins.ResourceKey{Project: "any", ID: s}.Validate() == nil }
