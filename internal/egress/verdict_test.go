package egress_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/egress"
)

// spelling is what is asked, by plain HTTP and by CONNECT, and the verdict.
type spelling struct {
	host string
	want egress.Reason
}

// A spelling of a forbidden address leads nowhere, whatever it is (EGR-4,
// B094, B095, B099).
var spellings = []spelling{
	{"127.0.0.1", egress.ReasonAddress},
	{"127.1", egress.ReasonAddress},
	{"127.0.1", egress.ReasonAddress},
	{"2130706433", egress.ReasonAddress},
	{"0x7f000001", egress.ReasonAddress},
	{"0X7F000001", egress.ReasonAddress},
	{"0x7f.0.0.1", egress.ReasonAddress},
	{"0x7f.1", egress.ReasonAddress},
	{"0177.0.0.1", egress.ReasonAddress},
	{"017700000001", egress.ReasonAddress},
	{"127.0.0.1.", egress.ReasonAddress},
	{"127.00.0.1", egress.ReasonAddress},
	{"127.255.255.254", egress.ReasonAddress},
	{"0", egress.ReasonAddress},
	{"0x", egress.ReasonAddress},
	{"0.0.0.0", egress.ReasonAddress},
	{"0.1.2.3", egress.ReasonAddress},
	{"10.0.0.1", egress.ReasonAddress},
	{"172.16.0.1", egress.ReasonAddress},
	{"172.31.255.254", egress.ReasonAddress},
	{"192.168.0.1", egress.ReasonAddress},
	{"100.64.0.1", egress.ReasonAddress},
	{"169.254.169.254", egress.ReasonAddress},
	{"169.254.170.2", egress.ReasonAddress},
	{"168.63.129.16", egress.ReasonAddress},
	{"100.100.100.200", egress.ReasonAddress},
	{"192.0.0.192", egress.ReasonAddress},
	{"224.0.0.1", egress.ReasonAddress},
	{"240.0.0.1", egress.ReasonAddress},
	{"255.255.255.255", egress.ReasonAddress},
	{"198.51.100.1", egress.ReasonAddress},
	{"[::]", egress.ReasonAddress},
	{"[::1]", egress.ReasonAddress},
	{"[0:0::0:1]", egress.ReasonAddress},
	{"[::ffff:127.0.0.1]", egress.ReasonAddress},
	{"[::ffff:7f00:1]", egress.ReasonAddress},
	{"[::ffff:10.0.0.1]", egress.ReasonAddress},
	{"[::FFFF:a9fe:a9fe]", egress.ReasonAddress},
	{"[::127.0.0.1]", egress.ReasonAddress},
	{"[::ffff:0:127.0.0.1]", egress.ReasonAddress},
	{"[64:ff9b::7f00:1]", egress.ReasonAddress},
	{"[64:ff9b::10.0.0.1]", egress.ReasonAddress},
	{"[64:ff9b:1::a00:1]", egress.ReasonAddress},
	{"[2002:7f00:1::]", egress.ReasonAddress},
	{"[2002:a00:1::]", egress.ReasonAddress},
	{"[2001::f5ff:fffe]", egress.ReasonAddress},
	{"[fc00::1]", egress.ReasonAddress},
	{"[fd00:ec2::254]", egress.ReasonAddress},
	{"[fe80::1]", egress.ReasonAddress},
	{"[fec0::1]", egress.ReasonAddress},
	{"[ff02::1]", egress.ReasonAddress},
	{"[2001:db8::1]", egress.ReasonAddress},
	{"[100::1]", egress.ReasonAddress},
	{"[3fff::1]", egress.ReasonAddress},
	{"[5f00::1]", egress.ReasonAddress},
	{"[4000::1]", egress.ReasonAddress},
	{"[fe80::1%25eth0]", egress.ReasonBadHost},
	{"[127.0.0.1]", egress.ReasonBadHost},
	{"localhost", egress.ReasonName},
	{"LOCALHOST", egress.ReasonName},
	{"localhost.", egress.ReasonName},
	{"x.localhost", egress.ReasonName},
	{"localhost.localdomain", egress.ReasonName},
	{"metadata.google.internal", egress.ReasonName},
	{"Metadata.Goog.", egress.ReasonName},
	{"printer.local", egress.ReasonName},
	{"site.onion", egress.ReasonName},
	{"intranet", egress.ReasonName},
	{"%6cocalhost", egress.ReasonName},
	{"%31%32%37.0.0.1", egress.ReasonAddress},
	{"%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1", egress.ReasonAddress}, // full-width digits
	{"%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1", egress.ReasonAddress}, // digits in circles
	{"127%E3%80%820%E3%80%820%E3%80%821", egress.ReasonAddress}, // ideographic full stops
	{"%E2%93%9Bocalhost", egress.ReasonName},                    // a letter in a circle
	{"local%C2%ADhost", egress.ReasonName},                      // a soft hyphen
	{"08.8.8.8", egress.ReasonBadHost},
	{"1.2.3", egress.ReasonBadHost},
	{"256.1.1.1", egress.ReasonBadHost},
	{"1.2.3.4.5", egress.ReasonBadHost},
	{"4294967296", egress.ReasonBadHost},
	{"example.0x1", egress.ReasonBadHost},
	{"0x7g.1", egress.ReasonBadHost},
	{"127.0.0.1%00.example.com", egress.ReasonBadHost},
	{"example.com%2f@10.0.0.1", egress.ReasonMalformed},
	{"127.0.0.1:80@10.0.0.1", egress.ReasonMalformed},
	{"a..b", egress.ReasonBadHost},
	{"example.com..", egress.ReasonBadHost},
	{"-a.example.com", egress.ReasonBadHost},
	{"%ff.example.com", egress.ReasonBadHost},
	{"xn--a.example.com", egress.ReasonBadHost},
	{strings.Repeat("a", 64) + ".example.com", egress.ReasonBadHost},
	{strings.Repeat("a.", 127) + "com", egress.ReasonBadHost},
}

func TestSpellings(t *testing.T) {
	n := newNetwork()
	p := start(t, egress.Options{}, n)
	for _, tt := range spellings {
		for _, raw := range []string{
			"GET http://" + tt.host + "/ HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n",
			"GET http://" + tt.host + ":8080/ HTTP/1.1\r\nHost: " + tt.host + ":8080\r\n\r\n",
			connect(tt.host + ":443"),
		} {
			resp, _ := p.dial(t).ask(raw)
			got := egress.Reason(resp.Header.Get("Reins-Egress"))
			// What net/url does not read is refused before the host is judged.
			if got != tt.want && got != egress.ReasonMalformed {
				t.Errorf("%.70q: reason %q, want %q", raw, got, tt.want)
			}
		}
	}
	if asked, dialled := n.seen(); len(asked)+len(dialled) > 0 {
		t.Errorf("looked up %q and dialled %v", asked, dialled)
	}
}

// The same addresses as answers of a resolver (B095), alone and behind a
// public one (B098, EGR-3): one forbidden address forbids the name.
func TestAnswers(t *testing.T) {
	n := newNetwork()
	p := start(t, egress.Options{}, n)
	for i, tt := range spellings {
		addr, err := netip.ParseAddr(strings.Trim(tt.host, "[]"))
		if err != nil || addr.Zone() != "" || tt.want != egress.ReasonAddress {
			continue
		}
		for j, answer := range [][]string{{addr.String()}, {public, addr.String()}, {addr.String(), public}, {"2606:2800:220:1::1", addr.String()}} {
			host := fmt.Sprintf("a%d-%d.example.com", i, j)
			n.name(host, answer)
			resp, body := p.dial(t).ask(connect(host + ":443"))
			wantReason(t, resp, egress.ReasonAddress)
			if d := p.last(t); d.Address != addr.Unmap() || d.Host != host {
				t.Errorf("%v: decision %+v", answer, d)
			}
			if !strings.Contains(body, "is permitted, its address is not") { // B107
				t.Errorf("%v: %q", answer, body)
			}
		}
	}
	if _, dialled := n.seen(); len(dialled) > 0 {
		t.Errorf("dialled %v", dialled)
	}
}

// An answer of very many addresses is none: judging it would be work without
// end for a name that its owner chose (EGR-10).
func TestManyAnswers(t *testing.T) {
	at := origin(t, func(http.ResponseWriter, *http.Request) {})
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("93.184.216.%d", i))
	}
	n := newNetwork().name("few.example.com", many[:64]).name("many.example.com", many).to("93.184.216.0:80", at)
	p := start(t, egress.Options{}, n)
	if resp, _ := p.dial(t).ask(get("http://few.example.com/")); resp.StatusCode != 200 {
		t.Errorf("64 addresses: %d", resp.StatusCode)
	}
	resp, _ := p.dial(t).ask(get("http://many.example.com/"))
	wantReason(t, resp, egress.ReasonDNS)
}

// A name whose answer changes is judged by what is dialled: every request is
// resolved once and dialled by number (EGR-3, B097, B107).
func TestRebinding(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {})
	inside := origin(t, func(http.ResponseWriter, *http.Request) { t.Error("the inside was reached") })
	n := newNetwork().name("x1.example.com", []string{public}, []string{"127.0.0.1"}, []string{public}, []string{"10.0.0.7"}).
		to(public+":8097", at).to("127.0.0.1:8097", inside).to("10.0.0.7:8097", inside)
	p := start(t, egress.Options{}, n)
	c := p.dial(t) // kept open, on both sides
	for i, want := range []egress.Reason{"", egress.ReasonAddress, "", egress.ReasonAddress, egress.ReasonAddress} {
		resp, _ := c.ask(get("http://x1.example.com:8097/"))
		wantReason(t, resp, want)
		if asked, _ := n.seen(); len(asked) != i+1 {
			t.Fatalf("request %d: asked %v", i, asked)
		}
	}
	if _, dialled := n.seen(); slices.ContainsFunc(dialled, func(a netip.AddrPort) bool { return a.Addr().String() != public }) {
		t.Errorf("dialled %v", dialled)
	}
}

// A pooled connection is shared only where name, port and judged addresses
// are the same: another name at the same address gets its own (EGR-3).
func TestPoolBelongsToVerdict(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {})
	n := newNetwork().to(public+":80", at).to("93.184.216.35:80", at).
		name("a.example.com", []string{public}, []string{public}, []string{"93.184.216.35"}).name("b.example.com", []string{public})
	p := start(t, egress.Options{}, n)
	c := p.dial(t)
	for i, step := range []struct {
		host  string
		dials int
	}{{"a", 1}, {"a", 1}, {"a", 2}, {"b", 3}, {"b", 3}} {
		c.ask(get("http://" + step.host + ".example.com/"))
		if _, dialled := n.seen(); len(dialled) != step.dials {
			t.Errorf("step %d: dialled %v, want %d", i, dialled, step.dials)
		}
	}
}

// A redirect to a forbidden place is a new request, judged anew (B098).
func TestRedirect(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	p := start(t, egress.Options{Policy: reins.EgressPolicy{AllowPrivate: []string{at}}}, nil)
	client := p.client(t)
	client.CheckRedirect = nil
	for _, u := range []string{"http://127.0.0.1:1/", "http://169.254.169.254/latest/", "//localhost:9000/", "http://[::1]:8080/"} {
		resp, err := client.Get("http://" + at + "/?u=" + u)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("%s: %d", u, resp.StatusCode)
		}
	}
}

// EGR-4: ports, by absolute form and by CONNECT alike (B105).
func TestPorts(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {})
	n := newNetwork().name("permitted.example.com", []string{public})
	policy := reins.EgressPolicy{AllowHosts: []string{"permitted.example.com"}}
	p := start(t, egress.Options{Policy: policy}, n)
	for _, port := range []int{80, 443, 1024, 3000, 8080, 8443, 65535} {
		n.to(fmt.Sprintf("%s:%d", public, port), at)
		for _, raw := range []string{connect(fmt.Sprintf("permitted.example.com:%d", port)), get(fmt.Sprintf("http://permitted.example.com:%d/", port))} {
			if resp, _ := p.dial(t).ask(raw); resp.StatusCode != 200 {
				t.Errorf("%d: %d %v", port, resp.StatusCode, resp.Header)
			}
		}
	}
	asked, _ := n.seen()
	refused := []uint16{1, 22, 25, 53, 81, 1023, 6379, 5432, 3306, 11211, 2375, 10250, 9222, 6000, 6697, 10080}
	for _, r := range egress.Ports() {
		refused = append(refused, r.From, r.To)
	}
	for _, port := range refused {
		for _, raw := range []string{connect(fmt.Sprintf("permitted.example.com:%d", port)), get(fmt.Sprintf("http://permitted.example.com:%d/", port))} {
			resp, _ := p.dial(t).ask(raw)
			wantReason(t, resp, egress.ReasonPort)
		}
	}
	if after, _ := n.seen(); len(after) != len(asked) {
		t.Errorf("a refused name was resolved: %v", after[len(asked):]) // EGR-5
	}
}

// Every port from 1024 that Chromium restricts is refused here too, and each
// row of the port table was read.
func TestPortTable(t *testing.T) {
	chromium := []uint16{1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
	last := uint16(1023)
	for _, p := range egress.Ports() {
		if p.From <= last || p.To < p.From || p.Name == "" {
			t.Errorf("row %+v is out of order or empty", p)
		}
		last = p.To
		chromium = slices.DeleteFunc(chromium, func(c uint16) bool { return c >= p.From && c <= p.To })
	}
	if len(chromium) > 0 {
		t.Errorf("not refused: %v", chromium)
	}
}

// EGR-5: which rule opens what. Each case is a policy, a target and the
// verdict; the network behind answers for the names.
func TestRules(t *testing.T) {
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {})
	own := netip.MustParseAddr("93.184.216.40")
	names := map[string]string{
		"site.example.com": public, "sub.site.example.com": public, "intranet.corp": "10.1.2.3", "loop.corp": "127.0.0.1",
		"link.corp": "169.254.1.1", "meta.corp": "169.254.169.254", "self.corp": "93.184.216.40", "cgnat.corp": "100.64.0.9",
		"ula.corp": "fd12::1", "docs.corp": "192.0.2.7", "metadata.google.internal": "169.254.169.254", "db.internal": "10.1.2.4",
		"wiki": "10.1.2.3", "pub.internal": public, "bücher.example.com": public, "xn--bcher-kva.example.com": public,
		"nat64self.corp": "64:ff9b::5db8:d828",
	}
	type policy = reins.EgressPolicy
	for _, tt := range []struct {
		name   string
		policy policy
		target string
		want   egress.Reason // empty: allowed
	}{
		{"default", policy{}, "site.example.com:443", ""},
		{"allow only", policy{AllowHosts: []string{"site.example.com"}}, "site.example.com:443", ""},
		{"allow only, another", policy{AllowHosts: []string{"site.example.com"}}, "sub.site.example.com:443", egress.ReasonNotAllowed},
		{"allow below", policy{AllowHosts: []string{"*.example.com"}}, "sub.site.example.com:443", ""},
		{"allow below, not itself", policy{AllowHosts: []string{"*.site.example.com"}}, "site.example.com:443", egress.ReasonNotAllowed},
		{"allow below is by label", policy{AllowHosts: []string{"*.e.example.com"}}, "site.example.com:443", egress.ReasonNotAllowed},
		{"allow a port", policy{AllowHosts: []string{"site.example.com:8080"}}, "site.example.com:8080", ""},
		{"allow a port, another", policy{AllowHosts: []string{"site.example.com:8080"}}, "site.example.com:443", egress.ReasonNotAllowed},
		{"allow in another spelling", policy{AllowHosts: []string{"Site.EXAMPLE.com."}}, "site.example.com:443", ""},
		{"allow by IDNA", policy{AllowHosts: []string{"bücher.example.com"}}, "xn--bcher-kva.example.com:443", ""},
		{"allow an address", policy{AllowHosts: []string{public}}, public + ":443", ""},
		{"allow an address, not its names", policy{AllowHosts: []string{public}}, "site.example.com:443", egress.ReasonNotAllowed},
		{"deny", policy{DenyHosts: []string{"site.example.com"}}, "site.example.com:443", egress.ReasonDenied},
		{"deny wins", policy{DenyHosts: []string{"*.example.com"}, AllowHosts: []string{"site.example.com"}}, "site.example.com:443", egress.ReasonDenied},
		{"deny a port, another", policy{DenyHosts: []string{"site.example.com:80"}}, "site.example.com:443", ""},
		{"deny an address, by name", policy{DenyHosts: []string{public}}, "site.example.com:443", egress.ReasonDenied},
		{"deny localhost, by address", policy{DenyHosts: []string{"localhost"}, AllowPrivate: []string{"127.0.0.0/8"}}, "127.0.0.1:3000", egress.ReasonDenied},
		{"private name", policy{AllowPrivate: []string{"intranet.corp:443"}}, "intranet.corp:443", ""},
		{"private name, another port", policy{AllowPrivate: []string{"intranet.corp:443"}}, "intranet.corp:8443", egress.ReasonAddress},
		{"private name, odd port", policy{AllowPrivate: []string{"intranet.corp:22"}}, "intranet.corp:22", ""},
		{"private name, its address", policy{AllowPrivate: []string{"intranet.corp:443"}}, "10.1.2.3:443", egress.ReasonAddress},
		{"private name counts as allowed", policy{AllowPrivate: []string{"intranet.corp:443"}, AllowHosts: []string{"site.example.com"}}, "intranet.corp:443", ""},
		{"private name, shared space", policy{AllowPrivate: []string{"cgnat.corp:443"}}, "cgnat.corp:443", ""},
		{"private name, unique local", policy{AllowPrivate: []string{"ula.corp:443"}}, "ula.corp:443", ""},
		{"host rule opens nothing private", policy{AllowHosts: []string{"intranet.corp"}}, "intranet.corp:443", egress.ReasonAddress},
		{"name to loopback", policy{AllowPrivate: []string{"loop.corp:443"}}, "loop.corp:443", egress.ReasonAddress},
		{"name to link-local", policy{AllowPrivate: []string{"link.corp:443"}}, "link.corp:443", egress.ReasonAddress},
		{"name to metadata", policy{AllowPrivate: []string{"meta.corp:443"}}, "meta.corp:443", egress.ReasonAddress},
		{"name to own", policy{AllowPrivate: []string{"self.corp:443"}}, "self.corp:443", egress.ReasonAddress},
		{"name to own by NAT64", policy{}, "nat64self.corp:443", egress.ReasonAddress},
		{"name to documentation", policy{AllowPrivate: []string{"docs.corp:443"}}, "docs.corp:443", egress.ReasonAddress},
		{"name to loopback with prefix", policy{AllowPrivate: []string{"127.0.0.0/8"}}, "loop.corp:443", ""},
		{"name to own with address", policy{AllowPrivate: []string{"93.184.216.40:443"}}, "self.corp:443", ""},
		{"own", policy{}, "93.184.216.40:443", egress.ReasonAddress},
		{"own, allowed by host", policy{AllowHosts: []string{"93.184.216.40"}}, "93.184.216.40:443", egress.ReasonAddress},
		{"metadata name", policy{AllowHosts: []string{"metadata.google.internal"}}, "metadata.google.internal:80", egress.ReasonName},
		{"metadata name and name rule", policy{AllowPrivate: []string{"metadata.google.internal:80"}}, "metadata.google.internal:80", egress.ReasonAddress},
		{"special name, listed", policy{AllowHosts: []string{"pub.internal"}}, "pub.internal:443", ""},
		{"special name, wide wildcard", policy{AllowHosts: []string{"*.example.com", "pub.internal"}}, "db.internal:443", egress.ReasonNotAllowed},
		{"special name, wildcard inside", policy{AllowHosts: []string{"*.internal"}}, "pub.internal:443", ""},
		{"special name, private", policy{AllowPrivate: []string{"db.internal:443"}}, "db.internal:443", ""},
		{"one label, private", policy{AllowPrivate: []string{"wiki:80"}}, "wiki:80", ""},
		{"exact address", policy{AllowPrivate: []string{"10.1.2.3:8080"}}, "10.1.2.3:8080", ""},
		{"exact address, odd port", policy{AllowPrivate: []string{"10.1.2.3:22"}}, "10.1.2.3:22", ""},
		{"exact address, another port", policy{AllowPrivate: []string{"10.1.2.3:8080"}}, "10.1.2.3:8081", egress.ReasonAddress},
		{"exact address, mapped", policy{AllowPrivate: []string{"10.1.2.3:8080"}}, "[::ffff:10.1.2.3]:8080", ""},
		{"exact IPv6", policy{AllowPrivate: []string{"[fd12::1]:8080"}}, "[fd12:0::1]:8080", ""},
		{"prefix", policy{AllowPrivate: []string{"10.0.0.0/8"}}, "10.9.9.9:443", ""},
		{"prefix, not beyond", policy{AllowPrivate: []string{"10.0.0.0/16"}}, "10.1.0.1:443", egress.ReasonAddress},
		{"prefix, not odd ports", policy{AllowPrivate: []string{"10.0.0.0/8"}}, "10.9.9.9:22", egress.ReasonPort},
		{"prefix, not NAT64 of it", policy{AllowPrivate: []string{"10.0.0.0/8"}}, "[64:ff9b::a00:1]:443", egress.ReasonAddress},
		{"prefix around never", policy{AllowPrivate: []string{"::/7"}}, "[::7f00:1]:443", egress.ReasonAddress},
		{"localhost means one", policy{AllowPrivate: []string{"[::1]:3000"}}, "localhost:3000", ""},
		{"localhost by prefix", policy{AllowPrivate: []string{"127.0.0.0/8"}}, "localhost:3000", ""},
		{"localhost, another port", policy{AllowPrivate: []string{"localhost:3000"}}, "localhost:3001", egress.ReasonName},
	} {
		n := newNetwork()
		for host, addr := range names {
			n.name(host, []string{addr})
			a := netip.MustParseAddr(addr)
			for _, port := range []uint16{22, 80, 443, 8080} {
				n.to(netip.AddrPortFrom(a, port).String(), at)
			}
		}
		for _, a := range []string{"10.9.9.9:443", "[fd12::1]:8080", "[::1]:3000", "127.0.0.1:3000"} {
			n.to(a, at)
		}
		p := start(t, egress.Options{Policy: tt.policy, Own: func() ([]netip.Addr, error) { return []netip.Addr{own}, nil }}, n)
		resp, body := p.dial(t).ask(connect(tt.target))
		if got := egress.Reason(resp.Header.Get("Reins-Egress")); got != tt.want || (resp.StatusCode == 200) != (tt.want == "") {
			t.Errorf("%s: %s: %d %q %s", tt.name, tt.target, resp.StatusCode, got, body)
		}
		asked, _ := n.seen()
		if slices.Contains([]egress.Reason{egress.ReasonDenied, egress.ReasonNotAllowed, egress.ReasonPort, egress.ReasonName}, tt.want) &&
			!strings.Contains(tt.name, "by name") && len(asked) > 0 {
			t.Errorf("%s: a refused name was resolved: %v", tt.name, asked)
		}
	}
}

// A policy that cannot be held to is invalid_input naming the entry (EGR-5).
func TestBadPolicy(t *testing.T) {
	type policy = reins.EgressPolicy
	for entry, p := range map[string]policy{
		"exa mple":             {AllowHosts: []string{"exa mple"}},
		"*":                    {AllowHosts: []string{"*"}},
		"*.10.0.0.1":           {DenyHosts: []string{"*.10.0.0.1"}},
		"a.*.com":              {DenyHosts: []string{"a.*.com"}},
		"x.com:0":              {AllowHosts: []string{"x.com:0"}},
		"x.com:22":             {AllowHosts: []string{"x.com:22"}},
		"http://x.com/":        {AllowHosts: []string{"http://x.com/"}},
		"0x7f.1":               {DenyHosts: []string{"0x7f.1"}},
		"intranet.corp":        {AllowPrivate: []string{"intranet.corp"}},
		"*.corp:443":           {AllowPrivate: []string{"*.corp:443"}},
		"10.0.0.1:99999":       {AllowPrivate: []string{"10.0.0.1:99999"}},
		"0.0.0.0/0":            {AllowPrivate: []string{"0.0.0.0/0"}},
		"::/0":                 {AllowPrivate: []string{"::/0"}},
		"::ffff:10.0.0.0/104":  {AllowPrivate: []string{"::ffff:10.0.0.0/104"}},
		"224.0.0.0/8":          {AllowPrivate: []string{"224.0.0.0/8"}},
		"255.255.255.255:80":   {AllowPrivate: []string{"255.255.255.255:80"}},
		"0.0.0.0:3000":         {AllowPrivate: []string{"0.0.0.0:3000"}},
		"[2002:7f00:1::]:3000": {AllowPrivate: []string{"[2002:7f00:1::]:3000"}},
		"fe80::1%eth0":         {AllowPrivate: []string{"fe80::1%eth0"}},
		"must not be negative": {MaxBytesUp: -1},
	} {
		_, err := egress.New(egress.Options{Policy: p})
		if reins.CodeOf(err) != reins.CodeInvalidInput || !strings.Contains(err.Error(), entry) {
			t.Errorf("%q: %v", entry, err)
		}
	}
	if _, err := egress.New(egress.Options{Limits: reins.Limits{EgressHeader: 1}}); reins.CodeOf(err) != reins.CodeInvalidInput {
		t.Errorf("bad limit: %v", err)
	}
	both := policy{AllowHosts: []string{"x.corp:22"}, AllowPrivate: []string{"x.corp:22"}}
	if _, err := egress.New(egress.Options{Policy: both}); err != nil {
		t.Errorf("a port that allow_private names: %v", err)
	}
}

// EGR-10: when the host's own addresses cannot be read nothing is reachable,
// and by default they are those of its interfaces.
func TestOwnAddresses(t *testing.T) {
	n := newNetwork()
	p := start(t, egress.Options{Own: func() ([]netip.Addr, error) { return nil, fmt.Errorf("no netlink") }}, n)
	resp, _ := p.dial(t).ask(connect(public + ":443"))
	wantReason(t, resp, egress.ReasonInternal)
	if _, dialled := n.seen(); len(dialled) > 0 {
		t.Errorf("dialled %v", dialled)
	}
	own, err := egress.InterfaceAddresses()
	if err != nil || !slices.Contains(own, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("own addresses %v, %v", own, err)
	}
}
