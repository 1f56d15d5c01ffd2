package process

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// blockedSchemes lead to the machine, to the browser's own pages or around the
// rules (NAV-2). A page's own javascript: links run in the page and are not
// navigations that a policy sees; blob: and data: that a page makes are its own.
var blockedSchemes = []string{
	"file", "chrome", "chrome-untrusted", "chrome-search", "chrome-extension", "chrome-error", "devtools",
	"view-source", "javascript", "filesystem", "ftp",
}

// filtersMax is how many entries Chromium reads of a list; it ignores the rest.
const filtersMax = 1000

// policies are the managed policies of a cell, which hold without a driver and
// which nothing inside can change: the file lies in the read-only root.
func policies(s cell.Spec) ([]byte, error) {
	p := map[string]any{
		// The one way out, once more, where no setting overrides it.
		"ProxySettings": map[string]any{
			"ProxyMode": "fixed_servers", "ProxyServer": "http://" + door.String(), "ProxyBypassList": "<-loopback>",
		},
		"QuicAllowed":             false,
		"DnsOverHttpsMode":        "off",
		"BuiltInDnsClientEnabled": false,
		"WebRtcIPHandling":        "disable_non_proxied_udp",

		// Files leave by one folder, under names the driver chose.
		"DownloadDirectory":         cell.DownloadsPath,
		"PromptForDownloadLocation": false,
		"PrintingEnabled":           false,
		"AlwaysOpenPdfExternally":   true, // a PDF is a download; its viewer shows nothing that can be read

		// Nothing is installed, remembered or asked on behalf of a person.
		"ExtensionInstallBlocklist":    []string{"*"},
		"PasswordManagerEnabled":       false,
		"PasswordLeakDetectionEnabled": false,
		"AutofillAddressEnabled":       false,
		"AutofillCreditCardEnabled":    false,
		"BrowserSignin":                0,
		"BrowserGuestModeEnabled":      false,
		"BrowserAddPersonEnabled":      false,
		"SyncDisabled":                 true,
		"BackgroundModeEnabled":        false,
		"PromotionsEnabled":            false,
		"RestoreOnStartup":             5, // a new page, not what the last run had open
		"NewTabPageLocation":           "about:blank",
		"HomepageLocation":             "about:blank",
		"HomepageIsNewTabPage":         false,

		// Silence: what would ask a service (CELL-8).
		"DefaultSearchProviderEnabled": false,
		"SearchSuggestEnabled":         false,
		"MetricsReportingEnabled":      false,
		"SafeBrowsingProtectionLevel":  0,
		"SpellCheckServiceEnabled":     false,
		"TranslateEnabled":             false,
		"AlternateErrorPagesEnabled":   false,
		"NetworkPredictionOptions":     2,
		"ComponentUpdatesEnabled":      false,

		// Devices and prompts that no one answers.
		"AuthSchemes":                        "", // HTTP authentication is an answer of status 401, not a prompt that waits (NAV-5)
		"AudioCaptureAllowed":                false,
		"VideoCaptureAllowed":                false,
		"ScreenCaptureAllowed":               false,
		"DefaultNotificationsSetting":        2,
		"DefaultWebUsbGuardSetting":          2,
		"DefaultWebBluetoothGuardSetting":    2,
		"DefaultSerialGuardSetting":          2,
		"DefaultWebHidGuardSetting":          2,
		"DefaultFileSystemReadGuardSetting":  2,
		"DefaultFileSystemWriteGuardSetting": 2,
	}
	block, allow, err := urlFilters(s.Navigation)
	if err != nil {
		return nil, err
	}
	p["URLBlocklist"] = block
	if len(allow) > 0 {
		p["URLAllowlist"] = allow
	}
	return json.Marshal(p)
}

// urlFilters compiles a navigation policy into Chromium's two lists (NAV-3).
//
// There, among the filters that match, one that excludes subdomains wins over
// one that does not, then the longer host, then the longer path. So each host
// that a rule names gets a filter for itself and one for what is below it, as
// far as they differ from what already holds there, and a port that is decided
// differently gets one with the path "/", which wins over the one without.
//
// Chromium applies the lists to frames as to pages, which is stricter than the
// rule asks; there is no policy for pages alone.
func urlFilters(n reins.NavigationPolicy) (block, allow []string, err error) {
	p, err := parseRules(n)
	if err != nil {
		return nil, nil, err
	}
	for _, scheme := range blockedSchemes {
		block = append(block, scheme+":*")
	}
	outside := slices.Repeat([]bool{len(p.allow) == 0}, len(p.ports))
	if !outside[0] {
		block, allow = append(block, "*"), append(allow, "about:blank", "about:srcdoc")
	}
	emit := func(r hostRule, verdicts []bool) {
		for i, ok := range verdicts {
			if i > 0 && ok == verdicts[0] {
				continue
			}
			r.port = p.ports[i]
			if ok {
				allow = append(allow, r.filters()...)
			} else {
				block = append(block, r.filters()...)
			}
		}
	}
	below := map[string][]bool{}
	for _, host := range p.hosts {
		holds := outside
		for parent := host; parent != ""; {
			_, parent, _ = strings.Cut(parent, ".")
			if v, ok := below[parent]; ok {
				holds = v
				break
			}
		}
		below[host] = p.verdicts(host, true)
		if !slices.Equal(below[host], holds) {
			emit(hostRule{host: host, below: true}, below[host])
		}
		if own := p.verdicts(host, false); !slices.Equal(own, below[host]) {
			emit(hostRule{host: host}, own)
		}
	}
	if len(block) > filtersMax || len(allow) > filtersMax {
		return nil, nil, reins.Errorf(reins.CodeInvalidInput, "the navigation policy needs %d block and %d allow filters, above Chromium's bound of %d; use fewer or wider hosts", len(block), len(allow), filtersMax)
	}
	return block, allow, nil
}

// rules are a parsed navigation policy.
type rules struct {
	allow, deny []hostRule
	hosts       []string // that any rule names, a host after those above it
	ports       []string // that any rule names, after "", which stands for all others
}

func parseRules(n reins.NavigationPolicy) (rules, error) {
	p := rules{ports: []string{""}}
	for _, list := range []struct {
		entries []string
		into    *[]hostRule
	}{{n.Allow, &p.allow}, {n.Deny, &p.deny}} {
		for _, entry := range list.entries {
			r, ok := parseHostRule(strings.ToLower(entry))
			if !ok {
				return p, reins.Errorf(reins.CodeInvalidInput, "navigation rule %q is not a host such as \"example.com\", \"*.example.com\" or \"example.com:8443\"", entry)
			}
			*list.into = append(*list.into, r)
			p.hosts, p.ports = append(p.hosts, r.host), append(p.ports, r.port)
		}
	}
	slices.Sort(p.ports)
	p.ports = slices.Compact(p.ports)
	slices.SortFunc(p.hosts, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	p.hosts = slices.Compact(p.hosts)
	return p, nil
}

// verdicts says for each port whether host, or a nameless host below it, may be
// navigated to: deny wins, and with allow rules only what they name may.
func (p rules) verdicts(host string, below bool) []bool {
	all := make([]bool, len(p.ports))
	for i, port := range p.ports {
		names := func(r hostRule) bool { return r.names(host, below, port) }
		all[i] = !slices.ContainsFunc(p.deny, names) && (len(p.allow) == 0 || slices.ContainsFunc(p.allow, names))
	}
	return all
}

// hostRule is one entry of a navigation policy: a host, or everything below it.
type hostRule struct {
	host  string
	port  string
	below bool // "*.host": its subdomains and not itself
}

func parseHostRule(entry string) (hostRule, bool) {
	var r hostRule
	r.host, r.below = strings.CutPrefix(entry, "*.")
	if i := strings.LastIndexByte(r.host, ':'); i > strings.LastIndexByte(r.host, ']') {
		port, err := strconv.ParseUint(r.host[i+1:], 10, 16)
		if err != nil || port == 0 {
			return r, false
		}
		r.host, r.port = r.host[:i], strconv.FormatUint(port, 10)
	}
	if address, err := netip.ParseAddr(strings.Trim(r.host, "[]")); err == nil {
		return r, !r.below && (address.Is4() || strings.HasPrefix(r.host, "[")) && address.Zone() == ""
	}
	// As Chromium writes hosts: in ASCII, without the dot of the root.
	host, err := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false)).ToASCII(strings.TrimSuffix(r.host, "."))
	r.host = host
	return r, err == nil && host != "" && len(host) <= 253 && host[0] != '.' && !strings.ContainsFunc(host, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	})
}

// names reports whether r is about host, or about what is below it.
func (r hostRule) names(host string, below bool, port string) bool {
	switch {
	case r.port != "" && r.port != port:
		return false
	case r.below:
		return strings.HasSuffix(host, "."+r.host) || below && host == r.host
	}
	return !below && host == r.host
}

// filters writes r in Chromium's form, where a host includes its subdomains
// unless a dot precedes it. Addresses have none.
func (r hostRule) filters() []string {
	at := r.host
	if _, err := netip.ParseAddr(strings.Trim(at, "[]")); err != nil && !r.below {
		at = "." + at
	}
	if r.port != "" {
		at += ":" + r.port + "/"
	}
	return []string{"http://" + at, "https://" + at}
}
