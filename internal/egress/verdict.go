package egress

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/reins-browser/reins"
)

// Reason names a verdict. The set is closed; every refusal carries its reason
// in the header Reins-Egress (EGR-8).
type Reason string

// The reasons, in the order of [Reasons].
const (
	ReasonAllowed    Reason = "allowed"
	ReasonMalformed  Reason = "malformed"
	ReasonHeader     Reason = "header-too-large"
	ReasonBadHost    Reason = "bad-host"
	ReasonDenied     Reason = "denied-host"
	ReasonNotAllowed Reason = "not-allowed"
	ReasonPort       Reason = "forbidden-port"
	ReasonName       Reason = "forbidden-name"
	ReasonAddress    Reason = "forbidden-address"
	ReasonDNS        Reason = "dns"
	ReasonRefused    Reason = "refused"
	ReasonNoRoute    Reason = "unreachable"
	ReasonTimeout    Reason = "timeout"
	ReasonBroken     Reason = "broken"
	ReasonNoOwner    Reason = "no-owner"
	ReasonTooMany    Reason = "too-many"
	ReasonBytes      Reason = "byte-limit"
	ReasonInternal   Reason = "internal"
)

// ReasonInfo is one row of the table of reasons.
type ReasonInfo struct {
	Reason Reason
	Status int // HTTP
	When   string
}

// Reasons returns the table of reasons, in a fixed order.
func Reasons() []ReasonInfo { return slices.Clone(reasons) }

var reasons = []ReasonInfo{
	{ReasonAllowed, http.StatusOK, "the connection was made"},
	{ReasonMalformed, http.StatusBadRequest, "the request can be read in two ways, or is none for a proxy"},
	{ReasonHeader, http.StatusRequestHeaderFieldsTooLarge, "the head of the request is above its bound"},
	{ReasonBadHost, http.StatusBadRequest, "the host is neither a plain name nor an address in its canonical form"},
	{ReasonDenied, http.StatusForbidden, "a rule of the resource denies the host or its address"},
	{ReasonNotAllowed, http.StatusForbidden, "the resource allows some hosts only, and not this one"},
	{ReasonPort, http.StatusForbidden, "the port is another protocol's"},
	{ReasonName, http.StatusForbidden, "the name is special: this host, a private network, cloud metadata"},
	{ReasonAddress, http.StatusForbidden, "an address of the host is not public"},
	{ReasonDNS, http.StatusBadGateway, "the name could not be resolved"},
	{ReasonRefused, http.StatusBadGateway, "the host refused the connection"},
	{ReasonNoRoute, http.StatusBadGateway, "no way leads to the host's addresses"},
	{ReasonTimeout, http.StatusBadGateway, "the look-up or the connection took too long"},
	{ReasonBroken, http.StatusBadGateway, "the host closed the connection or did not speak HTTP"},
	{ReasonNoOwner, http.StatusForbidden, "the browser belongs to nobody yet"},
	{ReasonTooMany, http.StatusServiceUnavailable, "too many connections are open"},
	{ReasonBytes, http.StatusForbidden, "the browser's bytes are used up"},
	{ReasonInternal, http.StatusBadGateway, "the proxy itself failed"},
}

func (r Reason) status() int {
	for _, row := range reasons {
		if row.Reason == r {
			return row.Status
		}
	}
	return http.StatusBadGateway
}

// Decision is the one record of a request or tunnel: what was asked, what was
// decided and why. Host is normalised where it could be, else what was asked,
// bounded; it is the page's text in either case.
type Decision struct {
	Time    time.Time
	Method  string // "CONNECT", "GET"; empty when the head could not be read
	Host    string
	Port    uint16
	Address netip.Addr // connected to, or forbidden; zero when there was none
	Allowed bool
	Reason  Reason
	Detail  string // one sentence; text of the page is quoted in it
}

// Err returns the decision as an error: nil when allowed, egress_denied when
// the policy said no, quota_exceeded at a bound, invalid_input for a request
// that is none, navigation_failed when the host could not be reached.
func (d Decision) Err() *reins.Error {
	if d.Allowed {
		return nil
	}
	code := reins.CodeEgressDenied
	switch d.Reason {
	case ReasonMalformed, ReasonHeader, ReasonBadHost:
		code = reins.CodeInvalidInput
	case ReasonDNS, ReasonRefused, ReasonNoRoute, ReasonTimeout, ReasonBroken:
		code = reins.CodeNavigationFailed
	case ReasonTooMany, ReasonBytes:
		code = reins.CodeQuotaExceeded
	case ReasonInternal:
		code = reins.CodeInternal
	}
	return reins.Errorf(code, "%s", d.Detail).In(reins.PhaseEgress).With("reason", string(d.Reason)).With("host", d.Host).With("port", int(d.Port))
}

// refusal is a verdict of no.
type refusal struct {
	reason Reason
	detail string
	addr   netip.Addr
}

func refuse(reason Reason, format string, args ...any) *refusal {
	return &refusal{reason: reason, detail: fmt.Sprintf(format, args...)}
}

// Error makes a refusal travel through net/http as the error of a dial.
func (r *refusal) Error() string { return string(r.reason) + ": " + r.detail }
