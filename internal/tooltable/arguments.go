package tooltable

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/reins-browser/reins"
)

// decode makes the action of a call out of its arguments. What is wrong with
// them is invalid_input and names the argument.
func (t *Tool) decode(raw json.RawMessage, o Offer) (Call, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return Call{}, reins.Errorf(reins.CodeInvalidInput, "the arguments are not a JSON object")
		}
	}
	fields := map[string]json.RawMessage{}
	for name, value := range given {
		p, ok := t.parameter(name, o)
		switch {
		case !ok:
			return Call{}, reins.Errorf(reins.CodeInvalidInput, "argument %.64q is unknown; %s takes %s", name, t.Name(), t.names(o))
		case string(value) == "null": // how some clients say "not given"
			continue
		}
		v, err := p.lenient(value)
		if err != nil {
			return Call{}, err
		}
		if name == "ref" && string(v) == `""` && !p.Required && acts(t.verb) {
			return Call{}, reins.Errorf(reins.CodeInvalidInput, "ref is empty; take one from a snapshot, or leave it out to act on whatever has the focus")
		}
		fields[name] = v
	}
	return t.action(fields)
}

// action builds the action of the fields, which have the right kinds.
func (t *Tool) action(fields map[string]json.RawMessage) (Call, error) {
	var req Call
	switch t.verb {
	case reins.VerbNavigate, reins.VerbOpenTab:
		_, address := fields["url"]
		req.read = address && string(fields["snapshot"]) != "false"
		delete(fields, "snapshot")
	case reins.VerbScreenshot:
		if _, given := fields["image"]; !given {
			fields["image"] = json.RawMessage("true")
		}
	case reins.VerbFill:
		if err := t.fillValue(fields); err != nil {
			return req, err
		}
	}
	var first map[string]json.RawMessage
	var err error
	if t.called == "handle_dialog" {
		if first, fields, err = answerDialog(fields); err != nil {
			return req, err
		}
	}
	if first != nil {
		if req.first, err = newAction(reins.VerbFill, first); err != nil {
			return req, err
		}
	}
	req.action, err = newAction(t.verb, fields)
	req.read = req.read || string(fields["snapshot"]) == "true"
	return req, err
}

func newAction(verb reins.Verb, fields map[string]json.RawMessage) (reins.Action, error) {
	fields["verb"], _ = json.Marshal(verb)
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, reins.Errorf(reins.CodeInvalidInput, "the arguments are not valid JSON: %w", err)
	}
	return reins.DecodeAction(body)
}

// fillValue turns the arguments for a value into the action's one, which has a
// form that schemas without unions cannot express.
func (t *Tool) fillValue(fields map[string]json.RawMessage) error {
	var given, taken []string
	for _, name := range []string{"value", "values", "files", "secret"} {
		if _, ok := t.parameter(name, Offer{}); ok {
			taken = append(taken, name)
		}
		if _, ok := fields[name]; ok {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		return reins.Errorf(reins.CodeInvalidInput, "%s needs exactly one of %s", t.Name(), listed(taken))
	}
	value := fields[given[0]]
	delete(fields, given[0])
	switch given[0] {
	case "files":
		value, _ = json.Marshal(map[string]json.RawMessage{"artifacts": value})
	case "secret":
		value, _ = json.Marshal(map[string]json.RawMessage{"secret": value})
	}
	fields["value"] = value
	return nil
}

// listed is "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (t *Tool) names(o Offer) string {
	var out []string
	for _, p := range t.Parameters(o) {
		out = append(out, p.Name)
	}
	if len(out) == 0 {
		return "no arguments"
	}
	return strings.Join(out, ", ")
}

// lenient returns value in the kind that the parameter has, when it can be read
// as one without guessing: models put numbers and truth values into quotes, and
// single things where lists are taken.
func (p Parameter) lenient(value json.RawMessage) (json.RawMessage, error) {
	quoted, isText := unquote(value)
	switch p.Kind {
	case Text:
		if isText || p.Name == "value" { // a value may be a truth value, a number or a list
			return value, nil
		}
		if n := json.Number(value); json.Unmarshal(value, &n) == nil {
			return json.Marshal(n.String())
		}
	case Boolean:
		if isText {
			value = json.RawMessage(strings.ToLower(strings.TrimSpace(quoted)))
		}
		if slices.Contains([]string{"true", "false"}, string(value)) {
			return value, nil
		}
	case Integer:
		if isText {
			value = json.RawMessage(strings.TrimSpace(quoted))
		}
		if f, err := strconv.ParseFloat(string(value), 64); err == nil && f == float64(int64(f)) {
			return json.RawMessage(strconv.FormatInt(int64(f), 10)), nil
		}
	case Number:
		if isText {
			value = json.RawMessage(strings.TrimSpace(quoted))
		}
		if f, err := strconv.ParseFloat(string(value), 64); err == nil && json.Unmarshal(value, &f) == nil {
			return value, nil
		}
	case Texts:
		return p.list(value, quoted, isText)
	case Point:
		if isText {
			value = json.RawMessage(quoted)
		}
		if json.Unmarshal(value, &reins.Point{}) == nil {
			return value, nil
		}
	}
	return nil, reins.Errorf(reins.CodeInvalidInput, "%s must be %s, not %.60s", p.Name, p.Kind.article(), value)
}

// list reads a list of texts, a list in quotes, or one text as a list of one.
func (p Parameter) list(value json.RawMessage, quoted string, isText bool) (json.RawMessage, error) {
	if isText {
		inner := json.RawMessage(quoted)
		if json.Unmarshal(inner, &[]string{}) == nil && strings.HasPrefix(strings.TrimSpace(quoted), "[") {
			return inner, nil
		}
		return json.Marshal([]string{quoted})
	}
	var all []string
	if json.Unmarshal(value, &all) == nil && all != nil {
		return value, nil
	}
	return nil, reins.Errorf(reins.CodeInvalidInput, "%s must be a list of texts, not %.60s", p.Name, value)
}

func unquote(value json.RawMessage) (string, bool) {
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", false
	}
	return s, true
}

func (k Kind) article() string {
	switch k {
	case Text:
		return "a text"
	case Integer:
		return "a whole number"
	case Number:
		return "a number"
	case Boolean:
		return "true or false"
	case Point:
		return `an object {"x": number, "y": number}`
	}
	return "a list of texts"
}
