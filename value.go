package reins

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"
)

// Duration is a time.Duration whose JSON form is whole milliseconds.
type Duration time.Duration

// MarshalJSON writes milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).Milliseconds())
}

// UnmarshalJSON reads milliseconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return Errorf(CodeInvalidInput, "a duration is a whole number of milliseconds, not %.40q", b)
	}
	if ms < -1e12 || ms > 1e12 {
		return Errorf(CodeInvalidInput, "a duration of %d ms is out of range", ms)
	}
	*d = Duration(time.Duration(ms) * time.Millisecond)
	return nil
}

// Value is what a control is set to: exactly one field is set. Its JSON form
// is a string, true or false, a number, a list of strings,
// {"artifacts": ["id"]} or {"secret": "name"}.
type Value struct {
	Text      *string
	Checked   *bool
	Options   []string // for a list that takes several
	Artifacts []string // IDs of files to give to a file control
	Secret    string   // name of a text that the host supplies (ACT-11)
}

// TextValue is a Value of plain text.
func TextValue(s string) Value { return Value{Text: &s} }

// CheckedValue is a Value for a check box, switch or radio.
func CheckedValue(b bool) Value { return Value{Checked: &b} }

// MarshalJSON writes the form described at [Value].
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case v.Text != nil:
		return json.Marshal(*v.Text)
	case v.Checked != nil:
		return json.Marshal(*v.Checked)
	case v.Options != nil:
		return json.Marshal(v.Options)
	case v.Artifacts != nil:
		return json.Marshal(map[string][]string{"artifacts": v.Artifacts})
	case v.Secret != "":
		return json.Marshal(map[string]string{"secret": v.Secret})
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads the forms described at [Value].
func (v *Value) UnmarshalJSON(b []byte) error {
	*v = Value{}
	b = bytes.TrimSpace(b)
	bad := Errorf(CodeInvalidInput, "a value is text, true or false, a number, a list of texts, {\"artifacts\": [id]}, or {\"secret\": name}")
	if len(b) == 0 {
		return bad
	}
	switch c := b[0]; {
	case c == '"':
		v.Text = new(string)
		return json.Unmarshal(b, v.Text)
	case c == 't' || c == 'f':
		v.Checked = new(bool)
		return json.Unmarshal(b, v.Checked)
	case c == '-' || c >= '0' && c <= '9':
		var n json.Number
		if err := json.Unmarshal(b, &n); err != nil {
			return bad
		}
		s := n.String()
		v.Text = &s
		return nil
	case c == '[':
		v.Options = []string{}
		if json.Unmarshal(b, &v.Options) != nil {
			return bad
		}
		return nil
	case c == '{':
		var o struct {
			Artifacts []string `json:"artifacts"`
			Secret    string   `json:"secret"`
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if d.Decode(&o) != nil || (o.Artifacts == nil) == (o.Secret == "") {
			return bad
		}
		v.Artifacts, v.Secret = o.Artifacts, o.Secret
		return nil
	}
	return bad
}

// validate says what is wrong with the value of a field, or nil.
func (v Value) validate(field string) error {
	n := 0
	for _, set := range []bool{v.Text != nil, v.Checked != nil, v.Options != nil, v.Artifacts != nil, v.Secret != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		return Errorf(CodeInvalidInput, "%s needs exactly one of text, checked, options, artifacts, secret", field)
	}
	if v.Secret != "" {
		return checkID("the name of a secret", v.Secret)
	}
	size := 0
	if v.Text != nil {
		size = len(*v.Text)
		if !utf8.ValidString(*v.Text) {
			return Errorf(CodeInvalidInput, "%s is not valid UTF-8", field)
		}
	}
	for _, o := range append(slices.Clone(v.Options), v.Artifacts...) {
		size += len(o)
	}
	if size > MaxFill {
		return Errorf(CodeInvalidInput, "%s has %d bytes; at most %d are taken", field, size, MaxFill)
	}
	return nil
}
