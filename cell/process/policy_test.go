package process

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// chromiumAllows is how Chromium reads its two lists, as far as host filters
// go: among those that match, the longer host wins, then the one that excludes
// subdomains, then the longer path, then allow.
func chromiumAllows(t interface{ Fatal(...any) }, block, allow []string, raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	type match struct {
		host  int
		exact bool
		path  int
		allow bool
	}
	best, found := match{}, false
	consider := func(filter string, allows bool) {
		m := match{allow: allows}
		if filter != "*" {
			f, err := url.Parse(filter)
			if err != nil || f.Host == "" || f.Scheme != u.Scheme {
				return // a filter of another scheme
			}
			host, exact := strings.CutPrefix(f.Hostname(), ".")
			if f.Port() != "" && f.Port() != portOf(u) || host != u.Hostname() && (exact || !strings.HasSuffix(u.Hostname(), "."+host)) {
				return
			}
			m.host, m.exact, m.path = len(host), exact, len(f.Path)
		}
		better := !found
		switch {
		case better:
		case m.exact != best.exact:
			better = m.exact
		case m.host != best.host:
			better = m.host > best.host
		case m.path != best.path:
			better = m.path > best.path
		default:
			better = m.allow && !best.allow
		}
		if better {
			best, found = m, true
		}
	}
	for _, f := range block {
		consider(f, false)
	}
	for _, f := range allow {
		consider(f, true)
	}
	return !found || best.allow
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// permits is what a navigation policy means (NAV-3): deny wins, and with allow
// rules only what they name is permitted.
func permits(n reins.NavigationPolicy, raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	names := func(entry string) bool {
		host, port, _ := strings.Cut(entry, ":")
		if port != "" && port != portOf(u) {
			return false
		}
		if below, ok := strings.CutPrefix(host, "*"); ok {
			return strings.HasSuffix(u.Hostname(), below)
		}
		return host == u.Hostname()
	}
	return !slices.ContainsFunc(n.Deny, names) && (len(n.Allow) == 0 || slices.ContainsFunc(n.Allow, names))
}

// The compiled lists mean what the policy does. The suite proves on Chromium
// itself that its reading of the lists is the one modelled here.
func TestURLFilters_NAV3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SampledFrom([]string{"a.test", "b.a.test", "c.b.a.test", "test", "xa.test"})
		entry := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"", "*."}).Draw(t, "below") + host.Draw(t, "host") + rapid.SampledFrom([]string{"", ":80", ":8080"}).Draw(t, "port")
		})
		n := reins.NavigationPolicy{Allow: rapid.SliceOfN(entry, 0, 3).Draw(t, "allow"), Deny: rapid.SliceOfN(entry, 0, 3).Draw(t, "deny")}
		block, allow, err := urlFilters(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []string{"a.test", "b.a.test", "c.b.a.test", "d.c.b.a.test", "z.a.test", "test", "xa.test", "y.xa.test", "other"} {
			for _, port := range []string{"", ":8080", ":9090"} {
				u := "http://" + h + port + "/page"
				if got, want := chromiumAllows(t, block, allow, u), permits(n, u); got != want {
					t.Fatalf("%s under %+v: %t, want %t\nblock %q\nallow %q", u, n, got, want, block, allow)
				}
			}
		}
	})
}

func TestHostRulesRefused_NAV3(t *testing.T) {
	for _, entry := range []string{
		"", "*", "*.", ".a.test", "https://a.test", "a.test/path", "a.test:", "a.test:0", "a.test:99999", "a.test:http", "a b", "a\nb",
		"*.10.0.0.1", "*.*.a.test", "user@a.test", "::1", "[::1", "[fe80::1%25eth0]", "a,b", `a"b`, "a?b", "a%2eb",
	} {
		for _, n := range []reins.NavigationPolicy{{Allow: []string{entry}}, {Deny: []string{entry}}} {
			if _, _, err := urlFilters(n); reins.CodeOf(err) != reins.CodeInvalidInput {
				t.Errorf("%q: %v", entry, err)
			}
		}
	}
	for entry, want := range map[string]hostRule{
		"bücher.test": {host: "xn--bcher-kva.test"}, "a.test.": {host: "a.test"}, "*.a_b.test:0443": {host: "a_b.test", port: "443", below: true},
		"10.0.0.1:80": {host: "10.0.0.1", port: "80"}, "[::1]": {host: "[::1]"},
	} {
		if r, ok := parseHostRule(entry); !ok || r != want {
			t.Errorf("%q: %+v, %t", entry, r, ok)
		}
	}
	many := make([]string, filtersMax)
	for i := range many {
		many[i] = fmt.Sprintf("h%d.test", i)
	}
	if _, _, err := urlFilters(reins.NavigationPolicy{Allow: many}); reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Errorf("%d hosts: %v", len(many), err)
	}
}

func FuzzHostRule(f *testing.F) {
	for _, s := range []string{"a.test", "*.a.test:80", "[::1]:8080", "10.0.0.1", "\"", "*", ".", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, ok := parseHostRule(strings.ToLower(s))
		if !ok {
			return
		}
		for _, filter := range r.filters() {
			u, err := url.Parse(filter)
			if err != nil || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" || strings.Trim(strings.ToLower(u.Host), ".") == "" {
				t.Fatalf("%q compiles to %q (%v)", s, filter, err)
			}
		}
		if !r.names(r.host, r.below, r.port) {
			t.Fatalf("%q does not name itself", s)
		}
	})
}

func TestPoliciesHoldTheDoor(t *testing.T) {
	raw, err := policies(cell.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		ProxySettings     map[string]string
		URLBlocklist      []string
		DownloadDirectory string
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	if p.ProxySettings["ProxyServer"] != "http://"+door.String() || p.ProxySettings["ProxyBypassList"] != "<-loopback>" || p.DownloadDirectory != cell.DownloadsPath {
		t.Errorf("policies are %s", raw)
	}
	for _, scheme := range []string{"file:*", "chrome:*", "devtools:*", "view-source:*", "javascript:*"} {
		if !slices.Contains(p.URLBlocklist, scheme) {
			t.Errorf("%s is not blocked (NAV-2)", scheme)
		}
	}
}

// constants returns the section of a program that holds its strings.
func constants(t *testing.T, path string) []byte {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.Section(".rodata").Data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Each switch and feature is one that the installed browser knows, so that a
// new version that drops one is noticed; and none weakens the sandbox.
func TestFlagsAreKnown_CELL4_CELL8(t *testing.T) {
	lists := [][]flag{fixedFlags, enabledFeatures, disabledFeatures, withWebGL, withoutWebGL}
	for _, engine := range []reins.Engine{reins.EngineFull, reins.EngineShell} {
		p, err := Options{}.find(engine)
		if err != nil {
			t.Fatal(err)
		}
		image := constants(t, p.path)
		for _, f := range slices.Concat(lists...) {
			name, _, _ := strings.Cut(strings.TrimPrefix(f.name, "--"), "=")
			if f.why == "" {
				t.Errorf("%s has no reason", name)
			}
			if (f.only == "" || f.only == engine) && !bytes.Contains(image, append([]byte(name), 0)) {
				t.Errorf("%s %s does not know %s", engine, p.path, name)
			}
		}
		for _, arg := range arguments(cell.Spec{Engine: engine, WebGL: true}, version{major: 156}) {
			for _, never := range []string{"no-sandbox", "setuid-sandbox", "seccomp-filter-sandbox", "single-process", "no-zygote", "disable-web-security", "remote-debugging-port"} {
				if strings.Contains(arg, never) {
					t.Errorf("%s weakens the browser", arg)
				}
			}
		}
	}
}

// What prepares a machine asks for the same Chromium as a start does.
func TestSetupAsksForTheOldest_CELL10(t *testing.T) {
	script, err := os.ReadFile("../../scripts/setup")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\noldest=%d ", minVersion); !strings.Contains(string(script), want) {
		t.Errorf("scripts/setup does not say %q", want)
	}
}
