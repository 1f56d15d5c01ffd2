package toolset

import (
	"context"
	"encoding/json"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/tooltable"
)

// Tool is one tool, as agent libraries know them.
type Tool struct {
	Name        string // "browser_click"
	Title       string // for people: "Click"
	Description string // for models
	// Schema is the JSON Schema of the arguments, an object. It holds only what
	// model services commonly take: no unions, references or lists of types.
	Schema json.RawMessage
	// What a host may go by when it decides whether to ask its person first.
	ReadOnly, Destructive, Idempotent bool

	set *Set
	row *tooltable.Tool
}

// Answer is what came of a call.
type Answer struct {
	// Text is for the model, also when the call failed: then it is the error's
	// code and sentence, what to do next, and whether there is a way out.
	Text string
	// Image is the picture of browser_screenshot, unless it was only stored.
	Image *Image
	// Structured is the same as the text as a JSON object, for programs; empty
	// where the answer is a text or a picture by nature.
	Structured json.RawMessage
	// Stored is the artifact that the call made: a screenshot or a PDF.
	Stored *reins.Artifact
	// Err is why the call failed, else nil.
	Err *reins.Error
}

// Image is a picture for a model.
type Image struct {
	MediaType string // "image/png"
	Data      []byte
}

func newTool(s *Set, row *tooltable.Tool) (Tool, error) {
	schema, err := json.Marshal(row.InputSchema(s.list.Offer))
	if err != nil {
		return Tool{}, reins.AsError(err)
	}
	hints := row.Hints()
	return Tool{
		Name: row.Name(), Title: row.Title(), Description: row.About(), Schema: schema,
		ReadOnly: hints.ReadOnly, Destructive: hints.Destructive, Idempotent: hints.Idempotent,
		set: s, row: row,
	}, nil
}

// Parameters is Schema as a map, for libraries that take one. It is the caller's.
func (t Tool) Parameters() map[string]any {
	var out map[string]any
	if json.Unmarshal(t.Schema, &out) != nil {
		return map[string]any{"type": "object"} // of a Tool that no Set made
	}
	return out
}

// Call calls the tool with the arguments that a model gave, a JSON object or
// nothing. It never panics on what a model may write; whatever is wrong is told by
// the answer (see [Answer.Err]).
func (t Tool) Call(ctx context.Context, arguments json.RawMessage) Answer {
	s := t.set
	if s == nil {
		return fail(reins.Errorf(reins.CodeInvalidInput, "this tool belongs to no toolset; take one from Set.Tools"), tooltable.Offer{})
	}
	// As with tokens, the refusal does not say which runs there are. The context
	// is the library's own here, not one that wraps it.
	if s.o.RunOf(ctx) != s.run {
		return s.failure(reins.Errorf(reins.CodeUnauthorized, "this call is not of the run that its tools belong to"))
	}
	ctx, stop, err := s.begin(ctx)
	if err != nil {
		return s.failure(err)
	}
	defer stop()
	answer, err := t.call(ctx, arguments)
	if err != nil {
		return s.failure(err)
	}
	return t.answer(answer)
}

func (t Tool) call(ctx context.Context, arguments json.RawMessage) (*tooltable.Answer, error) {
	s := t.set
	asked, err := s.list.Decode(t.row, arguments)
	if err != nil {
		return nil, err
	}
	lease, err := s.lease(ctx)
	if err != nil {
		return nil, err
	}
	var progress func(reins.Progress)
	if tell := s.o.Progress; tell != nil {
		progress = func(p reins.Progress) { tell(t.Name, p) }
	}
	return asked.Do(ctx, lease, progress)
}

func (t Tool) answer(a *tooltable.Answer) Answer {
	out := Answer{Text: a.Text(), Stored: a.Stored()}
	if p := a.Picture(); p != nil && len(p.Image) > 0 {
		out.Image = &Image{MediaType: p.MediaType, Data: p.Image}
	}
	if !t.row.Document() {
		out.Structured = object(a)
	}
	return out
}

func (s *Set) failure(err error) Answer { return fail(err, s.list.Offer) }

func fail(err error, o tooltable.Offer) Answer {
	f := tooltable.NewFailure(err, o)
	return Answer{Text: f.Text(), Structured: object(f.Structured()), Err: reins.AsError(err)}
}

// object is v as JSON, or nothing where JSON cannot hold it.
func object(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return body
}
