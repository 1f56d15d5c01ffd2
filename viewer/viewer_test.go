package viewer_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/reins-browser/reins/viewer"
)

// all reads every file that is served.
func all(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(viewer.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(viewer.Files(), name)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// VIEW-3: nothing inside of the markup that a strict policy refuses, and nothing
// from elsewhere.
func TestPagesFitAStrictPolicy(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*[^/a-z"=])?>|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:`)
	elsewhere := regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	for name, text := range all(t) {
		if path.Ext(name) == ".html" {
			if m := inline.FindString(text); m != "" {
				t.Errorf("%s holds %q, which a strict policy refuses", name, m)
			}
			if !strings.Contains(text, `<html lang="en">`) || !strings.Contains(text, `name="viewport"`) {
				t.Errorf("%s does not say its language or how it fits a phone", name)
			}
		}
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		if m := elsewhere.FindString(text); m != "" && path.Ext(name) != ".js" {
			t.Errorf("%s names %q; nothing may come from elsewhere", name, m)
		}
		if strings.Contains(text, "innerHTML") || strings.Contains(text, "eval(") {
			t.Errorf("%s makes markup or code of text", name)
		}
	}
}

// Everything that a file asks for is there, and everything that is there is asked
// for.
func TestNothingIsMissingOrLeftOver(t *testing.T) {
	files := all(t)
	asked := map[string]bool{"index.html": true, "resource.html": true, "join.html": true}
	reference := regexp.MustCompile(`/assets/([a-z-]+\.[a-z]+)|from "\./([a-z-]+\.js)"|import \* as T from "\./([a-z-]+\.js)"`)
	icon := regexp.MustCompile(`icons\.svg#([a-z]+)|icon\("([a-z]+)"\)|icon: "([a-z]+)"`)
	for name, text := range files {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target := "assets/" + m[1] + m[2] + m[3]
			asked[target] = true
			if _, ok := files[target]; !ok {
				t.Errorf("%s asks for %s, which is not there", name, target)
			}
		}
		for _, m := range icon.FindAllStringSubmatch(text, -1) {
			if id := m[1] + m[2] + m[3]; !strings.Contains(files["assets/icons.svg"], `id="`+id+`"`) {
				t.Errorf("%s shows the icon %q, which is not there", name, id)
			}
		}
	}
	for name := range files {
		if !asked[name] {
			t.Errorf("nothing asks for %s", name)
		}
	}
}

// Every element that a script asks for by its ID is in a page.
func TestScriptsFindTheirElements(t *testing.T) {
	files := all(t)
	markup := files["index.html"] + files["resource.html"] + files["join.html"]
	byID := regexp.MustCompile(`(?:byId|getElementById)\("([a-z-]+)"\)`)
	for name, text := range files {
		for _, m := range byID.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(markup, `id="`+m[1]+`"`) {
				t.Errorf("%s asks for #%s, which no page has", name, m[1])
			}
		}
	}
}
