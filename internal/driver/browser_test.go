package driver

import (
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

func TestNavigateAndTabs(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		s := site(t, map[string]string{"/": `<title>Home</title><p>hello`, "/next": `<title>Next</title><a href=/>back</a>`})
		b := newBrowser(t, engine)
		r := b.open(t, s.URL+"/")
		n := r.Result.Navigation
		if n.URL != s.URL+"/" || n.Title != "Home" || n.Status != 200 || !n.Waited {
			t.Errorf("navigated to %+v", n)
		}
		t.Logf("%+v %+v", n, r.Result.Tab)
		t.Log(b.script(t, "navigator.userAgent + typeof reins + navigator.webdriver + innerWidth"))
		t.Log(b.kinds())
		if strings.Contains(b.script(t, "navigator.userAgent"), "Headless") {
			t.Error("headless UA")
		}
	})
}
