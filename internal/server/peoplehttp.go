package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
	"github.com/reins-browser/reins/internal/webguard"
)

const (
	pageHeader   = "Reins-Page"
	pageProtocol = "reins.page." // and the secret: what a WebSocket can send of a page

	sessionHeader   = "Reins-Session" // of a frame, in place of the cookie
	sessionProtocol = "reins.session."

	formMax = 64 << 10
)

// sessionView is a session as its pages are told of it.
type sessionView struct {
	Actor    string     `json:"actor"`
	Projects []string   `json:"projects"`
	Resource *api.Place `json:"resource"`
	Expires  time.Time  `json:"expires"`
}

func (d *Door) peopleRoutes() {
	d.mux.Handle("GET /people/config", d.guarded(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"name": "Reins", "version": d.o.Version})
	}))
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /people/join": d.join, "POST /people/page": d.newPage, "DELETE /people/session": d.leave,
		"POST /people/open": d.paged(d.open), "POST /people/close": d.paged(d.closeLease),
	} {
		d.mux.Handle(pattern, d.guarded(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			err := errNoOrigin(r)
			if err == nil {
				err = serve(w, r)
			}
			if err != nil {
				d.refuse(w, r, reins.AsError(err))
			}
		}))
	}
}

// errNoOrigin refuses a request that changes something, or opens a WebSocket, and does
// not say of which page it is. Browsers always do; the guard has judged what they say.
func errNoOrigin(r *http.Request) error {
	reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
	if reads || r.Header.Get("Origin") != "" {
		return nil
	}
	return reins.Errorf(reins.CodeDenied, "a request with a cookie that changes something has to carry the Origin of its page").In(reins.PhaseAdmission)
}

// cookieOf is the secret in the session's cookie; "" when there is none, or several.
func (d *Door) cookieOf(r *http.Request) reins.Token {
	all := r.CookiesNamed(d.cookie)
	if len(all) != 1 {
		return ""
	}
	return reins.Token(all[0].Value)
}

func (d *Door) setCookie(w http.ResponseWriter, value string, life int) {
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie, Value: value, Path: "/", MaxAge: life,
		HttpOnly: true, Secure: d.o.Secure, SameSite: http.SameSiteStrictMode,
	})
}

// join spends a link's secret, which the page has taken out of its fragment and posts:
// previews of links send none.
func (d *Door) join(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Secret reins.Token `json:"secret"`
	}
	if err := readForm(r, &in); err != nil {
		return err
	}
	s, token, err := d.people.enter(in.Secret)
	if err != nil {
		return err
	}
	if s.framed {
		view, err := d.view(r, s)
		if err != nil {
			return err
		}
		answer(w, http.StatusOK, map[string]any{"session": view, "key": string(token)})
		return nil
	}
	if old, err := d.people.session(d.cookieOf(r)); err == nil {
		d.people.leave(old) // the cookie is about to be another's
	}
	view, err := d.view(r, s)
	if err != nil {
		return err
	}
	d.setCookie(w, string(token), int(time.Until(s.expires).Seconds()))
	answer(w, http.StatusOK, map[string]any{"session": view})
	return nil
}

func (d *Door) view(r *http.Request, s *session) (sessionView, error) {
	v := sessionView{Actor: s.access.Actor, Projects: append([]string{}, s.access.Projects...), Expires: s.expires}
	if k := s.access.Resource; k != nil {
		v.Resource = &api.Place{Project: k.Project, ID: k.ID}
	}
	if s.access.All && d.o.Projects != nil {
		all, err := d.o.Projects(r.Context())
		if err != nil {
			return v, err
		}
		v.Projects = append(v.Projects, all...)
		slices.Sort(v.Projects)
		v.Projects = slices.Compact(v.Projects)
	}
	return v, nil
}

// newPage gives a page that was loaded by a session its own secret.
func (d *Door) newPage(w http.ResponseWriter, r *http.Request) error {
	s, err := d.people.session(d.secretOf(r))
	if err != nil {
		return err
	}
	view, err := d.view(r, s)
	if err != nil {
		return err
	}
	token, err := d.people.page(s)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"page": string(token), "session": view})
	return nil
}

func (d *Door) leave(w http.ResponseWriter, r *http.Request) error {
	s, err := d.people.session(d.secretOf(r))
	if err != nil {
		return err
	}
	d.people.leave(s)
	if !s.framed {
		d.setCookie(w, "", -1)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// paged serves a request of an open page.
func (d *Door) paged(serve func(http.ResponseWriter, *http.Request, *page) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		g, over, err := d.people.visit(d.secretOf(r), pageSecret(r))
		if err != nil {
			return err
		}
		defer over()
		return serve(w, r.WithContext(as(r.Context(), who{page: g})), g)
	}
}

func (d *Door) open(w http.ResponseWriter, r *http.Request, g *page) error {
	var in struct {
		Project  string `json:"project"`
		Resource string `json:"resource"`
	}
	if err := readForm(r, &in); err != nil {
		return err
	}
	key := reins.ResourceKey{Project: in.Project, ID: in.Resource}
	if err := d.ask(r.Context(), g.visit("page", key, r)); err != nil {
		return err
	}
	state, err := d.people.openLease(r.Context(), g, key)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"lease": state.Lease, "state": state})
	return nil
}

func (d *Door) closeLease(w http.ResponseWriter, r *http.Request, g *page) error {
	var in struct {
		Lease string `json:"lease"`
	}
	if err := readForm(r, &in); err != nil {
		return err
	}
	if err := d.people.closeLease(r.Context(), g, in.Lease); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// fromPage reports whether a request is a page's: it carries the secret of one, or the
// cookie and nothing else to be known by.
func (d *Door) fromPage(r *http.Request) bool {
	return pageSecret(r) != "" || d.cookieOf(r) != "" && r.Header.Get("Reins-Capability") == ""
}

// pageSecret is the secret of a page that a request carries; a WebSocket can carry it
// as a subprotocol only.
func pageSecret(r *http.Request) reins.Token {
	return carried(r, pageHeader, pageProtocol)
}

// secretOf is the secret that a session is known by: a frame's own, or the cookie's.
func (d *Door) secretOf(r *http.Request) reins.Token {
	if s := carried(r, sessionHeader, sessionProtocol); s != "" {
		return s
	}
	return d.cookieOf(r)
}

// carried is the secret in a header, or in a subprotocol of a WebSocket.
func carried(r *http.Request, header, protocol string) reins.Token {
	if s := r.Header.Get(header); s != "" {
		return reins.Token(s)
	}
	if r.Header.Get("Upgrade") == "" {
		return ""
	}
	for _, p := range protocols(r) {
		if s, ok := strings.CutPrefix(p, protocol); ok {
			return reins.Token(s)
		}
	}
	return ""
}

func protocols(r *http.Request) []string {
	var all []string
	for _, p := range strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		all = append(all, strings.TrimSpace(p))
	}
	return all
}

// servePage lets a page use what it may of the API. Both secrets are needed: the cookie
// alone is what another site could make a browser send, the page's alone is what
// somebody could have overheard.
func (d *Door) servePage(w http.ResponseWriter, r *http.Request) {
	err := errNoOrigin(r)
	if err == nil {
		if _, may := d.pages.Handler(r); may == "" {
			err = reins.Errorf(reins.CodeDenied, "pages of people may not do this; use an API key").In(reins.PhaseAdmission)
		}
	}
	var g *page
	var over func()
	if err == nil {
		g, over, err = d.people.visit(d.secretOf(r), pageSecret(r))
	}
	if err != nil {
		if guarded := d.guard.Check(r); guarded != nil { // nothing is said to others' pages
			err = guarded
		}
		d.refuse(w, r, reins.AsError(err))
		return
	}
	defer over()
	r = r.WithContext(as(r.Context(), who{page: g}))
	if r.Header.Get("Upgrade") != "" {
		if err := d.ask(r.Context(), g.visit("stream", g.keyOf(r), r)); err != nil {
			d.refuse(w, r, reins.AsError(err))
			return
		}
	}
	r.Header = r.Header.Clone()
	r.Header.Del(pageHeader)
	r.Header.Del(sessionHeader)
	r.Header.Del("Reins-Capability")
	if own := slices.DeleteFunc(protocols(r), func(p string) bool {
		return p == "" || strings.HasPrefix(p, pageProtocol) || strings.HasPrefix(p, sessionProtocol)
	}); len(own) > 0 {
		r.Header.Set("Sec-WebSocket-Protocol", strings.Join(own, ", "))
	}
	d.api.ServeHTTP(w, r)
}

// readForm reads a small JSON body strictly.
func readForm(r *http.Request, out any) error {
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, formMax))
	dec.DisallowUnknownFields()
	err := dec.Decode(out)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return reins.Errorf(reins.CodeInvalidInput, "the body goes on after its JSON value")
		}
		return nil
	}
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return webguard.BodyError(err)
	}
	return reins.Errorf(reins.CodeInvalidInput, "the body is not what is expected here: %.200s", err)
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // of our own types: not possible
		status, b = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left has lost its answer
}

// refuse answers with an error in the one shape (API-4).
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, e *reins.Error) {
	if e.Code == reins.CodeInternal {
		d.o.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "err", e, "cause", e.Cause)
	}
	status := e.Code.Info().Status
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Cache-Control", "no-store")
	answer(w, status, e)
}
