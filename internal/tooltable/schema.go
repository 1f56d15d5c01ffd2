package tooltable

import (
	"encoding/json"

	"github.com/reins-browser/reins"
)

// Schema is the part of JSON Schema that common clients and model services
// all take: no unions, references, lists of types or empty lists.
type Schema struct {
	Type        Kind       `json:"type"`
	Description string     `json:"description,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Items       *Schema    `json:"items,omitempty"`
	Properties  properties `json:"properties,omitzero"`
	Required    []string   `json:"required,omitempty"`
	Additional  *bool      `json:"additionalProperties,omitempty"`
}

// properties keep their order, which is the order in which a model reads them.
type properties []property

// property is one of them.
type property struct {
	name string
	Schema
}

// MarshalJSON writes an object.
func (p properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, each := range p {
		if i > 0 {
			out = append(out, ',')
		}
		body, err := json.Marshal(each.Schema)
		if err != nil {
			return nil, err
		}
		out = append(out, '"')
		out = append(out, each.name...)
		out = append(out, '"', ':')
		out = append(out, body...)
	}
	return append(out, '}'), nil
}

// InputSchema says what arguments the tool takes (MCP-4).
func (t *Tool) InputSchema(o Offer) Schema {
	closed := false
	out := Schema{Type: "object", Properties: properties{}, Additional: &closed}
	for _, p := range t.Parameters(o) {
		s := Schema{Type: p.Kind, Description: p.About, Enum: p.Enum}
		switch p.Kind {
		case Texts:
			s.Items, s.Enum = &Schema{Type: Text, Enum: p.Enum}, nil
		case Point:
			s.Properties = properties{{"x", Schema{Type: Number, Description: "from the left"}}, {"y", Schema{Type: Number, Description: "from the top"}}}
			s.Required = []string{"x", "y"}
		}
		out.Properties = append(out.Properties, property{p.Name, s})
		if p.Required {
			out.Required = append(out.Required, p.Name)
		}
	}
	return out
}

// OutputSchema says what the structured content holds, without demanding any of
// it: a failure has other fields.
func (t *Tool) OutputSchema() Schema {
	if t.full { // as with the others; to say so again would cost each client
		return Schema{Type: "object"}
	}
	out := Schema{Type: "object", Properties: properties{
		{"did", Schema{Type: Text}},
		{"page", Schema{Type: "object"}},
	}}
	if !t.verb.ReadOnly() {
		out.Properties = append(out.Properties, property{"changes", Schema{Type: "object"}})
	}
	if t.verb == reins.VerbListTabs {
		out.Properties = append(out.Properties, property{"tabs", Schema{Type: "array", Items: &Schema{Type: "object"}}})
	}
	if _, has := t.parameter("snapshot", Offer{}); has {
		out.Properties = append(out.Properties, property{"page_content", Schema{Type: Text}})
	}
	return out
}
