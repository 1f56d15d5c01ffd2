package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/webguard"
)

// The headers of this door. Tokens and keys travel in headers only (CAP-4).
const (
	capabilityHeader = "Reins-Capability"
	keyHeader        = "Idempotency-Key"
	eventHeader      = "Last-Event-ID"
	digestHeader     = "Repr-Digest"    // RFC 9530
	artifactHeader   = "Reins-Artifact" // its description, as a query is encoded
)

const (
	typeJSON  = "application/json"
	typeBytes = "application/octet-stream"
	typeSSE   = "text/event-stream"
)

// chunk is how much of an artifact is in memory at a time; each is read under
// its own check of authority (LSE-8).
const chunk = 1 << 20

// RegisterForm asks for a resource; an empty ID gets a random one (RES-1).
type RegisterForm struct {
	Resource   string            `json:"resource,omitempty"`
	Attachment reins.Attachment  `json:"attachment,omitzero"`
	Spec       reins.BrowserSpec `json:"spec,omitzero"`
}

// IssueForm asks for a capability; life 0 is the default.
type IssueForm struct {
	Binding reins.Binding `json:"binding"`
	Life    Life          `json:"life,omitempty"`
}

// Life is a duration as text, exact: "5m", "1h30m".
type Life time.Duration

// MarshalText implements encoding.TextMarshaler.
func (l Life) MarshalText() ([]byte, error) { return []byte(time.Duration(l).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Life) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return reins.Errorf(reins.CodeInvalidInput, "life %.40q is no duration such as \"5m\"", b)
	}
	*l = Life(d)
	return nil
}

// WaitForm names the capabilities to wait for; none means all (RDY-3).
type WaitForm struct {
	Capabilities []string `json:"capabilities,omitempty"`
}

// AcquireForm states the complete binding of the capability in the header.
type AcquireForm struct {
	Binding reins.Binding `json:"binding"`
}

// LeaseState is a lease as it stands.
type LeaseState struct {
	Lease     string          `json:"lease"`
	Authority reins.Authority `json:"authority"`
	Expires   time.Time       `json:"expires"`
	Now       time.Time       `json:"now"`      // the server's clock, by which it expires
	Sequence  uint64          `json:"sequence"` // of two states of a lease the higher is the newer
}

// OperationForm is one action of a participant.
type OperationForm struct {
	Action ActionForm `json:"action"`
	Key    string     `json:"key,omitempty"`  // idempotency key under the lease (OPS-5)
	Call   string     `json:"call,omitempty"` // the caller's name for it, to cancel it by: 1 to 64 letters and digits
}

// OperationAnswer is what came of an action, and the lease after it.
type OperationAnswer struct {
	Result *reins.Result `json:"result"`
	State  LeaseState    `json:"state"`
}

// ResourceList and ArtifactList are lists with room for more beside them.
type ResourceList struct {
	Resources []reins.ResourceInfo `json:"resources"`
}

// ArtifactList is what is stored of a resource, or what a lease may see of it.
type ArtifactList struct {
	Artifacts []reins.Artifact `json:"artifacts"`
}

// Nothing is a body with nothing in it.
type Nothing struct{}

// ActionForm is an action in its JSON form (see [reins.DecodeAction]).
type ActionForm struct{ reins.Action }

// MarshalJSON implements json.Marshaler.
func (a ActionForm) MarshalJSON() ([]byte, error) {
	if a.Action == nil {
		return []byte("null"), nil
	}
	return reins.EncodeAction(a.Action)
}

// UnmarshalJSON implements json.Unmarshaler; it validates.
func (a *ActionForm) UnmarshalJSON(b []byte) (err error) {
	a.Action, err = reins.DecodeAction(b)
	return err
}

// decodeBody reads a request's JSON strictly: unknown fields, a second value
// and anything but JSON are invalid_input. An empty body leaves out as it is.
func decodeBody(r *http.Request, out any) error {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != typeJSON {
		return reins.Errorf(reins.CodeInvalidInput, "the body must be of type application/json")
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return webguard.BodyError(err)
	}
	return decodeStrict(b, out)
}

func decodeStrict(b []byte, out any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		var known *reins.Error
		if errors.As(err, &known) {
			return known
		}
		return reins.Errorf(reins.CodeInvalidInput, "the body is not what is expected here: %.200s", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return reins.Errorf(reins.CodeInvalidInput, "the body goes on after its JSON value")
	}
	return nil
}

// decodeError reads the one shape of errors. What is not in it, or names a
// code that is not in the closed set, gives nil.
func decodeError(b []byte) *reins.Error {
	var e reins.Error
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&e) != nil || e.Code.Info().Code != e.Code || e.Message == "" {
		return nil
	}
	for k, v := range e.Details {
		e.Details[k] = plain(v)
	}
	return &e
}

// plain turns JSON numbers into the Go numbers that they are, so that details
// read the same near and far.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		s := v.String()
		var u uint64
		if json.Unmarshal([]byte(s), &u) == nil {
			return u
		}
		var i int64
		if json.Unmarshal([]byte(s), &i) == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil || math.IsInf(f, 0) {
			return s
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// segment writes an ID as part of a path. Servers and proxies take "." and ".."
// for directions, so these two are written with a tilde, which no ID holds.
func segment(id string) string {
	if id == "." || id == ".." {
		return "~" + id
	}
	return url.PathEscape(id)
}

// unsegment undoes segment on what the path held.
func unsegment(s string) string {
	if s == "~." || s == "~.." {
		return s[1:]
	}
	return s
}

// callName reports whether s may name a call.
func callName(s string) bool {
	return len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
