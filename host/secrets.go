package host

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/redact"
)

// maxSecrets is how many values a resource remembers, so that it can take them
// out of its texts: a page may show one at any time. When there is no room, one is
// forgotten that its own next value has long taken the place of.
const maxSecrets = 256

// secrets are the values that were typed on a resource (ACT-11). They are kept
// in memory, and only to be taken out of texts. The lock is a leaf.
type secrets struct {
	mu    sync.Mutex
	set   redact.Set // replaced, never changed
	of    []learned  // in the order of set: the one that was learned or given again last is last
	times uint64     // learn was called
}

// learned is where a value comes from. The values of one name and place that were
// learned at one time belong together; a later time takes the place of earlier ones.
type learned struct {
	name, place string
	time        uint64
}

func (s *secrets) all() redact.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// text is a text without the secrets.
func (s *secrets) text(t string) string { return s.all().Text(t) }

// learn remembers the values that a name has for a place, before they are used.
func (s *secrets) learn(name, place string, values ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, of := slices.Clone(s.set), slices.Clone(s.of)
	s.times++
	for _, value := range values {
		one := redact.Secret{Name: name, Value: value}
		for i := range set {
			if set[i] == one && of[i].place == place { // it is the newest again
				set, of = slices.Delete(set, i, i+1), slices.Delete(of, i, i+1)
				break
			}
		}
		set, of = append(set, one), append(of, learned{name, place, s.times})
	}
	for len(set) > maxSecrets {
		i := slices.IndexFunc(of, func(l learned) bool { return superseded(of, l) })
		if i < 0 {
			return reins.Errorf(reins.CodeQuotaExceeded, "%d secrets are in use on this resource, which is the bound; register another one", maxSecrets).Recover(reins.RecoverRecreate)
		}
		set, of = slices.Delete(set, i, i+1), slices.Delete(of, i, i+1)
	}
	s.set, s.of = set, of
	return nil
}

// superseded reports whether a later value has taken the place of l.
func superseded(all []learned, l learned) bool {
	return slices.ContainsFunc(all, func(o learned) bool { return o.name == l.name && o.place == l.place && o.time > l.time })
}

// forget drops all values, when no text of the resource can follow.
func (s *secrets) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set, s.of = nil, nil
}

// supply puts a secret into a command that wants one: once the driver has told
// where it would be typed and the host has agreed to exactly that (ACT-11).
func (op *operation) supply(ctx context.Context, conn *connection, cmd *driver.Command) error {
	name := reins.Secret(op.action)
	if name == "" {
		return nil
	}
	hook := op.r.gen.host.hooks.Secret
	if hook == nil {
		return reins.Errorf(reins.CodeDenied, "this runtime has no secrets; fill in plain text").In(reins.PhaseHook)
	}
	asked := *cmd
	asked.Ask = true
	reply, err := conn.link.Do(ctx, asked)
	if err != nil {
		return err
	}
	if reply.Place == nil {
		return reins.Errorf(reins.CodeInternal, "the driver did not tell where a secret would be typed")
	}
	place := *reply.Place
	if err := op.permit(ctx, place.Origin, name); err != nil {
		return err
	}
	var value string
	err = op.ask(ctx, "Secret", func(ctx context.Context) (err error) {
		value, err = hook(ctx, op.r.key, place.Origin, name)
		return err
	})
	if err != nil {
		return err
	}
	if n := utf8.RuneCountInString(value); n < redact.Shortest || len(value) > redact.Longest || !utf8.ValidString(value) {
		return reins.Errorf(reins.CodeDenied, "secret %q is not of %d to %d characters of text, so that it could not be kept out of results", name, redact.Shortest, redact.Longest).In(reins.PhaseHook)
	}
	if err := op.r.secrets.learn(name, place.Origin, value); err != nil {
		return err
	}
	cmd.Into, cmd.Secret, cmd.Redact = place, value, op.r.secrets.all()
	return nil
}

// permit decides whether secrets may be typed on an origin at all: https, or
// what the host permits besides.
func (op *operation) permit(ctx context.Context, origin, name string) error {
	if strings.HasPrefix(origin, "https://") {
		return nil
	}
	hook := op.r.gen.host.hooks.SecretOrigin
	if hook == nil || !strings.HasPrefix(origin, "http://") {
		return reins.Errorf(reins.CodeDenied, "secret %q is not typed on %.200q, which is not https; only its host can permit that", name, origin).In(reins.PhaseHook)
	}
	return op.ask(ctx, "SecretOrigin", func(ctx context.Context) error { return hook(ctx, op.r.key, origin) })
}

// told are the strings of a result that the runtime itself or the standard
// chose, by type and field. All others may be a page's.
var told = map[reflect.Type][]string{
	reflect.TypeFor[reins.Result]():           {"Meta"},
	reflect.TypeFor[reins.Artifact]():         {"ID", "Project", "Resource", "Kind", "MediaType", "SHA256", "LeaseID", "Owner"},
	reflect.TypeFor[reins.Dialog]():           {"Kind"},
	reflect.TypeFor[reins.Download]():         {"State"},
	reflect.TypeFor[reins.Target]():           {"Role"},
	reflect.TypeFor[reins.SnapshotResult]():   {"Cursor"},
	reflect.TypeFor[reins.Reading]():          {"Cursor"},
	reflect.TypeFor[reins.CellProcess]():      {"Name"},
	reflect.TypeFor[reins.ScreenshotResult](): {"MediaType"},
	reflect.TypeFor[reins.ConsoleMessage]():   {"Level"},
	reflect.TypeFor[reins.Request]():          {"Method", "Type"},
	reflect.TypeFor[reins.Control]():          {"Actor"},
	reflect.TypeFor[reins.HumanRequest]():     {"ID", "Actor"},
	reflect.TypeFor[reins.HumanAnswer]():      {"Actor"},
}

// hide takes the resource's secrets out of every text of a result. Bytes of
// pictures and artifacts are not covered.
func (s *secrets) hide(res *reins.Result) {
	if set := s.all(); res != nil && len(set) > 0 {
		hide(set, reflect.ValueOf(res).Elem())
		if res.Snapshot != nil {
			res.Snapshot.Text = hideOutline(set, res.Snapshot.Text)
		}
	}
}

func hide(set redact.Set, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			hide(set, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			hide(set, v.Index(i))
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			own := t == reflect.TypeFor[reins.SnapshotResult]() && t.Field(i).Name == "Text"
			if t.Field(i).IsExported() && !own && !slices.Contains(told[t], t.Field(i).Name) {
				hide(set, v.Field(i))
			}
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() { // refs and the like have types of their own
			v.SetString(set.Bounded(v.String()))
		}
	}
}

var refs = regexp.MustCompile(`\[ref=f\d+e\d+\]`)

// hideOutline leaves refs as they are, whatever digits a secret has. The names
// and values have gone through the driver already, each by itself.
func hideOutline(set redact.Set, text string) string {
	var b strings.Builder
	at := 0
	for _, ref := range refs.FindAllStringIndex(text, -1) {
		b.WriteString(set.Text(text[at:ref[0]]))
		b.WriteString(text[ref[0]:ref[1]])
		at = ref[1]
	}
	b.WriteString(set.Text(text[at:]))
	return b.String()
}

// hideError is an error without the resource's secrets. Its cause stays on this
// side.
func (s *secrets) hideError(err error) error {
	e := reins.AsError(err)
	set := s.all()
	if e == nil || len(set) == 0 {
		return err
	}
	out := *e
	out.Message = set.Text(e.Message)
	out.Cause = nil
	out.Details = nil
	for key, value := range e.Details {
		switch v := value.(type) {
		case string:
			if key != "covered_by" {
				value = set.Text(v)
			}
		case *reins.Dialog:
			d := *v
			hide(set, reflect.ValueOf(&d))
			value = &d
		case map[string]any: // as it comes over the driver's link
			value = hideMap(set, v)
		}
		out = *out.With(key, value)
	}
	return &out
}

func hideMap(set redact.Set, m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			v = set.Text(s)
		}
		out[k] = v
	}
	return out
}

// hideRecord is a record of the audit trail without the resource's secrets.
func (s *secrets) hideRecord(rec reins.Record) reins.Record {
	set := s.all()
	if len(set) == 0 {
		return rec
	}
	rec.Detail = set.Text(rec.Detail)
	if rec.Target != nil {
		t := *rec.Target
		t.Name = set.Bounded(t.Name)
		rec.Target = &t
	}
	return rec
}
