package egress

import (
	"bytes"
	"net"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// substitute is what the HTTP server reads in place of a head that was
// refused. It is no request for a proxy, so it can lead nowhere, whoever
// sends it; the answer goes out in its turn, after those before it.
const substitute = "GET / HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n"

// guard reads the head of every request strictly before the HTTP server sees
// it (EGR-8). It frames bodies by their length alone: after a chunked body, a
// tunnel or an upgrade the connection carries no further request, so the two
// of them cannot disagree about where one begins.
type guard struct {
	net.Conn
	limit int                     // bytes of a head
	bad   atomic.Pointer[refusal] // of the head that was substituted

	// The rest belongs to the one reader.
	in      []byte // read and not yet looked at
	scanned int    // bytes of in without the end of a head
	out     []byte // to be delivered
	body    int64  // bytes of the current body still to come
	open    bool   // no more heads: all is delivered as it comes
	dead    bool   // nothing more is delivered; what still comes is thrown away
}

// Read delivers checked heads, bodies, and once open everything.
func (g *guard) Read(p []byte) (int, error) {
	for {
		switch {
		case len(g.out) > 0:
			n := copy(p, g.out)
			g.out = g.out[n:]
			return n, nil
		case g.dead:
			// Unread bytes would make the close a reset, and the answer lost.
			if _, err := g.Conn.Read(make([]byte, 4096)); err != nil {
				return 0, err
			}
			continue
		case g.open:
			return g.readBody(p)
		case g.body > 0:
			n, err := g.readBody(p[:min(int64(len(p)), g.body)])
			g.body -= int64(n)
			return n, err
		}
		if err := g.readHead(); err != nil {
			return 0, err
		}
	}
}

// CloseWrite ends one direction, where the connection can.
func (g *guard) CloseWrite() error { return closeWrite(g.Conn) }

func (g *guard) readBody(p []byte) (int, error) {
	if len(g.in) > 0 {
		n := copy(p, g.in)
		if g.in = g.in[n:]; len(g.in) == 0 {
			g.in = nil // a tunnel holds no head
		}
		return n, nil
	}
	return g.Conn.Read(p)
}

// readHead reads once from the connection unless a whole head is there. What
// was read stays when the read fails, for a deadline may only interrupt it.
func (g *guard) readHead() error {
	if g.takeHead() {
		return nil
	}
	var buf [4096]byte
	n, err := g.Conn.Read(buf[:])
	g.in = append(g.in, buf[:n]...)
	if n == 0 {
		return err
	}
	return nil
}

// takeHead moves a complete or hopeless head to out.
func (g *guard) takeHead() bool {
	from := max(0, g.scanned-3)
	end := bytes.Index(g.in[from:], []byte("\r\n\r\n"))
	if end < 0 {
		for i := g.scanned; i < len(g.in); i++ {
			if g.in[i] == '\n' && (i == 0 || g.in[i-1] != '\r') {
				return g.reject(refuse(ReasonMalformed, "a line of the head does not end in CR LF"))
			}
		}
		if g.scanned = len(g.in); g.scanned > g.limit {
			return g.reject(g.tooLarge())
		}
		return false
	}
	end += from + 4
	if end > g.limit {
		return g.reject(g.tooLarge())
	}
	head := g.in[:end]
	f, ref := checkHead(head)
	if ref != nil {
		return g.reject(ref)
	}
	g.out, g.in, g.scanned = head, g.in[end:], 0
	g.body, g.open = f.length, f.last
	return true
}

func (g *guard) tooLarge() *refusal {
	return refuse(ReasonHeader, "the head of the request is larger than %d bytes", g.limit)
}

func (g *guard) reject(ref *refusal) bool {
	g.bad.CompareAndSwap(nil, ref)
	g.out, g.in, g.dead = []byte(substitute), nil, true
	return true
}

// framing is what follows a head.
type framing struct {
	length int64
	last   bool // nothing that follows is another head
}

// checkHead judges one head, which ends in an empty line.
func checkHead(head []byte) (framing, *refusal) {
	lines := strings.Split(string(head[:len(head)-4]), "\r\n")
	method, uri, proto, ref := checkRequestLine(lines[0])
	if ref != nil {
		return framing{}, ref
	}
	var f framing
	var hosts, lengths, codings []string
	for _, line := range lines[1:] {
		name, value, ref := checkField(line)
		if ref != nil {
			return f, ref
		}
		switch name {
		case "Host":
			hosts = append(hosts, value)
		case "Content-Length":
			lengths = append(lengths, value)
		case "Transfer-Encoding":
			codings = append(codings, value)
		case "Upgrade":
			f.last = true
		}
	}
	if ref := checkHosts(method, uri, proto, hosts); ref != nil {
		return f, ref
	}
	return f, f.setLength(method, proto, lengths, codings)
}

// setLength accepts exactly one way to tell where the body ends.
func (f *framing) setLength(method, proto string, lengths, codings []string) *refusal {
	f.last = f.last || method == "CONNECT" || len(codings) > 0
	switch {
	case method == "CONNECT" && len(lengths)+len(codings) > 0:
		return refuse(ReasonMalformed, "a CONNECT request has no body")
	case len(lengths) > 0 && len(codings) > 0:
		return refuse(ReasonMalformed, "the request has both a Content-Length and a Transfer-Encoding")
	case len(lengths) > 1:
		return refuse(ReasonMalformed, "the request has more than one Content-Length")
	case len(codings) > 1, len(codings) == 1 && (codings[0] != "chunked" || proto != "HTTP/1.1"):
		return refuse(ReasonMalformed, "the request's Transfer-Encoding is not \"chunked\"")
	case len(lengths) == 0:
		return nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 62)
	if err != nil || strings.Trim(lengths[0], "0123456789") != "" {
		return refuse(ReasonMalformed, "the Content-Length %.32q is not a number", lengths[0])
	}
	f.length = int64(n)
	return nil
}

// checkRequestLine accepts METHOD SP target SP HTTP/1.x of visible ASCII.
func checkRequestLine(line string) (method, uri, proto string, ref *refusal) {
	bad := refuse(ReasonMalformed, "the request line %.80q is not a method, a target and HTTP/1.1", line)
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return "", "", "", bad
	}
	method, uri, proto = parts[0], parts[1], parts[2]
	if !httpguts.ValidHeaderFieldName(method) || uri == "" || proto != "HTTP/1.1" && proto != "HTTP/1.0" {
		return "", "", "", bad
	}
	for i := range len(uri) {
		if uri[i] <= ' ' || uri[i] >= 0x7f {
			return "", "", "", bad
		}
	}
	parse := uri
	if method == "CONNECT" {
		parse = "http://" + uri // as the HTTP server reads it
	}
	if u, err := url.ParseRequestURI(parse); err != nil || u.User != nil {
		return "", "", "", refuse(ReasonMalformed, "the target %.80q is not an address that a proxy serves", uri)
	}
	return method, uri, proto, nil
}

// checkField accepts name ":" value without folding, of bytes that a field
// may have.
func checkField(line string) (name, value string, ref *refusal) {
	name, value, ok := strings.Cut(line, ":")
	switch {
	case !ok || !httpguts.ValidHeaderFieldName(name): // a folded line, too
		return "", "", refuse(ReasonMalformed, "the head has a line %.40q that is not a field", line)
	case !httpguts.ValidHeaderFieldValue(value):
		return "", "", refuse(ReasonMalformed, "the field %.40q has a byte that no field may have", name)
	}
	return textproto.CanonicalMIMEHeaderKey(name), textproto.TrimString(value), nil
}

// checkHosts accepts one Host, the same as the target's.
func checkHosts(method, uri, proto string, hosts []string) *refusal {
	if len(hosts) > 1 || len(hosts) == 0 && proto == "HTTP/1.1" {
		return refuse(ReasonMalformed, "the request has %d Host fields and not one", len(hosts))
	}
	if len(hosts) == 0 {
		return nil
	}
	if !httpguts.ValidHostHeader(hosts[0]) {
		return refuse(ReasonMalformed, "the Host %.80q is not a host and a port", hosts[0])
	}
	authority, ok := authorityOf(method, uri)
	if !ok {
		return nil // not a proxy request; refused as such
	}
	if method == "CONNECT" && !strings.EqualFold(hosts[0], authority) {
		// Some clients leave the port out of the Host of a CONNECT.
		if host, _, found := cutPort(authority); !found || !strings.EqualFold(hosts[0], host) {
			return refuse(ReasonMalformed, "the Host %.80q is not the target %.80q", hosts[0], authority)
		}
		return nil
	}
	if !strings.EqualFold(strings.TrimSuffix(hosts[0], ":80"), strings.TrimSuffix(authority, ":80")) {
		return refuse(ReasonMalformed, "the Host %.80q is not the target %.80q", hosts[0], authority)
	}
	return nil
}

// authorityOf returns host and port of a request target, undecoded: all of a
// CONNECT's, and what is between "http://" and the path of an absolute form.
func authorityOf(method, uri string) (string, bool) {
	if method == "CONNECT" {
		return uri, true
	}
	const scheme = "http://"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return "", false
	}
	rest := uri[len(scheme):]
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest, true
}

// cutPort splits host and port at the last colon outside brackets.
func cutPort(s string) (host, port string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.Contains(s[i:], "]") {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
