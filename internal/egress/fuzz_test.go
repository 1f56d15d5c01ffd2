package egress

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// spy resolves every name to one address and remembers what it was asked.
type spy struct {
	answer netip.Addr
	asked  []string
}

func (s *spy) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	s.asked = append(s.asked, host)
	return []netip.Addr{s.answer}, nil
}

// looseAddress reads s as C libraries do (inet_aton), whose readers are more
// generous than ours: any dress of a number, white space after it, upper case.
func looseAddress(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(s, "\x00")
	s = strings.ToLower(strings.TrimRight(strings.TrimSpace(s), "."))
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	a, numeric := readNumber(s)
	return a, numeric && a.IsValid()
}

// FuzzJudge: whatever the spelling, a forbidden address is never part of a
// route, and what an operating system would read as a forbidden address is
// neither looked up nor reached (EGR-3, EGR-4).
func FuzzJudge(f *testing.F) {
	for _, s := range []string{
		"example.com:443", "127.1", "0x7f.1:80", "[::ffff:7f00:1]:80", "①②⑦.1", "%31%32%37.0.0.1", "127.0.0.1%00.com", "localhost.",
		"[fe80::1%25eth0]", "017700000001", "a@b", "１２７。1", "1.2.3.4:8080", "[2606:2800::1]", "0xa9fea9fe", "2852039166", "[64:ff9b::7f00:1]",
	} {
		f.Add(s, []byte{93, 184, 216, 34})
	}
	f.Add("x.example.com", []byte{127, 0, 0, 1})
	f.Add("x.example.com", netip.MustParseAddr("64:ff9b::a9fe:a9fe").AsSlice())
	f.Add("x.example.com", netip.MustParseAddr("::ffff:10.0.0.1").AsSlice())
	f.Fuzz(func(t *testing.T, authority string, answer []byte) {
		addr, ok := netip.AddrFromSlice(answer)
		if !ok {
			addr = netip.AddrFrom4([4]byte{93, 184, 216, 34})
		}
		s := &spy{answer: addr}
		p := &Proxy{resolver: s, limits: reins.Limits{EgressDial: time.Minute}}
		p.own.source = func() ([]netip.Addr, error) { return nil, nil }
		rules, err := compile(reins.EgressPolicy{})
		if err != nil {
			t.Fatal(err)
		}
		tt, ref := parseAuthority(authority, 80)
		var r *route
		if ref == nil {
			r, ref = p.judge(t.Context(), rules, tt)
		}
		if ref == nil {
			checkRoute(t, authority, r)
		}
		host, _, _ := cutPort(authority)
		loose, isNumber := looseAddress(host)
		if !isNumber {
			if plain, err := url.PathUnescape(host); err == nil {
				loose, isNumber = looseAddress(plain)
			}
		}
		if isNumber && (len(s.asked) > 0 || ref == nil && !slices.Equal(r.addrs, []netip.Addr{loose})) {
			t.Errorf("%q is %v to a C library; asked %v, route %+v", authority, loose, s.asked, r)
		}
		for _, name := range s.asked {
			if _, number := looseAddress(name); number || checkName(strings.TrimSuffix(name, ".")) != nil {
				t.Errorf("%q: the resolver was asked for %q", authority, name)
			}
		}
	})
}

// checkRoute judges a route by other means than the table.
func checkRoute(t *testing.T, authority string, r *route) {
	if len(r.addrs) == 0 || r.port == 0 {
		t.Errorf("%q: empty route %+v", authority, r)
	}
	for _, a := range r.addrs {
		inner := a
		if b := a.As16(); a.Is6() && netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
			inner = netip.AddrFrom4([4]byte(b[12:]))
		}
		if special4or6(inner) || a.Is4In6() || a.Zone() != "" {
			t.Errorf("%q: the route leads to %v", authority, a)
		}
	}
	again, ref := parseAuthority(r.target.String(), 80)
	if ref != nil || again != r.target {
		t.Errorf("%q became %v, which is read as %v (%v)", authority, r.target, again, ref)
	}
}

// FuzzHead: a head that passes means the same to net/http as to the guard,
// so that the two cannot disagree about where the next one begins (EGR-8).
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"POST http://a.example/x?y HTTP/1.1\r\nHost: A.example:80\r\nContent-Length: 12\r\n\r\n",
		"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
		"GET http://a.example HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		"GET http://a@b/ HTTP/1.1\r\nHost: b\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, head string) {
		i := strings.Index(head, "\r\n\r\n")
		if i < 0 {
			return
		}
		head = head[:i+4]
		frame, ref := checkHead([]byte(head))
		if ref != nil {
			return
		}
		const rest = "NEXT"
		br := bufio.NewReader(strings.NewReader(head + rest))
		r, err := http.ReadRequest(br)
		if err != nil {
			t.Fatalf("%q passes the guard and not the server: %v", head, err)
		}
		chunked := len(r.TransferEncoding) > 0
		if !frame.last && (chunked || r.ContentLength != frame.length) || chunked && !frame.last {
			t.Errorf("%q: %+v to the guard; %d and %v to the server", head, frame, r.ContentLength, r.TransferEncoding)
		}
		if left, _ := br.Peek(len(rest)); string(left) != rest {
			t.Errorf("%q: the server's head ends before %q", head, left)
		}
		if authority, ok := authorityOf(r.Method, r.RequestURI); ok {
			tt, ref := parseAuthority(authority, 80)
			if ref == nil && r.URL.Port() != "" && net.JoinHostPort(strings.ToLower(strings.TrimSuffix(r.URL.Hostname(), ".")), r.URL.Port()) != tt.String() && isASCII(r.URL.Hostname()) && tt.name != "" && !strings.Contains(tt.name, "xn--") {
				t.Errorf("%q is %v here and %q to net/url", authority, tt, r.URL.Host)
			}
		}
	})
}
