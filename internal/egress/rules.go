package egress

import (
	"net/netip"
	"strings"

	"github.com/reins-browser/reins"
)

// rules are a policy, compiled. They are immutable.
type rules struct {
	allow, deny []hostRule
	exact       map[netip.AddrPort]bool // private targets by address
	named       map[string]bool         // private targets by "name:port"
	prefixes    []netip.Prefix
}

// hostRule matches one host, or with wild all hosts below it; port 0 is any.
type hostRule struct {
	target
	wild bool
}

func (h hostRule) match(t target) bool {
	switch {
	case h.port != 0 && h.port != t.port:
		return false
	case h.wild:
		return strings.HasSuffix(t.name, "."+h.name)
	case h.name != "":
		return h.name == t.name
	}
	return h.addr == t.addr
}

func matchAny(list []hostRule, t target) bool {
	for _, h := range list {
		if h.match(t) {
			return true
		}
	}
	return false
}

// compile reads a policy; what it cannot hold to is invalid_input naming the
// entry (EGR-5).
func compile(p reins.EgressPolicy) (*rules, error) {
	if p.MaxBytesUp < 0 || p.MaxBytesDown < 0 {
		return nil, reins.Errorf(reins.CodeInvalidInput, "egress byte limits must not be negative; 0 means unlimited")
	}
	r := &rules{exact: map[netip.AddrPort]bool{}, named: map[string]bool{}}
	for _, entry := range p.AllowPrivate {
		if err := r.addPrivate(entry); err != nil {
			return nil, err
		}
	}
	for _, entry := range p.DenyHosts {
		h, err := compileHost("deny_hosts", entry)
		if err != nil {
			return nil, err
		}
		r.deny = append(r.deny, h)
		if h.name != "" && isLocalhost(h.name) { // one place, two spellings
			for _, addr := range loopbacks() {
				r.deny = append(r.deny, hostRule{target: target{addr: addr, port: h.port}})
			}
		}
	}
	for _, entry := range p.AllowHosts {
		h, err := compileHost("allow_hosts", entry)
		if err != nil {
			return nil, err
		}
		if why := checkPort(h.port); h.port != 0 && why != "" && !r.names(h.target) {
			return nil, reins.Errorf(reins.CodeInvalidInput, "egress allow_hosts entry %.80q would allow nothing: %d is %s; name the exact target in allow_private", entry, h.port, why)
		}
		r.allow = append(r.allow, h)
	}
	return r, nil
}

func compileHost(list, entry string) (hostRule, error) {
	rest, wild := strings.CutPrefix(entry, "*.")
	bad := reins.Errorf(reins.CodeInvalidInput, "egress %s entry %.80q is not a host such as \"example.com\", \"*.example.com\" or \"example.com:8080\"", list, entry)
	if addr, err := netip.ParseAddr(rest); err == nil && addr.Zone() == "" && !wild {
		return hostRule{target: target{addr: addr.Unmap()}}, nil
	}
	h := hostRule{wild: wild}
	host, port, hasPort := cutPort(rest)
	if h.port = parsePort(port); hasPort && h.port == 0 {
		return h, bad
	}
	t, ref := parseHost(host)
	if ref != nil || wild && t.name == "" {
		return h, bad
	}
	h.name, h.addr = t.name, t.addr
	return h, nil
}

// addPrivate reads one entry of allow_private. "localhost:3000" is both
// loopback addresses at that port.
func (r *rules) addPrivate(entry string) error {
	bad := reins.Errorf(reins.CodeInvalidInput, "egress allow_private entry %.80q is not an exact target such as \"10.1.2.3:8080\" or \"intranet.corp:443\", nor a prefix such as \"10.0.0.0/8\"", entry)
	if p, err := netip.ParsePrefix(entry); err == nil {
		return r.addPrefix(entry, p)
	}
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return r.addPrefix(entry, netip.PrefixFrom(addr, addr.BitLen()))
	}
	t, ref := parseAuthority(entry, 0)
	switch {
	case ref != nil:
		return bad
	case t.name != "" && isLocalhost(t.name):
		for _, addr := range loopbacks() {
			r.exact[netip.AddrPortFrom(addr, t.port)] = true
		}
	case t.name != "":
		r.named[t.String()] = true
	case classify(t.addr).Class == ClassNever:
		return reins.Errorf(reins.CodeInvalidInput, "egress allow_private entry %.80q is %s, which nothing opens", entry, classify(t.addr).Name)
	default:
		r.exact[netip.AddrPortFrom(t.addr, t.port)] = true
	}
	return nil
}

// addPrefix bounds how wide a hole may be: an IPv4 /8, an IPv6 /7.
func (r *rules) addPrefix(entry string, p netip.Prefix) error {
	switch {
	case p.Addr().Is4In6():
		return reins.Errorf(reins.CodeInvalidInput, "egress allow_private entry %.80q is an IPv4 prefix in an IPv6 dress; write it as IPv4", entry)
	case p.Addr().Is4() && p.Bits() < 8, p.Addr().Is6() && p.Bits() < 7:
		return reins.Errorf(reins.CodeInvalidInput, "egress allow_private entry %.80q is too wide; use at least /8 for IPv4 and /7 for IPv6", entry)
	case classify(p.Addr()).Class == ClassNever && rowOf(p.Addr()).Prefix.Bits() <= p.Bits():
		return reins.Errorf(reins.CodeInvalidInput, "egress allow_private entry %.80q is %s, which nothing opens", entry, classify(p.Addr()).Name)
	}
	r.prefixes = append(r.prefixes, p.Masked())
	return nil
}

// names reports whether allow_private names t exactly, which opens its port
// and counts as allowed.
func (r *rules) names(t target) bool {
	switch {
	case t.addr.IsValid():
		return r.exact[netip.AddrPortFrom(t.addr, t.port)]
	case isLocalhost(t.name):
		return len(r.localhost(t.port)) > 0
	}
	return r.named[t.String()]
}

// opens reports whether an exact entry or a prefix opens an address.
func (r *rules) opens(addr netip.Addr, port uint16) bool {
	if r.exact[netip.AddrPortFrom(addr, port)] {
		return true
	}
	for _, p := range r.prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// localhost returns the loopback addresses that are open at port: what the
// name localhost means for this resource.
func (r *rules) localhost(port uint16) []netip.Addr {
	var out []netip.Addr
	for _, addr := range loopbacks() {
		if r.opens(addr, port) {
			out = append(out, addr)
		}
	}
	return out
}

func loopbacks() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// judgeTarget decides on name and port, before anything is resolved.
func (r *rules) judgeTarget(t target) *refusal {
	if matchAny(r.deny, t) {
		return refuse(ReasonDenied, "%q is denied by this browser's rules", t.host())
	}
	named := r.names(t)
	private := named || t.addr.IsValid() && r.opens(t.addr, t.port)
	listed := matchAny(r.allow, t)
	if len(r.allow) > 0 && !listed && !private {
		return refuse(ReasonNotAllowed, "%q is not among the hosts that this browser may reach", t.host())
	}
	if why := checkPort(t.port); why != "" && !named {
		return refuse(ReasonPort, "port %d of %q is refused: it is %s", t.port, t.host(), why)
	}
	if t.name == "" {
		return nil
	}
	s, ok := special(t.name)
	switch {
	case !ok, named:
		return nil
	case s.Why == cloudMetadata || isLocalhost(t.name):
		// a host rule is not enough for these (EGR-5)
	case r.lists(t, s):
		return nil
	}
	return refuse(ReasonName, "%q is a special name: %s (%s)", t.name, s.Why, s.Source)
}

// lists reports whether allow_hosts names t itself, or by a wildcard that is
// inside the special zone and so was meant.
func (r *rules) lists(t target, s SpecialName) bool {
	for _, h := range r.allow {
		if h.match(t) && (!h.wild || s.Name != "" && below(h.name, s.Name)) {
			return true
		}
	}
	return false
}

// judgeAddress decides on one address of t. own says whether it is the
// host's own; a name rule opens private networks only (EGR-5).
func (r *rules) judgeAddress(t target, addr netip.Addr, own bool) *refusal {
	if matchAny(r.deny, target{addr: addr, port: t.port}) {
		return forbid(ReasonDenied, t, addr, "denied by this browser's rules")
	}
	row := classify(addr)
	switch {
	case row.Class == ClassNever:
	case r.opens(addr, t.port):
		return nil
	case own:
		return forbid(ReasonAddress, t, addr, "an address of this host itself")
	case row.Class == ClassPublic:
		return nil
	case row.Class == ClassPrivate && r.named[t.String()]:
		return nil
	}
	return forbid(ReasonAddress, t, addr, row.Name+" ("+row.Source+")")
}

// forbid says of a name that its address is at fault, so that nobody searches
// the rules for the name.
func forbid(reason Reason, t target, addr netip.Addr, what string) *refusal {
	ref := refuse(reason, "%s is %s", addr, what)
	if t.name != "" {
		ref = refuse(reason, "the name %q is permitted, its address is not: %s is %s", t.name, addr, what)
	}
	ref.addr = addr
	return ref
}
