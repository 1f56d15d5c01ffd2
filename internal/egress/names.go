package egress

import (
	"slices"
	"strings"
)

// SpecialName is a name, with all below it, that is refused before it is
// resolved unless a rule names the host exactly.
type SpecialName struct {
	Name   string // "localhost"; "" is any name of one label
	Why    string
	Source string
}

// Names returns the special names, in a fixed order (EGR-4). localhost is no
// look-up but another spelling of loopback: an exact 127.0.0.1:3000 opens
// localhost:3000 too, and the other way round.
func Names() []SpecialName { return slices.Clone(specialNames) }

var specialNames = []SpecialName{
	{"localhost", "this host", "RFC 6761"},
	{"localdomain", "this host", "convention of /etc/hosts"},
	{"metadata.google.internal", cloudMetadata, "Google Cloud"},
	{"metadata.goog", cloudMetadata, "Google Cloud"},
	{"instance-data.ec2.internal", cloudMetadata, "Amazon Web Services"},
	{"metadata.azure.internal", cloudMetadata, "Microsoft Azure"},
	{"metadata.tencentyun.com", cloudMetadata, "Tencent Cloud"},
	{"metadata.platformequinix.com", cloudMetadata, "Equinix Metal"},
	{"metadata.packet.net", cloudMetadata, "Equinix Metal"},
	{"api.metadata.cloud.ibm.com", cloudMetadata, "IBM Cloud"},
	{"internal", "private use", "ICANN"},
	{"local", "multicast DNS on the nearest network", "RFC 6762"},
	{"home.arpa", "the home network", "RFC 8375"},
	{"onion", "no name of the DNS", "RFC 7686"},
	{"alt", "no name of the DNS", "RFC 9476"},
	{"invalid", "never a host", "RFC 6761"},
	{"", "one label, completed by the network's own search list", "RFC 7085"},
}

const cloudMetadata = "cloud metadata"

// special returns the row that name falls under. The name is normalised.
func special(name string) (SpecialName, bool) {
	for _, s := range specialNames {
		if s.Name == "" && !strings.Contains(name, ".") || s.Name != "" && below(name, s.Name) {
			return s, true
		}
	}
	return SpecialName{}, false
}

// below reports whether name is zone or under it.
func below(name, zone string) bool {
	return name == zone || strings.HasSuffix(name, "."+zone)
}

// isLocalhost reports whether name is another spelling of loopback (RFC 6761).
func isLocalhost(name string) bool { return below(name, "localhost") }
