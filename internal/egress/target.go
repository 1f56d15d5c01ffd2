package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// target is what a request asks for, in its one spelling: a name or an
// address, and a port.
type target struct {
	name string     // lower case, no trailing dot; empty for an address
	addr netip.Addr // unmapped, no zone; zero for a name
	port uint16
}

// host is the target without its port, as a URL spells it without brackets.
func (t target) host() string {
	if t.name != "" {
		return t.name
	}
	return t.addr.String()
}

// authority is the value of a Host header: the port is left out when it is
// the scheme's.
func (t target) authority(scheme string) string {
	host := t.host()
	if t.addr.Is6() {
		host = "[" + host + "]"
	}
	if scheme == "http" && t.port == 80 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

func (t target) String() string { return net.JoinHostPort(t.host(), strconv.Itoa(int(t.port))) }

// maxAuthority bounds what is looked at at all: a name has at most 253 bytes,
// nine times that when each byte is percent-encoded and some room.
const maxAuthority = 2048

// parseAuthority reads "host:port". Without a port it takes fallback, and
// refuses when that is 0.
func parseAuthority(s string, fallback uint16) (target, *refusal) {
	if len(s) > maxAuthority {
		return target{}, refuse(ReasonMalformed, "the target's host and port are longer than %d bytes", maxAuthority)
	}
	if strings.Contains(s, "@") {
		return target{}, refuse(ReasonMalformed, "the target holds a user name; leave it out")
	}
	host, port, hasPort := cutPort(s)
	t, ref := parseHost(host)
	if ref != nil {
		return target{}, ref
	}
	if t.port = fallback; hasPort {
		t.port = parsePort(port)
	}
	if t.port == 0 {
		return target{}, refuse(ReasonMalformed, "the target %.64q has no port from 1 to 65535", s)
	}
	return t, nil
}

// parsePort reads a decimal port without leading zeros; 0 is not one.
func parsePort(s string) uint16 {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0
	}
	return uint16(n)
}

// parseHost brings a host to its one spelling or refuses it. Numbers that are
// not a canonical address are refused even where a resolver would read them:
// which address they mean depends on the reader.
func parseHost(s string) (target, *refusal) {
	if strings.HasPrefix(s, "[") {
		return parseLiteral6(s)
	}
	name, err := normalise(s)
	if err != nil {
		return target{}, refuse(ReasonBadHost, "%.64q is not a host name or an address: %s", s, err.Error())
	}
	if addr, err := netip.ParseAddr(name); err == nil && addr.Is4() && addr.String() == name {
		return target{addr: addr}, nil
	}
	if inner, numeric := readNumber(name); numeric {
		return target{}, refuseSpelling(s, inner)
	}
	name = strings.TrimSuffix(name, ".")
	if err := checkName(name); err != nil {
		return target{}, refuse(ReasonBadHost, "%.64q is not a host name or an address: %s", s, err.Error())
	}
	return target{name: name}, nil
}

func parseLiteral6(s string) (target, *refusal) {
	inside, ok := strings.CutSuffix(s[1:], "]")
	if !ok || strings.Contains(inside, "%") {
		return target{}, refuse(ReasonBadHost, "%.64q is not an IPv6 address without a zone", s)
	}
	addr, err := netip.ParseAddr(inside)
	if err != nil || !addr.Is6() {
		return target{}, refuse(ReasonBadHost, "%.64q is not an IPv6 address", s)
	}
	return target{addr: addr.Unmap()}, nil
}

// refuseSpelling says what a number means to those who read it, so that a
// forbidden address is called so in whatever dress.
func refuseSpelling(s string, inner netip.Addr) *refusal {
	if inner.IsValid() {
		if r := classify(inner); r.Class != ClassPublic {
			ref := refuse(ReasonAddress, "%.64q is another spelling of %s, which is %s (%s)", s, inner, r.Name, r.Source)
			ref.addr = inner
			return ref
		}
		return refuse(ReasonBadHost, "%.64q is another spelling of %s; use that", s, inner)
	}
	return refuse(ReasonBadHost, "%.64q is a number and not an address", s)
}

// normalise undoes percent-encoding once and maps the rest as IDNA does:
// lower case, full-width and circled digits, other dots. The result is ASCII.
func normalise(s string) (string, error) {
	if strings.Contains(s, "%") {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return "", errors.New("its percent-encoding is not valid")
		}
		s = plain // what is still encoded in it is refused below
	}
	if !utf8.ValidString(s) {
		return "", errors.New("it is not UTF-8")
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`#/:<>?@[\]^|%`, r) {
			return "", errors.New("it holds a character that no name has")
		}
	}
	if isASCII(s) && !strings.Contains(strings.ToLower(s), "xn--") {
		return strings.ToLower(s), nil
	}
	// Underscores are in names in use, so the strict rule is ours (checkName).
	profile := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false))
	out, err := profile.ToASCII(s)
	if err != nil || !isASCII(out) {
		return "", errors.New("it is not valid by IDNA")
	}
	return strings.ToLower(out), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// checkName accepts letters, digits, hyphens inside and underscores.
func checkName(name string) error {
	if name == "" || len(name) > 253 {
		return errors.New("its length is not 1 to 253")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("a label's length is not 1 to 63")
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return errors.New("a label begins or ends with a hyphen")
		}
		for i := range len(label) {
			c := label[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return errors.New("it holds a character that no name has")
			}
		}
	}
	return nil
}

// readNumber reports whether name ends in a number, which makes it an address
// to a browser and to a C library, and the address that these read (decimal,
// octal, hex, one to four parts); invalid when they read none.
func readNumber(name string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(name, "."), ".")
	last := parts[len(parts)-1]
	if _, ok := readPart(last); !ok && !allDigits(last) {
		return netip.Addr{}, false
	}
	if len(parts) > 4 {
		return netip.Addr{}, true
	}
	var value uint64
	for i, p := range parts {
		n, ok := readPart(p)
		free := 8 * (5 - len(parts)) // bits of the last part
		switch {
		case !ok, i < len(parts)-1 && n > 255, i == len(parts)-1 && n >= 1<<free:
			return netip.Addr{}, true
		case i < len(parts)-1:
			value |= n << (8 * (3 - i))
		default:
			value |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func readPart(s string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		s, base = s[2:], 16
		if s == "" { // "0x" alone is zero to a browser
			return 0, true
		}
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	n, err := strconv.ParseUint(s, base, 33)
	return n, err == nil && !strings.Contains(s, "_")
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
