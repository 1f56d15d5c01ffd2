package egress

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Resolver is the part of net.Resolver that the proxy uses.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	maxAnswers = 64                     // addresses of one name; more is refused
	stagger    = 250 * time.Millisecond // before the next address is tried as well (RFC 8305)
	ownFor     = 2 * time.Second        // how long the host's own addresses are remembered
)

// route is a judged target: the only thing that is ever dialled.
type route struct {
	target
	addrs    []netip.Addr // all judged, in the order to try
	deadline time.Time    // of the look-up and the connection; the verdict is not used after it
}

// judge turns what was asked into a route. The name is resolved once; one
// forbidden address forbids it (EGR-3, EGR-4), and so does a panic on the way to
// the verdict (EGR-10).
func (p *Proxy) judge(ctx context.Context, rules *rules, t target) (_ *route, ref *refusal) {
	defer func() {
		if recover() != nil {
			ref = refuse(ReasonInternal, "the verdict on %q failed, so it is not reached", t.host())
		}
	}()
	if ref := rules.judgeTarget(t); ref != nil {
		return nil, ref
	}
	deadline := time.Now().Add(p.limits.EgressDial)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	addrs, ref := p.resolve(ctx, rules, t)
	if ref != nil {
		return nil, ref
	}
	own, err := p.own.read()
	if err != nil {
		return nil, refuse(ReasonInternal, "this host's own addresses cannot be read, so nothing is reachable")
	}
	for _, addr := range addrs {
		if ref := rules.judgeAddress(t, addr, holds(own, addr)); ref != nil {
			return nil, ref
		}
	}
	return &route{t, interleave(addrs), deadline}, nil
}

// holds reports whether addr, or the IPv4 address embedded in it, is in own.
func holds(own []netip.Addr, addr netip.Addr) bool {
	if slices.Contains(own, addr) {
		return true
	}
	if rowOf(addr).Class != ClassEmbedded {
		return false
	}
	b := addr.As16()
	return slices.Contains(own, netip.AddrFrom4([4]byte(b[12:])))
}

// resolve returns the addresses of t without judging them.
func (p *Proxy) resolve(ctx context.Context, rules *rules, t target) ([]netip.Addr, *refusal) {
	switch {
	case t.addr.IsValid():
		return []netip.Addr{t.addr}, nil
	case isLocalhost(t.name):
		return rules.localhost(t.port), nil
	}
	// The dot keeps the host's search list out of it.
	answer, err := p.resolver.LookupNetIP(ctx, "ip", t.name+".")
	if err != nil {
		return nil, lookupRefusal(ctx, t, err)
	}
	if len(answer) == 0 {
		return nil, refuse(ReasonDNS, "the name %q has no address", t.name)
	}
	if len(answer) > maxAnswers {
		return nil, refuse(ReasonDNS, "the name %q has more than %d addresses", t.name, maxAnswers)
	}
	addrs := make([]netip.Addr, 0, len(answer))
	for _, addr := range answer {
		addr = addr.Unmap()
		if !addr.IsValid() || addr.Zone() != "" {
			return nil, forbid(ReasonAddress, t, addr, "no address without a zone")
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

func lookupRefusal(ctx context.Context, t target, err error) *refusal {
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil || errors.As(err, &dns) && dns.IsTimeout:
		return refuse(ReasonTimeout, "the name %q was not resolved in time", t.name)
	case errors.As(err, &dns) && dns.IsNotFound:
		return refuse(ReasonDNS, "the name %q does not exist or has no address", t.name)
	}
	return refuse(ReasonDNS, "the name server gave no usable answer for %q", t.name)
}

// interleave alternates the families, beginning with the answer's first
// (RFC 8305), so that one dead family costs one stagger and no more.
func interleave(addrs []netip.Addr) []netip.Addr {
	if len(addrs) < 2 {
		return addrs
	}
	var first, second []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for len(first) > 0 || len(second) > 0 {
		if len(first) > 0 {
			out, first = append(out, first[0]), first[1:]
		}
		if len(second) > 0 {
			out, second = append(out, second[0]), second[1:]
		}
	}
	return out
}

type dialled struct {
	conn net.Conn
	addr netip.Addr
	err  error
}

// dial connects to the first address of the route that answers. The next one
// is tried when one fails or is slow; who comes too late is closed. It
// returns when no try of its own is left running.
func (p *Proxy) dial(ctx context.Context, r *route) (*originConn, *refusal) {
	ctx, cancel := context.WithDeadline(ctx, r.deadline)
	defer cancel()
	results := make(chan dialled)
	timer := time.NewTimer(stagger)
	defer timer.Stop()
	running, next := 0, 0
	another := func() {
		if next == len(r.addrs) || ctx.Err() != nil { // cancelled by the winner, too
			return
		}
		addr := r.addrs[next]
		next++
		running++
		timer.Reset(stagger)
		go func() { results <- p.try(ctx, netip.AddrPortFrom(addr, r.port)) }()
	}
	another()
	var won *originConn
	var firstErr error
	for running > 0 {
		select {
		case d := <-results:
			running--
			switch {
			case d.err == nil && won == nil:
				won = p.track(d.conn, r.target, d.addr)
				cancel()
			case d.err == nil:
				d.conn.Close()
			default:
				firstErr = cmp.Or(firstErr, d.err)
				another()
			}
		case <-timer.C:
			another()
		}
	}
	if won == nil {
		return nil, dialRefusal(ctx, r.target, firstErr)
	}
	return won, nil
}

// try makes one connection; a dialler that panics is one that failed (EGR-10).
func (p *Proxy) try(ctx context.Context, to netip.AddrPort) (d dialled) {
	defer func() {
		if recover() != nil {
			d = dialled{addr: to.Addr(), err: refuse(ReasonInternal, "the connection to %s failed inside the proxy", to)}
		}
	}()
	conn, err := p.dialOne(ctx, to)
	return dialled{conn, to.Addr(), err}
}

func dialRefusal(ctx context.Context, t target, err error) *refusal {
	var ne net.Error
	var ref *refusal
	switch {
	case errors.As(err, &ref):
		return ref
	case errors.Is(err, syscall.ECONNREFUSED):
		return refuse(ReasonRefused, "%q refused the connection at port %d", t.host(), t.port)
	case ctx.Err() != nil || errors.As(err, &ne) && ne.Timeout():
		return refuse(ReasonTimeout, "%q did not answer at port %d in time", t.host(), t.port)
	}
	return refuse(ReasonNoRoute, "no way leads to %q at port %d", t.host(), t.port)
}

// ownAddresses remembers the host's own addresses for a moment.
type ownAddresses struct {
	source func() ([]netip.Addr, error)

	mu   sync.Mutex
	list []netip.Addr
	at   time.Time
}

// read returns the addresses; a source that fails is asked again next time.
func (o *ownAddresses) read() ([]netip.Addr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.at.IsZero() && time.Since(o.at) < ownFor {
		return o.list, nil
	}
	list, err := o.source()
	if err != nil {
		o.at = time.Time{}
		return nil, err
	}
	o.list = o.list[:0:0]
	for _, a := range list {
		o.list = append(o.list, a.Unmap().WithZone(""))
	}
	o.at = time.Now()
	return o.list, nil
}

// InterfaceAddresses returns the addresses of all interfaces of this host. Of
// an IPv6 network the first address belongs to its routers, and so to this
// host where it is one (RFC 4291, 2.6.1).
func InterfaceAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range list {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		addr := p.Addr().Unmap()
		out = append(out, addr)
		if addr.Is6() {
			out = append(out, p.Masked().Addr())
		}
	}
	return out, nil
}
