package egress

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// registry is what IANA's two special-purpose registries say: the block, and
// whether it is globally reachable ("yes", "no", or "-" for neither).
// https://www.iana.org/assignments/iana-ipv4-special-registry
// https://www.iana.org/assignments/iana-ipv6-special-registry
const registry = `
0.0.0.0/8 no
0.0.0.0/32 no
10.0.0.0/8 no
100.64.0.0/10 no
127.0.0.0/8 no
169.254.0.0/16 no
172.16.0.0/12 no
192.0.0.0/24 no
192.0.0.0/29 no
192.0.0.8/32 no
192.0.0.9/32 yes anycast
192.0.0.10/32 yes anycast
192.0.0.170/32 no
192.0.0.171/32 no
192.0.2.0/24 no
192.31.196.0/24 yes
192.52.193.0/24 yes anycast
192.88.99.0/24 -
192.88.99.2/32 no
192.168.0.0/16 no
192.175.48.0/24 yes
198.18.0.0/15 no
198.51.100.0/24 no
203.0.113.0/24 no
240.0.0.0/4 no
255.255.255.255/32 no
::1/128 no
::/128 no
::ffff:0:0/96 no inner
64:ff9b::/96 yes inner
64:ff9b:1::/48 no
100::/64 no
100:0:0:1::/64 no
2001::/23 no
2001::/32 -
2001:1::1/128 yes anycast
2001:1::2/128 yes anycast
2001:1::3/128 yes anycast
2001:2::/48 no
2001:3::/32 yes anycast
2001:4:112::/48 yes
2001:10::/28 -
2001:20::/28 yes identifier
2001:30::/28 yes identifier
2001:db8::/32 no
2002::/16 -
2620:4f:8000::/48 yes
3fff::/20 no
5f00::/16 no
fc00::/7 no
fe80::/10 no
`

// EGR-4: every block of the registries is a row or inside one, what is not
// globally reachable is refused, and what is reachable and yet refused is no
// unicast place.
func TestTableHoldsTheRegistries(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(registry)) {
		f := strings.Fields(line)
		p := netip.MustParsePrefix(f[0])
		for _, addr := range []netip.Addr{p.Addr(), last(p)} {
			r := rowOf(addr)
			public := r.Class == ClassPublic
			switch {
			case len(f) == 3 && f[2] == "inner":
				if r.Class != ClassEmbedded {
					t.Errorf("%v is %+v, want embedded", addr, r)
				}
			case public != (f[1] == "yes" && len(f) == 2):
				t.Errorf("%v of %s is %+v", addr, line, r)
			case r.Prefix.Bits() < p.Bits() && p.Bits() < 30:
				t.Errorf("%v has no row of its own: %+v", p, r)
			}
		}
	}
}

// last is the highest address of a prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Every line of the source became a row: a slip would leave a hole.
func TestTableIsWhole(t *testing.T) {
	classes := map[Class]int{}
	seen := map[netip.Prefix]bool{}
	for i, r := range rows {
		if seen[r.Prefix] || r.Prefix != r.Prefix.Masked() || r.Name == "" || r.Source == "" {
			t.Errorf("row %+v is double, not masked or empty", r)
		}
		seen[r.Prefix] = true
		classes[r.Class]++
		if i > 0 && rows[i-1].Prefix.Addr().Compare(r.Prefix.Addr()) > 0 {
			t.Errorf("row %v is out of order", r.Prefix)
		}
	}
	const lines = 67
	if len(rows) != lines {
		t.Errorf("%d rows, want %d", len(rows), lines)
	}
	known := 0
	for _, c := range []Class{ClassPublic, ClassPrivate, ClassLoopback, ClassLinkLocal, ClassMetadata, ClassReserved, ClassEmbedded, ClassNever} {
		known += classes[c]
	}
	if known != len(rows) {
		t.Errorf("a class is not one of the closed set: %v", classes)
	}
	if got := Table(); &got[0] == &rows[0] {
		t.Error("Table hands out the table itself")
	}
}

// Against the predicates of net/netip, over the edges of all rows: what these
// call special is never public here.
func TestTableAgainstNetip(t *testing.T) {
	for _, r := range rows {
		for _, a := range []netip.Addr{r.Prefix.Addr(), r.Prefix.Addr().Prev(), last(r.Prefix), last(r.Prefix).Next()} {
			if a.IsValid() && special4or6(a.Unmap()) && classify(a.Unmap()).Class == ClassPublic {
				t.Errorf("%v is public here", a)
			}
		}
	}
}

func special4or6(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsUnspecified() || !a.IsGlobalUnicast()
}

var update = flag.Bool("update", false, "write docs/egress.md")

// docs/egress.md is made from the tables that decide.
func TestDocument(t *testing.T) {
	const path = "../../docs/egress.md"
	want := document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/egress.md is not what the tables say (%v); go test ./internal/egress -run TestDocument -update", err)
	}
}

func document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("\n## Addresses\n\nThe most specific row decides. An IPv4 address without a row is public.\n\n| prefix | what it is | source | class |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%v` | %s | %s | %s |\n", r.Prefix, r.Name, r.Source, r.Class)
	}
	b.WriteString("\n## Ports\n\nAllowed are 80, 443 and every port from 1024 on but these.\n\n| port | whose |\n|---|---|\n")
	for _, p := range ports {
		span := fmt.Sprint(p.From)
		if p.To != p.From {
			span += "–" + fmt.Sprint(p.To)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", span, p.Name)
	}
	b.WriteString("\n## Names\n\nRefused with everything below them, before any look-up.\n\n| name | why | source |\n|---|---|---|\n")
	for _, s := range specialNames {
		name := "`" + s.Name + "`"
		if s.Name == "" {
			name = "any name without a dot"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, s.Why, s.Source)
	}
	b.WriteString("\n## Reasons\n\nEvery refusal carries its reason in the header `Reins-Egress` and in the audit record.\n\n| reason | status | when |\n|---|---|---|\n")
	for _, r := range reasons {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", r.Reason, r.Status, r.When)
	}
	return b.String()
}

const documentHead = `# What a browser may reach

A browser of Reins has no network but one door: a proxy outside its box that
judges every request. Plain HTTP, WebSocket and the tunnels of HTTPS share one
verdict. This page is made from the tables that decide; it is checked by a test.

1. The target must be a plain host name or an address in its usual spelling.
   Numbers in any other dress (decimal, octal, hex, short) are refused.
2. The resource's rules are asked for name and port. A refused name is never
   looked up.
3. The name is looked up once, outside the browser. Every address of the answer
   is judged; one that is forbidden forbids the name.
4. The connection goes to an address that was judged, by number. The next
   request is judged anew.

What is inside a tunnel is not looked at.

## Rules of a resource

| rule | entries | effect |
|---|---|---|
| ` + "`allow_hosts`" + ` | ` + "`example.com`, `*.example.com`, `example.com:8080`" + ` | when not empty, only these are reached |
| ` + "`deny_hosts`" + ` | the same | never reached, whatever else says so; an address also denies names that lead to it |
| ` + "`allow_private`" + ` | ` + "`10.1.2.3:8080`, `intranet.corp:443`, `127.0.0.1:3000`, `10.0.0.0/8`" + ` | opens what is not public |

- ` + "`*.example.com`" + ` is every name below ` + "`example.com`" + `, and not that name itself.
- An exact target of ` + "`allow_private`" + ` opens its port too, and counts as allowed beside
  ` + "`allow_hosts`" + `. A prefix opens the ports below only.
- A name in ` + "`allow_private`" + ` may lead to addresses of class *private*. Loopback,
  link-local, metadata, reserved and the host's own addresses are opened by their
  address or a prefix only. A prefix opens all of these that lie in it: make it as
  narrow as you can. Class *never* is opened by nothing.
- ` + "`localhost`" + ` and names below it are never looked up: they are loopback in another
  spelling. ` + "`127.0.0.1:3000`" + ` or ` + "`localhost:3000`" + ` opens the other as well.
- A special name is reached when ` + "`allow_hosts`" + ` or ` + "`allow_private`" + ` names it; a cloud's
  metadata name only by ` + "`allow_private`" + `, and its address must be opened as well.
- The host's own addresses, on any interface, are forbidden even where public.
`
