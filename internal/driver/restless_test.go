package driver

import (
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// TestRestlessPage: of a page that replaces itself all the time nothing false is
// told: a navigation that it takes back has failed, an outline is of the page
// that the tab is said to show, and a picture is one or is refused for what it is
// (NAV-1, SNAP-4, ACT-5).
func TestRestlessPage(t *testing.T) {
	s := site(t, map[string]string{
		"/x":     `<!doctype html><title>Restless</title><h1>Old</h1><button>Go</button><script>setTimeout(() => location.replace("/x?" + Math.random()), 10)</script>`,
		"/other": `<!doctype html><title>Other</title><h1>New heading</h1><button>Go</button>`,
	})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for i := range 12 {
			if r, err := b.try(reins.Navigate{URL: s.URL + "/x"}); err == nil && !strings.Contains(r.Result.Navigation.URL, "/x") {
				t.Errorf("it led to %+v", r.Result.Navigation)
			}
			if i == 0 {
				began := time.Now()
				_, err := b.try(reins.Screenshot{})
				if took := time.Since(began); took > 10*time.Second || err != nil && !strings.Contains(err.Error(), "again and again") {
					t.Errorf("a picture after %s: %v", took, err)
				}
			}
			to := s.URL + "/other"
			if i%2 == 1 {
				to = at(s, "other.test", "/other")
			}
			r, err := b.try(reins.Navigate{URL: to})
			if err != nil {
				if !strings.Contains(err.Error(), "that was being left") {
					t.Error(err)
				}
			} else if n := r.Result.Navigation; n.URL != to || n.Title != "Other" {
				t.Errorf("a success led to %+v", n)
			}
			seen, errSee := b.try(reins.Snapshot{})
			if errSee != nil {
				if !strings.Contains(errSee.Error(), "another page") {
					t.Error(errSee)
				}
				continue
			}
			is := strings.Contains(seen.Result.Snapshot.Text, "New heading")
			if told := strings.HasSuffix(seen.Result.Tab.URL, "/other"); told != is || err == nil && !is {
				t.Errorf("in %+v it reads\n%s", seen.Result.Tab, seen.Result.Snapshot.Text)
			}
		}
	})
}
