package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// Class says what becomes of an address.
type Class string

// The classes. A rule by name opens only private; a prefix or an exact
// address opens all but never and embedded (EGR-5).
const (
	ClassPublic    Class = "public"     // allowed by default
	ClassPrivate   Class = "private"    // private networks
	ClassLoopback  Class = "loopback"   // the host itself
	ClassOwn       Class = "own"        // the host itself, by an interface's address; not in the table
	ClassLinkLocal Class = "link-local" // neighbours only
	ClassMetadata  Class = "metadata"   // credentials of the machine
	ClassReserved  Class = "reserved"   // special purpose, not globally reachable
	ClassEmbedded  Class = "embedded"   // judged by the IPv4 address inside it
	ClassNever     Class = "never"      // nothing opens it
)

// Row is one prefix of the table.
type Row struct {
	Prefix netip.Prefix
	Name   string
	Source string // the RFC, or who documents it
	Class  Class
}

// Table returns the addresses by prefix, IPv4 first, each family in order of
// address. The most specific row decides; an IPv4 address without a row is
// public (EGR-4).
func Table() []Row { return slices.Clone(rows) }

// rows holds the IANA special-purpose registries of both families, multicast,
// what RFC 4291 and its kin took out of use, and the addresses at which clouds
// serve a machine's credentials. Anycast services of the nearest network are
// no unicast, so they are reserved although the registry calls them reachable.
var rows = parseRows(`
0.0.0.0/8            never       this network | RFC 791
10.0.0.0/8           private     private use | RFC 1918
100.64.0.0/10        private     shared address space | RFC 6598
100.100.100.200/32   metadata    cloud metadata, Alibaba | Alibaba Cloud
127.0.0.0/8          loopback    loopback | RFC 1122
168.63.129.16/32     metadata    cloud metadata, Azure | Microsoft Azure
169.254.0.0/16       link-local  link-local | RFC 3927
169.254.0.23/32      metadata    cloud metadata, Tencent | Tencent Cloud
169.254.42.42/32     metadata    cloud metadata, Scaleway | Scaleway
169.254.169.0/24     metadata    cloud metadata and services | cloud providers
169.254.170.0/24     metadata    container credentials, Amazon | Amazon Web Services
172.16.0.0/12        private     private use | RFC 1918
192.0.0.0/24         reserved    IETF protocol assignments | RFC 6890
192.0.0.0/29         reserved    IPv4 service continuity | RFC 7335
192.0.0.8/32         reserved    IPv4 dummy address | RFC 7600
192.0.0.9/32         reserved    Port Control Protocol anycast | RFC 7723
192.0.0.10/32        reserved    TURN anycast | RFC 8155
192.0.0.170/31       reserved    NAT64 and DNS64 discovery | RFC 8880
192.0.0.192/32       metadata    cloud metadata, Oracle | Oracle Cloud
192.0.2.0/24         reserved    documentation | RFC 5737
192.31.196.0/24      public      AS112 | RFC 7535
192.52.193.0/24      reserved    AMT relay anycast | RFC 7450
192.88.99.0/24       reserved    6to4 relay anycast, deprecated | RFC 7526
192.168.0.0/16       private     private use | RFC 1918
192.175.48.0/24      public      AS112 direct delegation | RFC 7534
198.18.0.0/15        reserved    benchmarking | RFC 2544
198.51.100.0/24      reserved    documentation | RFC 5737
203.0.113.0/24       reserved    documentation | RFC 5737
224.0.0.0/4          never       multicast | RFC 5771
240.0.0.0/4          reserved    reserved for future use | RFC 1112
255.255.255.255/32   never       limited broadcast | RFC 919
::/0                 reserved    not global unicast space | RFC 4291
::/96                never       IPv4-compatible, deprecated | RFC 4291
::/128               never       unspecified | RFC 4291
::1/128              loopback    loopback | RFC 4291
::ffff:0:0/96        embedded    IPv4-mapped | RFC 4291
::ffff:0:0:0/96      never       IPv4-translated | RFC 2765
64:ff9b::/96         embedded    NAT64 | RFC 6052
64:ff9b:1::/48       reserved    NAT64, local use | RFC 8215
100::/64             reserved    discard only | RFC 6666
100:0:0:1::/64       reserved    dummy prefix | RFC 9780
2000::/3             public      global unicast | RFC 4291
2001::/23            reserved    IETF protocol assignments | RFC 2928
2001::/32            never       Teredo | RFC 4380
2001:1::1/128        reserved    Port Control Protocol anycast | RFC 7723
2001:1::2/128        reserved    TURN anycast | RFC 8155
2001:1::3/128        reserved    DNS-SD registration anycast | RFC 9665
2001:2::/48          reserved    benchmarking | RFC 5180
2001:3::/32          reserved    AMT relay anycast | RFC 7450
2001:4:112::/48      public      AS112 | RFC 7535
2001:10::/28         reserved    ORCHID, deprecated | RFC 4843
2001:20::/28         reserved    ORCHIDv2, identifiers and no places | RFC 7343
2001:30::/28         reserved    drone remote ID, identifiers and no places | RFC 9374
2001:db8::/32        reserved    documentation | RFC 3849
2002::/16            never       6to4 | RFC 3056
2620:4f:8000::/48    public      AS112 direct delegation | RFC 7534
3ffe::/16            reserved    6bone, returned | RFC 3701
3fff::/20            reserved    documentation | RFC 9637
5f00::/16            reserved    segment routing identifiers | RFC 9602
fc00::/7             private     unique local | RFC 4193
fd00:42::42/128      metadata    cloud metadata, Scaleway | Scaleway
fd00:ec2::/32        metadata    cloud metadata and services, Amazon | Amazon Web Services
fd20:ce::254/128     metadata    cloud metadata, Google | Google Cloud
fe80::/10            link-local  link-local | RFC 4291
fe80::a9fe:a9fe/128  metadata    cloud metadata, OpenStack | OpenStack
fec0::/10            reserved    site-local, deprecated | RFC 3879
ff00::/8             never       multicast | RFC 4291
`)

// parseRows reads lines of prefix, class, name | source. A line that is not
// one would leave a hole, so the test of the table counts and reads them all.
func parseRows(text string) []Row {
	var out []Row
	for line := range strings.Lines(text) {
		what, source, ok := strings.Cut(strings.TrimSpace(line), " | ")
		f := strings.Fields(what)
		if !ok || len(f) < 3 {
			continue
		}
		p, err := netip.ParsePrefix(f[0])
		if err != nil {
			continue
		}
		out = append(out, Row{p, strings.Join(f[2:], " "), source, Class(f[1])})
	}
	return out
}

// row returns the most specific row of addr, which is unmapped and has no
// zone. An IPv4 address outside the table is public.
func rowOf(addr netip.Addr) Row {
	best := Row{Prefix: netip.PrefixFrom(addr, 0).Masked(), Name: "global unicast", Source: "RFC 791", Class: ClassPublic}
	for _, r := range rows {
		if r.Prefix.Contains(addr) && r.Prefix.Bits() >= best.Prefix.Bits() {
			best = r
		}
	}
	return best
}

// classify says what addr is. An embedded IPv4 address is taken out and
// judged: only a public one makes the whole public.
func classify(addr netip.Addr) Row {
	r := rowOf(addr)
	if r.Class != ClassEmbedded {
		return r
	}
	b := addr.As16()
	inner := rowOf(netip.AddrFrom4([4]byte(b[12:])))
	if inner.Class == ClassPublic {
		r.Class = ClassPublic
		return r
	}
	r.Name += " of " + inner.Name
	r.Source += ", " + inner.Source
	r.Class = ClassNever
	return r
}
