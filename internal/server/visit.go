package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reins-browser/reins"
)

// Visit is what the host is asked about a person (VIEW-5).
type Visit struct {
	Event    string `json:"event"` // "page", "stream", "control"
	Actor    string `json:"actor"`
	Project  string `json:"project"`
	Resource string `json:"resource"`
	Verb     string `json:"verb,omitempty"`   // of control
	Origin   string `json:"origin,omitempty"` // of the page, as its browser says
	Framed   bool   `json:"framed,omitempty"` // in a frame of another page
}

// visit describes what a page is about to do with a resource.
func (g *page) visit(event string, key reins.ResourceKey, r *http.Request) Visit {
	s := g.session
	return Visit{Event: event, Actor: s.access.Actor, Project: key.Project, Resource: key.ID, Origin: r.Header.Get("Origin"), Framed: s.framed}
}

// keyOf is the resource of the lease in a request's path: /v1/leases/{lease}/view.
func (g *page) keyOf(r *http.Request) reins.ResourceKey {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) < 4 {
		return reins.ResourceKey{}
	}
	return g.resourceOf(parts[3])
}

// ask asks the host, if it wants to be. Why it says no stays with it, unless it
// returns an error of ours.
func (d *Door) ask(ctx context.Context, v Visit) error {
	if d.o.Ask == nil {
		return nil
	}
	return d.o.Ask(ctx, v)
}

// control is the question before a person's control operation; false when there is
// none.
func control(op reins.Operation) (Visit, bool) {
	b := op.Authority.Binding
	asked := b.Source == reins.SourceViewer && op.Class == reins.ClassControl && !op.Verb.ReadOnly()
	return Visit{Event: "control", Actor: b.Actor, Project: b.Project, Resource: b.Resource, Verb: string(op.Verb)}, asked
}

const (
	hookLimit  = 5 * time.Second
	hookAtOnce = 64 // questions under way
)

// AskAt returns a function for [DoorOptions.Ask] that posts each question as JSON to an
// address, with the key as a bearer token unless that is empty. Any success is a yes;
// anything else, no answer within five seconds included, is a no.
func AskAt(address, key string) (func(context.Context, Visit) error, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, reins.Errorf(reins.CodeInvalidInput, "--people-hook %.100q is no address such as https://tools.site.test/reins", address)
	}
	client := &http.Client{
		Timeout:       hookLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	room := make(chan struct{}, hookAtOnce)
	return func(ctx context.Context, v Visit) error {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-ctx.Done():
			return reins.ContextError(ctx)
		}
		body, err := json.Marshal(v)
		if err != nil {
			return reins.AsError(err)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
		if err != nil {
			return reins.AsError(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		answer, err := client.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				return reins.ContextError(ctx)
			}
			return errHostSaysNo().Because(err)
		}
		_ = answer.Body.Close() // its status says it all
		if answer.StatusCode < 200 || answer.StatusCode > 299 {
			return errHostSaysNo()
		}
		return nil
	}, nil
}

func errHostSaysNo() *reins.Error {
	return reins.Errorf(reins.CodeDenied, "those who run this server do not permit this now").In(reins.PhaseAdmission)
}
