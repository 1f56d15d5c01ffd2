package egress

import (
	"slices"
	"strconv"
	"strings"
)

// Port is a range of ports at which another protocol than the web's listens.
type Port struct {
	From, To uint16
	Name     string
}

// Ports returns the ports above 1023 that are refused by default, in order.
// Of the ports below 1024 only 80 and 443 are allowed (EGR-4).
func Ports() []Port { return slices.Clone(ports) }

// ports holds every port from 1024 on that Chromium itself restricts, so that
// nothing changes when a page's process speaks to the proxy on its own, and
// those of databases, queues, remote control and machine control, whose
// servers can be made to act by a well-formed HTTP request.
var ports = parsePorts(`
1080       SOCKS proxy
1099       Java RMI
1194       OpenVPN
1433-1434  Microsoft SQL Server
1494       Citrix ICA
1521       Oracle database
1719-1720  H.323
1723       PPTP
1883       MQTT
1900       SSDP
2049       NFS
2181       ZooKeeper
2375-2377  Docker control
2379-2380  etcd
2525       SMTP
3260       iSCSI
3268-3269  LDAP global catalogue
3306       MySQL
3389       remote desktop
3478       STUN and TURN
3659       Apple SASL
3690       Subversion
4045       NFS lock daemon
4190       ManageSieve
4369       Erlang port mapper
4505-4506  Salt control
5005       Java debugging
5037       Android debugging
5060-5061  SIP
5222       XMPP
5269       XMPP
5349       TURN over TLS
5353       multicast DNS
5355       LLMNR
5432-5433  PostgreSQL
5555       Android debugging
5671-5672  AMQP
5900-5910  VNC
5985-5986  Windows remote management
6000-6063  X11
6379-6380  Redis
6443       Kubernetes control
6566       scanner daemon
6660-6669  IRC
6679       IRC over TLS
6697       IRC over TLS
8009       AJP
8883       MQTT over TLS
9042       Cassandra
9092       Kafka
9100       raw printing
9200       Elasticsearch
9222       browser debugging
9229       Node.js debugging
9300       Elasticsearch
9418       Git
10080      Amanda
10250      Kubernetes node control
10255      Kubernetes node control
11211      memcached
25672      RabbitMQ
26257      CockroachDB
27017-27019 MongoDB
28015      RethinkDB
33060      MySQL
50000      Db2
61613-61616 ActiveMQ
`)

// parsePorts reads lines of port or from-to, and name. The test of the table
// counts that every line was read.
func parsePorts(text string) []Port {
	var out []Port
	for line := range strings.Lines(text) {
		span, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		lo, hi, ranged := strings.Cut(span, "-")
		if !ranged {
			hi = lo
		}
		from, err := strconv.ParseUint(lo, 10, 16)
		to, err2 := strconv.ParseUint(hi, 10, 16)
		if err != nil || err2 != nil || to < from {
			continue
		}
		out = append(out, Port{uint16(from), uint16(to), strings.TrimSpace(name)})
	}
	return out
}

// checkPort returns why a port is refused by default; empty is allowed.
func checkPort(port uint16) string {
	switch {
	case port == 80 || port == 443:
		return ""
	case port < 1024:
		return "a port below 1024 that is not the web's"
	}
	for _, p := range ports {
		if port >= p.From && port <= p.To {
			return "the port of " + p.Name
		}
	}
	return ""
}
