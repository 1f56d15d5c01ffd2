package driver

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

// refusalHeader marks a refusal page of the egress door and gives its reason
// (EGR-8).
const refusalHeader = "Reins-Egress"

// header finds a header whatever the case of its name.
func header(h map[string]string, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// address turns what an agent gave into an address to load (NAV-2): without a
// scheme it gets https, and only http, https and about:blank are taken.
func address(given string, policy reins.NavigationPolicy) (string, error) {
	s := strings.TrimSpace(given)
	if strings.EqualFold(s, blankPage) {
		return blankPage, nil
	}
	scheme, hasScheme := schemeOf(s)
	if !hasScheme {
		s, scheme = "https://"+strings.TrimPrefix(s, "//"), "https"
	}
	if scheme != "http" && scheme != "https" {
		return "", reins.Errorf(reins.CodeNavigationBlocked, "addresses of the scheme %.40q are not loaded; give an http or https address, or about:blank", scheme)
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return "", reins.Errorf(reins.CodeInvalidInput, "url %.200q is not an address with a host, such as https://example.com/", given)
	}
	if err := allowed(u, policy); err != nil {
		return "", err
	}
	return s, nil
}

// withoutUser leaves the credentials out of an address, which are told nobody
// but the site.
func withoutUser(address string) string {
	scheme := strings.Index(address, "://")
	if scheme < 0 || !strings.Contains(address, "@") {
		return address
	}
	host := address[scheme+3:]
	if end := strings.IndexAny(host, "/?#\\"); end >= 0 {
		host = host[:end]
	}
	at := strings.LastIndexByte(host, '@')
	return address[:scheme+3] + address[scheme+3+at+1:]
}

// known are the schemes that are taken for one whatever follows.
var known = []string{
	"http", "https", "about", "javascript", "data", "blob", "file", "filesystem", "chrome", "chrome-extension",
	"chrome-untrusted", "devtools", "view-source", "ftp", "ws", "wss", "mailto", "tel", "sms", "intent", "urn", "isolated-app",
}

// schemeOf returns the scheme an address begins with. "host:8080/path" has
// none: what follows the colon is a port.
func schemeOf(s string) (string, bool) {
	colon := strings.IndexByte(s, ':')
	if colon <= 0 {
		return "", false
	}
	for i := range colon {
		c := s[i] | 0x20
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !(s[i] >= '0' && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.')) {
			return "", false
		}
	}
	scheme, rest := strings.ToLower(s[:colon]), s[colon+1:]
	if slices.Contains(known, scheme) {
		return scheme, true
	}
	port := 0
	for port < len(rest) && rest[port] >= '0' && rest[port] <= '9' {
		port++
	}
	if port > 0 && port <= 5 && (port == len(rest) || strings.IndexByte("/?#", rest[port]) >= 0) {
		return "", false
	}
	return scheme, true
}

// allowed applies the resource's rules over hosts (NAV-3).
func allowed(u *url.URL, policy reins.NavigationPolicy) error {
	if matchesAny(u, policy.Deny) || len(policy.Allow) > 0 && !matchesAny(u, policy.Allow) {
		return errBlockedHost(u.Host)
	}
	return nil
}

// enforces reports whether the driver itself holds the rules over hosts: the
// shell reads no policies (CELL-13). It costs every request a detour inside the
// browser, so only where there are rules; the schemes of NAV-2 are closed to
// pages by the browser anyway.
func (b *browser) enforces() bool {
	n := b.settings.Navigation
	return b.settings.Engine == reins.EngineShell && len(n.Allow)+len(n.Deny) > 0
}

// judge lets a request of the tab go on, with what answers its site's question
// for credentials (NAV-5), or fails it when it would lead the tab to where the
// rules do not allow (NAV-3).
func (t *tab) judge(s *cdp.Session, v fetch.EventRequestPaused) {
	if v.FrameID == t.main.id && v.ResourceType == network.ResourceTypeDocument && v.Request != nil {
		u, err := url.Parse(v.Request.URL)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			err = allowed(u, t.b.settings.Navigation)
		}
		if err != nil {
			s.Send(fetch.FailRequest.Method, fetch.FailRequestParams{RequestID: v.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
			return
		}
	}
	s.Send(fetch.ContinueRequest.Method, fetch.ContinueRequestParams{RequestID: v.RequestID, Headers: t.passFor(v)})
}

func errBlockedHost(host string) *reins.Error {
	return reins.Errorf(reins.CodeNavigationBlocked, "the navigation rules of this browser do not allow %.200q; only its owner can change them", host)
}

func matchesAny(u *url.URL, rules []string) bool {
	for _, r := range rules {
		if matches(u, r) {
			return true
		}
	}
	return false
}

// matches tells whether a rule ("example.com", "*.example.com", each possibly
// with ":port") is about an address.
func matches(u *url.URL, rule string) bool {
	host, port := strings.ToLower(rule), ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port != "" && port != portOf(u) {
		return false
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		return strings.HasSuffix(name, "."+rest)
	}
	return name == strings.Trim(host, "[]")
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}
