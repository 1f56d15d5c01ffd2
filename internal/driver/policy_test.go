package driver

import (
	"net/url"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// NAV-2: what an agent may give as an address.
func TestAddress(t *testing.T) {
	for _, test := range []struct {
		given, want string
		code        reins.Code
	}{
		{"https://example.com/a?b#c", "https://example.com/a?b#c", ""},
		{" HTTP://Example.com ", "HTTP://Example.com", ""},
		{"example.com", "https://example.com", ""},
		{"example.com/path", "https://example.com/path", ""},
		{"example.com:8443/path", "https://example.com:8443/path", ""},
		{"localhost:3000", "https://localhost:3000", ""},
		{"127.0.0.1:80?q", "https://127.0.0.1:80?q", ""},
		{"[::1]:80/", "https://[::1]:80/", ""},
		{"//example.com/x", "https://example.com/x", ""},
		{"münchen.example", "https://münchen.example", ""},
		{"about:blank", "about:blank", ""},
		{"About:Blank", "about:blank", ""},
		{"about:srcdoc", "", reins.CodeNavigationBlocked},
		{"javascript:1", "", reins.CodeNavigationBlocked},
		{"JaVaScRiPt:alert(1)", "", reins.CodeNavigationBlocked},
		{"data:text/html,x", "", reins.CodeNavigationBlocked},
		{"blob:https://example.com/1", "", reins.CodeNavigationBlocked},
		{"file:///etc/passwd", "", reins.CodeNavigationBlocked},
		{"file:80", "", reins.CodeNavigationBlocked},
		{"chrome://settings", "", reins.CodeNavigationBlocked},
		{"devtools://devtools", "", reins.CodeNavigationBlocked},
		{"view-source:https://example.com", "", reins.CodeNavigationBlocked},
		{"x-unknown:whatever", "", reins.CodeNavigationBlocked},
		{"https://", "", reins.CodeInvalidInput},
		{"https:///path", "", reins.CodeInvalidInput},
		{"https://exa mple.com", "", reins.CodeInvalidInput},
		{"/path", "", reins.CodeInvalidInput},
		{"", "", reins.CodeInvalidInput},
	} {
		got, err := address(test.given, reins.NavigationPolicy{})
		if got != test.want || reins.CodeOf(err) != test.code {
			t.Errorf("address(%q) = %q, %v; want %q, %s", test.given, got, err, test.want, test.code)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("https://example.com")
	f.Add("java\tscript:1")
	f.Fuzz(func(t *testing.T, given string) {
		got, err := address(given, reins.NavigationPolicy{})
		if err != nil {
			return
		}
		low := strings.ToLower(got)
		if got != blankPage && !strings.HasPrefix(low, "http://") && !strings.HasPrefix(low, "https://") {
			t.Errorf("address(%q) = %q", given, got)
		}
	})
}

// NAV-3: rules over hosts.
func TestNavigationRules(t *testing.T) {
	policy := func(allow, deny string) reins.NavigationPolicy {
		return reins.NavigationPolicy{Allow: strings.Fields(allow), Deny: strings.Fields(deny)}
	}
	for _, test := range []struct {
		url         string
		allow, deny string
		ok          bool
	}{
		{"https://example.com", "", "", true},
		{"https://example.com", "example.com", "", true},
		{"https://EXAMPLE.com.", "Example.com", "", true},
		{"https://www.example.com", "example.com", "", false},
		{"https://www.example.com", "*.example.com", "", true},
		{"https://example.com", "*.example.com", "", false},
		{"https://badexample.com", "*.example.com", "", false},
		{"https://example.com", "example.com:443", "", true},
		{"http://example.com", "example.com:443", "", false},
		{"http://example.com:8080", "example.com:8080", "", true},
		{"https://www.example.com", "*.example.com", "www.example.com", false},
		{"https://example.com", "", "example.com", false},
		{"https://[::1]:8080", "[::1]:8080", "", true},
		{"https://[::1]", "[::1]", "", true},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		err = allowed(u, policy(test.allow, test.deny))
		if (err == nil) != test.ok {
			t.Errorf("%s under allow %q, deny %q: %v", test.url, test.allow, test.deny, err)
		}
	}
}

// NAV-3 on the engine that reads no policies: by whichever means, the page
// goes nowhere that the rules deny.
func TestNavigationRulesHold(t *testing.T) {
	s := site(t, map[string]string{
		"/":      `<title>Home</title><a id=link>link</a>`,
		"/frame": `<title>Frame</title>`,
	})
	denied := at(s, "denied.test", "/")
	c := launch(t, reins.EngineShell)
	settings := c.settings()
	settings.Engine = reins.EngineShell
	settings.Navigation.Deny = []string{"denied.test"}
	b := connectTo(t, c, settings, Handover{})
	b.open(t, s.URL)
	tab := b.tabNow()
	_, err := b.try(reins.Navigate{URL: denied})
	wantCode(t, err, reins.CodeNavigationBlocked)
	for _, how := range []string{
		`location.href = U`, `location.replace(U)`, `document.getElementById("link").href = U; document.getElementById("link").click()`,
		`document.body.insertAdjacentHTML("beforeend", "<form id=f action=" + U + ">"); document.getElementById("f").submit()`,
		`document.head.insertAdjacentHTML("beforeend", "<meta http-equiv=refresh content='0;url=" + U + "'>")`,
	} {
		b.pageScript(t, tab, "setTimeout(() => { const U = '"+denied+"'; "+how+" }, 1); 0")
		b.eventually(t, how, func() bool { return tab.nav.unreachable == denied || strings.Contains(tab.url, "denied") })
		if got := tab.info(); got.Title == "Home" && strings.Contains(got.URL, "denied") {
			t.Errorf("%s led to %+v", how, got)
		}
		b.open(t, s.URL)
	}
	fx := b.begin(tab)
	b.pageScript(t, tab, "void window.open('"+denied+"')")
	b.eventually(t, "the popup", func() bool { return len(b.tabs) == 2 && b.tabs[1].nav.unreachable == denied })
	fx.end(b.browser)
	// Frames are not top-level navigations; the rules are not about them.
	b.act(t, reins.SelectTab{Tab: "t1"})
	b.pageScript(t, tab, `new Promise(d => { const f = document.createElement("iframe"); f.src = "`+at(s, "denied.test", "/frame")+`"; f.onload = () => d(); document.body.append(f) })`)
	waitFor(t, "the frame is there", func() bool { return strings.Contains(outlineOf(t, tab), ">Frame") })
}

// NAV-2: what is refused wherever it comes from stays closed to pages without
// our doing, on both engines.
func TestSchemesAreClosedToPages(t *testing.T) {
	s := site(t, map[string]string{"/": `<title>Home</title><a id=link>link</a>`})
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		b.open(t, s.URL)
		tab := b.tabNow()
		for _, to := range []string{"file:///etc/passwd", "chrome://version/", "view-source:" + s.URL, "devtools://devtools/bundled/inspector.html"} {
			for _, how := range []string{`location.href = U`, `window.open(U)`, `const l = document.getElementById("link"); l.href = U; l.click(); l.target = "_blank"; l.click()`} {
				b.pageScript(t, tab, `new Promise(d => setTimeout(() => { try { const U = "`+to+`"; `+how+` } finally { requestAnimationFrame(() => setTimeout(d, 50)) } }, 1))`)
			}
		}
		for _, tab := range b.listTabs(t.Context()).Result.Tabs {
			if tab.URL != blankPage && tab.URL != s.URL+"/" && !strings.HasPrefix(tab.URL, "about:blank") {
				t.Errorf("tab %+v", tab)
			}
		}
	})
}
