package egress

import (
	"net/netip"
	"strings"
	"testing"
)

// Every spelling ends as one plain target or as a refusal (EGR-4).
func TestParseAuthority(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // host:port, or the reason of a refusal
	}{
		{"example.com", "example.com:80"},
		{"Example.COM.:8080", "example.com:8080"},
		{"my_site.example.com:443", "my_site.example.com:443"},
		{"r3---sn-x.example.com", "r3---sn-x.example.com:80"},
		{"1.2.3.4", "1.2.3.4:80"},
		{"[2606:2800:0220::1]:443", "[2606:2800:220::1]:443"},
		{"[::ffff:1.2.3.4]:443", "1.2.3.4:443"},
		{"b%C3%BCcher.example.com", "xn--bcher-kva.example.com:80"},
		{"BÜCHER.example.com", "xn--bcher-kva.example.com:80"},
		{"xn--bcher-kva.example.com", "xn--bcher-kva.example.com:80"},
		{"faß.de", "xn--fa-hia.de:80"},
		{"%65xample.com", "example.com:80"},
		{"ｅｘａｍｐｌｅ。ｃｏｍ", "example.com:80"},
		{"①②⑦.⓪.⓪.①", "127.0.0.1:80"},
		{"１２７.0.0.1", "127.0.0.1:80"},
		{"127。0。0。1", "127.0.0.1:80"},
		{"127.0.0.1%2f", "bad-host"},
		{"%25%36%63ocalhost", "bad-host"},
		{"localhost%00", "bad-host"},
		{"a%", "bad-host"},
		{"a b", "bad-host"},
		{"a\x00b", "bad-host"},
		{"a\tb", "bad-host"},
		{"a／b", "bad-host"},
		{"a％2eb", "bad-host"},
		{"\xff", "bad-host"},
		{"::1", "bad-host"},
		{"::1:80", "bad-host"},
		{"[::1", "bad-host"},
		{"[::1%25lo]", "bad-host"},
		{"[::1%lo]", "bad-host"},
		{"[v1.x]", "bad-host"},
		{"[]", "bad-host"},
		{"", "bad-host"},
		{".", "bad-host"},
		{".com", "bad-host"},
		{"a@b", "malformed"},
		{"a:0", "malformed"},
		{"a:65536", "malformed"},
		{"a:080", "malformed"},
		{"a:+80", "malformed"},
		{"a:", "malformed"},
		{"a:b", "malformed"},
		{"0x7f.0x0.0x0.0x1", "forbidden-address"},
		{"0x5db8d822", "bad-host"}, // public, yet no canonical address
		{"1.2.3.4.", "bad-host"},
		{"01.2.3.4", "bad-host"},
		{"1.2.3.4.example", "1.2.3.4.example:80"},
		{"1e3.example", "1e3.example:80"},
		{"0b1", "0b1:80"}, // a name of one label; refused as such later
		{"1_0", "1_0:80"},
		{"0x_1", "0x_1:80"},
		{strings.Repeat("a", 3000), "malformed"},
	} {
		got, ref := parseAuthority(tt.in, 80)
		have := got.String()
		if ref != nil {
			have = string(ref.reason)
		}
		if have != tt.want {
			t.Errorf("%.60q is %s, want %s (%v)", tt.in, have, tt.want, ref)
		}
	}
	if _, ref := parseAuthority("example.com", 0); ref == nil {
		t.Error("a CONNECT without a port was accepted")
	}
}

// The numbers are read as browsers and C libraries read them.
func TestReadNumber(t *testing.T) {
	for in, want := range map[string]string{
		"127.1": "127.0.0.1", "127.0.1": "127.0.0.1", "127.65535": "127.0.255.255", "0x7f000001": "127.0.0.1",
		"2130706433": "127.0.0.1", "017700000001": "127.0.0.1", "0x7f.0.0.1": "127.0.0.1", "0177.0.0.01": "127.0.0.1",
		"0": "0.0.0.0", "0x": "0.0.0.0", "00": "0.0.0.0", "4294967295": "255.255.255.255", "1.0xffffff": "1.255.255.255",
		"4294967296": "", "127.0.0.256": "", "256.1": "", "1.0x1000000": "", "08.1.1.1": "", "1.2.3.4.5": "", "a.1": "",
		"99999999999999999999": "",
	} {
		addr, numeric := readNumber(in)
		if !numeric || addr.IsValid() != (want != "") || want != "" && addr != netip.MustParseAddr(want) {
			t.Errorf("%q is %v, %v; want %q", in, addr, numeric, want)
		}
	}
	for _, in := range []string{"example.com", "1.example", "0xg", "1a", "0x1g.com", "0b1"} {
		if _, numeric := readNumber(in); numeric {
			t.Errorf("%q was taken for a number", in)
		}
	}
}
