package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/reins-browser/reins"
)

// route is what is written once about a request: the description is made of the
// same values that it is served by (API-1).
type route struct {
	method, path string // "/v1/projects/{project}/resources"
	id           string // of the operation in the description
	tag          string
	summary      string
	about        string
	query        []parameter
	headers      []parameter
	participant  bool // a capability's token is enough
	creates      bool // accepts an idempotency key (API-4), and answers 201
}

// parameter is one of a request's query or header.
type parameter struct{ name, about string }

// call is one request on its way to its handler.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	h    *Handler
	who  Identity
	lone bool // without an API key: a participant
}

func (c *call) path(name string) string { return unsegment(c.r.PathValue(name)) }

// key is the resource in the path.
func (c *call) key() reins.ResourceKey {
	return reins.ResourceKey{Project: c.path("project"), ID: c.path("resource")}
}

func (c *call) resource(ctx context.Context) (reins.Resource, error) {
	return c.h.runtime.Open(ctx, c.key())
}

// handle serves a route with JSON both ways and describes it.
func handle[In, Out any](h *Handler, rt route, serve func(context.Context, *call, In) (Out, error)) {
	op := h.describe(rt, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	status := op.DefaultStatus
	h.route(rt, func(c *call) error {
		var in In
		if err := decodeBody(c.r, &in); err != nil {
			return err
		}
		if err := c.stillGood(); err != nil { // a body may have come late
			return err
		}
		answer := func() (any, error) { return serve(c.r.Context(), c, in) }
		var out any
		var err error
		if rt.creates {
			out, err = c.once(rt, in, answer)
		} else {
			out, err = answer()
		}
		if err != nil {
			return err
		}
		if status == http.StatusNoContent {
			c.w.WriteHeader(status)
			return nil
		}
		return writeJSON(c.w, status, out)
	})
}

// stream serves a route whose answer, and perhaps body, is not one JSON value.
func stream(h *Handler, rt route, media string, in, out reflect.Type, serve func(context.Context, *call) error) {
	op := h.describe(rt, in, out)
	for _, r := range op.Responses {
		if c := r.Content[typeJSON]; c != nil && r.Description == okay {
			r.Content = map[string]*huma.MediaType{media: c}
		}
	}
	h.route(rt, func(c *call) error { return serve(c.r.Context(), c) })
}

// socket serves a route that becomes a WebSocket: in and out are its text
// messages.
func socket(h *Handler, rt route, in, out reflect.Type, serve func(context.Context, *call) error) {
	op := h.describe(rt, reflect.TypeFor[Nothing](), out)
	op.DefaultStatus = http.StatusSwitchingProtocols
	op.Responses["101"] = op.Responses["200"]
	delete(op.Responses, "200")
	op.Responses["101"].Description = "it is a WebSocket now: messages of the server"
	op.Extensions = map[string]any{"x-websocket-request": h.schema(in)}
	h.route(rt, func(c *call) error { return serve(c.r.Context(), c) })
}

// route lets a request in that may do what rt is.
func (h *Handler) route(rt route, serve func(*call) error) {
	h.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		c, err := h.admit(rt, w, r)
		if err == nil {
			err = serve(c)
		}
		if err != nil {
			h.refuse(w, r, reins.AsError(err))
		}
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return reins.AsError(err)
	}
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left has lost its answer
	return nil
}

const okay = "it is done"

// describe adds a route to the description.
func (h *Handler) describe(rt route, in, out reflect.Type) *huma.Operation {
	nothing := reflect.TypeFor[Nothing]()
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.id, Tags: []string{rt.tag},
		Summary: rt.summary, Description: rt.about, DefaultStatus: http.StatusOK,
		Responses: map[string]*huma.Response{},
	}
	for part := range strings.SplitSeq(rt.path, "/") {
		if strings.HasPrefix(part, "{") {
			op.Parameters = append(op.Parameters, h.parameter(strings.Trim(part, "{}"), "path", "", true))
		}
	}
	for _, p := range rt.query {
		op.Parameters = append(op.Parameters, h.parameter(p.name, "query", p.about, false))
	}
	for _, p := range rt.headers {
		op.Parameters = append(op.Parameters, h.parameter(p.name, "header", p.about, false))
	}
	op.Security = []map[string][]string{{"key": {}}}
	if rt.participant {
		op.Security = []map[string][]string{{"capability": {}}, {"capability": {}, "key": {}}}
	}
	if rt.creates {
		op.DefaultStatus = http.StatusCreated
		op.Parameters = append(op.Parameters, h.parameter(keyHeader, "header", "Repeating a request under the same key makes nothing twice.", false))
	}
	if in != nothing {
		media := typeJSON
		if in == reflect.TypeFor[[]byte]() {
			media = typeBytes
		}
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{media: {Schema: h.schema(in)}}}
	}
	done := &huma.Response{Description: okay}
	if out == nothing {
		op.DefaultStatus = http.StatusNoContent
	} else {
		done.Content = map[string]*huma.MediaType{typeJSON: {Schema: h.schema(out)}}
	}
	op.Responses[strconv.Itoa(op.DefaultStatus)] = done
	op.Responses["default"] = &huma.Response{
		Description: "it failed; the status is that of the code",
		Content:     map[string]*huma.MediaType{typeJSON: {Schema: h.schema(reflect.TypeFor[reins.Error]())}},
	}
	h.spec.AddOperation(op)
	return op
}

func (h *Handler) parameter(name, in, about string, required bool) *huma.Param {
	return &huma.Param{Name: name, In: in, Description: about, Required: required, Schema: &huma.Schema{Type: huma.TypeString}}
}

func (h *Handler) schema(t reflect.Type) *huma.Schema {
	if h.o.Binding != nil { // nobody reads it there, and there may be many
		return &huma.Schema{}
	}
	if t == reflect.TypeFor[[]byte]() {
		return &huma.Schema{Type: huma.TypeString, Format: "binary"}
	}
	return h.spec.Components.Schemas.Schema(t, true, t.Name())
}
