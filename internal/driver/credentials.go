package driver

import (
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"github.com/reins-browser/reins/internal/cdp"
)

// accredit takes in what answers sites that ask for a user and password (NAV-5),
// for the pages that are open too.
func (b *browser) accredit(list []Credential) {
	passes := map[string]string{}
	for _, c := range list {
		passes[c.Origin] = c.Authorization
	}
	b.mu.Lock()
	b.passes = passes
	tabs := append([]*tab(nil), b.tabs...)
	b.mu.Unlock()
	for _, t := range tabs {
		page := t.pageSession()
		for _, s := range t.sessions() {
			s.SendAll(cdp.Prepare(fetch.Enable, fetch.EnableParams{Patterns: b.intercepted(s == page)}))
		}
	}
}

// intercepted are the requests that a session is asked about: documents where
// there are rules for them, and what goes to a site that there are credentials
// for. Each costs a detour inside the browser; others go their way.
func (b *browser) intercepted(whole bool) (patterns []*fetch.RequestPattern) {
	if whole && b.enforces() {
		patterns = append(patterns, &fetch.RequestPattern{URLPattern: "*", ResourceType: network.ResourceTypeDocument, RequestStage: fetch.RequestStageRequest})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for origin := range b.passes {
		patterns = append(patterns, &fetch.RequestPattern{URLPattern: origin + "/*", RequestStage: fetch.RequestStageRequest})
	}
	return patterns
}

// passFor is the headers of a request with the one that answers its site; nil
// when there is none for it. A site's documents get it, and what its own
// documents ask for: with it, what others may read of an answer would be more
// than they could have asked for.
func (t *tab) passFor(v fetch.EventRequestPaused) []*fetch.HeaderEntry {
	if v.Request == nil {
		return nil
	}
	to := originOf(v.Request.URL)
	t.b.mu.Lock()
	pass := t.b.passes[to]
	f := t.frames[v.FrameID]
	own := f != nil && originOf(f.url) == to
	t.b.mu.Unlock()
	if pass == "" || !own && v.ResourceType != network.ResourceTypeDocument {
		return nil
	}
	headers := []*fetch.HeaderEntry{{Name: "Authorization", Value: pass}}
	for name, value := range v.Request.Headers {
		text, isText := value.(string)
		switch {
		case strings.EqualFold(name, "Authorization"): // the page's own
			return nil
		case isText:
			headers = append(headers, &fetch.HeaderEntry{Name: name, Value: text})
		}
	}
	return headers
}

// originOf is an address's scheme, host and port, the latter where it is not the
// scheme's own.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	host := strings.ToLower(u.Host)
	if u.Port() == portOf(&url.URL{Scheme: u.Scheme}) {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}
