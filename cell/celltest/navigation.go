package celltest

import (
	"slices"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

const blocked = "net::ERR_BLOCKED_BY_ADMINISTRATOR"

// testSchemes proves that what NAV-2 forbids is forbidden by the browser
// itself, whoever asks for it, and that pages keep what is theirs.
func testSchemes(t *testing.T, s suite) {
	c := s.start(t, s.spec(t))
	serve(t, c.Doors().Egress)
	b := speak(t, c)
	p := b.open("http://site.test/")
	for _, url := range []string{
		"file:///etc/passwd", "file:///cell/profile/", "view-source:http://site.test/", "chrome://version/", "chrome://settings/",
		"devtools://devtools/bundled/inspector.html", "http://site.test/redirect-file",
	} {
		// A refused redirect is reported in its own words.
		if got := p.navigate(url); got != blocked && got != "net::ERR_UNSAFE_REDIRECT" && got != "net::ERR_ABORTED" {
			t.Errorf("%s: %q, %s", url, got, p.eval(`[location.href, document.documentElement?.innerText]`))
		}
		if text := p.eval(`String(location) + document.documentElement?.innerText`); strings.Contains(text, "root:") || strings.Contains(text, "browser:x") {
			t.Errorf("%s shows %s", url, text)
		}
	}
	// An about: address that is no page of its own is an empty one, not the
	// browser's page of that name.
	if got := p.navigate("about:version"); got != "" || p.eval(`document.documentElement?.innerText ?? ""`) != `""` {
		t.Errorf("about:version: %q, %s", got, p.eval(`document.documentElement?.innerText`))
	}
	if got := p.navigate("about:blank"); got != "" {
		t.Errorf("about:blank: %s", got)
	}
	if got := p.navigate("http://site.test/"); got != "" {
		t.Fatal(got)
	}
	if got := p.eval(`location.href = "javascript:void(document.title = 'ran')", new Promise(done => setTimeout(() => done(document.title), 100))`); got != `"ran"` {
		t.Errorf("a page's own javascript: address gave %s", got)
	}
	if got := p.eval(`new Promise(done => {
		const frame = document.body.appendChild(document.createElement("iframe"));
		frame.onload = () => done(frame.contentDocument?.body.innerText ?? "refused");
		frame.src = URL.createObjectURL(new Blob(["made here"], {type: "text/html"}));
	})`); got != `"made here"` {
		t.Errorf("a page's own blob: address gave %s", got)
	}
}

// testNavigation proves the compiled rules of NAV-3 against Chromium's own
// understanding of them.
func testNavigation(t *testing.T, s suite) {
	for name, c := range map[string]struct {
		policy reins.NavigationPolicy
		want   map[string]bool // may be navigated to
	}{
		"allow": {reins.NavigationPolicy{Allow: []string{"site.test", "*.wild.test", "port.test:8080", "10.0.0.1"}}, map[string]bool{
			"http://site.test/": true, "http://sub.site.test/": false, "http://other.test/": false, "http://site.test.evil.test/": false,
			"http://a.wild.test/": true, "http://a.b.wild.test/": true, "http://wild.test/": false, "http://evilwild.test/": false,
			"http://port.test:8080/": true, "http://port.test/": false, "http://10.0.0.1/": true, "http://10.0.0.2/": false, "about:blank": true,
		}},
		"deny": {reins.NavigationPolicy{Deny: []string{"site.test", "*.wild.test", "port.test:8080", "bücher.test"}}, map[string]bool{
			"http://site.test/": false, "http://sub.site.test/": true, "http://other.test/": true, "http://site.test:8080/x": false,
			"http://a.wild.test/": false, "http://wild.test/": true, "http://port.test:8080/": false, "http://port.test/": true,
			"http://site.test./": false, "http://SITE.test/": false, "http://user@site.test/": false, "http://b%C3%BCcher.test/": false,
		}},
		"both": {reins.NavigationPolicy{Allow: []string{"*.wild.test", "wild.test", "port.test"}, Deny: []string{"a.wild.test", "*.b.wild.test", "port.test:8080"}}, map[string]bool{
			"http://a.wild.test/": false, "http://c.wild.test/": true, "http://wild.test/": true, "http://b.wild.test/": true,
			"http://x.b.wild.test/": false, "http://x.a.wild.test/": true, "http://port.test/": true, "http://port.test:8080/": false, "http://other.test/": false,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := s.spec(t)
			spec.Navigation = c.policy
			box := s.start(t, spec)
			w := serve(t, box.Doors().Egress)
			p := speak(t, box).open("about:blank")
			for url, want := range c.want {
				got := p.navigate(url)
				if got != "" && got != blocked {
					t.Errorf("%s: %s", url, got)
				}
				if (got == "") != want {
					t.Errorf("%s: permitted %t, want %t", url, got == "", want)
				}
			}
			if name == "allow" { // Chromium applies its lists to frames too, and to nothing else of a page
				p.navigate("http://site.test/")
				p.eval(`new Promise(done => { const f = document.body.appendChild(document.createElement("iframe")); f.onload = done; f.src = "http://frame.test/" })`)
				p.eval(`fetch("http://fetched.test/", {mode: "no-cors"}).then(() => 0, () => 0)`)
				if got := w.requests(); slices.Contains(got, "GET http://frame.test/") || !slices.Contains(got, "GET http://fetched.test/") {
					t.Errorf("frames of other hosts are not blocked, or requests are: %q", got)
				}
			}
		})
	}
}
