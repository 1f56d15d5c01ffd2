package host

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// pages are the strings of a result that a page, an agent or a person wrote, by
// type and field. A new field goes here or into told.
var pages = []string{
	"Result.Clipboard", "Result.Notes",
	"Tab.URL", "Tab.Title", "NavigationResult.URL", "NavigationResult.Title",
	"Changes.URL", "Changes.Title", "Changes.Value", "Dialog.Message", "Dialog.Default",
	"Download.Name", "Download.URL", "Download.Reason", "Artifact.Name", "Target.Name",
	"SnapshotResult.Text", // by hideOutline
	"Reading.Markdown", "ConsoleMessage.Text", "ConsoleMessage.URL", "Request.URL", "Request.Failure",
	"HumanRequest.Reason", "HumanAnswer.Note",
	"CellConnection.Host", "CellFile.Name",
}

// TestEveryTextIsJudged is ACT-11: of each string of a result it is decided
// whether the runtime chose it, so that secrets are taken out of all others and
// names that the runtime gave stay usable, whatever digits a secret has.
func TestEveryTextIsJudged(t *testing.T) {
	var found []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(at reflect.Type) {
		switch at.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(at.Elem())
			return
		case reflect.Struct:
		case reflect.Map, reflect.Interface, reflect.Array:
			t.Errorf("%s is of a kind that secrets are not taken out of", at)
			return
		default:
			return
		}
		if seen[at] {
			return
		}
		seen[at] = true
		for i := range at.NumField() {
			f := at.Field(i)
			if !f.IsExported() || slices.Contains(told[at], f.Name) {
				continue
			}
			text := f.Type
			if text.Kind() == reflect.Slice {
				text = text.Elem()
			}
			if text == reflect.TypeFor[string]() {
				found = append(found, at.Name()+"."+f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[reins.Result]())
	for _, name := range found {
		if !slices.Contains(pages, name) {
			t.Errorf("%s: whose text is it? Put it into told or here", name)
		}
	}
	for _, name := range pages {
		if !slices.Contains(found, name) {
			t.Errorf("%s is no page's text of a result", name)
		}
	}
	for at, fields := range told {
		for _, name := range fields {
			if _, ok := at.FieldByName(name); !ok {
				t.Errorf("%s has no %s", at, name)
			}
		}
	}
}

// TestAnswerable is CTL-8 with ACT-11: a hand-off can be answered whatever secret
// was typed, and who asks stays readable.
func TestAnswerable(t *testing.T) {
	bubble(t, anyone, func(t *testing.T, w *world, r *resource) {
		agent, ada := w.lease(t, agentOf(key1, 1)), w.lease(t, personOf(key1))
		asked := start(agent, reins.Call{Action: reins.RequestHuman{Reason: "is agent-7 right?"}})
		id := controlOf(t, ada).Requests[0].ID
		for _, value := range []string{id[4:10], "agent", "agent-7"} {
			if err := r.secrets.learn("code", "code", value); err != nil {
				t.Fatal(err)
			}
		}
		got := controlOf(t, ada).Requests[0]
		if got.ID != id || got.Actor != "agent" || strings.Contains(got.Reason, "agent-7") {
			t.Errorf("shown %+v", got)
		}
		if err := act(ada, reins.AnswerHuman{Request: got.ID}); err != nil {
			t.Error(err)
		}
		if err := <-asked; err != nil {
			t.Error(err)
		}
	})
}

// TestSecretsRotate is ACT-11 and NAV-5: values that follow each other do not use
// up a resource's bound; the newest of each are never forgotten, and when they
// fill it alone the next one is refused.
func TestSecretsRotate(t *testing.T) {
	var s secrets
	for i := range 10 * maxSecrets { // of a site whose password is new each day
		pin := fmt.Sprintf("rotating-pin-%d", i)
		if err := s.learn("password of https://a.test", "https://a.test", pin, "token-of-"+pin); err != nil {
			t.Fatal(err)
		}
		if err := s.learn("steady", "https://b.test", "a steady password"); err != nil {
			t.Fatal(err)
		}
		if got := s.text("say " + pin + " token-of-" + pin + " a steady password"); strings.Contains(got, "pin-") || strings.Contains(got, "steady password") {
			t.Fatalf("value %d is shown: %s", i, got)
		}
		if n := len(s.all()); n > maxSecrets {
			t.Fatalf("%d are kept", n)
		}
	}
	if got := s.text(fmt.Sprintf("rotating-pin-%d", 10*maxSecrets-100)); strings.Contains(got, "rotating") {
		t.Errorf("one of the last is forgotten while there is room: %s", got)
	}
	if got := s.text("rotating-pin-7;"); !strings.Contains(got, "pin-7") {
		t.Errorf("the first is kept beyond the bound: %s", got)
	}
	full := secrets{}
	for i := range maxSecrets {
		if err := full.learn("pin", fmt.Sprintf("https://%d.test", i), fmt.Sprintf("pin number %d.", i)); err != nil {
			t.Fatal(err)
		}
	}
	code(t, full.learn("pin", "https://more.test", "one too many"), reins.CodeQuotaExceeded)
	if got := full.text("pin number 0."); strings.Contains(got, "number") {
		t.Errorf("a refused one pushed out another: %s", got)
	}
	if err := full.learn("pin", "https://3.test", "the next one"); err != nil { // takes the place of its own
		t.Error(err)
	}
	if got := full.text("the next one"); strings.Contains(got, "next") {
		t.Error(got)
	}
}
