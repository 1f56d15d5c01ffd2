package process

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

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

		// Nothing is installed, remembered or asked on behalf of a person.
		"ExtensionInstallBlocklist": []string{"*"},
		"PasswordManagerEnabled":    false,
		"AutofillAddressEnabled":    false,
		"AutofillCreditCardEnabled": false,
		"BrowserSignin":             0,
		"BrowserGuestModeEnabled":   false,
		"BrowserAddPersonEnabled":   false,
		"SyncDisabled":              true,
		"BackgroundModeEnabled":     false,
		"PromotionsEnabled":         false,
		"RestoreOnStartup":          5, // a new page, not what the last run had open
		"NewTabPageLocation":        "about:blank",
		"HomepageLocation":          "about:blank",
		"HomepageIsNewTabPage":      false,

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
// Deny wins over allow; there, the filter with the longer host wins, then the
// one that excludes subdomains, then the longer path, then allow. The path of
// what is denied is "/" for that reason.
func urlFilters(n reins.NavigationPolicy) (block, allow []string, err error) {
	denied, err := parseHostRules(n.Deny)
	if err != nil {
		return nil, nil, err
	}
	allowed, err := parseHostRules(n.Allow)
	if err != nil {
		return nil, nil, err
	}
	for _, scheme := range blockedSchemes {
		block = append(block, scheme+":*")
	}
	for _, d := range denied {
		block = append(block, d.filters("/")...)
		apex := hostRule{host: d.host, port: d.port}
		if d.below && !covered(apex, denied) && (len(allowed) == 0 || covered(apex, allowed)) {
			allow = append(allow, apex.filters("/")...)
		}
	}
	if len(allowed) > 0 {
		block = append(block, "*")
		allow = append(allow, "about:blank", "about:srcdoc")
	}
	for _, a := range allowed {
		if covered(a, denied) {
			continue
		}
		allow = append(allow, a.filters("")...)
		if apex := (hostRule{host: a.host, port: a.port}); a.below && !covered(apex, allowed) {
			block = append(block, apex.filters("")...)
		}
		for _, d := range denied { // a denied port of an allowed host
			anyPort := hostRule{host: d.host, below: d.below}
			if d.port != "" && a.port == "" && anyPort.covers(a) {
				block = append(block, hostRule{host: a.host, port: d.port, below: a.below}.filters("/")...)
			}
		}
	}
	block, allow = unique(block), unique(allow)
	if len(block) > filtersMax || len(allow) > filtersMax {
		return nil, nil, reins.Errorf(reins.CodeInvalidInput, "the navigation policy needs %d block and %d allow filters, above Chromium's bound of %d; use fewer or wider hosts", len(block), len(allow), filtersMax)
	}
	return block, allow, nil
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// hostRule is one entry of a navigation policy: a host, or everything below it.
type hostRule struct {
	host  string
	port  string
	below bool // "*.host": its subdomains and not itself
}

func parseHostRules(entries []string) ([]hostRule, error) {
	rules := make([]hostRule, len(entries))
	for i, entry := range entries {
		var ok bool
		if rules[i], ok = parseHostRule(strings.ToLower(entry)); !ok {
			return nil, reins.Errorf(reins.CodeInvalidInput, "navigation rule %q is not a host such as \"example.com\", \"*.example.com\" or \"example.com:8443\"", entry)
		}
	}
	return rules, nil
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
	valid := r.host != "" && len(r.host) <= 253 && r.host[0] != '.' && !strings.ContainsAny(r.host, "/?#@*\\%:[],\"' \t\r\n")
	return r, valid
}

func covered(o hostRule, rules []hostRule) bool {
	return slices.ContainsFunc(rules, func(r hostRule) bool { return r.covers(o) })
}

// covers reports whether every address that o names is one that r names.
func (r hostRule) covers(o hostRule) bool {
	switch {
	case r.port != "" && r.port != o.port:
		return false
	case !r.below:
		return !o.below && r.host == o.host
	case o.below && r.host == o.host:
		return true
	}
	return strings.HasSuffix(o.host, "."+r.host)
}

// filters writes r in Chromium's form, where a host includes its subdomains
// unless a dot precedes it. A path makes the filter win over the same host
// without one.
func (r hostRule) filters(path string) []string {
	host := r.host
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && !r.below {
		host = "." + host
	}
	if r.port != "" {
		host += ":" + r.port
	}
	return []string{"http://" + host + path, "https://" + host + path}
}
