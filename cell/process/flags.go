package process

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/cell"
)

// flag is one switch of Chromium and why it is there.
type flag struct {
	name string // with its value, if fixed
	why  string
	only reins.Engine // empty: both
}

// fixedFlags are the same for every cell (CELL-8). Never among them, and never
// added: --no-sandbox, --disable-setuid-sandbox, --disable-seccomp-filter-sandbox,
// --single-process, --no-zygote.
var fixedFlags = []flag{
	{"--headless=new", "the ordinary browser without a window", reins.EngineFull},
	{"--remote-debugging-pipe", "DevTools over descriptors 3 and 4; no port listens (OVW-3)", ""},
	{"--user-data-dir=" + cell.ProfilePath, "the caller's profile, as the cell sees it", ""},

	// The network: one way out, for everything (EGR-9).
	{"--proxy-server=http://" + door.String(), "everything goes to the egress door", ""},
	{"--proxy-bypass-list=<-loopback>", "loopback addresses too: they are judged at the door, not connected to inside", ""},
	{"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE " + door.Addr().String(), "no name is looked up inside, whatever asks", ""},
	{"--disable-quic", "UDP leads nowhere here; do not try", ""},
	{"--webrtc-ip-handling-policy=disable_non_proxied_udp", "WebRTC gathers no addresses and sends nothing past the proxy", reins.EngineFull},
	{"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "the same, under its name there", reins.EngineShell},

	// Silence at rest (CELL-8): each stops a request that was measured.
	{"--disable-background-networking", "no update checks, no variations seed, no prefetch lists", reins.EngineFull},
	{"--disable-component-update", "no component updates on a timer", reins.EngineFull},
	{"--component-updater=url-source=http://127.0.0.1:1/", "components that features ask for on demand: port 1 is refused by the browser itself, before the proxy", reins.EngineFull},
	{"--gaia-url=http://127.0.0.1:1", "the same for the account list, which nothing else stops", ""},
	{"--disable-sync", "no account sync; it also stops a redirector request", reins.EngineFull},
	{"--disable-default-apps", "installs nothing at the first start", reins.EngineFull},
	{"--disable-domain-reliability", "no reports about sites to their owners", reins.EngineFull},
	{"--disable-field-trial-config", "behaviour is that of the version, not of an experiment", ""},
	{"--disable-search-engine-choice-screen", "no first-run page, no list to load", reins.EngineFull},
	{"--no-pings", "no hyperlink auditing", reins.EngineFull},
	{"--metrics-recording-only", "nothing is uploaded", reins.EngineFull},
	{"--disable-breakpad", "no crash upload", ""},
	{"--disable-crash-reporter", "no crash upload", reins.EngineShell},

	// Nobody is there to answer.
	{"--no-first-run", "no welcome page", reins.EngineFull},
	{"--no-default-browser-check", "no question", reins.EngineFull},
	{"--password-store=basic", "no key ring over D-Bus", ""},
	{"--disable-prompt-on-repost", "reloading the result of a form asks nothing", reins.EngineFull},
	{"--disable-popup-blocking", "a window that a page opens is a tab, told of and bounded (TAB-3, TAB-4), and never dropped without a word; like the shell", reins.EngineFull},
	{"--hide-crash-restore-bubble", "no question after a kill", reins.EngineFull},
	{"--disable-component-extensions-with-background-pages", "no hidden pages", reins.EngineFull},

	// Every tab works whether selected or not (TAB-6).
	{"--disable-background-timer-throttling", "timers of background tabs keep their pace", ""},
	{"--disable-backgrounding-occluded-windows", "covered does not mean asleep", ""},
	{"--disable-renderer-backgrounding", "background tabs keep their priority", ""},

	// What an action sets off is there when it is said to be (ACT-6).
	{"--disable-smooth-scrolling", "a key or a wheel scrolls at once; gliding there takes longer than an action waits", ""},
}

// enabledFeatures and disabledFeatures become one switch each: Chromium heeds
// only the last of several.
var enabledFeatures = []flag{
	{"NetworkServiceSandbox", "gives the network service a seccomp filter, which it lacks by default (CELL-4)", ""},
}

var disabledFeatures = []flag{
	{"AsyncDns", "no resolver of its own (EGR-9)", ""},
	{"AutofillServerCommunication", "asks an autofill server about any page with a form", reins.EngineFull},
	{"HttpsUpgrades", "an http address is requested as given; otherwise the door sees hosts and ports nobody named", reins.EngineFull},
	{"LensOverlay", "cost: a renderer of its own", reins.EngineFull},
	{"MediaRouter", "looks for screens in the network", reins.EngineFull},
	{"NetworkTimeServiceQuerying", "asks a time server at every start", reins.EngineFull},
	{"OptimizationHints", "asks for hints and models", ""},
	{"PreloadTopChromeWebUI", "cost: a renderer for a user interface nobody sees", reins.EngineFull},
	{"Translate", "asks for languages, then for translations", ""},
	{"WebUIOmniboxAimPopup", "cost: a renderer", reins.EngineFull},
	{"WebUIOmniboxFullPopup", "cost: a renderer", reins.EngineFull},
	{"WebUIOmniboxPopup", "cost: a renderer", reins.EngineFull},
}

// withoutWebGL lets the GPU process be confined, which a software renderer for
// WebGL keeps it from (CELL-4).
var withoutWebGL = []flag{
	{"--disable-gpu", "no GPU is used", ""},
	{"--disable-software-rasterizer", "no SwiftShader threads before the sandbox", ""},
}

var withWebGL = []flag{
	{"--use-angle=swiftshader-webgl", "WebGL in software, for want of a GPU", ""},
	{"--enable-unsafe-swiftshader", "newer versions want to hear it twice", ""},
}

// arguments is the command line of s's browser without its name, ending in the
// one page to open.
func arguments(s cell.Spec, v version) []string {
	var args []string
	add := func(flags []flag) {
		for _, f := range flags {
			if f.only == "" || f.only == s.Engine {
				args = append(args, f.name)
			}
		}
	}
	add(fixedFlags)
	if s.WebGL {
		add(withWebGL)
	} else {
		add(withoutWebGL)
	}
	args = append(args,
		"--enable-features="+features(enabledFeatures, s.Engine),
		"--disable-features="+features(disabledFeatures, s.Engine),
		"--lang="+s.Locale,
		"--accept-lang="+acceptLanguages(s.Locale),
		fmt.Sprintf("--window-size=%d,%d", s.Width, s.Height),
		"--user-agent="+v.userAgent(),
		"about:blank",
	)
	return args
}

func features(list []flag, e reins.Engine) string {
	var names []string
	for _, f := range list {
		if f.only == "" || f.only == e {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// acceptLanguages is a locale and its language: "de-AT" gives "de-AT,de".
func acceptLanguages(locale string) string {
	if language, _, ok := strings.Cut(locale, "-"); ok {
		return locale + "," + language
	}
	return locale
}

// environment is the browser's whole environment.
func environment(s cell.Spec) []string {
	posix := strings.ReplaceAll(s.Locale, "-", "_")
	return []string{
		"HOME=" + homePath,
		"PATH=/usr/bin:/bin",
		"LANG=" + posix + ".UTF-8",
		"LANGUAGE=" + posix,
		"TZ=" + s.TimeZone,
		"TMPDIR=/tmp",
		// There is no bus; without an address it would try to start one.
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/null",
		"DBUS_SYSTEM_BUS_ADDRESS=unix:path=/dev/null",
	}
}
