package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/reins-browser/reins"
)

// request is a decoded call: the action, and what the door itself adds.
type request struct {
	action reins.Action
	read   bool // a snapshot belongs to the result
}

// decode makes the action of a call out of its arguments. What is wrong with
// them is invalid_input and names the argument.
func (t *tool) decode(raw json.RawMessage, tabs bool) (request, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return request{}, reins.Errorf(reins.CodeInvalidInput, "the arguments are not a JSON object")
		}
	}
	fields := map[string]json.RawMessage{}
	for name, value := range given {
		p, ok := t.parameter(name, tabs)
		switch {
		case !ok:
			return request{}, reins.Errorf(reins.CodeInvalidInput, "argument %.64q is unknown; %s takes %s", name, t.name(), t.names(tabs))
		case string(value) == "null": // how some clients say "not given"
			continue
		}
		v, err := p.lenient(value)
		if err != nil {
			return request{}, err
		}
		fields[name] = v
	}
	return t.action(fields)
}

// action builds the action of the fields, which have the right kinds.
func (t *tool) action(fields map[string]json.RawMessage) (request, error) {
	var req request
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
		if err := fillValue(fields); err != nil {
			return req, err
		}
	}
	fields["verb"], _ = json.Marshal(t.verb)
	body, err := json.Marshal(fields)
	if err != nil {
		return req, reins.Errorf(reins.CodeInvalidInput, "the arguments are not valid JSON: %w", err)
	}
	req.action, err = reins.DecodeAction(body)
	req.read = req.read || string(fields["snapshot"]) == "true"
	return req, err
}

// fillValue turns the three arguments for a value into the action's one, which
// has a form that schemas without unions cannot express.
func fillValue(fields map[string]json.RawMessage) error {
	var given []string
	for _, name := range []string{"value", "values", "files"} {
		if _, ok := fields[name]; ok {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		return reins.Errorf(reins.CodeInvalidInput, "browser_fill needs exactly one of value, values and files")
	}
	value := fields[given[0]]
	delete(fields, given[0])
	if given[0] == "files" {
		value, _ = json.Marshal(map[string]json.RawMessage{"artifacts": value})
	}
	fields["value"] = value
	return nil
}

func (t *tool) names(tabs bool) string {
	var out []string
	for _, p := range t.all(tabs) {
		out = append(out, p.name)
	}
	if len(out) == 0 {
		return "no arguments"
	}
	return strings.Join(out, ", ")
}

// lenient returns value in the kind that the parameter has, when it can be read
// as one without guessing: models put numbers and truth values into quotes, and
// single things where lists are taken.
func (p parameter) lenient(value json.RawMessage) (json.RawMessage, error) {
	quoted, isText := unquote(value)
	switch p.kind {
	case text:
		if isText || p.name == "value" { // a value may be a truth value, a number or a list
			return value, nil
		}
		if n := json.Number(value); json.Unmarshal(value, &n) == nil {
			return json.Marshal(n.String())
		}
	case boolean:
		if isText {
			value = json.RawMessage(strings.ToLower(strings.TrimSpace(quoted)))
		}
		if slices.Contains([]string{"true", "false"}, string(value)) {
			return value, nil
		}
	case integer:
		if isText {
			value = json.RawMessage(strings.TrimSpace(quoted))
		}
		if f, err := strconv.ParseFloat(string(value), 64); err == nil && f == float64(int64(f)) {
			return json.RawMessage(strconv.FormatInt(int64(f), 10)), nil
		}
	case texts:
		return p.list(value, quoted, isText)
	case point:
		if isText {
			value = json.RawMessage(quoted)
		}
		if json.Unmarshal(value, &reins.Point{}) == nil {
			return value, nil
		}
	}
	return nil, reins.Errorf(reins.CodeInvalidInput, "%s must be %s, not %.60s", p.name, p.kind.article(), value)
}

// list reads a list of texts, a list in quotes, or one text as a list of one.
func (p parameter) list(value json.RawMessage, quoted string, isText bool) (json.RawMessage, error) {
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
	return nil, reins.Errorf(reins.CodeInvalidInput, "%s must be a list of texts, not %.60s", p.name, value)
}

func unquote(value json.RawMessage) (string, bool) {
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", false
	}
	return s, true
}

func (k kind) article() string {
	switch k {
	case text:
		return "a text"
	case integer:
		return "a whole number"
	case boolean:
		return "true or false"
	case point:
		return `an object {"x": number, "y": number}`
	}
	return "a list of texts"
}
