package api

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/reins-browser/reins"
)

// Schema implements huma.SchemaProvider: one of all actions, told apart by verb.
func (ActionForm) Schema(r huma.Registry) *huma.Schema {
	s := &huma.Schema{Description: "one action, told by its verb"}
	for _, a := range reins.Actions() {
		t := reflect.TypeOf(a)
		// A schema of its own, beside the vocabulary's, because it has the verb.
		form := *huma.SchemaFromType(r, t)
		form.Title = t.Name()
		form.Properties = cloneWith(form.Properties, "verb", &huma.Schema{Type: huma.TypeString, Enum: []any{string(a.Verb())}})
		form.Required = append([]string{"verb"}, form.Required...)
		s.OneOf = append(s.OneOf, &form)
	}
	return s
}

func cloneWith(m map[string]*huma.Schema, key string, v *huma.Schema) map[string]*huma.Schema {
	out := map[string]*huma.Schema{key: v}
	for k, s := range m {
		out[k] = s
	}
	return out
}

// valueSchema describes [reins.Value], whose JSON form is not its fields.
type valueSchema struct{}

// Schema implements huma.SchemaProvider.
func (valueSchema) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	list := &huma.Schema{Type: huma.TypeArray, Items: text}
	return &huma.Schema{
		Description: "what a control is set to",
		OneOf: []*huma.Schema{
			text, {Type: huma.TypeBoolean}, {Type: huma.TypeNumber}, list,
			{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"artifacts": list}, Required: []string{"artifacts"}},
			{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"secret": text}, Required: []string{"secret"}},
		},
	}
}

// newSpec is the description without its operations.
func newSpec(version string) *huma.OpenAPI {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[reins.Value](), reflect.TypeFor[valueSchema]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Reins",
			Version:     cmp.Or(version, "0"),
			Description: "Sealed Chromium browsers for agents, and for the people who watch over them. Every failure has the form of Error.",
		},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key":        {Type: "http", Scheme: "bearer", Description: "an API key: of an administrator, or of one project"},
				"capability": {Type: "apiKey", In: "header", Name: capabilityHeader, Description: "the token of a capability"},
			},
		},
	}
}

//go:embed page.html
var pageSource string

// publish renders the description once: as JSON and as a page.
func (h *Handler) publish() error {
	spec, err := json.Marshal(h.spec)
	if err != nil {
		return reins.AsError(err)
	}
	page, err := renderPage(h.spec)
	if err != nil {
		return reins.AsError(err)
	}
	for path, doc := range map[string]struct {
		media string
		body  []byte
	}{"/openapi.json": {typeJSON, spec}, "/docs": {"text/html; charset=utf-8", page}} {
		h.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", doc.media)
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
			_, _ = w.Write(doc.body) // a client that left
		})
	}
	return nil
}

// The page's view of the description.
type (
	pageView struct {
		Title, About, Version string
		Groups                []pageGroup
		Types                 []pageType
		Codes                 []reins.CodeInfo
	}
	pageGroup struct {
		Name       string
		Operations []pageOperation
	}
	pageOperation struct {
		Method, Path, ID, Summary, About string
		Auth                             string
		Parameters                       []*huma.Param
		Body, Answer                     pageRef
		Status                           string
	}
	pageRef  struct{ Media, Text, Link string }
	pageType struct {
		Name, About string
		Fields      []pageField
		OneOf       []pageType
	}
	pageField struct {
		Name, Type, Link string
		Required         bool
	}
)

func renderPage(spec *huma.OpenAPI) ([]byte, error) {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return nil, err
	}
	v := pageView{Title: spec.Info.Title, About: spec.Info.Description, Version: spec.Info.Version, Codes: reins.Codes()}
	groups := map[string]int{}
	for _, op := range operations(spec) {
		at, ok := groups[op.Tags[0]]
		if !ok {
			at = len(v.Groups)
			groups[op.Tags[0]] = at
			v.Groups = append(v.Groups, pageGroup{Name: op.Tags[0]})
		}
		v.Groups[at].Operations = append(v.Groups[at].Operations, viewOf(op))
	}
	for name, s := range spec.Components.Schemas.Map() {
		v.Types = append(v.Types, typeView(name, s))
	}
	slices.SortFunc(v.Types, func(a, b pageType) int { return cmp.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	err = t.Execute(&out, v)
	return out.Bytes(), err
}

// operations are all of a description, by group and path.
func operations(spec *huma.OpenAPI) []*huma.Operation {
	var out []*huma.Operation
	for _, p := range spec.Paths {
		for _, op := range []*huma.Operation{p.Get, p.Post, p.Put, p.Delete} {
			if op != nil {
				out = append(out, op)
			}
		}
	}
	slices.SortFunc(out, func(a, b *huma.Operation) int {
		return cmp.Or(cmp.Compare(a.Tags[0], b.Tags[0]), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return out
}

func viewOf(op *huma.Operation) pageOperation {
	v := pageOperation{Method: op.Method, Path: op.Path, ID: op.OperationID, Summary: op.Summary, About: op.Description, Parameters: op.Parameters, Auth: "an API key"}
	if len(op.Security) > 0 && op.Security[0]["capability"] != nil {
		v.Auth = "a capability"
	}
	if op.RequestBody != nil {
		v.Body = contentView(op.RequestBody.Content)
	}
	for status, r := range op.Responses {
		if status != "default" {
			v.Status, v.Answer = status, contentView(r.Content)
		}
	}
	return v
}

func contentView(content map[string]*huma.MediaType) pageRef {
	for media, c := range content {
		text, link := typeText(c.Schema)
		return pageRef{media, text, link}
	}
	return pageRef{}
}

func typeView(name string, s *huma.Schema) pageType {
	v := pageType{Name: name, About: s.Description}
	for field, p := range s.Properties {
		text, link := typeText(p)
		v.Fields = append(v.Fields, pageField{field, text, link, slices.Contains(s.Required, field)})
	}
	slices.SortFunc(v.Fields, func(a, b pageField) int { return cmp.Compare(a.Name, b.Name) })
	if action := s.Properties["action"]; action != nil {
		for _, one := range action.OneOf {
			v.OneOf = append(v.OneOf, typeView(one.Title, one))
		}
	}
	return v
}

// typeText writes a schema in a word or two, and the type it leads to.
func typeText(s *huma.Schema) (text, link string) {
	switch {
	case s == nil:
		return "", ""
	case s.Ref != "":
		link = s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return link, link
	case s.Items != nil:
		text, link = typeText(s.Items)
		return "list of " + text, link
	case len(s.OneOf) > 0:
		return "one of several forms", ""
	case len(s.Enum) == 1:
		return `"` + s.Enum[0].(string) + `"`, ""
	case s.ContentEncoding != "":
		return "base64 text", ""
	case s.Format != "" && s.Format != "int64" && s.Format != "double":
		return s.Format, ""
	case s.Type == huma.TypeObject:
		if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
			text, link = typeText(values)
			return "names to " + text, link
		}
	case s.Type == "":
		return "anything", ""
	}
	return s.Type, ""
}
